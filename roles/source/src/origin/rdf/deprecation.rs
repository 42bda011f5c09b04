//! Deprecation of entities, as their descriptions state it.

use abreast_core::{Action, Change, REPLACEMENT_BYTES_MAX, State};
use abreast_rdf::Deprecation;

/// What a description states of an entity that is no longer to be used.
pub(super) fn deprecation(iri: &str, lines: &[u8]) -> Option<Deprecation> {
    abreast_rdf::deprecation(lines, iri).filter(|stated| stated.is_deprecated)
}

/// Appends the changes that give an entity a state in which it is deprecated. A new entity is recorded
/// as that first [emm-1.0 §4.1]. Of those that replace it, as many are recorded as a log has room for.
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
