//! The labels and the classes of an entity, for display, from canonical lines.

use super::labels::{entity_labels, own};
use crate::notation::statement::{Statement, TermText};
use abreast_webtypes::Label;
use std::collections::HashSet;

/// Most classes in a summary.
pub const MAX_CLASSES: usize = 32;

/// Most characters of a label in a summary.
pub const MAX_LABEL_LENGTH: usize = 200;

const TYPE: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

/// Most labels in a summary.
pub const MAX_LABELS: usize = 64;

/// The labels and the classes of an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The IRIs of its classes (`rdf:type`), at most [`MAX_CLASSES`].
    pub classes: Vec<String>,
    /// The visible labels of [`entity_labels`], at most [`MAX_LABELS`], each cut off after
    /// [`MAX_LABEL_LENGTH`] characters: one of each language first, in the order of
    /// [`Label::sort_for`], then further ones.
    pub labels: Vec<Label>,
}

/// Finds labels and classes of an entity; `predicates` are the predicates of labels, as for
/// [`entity_labels`], and `languages` are the preferred languages.
///
/// # Examples
/// ```
/// use abreast_rdf::summary;
///
/// let lines = br#"<http://library.example/maps> <http://www.w3.org/2004/02/skos/core#prefLabel> "Karten"@de .
/// <http://library.example/maps> <http://www.w3.org/2004/02/skos/core#prefLabel> "Maps"@en-GB .
/// "#;
/// let found = summary(lines, "http://library.example/maps", &[], &["en".to_owned()]);
/// let texts: Vec<_> = found.labels.iter().map(|label| label.text.as_str()).collect();
/// assert_eq!(texts, ["Maps", "Karten"]);
/// ```
pub fn summary(lines: &[u8], iri: &str, predicates: &[String], languages: &[String]) -> Summary {
    let is_class = |statement: &Statement<'_>| statement.predicate == TYPE;
    let classes = own(lines, iri).filter(is_class).filter_map(|statement| {
        match TermText::parse(statement.object) {
            Some(TermText::Iri(class)) => Some(class.into_owned()),
            _ => None,
        }
    });
    let mut summary = Summary {
        classes: classes.take(MAX_CLASSES).collect(),
        labels: entity_labels(lines, iri, predicates, &[]),
    };
    summary.labels.retain(Label::is_visible);
    Label::sort_for(&mut summary.labels, languages);
    let mut known = HashSet::new();
    summary.labels.sort_by_cached_key(|label| !known.insert(label.language.clone()));
    summary.labels.truncate(MAX_LABELS);
    for label in &mut summary.labels {
        if let Some((end, _)) = label.text.char_indices().nth(MAX_LABEL_LENGTH) {
            label.text.truncate(end);
        }
    }
    summary
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_classes_are_those_of_the_entity() {
        let lines = "<http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C> .\n\
            <http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:b0 .\n\
            <http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> \"Haus\"@de .\n\
            <http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> \"plain \\\"@en\\\"\" .\n\
            <http://e/ab> <http://www.w3.org/2000/01/rdf-schema#label> \"other\"@en .\n\
            _:b0 <http://www.w3.org/2000/01/rdf-schema#label> \"blank\"@en .\n";
        let found = summary(lines.as_bytes(), "http://e/a", &[], &[]);
        assert_eq!(found.classes, ["http://e/C"]);
        let haus = Label { language: "de".to_owned(), text: "Haus".to_owned() };
        assert_eq!(found.labels, [Label::plain("plain \"@en\""), haus]);
        assert_eq!(summary(lines.as_bytes(), "http://e/", &[], &[]), Summary::default());
        assert_eq!(summary(b"not RDF\n", "http://e/a", &[], &[]), Summary::default());
    }

    #[test]
    fn labels_and_classes_are_limited() {
        let class = |number| {
            format!("<http://e/a> {} <http://e/{number}> .\n", str::from_utf8(TYPE).unwrap())
        };
        let long = "ä".repeat(1_000);
        let name = |number| {
            format!("<http://e/a> <http://xmlns.com/foaf/0.1/name> \"{long}\"@x-{number} .\n")
        };
        let lines: String = (100..200).map(class).chain((100..200).map(name)).collect();
        let last = ["x-199".to_owned()];
        let summary = summary(lines.as_bytes(), "http://e/a", &[], &last);
        assert_eq!(summary.labels[0].language, last[0], "the preferred language is not cut");
        assert_eq!(summary.classes.len(), MAX_CLASSES);
        assert_eq!(summary.labels.len(), MAX_LABELS);
        assert!(summary.labels.iter().all(|label| label.text == "ä".repeat(MAX_LABEL_LENGTH)));
    }

    #[test]
    fn each_language_has_a_label_before_others() {
        let name = |text: &str| format!("<http://e/a> <http://xmlns.com/foaf/0.1/name> {text} .\n");
        let lines: String =
            ["\"a\"@de", "\"b\"@de", "\" \"@en", "\"c\"@fr", "\"d\""].map(name).concat();
        let found = summary(lines.as_bytes(), "http://e/a", &[], &["fr".to_owned()]);
        let texts: Vec<_> = found.labels.iter().map(|label| label.text.as_str()).collect();
        assert_eq!(texts, ["c", "d", "a", "b"]);
    }
}
