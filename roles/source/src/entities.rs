//! One entity as it is served: its description in any syntax that can carry it, or as a page.

use crate::projection::pages::entity_page;
use crate::publish::{HTML, PublishedSet};
use abreast_core::{ChangeLog, Kind, Order, Position, State, Version};
use abreast_rdf::{Difference, Syntax, WriteOptions, difference};
use abreast_webtypes::Timestamp;
use std::io::{self, Read as _};
use std::ops::ControlFlow;

/// Changes of an entity that are read with it.
const CHANGES: usize = 10;
/// Bytes of earlier descriptions that are read for them.
const CHANGES_BYTES: u64 = 1 << 20;

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

/// Whether an entity was new with a version.
fn is_creation(log: &dyn ChangeLog, set: &PublishedSet, version: &Version) -> io::Result<bool> {
    let Some(before) = version.position.0.checked_sub(1) else { return Ok(true) };
    let mut kind = None;
    log.read(set.id, Position(before), &mut |record| {
        kind = (record.position == version.position).then_some(record.kind);
        ControlFlow::Break(())
    })
    .map_err(io::Error::other)?;
    Ok(matches!(kind, Some(Kind::Create | Kind::Add)))
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

    /// Its last changes, the newest first: of a set that keeps versions.
    fn changes(&self, log: &dyn ChangeLog, set: &PublishedSet) -> io::Result<Vec<EntityChange>> {
        if set.versions.is_none() {
            return Ok(Vec::new());
        }
        let (newest, most) = (Order::NewestFirst, CHANGES + 1);
        let versions = log
            .versions(set.id, &self.iri, Timestamp::MAX, newest, most)
            .map_err(io::Error::other)?;
        let mut left = CHANGES_BYTES;
        let mut read = |version: Option<&Version>| -> io::Result<Option<Vec<u8>>> {
            let Some(version) = version else { return Ok(None) };
            let Some(state) = &version.state else { return Ok(Some(Vec::new())) };
            let length = state.length.unwrap_or_default();
            if length > left {
                left = 0;
                return Ok(None);
            }
            left -= length;
            let Some(mut kept) = set.representations.open_kept(state)? else { return Ok(None) };
            let mut lines = Vec::with_capacity(length as usize);
            kept.read_to_end(&mut lines)?;
            Ok(Some(lines))
        };
        let mut changes = Vec::with_capacity(versions.len());
        let mut after = read(versions.first())?;
        for (at, version) in versions.iter().enumerate().take(CHANGES) {
            let former = versions.get(at + 1);
            // The version before the oldest one that is kept may have been dropped.
            let is_new = former.is_none() && is_creation(log, set, version)?;
            let before = if is_new { Some(Vec::new()) } else { read(former)? };
            changes.push(EntityChange {
                time: version.time,
                was_there: former.map_or(!is_new, |former| former.state.is_some()),
                is_there: version.state.is_some(),
                difference: before
                    .as_ref()
                    .zip(after.as_ref())
                    .map(|(old, new)| difference(old, new)),
            });
            after = before;
        }
        Ok(changes)
    }

    /// The forms in which it can be served: a syntax that cannot carry it is none of them.
    pub fn forms(&self) -> Vec<Form> {
        let carries = |form: &Form| match form {
            Form::Rdf(syntax) => abreast_rdf::can_write(*syntax, &self.lines).is_ok(),
            Form::Page => true,
        };
        Form::ALL.into_iter().filter(carries).collect()
    }

    /// Its bytes in one of its forms. May block.
    ///
    /// # Errors
    /// The syntax cannot carry the description; the log or the contents fail.
    pub fn render(
        self,
        log: &dyn ChangeLog,
        set: &PublishedSet,
        form: Form,
    ) -> io::Result<Vec<u8>> {
        match form {
            Form::Rdf(Syntax::NTriples) => Ok(self.lines),
            Form::Rdf(syntax) => {
                let mut out = Vec::with_capacity(self.lines.len());
                abreast_rdf::write(syntax, &self.lines, &WriteOptions::default(), &mut out)
                    .map_err(io::Error::other)?;
                Ok(out)
            }
            Form::Page => Ok(entity_page(set, &self, &self.changes(log, set)?)),
        }
    }
}
