//! A list of URIs: only these resources are copied.
//!
//! Memory contains only a digest of each URI, so that millions of URIs fit. The URIs are read from
//! the file again when they are needed.

use crate::report::error::{Error, ExitCode};
use abreast_webtypes::has_scheme;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};

/// Maximum number of URIs in a list.
const URIS_MAX: usize = 10_000_000;
/// Maximum length of a line, in bytes.
const LINE_MAX: usize = 8 << 10;
/// Maximum number of URIs in a list that is stored in memory.
const SHORT_MAX: usize = 1_000;
/// Characters that neither URIs nor IRIs contain, in addition to spaces and control characters.
const FORBIDDEN: [char; 8] = ['<', '>', '"', '{', '}', '|', '\\', '^'];

/// A list of URIs, read from a file.
pub struct UriList {
    path: PathBuf,
    /// Digests of the URIs, sorted, 16 bytes each.
    digests: Vec<u128>,
    /// The URIs of a short list.
    short: Option<Vec<String>>,
    text: String,
}

impl UriList {
    /// Reads a file with one URI or IRI on each line. Empty lines and lines that start with `#` are
    /// ignored.
    ///
    /// # Errors
    /// The file cannot be read; or the line that is not a URI, by its number.
    pub fn read(path: &Path) -> Result<Self, String> {
        let wrong =
            |why: &dyn fmt::Display| format!("cannot read URIs from `{}`: {why}", path.display());
        let (mut digests, mut short) = (Vec::new(), Some(Vec::new()));
        each_line(path, &mut |line, uri| {
            if let Err(why) = check(uri) {
                let shown: String = uri.chars().take(200).collect();
                let text = format!("line {line}: `{}` {why}", shown.escape_debug());
                return Err(text + "\n  help: one URI on each line, without brackets");
            }
            if digests.len() == URIS_MAX {
                return Err(format!("it has more than {URIS_MAX} URIs"));
            }
            digests.push(digest(uri));
            match &mut short {
                Some(uris) if uris.len() < SHORT_MAX => uris.push(uri.to_owned()),
                _ => short = None,
            }
            Ok(())
        })
        .map_err(|why| wrong(&why))?;
        // A long list is read again later, which is possible for files only.
        if short.is_none() && !std::fs::metadata(path).is_ok_and(|about| about.is_file()) {
            return Err(wrong(&format!("lists of more than {SHORT_MAX} URIs must be files")));
        }
        digests.sort_unstable();
        digests.dedup();
        digests.shrink_to_fit();
        let mut all = blake3::Hasher::new();
        for digest in &digests {
            all.update(&digest.to_le_bytes());
        }
        let text = format!("uris-from {} {}\n", digests.len(), all.finalize().to_hex());
        Ok(Self { path: path.to_owned(), digests, short, text })
    }

    /// Whether a URI is in the list, exactly as it is listed by the Source.
    pub fn contains(&self, uri: &str) -> bool {
        self.digests.binary_search(&digest(uri)).is_ok()
    }

    /// The number of different URIs.
    pub fn len(&self) -> usize {
        self.digests.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// All URIs, if the list has at most 1,000.
    pub(crate) fn short(&self) -> Option<&[String]> {
        self.short.as_deref()
    }

    /// A text that equal lists have in common.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Passes on each URI, in the order of the file.
    pub(crate) fn each(
        &self,
        each: &mut dyn FnMut(&str) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if let Some(uris) = &self.short {
            return uris.iter().try_for_each(|uri| each(uri));
        }
        let mut failed = None;
        let read = each_line(&self.path, &mut |_, uri| {
            // The file may contain other URIs than at the first reading.
            if !self.contains(uri) {
                return Ok(());
            }
            each(uri).map_err(|error| {
                failed = Some(error);
                String::new()
            })
        });
        match (read, failed) {
            (_, Some(error)) => Err(error),
            (Err(why), None) => {
                let message = format!("cannot read URIs from `{}`: {why}", self.path.display());
                Err(Error::new("uris.file", ExitCode::Io, message))
            }
            (Ok(()), None) => Ok(()),
        }
    }
}

impl fmt::Debug for UriList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UriList({}: {})", self.path.display(), self.text.trim_end())
    }
}

