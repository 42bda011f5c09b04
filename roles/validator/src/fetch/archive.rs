//! Packages: their addresses, and comparison of members with a manifest.

use crate::fetch::digest::Hasher;
use crate::fetch::paths::MANIFEST;
use crate::fetch::{self, Budget, Failure, Go, is_url, values};
use crate::report::{Findings, MAKING, Rule};
use abreast_net::Client;
use abreast_webtypes::{Digests, count, excerpt};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use zip::ZipArchive;

/// First bytes of a ZIP file.
pub(crate) const ZIP: &[u8] = b"PK\x03\x04";
/// Bytes read from a package at a time.
pub(crate) const CHUNK: usize = 64 << 10;

/// Problem of a package or resource that was not checked because of its size.
pub(crate) const TOO_LARGE: &str = "larger than --max-size";

/// Whether the answer may be a ZIP file, by its media type or the name in its URL.
pub(crate) fn may_be_zip(media_type: &str, url: &str) -> bool {
    let essence = values::essence(media_type);
    essence.contains("zip") && !essence.contains("gzip")
        || essence.is_empty() && has_ending(url, &[".zip"])
        || essence == "application/octet-stream"
}

/// Whether a start is a package: by its name or, for a file, also by its first bytes.
pub(crate) fn is_given(start: &str) -> bool {
    let mut begin = [0; 4];
    has_ending(start, &[".zip"])
        || is_named_warc(start)
        || !is_url(start)
            && File::open(start).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && begin.starts_with(b"PK")
}

/// Whether the name of a file or the path of a URL has the ending of a WARC file.
pub(crate) fn is_named_warc(start: &str) -> bool {
    has_ending(start, &[".warc", ".warc.gz"])
}

fn has_ending(start: &str, endings: &[&str]) -> bool {
    let path = if is_url(start) { start.split(['?', '#']).next() } else { Some(start) };
    let path = path.unwrap_or_default().to_ascii_lowercase();
    endings.iter().any(|ending| path.ends_with(ending))
}

/// Result of fetching a package.
pub(crate) enum Got {
    File(File),
    /// The package is larger than the limit. Contains its size if the server reports it.
    TooLarge(Option<u64>),
}

/// Downloads a package of at most `most` bytes into an unnamed temporary file, or opens a local
/// file.
pub(crate) async fn get(
    client: &Client,
    url: &str,
    budget: &Budget<'_>,
    most: u64,
) -> Result<Got, Failure> {
    let missing = |error: io::Error| Failure::Missing(error.to_string());
    if !is_url(url) {
        return File::open(url).map(Got::File).map_err(|error| fetch::unreadable(&error));
    }
    let file = std::cell::RefCell::new(tempfile::tempfile().map_err(missing)?);
    let mut length = 0;
    let stated = std::cell::Cell::new(None);
    let too_large = std::cell::Cell::new(false);
    let making = std::cell::Cell::new(false);
    let failed = std::cell::RefCell::new(None);
    let begin = |facts: &fetch::ResponseFacts| {
        let mut file = file.borrow_mut();
        let begun = file.set_len(0).and_then(|()| file.seek(SeekFrom::Start(0)));
        *failed.borrow_mut() = begun.err();
        stated.set(facts.length());
        too_large.set(facts.content_length.is_some_and(|length| length > most));
        making.set(facts.status == 202);
        if too_large.get() || making.get() { Go::Enough } else { Go::On }
    };
    let piece = |bytes: &[u8]| {
        length += bytes.len() as u64;
        if let Err(error) = file.borrow_mut().write_all(bytes) {
            *failed.borrow_mut() = Some(error);
        }
        too_large.set(length > most);
        if too_large.get() || failed.borrow().is_some() { Go::Enough } else { Go::On }
    };
    fetch::url(client, url, true, budget, begin, piece).await?;
    if let Some(error) = failed.into_inner() {
        return Err(missing(error));
    }
    if making.get() {
        return Err(Failure::Missing(MAKING.to_owned()));
    }
    if too_large.get() {
        return Ok(Got::TooLarge(stated.get()));
    }
    Ok(Got::File(file.into_inner()))
}

