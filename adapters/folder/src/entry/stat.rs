//! Metadata of a file or folder.

use crate::entry::error::Error;
use rustix::fs::{FileType, Timespec, Timestamps, UTIME_OMIT};
use std::fs::File;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A regular file, which can be published.
    File,
    /// A folder, whose entries can be listed.
    Folder,
    /// A symbolic link, never followed.
    Symlink,
    /// A pipe, socket or device, never opened.
    Other,
}

impl Kind {
    pub(crate) const fn from_type(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Folder,
            FileType::Symlink => Self::Symlink,
            _ => Self::Other,
        }
    }
}

/// Size, times and identity of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stat {
    /// Length of the content in bytes.
    pub size: u64,
    /// Last modification, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// Last change of content or metadata, nanoseconds since 1970.
    pub ctime_ns: i64,
    /// Number of the file within its file system.
    pub inode: u64,
    /// Number of the file system.
    pub device: u64,
    /// The kind of the file.
    pub kind: Kind,
    /// Number of hard links to the file.
    pub links: u64,
}

impl Stat {
    #[allow(
        clippy::unnecessary_cast,
        clippy::useless_conversion,
        reason = "field widths differ between systems"
    )]
    pub(crate) fn from_raw(raw: &rustix::fs::Stat) -> Self {
        let nanos =
            |seconds: i64, rest: i64| seconds.saturating_mul(1_000_000_000).saturating_add(rest);
        Self {
            size: raw.st_size as u64,
            mtime_ns: nanos(raw.st_mtime as i64, raw.st_mtime_nsec as i64),
            ctime_ns: nanos(raw.st_ctime as i64, raw.st_ctime_nsec as i64),
            inode: raw.st_ino as u64,
            device: raw.st_dev as u64,
            kind: Kind::from_type(FileType::from_raw_mode(raw.st_mode)),
            links: raw.st_nlink as u64,
        }
    }

    /// Metadata of an open file.
    ///
    /// # Errors
    /// The system's own.
    pub fn of(file: &File) -> Result<Self, Error> {
        let raw = rustix::fs::fstat(file)
            .map_err(|errno| Error::new("examine", b"(open file)", errno))?;
        Ok(Self::from_raw(&raw))
    }
}

pub(crate) fn timestamps(mtime_ns: i64) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec {
            tv_sec: mtime_ns.div_euclid(1_000_000_000),
            tv_nsec: mtime_ns.rem_euclid(1_000_000_000) as _,
        },
    }
}

/// Sets the modification time of an open file, nanoseconds since 1970.
///
/// # Errors
/// The system's own.
pub fn set_modified(file: &File, mtime_ns: i64) -> Result<(), Error> {
    rustix::fs::futimens(file, &timestamps(mtime_ns))
        .map_err(|errno| Error::new("set the time of", b"(open file)", errno))
}
