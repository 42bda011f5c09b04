//! Sinks: the kinds of places that verified resources are written to.
//!
//! The threads of a run share one [`Sink`], and each connection has a separate [`SinkWriter`]. A
//! writer is called twice for each resource: [`SinkWriter::prepare`] before the request, and
//! [`SinkWriter::store`] with the complete and verified bytes. Bodies in memory are passed as a
//! slice, so there is one dynamic call for a resource and none for a chunk. `tests/sinks.rs` checks
//! the contract of every sink.

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
pub(crate) mod target;
pub(crate) mod targets;
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

/// The place of the resources of a run.
pub(crate) trait Sink: Debug + Send + Sync {
    /// A writer for one connection.
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter>;

    /// Large bodies whose transfer was interrupted in earlier runs.
    fn partials(&self) -> &Partials;

    /// The place of a resource in reports.
    fn shown(&self, uri: &str, leaf: bool) -> String;

    /// Whether the sink uses [`Body::head`] and [`Body::media_type`].
    fn wants_head(&self) -> bool {
        false
    }

    /// Number of items whose rows are written in one transaction.
    fn batch_items(&self) -> u64 {
        1_000
    }

    /// Whether [`SinkWriter::kept_description`] returns stored descriptions.
    fn reads_descriptions(&self) -> bool {
        false
    }

    /// Whether the sink stores statements about resources instead of their bytes.
    fn keeps_statements(&self) -> bool {
        false
    }

    /// Whether a writer stores no data of an item between `prepare` and `store`. Then other items
    /// can be prepared in between, and several bodies are hashed together, which is faster.
    fn stores_later(&self) -> bool {
        false
    }

    /// Whether items are stored and deleted only by [`Sink::settle`], and can fail individually.
    /// Their outcomes are recorded, counted and reported after that call.
    fn settles_items(&self) -> bool {
        false
    }

    /// The Source deprecates these resources. Called before the plan with this information is
    /// committed.
    fn deprecate(&self, _resources: &[Deprecated]) -> Result<(), Error> {
        Ok(())
    }

    /// Makes all data durable that was stored and deleted since the last call. Called at the end of
    /// the transaction with the rows, so that content is durable before its row. A sink whose
    /// connections share files writes the rows of its items itself, since the outcomes of some may
    /// not have been received; items that a run deletes later were settled before. Returns the URIs
    /// of items that could not be settled; only a sink that [settles items](Sink::settles_items)
    /// may return any.
    fn settle(&self, _mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        Ok(Vec::new())
    }

    /// Whether a killed run may have stored or deleted more items than the database records.
    fn may_be_ahead(&self) -> bool {
        false
    }

    /// Whether a failed item certainly had no effect, so that its row is still correct.
    fn leaves_nothing_of_failures(&self) -> bool {
        false
    }

    /// Frees the names of folders that waiting items need, and makes these items due again. Only a
    /// sink that returns [`Outcome::Conflict`] implements this method.
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

    /// Resources whose plain paths are parent folders of a resource. They have their reserved names
    /// as long as the resource exists.
    fn resources_above(&self, _uri: &str) -> Vec<String> {
        Vec::new()
    }

    /// The path of the folder for resources whose URIs start with `uri`, which ends with a slash.
    /// The path is empty for the whole copy and for sinks without folders. `None` if a folder
    /// cannot contain exactly these resources.
    fn folder_of(&self, _uri: &str) -> Option<Vec<u8>> {
        Some(Vec::new())
    }

    /// Removes the incomplete body of a resource that is not needed any more.
    fn sweep(&self, uri: &str);

    /// Removes empty folders that this run created for a resource that was not stored, since
    /// another resource may need the name. Not called while items are being stored.
    fn sweep_folders(&self, _uri: &str) {}

    /// The reason why the stored data differs from the database, if that can be detected without
    /// reading all data. Called once, before the plan is made.
    fn restored(&self, _mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(None)
    }

    /// A notice about the whole copy, after [`Sink::finish`].
    fn remark(&self) -> Result<Option<Notice>, Error> {
        Ok(None)
    }

