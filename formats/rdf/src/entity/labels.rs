//! The labels of an entity, and its deprecation, from canonical lines.

use crate::notation::statement::{Statement, TermText, split_lines};
use abreast_webtypes::Label;

/// Predicates of labels, the best first: from SKOS, RDF Schema, MADS/RDF, SKOS-XL, schema.org, DCMI and
/// FOAF.
const LABELS: [&str; 9] = [
    "http://www.w3.org/2004/02/skos/core#prefLabel",
    "http://www.w3.org/2000/01/rdf-schema#label",
    "http://www.loc.gov/mads/rdf/v1#authoritativeLabel",
    "http://www.w3.org/2008/05/skos-xl#literalForm",
    "https://schema.org/name",
    "http://schema.org/name",
    "http://purl.org/dc/terms/title",
    "http://purl.org/dc/elements/1.1/title",
    "http://xmlns.com/foaf/0.1/name",
];

const DEPRECATED: &[u8] = b"<http://www.w3.org/2002/07/owl#deprecated>";
/// Predicates whose objects replace a deprecated entity.
const INSTEAD: [&[u8]; 2] =
    [b"<http://purl.org/dc/terms/isReplacedBy>", b"<http://www.loc.gov/mads/rdf/v1#useInstead>"];

/// Finds the labels of `iri`: all objects of the first predicate with a label, sorted and each
/// once. If `predicates` is empty, the predicates are `skos:prefLabel`, `rdfs:label`,
/// `madsrdf:authoritativeLabel`, `skosxl:literalForm`, `schema:name`, `dcterms:title`, `dc:title` and
/// `foaf:name`.
///
/// With `languages` the result is one label: the best one for these languages
/// ([`Label::sort_for`]).
///
/// # Examples
/// ```
/// use abreast_rdf::entity_labels;
///
/// let lines = br#"<http://library.example/maps> <http://www.w3.org/2004/02/skos/core#prefLabel> "Karten"@de .
/// <http://library.example/maps> <http://www.w3.org/2004/02/skos/core#prefLabel> "Maps"@en .
/// "#;
/// let all = entity_labels(lines, "http://library.example/maps", &[], &[]);
/// assert_eq!(all.len(), 2);
/// let english = entity_labels(lines, "http://library.example/maps", &[], &["en".to_owned()]);
/// assert_eq!((english.len(), english[0].text.as_str()), (1, "Maps"));
/// ```
pub fn entity_labels(
    lines: &[u8],
    iri: &str,
    predicates: &[String],
    languages: &[String],
) -> Vec<Label> {
    let wanted = written(predicates);
    let (mut best, mut labels) = (usize::MAX, Vec::new());
    for statement in own(lines, iri) {
        let place = wanted.iter().position(|wanted| wanted.as_bytes() == statement.predicate);
        let Some(place) = place.filter(|place| *place <= best) else { continue };
        if let Some(TermText::Literal { value, language, .. }) = TermText::parse(statement.object) {
            if place < best {
                best = place;
                labels.clear();
            }
            let language = language.unwrap_or_default().to_owned();
            labels.push(Label { language, text: value.into_owned() });
        }
    }
    labels.sort();
    labels.dedup();
    if !languages.is_empty() {
        Label::sort_for(&mut labels, languages);
        labels.truncate(1);
    }
    labels
}

/// Predicates of labels as they are written in statements; the usual ones if `predicates` is empty.
fn written(predicates: &[String]) -> Vec<String> {
    let in_brackets = |predicate: &str| format!("<{predicate}>");
    if predicates.is_empty() {
        return LABELS.into_iter().map(in_brackets).collect();
    }
    predicates.iter().map(|predicate| in_brackets(predicate)).collect()
}

/// The statements that label `iri`, as they are written: statements with these predicates, or if
/// `predicates` is empty, with any predicate of [`entity_labels`].
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
    let wanted = written(predicates);
    let is_label = |line: &&[u8]| {
        let Some(rest) = line.strip_prefix(start.as_bytes()) else { return false };
        wanted.iter().any(|predicate| {
            rest.strip_prefix(predicate.as_bytes()).is_some_and(|rest| rest.starts_with(b" "))
        })
    };
    split_lines(lines).filter(is_label).collect()
}

/// Whether an entity is deprecated, by its statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Deprecation {
    /// Whether the entity is deprecated.
    pub is_deprecated: bool,
    /// IRIs of the entities to use instead, in the order of lines.
    pub replaced_by: Vec<String>,
}

