//! The projections that every publisher has.

use super::pages::Pages;
use super::resourcesync::ResourceSync;
use crate::publish::{Projection, PublishedSet, Publisher, SourceUrls};
use abreast_core::ChangeLog;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

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
}
