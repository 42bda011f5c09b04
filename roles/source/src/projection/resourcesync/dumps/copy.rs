//! Copying of bytes into a package. Bytes are read once, hashed meanwhile, and listed only if they
//! agree with the log.
//!
//! Small bitstreams are read in groups and hashed in parallel; large bitstreams are streamed. Items
//! that do not agree with the log are returned with the reason, and the caller decides whether to
//! retry.

use super::package::PackageWriter;
use super::parts::Parts;
use super::{Cancel, DumpError};
use crate::Representations;
use abreast_core::State;
use abreast_resourcesync::v1_1::Entry;
use abreast_webtypes::{Timestamp, md5_lanes};
use md5::{Digest as _, Md5};
use sha2::Sha256;
use std::io::{self, Read};
use std::ops::Range;

/// Bitstreams up to this size are read whole.
const SMALL: u64 = 256 * 1024;
/// Bytes of small ones in memory before they are hashed and written.
const TOGETHER: usize = 2 * 1024 * 1024;
/// Bytes of a large one read at a time.
const CHUNK: usize = 512 * 1024;
/// Small ones in memory, however few bytes they have.
const MOST_TOGETHER: usize = 1_024;

/// A resource or a change for the package.
pub(super) struct Item {
    pub(super) key: String,
    /// Required state of the bytes; `None` for a deletion, which does not have bytes.
    pub(super) state: Option<State>,
    /// Entry in the manifest of the package.
    pub(super) entry: Entry,
    /// Time of the change; for a resource, `at` of the dump.
    pub(super) time: Timestamp,
}

/// An item that could not be packaged, with the reason.
pub(super) struct Refused {
    pub(super) key: String,
    pub(super) why: String,
}

struct Waiting {
    item: Item,
    /// Range of the item's bytes in the buffer.
    bytes: Option<Range<usize>>,
}

pub(super) struct Copier<'a> {
    bytes: &'a Representations,
    cancel: Cancel<'a>,
    small: Vec<u8>,
    chunk: Vec<u8>,
    waiting: Vec<Waiting>,
    /// Resources that could not be packaged; the caller takes them from here.
    pub(super) refused: Vec<Refused>,
}

impl<'a> Copier<'a> {
    pub(super) fn new(bytes: &'a Representations, cancel: Cancel<'a>) -> Self {
        let (small, chunk) = (Vec::with_capacity(TOGETHER + SMALL as usize), vec![0; CHUNK]);
        Self { bytes, cancel, small, chunk, waiting: Vec::new(), refused: Vec::new() }
    }

    /// Packages an item now, or at the next [`Self::flush`], in the order of the calls.
    pub(super) fn take(&mut self, item: Item, parts: &mut Parts<'_>) -> Result<(), DumpError> {
        let Some(state) = &item.state else {
            self.waiting.push(Waiting { item, bytes: None });
            return self.flush_if_full(parts);
        };
        if !self.bytes.selects(&item.key) {
            // Neither the file nor its stored contents are packaged.
            self.refuse(item.key, "the rules of the set leave it out".to_owned());
            return Ok(());
        }
        let Some(length) = state.length else {
            self.refuse(item.key, "its length is not known".to_owned());
            return Ok(());
        };
        if length > SMALL {
            self.flush(parts)?;
            return self.stream(item, length, parts);
        }
        match self.read_small(&item.key, state, length) {
            Ok(bytes) => self.waiting.push(Waiting { item, bytes: Some(bytes) }),
            Err(why) => self.refuse(item.key, why),
        }
        self.flush_if_full(parts)
    }

    fn flush_if_full(&mut self, parts: &mut Parts<'_>) -> Result<(), DumpError> {
        if self.small.len() >= TOGETHER || self.waiting.len() >= MOST_TOGETHER {
            self.flush(parts)
        } else {
            Ok(())
        }
    }

    /// Packages all waiting items.
    pub(super) fn flush(&mut self, parts: &mut Parts<'_>) -> Result<(), DumpError> {
        self.go_on()?;
        let mut waiting = std::mem::take(&mut self.waiting);
        let messages: Vec<&[u8]> = waiting
            .iter()
            .filter(|waiting| wants_md5(waiting))
            .filter_map(|waiting| self.bytes_of(waiting))
            .collect();
        let mut digests = md5_lanes::digests(&messages).into_iter();
        drop(messages);
        for waiting in waiting.drain(..) {
            let Waiting { item, bytes } = waiting;
            let (Some(state), Some(range)) = (&item.state, bytes) else {
                parts.room_for(0)?.list(&item.entry, 0);
                parts.wrote(item.time);
                continue;
            };
            let md5_agrees = state.digests.md5.is_none_or(|md5| digests.next() == Some(md5));
            let bytes = &self.small[range];
            if md5_agrees && sha256_agrees(state, bytes) {
                parts
                    .room_for(bytes.len() as u64)?
                    .add(&item.entry, state, bytes)
                    .map_err(DumpError::Write)?;
                parts.wrote(item.time);
            } else if let Some(bytes) = self.read_kept(state) {
                parts
                    .room_for(bytes.len() as u64)?
                    .add(&item.entry, state, &bytes)
                    .map_err(DumpError::Write)?;
                parts.wrote(item.time);
            } else {
                self.refuse(item.key, DIFFERS.to_owned());
            }
        }
        self.waiting = waiting;
        self.small.clear();
        Ok(())
    }

