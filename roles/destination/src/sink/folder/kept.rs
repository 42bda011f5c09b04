//! Verification of the files of a copy in a folder: lengths, times, digests, names, and leftover
//! files.

use super::super::kept::{Damage, DamageKind, ReadBack, same_bytes};
use super::super::via;
use crate::copy::key;
use crate::copy::path_map::{Form, PathError, PathMap, STATE_FOLDER, TEMPORARY_PREFIX};
use crate::copy::place::shown;
use crate::copy::probe::FileSystem;
use crate::report::error::{Error, ExitCode};
use crate::request::verify::hash_file;
use abreast_folder::{Dir, ErrorKind, Folder, Kind, Stat};
use abreast_store::mirror::{Mirror, Row};
use abreast_webtypes::Digests;
use std::path::Path;

/// Reads the files of a copy back. Rows that come in the order of their URIs share the folder that
/// was opened last.
pub(crate) struct FolderKept {
    folder: Folder,
    map: PathMap,
    system: FileSystem,
    last: Option<(Vec<u8>, Dir)>,
}

/// An existing file of the copy.
struct Found {
    dir: Dir,
    name: Vec<u8>,
    stat: Stat,
}

impl FolderKept {
    /// The copy in a folder; `None` before its first run has found a base.
    pub(crate) fn open(folder: &Path, mirror: &Mirror) -> Result<Option<Self>, Error> {
        let Some(base) = mirror.meta(key::BASE)? else { return Ok(None) };
        let system = mirror.meta(key::FILE_SYSTEM)?.as_deref().and_then(FileSystem::from_text);
        let system = system.unwrap_or(FileSystem::with_rules(crate::NameRules::default()));
        let map = PathMap::new(&base, system.rules)
            .map_err(|cause| Error::new("folder.base", ExitCode::Usage, cause.to_string()))?;
        Ok(Some(Self { folder: Folder::open(folder)?, map, system, last: None }))
    }