/// A member of a package according to the manifest.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) loc: String,
    pub(crate) digests: Digests,
    pub(crate) length: Option<u64>,
    pub(crate) place: (u64, u64),
}

/// Rules for comparing the members of a package with its manifest.
pub(crate) struct MemberRules {
    /// Every member of the package is in the manifest.
    pub(crate) listed: &'static Rule,
    /// Every member in the manifest is in the package.
    pub(crate) is_there: &'static Rule,
    /// Length and digests of members are the same as in the manifest.
    pub(crate) is_true: &'static Rule,
}

impl MemberRules {
    /// Compares length and digest of a member with its entry in the manifest.
    pub(crate) fn compare(
        &self,
        name: &str,
        member: &Member,
        hasher: Hasher,
        in_manifest: &mut Findings,
    ) {
        let length = hasher.length;
        if member.length.is_some_and(|stated| stated != length) {
            let message = || format!("{} has {}", excerpt(name), count(length, "byte"));
            in_manifest.add(self.is_true, member.place, message);
        } else if hasher.finish().agree(&member.digests) == Some(false) {
            let message = || format!("{} has another digest", excerpt(name));
            in_manifest.add(self.is_true, member.place, message);
        }
    }

    /// Reports members that are in the manifest but not in the package.
    pub(crate) fn add_absent(&self, absent: &HashMap<String, Member>, in_manifest: &mut Findings) {
        let mut absent: Vec<_> = absent.iter().collect();
        absent.sort_by_key(|(_, member)| member.place);
        for (name, member) in absent {
            let message = || format!("there is no {}", excerpt(name));
            in_manifest.add(self.is_there, member.place, message);
        }
    }

    /// Compares at most `most` members with their entries and removes these entries from `members`.
    /// `is_known` is true if the whole manifest was read: only then can a member be reported as
    /// missing from the manifest.
    pub(crate) fn compare_all(
        &self,
        archive: &mut ZipArchive<File>,
        most: usize,
        (members, is_known): (&mut HashMap<String, Member>, bool),
        budget: &Budget<'_>,
        (in_manifest, found): (&mut Findings, &mut Findings),
    ) -> Result<(), Failure> {
        for number in 0..archive.len().min(most) {
            let Some(Ok(name)) = archive.name_for_index(number) else { continue };
            let name = name.into_owned();
            if name == MANIFEST || name.ends_with('/') {
                continue;
            }
            let Some(member) = members.remove(&name) else {
                if is_known {
                    let message = || format!("{} is not in the manifest", excerpt(&name));
                    found.add(self.listed, (0, 0), message);
                }
                continue;
            };
            let mut hasher = Hasher::of(&member.digests);
            if let Err(error) = each_piece(archive, number, budget, |bytes| hasher.update(bytes))? {
                let message = || format!("{} cannot be unpacked: {error}", excerpt(&name));
                in_manifest.add(self.is_there, member.place, message);
                continue;
            }
            self.compare(&name, &member, hasher, in_manifest);
        }
        self.add_absent(members, in_manifest);
        Ok(())
    }
}

/// Unpacks a member of a package piece by piece. The inner error describes a fault of the package,
/// the outer one ends the walk.
pub(crate) fn each_piece(
    archive: &mut ZipArchive<File>,
    number: usize,
    budget: &Budget<'_>,
    piece: impl FnMut(&[u8]),
) -> Result<Result<(), String>, Failure> {
    match archive.by_index(number) {
        Ok(member) => Ok(each_chunk(member, budget, piece)?.map_err(|error| error.to_string())),
        Err(error) => Ok(Err(error.to_string())),
    }
}

/// Reads up to the end, piece by piece. The inner error is a failed read, the outer one ends the
/// walk.
pub(crate) fn each_chunk(
    mut input: impl Read,
    budget: &Budget<'_>,
    mut each: impl FnMut(&[u8]),
) -> Result<io::Result<()>, Failure> {
    let mut buffer = vec![0; CHUNK];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return Ok(Ok(())),
            Ok(length) => {
                budget.take(length)?;
                each(&buffer[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error)),
        }
    }
}
