//! Types and labels from descriptions, for display to users.

use abreast_core::{DESCRIPTION_BYTES_MAX, Description};
use abreast_webtypes::Label;

/// Returns types and labels of an entity, up to the limits of the log. Labels are the objects of
/// these predicates, or of the usual ones if `label_predicates` is empty.
pub(super) fn described(iri: &str, lines: &[u8], label_predicates: &[String]) -> Description {
    let summary = abreast_rdf::summary(lines, iri, label_predicates);
    let (mut labels, mut types) = (summary.labels, summary.classes);
    let mut room = DESCRIPTION_BYTES_MAX;
    let mut fits = |bytes: usize| {
        let rest = room.checked_sub(bytes);
        room = rest.unwrap_or(room);
        rest.is_some()
    };
    labels.retain(|Label { language, text }| fits(language.len() + text.len()));
    types.retain(|class| fits(class.len()));
    Description { types, labels, media_type: None }
}
