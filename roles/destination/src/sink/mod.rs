//! Sinks: where verified resources go.
//!
//! A [`Sink`] is one for a run and shared by its threads; each connection works through a
//! [`SinkWriter`] of its own. A writer is asked twice about each resource: [`SinkWriter::prepare`]
//! before its bytes are asked for, [`SinkWriter::store`] when they are whole and verified. Bodies
//! in memory are handed over as a slice, so there is one dynamic call a resource and none a chunk.
//! `tests/sinks.rs` has the contract of every sink.

mod dry;
pub(crate) mod folder;
pub(crate) mod kept;
pub(crate) mod kind;
pub(crate) mod lines;
pub(crate) mod newest;
#[cfg(feature = "s3")]
pub(crate) mod objects;
pub(crate) mod outcome;
pub(crate) mod rdf;
pub(crate) mod rdf_rules;
pub(crate) mod segments;
pub(crate) mod via;
pub(crate) mod warc;

use crate::copy::names::temporary_name;
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::report::error::Error;
use crate::report::events::{Event, Item, ItemAction};
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::request::verify::{Verdict, judge};
use crate::sink::rdf_rules::RdfRules;
use abreast_folder::Dir;
use abreast_store::mirror::{Deprecated, Mirror, Pending, PendingAction, Row, Task};
use abreast_webtypes::{Digests, Timestamp};
use outcome::{Notice, Outcome};
use std::fmt::Debug;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;

/// Where the resources of a run go.
pub(crate) trait Sink: Debug + Send + Sync {
    /// One connection's access.
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter>;

    /// Which large bodies were begun in earlier runs.
    fn partials(&self) -> &Partials;

    /// The place of a resource as it is reported.
    fn shown(&self, uri: &str, leaf: bool) -> String;

    /// Whether [`Body::head`] and [`Body::media_type`] are of use to it.
    fn wants_head(&self) -> bool {
        false
    }

    /// Items whose new state is kept in one transaction.
    fn batch_items(&self) -> u64 {
        1_000
    }

    /// Whether [`SinkWriter::kept_description`] gives what is kept.
    fn reads_descriptions(&self) -> bool {
        false
    }

    /// Whether it keeps what is stated about a resource, instead of its bytes.
    fn keeps_statements(&self) -> bool {
        false
    }

    /// Whether a writer keeps nothing of an item between preparing and storing it, so that others
    /// may be prepared in between: bodies are digested faster together.
    fn stores_later(&self) -> bool {
        false
    }

    /// Whether items are stored and deleted only when they are settled, each with a failure of its
    /// own: until then their outcomes are not kept, counted or reported.
    fn settles_items(&self) -> bool {
        false
    }

    /// The Source deprecates these resources: noted before the plan that reports it is kept.
    fn deprecate(&self, _resources: &[Deprecated]) -> Result<(), Error> {
        Ok(())
    }

    /// Makes durable what was stored and deleted since the last call. Called within the transaction
    /// that keeps the rows, before its end: content before its row. A sink whose connections share files
    /// puts the rows of what it stored itself, since the outcomes of some may not be taken yet; what
    /// is deleted later in a run was settled before. Returns the items that could not be settled, by their URIs; only a sink that [settles items](Sink::settles_items) may
    /// return any.
    fn settle(&self, _mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        Ok(Vec::new())
    }

    /// Whether a killed run may have stored or deleted more than its state records.
    fn may_be_ahead(&self) -> bool {
        false
    }

    /// Whether an item that failed has certainly left nothing, so that it is as its row has it.
    fn leaves_nothing_of_failures(&self) -> bool {
        false
    }

    /// Gives the folders that waiting items need their names, and makes those items due again. Only
    /// a sink that answers [`Outcome::Conflict`] has something to do.
    fn make_room(
        &self,
        mirror: &Mirror,
        _notices: &mut Vec<(String, Notice)>,
    ) -> Result<(), Error> {
        mirror.renew_conflicts()?;
        Ok(())
    }

    /// In a dry run, after [`Sink::make_room`]: whether that would give an item that waits the
    /// folder it needs.
    fn would_make_room(&self, _mirror: &Mirror, _uri: &str) -> Result<bool, Error> {
        Ok(true)
    }

    /// Resources whose own names are those of the folders that a resource is in: while it is there,
    /// each of them has its reserved name.
    fn resources_above(&self, _uri: &str) -> Vec<String> {
        Vec::new()
    }

