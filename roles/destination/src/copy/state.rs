//! The state of a copy: its path, the folder to which it belongs, and the lock that allows one run
//! at a time.

use crate::copy::key;
use crate::copy::marker::{Marker, state_elsewhere};
use crate::copy::names::{DATABASE, LOCK, MARKER, SETS_RECORD};
use crate::copy::path_map::STATE_FOLDER;
use crate::copy::probe::FileSystem;
use crate::copy::provisional::{NewFolders, Provisional};
use crate::copy::published::check_outputs;
use crate::copy::state_folder::{StateFolder, make_folder, read_text};
use crate::copy::unusable::{overlap, unusable};
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use abreast_folder::{Dir, Folder, Kind, Locked};
use abreast_store::mirror::Mirror;
use std::path::{Path, PathBuf};

/// Folders searched for copies inside a new copy's folder.
const NESTED_MAX: usize = 1_000_000;

/// The opened state of a copy, locked for this run.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) mirror: Mirror,
    pub(crate) folder: Folder,
    pub(crate) own_folder: StateFolder,
    /// The lock, which is released at the end of the run.
    pub(crate) lock: Option<Locked>,
    /// The notice that the state of an earlier run was lost.
    pub(crate) lost: Option<String>,
    /// The marker in the folder of a copy whose state is elsewhere.
    pub(crate) marker: Option<Marker>,
    /// Folder and state were not last changed by the same run.
    pub(crate) is_restored: bool,
    /// Files and folders that a first run has created.
    pub(crate) made: Provisional,
}

impl State {
    /// Opens or creates the state of a copy, and locks the copy for this run. With `is_held`, the
    /// caller holds the lock.
    pub(crate) fn open(options: &SyncOptions, is_held: bool) -> Result<Self, Error> {
        let path = state_of(options);
        let database = path.join(DATABASE);
        check_places(options)?;
        check_one_set(options)?;
        if options.dry_run && !database.exists() {
            // Nothing to start from, and nothing to leave behind.
            let is_there = options.folder.is_dir();
            let folder =
                Folder::open(if is_there { options.folder.clone() } else { std::env::temp_dir() })?;
            let is_lost = is_there && options.sink.facts().is_folder();
            let lost = if is_lost { lost_state(&folder, &path)? } else { None };
            let (mirror, own_folder) = (Mirror::scratch()?, StateFolder::nowhere(path));
            return Ok(Self {
                mirror,
                folder,
                own_folder,
                lock: None,
                lost,
                marker: None,
                is_restored: false,
                made: Provisional::default(),
            });
        }
        let mut made = Provisional::default();
        made.note_folders(
            NewFolders::make(&options.folder).map_err(|cause| unusable(&options.folder, cause))?,
        );
        let folder = Folder::open(&options.folder)?;
        let lost = if database.exists() || !options.sink.facts().is_folder() {
            None
        } else {
            lost_state(&folder, &path)?
        };
        let has_marker = folder.root().stat(STATE_FOLDER.as_bytes()).is_ok();
        let own = StateFolder::in_copy(&folder)?;
        let marker = make_folder(&folder.root(), STATE_FOLDER.as_bytes())?;
        let lock = if is_held { None } else { Some(lock(&marker, LOCK, &options.folder)?) };
        if !has_marker {
            made.note_marker(folder.root(), STATE_FOLDER);
        }
        let real =
            options.folder.canonicalize().map_err(|cause| unusable(&options.folder, cause))?;
        check_above(&real)?;
        let marker = Marker::check(&real, &own, options.state.as_deref())?;
        let state = match &options.state {
            Some(path) => {
                made.note_folders(NewFolders::make(path).map_err(|cause| unusable(path, cause))?);
                StateFolder::at(path)?
            }
            None => own.clone(),
        };
        let database = state.path().join(DATABASE);
        let is_known = database.exists();
        if !is_known {
            check_below(&folder)?;
            made.note_state(Folder::open(state.path())?.root());
            for own in options.sink.facts().own_folders() {
                made.note_contents(folder.root(), own);
            }
        }
        let mirror = Mirror::open(&database)?;
        let mut is_restored = false;
        if let Some(marker) = &marker {
            let text = real.to_string_lossy();
            match mirror.meta(key::FOLDER)? {
                Some(other) if other != text => {
                    return Err(overlap(format!(
                        "the state in {} belongs to the folder {other}",
                        path.display()
                    )));
                }
                Some(_) => {}
                None => mirror.set_meta(key::FOLDER, Some(&text))?,
            }
            is_restored = !marker.is_as_left(&mirror, options)?;
            if !options.dry_run {
                marker.put()?;
            }
        } else {
            // The marker of a copy whose state was elsewhere and has been deleted.
            own.remove_file(MARKER);
        }
        if is_known {
            // A dry run removes the folders that it created, even if the database has resources.
            made.keep_unless(options.dry_run);
        }
        Ok(Self { mirror, folder, own_folder: state, lock, lost, marker, is_restored, made })
    }

