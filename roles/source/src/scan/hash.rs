//! Digests of files, which are valid only if the file did not change while it was read.

use super::large::LargeFiles;
use crate::names::fingerprint::fingerprint_of;
use crate::names::fingerprint::is_gone;
use crate::names::media_type::media_type_of;
use crate::scan::large::LARGE;
use crate::scan::options::DigestPolicy;
use crate::scan::options::IngestOptions;
use crate::scan::rest::Rest;
use abreast_core::contents::{
    ContentStore, Error as ContentError, ErrorKind as ContentErrorKind, PinnedContent,
};
use abreast_core::{Meter, State};
use abreast_folder::{Dir, Stat};
use abreast_webtypes::{Digests, Timestamp, md5_lanes};
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::fs::File;
use std::io::{self, Read as _};
use std::ops::Range;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Result of reading a file.
#[expect(clippy::large_enum_variant, reason = "nearly every file is stable")]
pub(crate) enum Hashed {
    /// The file did not change while it was read. The result includes the stored copy, if the set
    /// stores copies.
    Stable(State, Stat, Option<PinnedContent>),
    /// The file changed while or shortly before it was read, a process is writing the file, or
    /// reading was stopped. The caller retries later.
    Unsettled,
    /// The file is large, and a separate thread must read it.
    Large,
    /// The file was deleted, or is not a regular file.
    Gone,
    /// The file exists, but cannot be opened or read.
    Failed(io::Error),
    /// The copy of the file cannot be stored.
    NotKept(ContentError),
}

/// Settings for reading files of a folder.
#[derive(Clone, Copy)]
pub(crate) struct Reading<'a> {
    /// Flag that stops reading, even in the middle of a file.
    pub(crate) stop: &'a AtomicBool,
    /// Queue of large files; `None` to read large files in this thread.
    pub(crate) aside: Option<&'a LargeFiles>,
    /// Whether to check which files other processes have open, because there are no events for
    /// this.
    pub(crate) asks_writers: bool,
    /// Minimum age of an empty file. A process may be truncating the file: on a busy disk this
    /// takes long, and the event follows at the end.
    pub(crate) empty: Duration,
}

impl Reading<'_> {
    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether a process may still be writing a file. `now` is the local time since 1970. `settle`
    /// is the time for which the file must be unchanged if some processes are not visible.
    fn is_unsettled(&self, rest: &Rest, now: Duration, stat: &Stat, settle: Duration) -> bool {
        let age = rest.age_at(now, stat);
        if stat.size == 0 && age < self.empty {
            return true;
        }
        if self.asks_writers { rest.is_unsettled(now, stat, settle) } else { age < settle }
    }
}

/// A file to read and hash.
pub(crate) struct Target<'a> {
    pub(crate) dir: &'a Dir,
    pub(crate) name: &'a [u8],
}

/// Interval between two log messages about the progress in a large file.
const PROGRESS: Duration = Duration::from_secs(10);
const CHUNK: usize = 256 * 1024;
/// Largest size in bytes of a small file. Small files are read whole, and several are hashed at
/// once.
const SMALL: u64 = 64 * 1024;
/// Bytes of small files in memory before they are hashed.
const TOGETHER: usize = 512 * 1024;

/// Reads and hashes files. The buffers are reused.
pub(crate) struct Hasher<'a> {
    reading: Reading<'a>,
    policy: DigestPolicy,
    /// Time since the last change that a file must have to be read.
    settle: Duration,
    rest: Arc<Rest>,
    /// Store for copies of the contents.
    contents: Option<Arc<dyn ContentStore>>,
    chunk: Vec<u8>,
    small: Vec<u8>,
    meter: Meter,
}

/// A small file in the buffer whose digest is not yet computed.
struct Waiting {
    place: usize,
    range: Range<usize>,
    stat: Stat,
}

