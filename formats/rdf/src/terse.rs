//! Turtle and TriG.

use crate::lines::syntax_error;
use crate::nesting::{Brackets, Guarded};
use crate::read::{ReadOptions, Visit};
use crate::read_error::ReadError;
use crate::syntax::Syntax;
use oxrdf::{GraphNameRef, QuadRef};
use oxttl::{TriGParser, TurtleParseError, TurtleParser};
use std::io::{self, Read};

pub(crate) fn read(
    syntax: Syntax,
    input: impl Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let base = options.base_iri()?;
    let input = Guarded::new(input, Brackets::turtle(options.limits));
    let fault = |error| match error {
        TurtleParseError::Syntax(error) => syntax_error(&error, 0),
        TurtleParseError::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            let message = "a literal, name or comment is longer than 16 MiB";
            ReadError::new("rdf.size", (0, 0), message, None)
        }
        TurtleParseError::Io(error) => error.into(),
    };
    // Checked above, so that nothing fails here.
    macro_rules! parser {
        ($parser:expr) => {{
            let parser = $parser;
            let parser = if options.lenient { parser.lenient() } else { parser };
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
            if visit(quad.map_err(fault)?.as_ref()).is_break() {
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
            if visit(quad).is_break() {
                break;
            }
        }
    }
    Ok(())
}
