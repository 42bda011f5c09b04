//! Following symbolic links without ever leaving the root folder.
//!
//! Every lookup starts at the root's handle, and the kernel itself refuses a lookup that would
//! leave the root at any step (`openat2` with `RESOLVE_BENEATH`), also if links are replaced
//! meanwhile. Then the path of the opened file is read back: each component must be visible to
//! readers of the folder without the link, otherwise a link could publish a hidden file.

use crate::entry::dir::OpenLinks;
use crate::published::selection::{Hiding, Selection};
use rustix::fd::AsRawFd as _;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::Arc;

#[cfg(target_os = "linux")]
use crate::entry::stat::{Kind, Stat};

#[cfg(target_os = "linux")]
use rustix::fs::{Mode, ResolveFlags};

/// Most repetitions of a lookup that the kernel asks to repeat.
const LOOKUP_ATTEMPTS: usize = 64;

/// Decides by the name of a file whether it may be reached through a link.
pub type Visible = fn(&[u8]) -> bool;

/// How links are followed in a root folder.
#[derive(Clone, Debug)]
pub(crate) struct Follow {
    root: Arc<OwnedFd>,
    visible: Visible,
    pub(crate) selection: Option<Selection>,
    pub(crate) hiding: Option<Hiding>,
}

impl Follow {
    pub(crate) const fn new(root: Arc<OwnedFd>, visible: Visible) -> Self {
        Self { root, visible, selection: None, hiding: None }
    }

    /// Whether the target of a link is selected.
    #[cfg(target_os = "linux")]
    fn selects(&self, real: &[u8], handle: &OwnedFd) -> Result<bool, Errno> {
        if self.selection.is_none() && self.hiding.is_none() {
            return Ok(true);
        }
        let kind = Stat::from_raw(&rustix::fs::fstat(handle)?).kind;
        if self
            .hiding
            .as_ref()
            .is_some_and(|hiding| hiding.hidden_folder(&self.root, real, kind).is_some())
        {
            return Ok(false);
        }
        let Some(selection) = &self.selection else { return Ok(true) };
        // Files in a folder that is not selected are not selected either.
        let folders =
            real.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| &real[..end]);
        Ok(selection.has(real, kind)
            && folders.into_iter().all(|folder| selection.has(folder, Kind::Folder)))
    }
}

