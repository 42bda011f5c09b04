//! A label and the classes of an entity, for display, from canonical lines.

use crate::notation::statement::{Statement, TermText, split_lines};

/// Most classes in a summary.
pub const MAX_CLASSES: usize = 32;

/// Most characters of the label in a summary.
pub const MAX_LABEL_LENGTH: usize = 200;

const TYPE: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";

/// Predicates of labels, the best first.
const LABELS: [&[u8]; 8] = [
    b"<http://www.w3.org/2000/01/rdf-schema#label>",
    b"<http://www.w3.org/2004/02/skos/core#prefLabel>",
    b"<http://purl.org/dc/terms/title>",
    b"<http://purl.org/dc/elements/1.1/title>",
    b"<https://schema.org/name>",
    b"<http://schema.org/name>",
    b"<http://xmlns.com/foaf/0.1/name>",
    b"<http://www.w3.org/2008/05/skos-xl#literalForm>",
];

/// A label and the classes of an entity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The IRIs of its classes (`rdf:type`), at most [`MAX_CLASSES`].
    pub classes: Vec<String>,
    /// The best label, cut off after [`MAX_LABEL_LENGTH`] characters.
    pub label: Option<String>,
    /// The language of the label, if it has one.
    pub language: Option<String>,
}

/// Finds label and classes of `root`, an IRI as it is written: `<iri>`.
///
/// Labels in the languages of the reader come first, in their order (`en` includes `en-GB`), then
/// labels without a language, then all others. Among these, `rdfs:label` comes before
/// `skos:prefLabel`, `dcterms:title`, `dc:title`, `schema:name` and `foaf:name`.
///
/// # Examples
/// ```
/// use abreast_rdf::summary;
///
/// let lines = br#"<http://library.example/maps> <http://www.w3.org/2004/02/skos/core#prefLabel> "Karten"@de .
/// <http://library.example/maps> <http://www.w3.org/2004/02/skos/core#prefLabel> "Maps"@en-GB .
/// "#;
/// let found = summary(lines, "<http://library.example/maps>", &["en"]);
/// assert_eq!(found.label.as_deref(), Some("Maps"));
/// assert_eq!(found.language.as_deref(), Some("en-GB"));
/// ```
pub fn summary(lines: &[u8], root: &str, languages: &[&str]) -> Summary {
    let mut summary = Summary::default();
    let mut best: Option<((usize, usize), TermText<'_>)> = None;
    // The lines of an IRI are adjacent, before the lines of blank nodes.
    let is_own = |line: &&[u8]| line.strip_prefix(root.as_bytes()).is_some_and(starts_with_space);
    let own = split_lines(lines).skip_while(|line| !is_own(line)).take_while(is_own);
    for statement in own.filter_map(|line| Statement::parse(line).ok()) {
        if statement.predicate == TYPE {
            if let (true, Some(TermText::Iri(class))) =
                (summary.classes.len() < MAX_CLASSES, TermText::parse(statement.object))
            {
                summary.classes.push(class.into_owned());
            }
        } else if let Some(rank) = LABELS.iter().position(|label| *label == statement.predicate) {
            // The language is after the last quote, so the text need not be parsed.
            let rank = (language_rank(statement.object, languages), rank);
            if best.as_ref().is_none_or(|(best, _)| rank < *best)
                && let Some(label @ TermText::Literal { .. }) = TermText::parse(statement.object)
            {
                best = Some((rank, label));
            }
        }
    }
    if let Some((_, TermText::Literal { value, language, .. })) = best {
        summary.label = Some(value.chars().take(MAX_LABEL_LENGTH).collect());
        summary.language = language.map(str::to_owned);
    }
    summary
}

/// The statements of `iri` that label it, as they are written: statements with these predicates, or
/// if `predicates` is empty, with the predicates of [`summary`].
///
/// # Examples
/// ```
/// use abreast_rdf::labels;
///
/// let lines = br#"<http://library.example/maps> <http://library.example/shelf> "7" .
/// <http://library.example/maps> <http://www.w3.org/2000/01/rdf-schema#label> "Maps" .
/// "#;
/// let found = labels(lines, "http://library.example/maps", &[]);
/// assert_eq!(found.len(), 1);
/// assert!(found[0].ends_with(b"\"Maps\" ."));
/// ```
pub fn labels<'l>(lines: &'l [u8], iri: &str, predicates: &[String]) -> Vec<&'l [u8]> {
    let start = format!("<{iri}> ");
    let is_label = |line: &&[u8]| {
        let Some(rest) = line.strip_prefix(start.as_bytes()) else { return false };
        let is = |predicate: &[u8]| rest.strip_prefix(predicate).is_some_and(starts_with_space);
        if predicates.is_empty() {
            LABELS.into_iter().any(is)
        } else {
            predicates.iter().any(|predicate| is(format!("<{predicate}>").as_bytes()))
        }
    };
    split_lines(lines).filter(is_label).collect()
}

