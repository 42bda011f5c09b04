//! Writing contents. Every object is durable when the store has confirmed it.

use super::read::Ranges;
use super::{CONTENTS, Inner, RENEWALS};
use crate::failure::failed;
use crate::requests::PART;
use abreast_core::ContentId;
use abreast_core::contents::{ContentHasher, Error, ErrorKind, PinnedContent, address_of};
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{ObjectStoreExt as _, PutMode, PutOptions};
use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::fd::BorrowedFd;

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;
/// Maximum length in bytes of a content that is sent without a question whether it is stored.
const UNASKED: usize = 64 * 1024;
/// Maximum length in bytes of an object that S3 copies by one request.
const COPIED_MAX: u64 = 5 << 30;
/// Attempts to renew an object that other nodes renew at the same time.
const ATTEMPTS: usize = 3;

impl Inner {
    pub(super) fn put_bytes(&self, bytes: &[u8]) -> Result<PinnedContent, Error> {
        let pinned = self.pins.pin(address_of(bytes), bytes.len() as u64);
        if bytes.len() <= UNASKED {
            self.put_small(&pinned.id(), &Bytes::copy_from_slice(bytes))?;
        } else {
            self.put_large(&pinned, &mut { bytes })?;
        }
        Ok(pinned)
    }

    pub(super) fn put_reader(
        &self,
        reader: &mut dyn Read,
        limit: u64,
    ) -> Result<PinnedContent, Error> {
        let (first, is_whole) = first_part(reader, limit)?;
        if is_whole {
            return self.put_bytes(first.get_ref());
        }
        // The key follows from the last byte, so the bytes wait in a file.
        let mut file = tempfile::tempfile_in(&self.options.temporary).map_err(spooling)?;
        let mut hasher = ContentHasher::default();
        pass(&mut first.chain(reader), limit, &mut hasher, &mut |bytes| {
            file.write_all(bytes).map_err(spooling)
        })?;
        file.rewind().map_err(spooling)?;
        let (id, length) = hasher.finish();
        let pinned = self.pins.pin(id, length);
        self.put_large(&pinned, &mut file)?;
        Ok(pinned)
    }

