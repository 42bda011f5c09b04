//! The folder: one file for each resource, under the path to which its URI is mapped. A file is
//! stored completely or not at all.

mod delete;
mod emptied;
mod kept;
mod kind;
mod look;
mod store;

pub(crate) use kept::FolderKept;

use super::outcome::{Notice, Outcome};
use super::{Body, Deleting, Found, Prepared, Sink, SinkWriter, Storing, via};
use crate::copy::names::temporary_name;
use crate::copy::partial::Partials;
use crate::copy::path_map::Form;
use crate::copy::place::{CopyFolder, LastDir, NoPlace, Place, Purpose, shown};
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use abreast_folder::ErrorKind;
use abreast_store::mirror::{Mirror, Row, Task};
use abreast_webtypes::Digests;
use emptied::{file_on_the_way, remove_empty};
use std::fs::File;
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

/// Largest description that is read back.
const DESCRIPTION_BYTES_MAX: u64 = 16 << 20;
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
}
