//! Files made of packages when they are first asked for, and kept beside them with their digests.

use super::digest_of;
use super::keeper::{SetDumps, lock};
use super::permit::Permit;
use crate::DigestPolicy;
use crate::made::{MadeFile, Making, remove, sweep};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// What the name of the digest of a file ends with: a line as `sha256sum` writes it.
const DIGEST: &str = "sha256";

/// Makes a file of a package, with the manifest beside it.
type Make<'m> = &'m dyn Fn(&Path, &mut MadeFile) -> io::Result<()>;

impl SetDumps {
    /// A file made of a package when it is first asked for, and kept beside it as long as it is
    /// there, and its SHA-256. Blocks while it is made.
    ///
    /// # Errors
    /// See [`Derived`].
    pub(crate) fn derived(
        &self,
        stem: &str,
        ending: &str,
        make: Make<'_>,
    ) -> Result<(PathBuf, Option<[u8; 32]>), Derived> {
        let package = self.file(&format!("{stem}.zip")).ok_or(Derived::None)?;
        let path = package.with_file_name(format!("{stem}.{ending}"));
        let made = |path: PathBuf| {
            let digest = stated_digest(&path);
            (path, digest)
        };
        if path.is_file() {
            return Ok(made(path));
        }
        let _place = Permit::take(&self.shared.making_since).ok_or(Derived::Busy)?;
        let _once = Once::take(&self.deriving, &path).ok_or(Derived::Busy)?;
        if path.is_file() {
            return Ok(made(path));
        }
        let write = || -> io::Result<()> {
            let folder = path.parent().unwrap_or(&path);
            let (mut making, name) = (Making::begin(folder), format!("{stem}.{ending}"));
            let mut file = making.file(&name, package.metadata()?.len())?;
            make(&package, file.get_mut())?;
            file.get_ref().sync()?;
            let line = digest_line(&making.path(&name), &name)?;
            let digest = format!("{name}.{DIGEST}");
            making.write(&digest, line.as_bytes())?;
            making.give_name(&digest)?;
            making.publish(&name)
        };
        write().map_err(Derived::Failed)?;
        Ok(made(path))
    }
}

fn digest_path(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(DIGEST);
    file.with_file_name(name)
}

/// The line of a digest: of the bytes of `file`, for the name that it gets.
fn digest_line(file: &Path, name: &str) -> io::Result<String> {
    let (_, digests) = digest_of(file, DigestPolicy::Sha256)?;
    let mut line = String::new();
    for byte in digests.sha256.unwrap_or_default() {
        let _ = write!(line, "{byte:02x}");
    }
    Ok(format!("{line}  {name}\n"))
}

/// The digest that was written when a file was made.
fn stated_digest(file: &Path) -> Option<[u8; 32]> {
    let line = fs::read_to_string(digest_path(file)).ok()?;
    let hex = line.split_ascii_whitespace().next().filter(|hex| hex.len() == 64)?;
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// The files in the folder of a dump that are not as they were made. A file without a digest was
/// made by an earlier version.
pub(super) fn damaged(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let digest = entry?.path();
        let file = digest.with_extension("");
        if digest.extension().is_none_or(|end| end != DIGEST) || !file.is_file() {
            continue;
        }
        let read = digest_of(&file, DigestPolicy::Sha256).map(|(_, digests)| digests.sha256);
        if !read.is_ok_and(|read| read.is_some() && read == stated_digest(&file)) {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes a file that is made again when it is asked for.
pub(super) fn remove_one(file: &Path) -> io::Result<()> {
    remove(file)?;
    remove(&digest_path(file))
}

/// Removes what a crash left of files that were made of the packages in the folder of a dump.
pub(super) fn sweep_beside(folder: &Path) -> io::Result<()> {
    let is_digest = |path: &Path| path.extension().is_some_and(|end| end == DIGEST);
    sweep(
        folder,
        |_| true,
        |name| {
            let path = folder.join(name);
            Ok(!is_digest(&path) || path.with_extension("").is_file())
        },
    )
}

/// The reason why there is no file made of a package.
#[derive(Debug)]
pub(crate) enum Derived {
    /// There is no such package.
    None,
    /// It is being made, or too many others are.
    Busy,
    /// It cannot be made.
    Failed(io::Error),
}

/// The right to make a file that nobody else makes.
struct Once<'a> {
    all: &'a Mutex<HashSet<PathBuf>>,
    path: PathBuf,
}

impl<'a> Once<'a> {
    fn take(all: &'a Mutex<HashSet<PathBuf>>, path: &Path) -> Option<Self> {
        lock(all).insert(path.to_owned()).then(|| Self { all, path: path.to_owned() })
    }
}

impl Drop for Once<'_> {
    fn drop(&mut self) {
        lock(self.all).remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    #[test]
    fn few_packages_are_made_on_demand_at_a_time() {
        let places = AtomicUsize::new(0);
        let (one, two) = (Permit::take(&places), Permit::take(&places));
        assert!(one.is_some() && two.is_some() && Permit::take(&places).is_none());
        drop(one);
        assert!(Permit::take(&places).is_some());
    }

    #[test]
    fn a_file_that_is_not_as_it_was_made_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let [file, old] = ["a-1.v0.1-1.zip", "a-1.v0.1-2.zip"].map(|name| folder.path().join(name));
        fs::write(&file, "as made").unwrap();
        fs::write(&old, "without a digest").unwrap();
        fs::write(digest_path(&file), digest_line(&file, "a-1.v0.1-1.zip").unwrap()).unwrap();
        assert!(stated_digest(&file).is_some() && stated_digest(&old).is_none());
        assert_eq!(damaged(folder.path()).unwrap(), Vec::<PathBuf>::new());
        fs::write(&file, "as lost").unwrap();
        assert_eq!(damaged(folder.path()).unwrap(), std::slice::from_ref(&file));
        remove_one(&file).unwrap();
        assert_eq!(damaged(folder.path()).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
