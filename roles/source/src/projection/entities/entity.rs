//! One entity as a client receives it: its description in any syntax that can express it, or a
//! page.

use crate::projection::pages::HTML;
use crate::publish::PublishedSet;
use abreast_core::{ChangeLog, Position, State};
use abreast_rdf::{Difference, Syntax};
use abreast_webtypes::Timestamp;
use std::io::{self, Read as _};

/// A change of an entity, for the page of the entity.
#[derive(Clone, Debug)]
pub(crate) struct EntityChange {
    /// Time of the change in the log.
    pub(crate) time: Timestamp,
    /// Whether the entity existed before the change, and after it.
    pub(crate) was_there: bool,
    pub(crate) is_there: bool,
    /// Difference between the descriptions before and after the change; `None` if one is no longer
    /// stored or too long.
    pub(crate) difference: Option<Difference>,
}

/// An entity of a set, with its description.
#[derive(Clone, Debug)]
pub struct Entity {
    /// IRI of the entity, its key in the log.
    pub iri: String,
    /// State of the entity in the log.
    pub state: State,
    /// Position of the last change of the entity.
    pub position: Position,
    /// Description of the entity in canonical N-Triples.
    pub lines: Vec<u8>,
}

/// A form of an entity that clients can request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Description in a syntax of RDF.
    Rdf(Syntax),
    /// HTML page for people, with the description.
    Page,
}

impl Form {
    /// All forms; the first is the default.
    pub const ALL: [Self; 5] = [
        Self::Rdf(Syntax::NTriples),
        Self::Rdf(Syntax::Turtle),
        Self::Rdf(Syntax::RdfXml),
        Self::Rdf(Syntax::JsonLd),
        Self::Page,
    ];

    /// Media type of the form, for content negotiation.
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.media_type(),
            Self::Page => "text/html",
        }
    }

    /// Value of the `Content-Type` header, with the charset if there is one.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.media_type(),
            Self::Page => HTML,
        }
    }

    /// Value of the parameter `syntax` in the query of a URL, such as `ttl`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.extension(),
            Self::Page => "html",
        }
    }

    /// Name of the form in links on pages.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Rdf(syntax) => syntax.name(),
            Self::Page => "page",
        }
    }
}

impl Entity {
    /// Reads the entity with this IRI; `None` if the set does not have the entity. May block.
    ///
    /// # Errors
    /// The log or the contents cannot be read.
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

    /// Forms in which the entity is available. Syntaxes that cannot express the description are
    /// left out.
    pub fn forms(&self) -> Vec<Form> {
        let carries = |form: &Form| match form {
            Form::Rdf(syntax) => abreast_rdf::can_write(*syntax, &self.lines).is_ok(),
            Form::Page => true,
        };
        Form::ALL.into_iter().filter(carries).collect()
    }
}
