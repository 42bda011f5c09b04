//! One entity as it is served: its description in any syntax that can carry it, or as a page.

use crate::projection::pages::HTML;
use crate::publish::PublishedSet;
use abreast_core::{ChangeLog, Position, State};
use abreast_rdf::{Difference, Syntax};
use abreast_webtypes::Timestamp;
use std::io::{self, Read as _};

/// A change of an entity.
#[derive(Clone, Debug)]
pub(crate) struct EntityChange {
    /// When it was.
    pub(crate) time: Timestamp,
    /// Whether the entity was there before, and after it.
    pub(crate) was_there: bool,
    pub(crate) is_there: bool,
    /// What was stated before and after it, as far as both are kept and not too long.
    pub(crate) difference: Option<Difference>,
}

/// An entity of a set, with its description.
#[derive(Clone, Debug)]
pub struct Entity {
    /// Its IRI.
    pub iri: String,
    /// Its state.
    pub state: State,
    /// Its last change.
    pub position: Position,
    /// Its description in canonical N-Triples.
    pub lines: Vec<u8>,
}

/// A form in which an entity is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A syntax of RDF.
    Rdf(Syntax),
    /// A page for people.
    Page,
}

impl Form {
    /// All forms, the first for those who ask for none.
    pub const ALL: [Self; 5] = [
        Self::Rdf(Syntax::NTriples),
        Self::Rdf(Syntax::Turtle),
        Self::Rdf(Syntax::RdfXml),
        Self::Rdf(Syntax::JsonLd),
        Self::Page,
    ];

    /// Its media type, to negotiate about.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.media_type(),
            Self::Page => "text/html",
        }
    }

    /// Its Content-Type.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.media_type(),
            Self::Page => HTML,
        }
    }

    /// Its name in the query of an address, `?syntax=ttl`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.extension(),
            Self::Page => "html",
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.name(),
            Self::Page => "page",
        }
    }
}

impl Entity {
    /// The entity with this IRI; `None` when the set has none. May block.
    ///
    /// # Errors
    /// The log or the contents fail.
    pub fn read(log: &dyn ChangeLog, set: &PublishedSet, iri: &str) -> io::Result<Option<Self>> {
        let Some(found) = log.resource(set.id, iri).map_err(io::Error::other)? else {
            return Ok(None);
        };
        let mut kept = set
            .representations
            .open_kept(&found.state)?
            .ok_or_else(|| io::Error::other(format!("the description of <{iri}> is not kept")))?;
        let mut lines = Vec::with_capacity(found.state.length.unwrap_or_default() as usize);
        kept.read_to_end(&mut lines)?;
        Ok(Some(Self { iri: found.key, state: found.state, position: found.position, lines }))
    }

    /// The forms in which it can be served: a syntax that cannot carry it is none of them.
    pub fn forms(&self) -> Vec<Form> {
        let carries = |form: &Form| match form {
            Form::Rdf(syntax) => abreast_rdf::can_write(*syntax, &self.lines).is_ok(),
            Form::Page => true,
        };
        Form::ALL.into_iter().filter(carries).collect()
    }
}