fn digest(uri: &str) -> u128 {
    let hash = blake3::hash(uri.as_bytes());
    let (bytes, _) = hash.as_bytes().split_first_chunk::<16>().expect("a hash has 32 bytes");
    u128::from_le_bytes(*bytes)
}

fn check(uri: &str) -> Result<(), &'static str> {
    match uri.split_once(':') {
        Some((_, rest)) if has_scheme(uri) && !rest.is_empty() => {}
        _ => return Err("is not a URI with its scheme"),
    }
    if uri.contains(|c: char| c.is_whitespace() || c.is_control() || FORBIDDEN.contains(&c)) {
        return Err("has a character that no URI has");
    }
    Ok(())
}

/// Passes on the lines with URIs, with their numbers.
fn each_line(
    path: &Path,
    each: &mut dyn FnMut(u64, &str) -> Result<(), String>,
) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let (mut input, mut bytes) = (BufReader::with_capacity(256 << 10, file), Vec::new());
    for line in 1.. {
        bytes.clear();
        let read: io::Result<usize> =
            (&mut input).take(LINE_MAX as u64 + 1).read_until(b'\n', &mut bytes);
        if read.map_err(|error| error.to_string())? == 0 {
            break;
        }
        if bytes.len() > LINE_MAX {
            return Err(format!("line {line} is longer than {LINE_MAX} bytes"));
        }
        let text = std::str::from_utf8(&bytes).map_err(|_| format!("line {line} is not UTF-8"))?;
        let text = if line == 1 { text.trim_start_matches('\u{feff}') } else { text }.trim();
        if !text.is_empty() && !text.starts_with('#') {
            each(line, text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &[u8]) -> Result<UriList, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        UriList::read(file.path())
    }

    #[test]
    fn a_list_has_the_uris_of_its_lines() {
        let list = read(
            "\u{feff}# mine\r\n\n http://h/a \r\nurn:x:b\nhttp://h/\u{e9}\nurn:x:b".as_bytes(),
        );
        let list = list.unwrap();
        assert_eq!(list.len(), 3);
        for (uri, is_in) in
            [("http://h/a", true), ("urn:x:b", true), ("http://h/é", true), ("http://h/a/", false)]
        {
            assert_eq!(list.contains(uri), is_in, "{uri}");
        }
        assert_eq!(list.text(), read(b"http://h/\xc3\xa9\nhttp://h/a\nurn:x:b\n").unwrap().text());
        assert_ne!(list.text(), read(b"http://h/a\n").unwrap().text());
        assert!(read(b"# nothing\n").unwrap().is_empty());
    }

    #[test]
    fn long_lists_are_read_again_where_they_are_needed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("uris");
        let uris: Vec<String> = (0..3_000).map(|number| format!("http://h/{number}")).collect();
        let text = uris.join("\n") + "\n";
        std::fs::write(&path, &text).unwrap();
        let list = UriList::read(&path).unwrap();
        assert!(list.short().is_none() && list.contains("http://h/2999"));
        std::fs::write(&path, text + "http://h/new\n").unwrap();
        let mut count = 0;
        list.each(&mut |_| {
            count += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(count, 3_000);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(list.each(&mut |_| Ok(())).unwrap_err().code(), "uris.file");
    }

    #[test]
    fn bad_lines_are_named_by_their_number() {
        for (text, part) in [
            (&b"http://h/a\nnonsense\n"[..], "line 2: `nonsense` is not a URI"),
            (b"<http://h/a>\n", "line 1"),
            (b"http://h/a b\n", "line 1"),
            (b"\nhttp://h/\xff\n", "line 2 is not UTF-8"),
            (b"http:\n", "line 1"),
            (&[b'a'; 10_000], "longer than 8192 bytes"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        assert!(UriList::read(Path::new("/nowhere/at/all")).unwrap_err().contains("/nowhere"));
    }
}
