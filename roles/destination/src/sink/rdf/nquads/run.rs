//! A description in a file of N-Quads: a comment with the URI of its resource, then its statements,
//! one for each line.
//!
//! ```text
//! # abreast 3f0c…e1 2 <http://example.org/a>
//! <http://example.org/a> <http://example.org/name> "A" .
//! <http://example.org/a> <http://example.org/part> _:e5d41402abc4b2a76b971b9f… .
//! ```
//!
//! The hexadecimal number is the digest of the canonical lines, and the other number is their
//! count. The label of a blank node has the same meaning in all files, so each label starts with a
//! digest of the resource's URI. The only other difference to the canonical lines is the added
//! graph.

use super::super::document::{DIGEST_BYTES, digest_of};
use super::super::labels::{BLANK, prefix_of, relabel, unlabel};
use memchr::memchr;
use std::io::{self, BufRead, Write as _};

/// Prefix of the comment before a description.
const MARK: &[u8] = b"# abreast ";
/// The end of a line.
const END: &[u8] = b".\n";
/// Maximum length in bytes of the comment lines that overwrite superseded parts.
const FILLER_LINE: usize = 4_096;

/// The comment before a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) uri: String,
    pub(super) digest: [u8; DIGEST_BYTES],
    /// Lines that follow.
    pub(super) lines: usize,
}

impl Header {
    /// Reads the comment, without the end of its line; `None` for any other line.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(line.strip_prefix(MARK)?).ok()?;
        let (hex, rest) = text.split_once(' ')?;
        let (lines, uri) = rest.split_once(' ')?;
        let mut digest = [0; DIGEST_BYTES];
        if hex.len() != 2 * DIGEST_BYTES || !hex.is_ascii() {
            return None;
        }
        for (at, byte) in digest.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()?;
        }
        let uri = uri.strip_prefix('<')?.strip_suffix('>')?.to_owned();
        Some(Self { uri, digest, lines: lines.parse().ok()? })
    }
}

/// The text of the graph at the end of a line.
fn graph_end(graph: Option<&str>) -> String {
    graph.map(|graph| format!("<{graph}> ")).unwrap_or_default()
}

/// Appends a description to `out`. Its URI has been checked to be an IRI, as has the graph.
pub(super) fn write(
    uri: &str,
    graph: Option<&str>,
    lines: &[u8],
    digest: &[u8; DIGEST_BYTES],
    out: &mut Vec<u8>,
) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let count = memchr::memchr_iter(b'\n', lines).count();
    out.extend_from_slice(MARK);
    for byte in digest {
        out.extend([byte >> 4, byte & 15].map(|digit| DIGITS[usize::from(digit)]));
    }
    // Writing into memory cannot fail.
    let _ = writeln!(out, " {count} <{uri}>");
    if graph.is_none() && memchr::memmem::find(lines, BLANK).is_none() {
        return out.extend_from_slice(lines);
    }
    let (prefix, graph) = (prefix_of(uri), graph_end(graph));
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        relabel(line, &prefix, out);
        if !graph.is_empty() {
            out.truncate(out.len() - END.len());
            out.extend_from_slice(graph.as_bytes());
            out.extend_from_slice(END);
        }
    }
}

/// The canonical lines of a description in a file; `None` if the description is damaged. The second
/// part of the result is its header.
pub(super) fn restore(run: &[u8], graph: Option<&str>) -> Option<(Vec<u8>, Header)> {
    let end = memchr(b'\n', run)?;
    let header = Header::read(&run[..end])?;
    let (prefix, graph) = (prefix_of(&header.uri), graph_end(graph));
    let mut lines = Vec::with_capacity(run.len());
    for line in run[end + 1..].split_inclusive(|byte| *byte == b'\n') {
        unlabel(line, &prefix, &mut lines)?;
        let rest = lines.strip_suffix(END)?.strip_suffix(graph.as_bytes())?.len();
        lines.truncate(rest);
        lines.extend_from_slice(END);
    }
    (digest_of(&lines) == header.digest).then_some((lines, header))
}

/// Bytes that take the place of a superseded description: comments of nothing but spaces.
pub(super) fn filler(length: usize) -> Vec<u8> {
    let mut out = vec![b' '; length];
    let mut begin = 0;
    while begin < length {
        let left = length - begin;
        // A line needs at least two bytes, so no single byte may be left.
        let count = if left == FILLER_LINE + 1 { left - 2 } else { left.min(FILLER_LINE) };
        out[begin] = b'#';
        out[begin + count - 1] = b'\n';
        begin += count;
    }
    out
}

