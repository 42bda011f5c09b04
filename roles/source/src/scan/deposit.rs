//! Writing of files that the API puts into a published folder. Content is written completely and
//! made durable before the change is recorded.
//!
//! The watch also has an event for the file, finds the recorded state, and does not record a
//! change. To ensure that the order on disk is the order in the log, the writer of a path holds a
//! lock on the path until the change is in the log.

use crate::links::{LinkRecord, fingerprint_with, read_links, sidecar_name, split};
use crate::names::keys::{is_published_path, key_of, too_long};
use crate::scan::hash::state_of;
use crate::scan::options::IngestOptions;
use crate::scan::writes::Busy;
use abreast_core::contents::PinnedContent;
use abreast_core::{AppendDone, Change, ChangeLog, LogError, SetId, State};
use abreast_folder::{Dir, ErrorKind, Folder, Kind, Stat};
use abreast_webtypes::{Digests, Link};
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::fs::File;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io::{self, Write as _};
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use thiserror::Error;

/// Number of locks for paths, and therefore most paths that can be replaced at the same time.
const PLACES: usize = 64;

/// Reason why a file was not written or deleted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DepositError {
    /// The path cannot be published.
    #[error("{0}")]
    Name(String),
    /// The path does not exist.
    #[error("there is no such resource")]
    NotFound,
    /// The path, or an outer folder in the path, is not of the necessary kind.
    #[error("{0}")]
    InTheWay(String),
    /// The condition of the request does not hold for the current file.
    #[error("the resource is not in the state that was asked for")]
    Precondition,
    /// The links of the resource are invalid.
    #[error("{0}")]
    Links(String),
    /// The folder cannot be written.
    #[error(transparent)]
    Folder(#[from] abreast_folder::Error),
    /// Writing to the disk failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The store does not have enough space for the change; nothing was changed.
    #[error(transparent)]
    Store(#[from] LogError),
}

/// State that a resource must have so that it can be replaced or deleted.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// The resource must not exist.
    pub absent: bool,
    /// The resource must exist, in any state.
    pub present: bool,
    /// The tag of the resource must be in this list.
    pub tags: Option<Vec<String>>,
    /// The tag of the resource must not be in this list.
    pub other_than: Vec<String>,
    /// The resource must not be modified after this time, in seconds since 1970.
    pub unmodified_since: Option<i64>,
}

/// Writes files into a published folder.
pub struct Deposit {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    options: IngestOptions,
    places: Arc<[Mutex<()>; PLACES]>,
}

/// A file that is being uploaded.
pub struct Upload {
    dir: Dir,
    path: Vec<u8>,
    file: File,
    /// Name of the temporary file, if the system does not support files without a name.
    name: Option<Vec<u8>>,
    length: u64,
    md5: Option<Md5>,
    sha256: Option<Sha256>,
}

impl Upload {
    /// Appends bytes to the file.
    ///
    /// # Errors
    /// The disk is full or failed.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        if let Some(md5) = &mut self.md5 {
            md5.update(bytes);
        }
        if let Some(sha256) = &mut self.sha256 {
            sha256.update(bytes);
        }
        Ok(())
    }

    /// Returns the number of bytes written so far.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = self.dir.unlink(name);
        }
    }
}

impl Deposit {
    /// Creates a writer for a set. `options` must be the options of the watch on the folder, so
    /// that both share the links and the count of writes.
    pub fn new(log: Arc<dyn ChangeLog>, set: SetId, options: IngestOptions) -> Self {
        let places = Arc::new(std::array::from_fn(|_| Mutex::new(())));
        Self { log, set, options, places }
    }

    /// Shares the locks of paths with a former value for the same set, whose changes may be
    /// unfinished.
    #[must_use]
    pub fn after(self, former: &Self) -> Self {
        Self { places: Arc::clone(&former.places), ..self }
    }

    /// Makes a watch count the writes of this value, some of which may be unfinished: otherwise its
    /// first scan could record older content after them.
    pub fn share_writes(&self, options: &mut IngestOptions) {
        options.writes = Arc::clone(&self.options.writes);
    }

    /// Returns the source of the links of files.
    pub fn links(&self) -> &Arc<crate::links::Links> {
        &self.options.links
    }

