//! Read-only access to stored contents, while another process may write the folder.

use crate::contents::{content_length, open_content, visit_part};
use crate::error::failed;
use crate::layout::{self, FOLDER};
use crate::packed::{Files, Packed};
use abreast_core::ContentId;
use abreast_core::contents::{Content, Error, digest_of};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Attempts to read the folder while its files are being replaced.
const ATTEMPTS: usize = 10;

/// A folder of stored contents, open read-only. Another process may store contents there meanwhile.
pub struct View {
    /// `None` if the folder does not exist; then there are no contents.
    root: Option<OwnedFd>,
    packed: Mutex<Arc<Packed>>,
}

/// The result of checking a content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Condition {
    /// The bytes and their record are undamaged.
    Whole,
    /// The bytes are undamaged, but their record is not: the content would be lost if the index
    /// were rebuilt.
    RecordDamaged,
    /// The bytes differ from their address.
    Damaged,
    /// The folder does not have the content.
    Missing,
}

impl View {
    /// Opens the folder. A folder that does not exist is treated as empty.
    ///
    /// # Errors
    /// It cannot be read, or the index of packed contents is damaged
    /// ([`ErrorKind::Damaged`](crate::ErrorKind::Damaged)).
    pub fn open(path: &Path) -> Result<Self, Error> {
        let opening =
            |cause: io::Error| failed(&format!("read the kept contents {}", path.display()), cause);
        let root = match rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
        {
            Ok(root) => Some(root),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(opening(errno.into())),
        };
        let packed = Mutex::new(Arc::new(load(root.as_ref()).map_err(opening)?));
        Ok(Self { root, packed })
    }

    /// Length in bytes of the content with this address, if it is stored.
    ///
    /// # Errors
    /// The disk failed.
    pub fn length(&self, id: &ContentId) -> Result<Option<u64>, Error> {
        let Some(root) = &self.root else { return Ok(None) };
        content_length(&self.packed(), root, id)
    }

    /// Opens stored bytes for reading.
    ///
    /// # Errors
    /// They are not stored, or damaged, or the disk failed.
    pub fn open_read(&self, id: &ContentId) -> Result<Content, Error> {
        let missing = || failed(&format!("open the kept content {id}"), Errno::NOENT);
        let root = self.root.as_ref().ok_or_else(missing)?;
        match open_content(&self.packed(), root, id) {
            // The content may have been put, or moved to another file, since the index was read.
            Err(error) if error.kind() == crate::ErrorKind::NotFound => {
                let again = Arc::new(
                    load(Some(root))
                        .map_err(|cause| failed("read the kept contents again", cause))?,
                );
                *self.packed.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&again);
                open_content(&again, root, id)
            }
            opened => opened,
        }
    }

    /// Checks a content against its address.
    ///
    /// # Errors
    /// The disk failed.
    pub fn examine(&self, id: &ContentId) -> Result<Condition, Error> {
        let mut content = match self.open_read(id) {
            Ok(content) => content,
            Err(error) if error.kind() == crate::ErrorKind::NotFound => {
                return Ok(Condition::Missing);
            }
            Err(error) if error.kind() == crate::ErrorKind::Damaged => {
                return Ok(Condition::Damaged);
            }
            Err(error) => return Err(error),
        };
        let reading = |cause: io::Error| failed(&format!("read the kept content {id}"), cause);
        if content.in_memory().is_some() {
            return Ok(match self.packed().is_record_whole(id) {
                Ok(false) => Condition::RecordDamaged,
                Ok(true) => Condition::Whole,
                // The segment was just rewritten, from intact records only.
                Err(error) if error.kind() == io::ErrorKind::NotFound => Condition::Whole,
                Err(error) => return Err(reading(error)),
            });
        }
        match digest_of(&mut content) {
            Ok((found, _)) if found == *id => Ok(Condition::Whole),
            Ok(_) => Ok(Condition::Damaged),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Condition::Damaged),
            Err(error) => Err(reading(error)),
        }
    }

    /// Visits every stored content with its length, in the order of their addresses. Contents that
    /// are put or removed meanwhile may be visited or not.
    ///
    /// # Errors
    /// The disk failed, or the visitor returned an error.
    pub fn visit(&self, visit: &mut dyn FnMut(ContentId, u64) -> io::Result<()>) -> io::Result<()> {
        let Some(root) = &self.root else { return Ok(()) };
        let packed = self.packed();
        for first in 0..=u8::MAX {
            visit_part(&packed, root, first, &mut |id, length| {
                // Skip a content that was removed since the folder was listed.
                let length =
                    length.map_or_else(|| layout::length(root, &id), |length| Ok(Some(length)))?;
                length.map_or(Ok(()), |length| visit(id, length))?;
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    }

    fn packed(&self) -> Arc<Packed> {
        Arc::clone(&self.packed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Reads the index; retries while its files are being replaced.
fn load(root: Option<&OwnedFd>) -> io::Result<Packed> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let files = Files::open_read(root)?;
        match Packed::open_view(files) {
            Err(error)
                if attempt < ATTEMPTS
                    && matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::InvalidData
                    ) => {}
            loaded => return loaded,
        }
    }
}
