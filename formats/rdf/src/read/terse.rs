//! Turtle and TriG.

use crate::notation::syntax::Syntax;
use crate::read::error::ReadError;
use crate::read::language_tags::LanguageTags;
use crate::read::lines::syntax_error;
use crate::read::nesting::{Brackets, Guarded};
use crate::read::options::{ReadOptions, Visit};
use abreast_webtypes::excerpt;
use oxiri::Iri;
use oxrdf::{GraphNameRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use oxttl::{TriGParser, TurtleParseError, TurtleParser};
use std::io::{self, Read};

pub(crate) fn read(
    syntax: Syntax,
    input: impl Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let base = options.base_iri()?;
    // Invalid parts are left out later, by their statements.
    let is_lenient = options.lenient || options.left_out.is_some();
    let tags = LanguageTags::new(options.left_out.is_some());
    let brackets = Brackets::turtle(options.limits).with_tags(tags.clone());
    let input = Guarded::new(input, brackets);
    let fault = |error| match error {
        TurtleParseError::Syntax(error) => syntax_error(&error, 0, &tags),
        TurtleParseError::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            let message = "a literal, name or comment is longer than 16 MiB";
            ReadError::new("rdf.size", (0, 0), message, None)
        }
        TurtleParseError::Io(error) => error.into(),
    };
    // Checked above, so this cannot fail.
    macro_rules! parser {
        ($parser:expr) => {{
            let parser = $parser;
            let parser = if is_lenient { parser.lenient() } else { parser };
            match &base {
                Some(base) => parser
                    .with_base_iri(base.as_str())
                    .map_err(|error| ReadError::new("rdf.iri", (0, 0), error.to_string(), None))?,
                None => parser,
            }
        }};
    }
    if syntax == Syntax::TriG {
        for quad in parser!(TriGParser::new()).for_reader(input) {
            let quad = quad.map_err(fault)?;
            check(quad.as_ref(), options)?;
            if tags.visit(quad.as_ref(), visit).is_break() {
                break;
            }
        }
    } else {
        for triple in parser!(TurtleParser::new()).for_reader(input) {
            let triple = triple.map_err(fault)?;
            let quad = QuadRef::new(
                triple.subject.as_ref(),
                triple.predicate.as_ref(),
                triple.object.as_ref(),
                GraphNameRef::DefaultGraph,
            );
            check(quad, options)?;
            if tags.visit(quad, visit).is_break() {
                break;
            }
        }
    }
    Ok(())
}

/// Refuses IRIs with characters that a prefixed name allows and an IRI does not, such as U+FFFD.
/// The parser checks the other parts of IRIs only [rfc3987 §2.2].
fn check(quad: QuadRef<'_>, options: &ReadOptions) -> Result<(), ReadError> {
    if options.lenient || options.left_out.is_some() {
        return Ok(());
    }
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => Some(node),
        NamedOrBlankNodeRef::BlankNode(_) => None,
    };
    let object = match quad.object {
        TermRef::NamedNode(node) => Some(node),
        TermRef::Literal(literal) => Some(literal.datatype()),
        TermRef::BlankNode(_) => None,
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => Some(node),
        _ => None,
    };
    for node in [subject, Some(quad.predicate), object, graph].into_iter().flatten() {
        let iri = node.as_str();
        // The encoding of all these characters starts with such a byte.
        if iri.bytes().any(|byte| byte >= 0xef)
            && let Err(error) = Iri::parse(iri)
        {
            let message = format!("a prefixed name makes the IRI `{}`: {error}", excerpt(iri));
            return Err(ReadError::new("rdf.iri", (0, 0), message, None));
        }
    }
    Ok(())
}
