//! The sets of a running Source, each with its settings, its watch and its published parts.

use crate::config::SetConfig;
use crate::program::progress::Progress;
use crate::store::open_set::SetOpener;
use abreast_server::ServedSet;
use abreast_source::origin::rdf::RdfWatch;
use abreast_source::versions::KeptSet;
use abreast_source::watch::Watch;
use anyhow::Result;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Pause between two messages while the sets are opened.
const LOG_PAUSE: Duration = Duration::from_secs(2);

/// A set that is served, and watched.
pub(super) struct RunningSet {
    pub(super) config: SetConfig,
    pub(super) served: Arc<ServedSet>,
    /// The rule for the removal of old versions, if the set has versions.
    pub(super) versions: Option<KeptSet>,
    /// The set was stopped and cannot be opened: documents are served, and no change is recorded.
    pub(super) is_stopped: bool,
    watch: Option<Watch>,
    rdf: Option<RdfWatch>,
    /// Shows scans, dumps and snapshots as long as the set is served.
    _progress: [Progress; 3],
}

impl RunningSet {
    /// Opens a set, and starts to watch it; `former` is the same set with other settings, stopped.
    ///
    /// # Errors
    /// The log, the folder or the archive cannot be opened, or the links are wrong.
    pub(super) fn open(
        opener: &SetOpener<'_>,
        config: SetConfig,
        former: Option<&Self>,
    ) -> Result<Self> {
        let work = tracing::error_span!("work", set = config.slug);
        let _entered = work.enter();
        let opened = opener.open(config.clone(), former.map(|set| &*set.served))?;
        Ok(Self {
            config,
            served: Arc::new(opened.served),
            versions: opened.versions,
            is_stopped: false,
            watch: opened.watch,
            rdf: opened.rdf,
            _progress: opened.progress,
        })
    }

    pub(super) fn slug(&self) -> &str {
        &self.config.slug
    }

    /// Requests that the watch ends, and returns at once. The watch may be in the middle of a large file.
    pub(super) fn begin_stop(&self) {
        self.watch.iter().for_each(Watch::begin_stop);
        self.rdf.iter().for_each(RdfWatch::begin_stop);
    }

    /// Ends the watch and the making of files. Complete files can still be read.
    pub(super) fn stop(&mut self) {
        self.begin_stop();
        let published = &self.served.published;
        if let Some(dumps) = published.dumps() {
            dumps.stop();
        }
        if let Some(snapshots) = published.snapshots() {
            snapshots.stop();
        }
        if let Some(watch) = self.watch.take() {
            watch.stop();
        }
        drop(self.rdf.take());
        self.is_stopped = true;
    }
}

/// Opens all sets, in their order.
///
/// # Errors
/// A set cannot be opened.
pub(super) fn open_all(opener: &SetOpener<'_>, configs: Vec<SetConfig>) -> Result<Vec<RunningSet>> {
    let mut sets = Vec::new();
    let total = configs.len();
    let mut logged = Instant::now();
    for (number, config) in configs.into_iter().enumerate() {
        if logged.elapsed() >= LOG_PAUSE {
            logged = Instant::now();
            tracing::info!("opening the sets: {number} of {total}");
        }
        sets.push(RunningSet::open(opener, config, None)?);
    }
    Ok(sets)
}
