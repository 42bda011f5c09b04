//! A published set, with everything that belongs to it: projections, the server and the notifier
//! hold it by an `Arc`.

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

/// One published set, with its URLs and options.
#[derive(Debug)]
pub struct PublishedSet {
    /// Its number in the log.
    pub id: SetId,
    /// The name of the set in URLs.
    pub slug: String,
    /// The URLs of the set and its documents.
    pub urls: SetUrls,
    /// The bytes of its resources and of their earlier versions.
    pub representations: Representations,
    /// The state of the watch of its folder; of a set without a folder, one that never changes.
    pub watch: Arc<WatchStatus>,
    /// The copies of other Sources in its folder.
    pub copies: Copies,
    /// Links of the set as a whole.
    pub links: PublishedLinks,
    /// The addresses of earlier versions of its resources, if they are kept.
    pub versions: Option<VersionUrls>,
    /// The description of the set, for people.
    pub about: About,
    /// Its hubs and channels, if it has notifications.
    pub notifications: Option<Notifications>,
    /// What the projections keep with it: its archive, its dumps, its snapshots, their options.
    pub parts: Parts,
}

impl PublishedSet {
    /// A set without any of the optional parts.
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
        }
    }

    /// With this part of a projection, if there is one, in place of an earlier one of the same type.
    #[must_use]
    pub fn with<T: Send + Sync + 'static>(mut self, part: Option<Arc<T>>) -> Self {
        if let Some(part) = part {
            self.parts.insert(part);
        }
        self
    }

    /// The part of this type, if there is one.
    pub fn part<T: Send + Sync + 'static>(&self) -> Option<&Arc<T>> {
        self.parts.get()
    }
}