    /// The properties of the file system. The first run determines and stores them, because paths
    /// depend on them.
    pub(crate) fn file_system(
        mirror: &Mirror,
        folder: &Folder,
        dry_run: bool,
    ) -> Result<FileSystem, Error> {
        let text = mirror.meta(key::FILE_SYSTEM)?.unwrap_or_default();
        if let Some(known) = FileSystem::from_text(&text) {
            let more =
                if dry_run { None } else { known.with_times(&text, &folder.root()).ok().flatten() };
            if let Some(more) = more {
                mirror.set_meta(key::FILE_SYSTEM, Some(&more.to_text()))?;
            }
            return Ok(more.unwrap_or(known));
        }
        if dry_run {
            return Ok(FileSystem::with_rules(crate::NameRules::default()));
        }
        let found = FileSystem::probe(&folder.root())?;
        mirror.set_meta(key::FILE_SYSTEM, Some(&found.to_text()))?;
        Ok(found)
    }
}

/// The path of the state of a copy.
pub(crate) fn state_of(options: &SyncOptions) -> PathBuf {
    options.state.clone().unwrap_or_else(|| options.folder.join(STATE_FOLDER))
}

/// Checks the folders of the copy, its state and its backups: each path is a folder or does not
/// exist yet, and is not published.
///
/// # Errors
/// A path is empty, or is not a folder, or is in a published folder.
pub(crate) fn check_places(options: &SyncOptions) -> Result<(), Error> {
    let places = [Some(&options.folder), options.state.as_ref(), options.backup_dir.as_ref()];
    places.into_iter().flatten().try_for_each(|place| {
        let wrong = |message: String| {
            Err(Error::new("folder.missing", ExitCode::Usage, message)
                .with_help("name a folder; it is made if it does not exist"))
        };
        if place.as_os_str().is_empty() {
            return wrong("the name of a folder is empty".to_owned());
        }
        match place
            .ancestors()
            .filter(|above| !above.as_os_str().is_empty())
            .find(|above| above.exists())
        {
            Some(existing) if !existing.is_dir() => {
                wrong(format!("{} is a file, not a folder", existing.display()))
            }
            _ => Ok(()),
        }
    })?;
    check_outputs(options)
}

/// Refuses the folder of the copies of all sets: the folder has a record of the copies, and is not
/// a copy itself.
pub(crate) fn check_one_set(options: &SyncOptions) -> Result<(), Error> {
    let SyncOptions { folder, state, sink, .. } = options;
    let own = if sink.is_local() { folder.join(STATE_FOLDER) } else { folder.clone() };
    if !state.iter().chain([&own]).any(|place| place.join(SETS_RECORD).is_file()) {
        return Ok(());
    }
    let message = format!(
        "{} has the copies of all sets of a Source, each in a folder of its own",
        folder.display()
    );
    Err(Error::new("folder.sets", ExitCode::Usage, message)
        .with_help("use `--all-sets`, or the folder of one of the sets, or another folder"))
}

/// The notice for a folder that contains files, but no state.
fn lost_state(folder: &Folder, state: &Path) -> Result<Option<String>, Error> {
    let root = folder.root();
    let mut has_marker = false;
    let mut has_files = false;
    for entry in root.entries()? {
        let entry = entry?;
        if entry.name == STATE_FOLDER.as_bytes() {
            has_marker = root.dir(&entry.name).is_ok_and(|marker| marker.stat(LOCK).is_ok());
        } else {
            has_files = true;
        }
    }
    if !has_files {
        return Ok(None);
    }
    let place = state.display();
    let what = if has_marker {
        format!("the state of the copy in {place} is gone")
    } else {
        format!("there is no state of an earlier run in {place}, and the folder is not empty")
    };
    Ok(Some(format!(
        "{what}: files that agree with the Source are kept, others are replaced and put aside, and what the Source does not \
         list stays\n  help: `abreast audit` lists that as `extra`"
    )))
}

