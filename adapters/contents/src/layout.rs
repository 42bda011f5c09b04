//! The folder of stored contents, with one file for each large content. Every path is opened
//! relative to the handle of the folder, and symbolic links are not followed.

use crate::error::failed;
use abreast_core::ContentId;
use abreast_core::contents::{Error, ErrorKind};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
pub(crate) const NEW: OFlags = OFlags::RDWR
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// Stored bytes are written once.
const FILE_MODE: Mode = Mode::from_raw_mode(0o444);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

/// The folder, with open handles.
pub(crate) struct Layout {
    root: OwnedFd,
    temporary: OwnedFd,
    next: AtomicU64,
    lock: File,
}

impl Drop for Layout {
    fn drop(&mut self) {
        // Unlock explicitly: a process that is just being started has a copy of the open file for a
        // short time.
        let _ = self.lock.unlock();
    }
}

impl Layout {
    /// Opens the folder, creates missing parts, and removes the unfinished files of a killed
    /// process.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        let task = format!("open the folder of kept contents {}", path.display());
        std::fs::create_dir_all(path).map_err(|cause| failed(&task, cause))?;
        // The path itself may contain symbolic links, because the user chose it.
        let root = rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
            .map_err(|cause| failed(&task, cause))?;
        let lock = lock(&root, path)?;
        make_folder(&root, "tmp").map_err(|cause| failed(&task, cause))?;
        let temporary =
            openat(&root, "tmp", FOLDER, Mode::empty()).map_err(|cause| failed(&task, cause))?;
        each_name(&temporary, &mut |name| {
            rustix::fs::unlinkat(&temporary, name, AtFlags::empty())?;
            Ok(ControlFlow::Continue(()))
        })
        .map_err(|cause| {
            failed("remove what was being written to the folder of kept contents", cause)
        })?;
        Ok(Self { root, temporary, next: AtomicU64::new(0), lock })
    }

    /// The handle of the folder.
    pub(crate) fn root(&self) -> &OwnedFd {
        &self.root
    }

    /// The folder for unfinished files.
    pub(crate) fn temporary_folder(&self) -> &OwnedFd {
        &self.temporary
    }

    /// Makes everything in the folder's file system durable.
    pub(crate) fn sync_filesystem(&self) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        return rustix::fs::syncfs(&self.root);
        #[cfg(not(target_os = "linux"))]
        {
            rustix::fs::sync();
            Ok(())
        }
    }

    /// Makes one file and its directory entry durable; does nothing if the file was removed.
    pub(crate) fn sync_one(&self, id: &ContentId) -> Result<(), Errno> {
        let (folder, name) = names(id);
        let folder = match openat(&self.root, folder.as_str(), FOLDER, Mode::empty()) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        };
        match openat(&folder, name.as_str(), READ, Mode::empty()) {
            Ok(file) => rustix::fs::fdatasync(&file)?,
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => return Err(errno),
        }
        rustix::fs::fsync(&folder)?;
        rustix::fs::fsync(&self.root)
    }

    /// Creates a temporary file.
    pub(crate) fn temporary(&self) -> Result<Temporary<'_>, Errno> {
        let name = format!("{:x}", self.next.fetch_add(1, Ordering::Relaxed));
        let file = openat(&self.temporary, name.as_str(), NEW, FILE_MODE)?;
        Ok(Temporary { layout: self, name, file: File::from(file), placed: false })
    }

    /// Removes the file of a content; false if it does not exist.
    pub(crate) fn remove(&self, id: &ContentId) -> Result<bool, Errno> {
        let (folder, name) = names(id);
        let removed = openat(&self.root, folder.as_str(), FOLDER, Mode::empty())
            .and_then(|folder| rustix::fs::unlinkat(&folder, name.as_str(), AtFlags::empty()));
        match removed {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(errno),
        }
    }
}

