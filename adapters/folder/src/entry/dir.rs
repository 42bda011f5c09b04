//! Operations in one folder, relative to its handle, for one file name at a time.

use crate::entry::error::{Error, ErrorKind};
use crate::entry::locked::Locked;
use crate::entry::stat::{Kind, Stat, timestamps};
use rustix::fs::{AtFlags, Mode, OFlags, openat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Permissions of new files and folders before the process's umask.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

pub(crate) const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// `NONBLOCK`: opening a pipe must not block.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);

/// Opens the targets of symbolic links, by paths relative to the root.
pub(crate) trait OpenLinks: std::fmt::Debug + Send + Sync {
    /// Opens a path; links on the way and at its end are followed.
    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno>;
    /// The path of an open file or folder, without symbolic links.
    fn real(&self, handle: &OwnedFd) -> Result<Vec<u8>, Errno>;
}

/// How links are opened, and the path of a folder from the root.
type LinksFrom = (Arc<dyn OpenLinks>, Vec<u8>);

/// An open folder. A clone shares the handle.
#[derive(Clone, Debug)]
pub struct Dir {
    handle: Arc<OwnedFd>,
    /// Present if links are followed.
    follow: Option<Arc<LinksFrom>>,
}

/// An entry of a folder's listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// File name: any bytes except `/` and NUL.
    pub name: Vec<u8>,
    /// The kind of the entry.
    pub kind: Kind,
}

impl Dir {
    pub(crate) const fn new(handle: Arc<OwnedFd>) -> Self {
        Self { handle, follow: None }
    }

