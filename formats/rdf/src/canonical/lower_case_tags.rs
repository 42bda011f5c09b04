//! Lines in the form of stores that write language tags in lower case.

use crate::canonical::canonical_lines;
use crate::notation::statement::{StatementError, split_lines};
use memchr::memmem;
use std::borrow::Cow;

/// Canonical lines with their language tags in lower case, as some stores return them. Lines that
/// differ only in the case of tags are merged.
///
/// # Examples
/// ```
/// use abreast_rdf::with_lower_case_tags;
///
/// let lines = b"<http://h/7> <http://h/title> \"Atlas\"@en-GB .\n";
/// let lower = with_lower_case_tags(lines)?;
/// assert_eq!(lower.as_ref(), b"<http://h/7> <http://h/title> \"Atlas\"@en-gb .\n");
/// # Ok::<(), abreast_rdf::StatementError>(())
/// ```
///
/// # Errors
/// A line is not a statement as this crate writes it.
pub fn with_lower_case_tags(lines: &[u8]) -> Result<Cow<'_, [u8]>, StatementError> {
    let tag_of = |line: &[u8]| memmem::rfind(line, b"\"@").map(|at| at + 2);
    let has_upper_case = |line: &[u8]| {
        tag_of(line).is_some_and(|at| {
            let tag = line[at..].strip_suffix(b" .").unwrap_or_default();
            let is_tag = tag.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
            is_tag && tag.iter().any(u8::is_ascii_uppercase)
        })
    };
    if !split_lines(lines).any(has_upper_case) {
        return Ok(Cow::Borrowed(lines));
    }
    let mut lower = Vec::with_capacity(lines.len());
    for line in split_lines(lines) {
        let start = lower.len();
        lower.extend_from_slice(line);
        if has_upper_case(line)
            && let Some(at) = tag_of(line)
        {
            lower[start + at..].make_ascii_lowercase();
        }
        lower.push(b'\n');
    }
    Ok(Cow::Owned(canonical_lines(&lower)?.lines))
}
