//! Comparison of a package with its manifest [rs-core §11.2, §13.2].

use crate::fetch::MAKING;
use crate::fetch::digest::Hasher;
use crate::fetch::paths::MANIFEST;
use crate::fetch::place::is_url;
use crate::fetch::values;
use crate::fetch::{self, Budget, Failure, Go};
use crate::report::finding::{Finding, Findings};
use crate::report::rule::Mode;
use crate::report::rules as r;
use crate::resourcesync::checker::Checker;
use crate::resourcesync::collect::{Child, Collector, Context, Origin};
use crate::resourcesync::entry::{DocumentObserver, Entry, Head};
use crate::resourcesync::markup::has;
use crate::walk::sketch::{Listed, Sketch};
use abreast_net::Client;
use abreast_resourcesync::v1_1::Capability;
use abreast_webtypes::{Digests, W3cDatetime, count, excerpt};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use zip::ZipArchive;

/// Members of a package and entries of its manifest that are checked.
const MEMBERS_MAX: usize = 1_000_000;
/// Bytes of a manifest, unpacked.
const MANIFEST_BYTES_MAX: u64 = 512 << 20;
/// Beginning of a ZIP file.
pub(crate) const ZIP: &[u8] = b"PK\x03\x04";
const CHUNK: usize = 64 << 10;

/// Why a package or resource was not checked.
pub(crate) const TOO_LARGE: &str = "larger than --max-file-bytes";
/// Data of a package.
#[derive(Debug, Default)]
pub(crate) struct Package {
    pub(crate) capability: Option<Capability>,
    pub(crate) at: Option<W3cDatetime>,
    pub(crate) from: Option<W3cDatetime>,
    pub(crate) until: Option<W3cDatetime>,
    /// Bitstreams that the manifest lists.
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) fingerprint: u64,
    /// Whether the fingerprint is valid.
    pub(crate) complete: bool,
    pub(crate) listed: Option<Sketch<Listed>>,
}

/// Which package it is.
pub(crate) struct PackageOrigin<'a> {
    pub(crate) url: &'a str,
    pub(crate) number: u32,
    pub(crate) context: &'a Context,
    pub(crate) mode: Mode,
    pub(crate) most_each: usize,
    /// The kind of the document that points to it.
    pub(crate) dump: Option<Capability>,
}

/// Is it worth searching for a ZIP there?
pub(crate) fn may_be_zip(media_type: &str, url: &str) -> bool {
    let essence = values::essence(media_type);
    essence.contains("zip") && !essence.contains("gzip")
        || essence.is_empty() && has_ending(url, &[".zip"])
        || essence == "application/octet-stream"
}

/// Whether what was given is a package, by its name or, of a file, by its beginning.
pub(crate) fn is_given(start: &str) -> bool {
    let mut begin = [0; 4];
    has_ending(start, &[".zip"])
        || is_named_warc(start)
        || !is_url(start)
            && File::open(start).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && begin.starts_with(b"PK")
}

/// Whether the name of a file, or the path of a URL, is that of a WARC file.
pub(crate) fn is_named_warc(start: &str) -> bool {
    has_ending(start, &[".warc", ".warc.gz"])
}

fn has_ending(start: &str, endings: &[&str]) -> bool {
    let path = if is_url(start) { start.split(['?', '#']).next() } else { Some(start) };
    let path = path.unwrap_or_default().to_ascii_lowercase();
    endings.iter().any(|ending| path.ends_with(ending))
}

/// A package that was asked for.
pub(crate) enum Got {
    File(File),
    /// Larger than the limit, with its size if the server states that.
    TooLarge(Option<u64>),
}

/// Fetches a package into a file without a name, or opens it.
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

/// Compares the length of a package with that of its entry; whether they differ.
pub(crate) fn compare_length(entry: &Child, length: Option<u64>, found: &mut Findings) -> bool {
    let Some((stated, length)) = entry.length.zip(length).filter(|(one, other)| one != other)
    else {
        return false;
    };
    let message = || format!("{}, {stated} stated", count(length, "byte"));
    found.add(&r::LENGTH_TRUE, (0, 0), message);
    true
}

