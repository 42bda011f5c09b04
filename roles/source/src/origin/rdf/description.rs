//! Types and labels from descriptions, for display to users.

use crate::origin::rdf::target::RdfOptions;
use abreast_core::{DESCRIPTION_BYTES_MAX, Description};
use abreast_webtypes::Label;

/// Returns types and labels of an entity, up to the limits of the log: the first label, the types, and
/// then further labels.
pub(super) fn described(iri: &str, lines: &[u8], options: &RdfOptions) -> Description {
    let RdfOptions { label_predicates, languages, .. } = options;
    let summary = abreast_rdf::summary(lines, iri, label_predicates, languages);
    let mut room = DESCRIPTION_BYTES_MAX;
    let mut fits = |bytes: usize| {
        let rest = room.checked_sub(bytes);
        room = rest.unwrap_or(room);
        rest.is_some()
    };
    let length = |label: &Label| label.language.len() + label.text.len();
    let mut all = summary.labels.into_iter();
    let mut labels: Vec<Label> =
        all.next().filter(|label| fits(length(label))).into_iter().collect();
    let mut types = summary.classes;
    types.retain(|class| fits(class.len()));
    labels.extend(all.filter(|label| fits(length(label))));
    Description { types, labels, media_type: None }
}
