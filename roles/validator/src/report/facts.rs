//! Facts about feeds and servers for the report.

use abreast_webtypes::Timestamp;

/// What an Entry Point and its pages state, or another document of a change feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeFeedFacts {
    /// The specification that it follows: `emm-0.1`, `emm-1.0` or `iiif-1`.
    pub profile: &'static str,
    /// Its `summary`.
    pub title: String,
    /// The Entry Point of a page; of an Entry Point, the one that has more.
    pub part_of: Option<String>,
    /// Its `totalItems`.
    pub total: Option<u64>,
    /// Pages that were read.
    pub pages: u64,
    /// `oldest first` or `newest first`, if times show it.
    pub direction: Option<&'static str>,
    /// The time of the newest activity.
    pub newest: Option<Timestamp>,
    /// The types of activities on the page with the newest one, and how many there are.
    pub kinds: Vec<(String, u64)>,
    /// Links to the whole Entity Set.
    pub downloads: Vec<FullDownload>,
    /// Hubs where it can be subscribed to.
    pub hubs: Vec<String>,
    /// How Entity Patches are offered: `inline` or `linked`.
    pub patches: Option<&'static str>,
}

/// What a feed or snapshot of SDShare states of itself and its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedFacts {
    /// Its title.
    pub title: String,
    /// When it changed last; of a snapshot, the last change that it has.
    pub updated: Option<Timestamp>,
    /// When the newest of its entries changed.
    pub newest: Option<Timestamp>,
    /// Media types of what its entries link to, or of the snapshot.
    pub formats: Vec<String>,
    /// Pages that were read.
    pub pages: u64,
    /// Hubs where it can be subscribed to.
    pub hubs: Vec<String>,
    /// Bytes of the first file of a snapshot, as the server states.
    pub size: Option<u64>,
}

/// A link to the whole Entity Set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullDownload {
    /// Its URL.
    pub url: String,
    /// Its media type, if it is stated.
    pub media_type: String,
    /// Up to when it has changes.
    pub updated: Option<Timestamp>,
}

/// Why a server could not be asked: the first of these that occurred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unreachable {
    /// No secure connection can be made.
    Tls,
    /// It wants other credentials.
    Auth,
    /// The network or the server failed temporarily.
    Network,
    /// What was given is still being made, on demand.
    Making,
}

impl Unreachable {
    /// `None`: the server answered.
    pub(crate) fn of(error: &abreast_net::Error) -> Option<Self> {
        match error.status() {
            _ if error.kind() == abreast_net::ErrorKind::Tls => Some(Self::Tls),
            Some(401 | 403 | 407) => Some(Self::Auth),
            _ => error.is_transient().then_some(Self::Network),
        }
    }
}
