//! RDF/XML, read as a stream [rdf-xml §7].
//!
//! It is based on the project's XML reader: no external DTD, only entities without markup, and
//! limits on depth, tokens, attributes and namespaces. The statements of an element are emitted
//! when the element is read. Memory grows with the depth, with the length of a literal and with the
//! number of `rdf:ID`s.

mod fault;
mod frame;
mod literal;
pub(crate) mod names;
mod node;
mod property;
mod scope;

use crate::read::error::ReadError;
use crate::read::options::{ReadLimits, ReadOptions, Visit};
use crate::read::rdf_xml::fault::Fault;
use abreast_webtypes::xml::{self, Token};
use frame::Parser;
use std::io::Read;
use std::ops::ControlFlow;

const PIECE: usize = 64 << 10;

/// Reads a document to its end, or until the visitor breaks.
pub(crate) fn read(
    mut input: impl Read,
    options: &ReadOptions,
    visit: &mut Visit<'_>,
) -> Result<(), ReadError> {
    let ReadLimits { token_length, depth, .. } = options.limits;
    let limits = xml::Limits { document_length: u64::MAX, token_length, depth, namespaces: 256 };
    let mut reader = xml::Reader::with_limits(&[names::RDF], limits).allow_entities().keep_markup();
    let mut parser = Parser::new(options)?;
    let mut piece = vec![0; PIECE];
    loop {
        let step = match reader.next()? {
            Token::NeedInput => {
                match input.read(&mut piece) {
                    Ok(0) => reader.finish(),
                    Ok(length) => reader.push(&piece[..length]),
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error.into()),
                }
                continue;
            }
            Token::Start(element) => parser.start(&element, visit),
            Token::Text(text) => parser.text(text),
            Token::Markup(markup) => parser.markup(markup),
            Token::End => parser.end(visit),
            Token::Done => return Ok(()),
        };
        match step {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(()),
            Err(Fault { code, message, help }) => {
                let error = reader.error(code, message);
                return Err(match help {
                    Some(help) => error.with_help(help).into(),
                    None => error.into(),
                });
            }
        }
    }
}