    /// Called after the plan was carried out and everything was settled.
    fn finish(&self, _mirror: &Mirror) -> Result<(), Error> {
        Ok(())
    }
}

/// The access of a connection to a sink.
pub(crate) trait SinkWriter {
    /// Decides about a resource before its bytes are requested.
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure>;

    /// The server answered that the stored bytes are current.
    fn still_right(&mut self, task: &Task) -> Result<Row, Failure>;

    /// The stored bytes of the last prepared item, if they can be read and are unchanged.
    fn kept(&mut self, _task: &Task) -> Option<File> {
        None
    }

    /// The canonical description of the last prepared item as stored, even if it was changed, if it
    /// can be read without a request.
    fn kept_description(&mut self, _task: &Task) -> Option<Vec<u8>> {
        None
    }

    /// Confirms that this description is a version of the Source, and not a change by somebody
    /// else.
    fn trust_kept(&mut self) {}

    /// Examines items that a killed run may have stored or deleted; one result for each, in order.
    /// Called only if [`Sink::may_be_ahead`].
    fn inspect(&mut self, tasks: &[Task]) -> Vec<Result<Found, Failure>> {
        tasks.iter().map(|_| Ok(Found::AsKept)).collect()
    }

    /// Stores a complete and verified body. Called after [`SinkWriter::prepare`] of the same item;
    /// directly after it, unless [`Sink::stores_later`].
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
    /// The item needs no request; its outcome.
    Done(Outcome),
    /// The bytes of the item are needed.
    Wanted {
        /// The folder for a body that does not fit into memory.
        dir: Dir,
        /// Whether a conditional request is useful, because the stored bytes may be current.
        conditional: bool,
    },
}

/// The stored data of a resource, compared with the database.
#[derive(Debug)]
pub(crate) enum Found {
    /// The same as in the database, or data that this copy did not write.
    AsKept,
    /// The planned version, or the stored version with other properties.
    Other(Row),
    /// The resource is in the database, and its data is missing.
    Gone,
}

/// The row of a planned version that is already stored.
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

/// A complete body, verified as far as possible.
#[derive(Debug)]
pub(crate) struct Body<'a> {
    /// The bytes of the body, unless they are in `file`.
    pub(crate) bytes: &'a [u8],
    /// The file with the bytes, if they do not fit into memory.
    pub(crate) file: Option<TemporaryFile>,
    /// Length of the body, in bytes.
    pub(crate) length: u64,
    /// The digests of the body, for every listed algorithm.
    pub(crate) digests: Digests,
    /// The result of the comparison with the list; never a mismatch.
    pub(crate) verdict: Verdict,
    /// `ETag`
    pub(crate) etag: Option<String>,
    /// `Last-Modified`, nanoseconds since 1970.
    pub(crate) last_modified: Option<i64>,
    /// The media type, if known and if the sink wants the head.
    pub(crate) media_type: Option<String>,
    /// The time of the response, if known and if the sink wants the head.
    pub(crate) received: Option<Timestamp>,
    /// The URL of the response, if the request was redirected.
    pub(crate) address: Option<String>,
    /// Status line and header lines of a response, as they apply to these bytes; empty for bytes of
    /// another origin, and incomplete for sinks that do not want the head.
    pub(crate) head: &'a [u8],
    /// How descriptions are read.
    pub(crate) rdf: &'a RdfRules,
    /// Notices to report when the body is stored.
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
    /// The resource existed and was deleted.
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
    /// Whether another run can continue the file.
    pub(crate) resumable: bool,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.kept && !self.resumable {
            let _ = self.dir.unlink(&self.name);
        }
    }
}

/// Whether the stored bytes are the listed ones.
pub(crate) fn is_right(task: &Task, row: &Row, listed: &Digests) -> bool {
    let mut kept = Digests::default();
    kept.set_from_bytes(&row.digests);
    task.pending.action == PendingAction::Touch
        || judge(listed, task.pending.length, &kept, row.length) == Verdict::Verified
}

/// The row of current bytes, with the listed properties.
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

/// The folder for large bodies in the state folder, for sinks without folders. Removes files of
/// killed runs that lack a note.
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
    /// Reports the outcome of a resource, with its place in the copy if known.
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
