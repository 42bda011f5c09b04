//! A group of shared files: its record, as it was read last, and the publishing of items.
//!
//! | local name | content |
//! |---|---|
//! | `TOKEN/NAME` | a file of an item; every attempt has another token |
//! | `shared.json` | the record as it was read last, for a start while the store is out of reach |

use super::cache::{Held, set_modified};
use super::error::SharedError;
use super::place::Place;
use super::record::{Item, SharedFile, SharedRecord};
use crate::made::sweep::{MAKING, discard};
use abreast_core::contents::made::{MadeFile, RecordRead};
use abreast_folder::{read_sealed, write_sealed};
use abreast_webtypes::Timestamp;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

const LOCAL_RECORD: &str = "shared.json";
/// Attempts to change a record that other nodes change at the same time.
const EDITS: usize = 10;
/// Least time between a request for a record and the next one because a name is not known.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest wait of a client's request for the request of another thread.
const PATIENCE: Duration = Duration::from_secs(2);
/// Age in hours of a file without an item, from which it is a leftover of a killed node. A file
/// must be published within half of this time.
const LEFTOVER_HOURS: u64 = 24;

/// A group of shared files.
pub(crate) struct Group {
    place: Arc<Place>,
    name: String,
    folder: PathBuf,
    known: Mutex<Known>,
    /// Held while the store is asked, so that an older answer does not replace a newer one.
    asking: Mutex<Option<Instant>>,
}

/// The record as it was read last.
#[derive(Default)]
struct Known {
    record: Arc<SharedRecord>,
    version: Option<String>,
    /// Number that changes with the record.
    stamp: u64,
}

/// Start of an attempt to make an item.
#[derive(Debug)]
pub(super) struct Base {
    /// Name of the local folder and of the files in the store; random.
    pub(super) token: String,
    /// Name of the last item when the attempt started.
    last: Option<String>,
    started: Instant,
}

/// An item whose files are in the store.
pub(super) struct Offer<'a> {
    pub(crate) name: String,
    pub(crate) text: String,
    /// All files of the item; also files of earlier items.
    pub(crate) files: Vec<SharedFile>,
    /// Whether the last item must be the same as when the attempt started.
    pub(crate) follows: bool,
    /// Number of the first items that the new item replaces.
    pub(crate) surplus: &'a dyn Fn(&[Item]) -> usize,
}

