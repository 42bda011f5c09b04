//! Writing a file to its place.

use super::FolderWriter;
use crate::copy::names::temporary_name;
use crate::copy::path_map::Form;
use crate::copy::place::{Place, Purpose, create_temporary, shown};
use crate::report::failure::Failure;
use crate::request::verify::{Verdict, hash_file};
use crate::sink::outcome::{Notice, Outcome};
use crate::sink::{Body, TemporaryFile, via};
use abreast_folder::{ErrorKind, Kind, set_modified};
use abreast_store::mirror::{Row, Task};
use std::fs::File;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::Ordering;

/// Maximum number of inspections of a place that another thread changes meanwhile.
const PLACE_ATTEMPTS: usize = 4;

/// The result of giving a name to a file that was created without a name.
enum Unnamed {
    /// The file has its name, and this modification time in nanoseconds since 1970.
    Stored(i64),
    /// Another file has the name.
    Taken,
    /// The file system does not support the operation, or another error occurred, which the attempt
    /// with a temporary name will show.
    Refused,
}

impl FolderWriter {
    /// Sets the listed time on a file that has the right bytes.
    pub(super) fn with_time(
        &self,
        task: &Task,
        mut row: Row,
        place: &Place,
    ) -> Result<Row, Failure> {
        let item = &task.pending;
        row.changed = item.changed.or(row.changed);
        row.leaf = place.form == Form::Leaf;
        if let Some(modified) = item.modified {
            let mtime = self.sink.copy.system.time_of(modified);
            if place
                .found
                .is_some_and(|found| !self.sink.copy.system.same_time(mtime, found.mtime_ns))
            {
                if !self.sink.is_dry() {
                    place.dir.set_modified(place.name(), mtime)?;
                }
                row.file_mtime = mtime;
            }
        }
        row.modified = item.modified;
        Ok(row)
    }

    /// Whether the file at a place is unchanged since it was written for the row.
    pub(super) fn is_ours(&self, task: &Task, place: &Place) -> bool {
        let found = task.row.as_ref().zip(place.found);
        found.is_some_and(|(row, found)| self.sink.copy.is_as_written(row, &found))
    }

    /// Refuses to replace a locally changed file, if the user wants that.
    pub(super) fn refuse_changed(&self, place: &Place, ours: bool) -> Result<(), Failure> {
        if self.sink.immutable && place.found.is_some() && !ours {
            return Err(Failure::refused("local.changed", changed_here(place)));
        }
        Ok(())
    }

    /// Examines a place again, right before the file there is replaced: it may have been edited
    /// since its resource was requested.
    pub(super) fn examine_again(
        &self,
        task: &Task,
        place: &mut Place,
        ours: &mut bool,
    ) -> Result<(), Failure> {
        let before = place.found;
        place.examine()?;
        if place.found != before {
            *ours = self.is_ours(task, place);
        }
        Ok(())
    }

