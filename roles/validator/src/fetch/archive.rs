//! Packages: which addresses have one, and what is in it.

use crate::fetch::place::is_url;
use crate::fetch::values;
use crate::fetch::{self, Budget, Failure, Go};
use crate::report::document::MAKING;
use abreast_net::Client;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use zip::ZipArchive;

/// Beginning of a ZIP file.
pub(crate) const ZIP: &[u8] = b"PK\x03\x04";
/// Bytes that are read at a time.
pub(crate) const CHUNK: usize = 64 << 10;

/// Why a package or resource was not checked.
pub(crate) const TOO_LARGE: &str = "larger than --max-file-bytes";

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
