//! Documents: their versions, and where their bytes go while they are rendered.

use super::error::PublishError;
use super::head_reader::HeadReader;
use super::set::PublishedSet;
use abreast_core::Position;
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// One document, as it is found at a path.
pub trait ResolvedDocument: Send + Sync {
    /// Its version. Reads the store only through `heads`, unless the document
    /// [follows](Self::follows) a log.
    ///
    /// # Errors
    /// When there is no such document, or not yet.
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError>;

    /// The set whose log decides the version, of a document whose version is read from the store:
    /// while that log stands where it stood, the version is the same.
    fn follows(&self) -> Option<&PublishedSet> {
        None
    }

    /// Its bytes.
    ///
    /// # Errors
    /// When there is no such document, or the log fails.
    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError>;

    /// The media types as which its bytes may be sent, the usual one first; empty if there is only
    /// that which it is rendered with.
    fn media_types(&self) -> &'static [&'static str] {
        &[]
    }

    /// Another form of it: its media type, and what is added to the path for it.
    fn other_form(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// The topic that notifies of its changes, if there is one: answers name the topic and its hubs.
    fn topic(&self) -> Option<String> {
        None
    }

    /// The sets to which answers with this document link.
    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        Vec::new()
    }
}

/// The version of a document: equal versions mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Numbers that change with the bytes.
    pub of: [u64; 2],
    /// How long clients may keep the bytes.
    pub freshness: Freshness,
}

impl Version {
    /// Of a document that may change.
    pub const fn changing(of: [u64; 2]) -> Self {
        Self { of, freshness: Freshness::Revalidate }
    }

    /// Of a document of changes that are closed.
    pub const fn closed(of: [u64; 2]) -> Self {
        Self { of, freshness: Freshness::Closed }
    }
}

/// The state of the log of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// The time when the log of the set started.
    pub created: Timestamp,
    /// Position of the last change in the log.
    pub position: Position,
}

impl LogState {
    /// That of a set; `None` while its base is imported.
    pub fn of(heads: HeadReader<'_>, set: &PublishedSet) -> Option<Self> {
        let head = heads.of(set).ok()?;
        (!head.importing).then_some(Self { created: head.created, position: head.position })
    }
}

/// The receiver of the bytes of a document while it is rendered.
pub trait Output {
    /// Announces about how many bytes follow. A large document waits here for its turn: to be
    /// called before the entries are read from the store, and while no lock is held.
    fn expect(&mut self, bytes: u64);

    /// Takes bytes of a long document, so that it is never in memory as a whole.
    fn drain(&mut self, bytes: &mut Vec<u8>);

    /// Forgets the bytes that it took: another document is written instead.
    fn restart(&mut self);
}

/// Keeps a document in memory as a whole, and never waits.
pub(crate) struct Whole;

impl Output for Whole {
    fn expect(&mut self, _: u64) {}

    fn drain(&mut self, _: &mut Vec<u8>) {}

    fn restart(&mut self) {}
}

/// The bytes of a document that was rendered for a request.
#[derive(Debug)]
pub struct Rendered {
    /// All bytes, or those after the last draining.
    pub bytes: Vec<u8>,
    /// The value of the `Content-Type` header.
    pub content_type: &'static str,
}

/// How long clients may keep a document without asking again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Permanently: its bytes never change, whatever the configuration.
    Immutable,
    /// For a day: it is of changes that are closed. Only a different configuration of the set changes its bytes.
    Closed,
    /// Ask each time; the answer is usually 304.
    Revalidate,
}
