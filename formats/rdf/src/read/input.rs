//! Helper functions for all readers.

use crate::read::options::Visit;
use oxrdf::{BlankNode, BlankNodeRef, GraphNameRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use std::io;
use std::io::{Cursor, Read};
use std::ops::ControlFlow;

/// Skips the byte order mark of a text.
pub(crate) fn without_mark(input: &mut dyn Read) -> io::Result<impl Read> {
    let mut first = [0; 3];
    let length = fill(input, &mut first)?;
    let length = if first == *b"\xef\xbb\xbf" { 0 } else { length as u64 };
    Ok(Cursor::new(first).take(length).chain(input))
}

/// Reads until the buffer is full or the input ends; returns the number of bytes.
pub(crate) fn fill(input: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(length) => filled += length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Visits a statement with the number of the document in its blank node labels.
pub(crate) fn renamed(quad: QuadRef<'_>, number: u64, visit: &mut Visit<'_>) -> ControlFlow<()> {
    let name =
        |node: BlankNodeRef<'_>| BlankNode::new_unchecked(format!("d{number}_{}", node.as_str()));
    let (subject, object, graph);
    let mut quad = quad;
    if let NamedOrBlankNodeRef::BlankNode(node) = quad.subject {
        subject = name(node);
        quad.subject = subject.as_ref().into();
    }
    if let TermRef::BlankNode(node) = quad.object {
        object = name(node);
        quad.object = object.as_ref().into();
    }
    if let GraphNameRef::BlankNode(node) = quad.graph_name {
        graph = name(node);
        quad.graph_name = graph.as_ref().into();
    }
    visit(quad)
}

/// Estimated bytes of a statement in N-Quads.
pub(crate) fn length(quad: QuadRef<'_>) -> u64 {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => node.as_str(),
        NamedOrBlankNodeRef::BlankNode(node) => node.as_str(),
    };
    let (object, more) = match quad.object {
        TermRef::NamedNode(node) => (node.as_str(), ""),
        TermRef::BlankNode(node) => (node.as_str(), ""),
        TermRef::Literal(literal) => {
            (literal.value(), literal.language().unwrap_or(literal.datatype().as_str()))
        }
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => node.as_str(),
        GraphNameRef::BlankNode(node) => node.as_str(),
        GraphNameRef::DefaultGraph => "",
    };
    let terms = [subject, quad.predicate.as_str(), object, more, graph];
    // Spaces, brackets and the end.
    terms.iter().map(|term| term.len() as u64).sum::<u64>() + 12
}
