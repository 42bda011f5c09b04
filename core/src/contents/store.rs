//! The trait that every store of contents implements.

use crate::ContentId;
use crate::contents::{Content, Error, ErrorKind, PinnedContent};
use std::fmt;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;

/// Bytes read at a time to check a content.
const CHUNK: usize = 256 * 1024;

/// A store of contents. Several threads use it at the same time, and several processes if the store
/// is shared. A call may block for a round trip, for a limited time.
///
/// [`testing::content_store_contract`](crate::testing) checks the promises:
///
/// - A content is stored whole or not at all. A put that fails or breaks off leaves nothing that
///   can be read.
/// - Equal bytes have one address and are stored once, even if they are put at the same time.
/// - After [`Self::sync`], contents that were put before survive a crash of the process.
/// - A pinned content is not removed. A store that several processes share cannot see the pins of
///   the others: it retains every content for a grace time after it was put or held, so the row
///   must be recorded within half of this time.
/// - Bytes that differ from their address are an error ([`ErrorKind::Damaged`]) at the latest when
///   they were read from the first to the last.
/// - A store out of reach is an error that passes ([`ErrorKind::Busy`]), after a limited time.
pub trait ContentStore: Send + Sync + fmt::Debug {
    /// Stores bytes. They are durable after the next [`Self::sync`].
    ///
    /// # Errors
    /// The store is full, out of reach or failed; then none of the bytes remain.
    fn put_bytes(&self, bytes: &[u8]) -> Result<PinnedContent, Error>;

    /// Reads to the end of a reader, at most `limit` bytes, and stores the bytes.
    ///
    /// # Errors
    /// The reader failed ([`ErrorKind::Input`]) or has more bytes ([`ErrorKind::TooLong`]), or as
    /// [`Self::put_bytes`].
    fn put_reader(&self, reader: &mut dyn Read, limit: u64) -> Result<PinnedContent, Error>;

    /// Stores all bytes of an open file, at most `limit`; its offset may be anywhere. Passes the bytes to
    /// `seen` too, so that other digests need no second reading; an error of `seen` stops the call.
    ///
    /// If the file is written during the call, the call fails ([`ErrorKind::Input`]), or the stored
    /// bytes are a mixture of old and new ones: the caller must check this.
    ///
    /// # Errors
    /// As [`Self::put_reader`].
    fn put_file(
        &self,
        file: BorrowedFd<'_>,
        limit: u64,
        seen: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<PinnedContent, Error>;

    /// Pins stored bytes, as if they had been put again; `None` if they are not stored.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn hold(&self, id: &ContentId) -> Result<Option<PinnedContent>, Error>;

    /// Makes all contents durable that were put or held before the call.
    ///
    /// # Errors
    /// The store is out of reach or failed: then no row may refer to contents that were put since
    /// the last successful call, until they were put again.
    fn sync(&self) -> Result<(), Error>;

    /// Opens stored bytes for reading. A content that is removed while it is open can be read to
    /// its end, or fails with [`ErrorKind::NotFound`]. Small contents are compared with their
    /// address at once, others when they were read from the first byte to the last.
    ///
    /// # Errors
    /// They are not stored ([`ErrorKind::NotFound`]) or damaged ([`ErrorKind::Damaged`]), or the
    /// store is out of reach or failed.
    fn open_read(&self, id: &ContentId) -> Result<Content, Error>;

    /// Length in bytes of the content with this address, if it is stored.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn length(&self, id: &ContentId) -> Result<Option<u64>, Error>;

    /// Removes stored bytes unless they are pinned, younger than the grace time of a shared store,
    /// or `needed` returns that a row refers to them. Other calls that pin contents may wait during
    /// `needed`, so it should check one row only, and return `true` if the row cannot be read.
    /// Returns whether the bytes were removed.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn remove_unless(
        &self,
        id: &ContentId,
        needed: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error>;

    /// Visits the addresses of stored bytes whose first byte is `first`, in order: call it with 0
    /// to 255 to visit all. Contents that are put or removed meanwhile may be visited or not.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn visit(
        &self,
        first: u8,
        visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
    ) -> Result<(), Error>;

    /// Whether the store has a content with this address.
    ///
    /// # Errors
    /// As [`Self::length`].
    fn contains(&self, id: &ContentId) -> Result<bool, Error> {
        self.length(id).map(|length| length.is_some())
    }

    /// Whether the store has a content with this address and its bytes are undamaged. Reads the
    /// bytes.
    ///
    /// # Errors
    /// The store is out of reach or failed.
    fn is_whole(&self, id: &ContentId) -> Result<bool, Error> {
        let read = self.open_read(id).and_then(|mut content| {
            let mut chunk = vec![0; CHUNK];
            loop {
                match content.read(&mut chunk) {
                    Ok(0) => return Ok(()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(Error::of_read(id, error)),
                }
            }
        });
        match read {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Damaged) => {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes stored bytes as [`Self::remove_unless`], without a row that may refer to them.
    ///
    /// # Errors
    /// As [`Self::remove_unless`].
    fn remove(&self, id: &ContentId) -> Result<bool, Error> {
        self.remove_unless(id, &mut || false)
    }
}
