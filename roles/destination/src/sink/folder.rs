//! The folder: one file for each resource, under the path to which its URI is mapped. A file is
//! stored completely or not at all.

mod kept;
mod kind;

pub(crate) use kept::FolderKept;

use super::outcome::{Notice, Outcome};
use super::{
    Body, Deleted, Deleting, Found, Prepared, Sink, SinkWriter, Storing, TemporaryFile, via,
};
use crate::copy::names::temporary_name;
use crate::copy::partial::Partials;
use crate::copy::path_map::Form;
use crate::copy::place::{CopyFolder, LastDir, NoPlace, Place, Purpose, create_temporary, shown};
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::request::verify::{Verdict, hash_file, judge};
use abreast_folder::{ErrorKind, Kind, set_modified};
use abreast_store::mirror::{Mirror, PendingAction, Row, Task};
use abreast_webtypes::Digests;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Largest description that is read back.
const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of inspections of a place that another thread changes meanwhile.
const PLACE_ATTEMPTS: usize = 4;
/// Waiting items read at a time.
const READ_ITEMS: usize = 512;

/// The effect of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Files are written and deleted.
    Done,
    /// No effect: a dry run, which compares with the existing files.
    Rehearsed,
    /// No effect: a dry run without a folder, so that there are no files to compare with.
    WithoutFolder,
}

/// A folder as a sink.
#[derive(Debug)]
pub(crate) struct FolderSink {
    pub(crate) copy: Arc<CopyFolder>,
    pub(crate) immutable: bool,
    pub(crate) epoch: i64,
    /// Whether the origin of each file is written next to the file.
    pub(crate) republish: bool,
    pub(crate) effect: Effect,
}

impl Sink for FolderSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(FolderWriter {
            sink: self,
            last: LastDir::default(),
            prepared: None,
            emptied: Vec::new(),
        })
    }

    fn reads_descriptions(&self) -> bool {
        true
    }

    fn partials(&self) -> &Partials {
        &self.copy.partials
    }

    fn shown(&self, uri: &str, leaf: bool) -> String {
        let form = if leaf { Form::Leaf } else { Form::Plain };
        let mut path = Vec::new();
        match self.copy.map.path_into(uri, form, &mut path) {
            Ok(()) => String::from_utf8_lossy(&path).into_owned(),
            // A URI without a path is shown as it is.
            Err(_) => uri.to_owned(),
        }
    }

    fn wants_head(&self) -> bool {
        self.republish
    }

    fn may_be_ahead(&self) -> bool {
        true
    }

    /// A resource's own file in the way moves to its reserved leaf name, a stranger's file to the
    /// backup.
    fn make_room(&self, mirror: &Mirror, notices: &mut Vec<(String, Notice)>) -> Result<(), Error> {
        let copy = &self.copy;
        let mut key = String::new();
        let mut waiting = Vec::new();
        loop {
            waiting.clear();
            mirror.conflicts_after(&key, READ_ITEMS, &mut waiting)?;
            let Some(last) = waiting.last() else { break };
            key.clone_from(&last.pending.uri);
            for task in &waiting {
                let form = if task.row.as_ref().is_some_and(|row| row.leaf) {
                    Form::Leaf
                } else {
                    Form::Plain
                };
                let mut path = Vec::new();
                if copy.map.path_into(&task.pending.uri, form, &mut path).is_ok()
                    && let Some((dir, at)) = file_on_the_way(&copy.folder, &path)
                {
                    self.move_aside(mirror, &dir, &path[..at], notices)?;
                }
            }
        }
        mirror.renew_conflicts()?;
        Ok(())
    }

    fn would_make_room(&self, mirror: &Mirror, uri: &str) -> Result<bool, Error> {
        let mut path = Vec::new();
        if !self.immutable || self.copy.map.path_into(uri, Form::Plain, &mut path).is_err() {
            return Ok(true);
        }
        let Some((_, at)) = file_on_the_way(&self.copy.folder, &path) else { return Ok(true) };
        let own =
            self.copy.map.uri(&path[..at]).map(|(uri, _)| mirror.row(&uri)).transpose()?.flatten();
        Ok(own.is_some_and(|row| row.leaf))
    }

    fn resources_above(&self, uri: &str) -> Vec<String> {
        let mut path = Vec::new();
        if self.copy.map.path_into(uri, Form::Plain, &mut path).is_err() {
            return Vec::new();
        }
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        slashes.filter_map(|(at, _)| self.copy.map.uri(&path[..at])).map(|(uri, _)| uri).collect()
    }

    fn folder_of(&self, uri: &str) -> Option<Vec<u8>> {
        self.copy.map.folder_of(uri)
    }

    fn sweep(&self, uri: &str) {
        if let Ok(place) = self.copy.place(uri, Form::Plain, Purpose::Look, &mut LastDir::default())
        {
            let _ = place.dir.unlink(&temporary_name(uri));
        }
    }

    fn sweep_folders(&self, uri: &str) {
        let mut path = Vec::new();
        if !self.is_dry()
            && self.copy.map.path_into(uri, Form::Plain, &mut path).is_ok()
            && let Some(end) = path.iter().rposition(|byte| *byte == b'/')
        {
            remove_empty(&self.copy.folder, &path[..end], &|path| self.copy.made.has(path));
        }
    }
}

