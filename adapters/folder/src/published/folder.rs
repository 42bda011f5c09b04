//! Access to all files in a root folder, which no path can leave.

use crate::entry::dir::{Dir, FOLDER, OpenLinks as _, READ, is_component, regular};
use crate::entry::error::{Error, ErrorKind};
use crate::entry::stat::{Kind, Stat};
use crate::published::follow::{Follow, Visible};
use crate::published::selection::{Hiding, Selection};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Longest path passed to the kernel in one call; longer paths are opened one component at a time.
const ONE_CALL_PATH_BYTES: usize = 4_000;
/// Most repetitions of a lookup that the kernel asks to repeat.
const LOOKUP_ATTEMPTS: usize = 16;

/// A root folder with an open handle. A clone shares the handle.
#[derive(Clone, Debug)]
pub struct Folder {
    root: Arc<OwnedFd>,
    path: PathBuf,
    one_call: bool,
    follow: Option<Follow>,
    selection: Option<Selection>,
    hiding: Option<Hiding>,
}

impl Folder {
    /// Opens a folder. The path itself may contain symbolic links, because the user chose it; paths
    /// in the folder must not.
    ///
    /// # Errors
    /// No such folder, or not allowed.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let root = rustix::fs::open(path, FOLDER.difference(OFlags::NOFOLLOW), Mode::empty())
            .map_err(|errno| Error::new("open folder", path.as_os_str().as_bytes(), errno))?;
        let one_call = supports_one_call(&root);
        Ok(Self {
            root: Arc::new(root),
            path: path.to_owned(),
            one_call,
            follow: None,
            selection: None,
            hiding: None,
        })
    }

    /// The same folder, in which symbolic links are followed for reading if they are relative, lead
    /// to a target in the root folder, and all components of the target's path are `visible`. Other
    /// links are listed as links. Files are never written, made or removed through a link.
    ///
    /// # Errors
    /// The system cannot guarantee that links do not lead outside (`openat2` of Linux 5.6, and
    /// `/proc`).
    pub fn following_links(mut self, visible: Visible) -> Result<Self, Error> {
        let mut follow = Follow::new(Arc::clone(&self.root), visible);
        follow.hiding.clone_from(&self.hiding);
        let able = follow.open(b"", FOLDER).and_then(|root| follow.real(&root));
        able.map_err(|errno| {
            Error::new("follow symbolic links in", self.path.as_os_str().as_bytes(), errno)
        })?;
        self.follow = Some(follow);
        Ok(self)
    }

    /// The same folder with a rule for the files and folders to show: see [`Folder::selects`].
    #[must_use]
    pub fn selecting(mut self, selection: Selection) -> Self {
        if let Some(follow) = &mut self.follow {
            follow.selection = Some(selection.clone());
        }
        self.selection = Some(selection);
        self
    }

    /// The same folder with all its content, except hidden folders.
    #[must_use]
    pub fn selecting_all(mut self) -> Self {
        if let Some(follow) = &mut self.follow {
            follow.selection = None;
        }
        self.selection = None;
        self
    }

    /// The same folder without the folders that the rule hides, even if they are selected.
    #[must_use]
    pub fn hiding(mut self, hiding: Hiding) -> Self {
        if let Some(follow) = &mut self.follow {
            follow.hiding = Some(hiding.clone());
        }
        self.hiding = Some(hiding);
        self
    }

    /// Whether a path of this kind is selected. Other files cannot be opened by their paths or
    /// through links, but listings contain them.
    pub fn selects(&self, path: &[u8], kind: Kind) -> bool {
        self.rules_select(path, kind) && self.hidden_folder(path, kind).is_none()
    }

    /// As [`Folder::selects`], if it is known that the path is not in a hidden folder.
    pub fn rules_select(&self, path: &[u8], kind: Kind) -> bool {
        self.selection.as_ref().is_none_or(|selection| selection.has(path, kind))
    }

    /// The hidden folder that equals a path of this kind or contains it.
    pub fn hidden_folder<'a>(&self, path: &'a [u8], kind: Kind) -> Option<&'a [u8]> {
        self.hiding.as_ref().and_then(|hiding| hiding.hidden_folder(&self.root, path, kind))
    }

    /// Whether the open folder with this path from the root is hidden; its parent folders must have
    /// been checked before. `is_marked` is true if the folder has an entry that [is a
    /// mark](Folder::is_mark).
    pub fn hides(&self, dir: &Dir, path: &[u8], is_marked: bool) -> bool {
        self.hiding.as_ref().is_some_and(|hiding| hiding.hides(dir, path, is_marked))
    }

    /// Whether an entry with this name may cause its folder to be hidden.
    pub fn is_mark(&self, name: &[u8]) -> bool {
        self.hiding.as_ref().is_some_and(|hiding| hiding.is_mark(name))
    }

    /// The folder's path from the root without symbolic links. `None` if links are not followed.
    pub fn real_path(&self, dir: &Dir) -> Option<Vec<u8>> {
        self.follow.as_ref().and_then(|follow| follow.real(dir.handle()).ok())
    }

    /// The path with which the folder was opened, for messages.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The root folder as a `Dir`.
    pub fn root(&self) -> Dir {
        self.dir_at(Arc::clone(&self.root), Vec::new())
    }

    fn dir_at(&self, handle: Arc<OwnedFd>, path: Vec<u8>) -> Dir {
        match &self.follow {
            Some(follow) => Dir::following(handle, Arc::new(follow.clone()), path),
            None => Dir::new(handle),
        }
    }

    /// A folder below the root. Symbolic links are an error unless links are followed.
    ///
    /// # Errors
    /// A component is missing, not a folder, a link ([`ErrorKind::Symlink`]) or not a valid file
    /// name ([`ErrorKind::Name`]).
    pub fn dir<'a>(&self, components: impl IntoIterator<Item = &'a [u8]>) -> Result<Dir, Error> {
        let mut path = Vec::new();
        for component in components {
            if !is_component(component) {
                return Err(Error::of_kind("open folder", component, ErrorKind::Name));
            }
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(component);
        }
        if path.is_empty() {
            return Ok(self.root());
        }
        self.beneath(&path, FOLDER, "open folder").map(|handle| self.dir_at(Arc::new(handle), path))
    }

    /// Opens a regular file for reading by its path from the root, components separated by `/`.
    ///
    /// # Errors
    /// As [`Folder::dir`]; [`ErrorKind::NotFile`] for anything but a regular file.
    pub fn open_file(&self, relative: &[u8]) -> Result<(File, Stat), Error> {
        if !relative.split(|byte| *byte == b'/').all(is_component) {
            return Err(Error::of_kind("open", relative, ErrorKind::Name));
        }
        if !self.selects(relative, Kind::File) {
            return Err(Error::of_kind("open", relative, ErrorKind::NotFound));
        }
        let handle = self.beneath(relative, READ, "open")?;
        regular(handle, relative)
    }

    /// Each component of `path` must be a valid file name.
    fn beneath(&self, path: &[u8], flags: OFlags, task: &'static str) -> Result<OwnedFd, Error> {
        let result = if let Some(follow) = &self.follow {
            follow.open(path, flags)
        } else if self.one_call && path.len() <= ONE_CALL_PATH_BYTES {
            self.in_one_call(path, flags)
        } else {
            self.walk(path, flags)
        };
        // `O_DIRECTORY` reports a symbolic link as "not a directory"; the walk distinguishes the
        // two.
        result.map_err(|errno| match errno {
            // The kernel's error for a lookup that would have left the root.
            Errno::XDEV => Error::new(task, path, errno).with_kind(ErrorKind::Symlink),
            Errno::NOTDIR if self.follow.is_none() && self.has_link(path) => {
                Error::new(task, path, errno).with_kind(ErrorKind::Symlink)
            }
            _ => Error::new(task, path, errno),
        })
    }

    #[cfg(target_os = "linux")]
    fn in_one_call(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        for _ in 0..LOOKUP_ATTEMPTS {
            match rustix::fs::openat2(&self.root, path, flags, Mode::empty(), beneath_only()) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
        self.walk(path, flags)
    }

    #[cfg(not(target_os = "linux"))]
    fn in_one_call(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        self.walk(path, flags)
    }

    fn walk(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        let mut held: Option<OwnedFd> = None;
        let mut components = path.split(|byte| *byte == b'/').peekable();
        while let Some(component) = components.next() {
            let at = held.as_ref().map_or(self.root.as_fd(), AsFd::as_fd);
            let flags = if components.peek().is_some() { FOLDER } else { flags };
            held = Some(openat(at, component, flags, Mode::empty())?);
        }
        held.ok_or(Errno::NOENT)
    }

    fn has_link(&self, path: &[u8]) -> bool {
        let mut dir = self.root();
        for component in path.split(|byte| *byte == b'/') {
            match dir.stat(component) {
                Ok(stat) if stat.kind == Kind::Symlink => return true,
                Ok(_) => match dir.dir(component) {
                    Ok(next) => dir = next,
                    Err(error) => return error.kind() == ErrorKind::Symlink,
                },
                Err(_) => return false,
            }
        }
        false
    }
}

