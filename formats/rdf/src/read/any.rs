//! Reading RDF in any syntax, statement by statement.

use crate::notation::syntax::Syntax;
use crate::read::error::ReadError;
use crate::read::input::{length, renamed, without_mark};
use crate::read::json_ld;
use crate::read::lines;
use crate::read::options::{ReadOptions, Visit};
use crate::read::rdf_xml;
use crate::read::terse;
use oxrdf::QuadRef;
use std::cell::Cell;
use std::io::{self, Read};
use std::ops::ControlFlow;

/// Reads a document and visits its statements in order; statements may come more than once.
///
/// Memory does not grow with the document, except for JSON-LD. Statements before a fault are
/// visited: do not use them until the whole document is read.
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
/// The document does not have this syntax or exceeds a limit, or the input cannot be read.
pub fn read(
    syntax: Syntax,
    input: impl Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let expansion = options.limits.expansion;
    let read = Cell::new(0);
    let mut input = Counted { input, read: &read };
    let (mut written, mut is_exceeded) = (0_u64, false);
    // Lines were checked one by one, and JSON-LD before its statements are visited.
    let is_checked = matches!(syntax, Syntax::NTriples | Syntax::NQuads | Syntax::JsonLd);
    let left_out = options.left_out.as_ref().filter(|_| !is_checked);
    let mut visit = |quad: QuadRef<'_>| {
        written += length(quad);
        is_exceeded = written > expansion.allowed(read.get());
        match options.document {
            _ if is_exceeded => ControlFlow::Break(()),
            _ if left_out.is_some_and(|left_out| !left_out.passes(quad)) => {
                ControlFlow::Continue(())
            }
            None => visit(quad),
            Some(number) => renamed(quad, number, visit),
        }
    };
    let done = read_as(syntax, &mut input, options, &mut visit);
    if is_exceeded { Err(expansion.exceeded(read.get())) } else { done }
}

/// An input with a count of the bytes read.
struct Counted<'c, R> {
    input: R,
    read: &'c Cell<u64>,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.input.read(buffer)?;
        self.read.set(self.read.get() + length as u64);
        Ok(length)
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