impl FolderSink {
    fn is_dry(&self) -> bool {
        self.effect != Effect::Done
    }

    /// The place of a planned resource, under its own name wherever that is free: a file that had
    /// to give it to a folder gets it back.
    fn named(&self, task: &Task, purpose: Purpose, last: &mut LastDir) -> Result<Place, NoPlace> {
        let (copy, uri) = (&self.copy, &task.pending.uri);
        let mut place = copy.place(uri, Form::Plain, purpose, last)?;
        let Some(row) = task.row.as_ref().filter(|row| row.leaf && place.form == Form::Plain)
        else {
            return Ok(place);
        };
        if place.found.is_some_and(|found| copy.is_as_written(row, &found)) {
            // The file was moved by a run that was killed before it recorded the move.
            return Ok(place);
        }
        let leaf = copy.place(uri, Form::Leaf, purpose, last)?;
        match (place.found, leaf.found) {
            (None, None) => return Ok(place),
            (None, Some(_)) if self.is_dry() => return Ok(leaf),
            (None, Some(_)) => {
                match leaf.dir.rename_noreplace(leaf.name(), &place.dir, place.name()) {
                    Err(error) if error.kind() == ErrorKind::Exists => return Ok(leaf),
                    renamed => renamed?,
                }
            }
            // Somebody else's file has the name.
            (Some(_), _) => return Ok(leaf),
        }
        if self.republish {
            via::rename(&leaf, &place)?;
        }
        place.examine()?;
        Ok(place)
    }

    fn move_aside(
        &self,
        mirror: &Mirror,
        dir: &abreast_folder::Dir,
        path: &[u8],
        notices: &mut Vec<(String, Notice)>,
    ) -> Result<(), Error> {
        let copy = &self.copy;
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        if let Some((uri, Form::Plain)) = copy.map.uri(path)
            && let Some(mut row) = mirror.row(&uri)?
        {
            // The database is changed first: a run that is killed before the move leaves a missing
            // leaf, which the next run moves.
            row.leaf = true;
            mirror.put_row(&row)?;
            if self.is_dry() {
                let message =
                    format!("`{}` is needed as a folder; the resource would be moved", shown(path));
                notices.push((uri, Notice::new("path.conflict", message)));
                return Ok(());
            }
            let Ok(leaf) = copy.place(&uri, Form::Leaf, Purpose::Put, &mut LastDir::default())
            else {
                return Ok(());
            };
            match dir.rename_noreplace(name, &leaf.dir, leaf.name()) {
                Err(error) if error.kind() != ErrorKind::Exists => return Err(error.into()),
                _ => {}
            }
            if self.republish {
                let from = Place::of_file(dir.clone(), path.to_vec());
                via::rename(&from, &leaf)?;
            }
            // A resource that this run stored never had another name between two runs.
            if row.epoch != self.epoch {
                let message = format!(
                    "`{}` is needed as a folder; the resource is now `{}`",
                    shown(path),
                    leaf.shown()
                );
                notices.push((uri, Notice::new("path.conflict", message)));
            }
            return Ok(());
        }
        if self.immutable {
            return Ok(());
        }
        let place = Place::of_file(dir.clone(), path.to_vec());
        if self.is_dry() {
            let message = format!(
                "`{}` is needed as a folder; the file here would be put aside",
                place.shown()
            );
            if !notices.iter().any(|(_, notice)| notice.message == message) {
                notices.push((String::new(), Notice::new("local.backup", message)));
            }
            return Ok(());
        }
        let to = copy
            .backup
            .take(&place)
            .map_err(|failure| Error::new(failure.code, ExitCode::Io, failure.message))?;
        let message = format!(
            "`{}` is needed as a folder; the file here is now {}",
            place.shown(),
            shown(to.as_os_str().as_bytes())
        );
        notices.push((String::new(), Notice::new("local.backup", message)));
        Ok(())
    }
}

