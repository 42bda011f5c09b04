//! The address of the bytes of a file.

use abreast_core::ContentId;
use abreast_core::contents::digest_of;
use std::fs::File;
use std::io;
use std::path::Path;

/// The address of the bytes of a file, and their number.
///
/// # Errors
/// It cannot be read.
pub fn digest(path: &Path) -> io::Result<(ContentId, u64)> {
    digest_of(&mut File::open(path)?)
}