/// Compares a package with the entry that points to it, and its manifest with its members.
pub(crate) fn check(
    mut file: File,
    entry: Option<&Child>,
    of: &PackageOrigin<'_>,
    budget: &Budget<'_>,
    found: &mut Findings,
) -> Result<(Package, Vec<Finding>), Failure> {
    let mut package = Package {
        bytes: file.metadata().map_or(0, |metadata| metadata.len()),
        ..Package::default()
    };
    if let Some(entry) = entry
        && !compare_length(entry, Some(package.bytes), found)
        && entry.digests.strongest().is_some()
        && digests_of(&mut file, &entry.digests, budget)?.agree(&entry.digests) == Some(false)
    {
        found.add(&r::HASH_TRUE, (0, 0), || {
            "the package has another digest than is stated".to_owned()
        });
    }
    let mut archive =
        match file.seek(SeekFrom::Start(0)).map_err(Into::into).and_then(|_| ZipArchive::new(file))
        {
            Ok(archive) => archive,
            Err(error) => {
                found.add(&r::MANIFEST, (0, 0), || format!("this is no ZIP file: {error}"));
                return Ok((package, Vec::new()));
            }
        };
    let Some(number) = archive.index_for_name(MANIFEST) else {
        let mut names =
            archive.file_names().filter_map(Result::ok).map(std::borrow::Cow::into_owned);
        let elsewhere = names.find(|name| name.rsplit('/').next() == Some(MANIFEST));
        found.add(&r::MANIFEST, (0, 0), || match elsewhere {
            Some(name) => format!("the manifest is at {}, not at the top level", excerpt(&name)),
            None => "the package has no manifest.xml".to_owned(),
        });
        return Ok((package, Vec::new()));
    };
    let label = format!("{}!/{MANIFEST}", of.url);
    let observer = Members {
        collector: Collector::new(of.context, of.number, of.url, Origin::default()),
        paths: HashMap::new(),
    };
    let mut checker =
        Checker::new(Findings::new(&label, of.mode, of.most_each), observer, MANIFEST_BYTES_MAX)
            .of_manifest();
    if let Err(error) = each_piece(&mut archive, number, budget, |bytes| checker.feed(bytes))? {
        found.add(&r::MANIFEST, (0, 0), || format!("the manifest cannot be unpacked: {error}"));
        return Ok((package, Vec::new()));
    }
    checker.finish();
    let md = checker.head.md.clone().unwrap_or_default();
    (package.capability, package.at, package.from, package.until) =
        (md.capability, md.at, md.from, md.until);
    (package.entries, package.complete) = (checker.entries, checker.complete);
    package.fingerprint = checker.observer.collector.fingerprint();
    let due = match of.dump {
        Some(Capability::ChangeDump) => &[Capability::ChangeDumpManifest][..],
        Some(Capability::ResourceDump) => &[Capability::ResourceDumpManifest],
        _ => &[Capability::ResourceDumpManifest, Capability::ChangeDumpManifest],
    };
    if let Some(capability) = md.capability.filter(|capability| !due.contains(capability)) {
        checker.found.add(&r::MANIFEST, checker.head.md_place, || {
            format!(
                "the manifest has the capability `{}`, not `{}`",
                capability.token(),
                due[0].token()
            )
        });
    }
    if let Some(entry) = entry {
        for (stated, own, word) in [(entry.from, md.from, "from"), (entry.until, md.until, "until")]
        {
            if let (Some(stated), Some(own)) = (stated, own)
                && values::differ(stated, own)
            {
                let message =
                    || format!("`{word}` is {}, in the dump {}", own.instant, stated.instant);
                checker.found.add(&r::CHANGE_DUMP_INTERVAL, checker.head.md_place, message);
            }
        }
    }
    members(&mut archive, &mut checker, budget, found)?;
    let Checker { observer, found: in_manifest, .. } = checker;
    package.listed = Some(observer.collector.listed);
    Ok((package, in_manifest.into_list()))
}

