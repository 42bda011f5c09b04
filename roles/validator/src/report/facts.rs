//! Facts about feeds and servers for the report.

use abreast_webtypes::Timestamp;

/// Facts about a change feed, from its Entry Point and pages, or from another document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangeFeedFacts {
    /// Specification that the feed follows: `emm-0.1`, `emm-1.0` or `iiif-1`.
    pub profile: &'static str,
    /// Title of the feed, from `summary`.
    pub title: String,
    /// For a page, its Entry Point; for an Entry Point, the feed of which this one is a view.
    pub part_of: Option<String>,
    /// Number of activities according to `totalItems`.
    pub total: Option<u64>,
    /// Number of pages that were read.
    pub pages: u64,
    /// Order of activities, `oldest first` or `newest first`, if their times show the order.
    pub direction: Option<&'static str>,
    /// Time of the newest activity in the feed.
    pub newest: Option<Timestamp>,
    /// Types of activities on the page with the newest one, each with the number of activities.
    pub kinds: Vec<(String, u64)>,
    /// Links for downloading the whole Entity Set.
    pub downloads: Vec<FullDownload>,
    /// Hubs that accept subscriptions to the feed.
    pub hubs: Vec<String>,
    /// How the feed provides Entity Patches: `inline` or `linked`.
    pub patches: Option<&'static str>,
}

/// Facts about a feed or snapshot of SDShare and its entries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FeedFacts {
    /// Title of the feed or snapshot.
    pub title: String,
    /// Time of the last change to the feed; for a snapshot, of the last change that it contains.
    pub updated: Option<Timestamp>,
    /// Time of the newest entry's change.
    pub newest: Option<Timestamp>,
    /// Media types of the targets of the entries' links, or of the snapshot.
    pub formats: Vec<String>,
    /// Number of pages that were read.
    pub pages: u64,
    /// Hubs that accept subscriptions to the feed.
    pub hubs: Vec<String>,
    /// Size in bytes of the first file of a snapshot, according to the server.
    pub size: Option<u64>,
}

/// A link for downloading the whole Entity Set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FullDownload {
    /// URL of the whole Entity Set.
    pub url: String,
    /// Media type of the download; empty if the link does not have one.
    pub media_type: String,
    /// Time of the last change that the download contains.
    pub updated: Option<Timestamp>,
}

/// Why a server did not answer. If there are several reasons, the first in this order is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Unreachable {
    /// A secure connection cannot be established.
    Tls,
    /// The server requires other credentials.
    Auth,
    /// The network or the server failed temporarily.
    Network,
    /// The server still makes the given package or snapshot on demand.
    Making,
}

impl Unreachable {
    /// Reason for an error; `None` if the server answered.
    pub(crate) fn of(error: &abreast_net::Error) -> Option<Self> {
        match error.status() {
            _ if error.kind() == abreast_net::ErrorKind::Tls => Some(Self::Tls),
            _ if error.kind() == abreast_net::ErrorKind::Challenge => Some(Self::Auth),
            Some(401 | 403 | 407) => Some(Self::Auth),
            _ => error.is_transient().then_some(Self::Network),
        }
    }
}
