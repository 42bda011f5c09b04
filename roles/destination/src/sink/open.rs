//! Opening the sink of a run, once its place is known. A copy has the same kind of sink in every
//! run.

use super::dry::DrySink;
use super::folder::{Effect, FolderSink};
use super::lines::LinesSink;
use super::rdf::label_table::LabelsSink;
use super::rdf::nquads::NQuadsSink;
use super::rdf::remote::{Remote, RemoteSink};
use super::warc::WarcSink;
use crate::copy::key;
use crate::copy::partial::Partials;
#[cfg(feature = "s3")]
use crate::copy::path_map::PathMap;
use crate::copy::place::CopyFolder;
use crate::copy::state_folder::StateFolder;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::report::sinks::SinkOptions;
use crate::sink::Sink;
use crate::sink::lost::forget_lost;
use abreast_folder::Folder;
use abreast_store::mirror::Mirror;
use std::sync::Arc;

/// Key of the kind of copy in the database.
const KIND: &str = "sink";
/// Key of the place of the objects in the database.
#[cfg(feature = "s3")]
const STORE: &str = "sink-store";

/// The context in which a sink is opened.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'o> {
    pub(crate) options: &'o SyncOptions,
    pub(crate) mirror: &'o Mirror,
    pub(crate) state: &'o StateFolder,
    pub(crate) folder: &'o Folder,
    pub(crate) epoch: i64,
}

impl Opening<'_> {
    /// Opens a sink that is not a folder. Such a sink needs no base, and is opened first, so that
    /// leftovers of a killed run are repaired even if there is nothing to do. A dry run does not
    /// open the sink, and predicts its actions from the database.
    pub(crate) fn packed(self, report: &mut Reporter<'_>) -> Result<Option<Arc<dyn Sink>>, Error> {
        let Self { options, mirror, state, epoch, .. } = self;
        self.check_kind()?;
        #[cfg(feature = "s3")]
        self.check_store()?;
        if options.dry_run {
            let is_packed = !options.sink.is_folder() && options.sink.key_rules().is_none();
            return Ok(is_packed.then(|| self.dry()));
        }
        if options.baseline {
            forget_lost(options.sink.word(), (&options.folder, state.path()), mirror)?;
        }
        Ok(match &options.sink {
            // Opened when the base is known.
            SinkOptions::Folder => None,
            #[cfg(feature = "s3")]
            SinkOptions::Objects(_) => None,
            SinkOptions::Warc(warc) => {
                let adopted = WarcSink::adopted(mirror)?;
                let sink =
                    WarcSink::open(&options.folder, state, mirror, warc, epoch, &options.url)?;
                if let (None, Some(count)) =
                    (adopted, WarcSink::adopted(mirror)?.filter(|count| *count > 0))
                {
                    let message = format!(
                        "the state was missing; resources found in the archive, which are kept: {count}"
                    );
                    report.notice("state.missing", &options.url, &message);
                }
                Some(Arc::new(sink))
            }
            SinkOptions::Lines(lines) => Some(Arc::new(LinesSink::open(state, lines, epoch)?)),
            SinkOptions::NQuads(nquads) => {
                let sink = NQuadsSink::open(&options.folder, state, mirror, nquads, epoch)?;
                if let Some((damaged, message)) = sink.found() {
                    report.summary.damaged += damaged;
                    report.notice("local.restored", &options.url, &message);
                }
                Some(Arc::new(sink))
            }
            SinkOptions::Labels(labels) => Some(Arc::new(LabelsSink::open(
                state,
                mirror,
                (labels, &options.replaced_by),
                epoch,
                options.baseline,
            )?)),
            sink @ (SinkOptions::Oxigraph(_)
            | SinkOptions::Sparql(_)
            | SinkOptions::GraphStore(_)
            | SinkOptions::Push(_)) => {
                let Some(remote) = Remote::of(sink, &options.folder) else { return Ok(None) };
                let open = (state, mirror, options.baseline);
                Some(Arc::new(RemoteSink::open(&remote, options.net_options(), open, epoch)?))
            }
        })
    }

    /// The folder as a sink.
    pub(crate) fn folder(self, copy: CopyFolder) -> Arc<dyn Sink> {
        let Self { options, epoch, .. } = self;
        let effect = match (options.dry_run, options.folder.is_dir()) {
            (false, _) => Effect::Done,
            (true, true) => Effect::Rehearsed,
            (true, false) => Effect::WithoutFolder,
        };
        let (immutable, republish) = (options.immutable, options.republish);
        Arc::new(FolderSink { copy: Arc::new(copy), immutable, epoch, republish, effect })
    }

    fn dry(self) -> Arc<dyn Sink> {
        let partials = Partials::new(self.state.clone());
        Arc::new(DrySink { root: self.folder.root(), partials, epoch: self.epoch })
    }

    /// A store of objects as a sink; a dry run opens none.
    #[cfg(feature = "s3")]
    pub(crate) fn objects(self, map: &PathMap) -> Result<Option<Arc<dyn Sink>>, Error> {
        if self.options.dry_run {
            return Ok(Some(self.dry()));
        }
        let SinkOptions::Objects(options) = &self.options.sink else { return Ok(None) };
        let sink = super::objects::ObjectsSink::open(options, self.state, map.clone(), self.epoch)?;
        Ok(Some(Arc::new(sink)))
    }

    /// A copy belongs to a single store: its resources were never stored in another one, and must
    /// not be deleted there.
    #[cfg(feature = "s3")]
    fn check_store(self) -> Result<(), Error> {
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

    fn check_kind(self) -> Result<(), Error> {
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
                Err(Error::new("sink.kind", ExitCode::Usage, message)
                    .with_help("use another place for the other kind"))
            }
            Some(_) => Ok(()),
            None => Ok(self.mirror.set_meta(KIND, Some(asked))?),
        }
    }
}