#[cfg(target_os = "linux")]
const fn beneath_only() -> rustix::fs::ResolveFlags {
    use rustix::fs::ResolveFlags;
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS)
}

/// Older kernels and some sandboxes do not support `openat2`.
#[cfg(target_os = "linux")]
fn supports_one_call(root: &OwnedFd) -> bool {
    rustix::fs::openat2(root, ".", FOLDER, Mode::empty(), beneath_only()).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn supports_one_call(_root: &OwnedFd) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The same folder, with and without `openat2`.
    fn both(path: &Path) -> [Folder; 2] {
        let folder = Folder::open(path).unwrap();
        [Folder { one_call: false, ..folder.clone() }, folder]
    }

    #[test]
    fn nothing_outside_the_root_is_reached() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "x").unwrap();
        std::fs::create_dir(place.path().join("sub")).unwrap();
        std::fs::write(place.path().join("sub/file"), "y").unwrap();
        symlink(outside.path(), place.path().join("link")).unwrap();
        symlink(outside.path().join("secret"), place.path().join("sub/leaf")).unwrap();
        symlink("file", place.path().join("sub/inside")).unwrap();
        for folder in both(place.path()) {
            assert!(folder.open_file(b"sub/file").is_ok());
            for (path, kind) in [
                (b"link/secret".as_slice(), ErrorKind::Symlink),
                (b"sub/leaf", ErrorKind::Symlink),
                (b"sub/inside", ErrorKind::Symlink),
                (b"../x", ErrorKind::Name),
                (b"/etc/passwd", ErrorKind::Name),
                (b"sub/../sub/file", ErrorKind::Name),
                (b"sub//file", ErrorKind::Name),
                (b"sub/./file", ErrorKind::Name),
                (b"", ErrorKind::Name),
                (b"sub/file\0", ErrorKind::Name),
                (b"sub", ErrorKind::NotFile),
                (b"sub/file/x", ErrorKind::NotFolder),
                (b"none", ErrorKind::NotFound),
            ] {
                assert_eq!(
                    folder.open_file(path).unwrap_err().kind(),
                    kind,
                    "{}",
                    String::from_utf8_lossy(path)
                );
            }
            assert_eq!(folder.dir([b"link".as_slice()]).unwrap_err().kind(), ErrorKind::Symlink);
            assert_eq!(folder.dir([b"sub".as_slice(), b".."]).unwrap_err().kind(), ErrorKind::Name);
            assert_eq!(
                folder.dir([b"sub".as_slice(), b"file"]).unwrap_err().kind(),
                ErrorKind::NotFolder
            );
        }
    }

    #[test]
    fn unselected_files_are_not_opened_or_reached_by_links() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("drafts")).unwrap();
        for name in ["drafts/file", "file"] {
            std::fs::write(place.path().join(name), "x").unwrap();
        }
        symlink("drafts/file", place.path().join("link")).unwrap();
        symlink("drafts", place.path().join("folder")).unwrap();
        symlink("file", place.path().join("good")).unwrap();
        let selection =
            Selection::new(|path, _| path != b"drafts" && !path.starts_with(b"drafts/"));
        let kind =
            |folder: &Folder, path: &[u8]| folder.open_file(path).err().map(|error| error.kind());
        let plain = Folder::open(place.path()).unwrap().selecting(selection.clone());
        assert_eq!(kind(&plain, b"file"), None);
        assert_eq!(kind(&plain, b"drafts/file"), Some(ErrorKind::NotFound));
        assert!(!plain.selects(b"drafts", Kind::Folder) && plain.selects(b"file", Kind::File));
        let follow = || Folder::open(place.path()).unwrap().following_links(|_| true).unwrap();
        let following = follow().selecting(selection);
        {
            assert_eq!(kind(&following, b"good"), None);
            assert_eq!(kind(&following, b"drafts/file"), Some(ErrorKind::NotFound));
            for path in [b"link".as_slice(), b"folder/file"] {
                assert_eq!(
                    kind(&following, path),
                    Some(ErrorKind::Symlink),
                    "{}",
                    String::from_utf8_lossy(path)
                );
            }
            assert_eq!(following.root().stat(b"link").unwrap().kind, Kind::Symlink);
            assert_eq!(following.root().stat(b"folder").unwrap().kind, Kind::Symlink);
        }
        assert_eq!(kind(&follow(), b"link"), None);
    }

    #[test]
    fn a_root_replaced_after_opening_changes_nothing() {
        let place = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let path = place.path().join("root");
        std::fs::create_dir(&path).unwrap();
        let folder = Folder::open(&path).unwrap();
        std::fs::rename(&path, place.path().join("moved")).unwrap();
        symlink(outside.path(), &path).unwrap();
        drop(folder.root().create_new(b"new").unwrap());
        assert!(place.path().join("moved/new").exists());
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn pipes_are_neither_opened_nor_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        rustix::fs::mknodat(&folder.root, "pipe", rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        for folder in both(place.path()) {
            assert_eq!(folder.open_file(b"pipe").unwrap_err().kind(), ErrorKind::NotFile);
        }
    }

    #[test]
    fn paths_beyond_one_call_are_walked() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::open(place.path()).unwrap();
        let name = [b'd'; 200];
        let mut dir = folder.root();
        for _ in 0..40 {
            dir.create_dir(&name).unwrap();
            dir = dir.dir(&name).unwrap();
        }
        drop(dir.create_new(b"leaf").unwrap());
        let deep = folder.dir(std::iter::repeat_n(name.as_slice(), 40)).unwrap();
        assert!(deep.open_read(b"leaf").is_ok());
        // The temporary folder's own removal would need the long path.
        let mut path = vec![name.as_slice(); 40];
        deep.unlink(b"leaf").unwrap();
        while let Some(last) = path.pop() {
            folder.dir(path.iter().copied()).unwrap().rmdir(last).unwrap();
        }
    }
}