/// Finds whether `iri` is deprecated: `owl:deprecated` is true, or `dcterms:isReplacedBy` or
/// `madsrdf:useInstead` lead to another entity. `owl:deprecated` with another value takes
/// precedence over these. `None` if the entity does not have any of these statements.
///
/// # Examples
/// ```
/// use abreast_rdf::deprecation;
///
/// let lines = br#"<http://library.example/17> <http://purl.org/dc/terms/isReplacedBy> <http://library.example/4> .
/// "#;
/// let found = deprecation(lines, "http://library.example/17").expect("it has a replacement");
/// assert!(found.is_deprecated);
/// assert_eq!(found.replaced_by, ["http://library.example/4"]);
/// ```
pub fn deprecation(lines: &[u8], iri: &str) -> Option<Deprecation> {
    let has = |predicate: &[u8]| memchr::memmem::find(lines, predicate).is_some();
    if !has(DEPRECATED) && !INSTEAD.into_iter().any(has) {
        return None;
    }
    let (mut stated, mut replaced_by) = (None, Vec::<String>::new());
    for statement in own(lines, iri) {
        if statement.predicate == DEPRECATED {
            if let Some(TermText::Literal { value, .. }) = TermText::parse(statement.object) {
                stated = Some(stated == Some(true) || matches!(&*value, "true" | "1"));
            }
        } else if INSTEAD.contains(&statement.predicate)
            && let Some(TermText::Iri(other)) = TermText::parse(statement.object)
            && other != iri
            && replaced_by.iter().all(|known| *known != other)
        {
            replaced_by.push(other.into_owned());
        }
    }
    if stated.is_none() && replaced_by.is_empty() {
        return None;
    }
    Some(Deprecation { is_deprecated: stated.unwrap_or(true), replaced_by })
}

/// The statements whose subject is an IRI.
pub(super) fn own<'l>(lines: &'l [u8], iri: &str) -> impl Iterator<Item = Statement<'l>> {
    let start = format!("<{iri}> ");
    split_lines(lines)
        .filter(move |line| line.starts_with(start.as_bytes()))
        .filter_map(|line| Statement::parse(line).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    #[test]
    fn labels_are_those_of_the_best_predicate() {
        let lines = "<http://e/a> <http://purl.org/dc/terms/title> \"title\" .\n\
            <http://e/a> <http://www.w3.org/2004/02/skos/core#prefLabel> \"Haus\"@de-AT .\n\
            <http://e/a> <http://www.w3.org/2004/02/skos/core#prefLabel> \"house \\\"x\\\"\"@en .\n\
            <http://e/a> <http://www.w3.org/2004/02/skos/core#prefLabel> \"plain\" .\n\
            <http://e/a> <http://www.w3.org/2004/02/skos/core#prefLabel> <http://e/label> .\n\
            <http://e/b> <http://www.w3.org/2004/02/skos/core#prefLabel> \"other\"@de .\n";
        let of = |predicates: &[&str], languages: &[&str]| {
            let found = entity_labels(
                lines.as_bytes(),
                "http://e/a",
                &words(predicates),
                &words(languages),
            );
            found.into_iter().map(|label| format!("{}@{}", label.text, label.language)).collect()
        };
        let all: Vec<String> = of(&[], &[]);
        assert_eq!(all, ["plain@", "Haus@de-AT", "house \"x\"@en"]);
        for (languages, label) in [
            (&["de", "en"][..], "Haus@de-AT"),
            (&["fr", "EN"], "house \"x\"@en"),
            (&["d"], "plain@"),
        ] {
            assert_eq!(of(&[], languages), [label]);
        }
        let title: Vec<String> = of(&["http://e/none", "http://purl.org/dc/terms/title"], &[]);
        assert_eq!(title, ["title@"]);
        assert!(entity_labels(lines.as_bytes(), "http://e/c", &[], &[]).is_empty());
    }

    #[test]
    fn deprecation_is_stated_by_owl_or_by_a_replacement() {
        let owl = "<http://www.w3.org/2002/07/owl#deprecated>";
        let instead = "<http://purl.org/dc/terms/isReplacedBy>";
        let boolean = "^^<http://www.w3.org/2001/XMLSchema#boolean>";
        let of = |statements: &[String]| {
            let own = |rest: &String| ["<http://e/a> ", rest.as_str(), " .\n"].concat();
            let lines: String = statements.iter().map(own).collect();
            deprecation(lines.as_bytes(), "http://e/a")
                .map(|found| (found.is_deprecated, found.replaced_by))
        };
        let by = format!("{instead} <http://e/b>");
        for (statements, expected) in [
            (vec![format!("{owl} \"true\"{boolean}")], Some((true, vec![]))),
            (vec![format!("{owl} \"1\"{boolean}")], Some((true, vec![]))),
            (vec![format!("{owl} \"false\"{boolean}")], Some((false, vec![]))),
            (vec![by.clone()], Some((true, words(&["http://e/b"])))),
            (
                vec![by.clone(), format!("{owl} \"false\"{boolean}")],
                Some((false, words(&["http://e/b"]))),
            ),
            (vec![format!("{instead} <http://e/a>")], None),
            (vec![format!("{instead} \"b\"")], None),
            (vec!["<http://e/p> \"x\"".to_owned()], None),
        ] {
            assert_eq!(of(&statements), expected, "{statements:?}");
        }
        let other = format!("<http://e/x> {owl} \"true\"{boolean} .\n");
        assert_eq!(deprecation(other.as_bytes(), "http://e/a"), None);
    }
}