    /// Creates a temporary file for a relative path, and the folders in the path.
    ///
    /// # Errors
    /// The path is invalid or not available, or the folder cannot be written.
    pub fn begin(&self, folder: &Folder, path: &[u8]) -> Result<Upload, DepositError> {
        if !is_published_path(path) {
            return Err(DepositError::Name(
                "hidden names (`.x`) and leftovers of editors (`x~`, `#x#`) are not published"
                    .to_owned(),
            ));
        }
        if let Some(why) = too_long(path) {
            return Err(DepositError::Name(why));
        }
        if !folder.selects(path, Kind::File) {
            return Err(DepositError::Name("the rules of the set leave this path out".to_owned()));
        }
        let (parent, name) = split(path);
        if name.len() > 255 {
            return Err(DepositError::Name("a name has at most 255 bytes".to_owned()));
        }
        let mut dir = folder.root();
        for component in parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty()) {
            dir = enter(&dir, component)?;
        }
        free_for_a_file(&dir, name)?;
        // Some file systems do not support files without a name.
        let (file, name) = if let Ok(file) = dir.create_unnamed() {
            (file, None)
        } else {
            let name = temporary_name();
            (dir.create_new(&name)?, Some(name))
        };
        let digests = self.options.digests;
        Ok(Upload {
            dir,
            path: path.to_vec(),
            file,
            name,
            length: 0,
            md5: digests.md5().then(Md5::new),
            sha256: digests.sha256().then(Sha256::new),
        })
    }

    /// Moves a complete file to its path, and records the change. `done` is called when the change
    /// is durable.
    ///
    /// # Errors
    /// The condition does not hold, or the disk failed. In these cases nothing was changed, and
    /// `done` is not called.
    pub fn finish(
        &self,
        folder: &Folder,
        mut upload: Upload,
        condition: &Condition,
        done: AppendDone,
    ) -> Result<(State, Stat), DepositError> {
        upload.file.sync_all()?;
        // Content must be durable before its row.
        let kept = self.keep(&upload)?;
        let name = split(&upload.path).1.to_vec();
        let _place = self.place(&upload.path);
        check(condition, free_for_a_file(&upload.dir, &name)?.as_ref())?;
        self.log.check_space()?;
        let temporary = if let Some(name) = upload.name.take() {
            name
        } else {
            let name = temporary_name();
            upload
                .dir
                .link(&upload.file, &name)
                .map_err(|error| folder_gone(&upload.dir, error))?;
            name
        };
        // The temporary file is deleted if a later step fails.
        upload.name = Some(temporary.clone());
        if let Err(error) = upload.dir.rename(&temporary, &upload.dir, &name) {
            // Another request may have created a folder at this path meanwhile.
            free_for_a_file(&upload.dir, &name)?;
            return Err(folder_gone(&upload.dir, error));
        }
        upload.name = None;
        upload.dir.sync()?;
        let stat = Stat::of(&upload.file)?;
        let links = self.links_of(folder, &upload.path);
        let digests = Digests {
            md5: upload.md5.take().map(|md5| md5.finalize().into()),
            sha256: upload.sha256.take().map(|sha256| sha256.finalize().into()),
            ..Digests::default()
        };
        let witness = fingerprint_with(&stat, &links);
        let content = kept.as_ref().map(PinnedContent::id);
        let state = State { links, content, ..state_of(&name, &stat, digests) };
        let key = key_of(&upload.path);
        self.record(
            &key,
            Change::put(key.clone(), state.clone()).with_witness(witness),
            hold(kept, done),
        );
        Ok((state, stat))
    }

    /// Deletes a file and its sidecar, and records the change. `done` is called when the change is
    /// durable.
    ///
    /// # Errors
    /// The file does not exist, the condition does not hold, or the folder cannot be written.
    pub fn remove(
        &self,
        folder: &Folder,
        path: &[u8],
        condition: &Condition,
        done: AppendDone,
    ) -> Result<(), DepositError> {
        let (dir, name) = Self::existing(folder, path)?;
        let _place = self.place(path);
        let stat = stat_of(&dir, name)?;
        check(condition, stat.as_ref())?;
        if stat.is_none_or(|stat| stat.kind != Kind::File) {
            return Err(DepositError::NotFound);
        }
        self.log.check_space()?;
        dir.unlink(name)?;
        match dir.unlink(&sidecar_name(name)) {
            Err(error)
                if !matches!(
                    error.kind(),
                    ErrorKind::NotFound | ErrorKind::Name | ErrorKind::TooLong
                ) =>
            {
                return Err(error.into());
            }
            _ => dir.sync()?,
        }
        let key = key_of(path);
        self.record(&key, Change::delete(key.clone()), done);
        Ok(())
    }

    /// Writes the links of a file to its sidecar, and records the change. `done` is called when the
    /// change is durable.
    ///
    /// # Errors
    /// The resource does not exist, a link is invalid, or the folder cannot be written.
    pub fn relink(
        &self,
        folder: &Folder,
        path: &[u8],
        records: &[LinkRecord],
        done: AppendDone,
    ) -> Result<State, DepositError> {
        let key = key_of(path);
        let links = read_links(&key, records).map_err(DepositError::Links)?;
        let (dir, name) = Self::existing(folder, path)?;
        let sidecar = sidecar_name(name);
        if sidecar.len() > 255 {
            return Err(DepositError::Name("the name is too long for links beside it".to_owned()));
        }
        let _place = self.place(path);
        let known = self
            .log
            .resource(self.set, &key)
            .map_err(io::Error::other)?
            .ok_or(DepositError::NotFound)?;
        let stat = stat_of(&dir, name)?
            .filter(|stat| stat.kind == Kind::File)
            .ok_or(DepositError::NotFound)?;
        self.log.check_space()?;
        if links.is_empty() {
            match dir.unlink(&sidecar) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
                _ => {}
            }
        } else {
            // The sidecar has the published form of the links, which does not depend on the reader.
            let records: Vec<LinkRecord> = links.iter().map(LinkRecord::of).collect();
            let mut text = serde_json::to_vec_pretty(&records).map_err(io::Error::other)?;
            text.push(b'\n');
            let temporary = temporary_name();
            let mut file = dir.create_new(&temporary)?;
            let written = file.write_all(&text).and_then(|()| file.sync_all());
            let renamed = written
                .map_err(DepositError::from)
                .and_then(|()| Ok(dir.rename(&temporary, &dir, &sidecar)?));
            if let Err(error) = renamed {
                let _ = dir.unlink(&temporary);
                return Err(error);
            }
            self.options.links.saw(&sidecar);
        }
        dir.sync()?;
        let links = self.links_of(folder, path);
        // If the file is recorded, its bytes are the recorded ones; otherwise the watch is about to
        // read the file.
        let mut witness = known.witness.clone();
        witness.truncate(32);
        if witness == fingerprint_with(&stat, &[]) {
            witness = fingerprint_with(&stat, &links);
        }
        let mut state = State { links, ..known.state };
        let kept = match (&self.options.contents, &state.content) {
            (Some(contents), Some(id)) => contents.hold(id).map_err(io::Error::from)?,
            _ => None,
        };
        state.content = kept.as_ref().map(PinnedContent::id);
        self.record(
            &key,
            Change::put(key.clone(), state.clone()).with_witness(witness),
            hold(kept, done),
        );
        Ok(state)
    }

    /// Stores a durable copy of the uploaded bytes, if the set stores copies.
    fn keep(&self, upload: &Upload) -> Result<Option<PinnedContent>, DepositError> {
        let Some(contents) = &self.options.contents else { return Ok(None) };
        let kept = contents
            .put_file(upload.file.as_fd(), upload.length, &mut |_| Ok(()))
            .map_err(io::Error::from)?;
        contents.sync().map_err(io::Error::from)?;
        Ok(Some(kept))
    }

    /// Returns folder and name of a path that can be published.
    fn existing<'p>(folder: &Folder, path: &'p [u8]) -> Result<(Dir, &'p [u8]), DepositError> {
        if !is_published_path(path) || !folder.selects(path, Kind::File) {
            return Err(DepositError::NotFound);
        }
        let (parent, name) = split(path);
        match folder.dir(parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty())) {
            Ok(dir) => Ok((dir, name)),
            Err(error) if is_absent(error.kind()) => Err(DepositError::NotFound),
            Err(error) => Err(error.into()),
        }
    }

    fn links_of(&self, folder: &Folder, path: &[u8]) -> Vec<Link> {
        if self.options.links.active() {
            self.options.links.of(folder, path).links
        } else {
            Vec::new()
        }
    }

    fn record(&self, key: &str, change: Change, done: AppendDone) {
        let mut last = self.options.writes.lock();
        self.options.writes.note(&mut last, key);
        self.log.append_then(self.set, vec![change], done);
    }

    /// Locks a path. No other request can replace the file, and the watch does not record it, until
    /// the result is dropped.
    fn place(&self, path: &[u8]) -> (MutexGuard<'_, ()>, Busy<'_>) {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(path);
        let place =
            self.places[hash as usize % PLACES].lock().unwrap_or_else(PoisonError::into_inner);
        (place, self.options.writes.begin(key_of(path)))
    }
}

