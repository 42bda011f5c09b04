//! Reading RDF in any syntax, statement by statement.

use crate::contexts::Contexts;
use crate::read_error::ReadError;
use crate::syntax::Syntax;
use crate::{json_ld, lines, rdf_xml, terse};
use abreast_webtypes::excerpt;
use oxiri::Iri;
use oxrdf::{BlankNode, BlankNodeRef, GraphNameRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use std::io::{self, Cursor, Read};
use std::ops::ControlFlow;

/// What is done with each statement; [`ControlFlow::Break`] ends the reading.
pub type Visit<'a> = dyn FnMut(QuadRef<'_>) -> ControlFlow<()> + 'a;

/// How a document is read.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Relative IRIs are resolved against this one. Without it they are refused, unless the
    /// document states its own base.
    pub base: Option<String>,
    /// Skips the checks of IRIs and language tags in N-Triples, N-Quads, Turtle and TriG: for
    /// documents that were checked before.
    pub lenient: bool,
    /// A number for the document: its blank nodes are called `d<NUMBER>_<LABEL>`, so that equal
    /// labels in documents with different numbers are different nodes.
    pub document: Option<u64>,
    /// The contexts that JSON-LD may name.
    pub contexts: Contexts,
    /// Limits.
    pub limits: ReadLimits,
}

/// Limits of one document, with their defaults in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of a line of N-Triples and N-Quads; of a literal, IRI or comment in the others
    /// [16 MiB, which is also the most for Turtle and TriG].
    pub token_length: usize,
    /// Brackets inside each other in Turtle, TriG and JSON-LD, and elements in RDF/XML [256; in
    /// JSON-LD 128 at most].
    pub depth: usize,
    /// Bytes of a JSON-LD document, which is held in memory [32 MiB].
    pub json_ld_length: usize,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { token_length: 16 << 20, depth: 256, json_ld_length: 32 << 20 }
    }
}

impl ReadOptions {
    /// Sets the base IRI.
    #[must_use]
    pub fn with_base(mut self, base: impl Into<String>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Sets [`ReadOptions::lenient`].
    #[must_use]
    pub fn with_lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Sets the number of the document.
    #[must_use]
    pub fn with_document(mut self, number: u64) -> Self {
        self.document = Some(number);
        self
    }

    /// Sets the contexts that JSON-LD may name.
    #[must_use]
    pub fn with_contexts(mut self, contexts: Contexts) -> Self {
        self.contexts = contexts;
        self
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The base IRI, checked.
    pub(crate) fn base_iri(&self) -> Result<Option<Iri<String>>, ReadError> {
        let Some(base) = &self.base else { return Ok(None) };
        Iri::parse(base.clone()).map(Some).map_err(|error| {
            let message = format!("the base `{}` is not an absolute IRI: {error}", excerpt(base));
            ReadError::new("rdf.iri", (0, 0), message, None)
        })
    }
}

/// Reads a document and visits its statements in order; statements may come more than once.
///
/// Memory does not grow with the document, except for JSON-LD. Statements before a fault are
/// visited: keep them apart until the whole document is read.
///
/// ```
/// use abreast_rdf::{ReadOptions, Syntax, read};
/// use std::ops::ControlFlow;
///
/// let turtle = "@prefix ex: <http://example.org/> . ex:a ex:knows ex:b, [ ex:name 'C' ] .";
/// let mut seen = 0;
/// read(Syntax::Turtle, turtle.as_bytes(), &ReadOptions::default(), &mut |_| {
///     seen += 1;
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(seen, 3);
///
/// let wrong = "<http://example.org/a> <knows> <http://example.org/b> .\n";
/// let error = read(Syntax::NTriples, wrong.as_bytes(), &ReadOptions::default(), &mut |_| {
///     ControlFlow::Continue(())
/// })
/// .unwrap_err();
/// let error = error.syntax().expect("a fault in the document");
/// assert_eq!((error.code(), error.line(), error.column()), ("rdf.iri", 1, 24));
/// # Ok::<(), abreast_rdf::ReadError>(())
/// ```
///
/// # Errors
/// The document is not of that syntax or exceeds a limit, or the input cannot be read.
pub fn read(
    syntax: Syntax,
    mut input: impl Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    match options.document {
        None => read_as(syntax, &mut input, options, visit),
        Some(number) => {
            read_as(syntax, &mut input, options, &mut |quad| renamed(quad, number, visit))
        }
    }
}

fn read_as(
    syntax: Syntax,
    input: &mut dyn Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    if syntax == Syntax::RdfXml {
        return rdf_xml::read(input, options, visit);
    }
    let mut input = without_mark(input)?;
    match syntax {
        Syntax::NTriples | Syntax::NQuads => lines::read(syntax, &mut input, options, visit),
        Syntax::Turtle | Syntax::TriG => terse::read(syntax, input, options, visit),
        _ => json_ld::read(&mut input, options, visit),
    }
}

/// A text without its byte order mark.
pub(crate) fn without_mark(input: &mut dyn Read) -> io::Result<impl Read> {
    let mut first = [0; 3];
    let length = fill(input, &mut first)?;
    let length = if first == *b"\xef\xbb\xbf" { 0 } else { length as u64 };
    Ok(Cursor::new(first).take(length).chain(input))
}

/// Reads until the buffer is full or the input ends; how many bytes.
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

/// Visits a statement with its blank nodes named after their document.
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
