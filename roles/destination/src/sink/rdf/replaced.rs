//! The replacements of a deprecated entity, according to its description.

use abreast_rdf::statements;

/// Maximum number of replacements of a resource.
const REPLACEMENTS_MAX: usize = 10;

/// The replacements of an entity: the objects of the first of these properties in its description.
pub(crate) fn replacements(predicates: &[String], uri: &str, lines: &[u8]) -> Vec<String> {
    let subject = format!("<{uri}>");
    let of = |predicate: &String| -> Vec<String> {
        let predicate = format!("<{predicate}>");
        let stated = statements(lines).filter_map(Result::ok).filter(|statement| {
            statement.subject == subject.as_bytes()
                && statement.predicate == predicate.as_bytes()
                && statement.object != subject.as_bytes()
        });
        let iris = stated.filter_map(|statement| {
            let iri = statement.object.strip_prefix(b"<")?.strip_suffix(b">")?;
            String::from_utf8(iri.to_vec()).ok()
        });
        iris.take(REPLACEMENTS_MAX).collect()
    };
    predicates.iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
}
