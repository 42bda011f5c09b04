//! Which sink does a run work with? Opened once its place is known, the same kind at every run.

use super::dry::DrySink;
use super::folder::{Effect, FolderSink};
use super::lines::LinesSink;
use super::options::SinkOptions;
use super::warc::WarcSink;
use crate::error::{Error, ExitCode};
use crate::partial::Partials;
#[cfg(feature = "s3")]
use crate::path_map::PathMap;
use crate::place::Ground;
use crate::session::Session;
use crate::state::key;
use abreast_folder::Folder;
use std::sync::Arc;

/// What kind of copy the state is of.
const KIND: &str = "sink";
/// Where the objects are that the state knows.
#[cfg(feature = "s3")]
const STORE: &str = "sink-store";

impl Session<'_> {
    /// A copy that is no folder needs no base, and is opened first: what a killed run left is mended whatever there is
    /// to do. A dry run opens none: what it would do is judged by the state.
    pub(crate) fn open_packed_sink(&mut self, folder: &Folder) -> Result<(), Error> {
        self.check_kind()?;
        #[cfg(feature = "s3")]
        self.check_store()?;
        if self.options.dry_run {
            if matches!(self.options.sink, SinkOptions::Warc(_) | SinkOptions::Lines(_)) {
                self.open_dry_sink(folder);
            }
            return Ok(());
        }
        match &self.options.sink {
            // Opened when the base is known.
            SinkOptions::Folder => {}
            #[cfg(feature = "s3")]
            SinkOptions::Objects(_) => {}
            SinkOptions::Warc(options) => {
                let (folder, epoch) = (&self.options.folder, self.rules.epoch);
                let adopted = WarcSink::adopted(&self.mirror)?;
                let sink = WarcSink::open(folder, &self.state, &self.mirror, options, epoch, &self.options.url)?;
                self.sink = Some(Arc::new(sink));
                if let (None, Some(count)) = (adopted, WarcSink::adopted(&self.mirror)?.filter(|count| *count > 0)) {
                    let message =
                        format!("the state was missing; resources found in the archive, which are kept: {count}");
                    self.report.notice("state.missing", &self.options.url, &message);
                }
            }
            SinkOptions::Lines(options) => {
                self.sink = Some(Arc::new(LinesSink::open(&self.state, options, self.rules.epoch)?));
            }
        }
        Ok(())
    }

    /// The folder as a sink.
    pub(crate) fn open_folder_sink(&mut self, ground: Ground) {
        let (immutable, epoch, republish) = (self.rules.immutable, self.rules.epoch, self.options.republish);
        let effect = match (self.options.dry_run, self.options.folder.is_dir()) {
            (false, _) => Effect::Done,
            (true, true) => Effect::Rehearsed,
            (true, false) => Effect::WithoutFolder,
        };
        self.sink = Some(Arc::new(FolderSink { ground: Arc::new(ground), immutable, epoch, republish, effect }));
    }

    fn open_dry_sink(&mut self, folder: &Folder) {
        let (partials, epoch) = (Partials::new(self.state.clone()), self.rules.epoch);
        self.sink = Some(Arc::new(DrySink { root: folder.root(), partials, epoch }));
    }

    /// A store of objects as a sink; a dry run opens none.
    #[cfg(feature = "s3")]
    pub(crate) fn open_object_sink(&mut self, map: &PathMap, folder: &Folder) -> Result<(), Error> {
        if self.options.dry_run {
            self.open_dry_sink(folder);
        } else if let SinkOptions::Objects(options) = &self.options.sink {
            let sink = super::objects::ObjectsSink::open(options, &self.state, map.clone(), self.rules.epoch)?;
            self.sink = Some(Arc::new(sink));
        }
        Ok(())
    }

    /// What the state knows to be in one store was never put into another, and must not be deleted there.
    #[cfg(feature = "s3")]
    fn check_store(&self) -> Result<(), Error> {
        let SinkOptions::Objects(options) = &self.options.sink else { return Ok(()) };
        let asked = options.url.trim_end_matches('/');
        match self.mirror.meta(STORE)? {
            Some(known) if known != asked => {
                let message = format!(
                    "the state in {} is of the copy in {known}, not of one in {asked}",
                    self.options.folder.display()
                );
                Err(Error::new("sink.kind", ExitCode::Usage, message)
                    .with_help("give each copy a state of its own (`--state`)"))
            }
            Some(_) => Ok(()),
            None => Ok(self.mirror.set_meta(STORE, Some(asked))?),
        }
    }

    fn check_kind(&self) -> Result<(), Error> {
        let asked = self.options.sink.word();
        let known = match self.mirror.meta(KIND)? {
            Some(kind) => Some(kind),
            None => self.mirror.meta(key::EPOCH)?.map(|_| "folder".to_owned()),
        };
        match known {
            Some(kind) if kind != asked => {
                let message = format!(
                    "{} was begun as a copy of the kind `{kind}`, not `{asked}`",
                    self.options.folder.display()
                );
                Err(Error::new("sink.kind", ExitCode::Usage, message).with_help("use another place for the other kind"))
            }
            Some(_) => Ok(()),
            None => Ok(self.mirror.set_meta(KIND, Some(asked))?),
        }
    }
}
