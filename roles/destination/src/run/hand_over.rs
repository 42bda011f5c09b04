//! Changes of the copy are given to the command of the user, in batches, one after the other.
//!
//! A batch remains in the database of the copy until the command accepts the batch with exit code
//! 0. The command never runs twice at a time: the copy is locked, and one value of [`HandOver`] has
//! at most one process.

use crate::report::error::Error;
use crate::report::events::{Event, ItemAction, Observer, Problem};
use crate::report::on_change::OnChange;
use crate::report::options::SyncOptions;
use crate::run::command::{Running, Spec};
use crate::sink::Sink;
use abreast_store::mirror::{Mirror, WaitingBatch, WaitingChange, WaitingKind};
use abreast_webtypes::{Digests, Timestamp, count, short_lines, without_logins};
use serde::Serialize;
use std::cell::Cell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Seek as _, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Runs of the command for one batch, until the failure is reported.
pub(crate) const TRIES: u32 = 6;
/// Longest pause between two tries.
const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);
/// Changes whose paths are determined in one transaction.
const PATHS_TOGETHER: usize = 1_000;
/// Interval of the checks whether the command has ended.
const TICK: Duration = Duration::from_millis(50);

/// A change as a line of JSON: the fields of an item, and the facts about the bytes in the copy.
#[derive(Serialize)]
struct Line<'a> {
    r#type: &'a str,
    uri: &'a str,
    path: Option<&'a str>,
    change: ItemAction,
    datetime: Option<String>,
    lastmod: Option<String>,
    length: Option<u64>,
    hash: Option<String>,
}

impl<'a> Line<'a> {
    fn new(change: &'a WaitingChange, action: ItemAction) -> Self {
        let time = |micros: i64| Timestamp::from_micros(micros).to_string();
        let mut digests = Digests::default();
        digests.set_from_bytes(&change.digests);
        Self {
            r#type: "item",
            uri: &change.uri,
            path: change.path.as_deref(),
            change: action,
            datetime: change.changed.map(time),
            lastmod: change.modified.map(time),
            length: change.length,
            hash: Some(digests.to_string()).filter(|text| !text.is_empty()),
        }
    }
}

/// Progress of handing over.
pub(crate) enum Progress {
    /// No change waits.
    Idle,
    /// The command runs.
    Running,
    /// The command failed, and is tried again at this instant.
    Pause(Instant),
}

/// Hands the changes of one copy over to its command.
pub(crate) struct HandOver<'a> {
    options: &'a SyncOptions,
    on_change: &'a OnChange,
    running: Option<(u64, Running)>,
    /// Failed runs for the present batch.
    failures: u32,
    /// The earliest instant of the next run.
    due: Option<Instant>,
    /// Whether changes may wait.
    may_wait: bool,
    /// Number of notices so far.
    notices: Cell<u64>,
}

impl<'a> HandOver<'a> {
    /// `None` if the options contain no command, or the run changes nothing.
    pub(crate) fn new(options: &'a SyncOptions) -> Option<Self> {
        let on_change = options.on_change.as_ref().filter(|_| !options.dry_run)?;
        Some(Self {
            options,
            on_change,
            running: None,
            failures: 0,
            due: None,
            may_wait: true,
            notices: Cell::default(),
        })
    }

    /// A run ended, which may have changed the copy.
    pub(crate) const fn note_run(&mut self) {
        self.may_wait = true;
    }

    /// Number of reported notices.
    pub(crate) const fn notices(&self) -> u64 {
        self.notices.get()
    }

    /// Whether the failure of the present batch was reported.
    pub(crate) const fn has_failed(&self) -> bool {
        self.failures >= TRIES
    }

    /// Reports the output and the end of the command, and starts the next run if one is due. `open`
    /// returns the database of the copy; it is called only when needed.
    pub(crate) fn advance<'m, M: std::ops::Deref<Target = Mirror> + 'm>(
        &mut self,
        open: impl FnOnce() -> Result<M, Error>,
        observer: &dyn Observer,
        wake: impl FnOnce() + Send + 'static,
    ) -> Result<Progress, Error> {
        let mut ended = None;
        if let Some((batch, running)) = &self.running {
            let result = running.poll();
            for line in running.take_lines() {
                self.notice(observer, "on-change.output", &line);
            }
            let Some(result) = result else { return Ok(Progress::Running) };
            if running.left_out() > 0 {
                let message =
                    format!("further output of the command: {}", count(running.left_out(), "line"));
                self.notice(observer, "on-change.output", &message);
            }
            ended = Some((*batch, result));
            self.running = None;
        }
        let accepted = match ended {
            Some((batch, Ok(()))) => {
                (self.failures, self.due) = (0, None);
                Some(batch)
            }
            Some((_, Err(why))) => {
                self.failed(&why, observer);
                None
            }
            None => None,
        };
        if let Some(due) = self.due.filter(|due| *due > Instant::now()) {
            return Ok(Progress::Pause(due));
        }
        if !self.may_wait && accepted.is_none() {
            return Ok(Progress::Idle);
        }
        let mirror = open()?;
        if let Some(batch) = accepted {
            mirror.accept_batch(batch)?;
        }
        let Some(batch) = mirror.next_batch(self.on_change.batch)? else {
            self.may_wait = false;
            return Ok(Progress::Idle);
        };
        match self.start(&batch, wake) {
            Ok(running) => {
                self.running = Some((batch.number, running));
                Ok(Progress::Running)
            }
            Err(error) => {
                self.failed(&format!("it cannot be started: {error}"), observer);
                Ok(Progress::Pause(self.due.unwrap_or_else(Instant::now)))
            }
        }
    }

