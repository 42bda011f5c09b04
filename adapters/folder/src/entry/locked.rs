//! A lock on a folder, released when its value is dropped.

use crate::entry::stat::Stat;
use std::fs::File;
use std::io::{self, Seek as _, Write as _};

/// A lock, released when this is dropped.
///
/// The file is unlocked explicitly before it is closed: a process that is just being started has a
/// copy of every open file, and would hold the lock for a short time.
#[derive(Debug)]
pub struct Locked {
    file: File,
}

impl Locked {
    pub(crate) const fn new(file: File) -> Self {
        Self { file }
    }

    #[cfg(test)]
    pub(crate) fn duplicate(&self) -> File {
        self.file.try_clone().expect("a handle more")
    }

    /// Replaces the text in the file, which shows users who has the lock.
    ///
    /// # Errors
    /// The system's own; the file has a second hard link, so it may belong to another program.
    pub fn describe(&mut self, text: &str) -> io::Result<()> {
        if Stat::of(&self.file)?.links > 1 {
            return Err(io::Error::other("the lock file has another name"));
        }
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // If this fails, closing the file releases the lock.
        let _ = self.file.unlock();
    }
}
