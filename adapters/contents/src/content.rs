//! A stored content that is open for reading.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};

/// A stored content, open for reading: to its end, also if it is removed meanwhile.
#[derive(Debug)]
pub enum Content {
    /// A large content, which is a separate file.
    File(File),
    /// A small content, read completely and verified against its address.
    Bytes(Cursor<Vec<u8>>),
}

impl Content {
    /// Length of the content in bytes.
    ///
    /// # Errors
    /// The disk failed.
    pub fn length(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Bytes(bytes) => Ok(bytes.get_ref().len() as u64),
        }
    }
}

impl Read for Content {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(buffer),
            Self::Bytes(bytes) => bytes.read(buffer),
        }
    }
}

impl Seek for Content {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::File(file) => file.seek(to),
            Self::Bytes(bytes) => bytes.seek(to),
        }
    }
}
