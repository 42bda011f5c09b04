//! Deprecation of entities, as contained in their descriptions.

use abreast_core::{Action, Change, REPLACEMENT_BYTES_MAX, State};
use abreast_rdf::Deprecation;

/// Returns the deprecation in the description of an entity; `None` if the entity is not deprecated.
pub(super) fn deprecation(iri: &str, lines: &[u8]) -> Option<Deprecation> {
    abreast_rdf::deprecation(lines, iri).filter(|stated| stated.is_deprecated)
}

/// Appends the changes that deprecate an entity. A new entity is recorded before its deprecation
/// [emm-1.0 §4.1]. If the log does not have space for all replacing entities, the first of them are
/// recorded.
pub(super) fn deprecate(
    iri: String,
    (state, witness): (State, Vec<u8>),
    stated: Deprecation,
    (is_known, is_first): (bool, bool),
    changes: &mut Vec<Change>,
) {
    let Deprecation { mut replaced_by, .. } = stated;
    let mut room = REPLACEMENT_BYTES_MAX;
    replaced_by.retain(|iri| {
        let rest = room.checked_sub(iri.len());
        room = rest.unwrap_or(room);
        rest.is_some()
    });
    if is_known {
        let action = Action::Deprecate { state: Some((state, witness)), replaced_by };
        changes.push(Change::new(iri, action));
        return;
    }
    let action =
        if is_first { Action::Add { state, witness } } else { Action::Put { state, witness } };
    changes.push(Change::new(iri.clone(), action));
    changes.push(Change::deprecate(iri, replaced_by));
}
