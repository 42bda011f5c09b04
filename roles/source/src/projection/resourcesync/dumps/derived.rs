//! Files made from packages at the first request, and stored next to them with digests.

use super::digest_of;
use super::dump_folder::DIGEST;
use super::keeper::SetDumps;
use super::permit::Permit;
use super::shared_dumps::SharedDumps;
use crate::DigestPolicy;
use crate::made::shared::{Attempt, Finished, SharedError};
use crate::made::{MadeFile, Making, remove};
use crate::publish::files::{FileContent, FileError};
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Function that makes a file from a package, next to which is the manifest.
type Make<'m> = &'m dyn Fn(&Path, &mut MadeFile) -> io::Result<()>;

impl SetDumps {
    /// File made from a package at the first request, and its SHA-256. The file is stored next to
    /// the package, or shared with other nodes, until the package is removed. Blocks while the file is
    /// made.
    ///
    /// # Errors
    /// See [`Derived`].
    pub(crate) fn derived(
        &self,
        stem: &str,
        ending: &str,
        make: Make<'_>,
    ) -> Result<(FileContent, Option<[u8; 32]>), Derived> {
        if let Some(groups) = &self.groups {
            return self.derived_of_nodes(groups, stem, ending, make);
        }
        let package = self.file(&format!("{stem}.zip")).ok_or(Derived::None)?;
        let path = package.with_file_name(format!("{stem}.{ending}"));
        if !path.is_file() {
            let _place = Permit::take(&self.shared.making_since).ok_or(Derived::Busy)?;
            write(&package, &path, make).map_err(|error| match error.kind() {
                // Another request is making the file.
                io::ErrorKind::AlreadyExists => Derived::Busy,
                _ => Derived::Failed(error),
            })?;
        }
        let digest = stated_digest(&path);
        let file = fs::File::open(path).map_err(|_| Derived::None)?;
        Ok((FileContent::File(file), digest))
    }

    /// The same file for all nodes: the first node that publishes the file makes it.
    fn derived_of_nodes(
        &self,
        groups: &SharedDumps,
        stem: &str,
        ending: &str,
        make: Make<'_>,
    ) -> Result<(FileContent, Option<[u8; 32]>), Derived> {
        let (name, group) = (format!("{stem}.{ending}"), &groups.derived);
        let find = || {
            let record = group.known().1;
            let item = record.item(&name)?;
            let content = FileContent::shared(group, item.file(&name)?);
            Some((content, digest_in(&item.text)))
        };
        if let Some(found) = find() {
            return Ok(found);
        }
        let refused = |error: SharedError| Derived::Refused(error.into());
        let files = ["zip", "xml"].map(|end| self.shared_file(&format!("{stem}.{end}")));
        let [Some(zip), Some(manifest)] = files else { return Err(Derived::None) };
        let _place = Permit::take(&self.shared.making_since).ok_or(Derived::Busy)?;
        // The manifest is next to the package.
        let package = groups.resources.hold(&zip).map_err(refused)?;
        let _manifest = groups.resources.hold(&manifest).map_err(refused)?;
        let attempt = Attempt::begin_any(group).map_err(refused)?;
        if let Some(found) = find() {
            return Ok(found);
        }
        let path = attempt.folder().join(&name);
        let text =
            write_with_digest(package.path(), &path, &name, make).map_err(Derived::Failed)?;
        let finished = Finished {
            name: name.clone(),
            text,
            names: vec![name.clone()],
            earlier: Vec::new(),
            follows: false,
            surplus: &|_| 0,
        };
        match attempt.publish(finished, &|| false) {
            Ok(()) | Err(SharedError::Published) => {}
            Err(error) => return Err(refused(error)),
        }
        find().ok_or(Derived::Busy)
    }
}

/// Makes a file, and returns the line with its digest.
fn write_with_digest(
    package: &Path,
    path: &Path,
    name: &str,
    make: Make<'_>,
) -> io::Result<String> {
    let mut file = MadeFile::create(path, package.metadata()?.len())?;
    make(package, &mut file)?;
    file.sync()?;
    digest_line(path, name)
}

fn write(package: &Path, path: &Path, make: Make<'_>) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut making = Making::begin(path.parent().unwrap_or(path));
    let mut file = making.file(&name, package.metadata()?.len())?;
    if path.is_file() {
        // Another request has made the file meanwhile.
        return Ok(());
    }
    make(package, file.get_mut())?;
    file.get_ref().sync()?;
    let line = digest_line(&making.path(&name), &name)?;
    let digest = format!("{name}.{DIGEST}");
    making.write(&digest, line.as_bytes())?;
    making.give_name(&digest)?;
    making.publish(&name)
}

fn digest_path(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(".");
    name.push(DIGEST);
    file.with_file_name(name)
}

/// Line with the digest of `file` and a name.
fn digest_line(file: &Path, name: &str) -> io::Result<String> {
    let (_, digests) = digest_of(file, DigestPolicy::Sha256)?;
    let mut line = String::new();
    for byte in digests.sha256.unwrap_or_default() {
        let _ = write!(line, "{byte:02x}");
    }
    Ok(format!("{line}  {name}\n"))
}

/// Digest that was written when the file was made.
fn stated_digest(file: &Path) -> Option<[u8; 32]> {
    digest_in(&fs::read_to_string(digest_path(file)).ok()?)
}

/// Digest in a line that [`digest_line`] wrote.
fn digest_in(line: &str) -> Option<[u8; 32]> {
    let hex = line.split_ascii_whitespace().next().filter(|hex| hex.len() == 64)?;
    let mut digest = [0; 32];
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

/// Files in the folder of a dump whose digests differ. Files without a digest were made by an
/// earlier version.
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

/// Removes a file that is made again at the next request.
pub(super) fn remove_one(file: &Path) -> io::Result<()> {
    remove(file)?;
    remove(&digest_path(file))
}

/// The reason why a file made from a package is not available.
#[derive(Debug)]
pub(crate) enum Derived {
    /// The package does not exist.
    None,
    /// The file is being made, or too many other files are being made.
    Busy,
    /// The file cannot be made.
    Failed(io::Error),
    /// The files of other nodes cannot be read or published.
    Refused(FileError),
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
