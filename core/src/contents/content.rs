//! A stored content that is open for reading.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// The bytes of an open content. Several readers use it at the same time.
pub trait ContentSource: Send + Sync + fmt::Debug {
    /// Number of bytes in the content.
    fn length(&self) -> u64;

    /// Reads at an offset; may return fewer bytes than fit, and none only at the end. Transfers
    /// only these bytes from a store behind a network. Blocks.
    ///
    /// # Errors
    /// The store failed or is out of reach, or the content was removed or is damaged.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// As [`Self::read_at`], by a reader that probably continues: a store behind a network fetches
    /// more than fits.
    ///
    /// # Errors
    /// As [`Self::read_at`].
    fn read_ahead(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.read_at(offset, buffer)
    }

    /// The file that has exactly these bytes, if it is on this machine.
    fn file(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The bytes, if they are in memory.
    fn in_memory(&self) -> Option<&[u8]> {
        None
    }

    /// A URL with which anybody can read the bytes by GET, as this media type, until its time is over;
    /// `None` if the store does not sign URLs. Blocks.
    ///
    /// # Errors
    /// The credentials of the store cannot be read.
    fn signed_url(&self, _media_type: &str, _valid: Duration) -> io::Result<Option<String>> {
        Ok(None)
    }
}

/// A stored content, open for reading. A clone has its own offset.
#[derive(Clone, Debug)]
pub struct Content {
    source: Arc<dyn ContentSource>,
    offset: u64,
}

impl Content {
    /// A content with these bytes, at its first byte.
    pub fn new(source: Arc<dyn ContentSource>) -> Self {
        Self { source, offset: 0 }
    }

    /// A content whose bytes are in memory.
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self::new(Arc::new(Bytes(bytes)))
    }

    /// Number of bytes in the content.
    pub fn length(&self) -> u64 {
        self.source.length()
    }

    /// The file that has exactly these bytes, if it is on this machine.
    pub fn file(&self) -> Option<BorrowedFd<'_>> {
        self.source.file()
    }

    /// The bytes, if they are in memory.
    pub fn in_memory(&self) -> Option<&[u8]> {
        self.source.in_memory()
    }

    /// The source, for reading at several offsets.
    pub fn into_source(self) -> Arc<dyn ContentSource> {
        self.source
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_ahead(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

impl Seek for Content {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let offset = match to {
            SeekFrom::Start(offset) => Some(offset),
            SeekFrom::End(distance) => self.length().checked_add_signed(distance),
            SeekFrom::Current(distance) => self.offset.checked_add_signed(distance),
        };
        self.offset = offset.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.offset)
    }
}

/// A content whose bytes are in memory.
#[derive(Debug)]
pub struct Bytes(pub Vec<u8>);

impl ContentSource for Bytes {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(self.0.len());
        (&self.0[from..]).read(buffer)
    }

    fn in_memory(&self) -> Option<&[u8]> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_is_read_from_any_offset() {
        let mut content = Content::of_bytes(b"abcdef".to_vec());
        let mut other = content.clone();
        let read = |content: &mut Content| {
            let mut text = String::new();
            content.read_to_string(&mut text).unwrap();
            text
        };
        assert_eq!(content.seek(SeekFrom::End(-2)).unwrap(), 4);
        assert_eq!((read(&mut content).as_str(), read(&mut other).as_str()), ("ef", "abcdef"));
        assert_eq!(content.seek(SeekFrom::Current(-5)).unwrap(), 1);
        assert_eq!(read(&mut content), "bcdef");
        content.seek(SeekFrom::Start(u64::MAX)).unwrap();
        assert_eq!(read(&mut content), "");
        assert!(content.seek(SeekFrom::End(-7)).is_err());
    }
}
