//! JSON-LD in expanded form: no context, one object for each subject.

use super::graph::by_subject;
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{NamedOrBlankNodeRef, Term, Triple};
use std::fmt::Write as _;

pub(super) const HEAD: &[u8] = b"[";
pub(super) const END: &[u8] = b"\n]\n";

/// Writes the objects of a description; `is_later` if there are objects before.
pub(super) fn write(triples: &[Triple], is_later: bool, out: &mut String) {
    for (number, (subject, statements)) in by_subject(triples).into_iter().enumerate() {
        out.push_str(if number > 0 || is_later { ",\n  {" } else { "\n  {" });
        out.push_str("\n    \"@id\": ");
        match subject {
            NamedOrBlankNodeRef::NamedNode(node) => string(node.as_str(), out),
            NamedOrBlankNodeRef::BlankNode(node) => string(&node.to_string(), out),
        }
        let is_type = |triple: &&Triple| {
            triple.predicate == rdf::TYPE && !matches!(triple.object, Term::Literal(_))
        };
        let (types, others): (Vec<&Triple>, Vec<&Triple>) =
            statements.into_iter().partition(is_type);
        for (number, triple) in types.iter().enumerate() {
            out.push_str(if number == 0 { ",\n    \"@type\": [" } else { ", " });
            match &triple.object {
                Term::NamedNode(node) => string(node.as_str(), out),
                node => string(&node.to_string(), out),
            }
        }
        if !types.is_empty() {
            out.push(']');
        }
        let mut last: Option<&Triple> = None;
        for triple in others {
            if last.is_some_and(|last| last.predicate == triple.predicate) {
                out.push_str(", ");
            } else {
                out.push_str(if last.is_some() { "],\n    " } else { ",\n    " });
                string(triple.predicate.as_str(), out);
                out.push_str(": [");
            }
            value(&triple.object, out);
            last = Some(triple);
        }
        if last.is_some() {
            out.push(']');
        }
        out.push_str("\n  }");
    }
}

fn value(object: &Term, out: &mut String) {
    match object {
        Term::NamedNode(node) => {
            out.push_str("{\"@id\": ");
            string(node.as_str(), out);
        }
        Term::BlankNode(node) => {
            out.push_str("{\"@id\": ");
            string(&node.to_string(), out);
        }
        Term::Literal(literal) => {
            out.push_str("{\"@value\": ");
            string(literal.value(), out);
            if let Some(language) = literal.language() {
                out.push_str(", \"@language\": ");
                string(language, out);
            } else if literal.datatype() != xsd::STRING {
                out.push_str(", \"@type\": ");
                string(literal.datatype().as_str(), out);
            }
        }
    }
    out.push('}');
}

/// A JSON string. Control characters for terminals are escaped.
fn string(text: &str, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            other if abreast_webtypes::is_control(other) => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            other => out.push(other),
        }
    }
    out.push('"');
}
