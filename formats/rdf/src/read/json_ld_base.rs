//! Relative IRIs of JSON-LD without a base. The parser drops statements with them, so they are
//! resolved against an internal base, which messages must not show.

use abreast_webtypes::excerpt;
use oxrdf::{GraphNameRef, NamedNodeRef, NamedOrBlankNodeRef, QuadRef, TermRef};

/// The base if the caller does not give one: otherwise the parser drops statements with relative
/// IRIs silently.
pub(crate) const NO_BASE: &str = "abreast-no-base://document/";
/// The scheme of [`NO_BASE`], and of IRIs that are resolved against it.
pub(crate) const NO_BASE_SCHEME: &str = "abreast-no-base:";

/// Message for a relative IRI in a document without a base.
pub(crate) fn is_relative(iri: &str) -> String {
    format!("the IRI `{}` is relative, and there is no base", excerpt(iri))
}

/// A text for messages, with relative IRIs as they are written.
pub(crate) fn shown(text: &str) -> String {
    let text = text.replace(NO_BASE, "").replace(NO_BASE_SCHEME, "");
    abreast_webtypes::visible(&text).chars().take(300).collect()
}

/// A relative IRI of a statement, usually as it was written.
pub(crate) fn relative(quad: QuadRef<'_>) -> Option<&str> {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => without_base(node),
        NamedOrBlankNodeRef::BlankNode(_) => None,
    };
    let object = match quad.object {
        TermRef::NamedNode(node) => without_base(node),
        TermRef::Literal(literal) => without_base(literal.datatype()),
        TermRef::BlankNode(_) => None,
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => without_base(node),
        _ => None,
    };
    subject.or_else(|| without_base(quad.predicate)).or(object).or(graph)
}

fn without_base(node: NamedNodeRef<'_>) -> Option<&str> {
    let rest = node.as_str().strip_prefix(NO_BASE_SCHEME)?;
    Some(rest.strip_prefix("//document/").unwrap_or(rest))
}