impl Group {
    /// Opens a group; removes local files that the record does not list.
    pub(super) fn open(place: &Arc<Place>, name: &str, folder: PathBuf) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        let mut known = Known::default();
        let local = read_sealed(&folder.join(LOCAL_RECORD));
        if let Some(record) = local.ok().and_then(|local| SharedRecord::parse(&local).ok()) {
            known.record = Arc::new(record);
        }
        let group = Self {
            place: Arc::clone(place),
            name: name.to_owned(),
            folder,
            known: Mutex::new(known),
            asking: Mutex::default(),
        };
        let read = group.read(&mut group.ask(), true);
        if let Err(error) = &read {
            tracing::warn!("cannot read the record of the shared files `{name}` now: {error}");
        }
        group.sweep(read.is_ok())?;
        Ok(group)
    }

    /// Notes local copies; removes unfinished files, and with `is_read` files of other items.
    fn sweep(&self, is_read: bool) -> io::Result<()> {
        let record = self.known().1;
        let tokens = record.tokens();
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_token = name.len() == TOKEN_LENGTH && entry.file_type()?.is_dir();
            let is_old = is_read && is_token && !tokens.contains(name.as_str());
            if is_old || name.starts_with(MAKING) {
                discard([entry.path()]);
            } else if is_token {
                for file in fs::read_dir(entry.path())? {
                    let file = file?;
                    if file.file_name().to_string_lossy().starts_with(MAKING) {
                        discard([file.path()]);
                    } else {
                        self.place.cache.add(file.path(), file.metadata()?.len());
                    }
                }
            }
        }
        Ok(())
    }

    /// Number that changes with the record, and the record.
    pub(crate) fn known(&self) -> (u64, Arc<SharedRecord>) {
        let known = lock(&self.known);
        (known.stamp, Arc::clone(&known.record))
    }

    /// The current time, by the clock of all nodes.
    pub(crate) fn now(&self) -> Timestamp {
        self.place.options.clock.now()
    }

    /// Whether this node may make files now.
    pub(crate) fn is_mine(&self) -> bool {
        self.place.is_mine()
    }

    pub(super) fn refresh(&self) -> Result<(), SharedError> {
        self.read(&mut self.ask(), false)
    }

    /// Reads the record because a client requests an unknown name, which another node may have
    /// published a moment ago. Returns whether the record has changed. Requests at the same time are
    /// one request to the store.
    ///
    /// # Errors
    /// The record cannot be read now, so the name may exist.
    pub(crate) fn read_again(&self) -> Result<bool, SharedError> {
        let (began, before) = (Instant::now(), self.known().0);
        let mut asked = loop {
            self.place.check_away()?;
            match self.asking.try_lock() {
                Ok(asked) => break asked,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if began.elapsed() > PATIENCE => {
                    return Err(SharedError::Away);
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        // Another thread may have read the record since this request.
        if asked.is_none_or(|asked| asked < began) {
            if let Some(wait) = asked.and_then(|asked| AGAIN.checked_sub(asked.elapsed())) {
                std::thread::sleep(wait);
            }
            self.read(&mut asked, true)?;
        }
        Ok(self.known().0 != before)
    }

    fn ask(&self) -> MutexGuard<'_, Option<Instant>> {
        lock(&self.asking)
    }

    fn read(&self, asked: &mut Option<Instant>, soon: bool) -> Result<(), SharedError> {
        *asked = Some(Instant::now());
        let version = lock(&self.known).version.clone();
        let call = |store: &dyn abreast_core::contents::made::MadeStore| {
            store.record(&self.name, version.as_deref())
        };
        let read = if soon { self.place.ask_soon(call) } else { self.place.ask(call) }?;
        match read {
            RecordRead::Same => {}
            RecordRead::Missing => self.set(SharedRecord::default(), None),
            RecordRead::Changed { record, version } => {
                self.set(SharedRecord::parse(&record)?, Some(version));
            }
        }
        Ok(())
    }

    /// Replaces the known record, and removes local copies of items that it does not list.
    fn set(&self, record: SharedRecord, version: Option<String>) {
        let record = Arc::new(record);
        let before = {
            let mut known = lock(&self.known);
            known.version = version;
            if known.record == record {
                return;
            }
            // A request for files changes no plan.
            if known.record.items != record.items || known.record.impossible != record.impossible {
                known.stamp += 1;
            }
            std::mem::replace(&mut known.record, Arc::clone(&record))
        };
        let (tokens, keys) = (record.tokens(), record.keys());
        for token in before.tokens().difference(&tokens) {
            self.place.cache.remove(self.folder.join(token));
        }
        for key in before.keys().difference(&keys).map(|key| self.folder.join(key)) {
            if key.exists() {
                self.place.cache.remove(key);
            }
        }
        let written =
            record.to_bytes().and_then(|text| Ok(write_sealed(&self.local_record(), text)?));
        if let Err(error) = written {
            tracing::warn!("cannot write `{}`: {error}", self.local_record().display());
        }
    }

    fn local_record(&self) -> PathBuf {
        self.folder.join(LOCAL_RECORD)
    }

    /// Changes the record in the store. `change` may run several times, and returns whether there is
    /// a change.
    pub(super) fn edit(
        &self,
        mut change: impl FnMut(&mut SharedRecord) -> Result<bool, SharedError>,
    ) -> Result<bool, SharedError> {
        let mut asked = self.ask();
        for _ in 0..EDITS {
            self.read(&mut asked, false)?;
            let (before, version) = {
                let known = lock(&self.known);
                (Arc::clone(&known.record), known.version.clone())
            };
            let mut record = (*before).clone();
            if !change(&mut record)? {
                return Ok(false);
            }
            record.note_removed(&before, self.now());
            let bytes = record.to_bytes()?;
            let replaced = self
                .place
                .ask(|store| store.replace_record(&self.name, &bytes, version.as_deref()))?;
            if replaced.is_some() {
                self.set(record, replaced);
                return Ok(true);
            }
        }
        Err(SharedError::Contended(self.name.clone()))
    }

    /// Starts an attempt to make an item, after the record was read.
    pub(super) fn begin(&self) -> Result<Base, SharedError> {
        self.refresh()?;
        let last = self.known().1.items.last().map(|item| item.name.clone());
        Ok(Base { token: token()?, last, started: Instant::now() })
    }

    /// As [`Self::begin`], for a request that must not wait for a store which is away.
    pub(super) fn begin_soon(&self) -> Result<Base, SharedError> {
        self.place.check_away()?;
        self.begin()
    }

    /// As [`Self::begin`], if this node may make files.
    pub(super) fn begin_mine(&self) -> Result<Base, SharedError> {
        if self.is_mine() { self.begin() } else { Err(SharedError::NotMine) }
    }

    /// Local folder for the files of an attempt.
    pub(super) fn folder_of(&self, base: &Base) -> PathBuf {
        self.folder.join(&base.token)
    }

    /// Stores the files of an attempt, which are in `folder`. The files of a failed call are removed
    /// from the store.
    pub(super) fn upload(
        &self,
        base: &Base,
        folder: &Path,
        names: &[String],
        stop: &dyn Fn() -> bool,
    ) -> Result<Vec<SharedFile>, SharedError> {
        let now = self.now();
        let mut files = Vec::with_capacity(names.len());
        for name in names {
            let uploaded = self.upload_one(base, &folder.join(name), name, now, stop);
            match uploaded {
                Ok(file) => files.push(file),
                Err(error) => {
                    self.delete(files.iter().map(SharedFile::key));
                    return Err(if stop() { SharedError::Stopped } else { error });
                }
            }
        }
        Ok(files)
    }

    fn upload_one(
        &self,
        base: &Base,
        path: &Path,
        name: &str,
        now: Timestamp,
        stop: &dyn Fn() -> bool,
    ) -> Result<SharedFile, SharedError> {
        let (id, length) = abreast_contents::digest(path)?;
        let made = MadeFile { name: format!("{}/{name}", base.token), length, id };
        let mut reader = Stoppable { file: File::open(path)?, stop };
        self.place.ask(|store| store.put(&self.name, &made, &mut reader))?;
        set_modified(path, now)?;
        Ok(SharedFile::new(&base.token, name, &made, now))
    }

    /// Publishes an item whose files are stored, and whose local copies are in the folder of the
    /// attempt. After an error, both are removed.
    pub(super) fn publish(
        &self,
        base: &Base,
        offer: Offer<'_>,
        needs_turn: bool,
    ) -> Result<(), SharedError> {
        let Offer { name, text, files, follows, surplus } = offer;
        let own: Vec<_> = files.iter().filter(|file| file.token == base.token).cloned().collect();
        let item = Item { name, text, made: self.now().as_micros(), files };
        let published = self.edit(|record| {
            if base.started.elapsed().as_secs() >= LEFTOVER_HOURS * 3_600 / 2 {
                return Err(SharedError::TooSlow(LEFTOVER_HOURS / 2));
            }
            if needs_turn && !self.is_mine() {
                return Err(SharedError::NotMine);
            }
            let last = record.items.last().map(|item| &item.name);
            if record.item(&item.name).is_some() || follows && last != base.last.as_ref() {
                return Err(SharedError::Published);
            }
            record.items.push(item.clone());
            record.items.drain(..surplus(&record.items).min(record.items.len() - 1));
            Ok(true)
        });
        // An error may follow after the effect of an earlier attempt whose answer was lost.
        let is_unsure = published.is_err();
        let is_listed = || self.known().1.item(&item.name).is_some_and(|known| *known == item);
        if is_unsure && (is_listed() || self.refresh().is_ok() && is_listed()) {
            self.add_copies(&own);
            return Ok(());
        }
        match published {
            Ok(_) => {
                self.add_copies(&own);
                Ok(())
            }
            Err(error) => {
                discard([self.folder_of(base)]);
                if !matches!(error, SharedError::Store(_)) {
                    self.delete(own.iter().map(SharedFile::key));
                }
                Err(error)
            }
        }
    }

    fn add_copies(&self, files: &[SharedFile]) {
        for file in files {
            self.place.cache.add(self.folder.join(file.key()), file.length);
        }
    }

    /// Removes items from the record.
    pub(crate) fn withdraw(&self, is_old: impl Fn(&Item) -> bool) -> Result<(), SharedError> {
        let remove = |record: &mut SharedRecord| {
            if !self.is_mine() {
                return Err(SharedError::NotMine);
            }
            let before = record.items.len();
            record.items.retain(|item| !is_old(item));
            Ok(record.items.len() < before)
        };
        self.edit(remove).map(drop)
    }

    /// Notes whether items cannot be made, for all nodes.
    pub(crate) fn note_impossible(&self, impossible: bool) -> Result<(), SharedError> {
        if self.known().1.impossible == impossible {
            return Ok(());
        }
        let note = |record: &mut SharedRecord| {
            let is_new = self.is_mine() && record.impossible != impossible;
            record.impossible = impossible;
            Ok(is_new)
        };
        self.edit(note).map(drop)
    }

    /// Local copy of a file, which is fetched if it does not exist.
    pub(crate) fn hold(&self, file: &SharedFile) -> Result<Held, SharedError> {
        let path = self.folder.join(file.key());
        let modified = Timestamp::from_micros(file.modified);
        self.place.cache.hold(&path, file.length, modified, |to| {
            let made = file.made().ok_or_else(|| SharedError::Record(file.key()))?;
            self.place.ask_soon(|store| store.fetch(&self.name, &made, to))
        })
    }

    /// A URL in the object store with which anybody can read a file for a time, if there is one.
    pub(crate) fn signed_url(
        &self,
        file: &SharedFile,
        media_type: &str,
        valid: Duration,
    ) -> Result<Option<String>, SharedError> {
        self.place.signed_url(&self.name, &file.key(), media_type, valid)
    }

    /// Requests the making of files from the node that has the turn.
    pub(super) fn request(&self, wanted: u8) -> Result<(), SharedError> {
        let note = |record: &mut SharedRecord| {
            let is_new = record.wanted < wanted;
            record.wanted = record.wanted.max(wanted);
            Ok(is_new)
        };
        self.edit(note).map(drop)
    }

    /// Removes the request of other nodes, and returns it. After an error it may be removed, too.
    pub(super) fn take_request(&self) -> (u8, Result<(), SharedError>) {
        let mut wanted = 0;
        if self.known().1.wanted == 0 {
            return (0, Ok(()));
        }
        let taken = self.edit(|record| {
            // After a lost answer, the record does not have the request any more.
            let now = std::mem::take(&mut record.wanted);
            wanted = wanted.max(now);
            Ok(now > 0)
        });
        (wanted, taken.map(drop))
    }

    /// Deletes files whose grace time is over.
    pub(super) fn delete_removed(&self) -> Result<(), SharedError> {
        let now = self.now().as_micros();
        let grace = i64::try_from(self.place.options.grace.as_micros()).unwrap_or(i64::MAX);
        let record = self.known().1;
        let is_over = |at: i64| now.saturating_sub(at) >= grace;
        let over: Vec<_> = record.removed.iter().filter(|removed| is_over(removed.at)).collect();
        if over.is_empty() {
            return Ok(());
        }
        for removed in &over {
            self.place.ask(|store| store.remove(&self.name, &removed.key))?;
        }
        self.edit(|record| {
            record.removed.retain(|removed| !over.contains(&removed));
            Ok(true)
        })?;
        Ok(())
    }

    /// Deletes files of killed nodes, which no record lists.
    pub(super) fn delete_leftovers(&self) -> Result<(), SharedError> {
        let mut old = Vec::new();
        self.place.ask(|store| {
            store.visit(&self.name, &mut |name, age| {
                if age.as_secs() >= LEFTOVER_HOURS * 3_600 {
                    old.push(name.to_owned());
                }
            })
        })?;
        self.refresh()?;
        if lock(&self.known).version.is_none() {
            // The files of a record that is missing are not known.
            return Ok(());
        }
        let record = self.known().1;
        let (keys, removed) = (record.keys(), &record.removed);
        old.retain(|key| !keys.contains(key) && removed.iter().all(|one| one.key != *key));
        self.delete(old);
        Ok(())
    }

    /// Deletes files of the store; remaining files are deleted as leftovers later.
    fn delete(&self, keys: impl IntoIterator<Item = String>) {
        for key in keys {
            if let Err(error) = self.place.ask(|store| store.remove(&self.name, &key)) {
                tracing::warn!("cannot remove the shared file `{key}` of `{}`: {error}", self.name);
                return;
            }
        }
    }
}

/// A file whose reading ends when the program stops.
struct Stoppable<'a> {
    file: File,
    stop: &'a dyn Fn() -> bool,
}

impl Read for Stoppable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if (self.stop)() {
            return Err(io::Error::other("the program ends"));
        }
        self.file.read(buffer)
    }
}

/// Number of characters of a token.
const TOKEN_LENGTH: usize = 16;

/// A random name that no other attempt has.
fn token() -> Result<String, SharedError> {
    let number = getrandom::u64().map_err(|error| SharedError::Local(io::Error::other(error)))?;
    Ok(format!("{number:0TOKEN_LENGTH$x}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
