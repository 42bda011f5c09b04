//! Copies with one file for each resource: how one is opened and read back.

use super::{Effect, FolderKept, FolderSink};
use crate::copy::key;
use crate::copy::partial::Partials;
use crate::copy::path_map::PathMap;
use crate::copy::place::{Backup, CopyFolder, Made};
use crate::copy::probe::FileSystem;
use crate::copy::state::State;
use crate::report::error::Error;
use crate::report::reporter::Reporter;
use crate::report::sinks::Files;
use crate::sink::Sink;
use crate::sink::kept::ReadBack;
use crate::sink::kind::{KeptCopy, Opening, PathKind, SinkKind};
use crate::sink::target::{Target, TargetError, TargetKind};
use abreast_webtypes::Timestamp;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{SystemTime, UNIX_EPOCH};

/// A target without a word is a folder. The folder of a published set has a word.
impl TargetKind for Files {
    const FORMS: &'static [&'static str] = &["set:NAME"];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        let Some(folder) = target.given.set_folder.clone() else {
            return Err(TargetError::SetUnknown(target.place.to_owned()));
        };
        (target.options.folder, target.options.republish) = (folder, true);
        Ok(Self)
    }
}

impl SinkKind for Files {
    fn paths(&self) -> Option<&dyn PathKind> {
        Some(self)
    }

    fn open(
        &self,
        _opening: Opening<'_>,
        _report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        Ok(None)
    }

    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        let kept = FolderKept::open(copy.folder, copy.mirror)?;
        Ok(kept.map(|kept| Box::new(kept) as Box<dyn ReadBack>))
    }
}

impl PathKind for Files {
    fn system(&self, opening: Opening<'_>) -> Result<FileSystem, Error> {
        State::file_system(opening.mirror, opening.folder, opening.options.dry_run)
    }

    fn open(
        &self,
        opening: Opening<'_>,
        map: PathMap,
        system: FileSystem,
    ) -> Result<Arc<dyn Sink>, Error> {
        let Opening { options, mirror, state, folder, epoch } = opening;
        let run =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        // A run that was broken off may have left files under temporary names: writing under the
        // same names removes them.
        let finished = mirror.meta(key::FINISHED)? == mirror.meta(key::EPOCH)?;
        let name = Timestamp::from_seconds(run).to_string().replace(':', "");
        let copy = CopyFolder {
            folder: folder.clone(),
            map,
            system,
            backup: Backup::new(options.backup_dir.clone(), state.clone(), name),
            partials: Partials::new(state.clone()),
            made: Made::default(),
            unnamed: AtomicBool::new(finished),
        };
        let effect = match (options.dry_run, options.folder.is_dir()) {
            (false, _) => Effect::Done,
            (true, true) => Effect::Rehearsed,
            (true, false) => Effect::WithoutFolder,
        };
        let (immutable, republish) = (options.immutable, options.republish);
        Ok(Arc::new(FolderSink { copy: Arc::new(copy), immutable, epoch, republish, effect }))
    }
}