fn starts_with_space(rest: &[u8]) -> bool {
    rest.first() == Some(&b' ')
}

fn language_rank(object: &[u8], languages: &[&str]) -> usize {
    let Some(at) = object.iter().rposition(|byte| matches!(byte, b'"' | b'@')) else {
        return usize::MAX;
    };
    if object[at] == b'"' {
        return languages.len();
    }
    let tag = &object[at + 1..];
    let matches = |language: &&str| {
        let length = language.len();
        tag.get(..length).is_some_and(|start| start.eq_ignore_ascii_case(language.as_bytes()))
            && matches!(tag.get(length), None | Some(b'-'))
    };
    languages.iter().position(matches).unwrap_or(languages.len() + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = "<http://e/a> <http://purl.org/dc/terms/title> \"titre\"@fr .\n\
        <http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://e/C> .\n\
        <http://e/a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> _:b0 .\n\
        <http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> \"Haus\"@de .\n\
        <http://e/a> <http://www.w3.org/2000/01/rdf-schema#label> \"plain \\\"@en\\\"\" .\n\
        <http://e/a> <http://www.w3.org/2004/02/skos/core#prefLabel> \"house\"@en-gb .\n\
        <http://e/ab> <http://www.w3.org/2000/01/rdf-schema#label> \"other\"@en .\n\
        _:b0 <http://www.w3.org/2000/01/rdf-schema#label> \"blank\"@en .\n";

    #[test]
    fn the_best_label_is_in_the_language_of_the_reader() {
        for (languages, label, language) in [
            (&["en"][..], "house", Some("en-gb")),
            (&["e"], "plain \"@en\"", None),
            (&["es", "FR"], "titre", Some("fr")),
            (&["de", "en"], "Haus", Some("de")),
            (&[], "plain \"@en\"", None),
        ] {
            let summary = summary(LINES.as_bytes(), "<http://e/a>", languages);
            assert_eq!(summary.label.as_deref(), Some(label));
            assert_eq!(summary.language.as_deref(), language);
            assert_eq!(summary.classes, ["http://e/C"]);
        }
    }

    #[test]
    fn an_entity_without_a_label_has_none() {
        assert_eq!(summary(LINES.as_bytes(), "<http://e/>", &[]), Summary::default());
        assert_eq!(summary(b"not RDF\n", "<http://e/a>", &[]), Summary::default());
    }

    #[test]
    fn labels_and_classes_are_limited() {
        let class = |number| {
            format!("<http://e/a> {} <http://e/{number}> .\n", str::from_utf8(TYPE).unwrap())
        };
        let long = "ä".repeat(1_000);
        let name = format!("<http://e/a> <http://xmlns.com/foaf/0.1/name> \"{long}\" .\n");
        let lines: String = (100..200).map(class).chain([name]).collect();
        let summary = summary(lines.as_bytes(), "<http://e/a>", &[]);
        assert_eq!(summary.classes.len(), MAX_CLASSES);
        assert_eq!(summary.label, Some("ä".repeat(MAX_LABEL_LENGTH)));
    }
}