impl<'a> Hasher<'a> {
    pub(crate) fn new(options: &IngestOptions, reading: Reading<'a>) -> Self {
        Self {
            reading,
            policy: options.digests,
            settle: options.settle,
            rest: Arc::clone(&options.rest),
            contents: options.contents.clone(),
            chunk: Vec::new(),
            small: Vec::new(),
            meter: options.meter.clone(),
        }
    }

    /// Hashes files. Returns the results in the order of `targets`.
    pub(crate) fn hash(&mut self, targets: &[Target<'_>]) -> Vec<Hashed> {
        let mut results: Vec<Hashed> = Vec::with_capacity(targets.len());
        let mut waiting = Vec::new();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        for (place, target) in targets.iter().enumerate() {
            if self.reading.stopped() {
                results.push(Hashed::Unsettled);
                continue;
            }
            let result = match target.dir.open_read(target.name) {
                Ok((_, stat)) if self.reading.is_unsettled(&self.rest, now, &stat, self.settle) => {
                    Hashed::Unsettled
                }
                Ok((file, stat)) if stat.size <= SMALL => match self.read_small(file, &stat) {
                    Ok(range) => {
                        self.meter.add(0, stat.size);
                        waiting.extend(range.map(|range| Waiting { place, range, stat }));
                        // Placeholder until the digest of the file is known.
                        Hashed::Unsettled
                    }
                    Err(error) => Hashed::Failed(error),
                },
                Ok((file, stat)) => match self.reading.aside.filter(|_| stat.size > LARGE) {
                    Some(aside) => match aside.take(&fingerprint_of(&stat)) {
                        Some((state, stat, kept)) => Hashed::Stable(state, stat, kept),
                        None => Hashed::Large,
                    },
                    None => {
                        self.hash_large(file, &stat, target.name).unwrap_or_else(Hashed::Failed)
                    }
                },
                Err(error) if is_gone(error.kind()) => Hashed::Gone,
                Err(error) => Hashed::Failed(error.into()),
            };
            results.push(result);
            if self.small.len() >= TOGETHER {
                self.digest_small(targets, &mut waiting, &mut results);
            }
        }
        self.digest_small(targets, &mut waiting, &mut results);
        results
    }

    /// Reads a small file into the buffer; `None` if the file changed meanwhile.
    fn read_small(&mut self, mut file: File, before: &Stat) -> io::Result<Option<Range<usize>>> {
        let start = self.small.len();
        let end = start + before.size as usize;
        self.small.resize(end, 0);
        let read = match file.read_exact(&mut self.small[start..end]) {
            Ok(()) => Stat::of(&file)
                .map_err(io::Error::from)
                .map(|after| fingerprint_of(&after) == fingerprint_of(before)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        };
        if !matches!(read, Ok(true)) {
            self.small.truncate(start);
        }
        read.map(|same| same.then_some(start..end))
    }

    fn digest_small(
        &mut self,
        targets: &[Target<'_>],
        waiting: &mut Vec<Waiting>,
        results: &mut [Hashed],
    ) {
        let bytes: Vec<&[u8]> =
            waiting.iter().map(|file| &self.small[file.range.clone()]).collect();
        let mut digests = vec![Digests::default(); bytes.len()];
        if self.policy.md5() {
            for (digests, md5) in digests.iter_mut().zip(md5_lanes::digests(&bytes)) {
                digests.md5 = Some(md5);
            }
        }
        if self.policy.sha256() {
            for (digests, bytes) in digests.iter_mut().zip(&bytes) {
                digests.sha256 = Some(Sha256::digest(bytes).into());
            }
        }
        for (file, digests) in waiting.drain(..).zip(digests) {
            let state = state_of(targets[file.place].name, &file.stat, digests);
            let kept = self
                .contents
                .as_ref()
                .map(|contents| contents.put_bytes(&self.small[file.range]))
                .transpose();
            results[file.place] = match kept {
                Ok(kept) => stable(state, file.stat, kept),
                Err(error) => not_kept(error),
            };
        }
        self.small.clear();
    }

    fn hash_large(&mut self, mut file: File, before: &Stat, name: &[u8]) -> io::Result<Hashed> {
        let mut md5 = self.policy.md5().then(Md5::new);
        let mut sha256 = self.policy.sha256().then(Sha256::new);
        let mut length = 0_u64;
        let meter = self.meter.clone();
        let _named = meter.item(|| String::from_utf8_lossy(name).into_owned());
        let (reading, mut report) = (self.reading, Instant::now() + PROGRESS);
        let mut update = |bytes: &[u8]| {
            if reading.stopped() {
                return Err(io::Error::other("stopped"));
            }
            length += bytes.len() as u64;
            meter.add(0, bytes.len() as u64);
            if report <= Instant::now() {
                report = Instant::now() + PROGRESS;
                let name = String::from_utf8_lossy(name);
                tracing::info!(file = %name.escape_debug(), bytes = length, of = before.size, "reading a large file");
            }
            if let Some(md5) = &mut md5 {
                md5.update(bytes);
            }
            if let Some(sha256) = &mut sha256 {
                sha256.update(bytes);
            }
            Ok(())
        };
        let kept = if let Some(contents) = &self.contents {
            match contents.put_file(file.as_fd(), before.size, &mut update) {
                Ok(kept) => Some(kept),
                Err(error) if error.kind() == ContentErrorKind::TooLong => {
                    return Ok(Hashed::Unsettled);
                }
                Err(_) if reading.stopped() => return Ok(Hashed::Unsettled),
                Err(error) => return Ok(not_kept(error)),
            }
        } else {
            self.chunk.resize(CHUNK, 0);
            match read_all(&mut file, &mut self.chunk, before.size, &mut update) {
                Ok(true) => None,
                Ok(false) => return Ok(Hashed::Unsettled),
                Err(_) if reading.stopped() => return Ok(Hashed::Unsettled),
                Err(error) => return Err(error),
            }
        };
        if length != before.size || fingerprint_of(&Stat::of(&file)?) != fingerprint_of(before) {
            return Ok(Hashed::Unsettled);
        }
        let digests = Digests {
            md5: md5.map(|md5| md5.finalize().into()),
            sha256: sha256.map(|sha256| sha256.finalize().into()),
            ..Digests::default()
        };
        Ok(stable(state_of(name, before, digests), *before, kept))
    }
}

/// Distinguishes errors of the file from errors of the store.
fn not_kept(error: ContentError) -> Hashed {
    match error.kind() {
        ContentErrorKind::Input | ContentErrorKind::Foreign => Hashed::Failed(error.into()),
        _ => Hashed::NotKept(error),
    }
}

/// Reads a file to its end. Returns false if the file is longer than `size`.
fn read_all(
    file: &mut File,
    chunk: &mut [u8],
    size: u64,
    update: &mut dyn FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<bool> {
    let mut length = 0_u64;
    loop {
        let read = match file.read(chunk) {
            Ok(0) => return Ok(true),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        length += read as u64;
        if length > size {
            return Ok(false);
        }
        update(&chunk[..read])?;
    }
}

fn stable(state: State, stat: Stat, kept: Option<PinnedContent>) -> Hashed {
    let content = kept.as_ref().map(PinnedContent::id);
    Hashed::Stable(State { content, ..state }, stat, kept)
}

pub(crate) fn state_of(name: &[u8], stat: &Stat, digests: Digests) -> State {
    State {
        modified: modified_of(stat),
        length: Some(stat.size),
        media_type: Some(media_type_of(name).to_owned()),
        encoding: None,
        digests,
        ..State::default()
    }
}

/// Returns the time for Last-Modified, in whole seconds as in HTTP.
pub(crate) fn modified_of(stat: &Stat) -> Timestamp {
    Timestamp::from_seconds(stat.mtime_ns.div_euclid(1_000_000_000))
}
