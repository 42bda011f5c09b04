//! A published set, with everything that belongs to it: projections, the server and the notifier
//! hold it by an `Arc`.

use super::{About, Notifications, SetUrls};
use crate::Representations;
use crate::WatchStatus;
use crate::links::PublishedLinks;
use crate::names::copies::Copies;
use crate::projection::emm::FeedOptions;
use crate::projection::resourcesync::archive::Archive;
use crate::projection::resourcesync::dumps::SetDumps;
use crate::projection::resourcesync_0_1;
use crate::projection::sdshare::SetSnapshots;
use crate::versions::VersionUrls;
use abreast_core::SetId;
use std::sync::Arc;

/// One published set.
#[derive(Debug)]
pub struct PublishedSet {
    /// Its number in the log.
    pub id: SetId,
    /// Its name in URLs.
    pub slug: String,
    /// Its URLs.
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
    /// Its description for people.
    pub about: About,
    /// Its archive, if old lists are kept.
    pub archive: Option<Arc<Archive>>,
    /// Its dumps, if any are made.
    pub dumps: Option<Arc<SetDumps>>,
    /// Its snapshots, if it is a set of entities.
    pub snapshots: Option<Arc<SetSnapshots>>,
    /// What its change feeds state beyond its log.
    pub feeds: FeedOptions,
    /// What its documents of ResourceSync 0.1 state beyond its log.
    pub resourcesync_0_1: resourcesync_0_1::Options,
    /// Its hubs and channels, if it has notifications.
    pub notifications: Option<Notifications>,
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
            archive: None,
            dumps: None,
            snapshots: None,
            feeds: FeedOptions::default(),
            resourcesync_0_1: resourcesync_0_1::Options::default(),
            notifications: None,
        }
    }
}
