//! The address of the bytes of a file or a reader.

use abreast_core::ContentId;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes read at a time.
const CHUNK: usize = 256 * 1024;

/// The address of these bytes.
pub fn address_of(bytes: &[u8]) -> ContentId {
    ContentId(*blake3::hash(bytes).as_bytes())
}

/// The address of the bytes of a file, and their number.
///
/// # Errors
/// It cannot be read.
pub fn digest(path: &Path) -> io::Result<(ContentId, u64)> {
    digest_of(&mut File::open(path)?)
}

/// The address of all bytes of a reader, and their number.
pub(crate) fn digest_of(reader: &mut dyn Read) -> io::Result<(ContentId, u64)> {
    let (mut hasher, mut chunk, mut length) = (blake3::Hasher::new(), vec![0; CHUNK], 0);
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok((ContentId(*hasher.finalize().as_bytes()), length)),
            Ok(read) => {
                hasher.update(&chunk[..read]);
                length += read as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
