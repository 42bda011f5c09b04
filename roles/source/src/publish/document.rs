//! Documents, their versions, and the output to which they are rendered.

use super::error::PublishError;
use super::head_reader::HeadReader;
use super::set::PublishedSet;
use abreast_core::Position;
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// A document that a projection found for a path.
pub trait ResolvedDocument: Send + Sync {
    /// Version of the document. Reads the store only through `heads`, unless the document
    /// [follows](Self::follows) a log.
    ///
    /// # Errors
    /// The document does not exist, or is not available yet.
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError>;

    /// Set whose log decides the version, if the version is read from the store. The version is
    /// valid while the state of the log is unchanged.
    fn follows(&self) -> Option<&PublishedSet> {
        None
    }

    /// Renders the bytes of the document into `output`.
    ///
    /// # Errors
    /// The document does not exist, or the log fails.
    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError>;

    /// Media types with which the bytes may be sent, the default first; empty if the media type of
    /// the rendering is the only one.
    fn media_types(&self) -> &'static [&'static str] {
        &[]
    }

    /// Media type of the alternative form of the document, and the suffix of its path.
    fn other_form(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Topic for changes of the document, if there is one; responses have links to the topic and
    /// its hubs.
    fn topic(&self) -> Option<String> {
        None
    }

    /// Whether a client that asks for this document asks for the newest changes of the set that the
    /// document belongs to.
    fn is_newest(&self) -> bool {
        false
    }

    /// Sets to which responses with this document have links.
    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        Vec::new()
    }
}

/// The version of a document: equal versions mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Numbers that change with the bytes.
    pub of: [u64; 2],
    /// How long clients may cache the bytes.
    pub freshness: Freshness,
}

impl Version {
    /// Version of a document that may change.
    pub const fn changing(of: [u64; 2]) -> Self {
        Self { of, freshness: Freshness::Revalidate }
    }

    /// Version of a document of closed changes, to which no entries are added.
    pub const fn closed(of: [u64; 2]) -> Self {
        Self { of, freshness: Freshness::Closed }
    }
}

/// The state of the log of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// Time when the log of the set started.
    pub created: Timestamp,
    /// Position of the last change in the log.
    pub position: Position,
}

impl LogState {
    /// State of the log of a set; `None` during the import of its base.
    pub fn of(heads: HeadReader<'_>, set: &PublishedSet) -> Option<Self> {
        let head = heads.of(set).ok()?;
        (!head.importing).then_some(Self { created: head.created, position: head.position })
    }
}

/// The receiver of the bytes of a document while it is rendered.
pub trait Output {
    /// Announces about how many bytes follow. A large document waits here for its turn. Call this
    /// before entries are read from the store, and while no lock is held.
    fn expect(&mut self, bytes: u64);

    /// Takes the first bytes of a long document out of the buffer, so that the document is never in
    /// memory as a whole.
    fn drain(&mut self, bytes: &mut Vec<u8>);

    /// Discards all bytes taken so far, because another document is written instead.
    fn restart(&mut self);
}

/// Output that buffers a whole document in memory, and never waits.
pub(crate) struct Whole;

impl Output for Whole {
    fn expect(&mut self, _: u64) {}

    fn drain(&mut self, _: &mut Vec<u8>) {}

    fn restart(&mut self) {}
}

/// The bytes of a document that was rendered for a request.
#[derive(Debug)]
pub struct Rendered {
    /// All bytes, or the bytes after the last call of [`Output::drain`].
    pub bytes: Vec<u8>,
    /// Value of the `Content-Type` header.
    pub content_type: &'static str,
}

/// How long clients may cache a document without a request for validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// Permanently: the bytes never change, with any configuration.
    Immutable,
    /// For a day: the changes in the document are closed, and only a different configuration of the
    /// set changes the bytes.
    Closed,
    /// Validate at each use; the response is usually 304.
    Revalidate,
}
