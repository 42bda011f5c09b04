//! Numbered files to which data is appended. The database has the valid length of each file; the
//! next run removes bytes that a killed run wrote after this length.

use crate::copy::state_folder::open_own;
use crate::report::error::{Error, ExitCode};
use abreast_store::mirror::{Location, Segment};
use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// Number of bytes in the buffer before they are written.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// The file that is appended to.
#[derive(Debug)]
pub(crate) struct Current {
    pub(crate) segment: Segment,
    pub(crate) file: File,
    /// Bytes to be written at the file's end. [`Segment::length`] counts them.
    pub(crate) buffer: Vec<u8>,
}

impl Current {
    /// Creates a file, which must not exist.
    pub(crate) fn begin(folder: &Path, number: i64, name: String) -> io::Result<Self> {
        let file = File::options().append(true).create_new(true).open(folder.join(&name))?;
        let buffer = Vec::with_capacity(BUFFER_BYTES + BUFFER_BYTES / 4);
        Ok(Self { segment: Segment { number, name, length: 0 }, file, buffer })
    }

    /// Continues a file.
    fn at_end(folder: &Path, segment: &Segment) -> Result<Self, Error> {
        let path = folder.join(&segment.name);
        let file = open_own(File::options().append(true), &path)
            .map_err(|cause| unusable(&path, cause))?;
        Ok(Self { segment: segment.clone(), file, buffer: Vec::new() })
    }

    /// Appends, through the buffer.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> io::Result<Location> {
        let (segment, length) = (&mut self.segment, bytes.len() as u64);
        let at = Location { segment: segment.number, offset: segment.length, length };
        self.buffer.extend_from_slice(bytes);
        segment.length += length;
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_out()?;
        }
        Ok(at)
    }

    pub(crate) fn write_out(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        // Remove bytes that a failed write left at the end.
        let end = self.segment.length - self.buffer.len() as u64;
        if self.file.metadata()?.len() != end {
            self.file.set_len(end)?;
        }
        self.file.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }
}

/// The files of a copy that may still be written.
#[derive(Debug, Default)]
pub(crate) struct OpenSegments {
    pub(crate) current: Option<Current>,
    /// Files that are full since the last settling.
    pub(crate) full: Vec<(Segment, File)>,
    /// Number of the newest file.
    pub(crate) newest: i64,
}

impl OpenSegments {
    /// Truncates the known files to their valid lengths, and continues the last file if `has_room`
    /// returns true for it. Errors for files that are too short have the code `code`.
    pub(crate) fn recover(
        folder: &Path,
        known: &[Segment],
        code: &'static str,
        has_room: impl Fn(&Segment) -> bool,
    ) -> Result<Self, Error> {
        for segment in known {
            cut_off(&folder.join(&segment.name), segment.length, code)?;
        }
        let last = known.last().filter(|segment| has_room(segment));
        Ok(Self {
            current: last.map(|segment| Current::at_end(folder, segment)).transpose()?,
            full: Vec::new(),
            newest: known.iter().map(|segment| segment.number).max().unwrap_or(0),
        })
    }

    /// The file to append to; if it has `limit` bytes, a new one that `begin` makes.
    pub(crate) fn room(
        &mut self,
        limit: u64,
        begin: impl FnOnce(i64) -> io::Result<Current>,
    ) -> io::Result<&mut Current> {
        if self.current.as_ref().is_some_and(|current| current.segment.length >= limit.max(1)) {
            self.close()?;
        }
        if self.current.is_none() {
            self.newest += 1;
            self.current = Some(begin(self.newest)?);
        }
        self.current.as_mut().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Ends the current file: later data is appended to a file with a higher number.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        if let Some(mut full) = self.current.take() {
            full.write_out()?;
            self.full.push((full.segment, full.file));
        }
        Ok(())
    }

    /// Writes everything out, and takes the files that were appended to since the last call.
    pub(crate) fn take(&mut self) -> io::Result<Vec<(Segment, File)>> {
        let mut files = std::mem::take(&mut self.full);
        if let Some(current) = &mut self.current {
            current.write_out()?;
            files.push((current.segment.clone(), current.file.try_clone()?));
        }
        Ok(files)
    }
}

/// Makes files and their directory entries durable, and returns the valid length of each file.
pub(crate) fn sync(folder: &Path, files: Vec<(Segment, File)>) -> io::Result<Vec<Segment>> {
    for (_, file) in &files {
        file.sync_data()?;
    }
    // The directory entries of new files.
    File::open(folder)?.sync_all()?;
    Ok(files.into_iter().map(|(segment, _)| segment).collect())
}

/// Truncates a file at `end`; a shorter file is an error.
fn cut_off(path: &Path, end: u64, code: &'static str) -> Result<(), Error> {
    let damaged = |why: &str| {
        Error::new(code, ExitCode::Io, format!("{} {why}", path.display())).with_help(
            "restore the file; or run `abreast repair` on the folder, then `abreast sync` again",
        )
    };
    let length = match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Err(damaged("is missing")),
        Err(cause) => return Err(unusable(path, cause)),
    };
    if length < end {
        let length = abreast_webtypes::count(length, "byte");
        return Err(damaged(&format!("has {length}, {end} were written")));
    }
    if length > end {
        let file = open_own(File::options().write(true), path);
        let cut = file.and_then(|file| file.set_len(end));
        cut.map_err(|cause| unusable(path, cause))?;
    }
    Ok(())
}

/// The error of a file or folder that cannot be used.
pub(crate) fn unusable(path: &Path, cause: io::Error) -> Error {
    Error::new("io", ExitCode::Io, format!("cannot use {}: {cause}", path.display()))
        .with_cause(cause)
}
