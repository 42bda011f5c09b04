//! Deleting files, and the folders that become empty.

use super::FolderWriter;
use super::emptied::remove_empty;
use crate::copy::path_map::Form;
use crate::copy::place::{LastDir, NoPlace, shown};
use crate::report::failure::Failure;
use crate::sink::outcome::Notice;
use crate::sink::{Deleted, via};
use abreast_folder::{ErrorKind, Kind};
use abreast_store::mirror::Task;
use std::os::unix::ffi::OsStrExt as _;

impl FolderWriter {
    /// Deletes one file, unless it was changed by somebody else; returns the path of its folder.
    /// Only files in the database are deleted, and only if unchanged since they were written.
    pub(super) fn delete_one(&mut self, task: &Task) -> Result<(Deleted, Vec<u8>), Failure> {
        let copy = &self.sink.copy;
        let Some(row) = &task.row else { return Ok((Deleted::default(), Vec::new())) };
        let gone = || Deleted { gone: true, notices: Vec::new() };
        let with_notice = |gone, code, message: String| Deleted {
            gone,
            notices: vec![Notice::new(code, message)],
        };
        let place = match copy.place_of(&task.pending.uri, Some(row), &mut self.last) {
            Ok(place) => place,
            Err(NoPlace::Refused(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok((gone(), Vec::new()));
            }
            Err(no_place) => {
                let failure = Failure::from(no_place);
                if failure.fatal {
                    return Err(failure);
                }
                let message = format!(
                    "deleted at the Source; what stands in its place is not ours: {}",
                    failure.message
                );
                return Ok((with_notice(false, "local.kept", message), Vec::new()));
            }
        };
        // If a folder has the plain name, the path leads to the leaf name, which is not the
        // recorded file.
        let moved = (place.form == Form::Leaf) != row.leaf
            && !place.found.is_some_and(|found| copy.is_as_written(row, &found));
        let deleted = match place.found {
            None => {
                if self.sink.republish && !moved && !self.sink.is_dry() {
                    via::remove(&place)?;
                }
                gone()
            }
            Some(_) if moved => with_notice(
                false,
                "local.kept",
                "deleted at the Source; what stands in its place is not ours".to_owned(),
            ),
            Some(found)
                if found.kind == Kind::File
                    && copy.is_as_written(row, &found)
                    && self.sink.is_dry() =>
            {
                gone()
            }
            Some(found) if found.kind == Kind::File && copy.is_as_written(row, &found) => {
                place.dir.unlink(place.name())?;
                if self.sink.republish {
                    via::remove(&place)?;
                }
                gone()
            }
            Some(_) if self.sink.immutable => {
                let message = format!(
                    "`{}` was deleted at the Source and changed here; `--immutable` keeps it",
                    place.shown()
                );
                return Err(Failure::refused("local.changed", message));
            }
            Some(_) if self.sink.is_dry() => with_notice(
                true,
                "local.backup",
                "deleted at the Source; the file changed here would be put aside".to_owned(),
            ),
            Some(_) => {
                let to = copy.backup.take(&place)?;
                let to = shown(to.as_os_str().as_bytes());
                let message = format!("deleted at the Source; the file changed here is now {to}");
                with_notice(true, "local.backup", message)
            }
        };
        let parent = place.path.len() - place.name().len();
        Ok((deleted, place.path[..parent.saturating_sub(1)].to_vec()))
    }

    pub(super) fn remove_emptied(&mut self) {
        if !self.emptied.is_empty() && !self.sink.is_dry() {
            remove_empty(&self.sink.copy.folder, &self.emptied, &|_| true);
            self.last = LastDir::default();
            self.emptied.clear();
        }
    }
}
