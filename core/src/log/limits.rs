//! What one change may hold, in every store: known before the first of many is recorded.

use crate::{Action, Change, ErrorKind, LogError, State};
use abreast_webtypes::Link;

/// Longest key of a resource, in bytes.
pub const KEY_BYTES_MAX: usize = 8 * 1024;
/// Most bytes in the types and the labels of a resource.
pub const DESCRIPTION_BYTES_MAX: usize = 16 * 1024;
/// Most bytes in the URIs that replace a deprecated resource.
pub const REPLACEMENT_BYTES_MAX: usize = 16 * 1024;
/// Longest media type and content encoding, in bytes.
const NAME_BYTES_MAX: usize = 1024;
/// Most bytes in the links of a resource.
const LINK_BYTES_MAX: usize = 64 * 1024;
/// Longest summary of a change, in bytes.
const SUMMARY_BYTES_MAX: usize = 4 * 1024;
/// Most bytes in a witness.
const WITNESS_BYTES_MAX: usize = 1024;
/// Longest idempotency key in bytes.
const IDEMPOTENCY_KEY_BYTES_MAX: usize = 1024;

/// Checks that a log can record a change.
///
/// # Examples
/// ```
/// use abreast_core::{Change, ErrorKind, check_change};
///
/// let change = Change::delete("letters/1843.xml");
/// assert!(check_change(&change).is_ok());
/// let error = check_change(&change.with_summary("x".repeat(5_000))).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::Refused);
/// ```
///
/// # Errors
/// One part of the change is larger than a log accepts ([`ErrorKind::Refused`]).
pub fn check_change(change: &Change) -> Result<(), LogError> {
    let key = &change.key;
    check_key(key)?;
    match &change.action {
        Action::Put { state, witness } | Action::Add { state, witness } => {
            check_state(key, state, witness)?;
        }
        Action::Deprecate { state, replaced_by } => {
            if let Some((state, witness)) = state {
                check_state(key, state, witness)?;
            }
            let bytes = replaced_by.iter().map(String::len).sum();
            within("list of replacements", key, bytes, REPLACEMENT_BYTES_MAX)?;
        }
        Action::Remove | Action::Delete => {}
    }
    within("summary", key, length_of(change.summary.as_ref()), SUMMARY_BYTES_MAX)?;
    let named = length_of(change.idempotency_key.as_ref());
    within("idempotency key", key, named, IDEMPOTENCY_KEY_BYTES_MAX)
}

/// Checks that a log can store these properties and this fingerprint.
///
/// # Errors
/// One part is larger than a log accepts ([`ErrorKind::Refused`]).
pub fn check_state(key: &str, state: &State, witness: &[u8]) -> Result<(), LogError> {
    within("media type", key, length_of(state.media_type.as_ref()), NAME_BYTES_MAX)?;
    within("content encoding", key, length_of(state.encoding.as_ref()), NAME_BYTES_MAX)?;
    check_witness(key, witness)?;
    if let Some(description) = &state.description {
        let labels = description.labels.iter().flat_map(|label| [&label.language, &label.text]);
        let bytes = description.types.iter().chain(labels).map(String::len).sum();
        within("description", key, bytes, DESCRIPTION_BYTES_MAX)?;
    }
    let params = |link: &Link| -> usize {
        link.params.iter().map(|(name, value)| name.len() + value.len()).sum()
    };
    let bytes =
        state.links.iter().map(|link| link.target.len() + link.rel.len() + params(link)).sum();
    within("list of links", key, bytes, LINK_BYTES_MAX)?;
    if state.length.is_some_and(|length| i64::try_from(length).is_err()) {
        let message = format!("the length of `{}` is beyond 2^63 bytes", shown(key));
        return Err(LogError::new(ErrorKind::Refused, message));
    }
    Ok(())
}

/// Checks that a log can store a key.
///
/// # Examples
/// ```
/// use abreast_core::{KEY_BYTES_MAX, check_key};
///
/// assert!(check_key("letters/1843.xml").is_ok());
/// assert!(check_key(&"x".repeat(KEY_BYTES_MAX + 1)).is_err());
/// ```
///
/// # Errors
/// It is longer than [`KEY_BYTES_MAX`] ([`ErrorKind::Refused`]).
pub fn check_key(key: &str) -> Result<(), LogError> {
    within("key", key, key.len(), KEY_BYTES_MAX)
}

/// Checks that a log can store the fingerprint of an origin.
///
/// # Errors
/// It is too long ([`ErrorKind::Refused`]).
pub fn check_witness(key: &str, witness: &[u8]) -> Result<(), LogError> {
    within("witness", key, witness.len(), WITNESS_BYTES_MAX)
}

fn length_of(text: Option<&String>) -> usize {
    text.map_or(0, String::len)
}

fn within(what: &str, key: &str, bytes: usize, limit: usize) -> Result<(), LogError> {
    if bytes <= limit {
        return Ok(());
    }
    let message = format!(
        "the {what} of `{}` has {bytes} bytes\n  help: at most {limit} can be stored",
        shown(key)
    );
    Err(LogError::new(ErrorKind::Refused, message))
}

/// A key for a message: at most 80 characters.
///
/// # Examples
/// ```
/// use abreast_core::shown;
///
/// assert_eq!(shown("letters/1843.xml"), "letters/1843.xml");
/// assert!(shown(&"x".repeat(1_000)).ends_with("x…"));
/// ```
pub fn shown(key: &str) -> String {
    let mut shown: String = key.chars().take(80).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_are_named_but_not_whole() {
        let refused = check_change(&Change::delete("é".repeat(5_000))).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Refused);
        assert!(refused.to_string().contains("has 10000 bytes"), "{refused}");
        assert!(refused.to_string().len() < 300, "{refused}");
    }
}
