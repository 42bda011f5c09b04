//! What is taken from descriptions for people.

use abreast_core::{DESCRIPTION_BYTES_MAX, Description};

/// What is taken from descriptions for people.
#[derive(Clone, Debug, Default)]
pub struct DescriptionOptions {
    /// Languages of labels, the best first.
    pub languages: Vec<String>,
}

impl DescriptionOptions {
    /// Types and label of an entity: those for which a log has room.
    pub(super) fn summary(&self, iri: &str, lines: &[u8]) -> Description {
        let languages: Vec<&str> = self.languages.iter().map(String::as_str).collect();
        let summary = abreast_rdf::summary(lines, &format!("<{iri}>"), &languages);
        let (mut types, mut label) = (summary.classes, summary.label);
        let mut room = DESCRIPTION_BYTES_MAX;
        let mut fits = |text: &String| {
            let rest = room.checked_sub(text.len());
            room = rest.unwrap_or(room);
            rest.is_some()
        };
        label = label.filter(&mut fits);
        types.retain(fits);
        Description { types, label, media_type: None }
    }
}