    pub(crate) fn following(
        handle: Arc<OwnedFd>,
        follow: Arc<dyn OpenLinks>,
        path: Vec<u8>,
    ) -> Self {
        Self { handle, follow: Some(Arc::new((follow, path))) }
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Opens a file through symbolic links, if this folder follows them.
    fn through_links(&self, name: &[u8], flags: OFlags) -> Option<Result<OwnedFd, Errno>> {
        let (follow, path) = &**self.follow.as_ref()?;
        Some(follow.open(&join(path, name), flags))
    }

    fn check<'a>(task: &'static str, name: &'a [u8]) -> Result<&'a [u8], Error> {
        if is_component(name) { Ok(name) } else { Err(Error::of_kind(task, name, ErrorKind::Name)) }
    }

    /// Opens a folder in this one.
    ///
    /// # Errors
    /// Missing, not a folder, or a link ([`ErrorKind::Symlink`]).
    pub fn dir(&self, name: &[u8]) -> Result<Self, Error> {
        let name = Self::check("open folder", name)?;
        if let Some((follow, path)) = self.follow.as_deref() {
            let path = join(path, name);
            let handle = follow
                .open(&path, FOLDER)
                .map_err(|errno| refused(Error::new("open folder", name, errno), errno))?;
            return Ok(Self::following(Arc::new(handle), Arc::clone(follow), path));
        }
        match openat(&self.handle, name, FOLDER, Mode::empty()) {
            Ok(handle) => Ok(Self::new(Arc::new(handle))),
            Err(errno) => {
                let error = Error::new("open folder", name, errno);
                let link = errno == Errno::NOTDIR
                    && self.stat(name).is_ok_and(|stat| stat.kind == Kind::Symlink);
                Err(if link { error.with_kind(ErrorKind::Symlink) } else { error })
            }
        }
    }

    /// Opens a regular file for reading. Never blocks.
    ///
    /// # Errors
    /// Missing, a link, or [`ErrorKind::NotFile`] for anything but a regular file.
    pub fn open_read(&self, name: &[u8]) -> Result<(File, Stat), Error> {
        let name = Self::check("open", name)?;
        let handle = match self.through_links(name, READ) {
            Some(handle) => {
                handle.map_err(|errno| refused(Error::new("open", name, errno), errno))?
            }
            None => openat(&self.handle, name, READ, Mode::empty())
                .map_err(|errno| Error::new("open", name, errno))?,
        };
        regular(handle, name)
    }

    /// The first bytes of a regular file at a path from here, following all links, also to the
    /// outside. Use it to examine the folder, not to publish the bytes.
    ///
    /// # Errors
    /// Missing, not allowed, or [`ErrorKind::NotFile`].
    pub fn read_begin(&self, path: &[u8], max: u64) -> Result<Vec<u8>, Error> {
        if !path.split(|byte| *byte == b'/').all(is_component) {
            return Err(Error::of_kind("open", path, ErrorKind::Name));
        }
        let handle = openat(&self.handle, path, READ.difference(OFlags::NOFOLLOW), Mode::empty())
            .map_err(|errno| Error::new("open", path, errno))?;
        let (file, _) = regular(handle, path)?;
        let mut begin = Vec::new();
        file.take(max).read_to_end(&mut begin).map_err(|error| {
            Error::new("read", path, Errno::from_io_error(&error).unwrap_or(Errno::IO))
        })?;
        Ok(begin)
    }

    /// Metadata of an entry. A symbolic link is followed only if this folder follows links and its
    /// target may be reached.
    ///
    /// # Errors
    /// Missing, or not allowed.
    pub fn stat(&self, name: &[u8]) -> Result<Stat, Error> {
        let name = Self::check("examine", name)?;
        let own = rustix::fs::statat(&self.handle, name, AtFlags::SYMLINK_NOFOLLOW)
            .map(|raw| Stat::from_raw(&raw))
            .map_err(|errno| Error::new("examine", name, errno))?;
        if own.kind != Kind::Symlink {
            return Ok(own);
        }
        let target =
            self.through_links(name, OFlags::PATH.union(OFlags::CLOEXEC)).and_then(Result::ok);
        let target = target
            .and_then(|handle| rustix::fs::fstat(handle).ok())
            .map(|raw| Stat::from_raw(&raw));
        Ok(target.unwrap_or(own))
    }

    /// Target of a symbolic link that is followed, as a path without links from the root; `None`
    /// for other files.
    pub fn link_target(&self, name: &[u8]) -> Option<Vec<u8>> {
        let (follow, _) = self.follow.as_deref()?;
        let own = rustix::fs::statat(
            &self.handle,
            Self::check("examine", name).ok()?,
            AtFlags::SYMLINK_NOFOLLOW,
        )
        .ok()?;
        if Stat::from_raw(&own).kind != Kind::Symlink {
            return None;
        }
        let target = self.through_links(name, OFlags::PATH.union(OFlags::CLOEXEC))?.ok()?;
        follow.real(&target).ok()
    }

    /// The present path of this folder, without symbolic links, if the system reports it (`/proc`
    /// of Linux).
    pub fn path(&self) -> Option<PathBuf> {
        use std::os::fd::AsRawFd as _;
        let link = format!("/proc/self/fd/{}", self.handle.as_raw_fd());
        let path = rustix::fs::readlink(link, Vec::new()).ok()?;
        Some(PathBuf::from(OsString::from_vec(path.into_bytes())))
    }

    /// Free bytes on the file system of this folder, if the system reports them.
    pub fn free_bytes(&self) -> Option<u64> {
        let stat = rustix::fs::fstatvfs(&self.handle).ok()?;
        Some(stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    /// Metadata of this folder.
    ///
    /// # Errors
    /// The system's own.
    pub fn own_stat(&self) -> Result<Stat, Error> {
        rustix::fs::fstat(&self.handle)
            .map(|raw| Stat::from_raw(&raw))
            .map_err(|errno| Error::new("examine", b".", errno))
    }

    /// Iterates over the entries of this folder, in no order; reads them as needed.
    ///
    /// # Errors
    /// Not allowed.
    pub fn entries(&self) -> Result<Entries, Error> {
        let inner = rustix::fs::Dir::read_from(&self.handle)
            .map_err(|errno| Error::new("list folder", b".", errno))?;
        Ok(Entries { dir: self.clone(), inner })
    }

    /// All entries of this folder, in no order.
    ///
    /// # Errors
    /// Not allowed, or the listing failed half-way: half a listing is never returned.
    pub fn list(&self) -> Result<Vec<Entry>, Error> {
        self.entries()?.collect()
    }

    /// Creates a folder.
    ///
    /// # Errors
    /// The name is taken, or not allowed.
    pub fn create_dir(&self, name: &[u8]) -> Result<(), Error> {
        let name = Self::check("create folder", name)?;
        rustix::fs::mkdirat(&self.handle, name, FOLDER_MODE)
            .map_err(|errno| Error::new("create folder", name, errno))
    }

    /// Creates a new file, open for writing and reading.
    ///
    /// # Errors
    /// The name is taken, also by a dangling link, or not allowed.
    pub fn create_new(&self, name: &[u8]) -> Result<File, Error> {
        let name = Self::check("create", name)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        openat(&self.handle, name, flags, FILE_MODE)
            .map(File::from)
            .map_err(|errno| Error::new("create", name, errno))
    }

    /// Makes a file without a name, open for writing. Unless [`Self::link`] gives it a name, the
    /// file system deletes it when the process ends.
    ///
    /// # Errors
    /// Not every file system can do this; [`Self::create_new`] works on all.
    pub fn create_unnamed(&self) -> Result<File, Error> {
        #[cfg(target_os = "linux")]
        {
            let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
            openat(&self.handle, c".", flags, FILE_MODE)
                .map(File::from)
                .map_err(|errno| Error::new("create a file in", b".", errno))
        }
        #[cfg(not(target_os = "linux"))]
        Err(Error::new("create a file in", b".", Errno::OPNOTSUPP))
    }

    /// Gives a file from [`Self::create_unnamed`] an unused name.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] when the name is taken, by anything.
    pub fn link(&self, file: &File, name: &[u8]) -> Result<(), Error> {
        let name = Self::check("create", name)?;
        #[cfg(target_os = "linux")]
        let result = match rustix::fs::linkat(file, c"", &self.handle, name, AtFlags::EMPTY_PATH) {
            // Older kernels require a capability for this, but not via `/proc`.
            Err(Errno::NOENT | Errno::PERM) => {
                use std::os::fd::AsRawFd as _;
                let path = format!("/proc/self/fd/{}", file.as_raw_fd());
                rustix::fs::linkat(
                    rustix::fs::CWD,
                    path,
                    &self.handle,
                    name,
                    AtFlags::SYMLINK_FOLLOW,
                )
            }
            result => result,
        };
        #[cfg(not(target_os = "linux"))]
        let result = Err({
            let _ = file;
            Errno::OPNOTSUPP
        });
        result.map_err(|errno| Error::new("create", name, errno))
    }

    /// Opens a regular file for writing at its end; does not change its content.
    ///
    /// # Errors
    /// Missing, a link, or not a regular file.
    pub fn open_append(&self, name: &[u8]) -> Result<(File, Stat), Error> {
        let name = Self::check("open", name)?;
        let flags =
            OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = openat(&self.handle, name, flags, Mode::empty())
            .map_err(|errno| Error::new("open", name, errno))?;
        regular(handle, name)
    }

    /// Takes an exclusive lock on a file in this folder, which is created if it is missing; `None`
    /// when another process has the lock. The lock is released when the returned value is dropped,
    /// and by the kernel when the process ends.
    ///
    /// # Errors
    /// The file cannot be opened or locked.
    pub fn lock(&self, name: &[u8]) -> Result<Option<Locked>, Error> {
        let name = Self::check("lock", name)?;
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let handle = openat(&self.handle, name, flags, FILE_MODE)
            .map_err(|errno| Error::new("lock", name, errno))?;
        let (file, _) = regular(handle, name)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Locked::new(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => {
                let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                Err(Error::new("lock", name, errno))
            }
        }
    }

    /// Moves a file to a new name, replacing an existing file.
    ///
    /// # Errors
    /// The target is a folder, the file is missing, or not allowed.
    pub fn rename(&self, from: &[u8], to_dir: &Self, to: &[u8]) -> Result<(), Error> {
        let (from, to) = (Self::check("rename", from)?, Self::check("rename to", to)?);
        rustix::fs::renameat(&self.handle, from, &to_dir.handle, to)
            .map_err(|errno| Error::new("rename to", to, errno))
    }

    /// Renames a file to an unused name.
    ///
    /// Some file systems (some network and FAT ones) cannot check and rename in one step: there,
    /// the check is a separate step before.
    ///
    /// # Errors
    /// [`ErrorKind::Exists`] when the new name is taken, by anything.
    pub fn rename_noreplace(&self, from: &[u8], to_dir: &Self, to: &[u8]) -> Result<(), Error> {
        let (from, to) = (Self::check("rename", from)?, Self::check("rename to", to)?);
        #[cfg(any(target_os = "linux", target_vendor = "apple"))]
        {
            let flags = rustix::fs::RenameFlags::NOREPLACE;
            match rustix::fs::renameat_with(&self.handle, from, &to_dir.handle, to, flags) {
                Ok(()) => return Ok(()),
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                Err(errno) => return Err(Error::new("rename to", to, errno)),
            }
        }
        match to_dir.stat(to) {
            Err(error) if error.kind() == ErrorKind::NotFound => self.rename(from, to_dir, to),
            Err(error) => Err(error),
            Ok(_) => Err(Error::of_kind("rename to", to, ErrorKind::Exists)),
        }
    }

    /// Removes a file or symbolic link; the target of a link remains.
    ///
    /// # Errors
    /// Missing, a folder, or not allowed.
    pub fn unlink(&self, name: &[u8]) -> Result<(), Error> {
        let name = Self::check("remove", name)?;
        rustix::fs::unlinkat(&self.handle, name, AtFlags::empty())
            .map_err(|errno| Error::new("remove", name, errno))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// [`ErrorKind::NotEmpty`] if the folder has entries.
    pub fn rmdir(&self, name: &[u8]) -> Result<(), Error> {
        let name = Self::check("remove folder", name)?;
        rustix::fs::unlinkat(&self.handle, name, AtFlags::REMOVEDIR).map_err(|errno| match errno {
            // POSIX allows both errors for a folder that is not empty.
            Errno::EXIST => Error::new("remove folder", name, errno).with_kind(ErrorKind::NotEmpty),
            _ => Error::new("remove folder", name, errno),
        })
    }

    /// Sets the modification time of an entry, in nanoseconds since 1970. A symbolic link itself
    /// gets the time, not its target.
    ///
    /// # Errors
    /// Missing, or not allowed.
    pub fn set_modified(&self, name: &[u8], mtime_ns: i64) -> Result<(), Error> {
        let name = Self::check("set the time of", name)?;
        rustix::fs::utimensat(&self.handle, name, &timestamps(mtime_ns), AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|errno| Error::new("set the time of", name, errno))
    }

    /// Makes all data written so far to this folder's file system durable.
    ///
    /// # Errors
    /// The disk failed; data written since the last call may be lost.
    pub fn sync_filesystem(&self) -> Result<(), Error> {
        #[cfg(target_os = "linux")]
        let result = rustix::fs::syncfs(&self.handle);
        #[cfg(not(target_os = "linux"))]
        let result = rustix::fs::fsync(&self.handle);
        result.map_err(|errno| Error::new("make durable", b".", errno))
    }

    /// Makes the entries of this folder durable.
    ///
    /// # Errors
    /// The disk failed.
    pub fn sync(&self) -> Result<(), Error> {
        rustix::fs::fsync(&self.handle).map_err(|errno| Error::new("make durable", b".", errno))
    }
}

/// Whether these bytes can be the name of a file in a folder.
pub fn is_component(name: &[u8]) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && name != b"."
        && name != b".."
        && !name.iter().any(|byte| matches!(byte, b'/' | 0))
}

pub(crate) fn regular(handle: OwnedFd, name: &[u8]) -> Result<(File, Stat), Error> {
    let file = File::from(handle);
    let stat = Stat::of(&file)?;
    if stat.kind != Kind::File {
        return Err(Error::of_kind("open", name, ErrorKind::NotFile));
    }
    Ok((file, stat))
}

fn join(path: &[u8], name: &[u8]) -> Vec<u8> {
    let mut joined = Vec::with_capacity(path.len() + name.len() + 1);
    joined.extend_from_slice(path);
    if !path.is_empty() {
        joined.push(b'/');
    }
    joined.extend_from_slice(name);
    joined
}

/// Converts the kernel's error for a link to a target that may not be reached.
fn refused(error: Error, errno: Errno) -> Error {
    if errno == Errno::XDEV { error.with_kind(ErrorKind::Symlink) } else { error }
}

/// Iterator over the entries of a folder, read as needed. It ends after an error.
#[derive(Debug)]
pub struct Entries {
    dir: Dir,
    inner: rustix::fs::Dir,
}

impl Iterator for Entries {
    type Item = Result<Entry, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.inner.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(Error::new("list folder", b".", errno))),
            };
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let kind = match entry.file_type() {
                rustix::fs::FileType::Unknown => match self.dir.stat(name) {
                    Ok(stat) => stat.kind,
                    Err(error) if error.kind() == ErrorKind::NotFound => continue,
                    Err(error) => return Some(Err(error)),
                },
                rustix::fs::FileType::Symlink if self.dir.follow.is_some() => {
                    self.dir.stat(name).map_or(Kind::Symlink, |stat| stat.kind)
                }
                file_type => Kind::from_type(file_type),
            };
            return Some(Ok(Entry { name: name.to_vec(), kind }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Folder, set_modified};
    use std::io::Write as _;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_name_that_is_taken_is_not_replaced_unless_asked() {
        let place = tempfile::tempdir().unwrap();
        let root = Folder::open(place.path()).unwrap().root();
        root.create_new(b"old").unwrap().write_all(b"old").unwrap();
        root.create_new(b"new").unwrap().write_all(b"new").unwrap();
        symlink("nowhere", place.path().join("dangling")).unwrap();
        assert_eq!(root.create_new(b"old").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(root.create_new(b"dangling").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(
            root.rename_noreplace(b"new", &root, b"old").unwrap_err().kind(),
            ErrorKind::Exists
        );
        assert_eq!(
            root.rename_noreplace(b"new", &root, b"dangling").unwrap_err().kind(),
            ErrorKind::Exists
        );
        root.rename(b"new", &root, b"old").unwrap();
        assert_eq!(std::fs::read(place.path().join("old")).unwrap(), b"new");
    }

    #[test]
    fn an_unnamed_file_appears_whole_and_never_replaces() {
        let place = tempfile::tempdir_in(".").unwrap();
        let root = Folder::open(place.path()).unwrap().root();
        let Ok(mut file) = root.create_unnamed() else { return };
        file.write_all(b"whole").unwrap();
        assert!(root.list().unwrap().is_empty());
        symlink("nowhere", place.path().join("dangling")).unwrap();
        assert_eq!(root.link(&file, b"dangling").unwrap_err().kind(), ErrorKind::Exists);
        assert_eq!(root.link(&file, b"a/b").unwrap_err().kind(), ErrorKind::Name);
        root.link(&file, b"new").unwrap();
        assert_eq!(std::fs::read(place.path().join("new")).unwrap(), b"whole");
        drop(root.create_unnamed().unwrap());
        assert_eq!(root.list().unwrap().len(), 2);
    }

    #[test]
    fn lists_any_name_with_its_kind() {
        let place = tempfile::tempdir().unwrap();
        let root = Folder::open(place.path()).unwrap().root();
        root.create_dir(b"folder").unwrap();
        drop(root.create_new(b"\xff<&>\n").unwrap());
        symlink("folder", place.path().join("link")).unwrap();
        let mut list = root.list().unwrap();
        list.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(
            list.iter().map(|entry| (entry.name.as_slice(), entry.kind)).collect::<Vec<_>>(),
            [
                (b"folder".as_slice(), Kind::Folder),
                (b"link", Kind::Symlink),
                (b"\xff<&>\n", Kind::File),
            ]
        );
    }

    #[test]
    fn times_are_set_on_files_and_names() {
        let place = tempfile::tempdir().unwrap();
        let root = Folder::open(place.path()).unwrap().root();
        let file = root.create_new(b"a").unwrap();
        set_modified(&file, 1_500_000_000_123_456_000).unwrap();
        assert_eq!(root.stat(b"a").unwrap().mtime_ns, 1_500_000_000_123_456_000);
        root.set_modified(b"a", -1).unwrap();
        assert_eq!(Stat::of(&file).unwrap().mtime_ns, -1);
    }

    #[test]
    fn removes_files_links_and_empty_folders_only() {
        let place = tempfile::tempdir().unwrap();
        let root = Folder::open(place.path()).unwrap().root();
        root.create_dir(b"d").unwrap();
        drop(root.dir(b"d").unwrap().create_new(b"f").unwrap());
        symlink("d", place.path().join("l")).unwrap();
        assert_eq!(root.dir(b"l").unwrap_err().kind(), ErrorKind::Symlink);
        root.unlink(b"l").unwrap();
        assert!(root.unlink(b"d").is_err());
        assert_eq!(root.rmdir(b"d").unwrap_err().kind(), ErrorKind::NotEmpty);
        root.dir(b"d").unwrap().unlink(b"f").unwrap();
        root.rmdir(b"d").unwrap();
        assert_eq!(root.stat(b"d").unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_lock_is_exclusive_and_given_back_on_close() {
        let place = tempfile::tempdir().unwrap();
        let root = Folder::open(place.path()).unwrap().root();
        let held = root.lock(b"lock").unwrap();
        assert!(held.is_some());
        assert!(root.lock(b"lock").unwrap().is_none());
        drop(held);
        let held = root.lock(b"lock").unwrap().unwrap();
        // As a process that is just being started has it.
        let copied = held.duplicate();
        drop(held);
        assert!(root.lock(b"lock").unwrap().is_some());
        drop(copied);
        symlink("elsewhere", place.path().join("trap")).unwrap();
        assert_eq!(root.lock(b"trap").unwrap_err().kind(), ErrorKind::Symlink);
    }
}