/// Whether bytes consist of filler, or of a part of filler.
pub(super) fn is_filler(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| matches!(byte, b'#' | b' ' | b'\n'))
}

/// Reads the descriptions of a file, one after the other.
pub(super) struct Runs<R> {
    input: R,
    /// Bytes taken from the input.
    taken: u64,
}

/// A description and its place.
pub(super) struct Found {
    pub(super) header: Header,
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

impl<R: BufRead> Runs<R> {
    pub(super) const fn new(input: R) -> Self {
        Self { input, taken: 0 }
    }

    /// The next description; `None` at the end, or before an incomplete one.
    pub(super) fn next(&mut self) -> io::Result<Option<Found>> {
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let offset = self.taken;
            if !self.line(&mut bytes)? {
                return Ok(None);
            }
            let Some(header) = Header::read(&bytes[..bytes.len() - 1]) else { continue };
            for _ in 0..header.lines {
                if !self.line(&mut bytes)? {
                    return Ok(None);
                }
            }
            return Ok(Some(Found { header, offset, bytes }));
        }
    }

    /// Appends the next line; returns false at the end of the file.
    fn line(&mut self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let count = self.input.read_until(b'\n', bytes)?;
        self.taken += count as u64;
        Ok(count > 0 && bytes.last() == Some(&b'\n'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "<http://h/a> <http://h/p> \"_:x . \\\" y\" .\n\
                         <http://h/a> <http://h/p> _:b1 .\n\
                         _:b1 <http://h/p> _:b1 .\n\
                         _:b1 <http://h/q> \"a\"@en .\n";

    fn written(graph: Option<&str>) -> Vec<u8> {
        let mut out = Vec::new();
        write("http://h/a", graph, LINES.as_bytes(), &digest_of(LINES.as_bytes()), &mut out);
        out
    }

    #[test]
    fn a_description_is_restored_as_it_was_written() {
        for graph in [None, Some("http://h/graph")] {
            let run = written(graph);
            let text = String::from_utf8(run.clone()).unwrap();
            assert!(text.lines().skip(1).all(|line| line.ends_with(" .")), "{text}");
            assert_eq!(text.matches("_:e").count(), 4, "{text}");
            assert_eq!(text.matches("<http://h/graph> .").count(), graph.map_or(0, |_| 4));
            let (lines, header) = restore(&run, graph).unwrap();
            assert_eq!((lines.as_slice(), header.lines), (LINES.as_bytes(), 4));
            for at in 0..run.len() {
                let mut other = run.clone();
                other[at] ^= 1;
                let same = restore(&other, graph).is_some_and(|(_, other)| other == header);
                assert!(!same, "byte {at} of {text}");
            }
        }
    }

    #[test]
    fn an_empty_description_is_a_comment() {
        let mut out = Vec::new();
        write("http://h/a", None, b"", &digest_of(b""), &mut out);
        assert_eq!(restore(&out, None).unwrap().0, b"");
        assert!(out.starts_with(b"# ") && out.ends_with(b" 0 <http://h/a>\n"));
    }

    #[test]
    fn filler_is_comments_of_the_same_length() {
        for length in (2..20).chain(4_090..4_110).chain([8_192, 8_193, 12_289, 100_000]) {
            let text = String::from_utf8(filler(length)).unwrap();
            assert_eq!((text.len(), text.ends_with('\n')), (length, true));
            assert!(is_filler(text.as_bytes()));
            for line in text.lines() {
                assert!(line.starts_with('#') && line.len() <= FILLER_LINE, "{length}");
                assert_eq!(line[1..].trim(), "");
            }
        }
    }

    #[test]
    fn descriptions_are_found_between_fillers_up_to_a_torn_one() {
        let mut file = written(None);
        let second = file.len() as u64 + 100;
        file.extend(filler(100));
        file.extend(written(None));
        file.extend(written(None));
        file.truncate(file.len() - 3);
        let mut runs = Runs::new(file.as_slice());
        let first = runs.next().unwrap().unwrap();
        assert_eq!((first.offset, first.bytes), (0, written(None)));
        assert_eq!(runs.next().unwrap().unwrap().offset, second);
        assert!(runs.next().unwrap().is_none());
    }
}
