//! What is taken from descriptions for people.

use abreast_core::Description;

/// What is taken from descriptions for people.
#[derive(Clone, Debug, Default)]
pub struct DescriptionOptions {
    /// Languages of labels, the best first.
    pub languages: Vec<String>,
}

impl DescriptionOptions {
    /// Types and label of an entity.
    pub(super) fn summary(&self, iri: &str, lines: &[u8]) -> Description {
        let languages: Vec<&str> = self.languages.iter().map(String::as_str).collect();
        let summary = abreast_rdf::summary(lines, &format!("<{iri}>"), &languages);
        Description { types: summary.classes, label: summary.label }
    }
}
