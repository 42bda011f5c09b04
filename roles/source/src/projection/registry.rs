//! List of the projections, in the order in which they are tried for a document.

use super::emm::ChangeFeeds;
use super::pages::Pages;
use super::resourcesync::ResourceSync;
use super::resourcesync_0_1::ResourceSync01;
use super::sdshare::SdShare;
use crate::publish::{Projection, PublishedSet, Publisher, SourceUrls};
use abreast_core::ChangeLog;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// All projections except pages and ResourceSync 1.1.
fn optional() -> Vec<Box<dyn Projection>> {
    vec![Box::<SdShare>::default(), Box::<ChangeFeeds>::default(), Box::<ResourceSync01>::default()]
}

/// Pages and ResourceSync 1.1. The descriptions of ResourceSync have links to the pages, so a static
/// site writes the pages first.
fn usual() -> Vec<Box<dyn Projection>> {
    vec![Box::new(Pages), Box::<ResourceSync>::default()]
}

impl Publisher {
    /// Creates a publisher of these sets, with ResourceSync and pages. Rendered documents are
    /// cached in `cache_folder`; documents of an earlier process are removed from it first.
    ///
    /// # Errors
    /// The folder cannot be created, read or cleared.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        cache_folder: PathBuf,
    ) -> io::Result<Self> {
        Self::of(log, urls, sets, usual(), cache_folder)
    }

    /// Adds the projections of all other protocols, for a server.
    #[must_use]
    pub fn with_all_projections(self) -> Self {
        optional().into_iter().fold(self, Self::with_boxed)
    }

    /// Creates a publisher of other sets for the same server, with all projections, the same log, URLs
    /// and cache. Cached documents remain for sets that both publishers have.
    #[must_use]
    pub fn with_sets(&self, sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>) -> Self {
        self.successor(sets, usual()).with_all_projections()
    }

    /// Adds the projections of other protocols that a static site can publish.
    #[must_use]
    pub fn with_static_projections(self) -> Self {
        let projections = optional().into_iter().filter(|projection| projection.is_static());
        projections.fold(self, Self::with_boxed)
    }
}
