//! Projections: each makes the documents of one protocol from the log, and is the only place that
//! knows its addresses, versions, bytes and topics.
//!
//! The [`Publisher`] asks its projections in turn, keeps what they render and answers by path. The
//! server, the static site and the notifier know paths, topics and positions, and no protocol.

pub mod emm;
pub mod entities;
mod files;
mod head_reader;
mod interval;
mod news;
pub mod pages;
pub mod resourcesync;
pub mod resourcesync_0_1;
pub mod sdshare;

pub use files::{FileContent, FileError, PublishedFile};
pub use head_reader::HeadReader;
pub use news::{EndedTopic, News, NewsRequest, NotifiedDocuments};

use crate::publish::{Freshness, PublishError, PublishedSet, Publisher};
use abreast_core::Position;
use abreast_webtypes::{Link, Timestamp};
use std::sync::Arc;

/// The paths of the topics of all protocols, below that of their set: what [`Projection::topic_urls`] makes, for those that have
/// only a store.
pub(crate) const TOPIC_PATHS: [&str; 10] = [
    "notify/change",
    "notify/framework",
    "v0.1/notify/changeset",
    "sdshare/fragments",
    "emm/0.1",
    "emm/0.1/collection.json",
    "emm/1.0",
    "emm/1.0/collection.json",
    "iiif",
    "iiif/collection.json",
];

/// The documents and topics of one protocol.
pub trait Projection: Send + Sync + 'static {
    /// The document at a path below the public base, which does not begin with `/`; `None` when the
    /// path is not of this projection. A document has one path. Reads no store.
    fn resolve<'p>(
        &'p self,
        publisher: &'p Publisher,
        path: &str,
    ) -> Option<Box<dyn ResolvedDocument + 'p>>;

    /// The document at a path for a request with a query, made for that request and not kept;
    /// `None` when nothing in the query matters for the path. Reads no store.
    fn resolve_query<'p>(
        &'p self,
        _publisher: &'p Publisher,
        _path: &str,
        _query: &str,
    ) -> Option<Result<Box<dyn ResolvedDocument + 'p>, PublishError>> {
        None
    }

    /// Whether a path below the public base is that of a file, whether it exists or not. Reads no
    /// store.
    fn is_file(&self, _publisher: &Publisher, _path: &str) -> bool {
        false
    }

    /// The file at a path, open. May block while it is made.
    ///
    /// # Errors
    /// When there is none, or not now.
    fn file(
        &self,
        _publisher: &Publisher,
        _path: &str,
        _query: Option<&str>,
    ) -> Result<PublishedFile, FileError> {
        Err(FileError::NotFound("there is no such file".to_owned()))
    }

    /// All documents of a static site, of each stage in an order in which none names one that comes
    /// after it; lists may name each other.
    ///
    /// # Errors
    /// When the log fails.
    fn site(&self, publisher: &Publisher) -> Result<Vec<SiteDocument>, PublishError>;

    /// Links from the site as a whole to the entry points of this protocol [rfc6415 §2].
    fn site_links(&self, _publisher: &Publisher) -> Vec<Link> {
        Vec::new()
    }

    /// Links in the head of a set's page, besides the one to its Capability List. Those with a title
    /// are shown to people too.
    fn page_links(&self, _set: &Arc<PublishedSet>) -> Vec<Link> {
        Vec::new()
    }

    /// Sitemaps that robots.txt names besides the plain one.
    fn robots_sitemaps(&self, _publisher: &Publisher) -> Vec<String> {
        Vec::new()
    }

    /// Folders of a set in a static site whose documents are numbered: a history that was lost left
    /// others there.
    fn numbered_folders(&self) -> &'static [&'static str] {
        &[]
    }

    /// The topics there are.
    fn topics(&self, _publisher: &Publisher) -> Vec<Topic> {
        Vec::new()
    }

    /// The topic at a path below the public base.
    fn topic(&self, _publisher: &Publisher, _path: &str) -> Option<Topic> {
        None
    }

    /// The topic that is subscribed to by HTTP callback at a path below the public base.
    fn callback_topic(&self, _publisher: &Publisher, _path: &str) -> Option<Topic> {
        None
    }

    /// The URLs of a set's topics, whether notifications are published there now or not.
    fn topic_urls(&self, _set: &Arc<PublishedSet>) -> Vec<String> {
        Vec::new()
    }

    /// The notification of a range of the log, in a topic of [`TopicContent::Changes`]. The same
    /// range is the same bytes.
    ///
    /// # Errors
    /// When there is no such topic or the log fails.
    fn notification(
        &self,
        _publisher: &Publisher,
        _topic: &Topic,
        _after: Position,
        _last: Position,
    ) -> Result<Vec<u8>, PublishError> {
        Err(PublishError::NotFound)
    }

    /// The notification for a subscriber that misses some, in a topic of
    /// [`TopicContent::Changes`]: it states where all changes are. `None` where notifications show
    /// by themselves that others are missing before them.
    ///
    /// # Errors
    /// When the log fails.
    fn gap(&self, _publisher: &Publisher, _topic: &Topic) -> Result<Option<Vec<u8>>, PublishError> {
        Ok(None)
    }

    /// The notification of the documents that are new or different, in a topic of
    /// [`TopicContent::Documents`]; `None` when none is.
    ///
    /// # Errors
    /// When the log fails.
    fn news(
        &self,
        _publisher: &Publisher,
        _topic: &Topic,
        _request: &NewsRequest<'_>,
    ) -> Result<Option<News>, PublishError> {
        Ok(None)
    }

    /// The end of a topic of documents whose set is no longer published, by the name of its record;
    /// `None` when the set is published, or the record is not of this projection.
    fn ended_topic(
        &self,
        _publisher: &Publisher,
        _record: &str,
        _request: &NewsRequest<'_>,
    ) -> Option<EndedTopic> {
        None
    }

    /// Whether this is the path of a topic in which the end of a set is published, whether there is
    /// such a set or not.
    fn is_lasting_topic(&self, _path: &str) -> bool {
        false
    }
}

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
    /// When the log began.
    pub created: Timestamp,
    /// Its last change.
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

