//! The folders of the copies of all sets, and their lock.

use super::error::SetsError;
use super::record::{self, SetFolder};
use crate::copy::names::{DATABASE, SETS_RECORD as RECORD};
use crate::copy::path_map::STATE_FOLDER;
use crate::copy::provisional::NewFolders;
use crate::copy::state::{check_places, lock};
use crate::read::source_sets::source_sets;
use crate::report::events::{Event, Observer, Problem};
use crate::report::options::SyncOptions;
use crate::run::check::CopyPlace;
use abreast_folder::{Dir, Folder, Locked};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

const LOCK: &[u8] = b"sets.lock";

/// The copies, each with the options of its runs.
pub(super) type Copies = Vec<(SetFolder, SyncOptions)>;

/// The folder that contains the record of all copies.
fn common_state(options: &SyncOptions) -> PathBuf {
    match (&options.sink, &options.state) {
        // A stream or an object store has no folder of files, so `folder` contains its database.
        (sink, None) if sink.is_local() => options.folder.join(STATE_FOLDER),
        (_, Some(state)) => state.clone(),
        (_, None) => options.folder.clone(),
    }
}

/// The folder of the copies' databases if it is outside the copies and the options do not contain it.
pub(super) fn states_elsewhere(options: &SyncOptions) -> Option<PathBuf> {
    let is_unnamed = options.state.is_none() && options.sink.is_local();
    let state = is_unnamed.then(|| state_in(&options.folder)).flatten()?;
    (state != common_state(options) && state != options.folder).then_some(state)
}

/// Locks the copies for this run, and finds which copies there are.
pub(super) fn open(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<(Option<Locked>, Copies), SetsError> {
    if options.dry_run {
        return Ok((None, place(options, observer, cancel)?));
    }
    check_places(options)?;
    if let Some(state) = states_elsewhere(options) {
        return Err(SetsError::StatesElsewhere(options.folder.clone(), state));
    }
    let state = common_state(options);
    let new =
        NewFolders::make(&state).map_err(|cause| SetsError::FolderNotMade(state.clone(), cause))?;
    let dir = open_state(&state)?;
    let had_lock = dir.stat(LOCK).is_ok();
    let lock = lock(&dir, LOCK, &options.folder)?;
    match place(options, observer, cancel) {
        Ok(copies) => Ok((Some(lock), copies)),
        Err(error) => {
            // Nothing was copied: the files created for the copy are removed.
            if !had_lock {
                let _ = dir.unlink(LOCK);
            }
            new.remove();
            Err(error)
        }
    }
}

fn open_state(state: &Path) -> Result<Dir, SetsError> {
    let opened = Folder::open(state).map(|folder| folder.root());
    opened.map_err(|cause| SetsError::FolderNotOpened(state.to_owned(), cause))
}

/// The copies of all sets in a folder, each with the name of its folder; empty for any other
/// folder.
///
/// # Errors
/// The record of the copies cannot be read, or is damaged.
pub fn copies_of_sets(dir: &Path) -> Result<Vec<(String, PathBuf)>, SetsError> {
    let Some(state) = state_in(dir) else { return Ok(Vec::new()) };
    let sets = record::read(&state)?.sets.into_iter();
    Ok(sets.map(|place| (place.folder.clone(), dir.join(place.folder))).collect())
}

/// Locks the copies of all sets in a folder, so that no other run uses them; `None` for any other
/// folder.
///
/// # Errors
/// Another run uses the copies, or the folder with the lock cannot be opened.
pub fn lock_sets(dir: &Path) -> Result<Option<Locked>, SetsError> {
    let Some(state) = state_in(dir) else { return Ok(None) };
    Ok(Some(lock(&open_state(&state)?, LOCK, dir)?))
}

/// The folder with the record: `dir`, `.abreast` in `dir`, or another folder, which is found
/// through a copy in `dir`.
fn state_in(dir: &Path) -> Option<PathBuf> {
    let has_record = |state: &PathBuf| state.join(RECORD).is_file();
    if let Some(state) = [dir.join(STATE_FOLDER), dir.to_owned()].into_iter().find(has_record) {
        return Some(state);
    }
    let folders = std::fs::read_dir(dir)
        .ok()?
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut states = folders
        .filter_map(|entry| CopyPlace::find(&entry.path())?.state.parent().map(Path::to_owned));
    states.find(has_record)
}

/// Requests the list of the Source's sets, and assigns a folder to each set.
pub(super) fn place(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Copies, SetsError> {
    let state = common_state(options);
    if state.join(DATABASE).exists() {
        return Err(SetsError::OneSet(options.folder.clone()));
    }
    let found = source_sets(options, cancel)?;
    let known = record::read(&state)?;
    let record = known.with(&found);
    let listed: HashSet<&str> = found.iter().map(|set| set.url.as_str()).collect();
    let (here, gone): (Vec<SetFolder>, Vec<SetFolder>) = record
        .sets
        .iter()
        .cloned()
        .partition(|place| listed.contains(place.capability_list.as_str()));
    if !known.sets.is_empty() && gone.len() == known.sets.len() {
        let (folder, url) = (options.folder.clone(), options.url.clone());
        return Err(SetsError::OtherSets(folder, gone[0].capability_list.clone(), url));
    }
    for place in gone {
        let message =
            format!("the Source no longer lists this set; its copy in {} is kept", place.folder);
        observer.event(&Event::Notice(Problem {
            code: "sets.gone",
            uri: &place.capability_list,
            message: &message,
        }));
    }
    if !options.dry_run && state.is_dir() && record != known {
        record::write(&state, &record)?;
    }
    let with_options = |place: SetFolder| {
        let options = options_of(options, &place);
        (place, options)
    };
    Ok(here.into_iter().map(with_options).collect())
}

/// The options for one copy, from the options for all.
fn options_of(all: &SyncOptions, place: &SetFolder) -> SyncOptions {
    let mut options = all.clone();
    options.url.clone_from(&place.capability_list);
    options.set = None;
    options.folder = all.folder.join(&place.folder);
    options.state = all.state.as_ref().map(|state| state.join(&place.folder));
    options.backup_dir = all.backup_dir.as_ref().map(|backup| backup.join(&place.folder));
    if let Some(sink) = all.sink.facts().of_set(&place.folder) {
        options.sink = sink;
    }
    options
}
