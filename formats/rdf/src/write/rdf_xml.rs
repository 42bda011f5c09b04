//! RDF/XML: one `rdf:Description` for each subject.

use super::error::CannotWrite;
use super::graph::by_subject;
use super::prefixes::{Prefixes, RDF};
use crate::notation::syntax::Syntax;
use abreast_webtypes::{excerpt, xml};
use oxrdf::vocab::xsd;
use oxrdf::{NamedNode, NamedOrBlankNodeRef, Term, Triple};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Bound to `xmlns`; declaring a prefix for it is not allowed [xml-names §3].
const RESERVED: &str = "http://www.w3.org/2000/xmlns/";

pub(super) const HEAD: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">\n";
pub(super) const END: &[u8] = b"</rdf:RDF>\n";

/// Checks whether RDF/XML can express a statement.
pub(super) fn check(triple: &Triple) -> Result<(), CannotWrite> {
    let cannot = |message: String| Err(CannotWrite::new(Syntax::RdfXml, message));
    if split(&triple.predicate).is_none() {
        return cannot(format!(
            "the predicate `{}` does not end in an XML name, or has a meaning of its own there",
            excerpt(triple.predicate.as_str())
        ));
    }
    if let Term::Literal(literal) = &triple.object
        && xml::first_forbidden(literal.value()).is_some()
    {
        return cannot(format!(
            "a value of `{}` has a character that XML does not allow",
            excerpt(triple.predicate.as_str())
        ));
    }
    Ok(())
}

/// A predicate as namespace and XML name.
fn split(predicate: &NamedNode) -> Option<(&str, &str)> {
    let iri = predicate.as_str();
    let mut start = None;
    for (at, character) in iri.char_indices().rev() {
        if !xml::is_name_character(character) {
            break;
        }
        if xml::is_name_start(character) {
            start = Some(at);
        }
    }
    let (namespace, local) = iri.split_at(start?);
    let is_reserved = namespace == RESERVED
        || (namespace == RDF
            && (local == "li" || !crate::read::rdf_xml::names::may_be_property(local)));
    (!namespace.is_empty() && !is_reserved && local.len() <= xml::MAX_NAME_LENGTH / 2)
        .then_some((namespace, local))
}

pub(super) fn write(
    triples: &[Triple],
    prefixes: &Prefixes,
    out: &mut String,
) -> Result<(), CannotWrite> {
    triples.iter().try_for_each(check)?;
    for (subject, statements) in by_subject(triples) {
        match subject {
            NamedOrBlankNodeRef::NamedNode(node) => {
                out.push_str("  <rdf:Description rdf:about=\"");
                escape(node.as_str(), out);
            }
            NamedOrBlankNodeRef::BlankNode(node) => {
                out.push_str("  <rdf:Description rdf:nodeID=\"");
                out.push_str(&node_id(node.as_str()));
            }
        }
        out.push('"');
        let mut declared: BTreeMap<&str, Cow<'_, str>> = BTreeMap::new();
        for (namespace, _) in statements.iter().filter_map(|triple| split(&triple.predicate)) {
            if namespace == RDF || declared.contains_key(namespace) {
                continue;
            }
            let prefix = prefixes
                .of(namespace)
                .map_or_else(|| format!("ns{}", declared.len() + 1).into(), Cow::Borrowed);
            let _ = write!(out, " xmlns:{prefix}=\"");
            escape(namespace, out);
            out.push('"');
            declared.insert(namespace, prefix);
        }
        out.push_str(">\n");
        for triple in statements {
            let Some((namespace, local)) = split(&triple.predicate) else { continue };
            let prefix = declared.get(namespace).map_or("rdf", |prefix| prefix.as_ref());
            let _ = write!(out, "    <{prefix}:{local}");
            match &triple.object {
                Term::NamedNode(node) => {
                    out.push_str(" rdf:resource=\"");
                    escape(node.as_str(), out);
                    out.push_str("\"/>\n");
                    continue;
                }
                Term::BlankNode(node) => {
                    let _ = writeln!(out, " rdf:nodeID=\"{}\"/>", node_id(node.as_str()));
                    continue;
                }
                Term::Literal(literal) => {
                    if let Some(language) = literal.language() {
                        let _ = write!(out, " xml:lang=\"{language}\"");
                    } else if literal.datatype() != xsd::STRING {
                        out.push_str(" rdf:datatype=\"");
                        escape(literal.datatype().as_str(), out);
                        out.push('"');
                    }
                    out.push('>');
                    escape(literal.value(), out);
                }
            }
            let _ = writeln!(out, "</{prefix}:{local}>");
        }
        out.push_str("  </rdf:Description>\n");
    }
    Ok(())
}

/// A label as an XML name: unchanged if possible, otherwise `x` and hexadecimal digits.
fn node_id(label: &str) -> Cow<'_, str> {
    // ASCII only, because some readers do not support other characters.
    if !label.starts_with('x') && label.is_ascii() && xml::is_nc_name(label) {
        return label.into();
    }
    label
        .bytes()
        .fold(String::from("x"), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
        .into()
}

fn escape(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            other => out.push(other),
        }
    }
}
