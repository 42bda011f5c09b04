//! A published set and its options. Projections, the server and the notifier share the set by an
//! `Arc`.

use super::about::About;
use super::notifications::Notifications;
use super::parts::Parts;
use super::representations::Representations;
use crate::links::PublishedLinks;
use crate::names::copies::Copies;
use crate::names::urls::SetUrls;
use crate::scan::status::WatchStatus;
use crate::versions::VersionUrls;
use abreast_core::SetId;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of a set with its options, or of all sets of a publisher: documents are cached for one edition.
static EDITIONS: AtomicU64 = AtomicU64::new(1);

pub(super) fn next_edition() -> u64 {
    EDITIONS.fetch_add(1, Ordering::Relaxed)
}

/// One published set, with its URLs and options.
#[derive(Debug)]
pub struct PublishedSet {
    /// Number of the set in the log.
    pub id: SetId,
    /// The name of the set in URLs.
    pub slug: String,
    /// The URLs of the set and its documents.
    pub urls: SetUrls,
    /// Bytes of the resources and of their earlier versions.
    pub representations: Representations,
    /// State of the folder's watch; never changes if the set does not have a folder.
    pub watch: Arc<WatchStatus>,
    /// Copies of other Sources in the folder of the set.
    pub copies: Copies,
    /// Links of the set as a whole.
    pub links: PublishedLinks,
    /// URLs of earlier versions of resources, if earlier versions are stored.
    pub versions: Option<VersionUrls>,
    /// Description of the set, for people.
    pub about: About,
    /// Hubs and channels, if changes are notified.
    pub notifications: Option<Notifications>,
    /// Data of projections for the set: archive, dumps, snapshots, and their options.
    pub parts: Parts,
    /// Differs between two values for the same set, such as before and after a change of its
    /// options.
    pub edition: u64,
}

impl PublishedSet {
    /// Creates a set without optional parts.
    pub fn new(id: SetId, slug: impl Into<String>, urls: SetUrls) -> Self {
        Self {
            id,
            slug: slug.into(),
            urls,
            representations: Representations::elsewhere(),
            watch: Arc::default(),
            copies: Copies::default(),
            links: PublishedLinks::default(),
            versions: None,
            about: About::default(),
            notifications: None,
            parts: Parts::default(),
            edition: next_edition(),
        }
    }

    /// Adds this part of a projection, if there is one; replaces a part of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, part: Option<Arc<T>>) -> Self {
        if let Some(part) = part {
            self.parts.insert(part);
        }
        self
    }

    /// Returns the part of this type, if there is one.
    pub fn part<T: Send + Sync + 'static>(&self) -> Option<&Arc<T>> {
        self.parts.get()
    }
}