/// Opens the file of a content for reading.
pub(crate) fn open_read(root: &OwnedFd, id: &ContentId) -> Result<File, Errno> {
    let (folder, name) = names(id);
    let folder = openat(root, folder.as_str(), FOLDER, Mode::empty())?;
    let file = openat(&folder, name.as_str(), READ, Mode::empty())?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(Errno::ISDIR);
    }
    Ok(File::from(file))
}

/// Length in bytes of a content's file; `None` if it does not exist.
pub(crate) fn length(root: &OwnedFd, id: &ContentId) -> Result<Option<u64>, Errno> {
    let (folder, name) = names(id);
    let stat = openat(root, folder.as_str(), FOLDER, Mode::empty())
        .and_then(|folder| rustix::fs::statat(&folder, name.as_str(), AtFlags::SYMLINK_NOFOLLOW));
    match stat {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
            Ok(Some(stat.st_size as u64))
        }
        Ok(_) => Err(Errno::LOOP),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Visits the addresses of files whose first byte is `first`, in no order.
pub(crate) fn visit(
    root: &OwnedFd,
    first: u8,
    visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
) -> Result<(), Errno> {
    let folder = match openat(root, format!("{first:02x}").as_str(), FOLDER, Mode::empty()) {
        Ok(folder) => folder,
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(errno),
    };
    each_name(&folder, &mut |name| {
        let text = name.to_str().unwrap_or_default();
        // Ignore files whose path is not a content's address.
        Ok(match format!("{first:02x}{text}").parse() {
            Ok(id) => visit(id),
            Err(_) => ControlFlow::Continue(()),
        })
    })
}

/// A file that is being written. It is removed on drop, unless [`Temporary::place`] succeeded.
pub(crate) struct Temporary<'l> {
    layout: &'l Layout,
    name: String,
    pub(crate) file: File,
    placed: bool,
}

impl Temporary<'_> {
    /// Moves the file to the path for the address of its bytes.
    pub(crate) fn place(mut self, id: &ContentId) -> Result<(), Errno> {
        let (folder_name, name) = names(id);
        let root = &self.layout.root;
        let folder = match openat(root, folder_name.as_str(), FOLDER, Mode::empty()) {
            Err(Errno::NOENT) => {
                make_folder(root, &folder_name)?;
                openat(root, folder_name.as_str(), FOLDER, Mode::empty())?
            }
            folder => folder?,
        };
        rustix::fs::renameat(&self.layout.temporary, self.name.as_str(), &folder, name.as_str())?;
        self.placed = true;
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.placed {
            let _ =
                rustix::fs::unlinkat(&self.layout.temporary, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// The folder of a content, and the file name in it.
fn names(id: &ContentId) -> (String, String) {
    let mut folder = id.to_string();
    let name = folder.split_off(2);
    (folder, name)
}

pub(crate) fn make_folder(root: &OwnedFd, name: &str) -> Result<(), Errno> {
    match rustix::fs::mkdirat(root, name, FOLDER_MODE) {
        Err(Errno::EXIST) => Ok(()),
        result => result,
    }
}

fn each_name(
    folder: &OwnedFd,
    visit: &mut dyn FnMut(&std::ffi::CStr) -> Result<ControlFlow<()>, Errno>,
) -> Result<(), Errno> {
    for entry in rustix::fs::Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        if !matches!(name.to_bytes(), b"." | b"..") && visit(name)?.is_break() {
            break;
        }
    }
    Ok(())
}

fn lock(root: &OwnedFd, path: &Path) -> Result<File, Error> {
    let task = format!("lock the folder of kept contents {}", path.display());
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(root.as_fd(), "lock", flags, Mode::from_raw_mode(0o666))
        .map_err(|errno| failed(&task, errno))?;
    let file = File::from(file);
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(Error::new(
            ErrorKind::Busy,
            format!(
                "the folder of kept contents {} is in use by another process\n  help: stop it, or give each its own",
                path.display()
            ),
        )),
        Err(std::fs::TryLockError::Error(cause)) => Err(failed(&task, cause)),
    }
}