    /// The file at a path, if any; an error for anything else.
    fn find(&mut self, path: &[u8]) -> Result<Option<Found>, abreast_folder::Error> {
        let name_at = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let (parent, name) = (&path[..name_at.saturating_sub(1)], &path[name_at..]);
        if self.last.as_ref().is_none_or(|(last, _)| last != parent) {
            let opened = if parent.is_empty() {
                Ok(self.folder.root())
            } else {
                self.folder.dir(parent.split(|byte| *byte == b'/'))
            };
            match opened {
                Ok(dir) => self.last = Some((parent.to_vec(), dir)),
                Err(error)
                    if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotFolder) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        let Some((_, dir)) = &self.last else { return Ok(None) };
        match dir.stat(name) {
            Ok(stat) => Ok(Some(Found { dir: dir.clone(), name: name.to_vec(), stat })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn path(&self, row: &Row, form: Form) -> Result<Vec<u8>, PathError> {
        let mut path = Vec::with_capacity(96);
        self.map.path_into(&row.uri, form, &mut path).map(|()| path)
    }

    fn is_as_written(&self, row: &Row, stat: &Stat) -> bool {
        stat.kind == Kind::File
            && stat.size == row.length
            && self.system.same_time(row.file_mtime, stat.mtime_ns)
    }

    /// The damage of the file at the path from the row.
    fn damage_at(&mut self, row: &Row, path: &[u8], read: bool) -> Option<Damage> {
        let shown = shown(path);
        let damage = |kind, message: String| Some(Damage { kind, message });
        let found = match self.find(path) {
            Ok(Some(found)) if found.stat.kind == Kind::File => found,
            Ok(Some(_)) => return damage(DamageKind::Missing, format!("`{shown}` is not a file")),
            Ok(None) => {
                return damage(DamageKind::Missing, format!("the file `{shown}` is missing"));
            }
            Err(error) => {
                return damage(
                    DamageKind::Missing,
                    format!("the file `{shown}` cannot be read: {error}"),
                );
            }
        };
        if found.stat.size != row.length {
            let message = format!(
                "the file `{shown}` has {}, {} were written",
                abreast_webtypes::count(found.stat.size, "byte"),
                row.length
            );
            return damage(DamageKind::Length, message);
        }
        let as_written = self.is_as_written(row, &found.stat);
        if as_written && !read {
            return None;
        }
        let mut digests = Digests::default();
        digests.set_from_bytes(&row.digests);
        // A file of the same length that was modified at another time: its bytes decide.
        if digests.strongest().is_some() {
            let hashed =
                found.dir.open_read(&found.name).map_err(|error| error.to_string()).and_then(
                    |(mut file, _)| {
                        hash_file(&mut file, &digests).map_err(|error| error.to_string())
                    },
                );
            return match hashed {
                Ok(hashed) if same_bytes(row, &digests, Some(&hashed)) && as_written => None,
                Ok(hashed) if same_bytes(row, &digests, Some(&hashed)) => {
                    let message = format!(
                        "the file `{shown}` was modified at another time than it was written; its bytes are the same"
                    );
                    damage(DamageKind::Touched(found.stat.mtime_ns), message)
                }
                Ok(_) => damage(
                    DamageKind::Digest,
                    format!("the file `{shown}` has other bytes than were written"),
                ),
                Err(error) => damage(
                    DamageKind::Digest,
                    format!("the file `{shown}` cannot be read: {error}"),
                ),
            };
        }
        if as_written {
            return None;
        }
        damage(
            DamageKind::Time,
            format!("the file `{shown}` was modified at another time than it was written"),
        )
    }

    /// Reports leftovers of killed runs: temporary files, and files of links without their file.
    pub(crate) fn leftovers(&self, report: &mut dyn FnMut(&Dir, &[u8], &str)) -> Result<(), Error> {
        let mut waiting: Vec<Vec<u8>> = vec![Vec::new()];
        while let Some(path) = waiting.pop() {
            let dir = self
                .folder
                .dir(path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()))?;
            for entry in dir.entries()? {
                let entry = entry?;
                if path.is_empty() && entry.name == STATE_FOLDER.as_bytes() {
                    continue;
                }
                let full = if path.is_empty() {
                    entry.name.clone()
                } else {
                    [&path[..], b"/", &entry.name].concat()
                };
                if entry.kind == Kind::Folder {
                    waiting.push(full);
                } else if entry.name.starts_with(TEMPORARY_PREFIX)
                    || via::is_orphan(&dir, &entry.name)
                {
                    report(&dir, &entry.name, &shown(&full));
                }
            }
        }
        Ok(())
    }
}

impl ReadBack for FolderKept {
    fn damage(&mut self, _mirror: &Mirror, row: &Row, read: bool) -> Result<Option<Damage>, Error> {
        let form = if row.leaf { Form::Leaf } else { Form::Plain };
        let Ok(path) = self.path(row, form) else {
            let message = "the state names a resource that has no place in the folder".to_owned();
            return Ok(Some(Damage { kind: DamageKind::NoPlace, message }));
        };
        let damage = self.damage_at(row, &path, read);
        let is_missing = damage.as_ref().is_some_and(|damage| damage.kind == DamageKind::Missing);
        if !is_missing && (!row.leaf || damage.is_some()) {
            return Ok(damage);
        }
        // A killed run may have moved the file to the other form of its path without recording the
        // move.
        let other = if row.leaf { Form::Plain } else { Form::Leaf };
        let Ok(other) = self.path(row, other) else { return Ok(damage) };
        let found = self.find(&other);
        let is_moved =
            is_missing && matches!(&found, Ok(Some(found)) if self.is_as_written(row, &found.stat));
        let is_free = row.leaf && !is_missing && matches!(found, Ok(None));
        if is_moved || is_free {
            let message = format!(
                "the file `{}` stands under the reserved name without need",
                shown(if row.leaf && is_free { &path } else { &other })
            );
            return Ok(Some(Damage { kind: DamageKind::Name, message }));
        }
        Ok(damage)
    }

    fn digests(
        &mut self,
        _mirror: &Mirror,
        row: &Row,
        listed: &Digests,
    ) -> Result<Option<(Digests, u64)>, Error> {
        let form = if row.leaf { Form::Leaf } else { Form::Plain };
        let Ok(path) = self.path(row, form) else { return Ok(None) };
        let Ok(Some(found)) = self.find(&path) else { return Ok(None) };
        let Ok((mut file, _)) = found.dir.open_read(&found.name) else { return Ok(None) };
        Ok(hash_file(&mut file, listed).ok())
    }
}