    fn bytes_of(&self, waiting: &Waiting) -> Option<&[u8]> {
        waiting.bytes.clone().map(|range| &self.small[range])
    }

    fn refuse(&mut self, key: String, why: String) {
        self.refused.push(Refused { key, why });
    }

    fn go_on(&self) -> Result<(), DumpError> {
        if self.cancel.is_wanted() { Err(DumpError::Cancelled) } else { Ok(()) }
    }

    /// Reads the file if it has the expected length, otherwise the stored contents.
    fn read_small(
        &mut self,
        key: &str,
        state: &State,
        length: u64,
    ) -> Result<Range<usize>, String> {
        let start = self.small.len();
        let read = self.open(key).and_then(|file| {
            let read = file
                .take(length + 1)
                .read_to_end(&mut self.small)
                .map_err(|error| error.to_string())?;
            if read as u64 == length { Ok(()) } else { Err(DIFFERS.to_owned()) }
        });
        if let Err(why) = read {
            self.small.truncate(start);
            let kept = self.read_kept(state).ok_or(why)?;
            self.small.extend_from_slice(&kept);
        }
        Ok(start..self.small.len())
    }

    fn open(&self, key: &str) -> Result<std::fs::File, String> {
        let elsewhere = || Err("it is not in the published folder".to_owned());
        self.bytes.open_file(key).unwrap_or_else(elsewhere)
    }

    /// Reads the stored contents of a small state, if they are available and correct.
    fn read_kept(&self, state: &State) -> Option<Vec<u8>> {
        let kept = self.bytes.kept(state)?;
        let length = state.length?;
        let mut bytes = Vec::with_capacity(length as usize);
        kept.take(length + 1).read_to_end(&mut bytes).ok()?;
        let md5_agrees =
            state.digests.md5.is_none_or(|md5| md5 == <[u8; 16]>::from(Md5::digest(&bytes)));
        (bytes.len() as u64 == length && md5_agrees && sha256_agrees(state, &bytes))
            .then_some(bytes)
    }

    /// Packages a large item, from the file or from stored contents.
    fn stream(&mut self, item: Item, length: u64, parts: &mut Parts<'_>) -> Result<(), DumpError> {
        let Item { key, state: Some(state), entry, time } = item else { return Ok(()) };
        let why = match self.open(&key) {
            Ok(file) => match self.copy(file, &entry, &state, length, parts.room_for(length)?)? {
                None => {
                    parts.wrote(time);
                    return Ok(());
                }
                Some(why) => why,
            },
            Err(why) => why,
        };
        if let Some(bytes) = self.bytes.kept(&state)
            && self.copy(bytes, &entry, &state, length, parts.room_for(length)?)?.is_none()
        {
            parts.wrote(time);
            return Ok(());
        }
        self.refuse(key, why);
        Ok(())
    }

    /// Copies and hashes in one pass. If the bytes do not have the state, returns the reason, and
    /// removes them from the package.
    fn copy(
        &mut self,
        mut from: impl Read,
        entry: &Entry,
        state: &State,
        length: u64,
        package: &mut PackageWriter,
    ) -> Result<Option<String>, DumpError> {
        let mut md5 = state.digests.md5.map(|wanted| (wanted, Md5::new()));
        let mut sha256 = state.digests.sha256.map(|wanted| (wanted, Sha256::new()));
        let mut total = 0;
        let mut why = None;
        package.begin(entry, state).map_err(DumpError::Write)?;
        loop {
            self.go_on()?;
            let read = match from.read(&mut self.chunk) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    why = Some(error.to_string());
                    break;
                }
            };
            total += read as u64;
            if total > length {
                break;
            }
            let bytes = &self.chunk[..read];
            if let Some((_, md5)) = &mut md5 {
                md5.update(bytes);
            }
            if let Some((_, sha256)) = &mut sha256 {
                sha256.update(bytes);
            }
            package.write(bytes).map_err(DumpError::Write)?;
        }
        let agrees = total == length
            && md5.is_none_or(|(wanted, md5)| wanted == <[u8; 16]>::from(md5.finalize()))
            && sha256.is_none_or(|(wanted, sha256)| wanted == <[u8; 32]>::from(sha256.finalize()));
        if why.is_none() && agrees {
            package.end(entry, length);
            return Ok(None);
        }
        package.abort().map_err(DumpError::Write)?;
        Ok(Some(why.unwrap_or_else(|| DIFFERS.to_owned())))
    }
}

const DIFFERS: &str = "its bytes are not those recorded";

fn wants_md5(waiting: &Waiting) -> bool {
    waiting.bytes.is_some()
        && waiting.item.state.as_ref().is_some_and(|state| state.digests.md5.is_some())
}

fn sha256_agrees(state: &State, bytes: &[u8]) -> bool {
    state.digests.sha256.is_none_or(|sha256| sha256 == <[u8; 32]>::from(Sha256::digest(bytes)))
}