    /// The path in the copy of the folder that has the resources whose URIs begin with `uri`, which ends with a slash: empty
    /// for all of the copy, and where it has no folders of its own. `None` if they can be in no folder.
    fn folder_of(&self, _uri: &str) -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    /// Removes what is left of a body that was begun and is wanted no longer.
    fn sweep(&self, uri: &str);

    /// Removes folders that this run made for a resource that was not stored in them, if they are
    /// empty: another resource may need the name. Nobody may store anything meanwhile.
    fn sweep_folders(&self, _uri: &str) {}

    /// Why what is kept is not what the state has, where that can be known without reading all of
    /// it. Called once, before anything is planned.
    fn restored(&self, _mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// What is odd about the whole copy, after [`Sink::finish`].
    fn remark(&self) -> Result<Option<Notice>, Error> {
        Ok(None)
    }

    /// The plan was carried out, and everything is settled.
    fn finish(&self, _mirror: &Mirror) -> Result<(), Error> {
        Ok(())
    }
}

/// One connection's access to a sink.
pub(crate) trait SinkWriter {
    /// Decides about a resource before its bytes are requested.
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure>;

    /// The server answered that the bytes kept are current.
    fn still_right(&mut self, task: &Task) -> Result<Row, Failure>;

    /// The bytes kept of the item prepared last, where they are exactly the ones that were stored
    /// and can be read.
    fn kept(&mut self, _task: &Task) -> Option<File> {
        None
    }

    /// The canonical description of the item prepared last as it stands in the copy, even if it was
    /// altered there, where that can be read without a request.
    fn kept_description(&mut self, _task: &Task) -> Option<Vec<u8>> {
        None
    }

    /// That description is a version that the Source had: nobody else wrote it.
    fn trust_kept(&mut self) {}

    /// Finds items that a killed run may have stored or deleted: one answer for each, in order.
    /// Called only where [`Sink::may_be_ahead`].
    fn inspect(&mut self, tasks: &[Task]) -> Vec<Result<Found, Failure>> {
        tasks.iter().map(|_| Ok(Found::AsKept)).collect()
    }

    /// Stores a whole and verified body. Always after [`SinkWriter::prepare`] of the same item;
    /// directly, unless [`Sink::stores_later`].
    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a>;

    /// In a dry run, instead of [`SinkWriter::store`]: what storing the item prepared last would
    /// come to.
    fn rehearse(&mut self, task: &Task, epoch: i64) -> Outcome {
        let row = row_as_planned(task, task.pending.length.unwrap_or(0), epoch);
        Outcome::Stored { row, created: task.row.is_none(), notices: Vec::new() }
    }

    /// Deletes resources; one answer for each, in order, or fewer when a fatal one is the last.
    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a>;
}

/// The outcome of storing, now or later.
pub(crate) type Storing<'a> = Pin<Box<dyn Future<Output = Result<Outcome, Failure>> + 'a>>;

/// The outcomes of deleting, now or later.
pub(crate) type Deleting<'a> = Pin<Box<dyn Future<Output = Vec<Result<Deleted, Failure>>> + 'a>>;

/// The decision about a resource.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// Nothing more: this became of it.
    Done(Outcome),
    /// Its bytes are wanted.
    Wanted {
        /// Where a body too large for memory is collected.
        dir: Dir,
        /// Whether the server may answer that the bytes kept are still right.
        conditional: bool,
    },
}

/// A resource as found, compared with the state.
#[derive(Debug)]
pub(crate) enum Found {
    /// The same as in the state, or nothing that this copy wrote.
    AsKept,
    /// The version that was planned, or the kept one in other circumstances.
    Other(Row),
    /// Nothing, though the state knows of something.
    Gone,
}

/// The row of a planned version that turns out to be there.
pub(crate) fn row_as_planned(task: &Task, length: u64, epoch: i64) -> Row {
    let item = &task.pending;
    Row {
        uri: item.uri.clone(),
        leaf: false,
        modified: item.modified,
        length,
        digests: item.digests.clone(),
        changed: item.changed,
        etag: None,
        file_mtime: 0,
        verified: !item.digests.is_empty(),
        epoch,
    }
}