    pub(super) fn put_file(
        &self,
        file: BorrowedFd<'_>,
        limit: u64,
        seen: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<PinnedContent, Error> {
        // A copy of the handle; both have one offset.
        let mut file = File::from(file.try_clone_to_owned().map_err(Error::input)?);
        file.rewind().map_err(Error::input)?;
        let (first, is_whole) = first_part(&mut file, limit)?;
        if is_whole {
            seen(first.get_ref()).map_err(Error::input)?;
            return self.put_bytes(first.get_ref());
        }
        let mut hasher = ContentHasher::default();
        pass(&mut first.chain(&mut file), limit, &mut hasher, &mut |bytes| {
            seen(bytes).map_err(Error::input)
        })?;
        file.rewind().map_err(Error::input)?;
        let (id, length) = hasher.finish();
        let pinned = self.pins.pin(id, length);
        self.put_large(&pinned, &mut file)?;
        Ok(pinned)
    }

    pub(super) fn hold(&self, id: &ContentId) -> Result<Option<PinnedContent>, Error> {
        // Pin first, so that `sync` asks for its mark.
        let pinned = self.pins.pin(*id, 0);
        for attempt in 1.. {
            let Some(meta) = self.head(id)? else { return Ok(None) };
            if self.is_fresh(&meta) {
                return Ok(Some(pinned.with_length(meta.size)));
            }
            match self.renew(id, meta.size) {
                Ok(()) => return Ok(Some(pinned.with_length(meta.size))),
                // Another node has renewed or removed it meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound && attempt < ATTEMPTS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Puts a content if the store does not have it; if it has, asks for its bytes and age.
    fn put_small(&self, id: &ContentId, bytes: &Bytes) -> Result<(), Error> {
        use object_store::Error as E;
        let (key, task) = (self.key(CONTENTS, id), storing(id));
        let put = |mode: PutMode| {
            let options = PutOptions { mode, ..PutOptions::default() };
            self.backend().put_opts(&key, bytes.clone().into(), options)
        };
        match self.answer(&task, put(PutMode::Create))? {
            Ok(_) => return Ok(()),
            // The others are of stores without conditional writes.
            Err(E::AlreadyExists { .. } | E::NotImplemented { .. } | E::NotSupported { .. }) => {}
            Err(cause) => return Err(failed(&task, &cause)),
        }
        if self.has_same(id, &key, bytes)? {
            return Ok(());
        }
        self.ask(&task, put(PutMode::Overwrite)).map(|_| ())
    }

    /// Whether the store has an object with these bytes that is fresh.
    fn has_same(&self, id: &ContentId, key: &Key, bytes: &Bytes) -> Result<bool, Error> {
        if bytes.is_empty() {
            return Ok(self.head(id)?.is_some_and(|meta| meta.size == 0 && self.is_fresh(&meta)));
        }
        let found = self.requests().range(&storing(id), key, 0..bytes.len() as u64, None)?;
        // After an error, as of an object that is removed or empty, the bytes are written.
        Ok(found.is_ok_and(|(meta, found)| {
            meta.size == bytes.len() as u64 && found == *bytes && self.is_fresh(&meta)
        }))
    }

    /// Writes a large content if the store does not have it, or it is old.
    fn put_large(&self, pinned: &PinnedContent, reader: &mut dyn Read) -> Result<(), Error> {
        let (id, length) = (pinned.id(), pinned.length());
        let found = self.head(&id)?;
        if found.is_some_and(|meta| meta.size == length && self.is_fresh(&meta)) {
            return Ok(());
        }
        self.write(&id, length, reader)
    }

    fn write(&self, id: &ContentId, length: u64, reader: &mut dyn Read) -> Result<(), Error> {
        self.requests().write(&storing(id), &self.key(CONTENTS, id), (id, length), reader)
    }

    /// Writes an object again, so that its age is zero. The store copies it twice, since S3 does
    /// not copy an object to its own key.
    fn renew(&self, id: &ContentId, length: u64) -> Result<(), Error> {
        if length > COPIED_MAX {
            let ranges = Ranges { inner: self, id: *id, offset: 0, length };
            return self.write(id, length, &mut ranges.buffered());
        }
        let (key, copy) = (self.key(CONTENTS, id), self.key(RENEWALS, id));
        let task = format!("renew the kept content {id}");
        self.ask(&task, self.backend().copy(&key, &copy))?;
        self.ask(&task, self.backend().copy(&copy, &key))?;
        match self.ask(&task, self.backend().delete(&copy)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

/// Reads at most a part; returns whether the reader was at its end.
fn first_part(reader: &mut dyn Read, limit: u64) -> Result<(io::Cursor<Vec<u8>>, bool), Error> {
    let mut first = Vec::new();
    reader.take(PART + 1).read_to_end(&mut first).map_err(Error::input)?;
    if first.len() as u64 > limit {
        return Err(Error::too_long(limit));
    }
    let is_whole = first.len() as u64 <= PART;
    Ok((io::Cursor::new(first), is_whole))
}

/// Reads to the end, passing the bytes on to `to`.
fn pass(
    reader: &mut dyn Read,
    limit: u64,
    hasher: &mut ContentHasher,
    to: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let read = match reader.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::input(error)),
        };
        hasher.update(&chunk[..read]);
        if hasher.length() > limit {
            return Err(Error::too_long(limit));
        }
        to(&chunk[..read])?;
    }
}

fn storing(id: &ContentId) -> String {
    format!("keep the content {id}")
}

fn spooling(cause: io::Error) -> Error {
    let kind = match cause.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Full,
        _ => ErrorKind::Other,
    };
    Error::new(kind, "cannot write a temporary file for a content to keep").with_cause(cause)
}