impl OpenLinks for Follow {
    /// Opens a path from the root; links on the way and at its end are followed.
    #[cfg(target_os = "linux")]
    fn open(&self, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        const BENEATH: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);
        let path = if path.is_empty() { b"." } else { path };
        let flags = flags.difference(OFlags::NOFOLLOW);
        let mut opened = Err(Errno::AGAIN);
        for _ in 0..LOOKUP_ATTEMPTS {
            opened = rustix::fs::openat2(&self.root, path, flags, Mode::empty(), BENEATH);
            if !matches!(opened, Err(Errno::AGAIN | Errno::INTR)) {
                break;
            }
        }
        let handle = opened?;
        let real = self.real(&handle)?;
        let hidden = real != path
            && real
                .split(|byte| *byte == b'/')
                .any(|name| !name.is_empty() && !(self.visible)(name));
        let hidden = hidden || (real != path && !self.selects(&real, &handle)?);
        if hidden { Err(Errno::XDEV) } else { Ok(handle) }
    }

    #[cfg(not(target_os = "linux"))]
    fn open(&self, _path: &[u8], _flags: OFlags) -> Result<OwnedFd, Errno> {
        Err(Errno::OPNOTSUPP)
    }

    /// Present path of an open file from the root, without links; empty for the root itself.
    fn real(&self, handle: &OwnedFd) -> Result<Vec<u8>, Errno> {
        let place = |handle: &OwnedFd| {
            rustix::fs::readlink(format!("/proc/self/fd/{}", handle.as_raw_fd()), Vec::new())
                .map(std::ffi::CString::into_bytes)
        };
        let (mut root, path) = (place(&self.root)?, place(handle)?);
        if path == root {
            return Ok(Vec::new());
        }
        if root != b"/" {
            root.push(b'/');
        }
        // Outside the root: moved since it was opened.
        path.strip_prefix(root.as_slice()).map(<[u8]>::to_vec).ok_or(Errno::XDEV)
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use crate::{ErrorKind, Folder, Kind};
    use std::io::Read as _;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    fn following(path: &Path) -> Folder {
        Folder::open(path).unwrap().following_links(|name| !name.starts_with(b".")).unwrap()
    }

    fn text(folder: &Folder, path: &[u8]) -> Result<String, ErrorKind> {
        let (mut file, _) = folder.open_file(path).map_err(|error| error.kind())?;
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        Ok(text)
    }

    #[test]
    fn links_lead_to_what_is_beneath_the_root_and_shown() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("root");
        std::fs::create_dir_all(root.join("sub/inner")).unwrap();
        std::fs::create_dir_all(root.join(".hidden")).unwrap();
        std::fs::write(place.path().join("secret"), "no").unwrap();
        std::fs::write(root.join(".hidden/store"), "no").unwrap();
        std::fs::write(root.join("sub/file"), "yes").unwrap();
        for (target, name) in [
            ("../sub/file", "sub/leaf"),
            ("leaf", "sub/chain"),
            ("../../sub", "sub/inner/up"),
            ("sub", "folder"),
            ("../secret", "out"),
            ("sub/../../secret", "out-and-in"),
            (".hidden/store", "uncover"),
            (".hidden", "uncovered"),
            ("nowhere", "dangling"),
            ("self", "self"),
        ] {
            symlink(target, root.join(name)).unwrap();
        }
        symlink(root.join("sub/file"), root.join("absolute")).unwrap();
        symlink("/proc/self/fd/0", root.join("magic")).unwrap();
        let folder = following(&root);
        for path in [
            b"sub/file".as_slice(),
            b"sub/leaf",
            b"sub/chain",
            b"folder/file",
            b"sub/inner/up/leaf",
        ] {
            assert_eq!(text(&folder, path), Ok("yes".into()), "{}", String::from_utf8_lossy(path));
        }
        for path in [
            b"out".as_slice(),
            b"out-and-in",
            b"uncover",
            b"uncovered/store",
            b"self",
            b"absolute",
            b"magic",
        ] {
            assert_eq!(
                text(&folder, path),
                Err(ErrorKind::Symlink),
                "{}",
                String::from_utf8_lossy(path)
            );
        }
        assert_eq!(text(&folder, b"dangling"), Err(ErrorKind::NotFound));
        let kind = |name: &[u8]| folder.root().stat(name).unwrap().kind;
        assert_eq!((kind(b"folder"), kind(b"sub")), (Kind::Folder, Kind::Folder));
        let listed = folder.root().list().unwrap();
        for name in [
            b"out".as_slice(),
            b"uncover",
            b"uncovered",
            b"dangling",
            b"self",
            b"absolute",
            b"magic",
        ] {
            assert_eq!(kind(name), Kind::Symlink, "{}", String::from_utf8_lossy(name));
            assert!(listed.iter().any(|entry| entry.name == name && entry.kind == Kind::Symlink));
        }
        let inner = folder.dir([b"folder".as_slice(), b"inner"]).unwrap();
        assert_eq!(folder.real_path(&inner).unwrap(), b"sub/inner");
        assert_eq!(folder.real_path(&inner.dir(b"up").unwrap()).unwrap(), b"sub");
        assert_eq!(inner.dir(b"up").unwrap().open_read(b"chain").unwrap().1.size, 3);
        assert_eq!(folder.root().dir(b"uncovered").unwrap_err().kind(), ErrorKind::Symlink);
        assert_eq!(folder.root().open_read(b"out").unwrap_err().kind(), ErrorKind::Symlink);
        // By default, links are not followed.
        assert_eq!(text(&Folder::open(&root).unwrap(), b"sub/leaf"), Err(ErrorKind::Symlink));
    }
}