/// Wraps `done` so that the stored copy is held until the change is durable.
fn hold(kept: Option<PinnedContent>, done: AppendDone) -> AppendDone {
    Box::new(move |result| {
        drop(kept);
        done(result);
    })
}

/// Returns the tag of a file's state. The tag includes ctime, because programs can reset mtime
/// after a change, but not ctime.
pub fn tag_of(stat: &Stat) -> String {
    format!("\"{:x}-{:x}-{:x}\"", stat.ctime_ns, stat.size, stat.inode)
}

fn check(condition: &Condition, stat: Option<&Stat>) -> Result<(), DepositError> {
    let fits = condition
        .tags
        .as_ref()
        .is_none_or(|tags| stat.is_some_and(|stat| tags.contains(&tag_of(stat))));
    let known = stat.is_some_and(|stat| condition.other_than.contains(&tag_of(stat)));
    let modified = stat.map(|stat| stat.mtime_ns.div_euclid(1_000_000_000));
    if known
        || modified
            .zip(condition.unmodified_since)
            .is_some_and(|(modified, since)| modified > since)
        || (condition.absent && stat.is_some())
        || (condition.present && stat.is_none())
        || !fits
    {
        return Err(DepositError::Precondition);
    }
    Ok(())
}

fn stat_of(dir: &Dir, name: &[u8]) -> Result<Option<Stat>, DepositError> {
    match dir.stat(name) {
        Ok(stat) => Ok(Some(stat)),
        Err(error) if is_absent(error.kind()) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns the metadata of the file with this name; `None` if the name is not in use. A name that is
/// in use by anything except a regular file is an error.
fn free_for_a_file(dir: &Dir, name: &[u8]) -> Result<Option<Stat>, DepositError> {
    match stat_of(dir, name)? {
        Some(stat) if stat.kind == Kind::Folder => {
            Err(DepositError::InTheWay("a folder has this name (help: remove it first)".to_owned()))
        }
        Some(stat) if stat.kind != Kind::File => {
            Err(DepositError::InTheWay("something that is no file has this name".to_owned()))
        }
        stat => Ok(stat),
    }
}

/// Returns the error for a folder that cannot be written, which may have been deleted after it was
/// opened.
fn folder_gone(dir: &Dir, error: abreast_folder::Error) -> DepositError {
    match dir.own_stat() {
        Ok(stat) if stat.links == 0 => DepositError::InTheWay(
            "the folder was removed meanwhile (help: send it again)".to_owned(),
        ),
        _ => error.into(),
    }
}

const fn is_absent(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::NotFolder
            | ErrorKind::Symlink
            | ErrorKind::Name
            | ErrorKind::TooLong
    )
}

/// Opens a subfolder, and creates it if it does not exist.
fn enter(dir: &Dir, name: &[u8]) -> Result<Dir, DepositError> {
    for _ in 0..2 {
        match dir.dir(name) {
            Ok(inner) => return Ok(inner),
            Err(error) if error.kind() == ErrorKind::NotFound => match dir.create_dir(name) {
                Ok(()) => dir.sync()?,
                Err(error) if error.kind() == ErrorKind::Exists => {}
                Err(error) => return Err(error.into()),
            },
            Err(error) if matches!(error.kind(), ErrorKind::NotFolder | ErrorKind::Symlink) => {
                break;
            }
            Err(error) => return Err(error.into()),
        }
    }
    let shown = String::from_utf8_lossy(name).escape_debug().to_string();
    Err(DepositError::InTheWay(format!("`{shown}` is no folder, so nothing can be put beneath it")))
}

fn temporary_name() -> Vec<u8> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    // In a container, a process can have the same number as an earlier process, which may have left
    // a temporary file when it was killed. The time makes the name unique.
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!(".abreast-{}-{time:x}-{number}.part", std::process::id()).into_bytes()
}