    /// Gives all waiting changes to the command, unless it fails too often. Returns whether it
    /// accepted them.
    pub(crate) fn finish(
        &mut self,
        mirror: &Mirror,
        observer: &dyn Observer,
        cancel: &AtomicBool,
    ) -> Result<bool, Error> {
        loop {
            let until = match self.advance(|| Ok(mirror), observer, || {})? {
                Progress::Idle => return Ok(true),
                Progress::Pause(_) if self.has_failed() => return Ok(false),
                Progress::Pause(due) => due,
                Progress::Running => Instant::now() + TICK,
            };
            self.options.heartbeat.beat();
            if cancel.load(Ordering::Relaxed) {
                return Err(Error::cancelled());
            }
            std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
        }
    }

    /// The text of the failure that is reported after the last try.
    pub(crate) fn failure(waiting: u64) -> String {
        format!(
            "the command of `--on-change` does not accept {}, which wait and are given to it again by the next run\n  help: \
             the notices `on-change.failed` and `on-change.output` have the cause; the command has to end with exit code 0",
            count(waiting, "change")
        )
    }

    fn failed(&mut self, why: &str, observer: &dyn Observer) {
        self.failures = self.failures.saturating_add(1);
        let factor = 2_u32.saturating_pow(self.failures - 1);
        let pause = self.on_change.first_pause.saturating_mul(factor).min(PAUSE_MAX);
        self.due = Some(Instant::now() + pause);
        let message = if self.failures <= TRIES {
            format!("the command of `--on-change`: {why}; try {} of {TRIES}", self.failures)
        } else {
            format!("the command of `--on-change`: {why}; try {}", self.failures)
        };
        self.notice(observer, "on-change.failed", &message);
    }

    fn notice(&self, observer: &dyn Observer, code: &str, message: &str) {
        self.notices.set(self.notices.get() + 1);
        let message = &*short_lines(message);
        observer.event(&Event::Notice(Problem { code, uri: &self.options.url, message }));
    }

    fn start(
        &self,
        batch: &WaitingBatch,
        wake: impl FnOnce() + Send + 'static,
    ) -> std::io::Result<Running> {
        let options = self.options;
        let state = crate::copy::state::state_of(options);
        let input = input(batch, &state)?;
        let copy = std::path::absolute(&options.folder)?;
        let variables = vec![
            ("ABREAST_JOB", self.on_change.job.as_ref().map(OsString::from)),
            ("ABREAST_SET", options.set.as_ref().map(OsString::from)),
            ("ABREAST_SOURCE", Some(without_logins(&options.url).into_owned().into())),
            ("ABREAST_COPY", Some(copy.into_os_string())),
            ("ABREAST_BATCH", Some(batch.number.to_string().into())),
        ];
        let OnChange { command, timeout, .. } = self.on_change;
        Running::start(Spec { command, variables, input, timeout: *timeout }, wake)
    }
}

/// The lines of a batch, in a file without a name: a command that does not read its input ends
/// nothing, and needs no thread.
fn input(batch: &WaitingBatch, state: &Path) -> std::io::Result<File> {
    let mut file = BufWriter::new(tempfile::tempfile_in(state)?);
    for change in &batch.changes {
        let action = match change.kind {
            WaitingKind::Created => ItemAction::Created,
            WaitingKind::Updated => ItemAction::Updated,
            WaitingKind::Deleted => ItemAction::Deleted,
            WaitingKind::Overflow => {
                file.write_all(b"{\"type\":\"overflow\"}\n")?;
                continue;
            }
        };
        serde_json::to_writer(&mut file, &Line::new(change, action))?;
        file.write_all(b"\n")?;
    }
    let mut file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.rewind()?;
    Ok(file)
}

/// Determines the paths of waiting changes.
pub(crate) fn note_paths(mirror: &Mirror, sink: &dyn Sink) -> Result<(), Error> {
    loop {
        let changes = mirror.waiting_without_path(PATHS_TOGETHER)?;
        if changes.is_empty() {
            return Ok(());
        }
        mirror.begin()?;
        for change in &changes {
            let shown = sink.shown(&change.uri, change.leaf);
            let path = Some(shown.as_str()).filter(|path| *path != change.uri);
            mirror.set_waiting_path(change.number, path)?;
        }
        mirror.commit()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_overflow_is_an_object_of_its_own() {
        let place = tempfile::tempdir().unwrap();
        let deleted = WaitingChange {
            uri: "http://h/a".to_owned(),
            kind: WaitingKind::Deleted,
            changed: Some(0),
            ..WaitingChange::default()
        };
        let overflow = WaitingChange { kind: WaitingKind::Overflow, ..WaitingChange::default() };
        let batch = WaitingBatch { number: 1, changes: vec![overflow, deleted] };
        let text = std::io::read_to_string(input(&batch, place.path()).unwrap()).unwrap();
        let expected = "{\"type\":\"overflow\"}\n{\"type\":\"item\",\"uri\":\"http://h/a\",\"path\":null,\
            \"change\":\"deleted\",\"datetime\":\"1970-01-01T00:00:00Z\",\"lastmod\":null,\"length\":null,\"hash\":null}\n";
        assert_eq!(text, expected);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "no name");
    }
}