    pub(super) fn store_now(&mut self, task: &Task, body: Body<'_>) -> Result<Outcome, Failure> {
        let (mut place, mut ours) = self.prepared.take().expect("the item was prepared");
        if place.found.is_some() {
            self.examine_again(task, &mut place, &mut ours)?;
            self.refuse_changed(&place, ours)?;
        }
        let item = &task.pending;
        let same_bytes = |place: &Place| -> Result<bool, Failure> {
            if place.found.is_none_or(|found| found.size != body.length) {
                return Ok(false);
            }
            let (mut file, _) = place.dir.open_read(place.name())?;
            Ok(hash_file(&mut file, &body.digests)?.0.agree(&body.digests) == Some(true))
        };
        let mut row = Row { leaf: place.form == Form::Leaf, ..body.row(task, self.sink.epoch) };
        // If no digest is listed, only the bytes show that nothing has changed. Unchanged bytes are
        // not written again.
        if place.found.is_some() && body.verdict != Verdict::Verified && same_bytes(&place)? {
            row.file_mtime = place.found.map_or(0, |found| found.mtime_ns);
            return Ok(Outcome::Right { row: self.with_time(task, row, &place)? });
        }
        let system = self.sink.copy.system;
        let mtime = item.modified.map(|micros| system.time_of(micros)).or(body.last_modified);
        let mtime = mtime.map(|time| system.nearest_time(time));
        let created = task.row.is_none() && place.found.is_none();
        // Written before the file, so that programs that publish the folder see both together.
        let noticed = if self.sink.republish {
            via::write(task, &place, &via::Known::of(&body))?
        } else {
            None
        };
        let Body { bytes, file, mut notices, .. } = body;
        notices.extend(noticed);
        // An earlier attempt may have left a file with the temporary name, which the other method
        // replaces.
        if file.is_none() && place.found.is_none() && item.attempts == 0 {
            match self.store_unnamed(&place, bytes, mtime) {
                Unnamed::Stored(file_mtime) => {
                    row.file_mtime = file_mtime;
                    return Ok(Outcome::Stored { row, created, notices });
                }
                Unnamed::Taken => {
                    place = self.sink.copy.place(
                        &item.uri,
                        place.form,
                        Purpose::Put,
                        &mut self.last,
                    )?;
                    row.leaf = place.form == Form::Leaf;
                }
                Unnamed::Refused => self.sink.copy.unnamed.store(false, Ordering::Relaxed),
            }
        }
        let name = temporary_name(&item.uri);
        let mut temporary = if let Some(file) = file {
            file
        } else {
            let file = create_temporary(&place.dir, &name)?;
            let mut temporary =
                TemporaryFile { dir: place.dir.clone(), name, file, kept: false, resumable: false };
            temporary.file.write_all(bytes)?;
            temporary
        };
        row.file_mtime = file_time(&temporary.file, mtime)?;
        for _ in 0..PLACE_ATTEMPTS {
            if place.found.is_some() {
                self.examine_again(task, &mut place, &mut ours)?;
            }
            match place.found.map(|found| found.kind) {
                None => {
                    match temporary.dir.rename_noreplace(&temporary.name, &place.dir, place.name())
                    {
                        Err(error) if error.kind() == ErrorKind::Exists => {
                            place = self.sink.copy.place(
                                &item.uri,
                                place.form,
                                Purpose::Put,
                                &mut self.last,
                            )?;
                            row.leaf = place.form == Form::Leaf;
                            continue;
                        }
                        renamed => renamed?,
                    }
                }
                Some(Kind::File) => {
                    if !ours {
                        self.refuse_changed(&place, ours)?;
                        let to = self.sink.copy.backup.take(&place)?;
                        let message = format!(
                            "the file here was not the one written before; it is now {}",
                            shown(to.as_os_str().as_bytes())
                        );
                        notices.push(Notice::new("local.backup", message));
                        place.examine()?;
                        continue;
                    }
                    temporary.dir.rename(&temporary.name, &place.dir, place.name())?;
                }
                Some(_) => {
                    return Err(Failure::new(
                        "path.conflict",
                        "a folder or special file took its place",
                    ));
                }
            }
            temporary.kept = true;
            return Ok(Outcome::Stored { row, created, notices });
        }
        Err(Failure::new("path.conflict", "its place changed while it was being stored"))
    }

    /// Writes a body in memory to a free place. The file is nameless until it is complete, so a
    /// killed run leaves nothing, and no temporary name is created and removed.
    fn store_unnamed(&self, place: &Place, bytes: &[u8], mtime: Option<i64>) -> Unnamed {
        if !self.sink.copy.unnamed.load(Ordering::Relaxed) {
            return Unnamed::Refused;
        }
        let Ok(mut file) = place.dir.create_unnamed() else { return Unnamed::Refused };
        if file.write_all(bytes).is_err() {
            return Unnamed::Refused;
        }
        let Ok(file_mtime) = file_time(&file, mtime) else { return Unnamed::Refused };
        match place.dir.link(&file, place.name()) {
            Ok(()) => Unnamed::Stored(file_mtime),
            Err(error) if error.kind() == ErrorKind::Exists => Unnamed::Taken,
            Err(_) => Unnamed::Refused,
        }
    }
}

fn changed_here(place: &Place) -> String {
    format!(
        "`{}` is not the file written before, and `--immutable` keeps it\n  help: move it away, or run without `--immutable`",
        place.shown()
    )
}

/// Sets the time of a file, or reads its time; in nanoseconds since 1970.
fn file_time(file: &File, mtime: Option<i64>) -> Result<i64, abreast_folder::Error> {
    match mtime {
        Some(mtime) => set_modified(file, mtime).map(|()| mtime),
        None => abreast_folder::Stat::of(file).map(|stat| stat.mtime_ns),
    }
}
