//! A stream: one line of JSON for each change, for programs that process changes.
//!
//! Only the database of the copy is stored. Each change is written at least once: the database
//! records a change only after the output has accepted its line.

use super::kept::{ReadBack, distrusted};
use super::kind::{KeptCopy, Opening, SinkKind};
use super::outcome::Outcome;
use super::{Body, Deleted, Deleting, Found, Prepared, Sink, SinkWriter, Storing};
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::reporter::Reporter;
use crate::report::sinks::{LinesOptions, Output};
use crate::sink::target::{CONTENT, Target, TargetError, TargetKind};
use abreast_folder::Dir;
use abreast_store::mirror::{Mirror, Pending, Row, Task};
use abreast_webtypes::{Digests, Timestamp};
use base64::Engine as _;
use serde::Serialize;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of bytes in the buffer before they are written.
const BUFFER_BYTES: usize = 64 << 10;

/// Most bytes of a content in a line.
const CONTENT_MAX: u64 = 1 << 20;

/// A stream as a sink.
#[derive(Debug)]
pub(crate) struct LinesSink {
    options: LinesOptions,
    buffer: Mutex<Vec<u8>>,
    partials: Partials,
    spill: Dir,
    epoch: i64,
}

/// A line about a change.
#[derive(Serialize)]
struct Line<'a> {
    uri: &'a str,
    /// The address of the request, if it differs from the URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    href: Option<&'a str>,
    #[serde(rename = "change")]
    action: &'a str,
    /// The time of the change, according to the Source.
    #[serde(skip_serializing_if = "Option::is_none")]
    datetime: Option<String>,
    /// When the resource was last modified.
    #[serde(skip_serializing_if = "Option::is_none")]
    lastmod: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    length: Option<u64>,
    /// As in a `hash` attribute: `md5:… sha-256:…`.
    #[serde(skip_serializing_if = "String::is_empty")]
    hash: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    /// Whether `content` has a listed digest.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<bool>,
    /// The listed origin of the resource: a link `via` [rs-core §14.8].
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<String>,
}

impl<'a> Line<'a> {
    fn new(item: &'a Pending, action: &'a str) -> Self {
        let time = |micros: i64| Timestamp::from_micros(micros).to_string();
        let mut digests = Digests::default();
        digests.set_from_bytes(&item.digests);
        Self {
            uri: &item.uri,
            href: item.access.as_ref().and_then(|access| access.href.as_deref()),
            action,
            datetime: item.changed.map(time),
            lastmod: item.modified.map(time),
            length: item.length,
            hash: digests.to_string(),
            media_type: None,
            verified: None,
            via: item.via.as_deref().and_then(|json| serde_json::from_str(json).ok()),
            content: None,
        }
    }
}

impl LinesSink {
    pub(crate) fn open(
        state: &StateFolder,
        options: &LinesOptions,
        epoch: i64,
    ) -> Result<Self, Error> {
        let (partials, spill) = super::spill_folder(state)?;
        Ok(Self { options: options.clone(), buffer: Mutex::default(), partials, spill, epoch })
    }

    fn write(&self, line: &Line<'_>) -> io::Result<()> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_writer(&mut *buffer, line)?;
        buffer.push(b'\n');
        if buffer.len() >= BUFFER_BYTES { self.write_out(&mut buffer) } else { Ok(()) }
    }

    fn write_out(&self, buffer: &mut Vec<u8>) -> io::Result<()> {
        let mut output = self.options.output.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.write_all(buffer)?;
        buffer.clear();
        output.flush()
    }
}

/// Whether no run has written a line about the resource, as far as is known. In rows of a stream,
/// `leaf` marks that a line may have been written.
fn is_new(task: &Task) -> bool {
    task.row.as_ref().is_none_or(|row| row.leaf)
}

fn output_failed(error: &io::Error) -> Failure {
    Failure::fatal("output", format!("cannot write to the output: {error}"))
}

impl Sink for LinesSink {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(LinesWriter { sink: self })
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

    /// The rows of accepted lines are written with the next commit.
    fn may_be_ahead(&self) -> bool {
        true
    }

    /// A line is written once the item has succeeded.
    fn leaves_nothing_of_failures(&self) -> bool {
        true
    }

    fn settle(&self, _mirror: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        self.write_out(&mut buffer).map(|()| Vec::new()).map_err(|cause| {
            Error::new("output", ExitCode::Io, output_failed(&cause).message)
                .with_help("run the same command again: what was not taken is written again")
        })
    }

    fn sweep(&self, uri: &str) {
        let _ = self.spill.unlink(&crate::copy::names::temporary_name(uri));
    }
}

struct LinesWriter {
    sink: Arc<LinesSink>,
}

