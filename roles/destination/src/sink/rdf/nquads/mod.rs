//! A folder of N-Quads: `cat *.nq` is the whole copy, for any program that reads RDF.
//!
//! | file | subject |
//! |---|---|
//! | `run.rs` | the format of a description in a file |
//! | `files.rs` | the files: appending, overwriting, recovery |
//! | `verify.rs` | files that were changed since the last run |
//! | `kept.rs` | reading back, for audits and checks |

mod files;
mod kept;
mod run;
mod verify;

use kept::NQuadsKept;

use super::document::describe;
use super::iri;
use crate::copy::names::DATABASE;
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::report::error::Error;
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::report::sinks::{Graph, NQuadsOptions};
use crate::sink::kept::ReadBack;
use crate::sink::kind::{KeptCopy, Opening, SinkKind};
use crate::sink::outcome::Outcome;
use crate::sink::target::{GRAPH, SEGMENT_SIZE, Target, TargetError, TargetKind};
use crate::sink::{Body, Deleted, Deleting, Prepared, Sink, SinkWriter, Storing};
use abreast_folder::Dir;
use abreast_store::mirror::{Mirror, Row, Task};
use abreast_webtypes::Digests;
use files::Files;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Items whose descriptions are made durable together.
const BATCH_ITEMS: u64 = 5_000;

/// A folder of N-Quads as a sink.
#[derive(Debug)]
pub(crate) struct NQuadsSink {
    files: Files,
    graph: Graph,
    folder: PathBuf,
    state: StateFolder,
    partials: Partials,
    spill: Dir,
    epoch: i64,
}

impl NQuadsSink {
    pub(crate) fn open(
        folder: &Path,
        state: &StateFolder,
        mirror: &Mirror,
        options: &NQuadsOptions,
        epoch: i64,
    ) -> Result<Self, Error> {
        options.graph.check(mirror)?;
        let files = Files::open(folder, mirror, options)?;
        let (partials, spill) = crate::sink::spill_folder(state)?;
        let (graph, folder, state) = (options.graph.clone(), folder.to_owned(), state.clone());
        Ok(Self { files, graph, folder, state, partials, spill, epoch })
    }
}

impl NQuadsSink {
    /// The number of descriptions that were missing or changed in the files, and a message about
    /// the repair; `None` if there is nothing to report.
    pub(crate) fn found(&self) -> Option<(u64, String)> {
        let found = self.files.found;
        if found == files::Found::default() {
            return None;
        }
        let message = format!(
            "files were changed here or restored from a backup: descriptions that are missing or altered, and are \
             fetched again: {}; parts that are not of the copy, and were removed: {}",
            found.damaged, found.foreign
        );
        Some((found.damaged, message))
    }
}

impl Sink for NQuadsSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(NQuadsWriter { sink: self, run: Vec::new(), kept: None })
    }

    fn reads_descriptions(&self) -> bool {
        true
    }

    fn keeps_statements(&self) -> bool {
        true
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _leaf: bool) -> String {
        uri.to_owned()
    }

    fn wants_head(&self) -> bool {
        true
    }

    fn batch_items(&self) -> u64 {
        BATCH_ITEMS
    }

    fn stores_later(&self) -> bool {
        true
    }

    fn settle(&self, mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        self.files.settle(mirror).map(|()| Vec::new())
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::copy::names::temporary_name(uri));
    }

    fn finish(&self, mirror: &Mirror) -> Result<(), Error> {
        self.files.finish(mirror)
    }
}

struct NQuadsWriter {
    sink: Arc<NQuadsSink>,
    run: Vec<u8>,
    /// The database and the files, as durable when a description was first read back.
    kept: Option<(Mirror, NQuadsKept)>,
}

impl SinkWriter for NQuadsWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        iri(&task.pending.uri)?;
        if let Some(row) = &task.row
            && crate::sink::is_right(task, row, listed)
        {
            let row = crate::sink::with_time(task, row.clone());
            return Ok(Prepared::Done(Outcome::Right { row }));
        }
        Ok(Prepared::Wanted { dir: self.sink.spill.clone(), conditional: task.row.is_some() })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(crate::sink::with_time(task, task.row.clone().unwrap_or_default()))
    }

    /// The database has the place of the previous version: batches are committed before a resource
    /// is planned again.
    fn kept_description(&mut self, task: &Task) -> Option<Vec<u8>> {
        task.row.as_ref()?;
        if self.kept.is_none() {
            let mirror = Mirror::open_reader(&self.sink.state.path().join(DATABASE)).ok()?;
            let kept = NQuadsKept::open(&self.sink.folder, &mirror).ok()?;
            self.kept = Some((mirror, kept));
        }
        let (mirror, kept) = self.kept.as_mut()?;
        kept.lines(mirror, &task.pending.uri)
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(std::future::ready(self.store_now(task, body)))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        crate::sink::until_fatal(tasks, |task| {
            if task.row.is_some() {
                self.sink.files.remove(&task.pending.uri);
            }
            Ok(Deleted { gone: task.row.is_some(), notices: Vec::new() })
        })
    }
}

impl NQuadsWriter {
    fn store_now(&mut self, task: &Task, mut body: Body<'_>) -> Result<Outcome, Failure> {
        let row = body.row(task, self.sink.epoch);
        if let Some(kept) = super::same_bytes(task, &row) {
            return Ok(Outcome::Right { row: kept });
        }
        let graph = &self.sink.graph;
        let description = describe(task, &mut body, graph)?;
        let uri = task.pending.uri.as_str();
        self.run.clear();
        run::write(uri, graph.of(uri), &description.lines, &description.digest, &mut self.run);
        self.sink.files.append(&row, &self.run)?;
        let mut notices = body.notices;
        notices.extend(description.notices);
        Ok(Outcome::Stored { created: task.row.is_none(), row, notices })
    }
}

impl TargetKind for NQuadsOptions {
    const FORMS: &'static [&'static str] = &["nquads:DIR"];
    const OPTIONS: &'static [&'static str] = &[SEGMENT_SIZE, GRAPH];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        target.use_folder(Self::FORMS[0])?;
        let file_bytes = target.given.segment_bytes.unwrap_or(Self::default().file_bytes);
        Ok(Self { graph: target.graph(), file_bytes })
    }
}

impl SinkKind for NQuadsOptions {
    fn open(
        &self,
        opening: Opening<'_>,
        report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        let Opening { options, mirror, state, epoch, .. } = opening;
        let sink = NQuadsSink::open(&options.folder, state, mirror, self, epoch)?;
        if let Some((damaged, message)) = sink.found() {
            report.summary.damaged += damaged;
            report.notice("local.restored", &options.url, &message);
        }
        Ok(Some(Arc::new(sink)))
    }

    fn kept(&self, copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        Ok(Some(Box::new(NQuadsKept::open(copy.folder, copy.mirror)?)))
    }

    fn segments(&self, folder: &Path) -> Option<PathBuf> {
        Some(folder.to_owned())
    }
}
