//! The address of bytes, and the comparison of bytes that are read with their address.

use crate::ContentId;
use std::io::{self, Read};
use std::sync::{Mutex, PoisonError};

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// The address of these bytes.
pub fn address_of(bytes: &[u8]) -> ContentId {
    ContentId(*blake3::hash(bytes).as_bytes())
}

/// The address of all bytes of a reader, and their number.
///
/// # Errors
/// The reader failed.
pub fn digest_of(reader: &mut dyn Read) -> io::Result<(ContentId, u64)> {
    let (mut hasher, mut chunk) = (ContentHasher::default(), vec![0; CHUNK]);
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(read) => hasher.update(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// The address of bytes that come in parts.
#[derive(Debug, Default)]
pub struct ContentHasher {
    hasher: blake3::Hasher,
    length: u64,
}

impl ContentHasher {
    /// Adds the next bytes of the content.
    pub fn update(&mut self, bytes: &[u8]) {
        self.hasher.update(bytes);
        self.length += bytes.len() as u64;
    }

    /// Number of bytes so far.
    pub const fn length(&self) -> u64 {
        self.length
    }

    /// The address of the bytes so far, and their number.
    pub fn finish(&self) -> (ContentId, u64) {
        (ContentId(*self.hasher.finalize().as_bytes()), self.length)
    }
}

/// Compares a content with its address while it is read from the first byte to the last. Reading in
/// another order is not checked.
#[derive(Debug)]
pub struct SequentialCheck {
    id: ContentId,
    length: u64,
    /// The bytes so far; `None` after a read at another offset.
    read: Mutex<Option<ContentHasher>>,
}

impl SequentialCheck {
    /// The check of a content with this address and length.
    pub fn new(id: ContentId, length: u64) -> Self {
        Self { id, length, read: Mutex::new(Some(ContentHasher::default())) }
    }

    /// Adds bytes that were read at an offset.
    ///
    /// # Errors
    /// These are the last bytes, and the content differs from its address
    /// ([`io::ErrorKind::InvalidData`]): they must not be passed on.
    pub fn add(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if offset == 0 {
            *read = Some(ContentHasher::default());
        }
        match read.as_mut().filter(|hasher| hasher.length() == offset) {
            Some(hasher) => hasher.update(bytes),
            None => *read = None,
        }
        match read.as_ref().filter(|hasher| hasher.length() >= self.length) {
            Some(hasher) if hasher.finish() != (self.id, self.length) => {
                // The next read fails too.
                *read = None;
                Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("the kept content {} has other bytes", self.id),
                ))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_bytes_of_a_damaged_content_are_refused() {
        let id = address_of(b"abcdef");
        let check = SequentialCheck::new(id, 6);
        check.add(0, b"abc").unwrap();
        check.add(3, b"def").unwrap();
        check.add(0, b"abc").unwrap();
        assert_eq!(check.add(3, b"dex").unwrap_err().kind(), io::ErrorKind::InvalidData);
        // A part alone says nothing.
        check.add(4, b"xx").unwrap();
        check.add(0, b"ab").unwrap();
        check.add(4, b"xx").unwrap();
        assert!(check.add(0, b"xxxxxx").is_err(), "read again from the first byte");
    }

    #[test]
    fn parts_have_the_address_of_the_whole() {
        let mut hasher = ContentHasher::default();
        for part in [&b"ab"[..], b"", b"cd"] {
            hasher.update(part);
        }
        assert_eq!(hasher.finish(), (address_of(b"abcd"), 4));
        assert_eq!(digest_of(&mut &b"abcd"[..]).unwrap(), (address_of(b"abcd"), 4));
    }
}