/// Locks a copy, or several copies, by a file in a state folder: one run at a time. The kernel
/// releases the lock when the process ends, for whatever reason.
///
/// # Errors
/// `locked` if another run has the lock, with the number of its process.
pub(crate) fn lock(marker: &Dir, name: &[u8], folder: &Path) -> Result<Locked, Error> {
    let locked = marker.lock(name).map_err(|error| {
        let shown = String::from_utf8_lossy(name);
        let place = marker.path().unwrap_or_else(|| folder.join(STATE_FOLDER));
        unusable(&place.join(&*shown), error.into())
    })?;
    let Some(mut locked) = locked else {
        let holder = read_text(marker, name, 32).and_then(|text| text.trim().parse::<u32>().ok());
        let by = holder.map(|pid| format!(" (process {pid})")).unwrap_or_default();
        return Err(Error::new(
            "locked",
            ExitCode::Locked,
            format!("another run{by} is working on {}", folder.display()),
        )
        .with_help(
            "wait for the other run; stop a run with `--follow` first, and start it again afterwards",
        ));
    };
    // Only for people; the lock itself does not depend on it.
    let _ = locked.describe(&format!("{}\n", std::process::id()));
    Ok(locked)
}

/// Refuses a copy inside the folder of another copy, which would delete the inner copy's files as
/// unknown files.
fn check_above(folder: &Path) -> Result<(), Error> {
    for above in folder.ancestors().skip(1) {
        let marker = above.join(STATE_FOLDER);
        if marker.join(DATABASE).exists() || marker.join(MARKER).exists() {
            return Err(overlap(format!(
                "{} is inside {}, which is a copy itself",
                folder.display(),
                above.display()
            )));
        }
    }
    Ok(())
}

/// Searches for copies below, once, before the first run.
fn check_below(folder: &Folder) -> Result<(), Error> {
    let mut waiting = vec![folder.root()];
    let mut searched = 0;
    while let Some(dir) = waiting.pop() {
        let own = searched == 0;
        searched += 1;
        if searched > NESTED_MAX {
            return Ok(());
        }
        // A folder that cannot be listed holds no copy that could be in danger.
        let Ok(entries) = dir.entries() else { continue };
        for entry in entries.flatten() {
            if entry.kind != Kind::Folder {
                continue;
            }
            let is_marker = entry.name == STATE_FOLDER.as_bytes();
            if is_marker && own {
                continue;
            }
            let Ok(below) = dir.dir(&entry.name) else { continue };
            if is_marker
                && (below.stat(DATABASE.as_bytes()).is_ok()
                    || below.stat(MARKER.as_bytes()).is_ok())
            {
                return Err(overlap(format!(
                    "{} has a copy of something inside it",
                    folder.path().display()
                )));
            }
            waiting.push(below);
        }
    }
    Ok(())
}

/// The folder of the copy to which a state folder belongs, according to its database. Only a
/// database outside of its copy has this property.
pub(crate) fn folder_of(state: &Path) -> Option<PathBuf> {
    let mirror = Mirror::open_read_only(&state.join(DATABASE)).ok()?;
    mirror.meta(key::FOLDER).ok()?.map(PathBuf::from)
}

/// Whether a state elsewhere belongs to this folder.
fn is_of(state: &Path, folder: &Path) -> bool {
    folder_of(state).is_some_and(|named| folder.canonicalize().is_ok_and(|real| real == named))
}

/// The folder with the database of an existing copy.
pub(crate) fn known_state_folder(folder: &Path, state: Option<&Path>) -> Option<PathBuf> {
    let own = folder.join(STATE_FOLDER);
    let known = match state {
        Some(path) => Some(path.to_owned()),
        None if own.join(DATABASE).exists() => Some(own),
        None => state_elsewhere(folder).filter(|state| is_of(state, folder)),
    };
    known.filter(|state| state.join(DATABASE).exists())
}

/// Opens the state of an existing copy read-only; `None` if the copy does not exist. A database of
/// an earlier version is upgraded first, under the lock of the copy.
pub(crate) fn open_known(folder: &Path, state: Option<&Path>) -> Result<Option<Mirror>, Error> {
    let known = known_state_folder(folder, state);
    let Some(database) = known.map(|state| state.join(DATABASE)) else { return Ok(None) };
    if let Some(mirror) = Mirror::open_as_it_is(&database)? {
        return Ok(Some(mirror));
    }
    let marker = make_folder(&Folder::open(folder)?.root(), STATE_FOLDER.as_bytes())?;
    let _locked = lock(&marker, LOCK, folder)?;
    drop(Mirror::open(&database)?);
    Ok(Mirror::open_as_it_is(&database)?)
}