/// The writer of a connection for the folder.
struct FolderWriter {
    sink: Arc<FolderSink>,
    last: LastDir,
    /// The place of the last prepared item, and whether its file is unchanged since it was written.
    prepared: Option<(Place, bool)>,
    /// The folder that may be empty after deletions.
    emptied: Vec<u8>,
}

impl SinkWriter for FolderWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        let purpose = match (self.sink.effect, &task.row) {
            (Effect::Rehearsed, _) => Purpose::Look,
            (Effect::WithoutFolder, _) => return self.prepare_without_folder(task),
            (Effect::Done, None) => Purpose::PutNew,
            (Effect::Done, Some(_)) => Purpose::Put,
        };
        let mut place = match self.sink.named(task, purpose, &mut self.last) {
            Err(NoPlace::Parent) => return Ok(Prepared::Done(Outcome::Conflict)),
            Err(NoPlace::Refused(error))
                if purpose == Purpose::Look && error.kind() == ErrorKind::NotFound =>
            {
                return self.prepare_without_folder(task);
            }
            place => place?,
        };
        if self.sink.republish && via::is_sidecar(place.name()) {
            let message = "files of links are written here, none is taken from a Source that is published again";
            return Err(Failure::refused("via.name", message));
        }
        if let Some(row) = self.already_right(task, listed, &mut place)? {
            if self.sink.republish && task.row.is_none() && !self.sink.is_dry() {
                let mut digests = Digests::default();
                digests.set_from_bytes(&row.digests);
                let known = via::Known { digests: &digests, length: row.length, media_type: None };
                via::write(task, &place, &known)?;
            }
            return Ok(Prepared::Done(Outcome::Right { row }));
        }
        let ours = self.is_ours(task, &place);
        self.refuse_changed(&place, ours)?;
        let dir = place.dir.clone();
        self.prepared = Some((place, ours));
        Ok(Prepared::Wanted { dir, conditional: ours })
    }

    fn inspect(&mut self, tasks: &[Task]) -> Vec<Result<Found, Failure>> {
        tasks.iter().map(|task| self.look_at(task)).collect()
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        let (mut place, mut ours) = self.prepared.take().expect("the item was prepared");
        self.examine_again(task, &mut place, &mut ours)?;
        let row = task.row.clone().unwrap_or_default();
        // A file that was edited retains its time, which shows the edit.
        if ours { self.with_time(task, row, &place) } else { Ok(super::with_time(task, row)) }
    }

    fn kept(&mut self, _: &Task) -> Option<File> {
        let (place, ours) = self.prepared.as_ref()?;
        if !*ours {
            return None;
        }
        place.dir.open_read(place.name()).ok().map(|(file, _)| file)
    }

    fn kept_description(&mut self, _: &Task) -> Option<Vec<u8>> {
        let (place, _) = self.prepared.as_ref()?;
        if place.found.is_none_or(|found| found.size > DESCRIPTION_BYTES_MAX) {
            return None;
        }
        let (file, _) = place.dir.open_read(place.name()).ok()?;
        let mut bytes = Vec::new();
        file.take(DESCRIPTION_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// A killed run may have stored the file.
    fn trust_kept(&mut self) {
        if let Some((_, ours)) = &mut self.prepared {
            *ours = true;
        }
    }

    fn rehearse(&mut self, task: &Task, epoch: i64) -> Outcome {
        let row = super::row_as_planned(task, task.pending.length.unwrap_or(0), epoch);
        let Some((place, ours)) = self.prepared.take() else {
            return Outcome::Stored { row, created: task.row.is_none(), notices: Vec::new() };
        };
        let mut notices = Vec::new();
        if place.found.is_some() && !ours {
            let message = "the file here is not the one written before; it would be put aside";
            notices.push(Notice::new("local.backup", message));
        }
        let row = Row { leaf: place.form == Form::Leaf, ..row };
        Outcome::Stored { row, created: task.row.is_none() && place.found.is_none(), notices }
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(std::future::ready(self.store_now(task, body)))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        super::until_fatal(tasks, |task| {
            let (deleted, parent) = self.delete_one(task)?;
            if parent != self.emptied {
                self.remove_emptied();
                self.emptied = parent;
            }
            Ok(deleted)
        })
    }
}

impl Drop for FolderWriter {
    fn drop(&mut self) {
        self.remove_emptied();
    }
}

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
    /// Prepares an item in a dry run whose folder does not exist yet.
    fn prepare_without_folder(&mut self, task: &Task) -> Result<Prepared, Failure> {
        let mut path = Vec::new();
        self.sink
            .copy
            .map
            .path_into(&task.pending.uri, Form::Plain, &mut path)
            .map_err(NoPlace::from)?;
        self.prepared = None;
        Ok(Prepared::Wanted { dir: self.sink.copy.folder.root(), conditional: false })
    }

    fn look_at(&mut self, task: &Task) -> Result<Found, Failure> {
        let copy = &self.sink.copy;
        let (item, row) = (&task.pending, task.row.as_ref());
        let nothing = if row.is_some() { Found::Gone } else { Found::AsKept };
        let place = match copy.place_of(&item.uri, row, &mut self.last) {
            Err(NoPlace::Refused(error)) if error.kind() == ErrorKind::NotFound => {
                return Ok(nothing);
            }
            place => place?,
        };
        let Some(found) = place.found else {
            if self.sink.republish && !self.sink.is_dry() {
                // The file of links is written before its file, and deleted after its file.
                via::remove(&place)?;
            }
            return Ok(nothing);
        };
        if let Some(row) = row.filter(|row| copy.is_as_written(row, &found)) {
            let leaf = place.form == Form::Leaf;
            return Ok(if leaf == row.leaf {
                Found::AsKept
            } else {
                Found::Other(Row { leaf, ..row.clone() })
            });
        }
        let has = |digests: &[u8], length: u64| -> Result<bool, Failure> {
            let mut wanted = Digests::default();
            wanted.set_from_bytes(digests);
            if found.size != length || wanted.strongest().is_none() {
                return Ok(false);
            }
            let (mut file, _) = place.dir.open_read(place.name())?;
            Ok(hash_file(&mut file, &wanted)?.0.agree(&wanted) == Some(true))
        };
        // The stored bytes, with another time.
        if let Some(row) = row
            && has(&row.digests, row.length)?
        {
            return Ok(Found::Other(Row { file_mtime: found.mtime_ns, ..row.clone() }));
        }
        let of_listed_time =
            || item.modified.is_some_and(|micros| copy.system.has_time(micros, found.mtime_ns));
        let is_planned = if item.digests.is_empty() {
            item.length == Some(found.size) && of_listed_time()
        } else {
            has(&item.digests, item.length.unwrap_or(found.size))?
        };
        if item.action != PendingAction::Fetch || !is_planned {
            return Ok(Found::AsKept);
        }
        Ok(Found::Other(Row {
            leaf: place.form == Form::Leaf,
            file_mtime: found.mtime_ns,
            ..super::row_as_planned(task, found.size, self.sink.epoch)
        }))
    }

    /// Whether the current file already exists, written by this copy or by somebody else.
    fn already_right(
        &self,
        task: &Task,
        listed: &Digests,
        place: &mut Place,
    ) -> Result<Option<Row>, Failure> {
        let (item, Some(found)) = (&task.pending, place.found) else { return Ok(None) };
        if let Some(row) = &task.row
            && self.sink.copy.is_as_written(row, &found)
        {
            return if super::is_right(task, row, listed) {
                self.with_time(task, row.clone(), place).map(Some)
            } else {
                Ok(None)
            };
        }
        if listed.strongest().is_none() || item.length.is_some_and(|length| length != found.size) {
            return Ok(None);
        }
        let (mut file, _) = place.dir.open_read(place.name())?;
        let (digests, length) = hash_file(&mut file, listed)?;
        if judge(listed, item.length, &digests, length) != Verdict::Verified {
            return Ok(None);
        }
        let row = Row {
            uri: item.uri.clone(),
            leaf: place.form == Form::Leaf,
            length,
            digests: digests.to_bytes(),
            file_mtime: found.mtime_ns,
            verified: true,
            epoch: self.sink.epoch,
            ..Row::default()
        };
        self.with_time(task, row, place).map(Some)
    }

    /// Sets the listed time on a file that has the right bytes.
    fn with_time(&self, task: &Task, mut row: Row, place: &Place) -> Result<Row, Failure> {
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
    fn is_ours(&self, task: &Task, place: &Place) -> bool {
        let found = task.row.as_ref().zip(place.found);
        found.is_some_and(|(row, found)| self.sink.copy.is_as_written(row, &found))
    }

    /// Refuses to replace a locally changed file, if the user wants that.
    fn refuse_changed(&self, place: &Place, ours: bool) -> Result<(), Failure> {
        if self.sink.immutable && place.found.is_some() && !ours {
            return Err(Failure::refused("local.changed", changed_here(place)));
        }
        Ok(())
    }

    /// Examines a place again, right before the file there is replaced: it may have been edited
    /// since its resource was requested.
    fn examine_again(
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

    fn store_now(&mut self, task: &Task, body: Body<'_>) -> Result<Outcome, Failure> {
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

    /// Deletes one file, unless it was changed by somebody else; returns the path of its folder.
    /// Only files in the database are deleted, and only if unchanged since they were written.
    fn delete_one(&mut self, task: &Task) -> Result<(Deleted, Vec<u8>), Failure> {
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

    fn remove_emptied(&mut self) {
        if !self.emptied.is_empty() && !self.sink.is_dry() {
            remove_empty(&self.sink.copy.folder, &self.emptied, &|_| true);
            self.last = LastDir::default();
            self.emptied.clear();
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

/// The first file on a path where a folder is required: its folder, and the end of its name in the
/// path.
fn file_on_the_way(
    folder: &abreast_folder::Folder,
    path: &[u8],
) -> Option<(abreast_folder::Dir, usize)> {
    let mut dir = folder.root();
    let mut at = 0;
    while let Some(slash) = path[at..].iter().position(|byte| *byte == b'/') {
        let name = &path[at..at + slash];
        match dir.dir(name) {
            Ok(next) => dir = next,
            Err(error) if error.kind() == ErrorKind::NotFolder => return Some((dir, at + slash)),
            Err(_) => return None,
        }
        at += slash + 1;
    }
    None
}

/// Removes a folder and its parents while they are empty and may be removed; never the root.
fn remove_empty(
    folder: &abreast_folder::Folder,
    path: &[u8],
    may_be_removed: &dyn Fn(&[u8]) -> bool,
) {
    let mut path = path;
    while !path.is_empty() && may_be_removed(path) {
        let at = path.iter().rposition(|byte| *byte == b'/');
        let (parent, name) = at.map_or((&path[..0], path), |at| (&path[..at], &path[at + 1..]));
        let components = parent.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        // The folder is not empty, or was already deleted; its parents need no change.
        if folder.dir(components).and_then(|dir| dir.rmdir(name)).is_err() {
            return;
        }
        path = parent;
    }
}
