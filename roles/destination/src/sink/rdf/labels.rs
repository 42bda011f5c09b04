//! Labels of blank nodes that are unique to a resource.
//!
//! In canonical lines, a label is computed from the statements about the node, so equal nodes of
//! two resources have the same label. If one file contains the lines of several resources, each
//! label starts with a digest of the resource's URI.

use memchr::memchr;

/// Length of the digest of a URI in labels, in bytes.
const PREFIX_BYTES: usize = 10;
/// The prefix of a blank node, before its label.
pub(super) const BLANK: &[u8] = b"_:";

/// The prefix of the labels of a resource.
pub(super) fn prefix_of(uri: &str) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut prefix = b"e".to_vec();
    for byte in &blake3::hash(uri.as_bytes()).as_bytes()[..PREFIX_BYTES] {
        prefix.push(DIGITS[usize::from(byte >> 4)]);
        prefix.push(DIGITS[usize::from(byte & 15)]);
    }
    prefix
}

/// The offset of the object in a canonical line: subject and predicate do not contain spaces.
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

/// Appends a line with the labels before [`relabel`]; `None` if the line has other labels.
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
