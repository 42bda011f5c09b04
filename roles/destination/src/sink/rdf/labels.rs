//! Labels of blank nodes that are unique to a resource.
//!
//! In canonical lines a label follows from what is stated of the node, so that equal nodes of two
//! resources have the same. Where the lines of several resources come together, each label begins
//! with a digest of the resource's URI.

use memchr::memchr;

/// Bytes of a URI's digest in labels.
const PREFIX_BYTES: usize = 10;
/// The begin of a blank node, before its label.
pub(super) const BLANK: &[u8] = b"_:";

/// The begin of the labels of a resource.
pub(super) fn prefix_of(uri: &str) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut prefix = b"e".to_vec();
    for byte in &blake3::hash(uri.as_bytes()).as_bytes()[..PREFIX_BYTES] {
        prefix.push(DIGITS[usize::from(byte >> 4)]);
        prefix.push(DIGITS[usize::from(byte & 15)]);
    }
    prefix
}

/// Where the object of a canonical line begins: neither subject nor predicate has a space in it.
fn object_at(line: &[u8]) -> Option<usize> {
    let predicate = memchr(b' ', line)? + 1;
    Some(predicate + memchr(b' ', &line[predicate..])? + 1)
}

/// Appends a canonical line with the labels of a resource.
pub(super) fn relabel(line: &[u8], prefix: &[u8], out: &mut Vec<u8>) {
    let mut rest = line;
    if let Some(label) = line.strip_prefix(BLANK) {
        out.extend_from_slice(BLANK);
        out.extend_from_slice(prefix);
        rest = label;
    }
    if let Some(at) = object_at(rest)
        && let Some(label) = rest[at..].strip_prefix(BLANK)
    {
        out.extend_from_slice(&rest[..at + BLANK.len()]);
        out.extend_from_slice(prefix);
        rest = label;
    }
    out.extend_from_slice(rest);
}

/// Appends a line as it was before [`relabel`]; `None` if it has other labels.
pub(super) fn unlabel(line: &[u8], prefix: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = line;
    if let Some(label) = line.strip_prefix(BLANK) {
        out.extend_from_slice(BLANK);
        rest = label.strip_prefix(prefix)?;
    }
    let at = object_at(rest)?;
    if let Some(label) = rest[at..].strip_prefix(BLANK) {
        out.extend_from_slice(&rest[..at + BLANK.len()]);
        rest = label.strip_prefix(prefix)?;
    }
    out.extend_from_slice(rest);
    Some(())
}
