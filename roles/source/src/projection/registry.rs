//! The projections: one line for each, in the order in which they are asked for a document.

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

/// The projections besides pages and ResourceSync 1.1.
fn optional() -> Vec<Box<dyn Projection>> {
    vec![Box::<SdShare>::default(), Box::<ChangeFeeds>::default(), Box::<ResourceSync01>::default()]
}

impl Publisher {
    /// A publisher of these sets, in ResourceSync and as pages; rendered documents are kept in
    /// `cache_folder`, from which those of an earlier process are removed first.
    ///
    /// # Errors
    /// When the folder cannot be made, read or cleared.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        urls: SourceUrls,
        sets: impl IntoIterator<Item = impl Into<Arc<PublishedSet>>>,
        cache_folder: PathBuf,
    ) -> io::Result<Self> {
        // The descriptions of ResourceSync name the pages: in a static site the pages are written
        // first.
        let projections: Vec<Box<dyn Projection>> =
            vec![Box::new(Pages), Box::<ResourceSync>::default()];
        Self::of(log, urls, sets, projections, cache_folder)
    }

    /// With the projections of all other protocols, for a server.
    #[must_use]
    pub fn with_all_projections(self) -> Self {
        optional().into_iter().fold(self, Self::with_boxed)
    }

    /// With the projections of those other protocols that a static site can publish.
    #[must_use]
    pub fn with_static_projections(self) -> Self {
        let projections = optional().into_iter().filter(|projection| projection.is_static());
        projections.fold(self, Self::with_boxed)
    }
}
