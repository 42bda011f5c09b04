//! The kinds of sinks: how a copy of each kind is opened, read back and repaired.
//!
//! The options of a kind are in `report/sinks.rs`, with its properties ([`Facts`]). Its code is in one
//! file or folder beside this file, with the implementation of [`SinkKind`].
//!
//! [`Facts`]: crate::report::sinks::Facts

use super::Sink;
use super::dry::DrySink;
use super::kept::ReadBack;
use crate::copy::key;
use crate::copy::partial::Partials;
use crate::copy::path_map::PathMap;
use crate::copy::probe::FileSystem;
use crate::copy::state_folder::StateFolder;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
#[cfg(feature = "s3")]
use crate::report::sinks::ObjectsOptions;
use crate::report::sinks::{
    Files, GraphStoreOptions, LabelsOptions, LinesOptions, NQuadsOptions, OxigraphOptions,
    PushOptions, SinkOptions, SparqlOptions, WarcOptions,
};
#[cfg(not(feature = "s3"))]
use crate::sink::target::NoObjects;
use crate::sink::target::{TargetKind, TargetRow};
use abreast_folder::Folder;
use abreast_store::mirror::{Mirror, Segment};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Key of the kind of copy in the database.
const KIND: &str = "sink";

/// One kind of copy.
pub(crate) trait SinkKind {
    /// Refuses a target that cannot be written, before a state is made for it.
    fn check_target(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Refuses the state of a copy in another place, since resources that are in the other place would
    /// be deleted here; `folder` contains the state.
    fn check_state(&self, _mirror: &Mirror, _folder: &Path) -> Result<(), Error> {
        Ok(())
    }

    /// How URIs are mapped to paths; `None` for a kind that stores resources by their URIs.
    fn paths(&self) -> Option<&dyn PathKind> {
        None
    }

    /// Opens the sink, and repairs what a killed run left; `None` for a kind with paths, which is opened
    /// by [`PathKind::open`].
    fn open(
        &self,
        opening: Opening<'_>,
        report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error>;

    /// Opens what is stored; `None` before the first run, and for a kind that cannot be read.
    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error>;

    /// The folder of the files that contain several resources each; `None` for other kinds.
    fn segments(&self, _folder: &Path) -> Option<PathBuf> {
        None
    }

    /// The segments that lost their end or are missing, and the bytes of each that can be used.
    fn lost_ends(&self, folder: &Path, mirror: &Mirror) -> Result<Vec<(Segment, u64)>, Error> {
        match self.segments(folder) {
            Some(segments) => short_segments(&segments, mirror),
            None => Ok(Vec::new()),
        }
    }

    /// Removes from the state what a segment contained beyond these bytes.
    fn forget_end(
        &self,
        copy: &KeptCopy<'_>,
        (segment, length): (&Segment, u64),
    ) -> Result<(), Error> {
        Ok(copy.mirror.cut_segment(segment.number, length)?)
    }
}

/// A kind of copy that maps URIs to paths. It is opened after the first documents were read, since
/// the base of the paths can depend on the listed URIs.
pub(crate) trait PathKind {
    /// The rules for names.
    fn system(&self, opening: Opening<'_>) -> Result<FileSystem, Error>;

    /// Opens the sink.
    fn open(
        &self,
        opening: Opening<'_>,
        map: PathMap,
        system: FileSystem,
    ) -> Result<Arc<dyn Sink>, Error>;
}

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
    /// Opens a sink without paths at the start of a run, which repairs what a killed run left even if
    /// nothing has changed. The sink of a dry run stores nothing, since the state alone shows what a run
    /// would do.
    pub(crate) fn packed(self, report: &mut Reporter<'_>) -> Result<Option<Arc<dyn Sink>>, Error> {
        let Self { options, mirror, state, .. } = self;
        let kind = options.sink.kind();
        self.check_kind()?;
        kind.check_state(mirror, &options.folder)?;
        if options.dry_run {
            return Ok(kind.paths().is_none().then(|| self.dry()));
        }
        if options.baseline {
            let net = options.net_options();
            let copy = KeptCopy { folder: &options.folder, state: state.path(), mirror, net };
            forget_lost(kind, &copy)?;
        }
        kind.open(self, report)
    }

    /// A sink that stores nothing.
    pub(crate) fn dry(self) -> Arc<dyn Sink> {
        let partials = Partials::new(self.state.clone());
        Arc::new(DrySink { root: self.folder.root(), partials, epoch: self.epoch })
    }

    fn check_kind(self) -> Result<(), Error> {
        let asked = self.options.sink.facts().word();
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

/// A copy to be read back.
pub(crate) struct KeptCopy<'c> {
    /// The folder of its files.
    pub(crate) folder: &'c Path,
    /// The folder of its state.
    pub(crate) state: &'c Path,
    pub(crate) mirror: &'c Mirror,
    /// For targets that are reached by HTTP.
    pub(crate) net: abreast_net::Options,
}

impl SinkOptions {
    /// The code of the kind.
    pub(crate) const fn kind(&self) -> &dyn SinkKind {
        match self {
            Self::Folder => &Files,
            Self::Warc(options) => options,
            #[cfg(feature = "s3")]
            Self::Objects(options) => options,
            Self::Lines(options) => options,
            Self::NQuads(options) => options,
            Self::Labels(options) => options,
            Self::Oxigraph(options) => options,
            Self::Sparql(options) => options,
            Self::GraphStore(options) => options,
            Self::Push(options) => options,
        }
    }

    /// The kinds of targets, in the order of messages.
    pub(crate) const fn targets() -> &'static [TargetRow] {
        const {
            &[
                TargetRow::of::<WarcOptions>(|target| TargetKind::read(target).map(Self::Warc)),
                TargetRow::of::<NQuadsOptions>(|target| TargetKind::read(target).map(Self::NQuads)),
                TargetRow::of::<LabelsOptions>(|target| TargetKind::read(target).map(Self::Labels)),
                TargetRow::of::<OxigraphOptions>(|target| {
                    TargetKind::read(target).map(Self::Oxigraph)
                }),
                TargetRow::of::<SparqlOptions>(|target| TargetKind::read(target).map(Self::Sparql)),
                TargetRow::of::<GraphStoreOptions>(|target| {
                    TargetKind::read(target).map(Self::GraphStore)
                }),
                TargetRow::of::<PushOptions>(|target| TargetKind::read(target).map(Self::Push)),
                TargetRow::of::<Files>(|target| Files::read(target).map(|_| Self::Folder)),
                #[cfg(feature = "s3")]
                TargetRow::of::<ObjectsOptions>(|target| {
                    TargetKind::read(target).map(Self::Objects)
                }),
                #[cfg(not(feature = "s3"))]
                TargetRow::of::<NoObjects>(|target| NoObjects::read(target).map(|_| Self::Folder)),
                TargetRow::of::<LinesOptions>(|target| TargetKind::read(target).map(Self::Lines)),
            ]
        }
    }

    /// Whether URIs are mapped to paths.
    pub(crate) fn has_paths(&self) -> bool {
        self.kind().paths().is_some()
    }

    /// The options of a kind whose files are all in the copy's folder, by its name in the state. Reading
    /// such a copy back depends on no option.
    pub(crate) fn of_files(word: &str) -> Option<Self> {
        let kinds = [
            Self::Folder,
            Self::Warc(WarcOptions::default()),
            Self::NQuads(NQuadsOptions::default()),
        ];
        kinds.into_iter().find(|kind| kind.facts().word() == word)
    }
}

/// Opens what a run or an audit with these options compares.
pub(crate) fn kept_of(
    options: &SyncOptions,
    state: &Path,
    mirror: &Mirror,
) -> Result<Option<Box<dyn ReadBack>>, Error> {
    let copy = KeptCopy { folder: &options.folder, state, mirror, net: options.net_options() };
    options.sink.kind().kept(&copy)
}

/// Removes from the state what files of a copy have lost, before a comparison that fetches it again.
pub(crate) fn forget_lost(kind: &dyn SinkKind, copy: &KeptCopy<'_>) -> Result<(), Error> {
    let cut = kind.lost_ends(copy.folder, copy.mirror)?;
    if cut.is_empty() {
        return Ok(());
    }
    copy.mirror.begin()?;
    for (segment, length) in &cut {
        kind.forget_end(copy, (segment, *length))?;
    }
    Ok(copy.mirror.commit()?)
}

/// Files that lost their end, or are missing, and their present lengths.
pub(crate) fn short_segments(folder: &Path, mirror: &Mirror) -> Result<Vec<(Segment, u64)>, Error> {
    let with_length = |segment: Segment| {
        let length = std::fs::metadata(folder.join(&segment.name));
        let length = length.map_or(0, |metadata| metadata.len());
        (length < segment.length).then_some((segment, length))
    };
    Ok(mirror.segments()?.into_iter().filter_map(with_length).collect())
}
