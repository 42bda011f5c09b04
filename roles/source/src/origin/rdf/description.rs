//! Types and labels from descriptions, for display to users.

use abreast_core::{DESCRIPTION_BYTES_MAX, Description};

/// Options for types and labels, which are displayed to users.
#[derive(Clone, Debug, Default)]
pub struct DescriptionOptions {
    /// Languages of labels, in order of preference.
    pub languages: Vec<String>,
}

impl DescriptionOptions {
    /// Returns types and label of an entity, up to the limits of the log.
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
