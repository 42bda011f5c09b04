//! Texts that PostgreSQL does not store.

use abreast_core::{Action, Change, ErrorKind, Imported, LogError, State, shown};

/// Checks that the texts of a change can be stored.
pub(crate) fn check_texts(change: &Change) -> Result<(), LogError> {
    let state = match &change.action {
        Action::Put { state, .. } | Action::Add { state, .. } => Some(state),
        Action::Deprecate { state, .. } => state.as_ref().map(|(state, _)| state),
        Action::Remove | Action::Delete => None,
    };
    check_text(&change.key, state, change.idempotency_key.as_deref())
}

/// Checks that the texts of a resource can be stored.
pub(crate) fn check_imported_texts(resource: &Imported) -> Result<(), LogError> {
    check_text(&resource.key, Some(&resource.state), None)
}

/// Checks that no text has the character U+0000. Links and descriptions are stored as JSON, which
/// escapes the character.
fn check_text(key: &str, state: Option<&State>, name: Option<&str>) -> Result<(), LogError> {
    let media_type = state.and_then(|state| state.media_type.as_deref());
    let encoding = state.and_then(|state| state.encoding.as_deref());
    if [Some(key), media_type, encoding, name]
        .into_iter()
        .flatten()
        .all(|text| !text.contains('\0'))
    {
        return Ok(());
    }
    let message = format!(
        "a text of `{}` has the character U+0000, which PostgreSQL does not store",
        shown(key).replace('\0', "\u{fffd}")
    );
    Err(LogError::new(ErrorKind::Refused, message))
}
