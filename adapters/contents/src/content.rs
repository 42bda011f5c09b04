//! A large content, which is a file.

use abreast_core::ContentId;
use abreast_core::contents::{Content, ContentSource, SequentialCheck};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;

/// An open file of a content. Reading from the first byte to the last compares the bytes with the
/// address.
#[derive(Debug)]
struct ContentFile {
    file: File,
    length: u64,
    check: SequentialCheck,
}

/// Opens the content of a file.
pub(crate) fn of_file(id: &ContentId, file: File) -> io::Result<Content> {
    let length = file.metadata()?.len();
    let check = SequentialCheck::new(*id, length);
    Ok(Content::new(Arc::new(ContentFile { file, length, check })))
}

impl ContentSource for ContentFile {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = loop {
            match rustix::io::pread(&self.file, &mut *buffer, offset) {
                Err(Errno::INTR) => {}
                read => break read?,
            }
        };
        self.check.add(offset, &buffer[..read])?;
        Ok(read)
    }

    fn file(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}
