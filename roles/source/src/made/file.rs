//! Writer that leaves free space for the store.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// Bytes left free on the disk, for the store.
const RESERVE: u64 = 256 * 1024 * 1024;
/// Bytes written between two checks of the free space.
const CHECK: u64 = 64 * 1024 * 1024;

/// A new file. Writing fails before the disk is full.
pub(crate) struct MadeFile {
    file: File,
    /// Bytes written since the last check of the free space.
    unchecked: u64,
    check: fn(&File, u64) -> io::Result<()>,
}

impl MadeFile {
    /// Creates a file for about `bytes` bytes. Fails if the file exists, or if the free space is too small.
    pub(crate) fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        #[cfg(test)]
        super::steps::at(path)?;
        let file = File::create_new(path)?;
        check_free(&file, bytes)?;
        Ok(Self { file, unchecked: 0, check: check_free })
    }

    /// Creates a file with these bytes, and makes it durable.
    pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = Self::create(path, bytes.len() as u64)?;
        file.write_all(bytes)?;
        file.sync()
    }

    /// Second handle with the same position in the file.
    pub(crate) fn try_clone(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Makes the written bytes durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        #[cfg(test)]
        super::steps::of(&self.file)?;
        self.file.sync_all()
    }
}

impl Write for MadeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(test)]
        super::steps::of(&self.file)?;
        if self.unchecked >= CHECK {
            (self.check)(&self.file, 0)?;
            self.unchecked = 0;
        }
        let written = self.file.write(bytes)?;
        self.unchecked += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for MadeFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

/// Fails if the disk has too little free space for `bytes` more bytes.
fn check_free(file: &File, bytes: u64) -> io::Result<()> {
    let disk = rustix::fs::fstatvfs(file)?;
    leave_reserve(disk.f_bavail.saturating_mul(disk.f_frsize).saturating_sub(bytes))
}

fn leave_reserve(free: u64) -> io::Result<()> {
    if free >= RESERVE + CHECK {
        return Ok(());
    }
    let why =
        format!("only {free} bytes are free, and {} are reserved for the store", RESERVE + CHECK);
    Err(io::Error::new(io::ErrorKind::StorageFull, why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_free_space_is_checked_while_a_file_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = MadeFile::create(&folder.path().join("a"), 0).unwrap();
        file.check = |_, _| Err(io::ErrorKind::StorageFull.into());
        file.write_all(b"few").unwrap();
        file.unchecked = CHECK;
        assert_eq!(file.write_all(b"more").unwrap_err().kind(), io::ErrorKind::StorageFull);
        file.check = |_, _| Ok(());
        file.write_all(b"more").unwrap();
        assert_eq!(file.unchecked, 4);
        let all = MadeFile::create(&folder.path().join("b"), u64::MAX);
        assert_eq!(all.map(drop).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn the_disk_is_never_filled() {
        assert!(leave_reserve(RESERVE + CHECK).is_ok());
        assert_eq!(leave_reserve(RESERVE).unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