impl LinesWriter {
    fn write_stored(&self, task: &Task) -> Result<Outcome, Failure> {
        let (item, created) = (&task.pending, is_new(task));
        let line = Line::new(item, if created { "created" } else { "updated" });
        self.sink.write(&line).map_err(|error| output_failed(&error))?;
        let row = Row {
            uri: item.uri.clone(),
            modified: item.modified,
            length: item.length.unwrap_or(0),
            digests: item.digests.clone(),
            changed: item.changed,
            // Nothing was fetched that would need to be verified.
            verified: true,
            epoch: self.sink.epoch,
            ..Row::default()
        };
        Ok(Outcome::Stored { row, created, notices: Vec::new() })
    }
}

impl SinkWriter for LinesWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        if let Some(row) = &task.row
            && super::is_right(task, row, listed)
        {
            return Ok(Prepared::Done(Outcome::Right { row: super::with_time(task, row.clone()) }));
        }
        let most = self.sink.options.content_bytes_max;
        if most.is_none_or(|most| task.pending.length.is_some_and(|length| length > most)) {
            return self.write_stored(task).map(Prepared::Done);
        }
        Ok(Prepared::Wanted { dir: self.sink.spill.clone(), conditional: task.row.is_some() })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(super::with_time(task, task.row.clone().unwrap_or_default()))
    }

    /// A killed run may have written any of these lines, so another line is written in any case.
    fn inspect(&mut self, tasks: &[Task]) -> Vec<Result<Found, Failure>> {
        let epoch = self.sink.epoch;
        let uri = |task: &Task| task.pending.uri.clone();
        let new = |task: &Task| Row { uri: uri(task), leaf: true, epoch, ..Row::default() };
        let row = |task: &Task| distrusted(&task.row.clone().unwrap_or_else(|| new(task)));
        tasks.iter().map(|task| Ok(Found::Other(row(task)))).collect()
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        Box::pin(std::future::ready(self.store_now(task, &body)))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        super::until_fatal(tasks, |task| {
            if task.row.is_none() {
                return Ok(Deleted::default());
            }
            let line =
                Line { length: None, hash: String::new(), ..Line::new(&task.pending, "deleted") };
            self.sink.write(&line).map_err(|error| output_failed(&error))?;
            Ok(Deleted { gone: true, notices: Vec::new() })
        })
    }
}

impl LinesWriter {
    fn store_now(&self, task: &Task, body: &Body<'_>) -> Result<Outcome, Failure> {
        let row = body.row(task, self.sink.epoch);
        let same = |kept: &&Row| kept.length == row.length && kept.digests == row.digests;
        if let Some(kept) = task.row.as_ref().filter(same) {
            return Ok(Outcome::Right {
                row: Row { etag: row.etag, ..super::with_time(task, kept.clone()) },
            });
        }
        let created = task.row.is_none();
        let most = self.sink.options.content_bytes_max.unwrap_or(0);
        // What turned out longer than is put into a line goes without.
        let content = (body.file.is_none() && body.length <= most)
            .then(|| base64::engine::general_purpose::STANDARD.encode(body.bytes));
        let line = Line {
            lastmod: row.modified.map(|micros| Timestamp::from_micros(micros).to_string()),
            length: Some(body.length),
            hash: body.digests.to_string(),
            media_type: body.media_type.as_deref(),
            verified: Some(row.verified),
            content,
            ..Line::new(&task.pending, if created { "created" } else { "updated" })
        };
        self.sink.write(&line).map_err(|error| output_failed(&error))?;
        Ok(Outcome::Stored { row, created, notices: Vec::new() })
    }
}

impl TargetKind for LinesOptions {
    const FORMS: &'static [&'static str] = &["-"];
    const OPTIONS: &'static [&'static str] = &[CONTENT];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        let content_bytes_max = target.given.content_bytes_max;
        if content_bytes_max.is_some_and(|most| most > CONTENT_MAX) {
            return Err(TargetError::Unsuitable(
                "`--content` is at most 1M: larger contents do not fit a line",
            ));
        }
        target.use_state("a stream")?;
        #[expect(clippy::disallowed_methods, reason = "the resources are the program's output")]
        let standard_output = || Output::new(std::io::stdout());
        let output = target.given.output.map_or_else(standard_output, |open| open());
        Ok(Self { output, content_bytes_max })
    }
}

impl SinkKind for LinesOptions {
    fn open(
        &self,
        opening: Opening<'_>,
        _report: &mut Reporter<'_>,
    ) -> Result<Option<Arc<dyn Sink>>, Error> {
        Ok(Some(Arc::new(LinesSink::open(opening.state, self, opening.epoch)?)))
    }

    fn kept(&self, _copy: &KeptCopy<'_>) -> Result<Option<Box<dyn ReadBack>>, Error> {
        Ok(None)
    }
}