/// A freshly rendered document.
#[derive(Debug)]
pub struct Rendered {
    /// All bytes, or those after the last draining.
    pub bytes: Vec<u8>,
    /// Its Content-Type.
    pub content_type: &'static str,
}

/// One document of a static site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteDocument {
    /// Its path below the public base.
    pub path: String,
    /// When it is written.
    pub stage: SiteStage,
    /// Whether its bytes never change while the set has the same log and the same addresses.
    pub closed: bool,
}

/// The stages in which the documents of a static site are written: each names documents of those
/// before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SiteStage {
    /// Lists and pages, which name resources and each other.
    List,
    /// Where readers of a protocol begin.
    EntryPoint,
    /// What leads to entry points: pages for people, and documents for discovery.
    Discovery,
    /// The one document that shows which sets a site has: it has no time, and is the same in every
    /// build of these sets.
    Identity,
}

/// One topic of a set.
#[derive(Clone, Debug)]
pub struct Topic {
    /// Its URL.
    pub url: String,
    /// Its set.
    pub set: Arc<PublishedSet>,
    /// The name of its record among those of other topics: the set's name, for one topic of each
    /// set.
    pub record: String,
    /// The content of its notifications.
    pub content: TopicContent,
    /// The media type of its notifications.
    pub media_type: &'static str,
    /// Links that are sent with each notification, besides hub and topic.
    pub links: String,
}

/// The content from which notifications are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicContent {
    /// A range of the set's log, rendered when it is sent.
    Changes,
    /// Documents that are new or different.
    Documents,
}

impl TopicContent {
    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Changes => "change",
            Self::Documents => "framework",
        }
    }
}

/// A number in its one spelling: no sign, no leading zero.
fn plain_number(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// A link to an entry point.
fn site_link(rel: &str, target: String, media_type: &str) -> Link {
    Link { target, rel: rel.to_owned(), params: vec![("type".to_owned(), media_type.to_owned())] }
}
