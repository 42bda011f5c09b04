//! The folder `packed`: segments and runs. Every file is opened relative to the handle of the
//! folder, and symbolic links are not followed.

use crate::layout::{FOLDER, NEW, READ, make_folder};
use crate::packed::run::Span;
use rustix::fs::{AtFlags, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

/// Name of the folder in the folder of stored contents.
const NAME: &str = "packed";
/// Only the process that stores contents may write segments and runs.
const MODE: Mode = Mode::from_raw_mode(0o644);

/// The folder, with open handles.
pub(crate) struct Files {
    /// `None` if the folder does not exist; then there are no files.
    folder: Option<OwnedFd>,
    /// The folder in which runs are written, before they are moved to `folder`.
    temporary: Option<OwnedFd>,
}

/// The files in the folder.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Numbers of segments, lowest first.
    pub(crate) segments: Vec<u32>,
    /// Runs that together are the index, oldest first.
    pub(crate) runs: Vec<Span>,
    /// Runs whose parts are all in another run, left from a merge.
    pub(crate) outdated: Vec<Span>,
    /// Whether a run is missing between others.
    pub(crate) gap: bool,
}

impl Files {
    /// Opens the folder for writing, and creates it if it does not exist.
    pub(crate) fn open(root: &OwnedFd, temporary: &OwnedFd) -> io::Result<Self> {
        make_folder(root, NAME)?;
        let folder = openat(root, NAME, FOLDER, Mode::empty())?;
        Ok(Self { folder: Some(folder), temporary: Some(temporary.try_clone()?) })
    }

    /// Opens the folder read-only, if it exists.
    pub(crate) fn open_read(root: Option<&OwnedFd>) -> io::Result<Self> {
        let folder = match root.map(|root| openat(root, NAME, FOLDER, Mode::empty())) {
            Some(Ok(folder)) => Some(folder),
            None | Some(Err(Errno::NOENT)) => None,
            Some(Err(errno)) => return Err(errno.into()),
        };
        Ok(Self { folder, temporary: None })
    }

    fn folder(&self) -> io::Result<&OwnedFd> {
        Ok(self.folder.as_ref().ok_or(Errno::NOENT)?)
    }

    /// Lists segments and runs; other files are ignored.
    pub(crate) fn list(&self) -> io::Result<Listing> {
        let (mut listing, mut spans) = (Listing::default(), Vec::new());
        let Some(folder) = &self.folder else { return Ok(listing) };
        for entry in rustix::fs::Dir::read_from(folder)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            spans.extend(Span::of(name));
            listing.segments.extend(segment_of(name));
        }
        listing.segments.sort_unstable();
        // If two have the same first part, the longer one is first.
        spans.sort_unstable_by_key(|span| (span.from, u64::MAX - span.to));
        let mut end = 0;
        for span in spans {
            if span.to <= end {
                listing.outdated.push(span);
            } else {
                listing.gap |= span.from != end + 1;
                end = span.to;
                listing.runs.push(span);
            }
        }
        Ok(listing)
    }

    pub(crate) fn open_segment(&self, number: u32) -> io::Result<File> {
        Ok(openat(self.folder()?, segment_name(number), READ, Mode::empty())?.into())
    }

    /// Opens a segment for appending.
    pub(crate) fn open_segment_for_writing(&self, number: u32) -> io::Result<File> {
        Ok(openat(self.folder()?, segment_name(number), READ | OFlags::RDWR, Mode::empty())?.into())
    }

    pub(crate) fn create_segment(&self, number: u32) -> io::Result<File> {
        Ok(openat(self.folder()?, segment_name(number), NEW, MODE)?.into())
    }

    pub(crate) fn remove_segment(&self, number: u32) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.folder()?, segment_name(number), AtFlags::empty())?)
    }

    pub(crate) fn open_run(&self, span: Span) -> io::Result<File> {
        Ok(openat(self.folder()?, span.name(), READ, Mode::empty())?.into())
    }

    pub(crate) fn remove_run(&self, span: Span) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(self.folder()?, span.name(), AtFlags::empty())?)
    }

    /// Writes a run, which is durable when this returns. On failure, the file is removed.
    pub(crate) fn write_run(
        &self,
        span: Span,
        write: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<File> {
        let temporary = self.temporary.as_ref().ok_or(Errno::ROFS)?;
        let name = span.name();
        let file = File::from(openat(temporary, name.as_str(), NEW, MODE)?);
        let written = write(&file).and_then(|()| file.sync_data()).and_then(|()| {
            Ok(rustix::fs::renameat(temporary, name.as_str(), self.folder()?, name.as_str())?)
        });
        if let Err(error) = written {
            let _ = rustix::fs::unlinkat(temporary, name.as_str(), AtFlags::empty());
            return Err(error);
        }
        self.sync_names()?;
        Ok(file)
    }

    /// Makes the directory entries of new files durable.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        Ok(rustix::fs::fsync(self.folder()?)?)
    }
}

fn segment_name(number: u32) -> String {
    format!("{number:010}.segment")
}

fn segment_of(name: &str) -> Option<u32> {
    let number = name.strip_suffix(".segment")?.parse().ok()?;
    (segment_name(number) == name).then_some(number)
}