/// Compares each member with its entry in the manifest.
fn members(
    archive: &mut ZipArchive<File>,
    checker: &mut Checker<Members<'_>>,
    budget: &Budget<'_>,
    found: &mut Findings,
) -> Result<(), Failure> {
    for number in 0..archive.len().min(MEMBERS_MAX) {
        let Some(Ok(name)) = archive.name_for_index(number) else { continue };
        let name = name.into_owned();
        if name == MANIFEST || name.ends_with('/') {
            continue;
        }
        let Some(member) = checker.observer.paths.get_mut(&name) else {
            found.add(&r::MANIFEST_ALL, (0, 0), || {
                format!("{} is not in the manifest", excerpt(&name))
            });
            continue;
        };
        member.is_there = true;
        let mut hasher = Hasher::of(&member.digests);
        let (stated, place) = ((member.length, member.digests.clone()), member.place);
        let unpacked = each_piece(archive, number, budget, |bytes| hasher.update(bytes))?;
        if let Err(error) = unpacked {
            let message = || format!("{} cannot be unpacked: {error}", excerpt(&name));
            checker.found.add(&r::MANIFEST_EXISTS, place, message);
            continue;
        }
        let length = hasher.length;
        let agree = hasher.finish().agree(&stated.1);
        if stated.0.is_some_and(|stated| stated != length) {
            let message = || format!("{} has {}", excerpt(&name), count(length, "byte"));
            checker.found.add(&r::MANIFEST_TRUE, place, message);
        } else if agree == Some(false) {
            let message = || format!("{} has another digest", excerpt(&name));
            checker.found.add(&r::MANIFEST_TRUE, place, message);
        }
    }
    let mut missing: Vec<_> =
        checker.observer.paths.iter().filter(|(_, member)| !member.is_there).collect();
    missing.sort_by_key(|(_, member)| member.place);
    for (name, member) in missing {
        checker
            .found
            .add(&r::MANIFEST_EXISTS, member.place, || format!("there is no {}", excerpt(name)));
    }
    Ok(())
}

/// Hands over a member's bytes; the inner error states what is wrong with the package.
pub(crate) fn each_piece(
    archive: &mut ZipArchive<File>,
    number: usize,
    budget: &Budget<'_>,
    mut piece: impl FnMut(&[u8]),
) -> Result<Result<(), String>, Failure> {
    let mut member = match archive.by_index(number) {
        Ok(member) => member,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let mut buffer = vec![0; CHUNK];
    loop {
        match member.read(&mut buffer) {
            Ok(0) => return Ok(Ok(())),
            Ok(length) => {
                budget.take(length)?;
                piece(&buffer[..length]);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Ok(Err(error.to_string())),
        }
    }
}

fn digests_of(file: &mut File, stated: &Digests, budget: &Budget<'_>) -> Result<Digests, Failure> {
    let mut hasher = Hasher::of(stated);
    let mut buffer = vec![0; CHUNK];
    file.seek(SeekFrom::Start(0)).map_err(|error| Failure::Missing(error.to_string()))?;
    loop {
        let length = file.read(&mut buffer).map_err(|error| Failure::Missing(error.to_string()))?;
        if length == 0 {
            return Ok(hasher.finish());
        }
        budget.take(0)?;
        hasher.update(&buffer[..length]);
    }
}

/// The entry of one member in the manifest.
struct Member {
    digests: Digests,
    length: Option<u64>,
    place: (u64, u64),
    is_there: bool,
}

/// Remembers the paths of a manifest.
struct Members<'a> {
    collector: Collector<'a>,
    paths: HashMap<String, Member>,
}

impl DocumentObserver for Members<'_> {
    fn head(&mut self, head: &Head) {
        self.collector.head(head);
    }

    fn entry(&mut self, head: &Head, entry: &Entry, found: &mut Findings) {
        self.collector.entry(head, entry, found);
        let md = &entry.md;
        let own = md.has(has::PATH).then_some((md.path.as_str(), &md.digests, md.length));
        let linked = entry
            .links
            .iter()
            .filter_map(|link| Some((link.path.as_deref()?, &link.digests, link.length)));
        for (path, digests, length) in own.into_iter().chain(linked) {
            let path = path.strip_prefix('/').unwrap_or(path);
            if self.paths.len() >= MEMBERS_MAX {
                return;
            }
            let member =
                Member { digests: digests.clone(), length, place: entry.place, is_there: false };
            self.paths.insert(path.to_owned(), member);
        }
    }
}