/// A whole body, verified as far as it can be.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    /// Its bytes, unless they are in `file`.
    pub(crate) bytes: &'a [u8],
    /// Its bytes when they are too many for memory.
    pub(crate) file: Option<TemporaryFile>,
    /// How many they are.
    pub(crate) length: u64,
    /// Their digests, of every algorithm that is listed.
    pub(crate) digests: Digests,
    /// The result of the comparison with the list; never a mismatch.
    pub(crate) verdict: Verdict,
    /// `ETag`
    pub(crate) etag: Option<String>,
    /// `Last-Modified`, nanoseconds since 1970.
    pub(crate) last_modified: Option<i64>,
    /// The media type, where it is known and the sink wants the head.
    pub(crate) media_type: Option<String>,
    /// When the answer came, where that is known and the sink wants the head.
    pub(crate) received: Option<Timestamp>,
    /// Where they came from, if the request was redirected.
    pub(crate) address: Option<String>,
    /// Status line and header lines of an HTTP answer, as they describe these bytes; empty for
    /// bytes that came another way; not complete for sinks that do not want it.
    pub(crate) head: &'a [u8],
    /// How descriptions are read.
    pub(crate) rdf: &'a RdfRules,
    /// Notices to report when it is stored.
    pub(crate) notices: Vec<Notice>,
}

impl Body<'_> {
    /// The row of the stored body, for the sink to complete.
    pub(crate) fn row(&self, task: &Task, epoch: i64) -> Row {
        let item = &task.pending;
        Row {
            uri: item.uri.clone(),
            leaf: false,
            modified: item.modified.or(self.last_modified.map(|nanoseconds| nanoseconds / 1_000)),
            length: self.length,
            digests: self.digests.to_bytes(),
            changed: item.changed,
            etag: self.etag.clone(),
            file_mtime: 0,
            verified: self.verdict == Verdict::Verified,
            epoch,
        }
    }
}

/// The result of a deletion.
#[derive(Debug, Default)]
pub(crate) struct Deleted {
    /// It is gone, and was there.
    pub(crate) gone: bool,
    /// Notices to report.
    pub(crate) notices: Vec<Notice>,
}

/// A file that is removed again unless it got its final name.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    pub(crate) dir: Dir,
    pub(crate) name: Vec<u8>,
    pub(crate) file: File,
    pub(crate) kept: bool,
    /// Another run can continue it.
    pub(crate) resumable: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.kept && !self.resumable {
            let _ = self.dir.unlink(&self.name);
        }
    }
}

/// Whether the bytes kept are the ones that are listed.
pub(crate) fn is_right(task: &Task, row: &Row, listed: &Digests) -> bool {
    let mut kept = Digests::default();
    kept.set_from_bytes(&row.digests);
    task.pending.action == PendingAction::Touch
        || judge(listed, task.pending.length, &kept, row.length) == Verdict::Verified
}

/// The row of bytes that are right, as they are listed now.
pub(crate) fn with_time(task: &Task, mut row: Row) -> Row {
    row.changed = task.pending.changed.or(row.changed);
    row.modified = task.pending.modified;
    row
}

/// Does each task in turn; the first fatal failure is the last answer.
pub(crate) fn until_fatal(
    tasks: &[Task],
    mut delete: impl FnMut(&Task) -> Result<Deleted, Failure>,
) -> Deleting<'static> {
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(delete(task));
        if results.last().is_some_and(|result| result.as_ref().is_err_and(|failure| failure.fatal))
        {
            break;
        }
    }
    Box::pin(std::future::ready(results))
}

/// The folder in the state where large bodies are collected, for sinks that have no folders
/// themselves. What a killed run left there and no note names is removed.
pub(crate) fn spill_folder(state: &StateFolder) -> Result<(Partials, Dir), Error> {
    let dir = state.folder("partial")?;
    let partials = Partials::new(state.clone());
    let noted: Vec<Vec<u8>> = partials.all().iter().map(|note| temporary_name(&note.uri)).collect();
    for entry in dir.list()? {
        if entry.name.starts_with(crate::copy::path_map::TEMPORARY_PREFIX)
            && !noted.contains(&entry.name)
        {
            let _ = dir.unlink(&entry.name);
        }
    }
    Ok((partials, dir))
}

impl Reporter<'_> {
    /// Reports what became of a resource, by its place in the copy where that is known.
    pub(crate) fn item(
        &self,
        sink: &dyn Sink,
        item: &Pending,
        leaf: bool,
        action: ItemAction,
        bytes: u64,
    ) {
        if !self.observer.wants_items() {
            return;
        }
        let path = sink.shown(&item.uri, leaf);
        let href = item.access.as_ref().and_then(|access| access.href.as_deref());
        self.observer.event(&Event::Item(Item {
            uri: &item.uri,
            href,
            path: &path,
            action,
            bytes,
        }));
    }
}
