//! The progress of commands on standard error: redrawn lines on a terminal, lines for a log, or JSON.
//!
//! Roles count in a [`Meter`]; one thread reads the meters of all runs and shows them.

mod lines;
mod pace;

use crate::program::{logging, terminal};
use abreast_core::{Meter, MeterState, start_thread};
use lines::{Shown, block, end_line, idle_line, log_line};
use pace::{LinePace, ObjectPace, SpeedMeter};
use serde::Serialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Interval at which the meters are read.
const TICK: Duration = Duration::from_millis(200);
/// Columns of a line in a log, at most.
const LOG_COLUMNS: usize = 240;
/// Fewest columns of a terminal on which lines are redrawn.
const COLUMNS_MIN: usize = 20;
/// Rows of a terminal that progress leaves to other output, if there are as many.
const ROWS_LEFT: usize = 4;

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ProgressKind {
    /// Lines that are redrawn in place
    Tty,
    /// A line each 30 seconds, and at the end of a phase
    Plain,
    /// An object of JSON a second
    Json,
    /// Nothing
    None,
}

/// The option of commands that show progress.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ProgressArgs {
    /// Show progress on standard error: tty, plain, json or none [default: tty on a terminal, else plain; none with --quiet or --json]
    #[arg(long, value_name = "HOW", hide_possible_values = true)]
    progress: Option<ProgressKind>,
}

impl ProgressArgs {
    /// Nothing is shown.
    pub(crate) fn hidden() -> Self {
        Self { progress: Some(ProgressKind::None) }
    }

    /// Starts the display of a run's progress.
    pub(crate) fn begin(&self, quiet: bool, json: bool) -> Progress {
        self.begin_job(quiet, json, None)
    }

    /// Starts the display of a job, with its name if several jobs run.
    pub(crate) fn begin_job(&self, quiet: bool, json: bool, job: Option<&str>) -> Progress {
        let kind = match self.progress {
            // Lines cannot be redrawn where the cursor cannot move.
            Some(ProgressKind::Tty) if !can_redraw() => ProgressKind::Plain,
            Some(kind) => kind,
            None if quiet || json => ProgressKind::None,
            None if can_redraw() => ProgressKind::Tty,
            None => ProgressKind::Plain,
        };
        Progress::new(kind, self.progress.is_some(), job)
    }
}

/// Whether standard error is a terminal on which the cursor can be moved.
fn can_redraw() -> bool {
    terminal::error_is_terminal()
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
        && terminal::error_size().0 >= COLUMNS_MIN
}

/// The runs that are shown.
static ACTIVE: Mutex<Active> = Mutex::new(Active { runs: Vec::new(), has_thread: false });

struct Active {
    runs: Vec<Arc<ShownRun>>,
    has_thread: bool,
}

/// The progress of one run, until it is dropped.
pub(crate) struct Progress(Option<Arc<ShownRun>>);

struct ShownRun {
    kind: ProgressKind,
    meter: Meter,
    job: Option<String>,
    display: Mutex<Display>,
}

/// Speed and times of the earlier output of a run.
struct Display {
    speed: SpeedMeter,
    lines: LinePace,
    objects: ObjectPace,
    follower: Option<Follower>,
}

/// A follower between its runs.
#[derive(Clone, Copy, Debug, Default)]
struct Follower {
    last_change: Option<Instant>,
    /// Since when something is known to be missing.
    behind_since: Option<Instant>,
    /// Something changed since the last line.
    has_news: bool,
    waits: bool,
}

/// A line of `--progress=json`.
#[derive(Serialize)]
#[serde(tag = "type", rename = "status")]
struct StatusObject<'a> {
    phase: &'a str,
    done: u64,
    total: u64,
    bytes: u64,
    total_bytes: u64,
    seconds: f64,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    names: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    retry: Option<RetryObject<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
}

#[derive(Serialize)]
struct RetryObject<'a> {
    host: &'a str,
    seconds: f64,
    attempt: u32,
    attempts: u32,
    message: &'a str,
}

impl Progress {
    fn new(kind: ProgressKind, is_wanted: bool, job: Option<&str>) -> Self {
        if kind == ProgressKind::None {
            return Self(None);
        }
        let display = Display {
            speed: SpeedMeter::default(),
            lines: LinePace::new(is_wanted, Instant::now()),
            objects: ObjectPace::default(),
            follower: None,
        };
        let run = Arc::new(ShownRun {
            kind,
            meter: Meter::listening(),
            job: job.map(str::to_owned),
            display: Mutex::new(display),
        });
        let mut active = lock(&ACTIVE);
        active.runs.push(Arc::clone(&run));
        if !active.has_thread {
            let started = start_thread("progress", watch);
            // If the thread cannot start, the work is done and not shown.
            active.has_thread = started.is_ok();
        }
        Self(Some(run))
    }

    /// The meter that is shown.
    pub(crate) fn meter(&self) -> Meter {
        self.0.as_ref().map_or_else(Meter::default, |run| run.meter.clone())
    }

    /// Ends the phase. Nothing is shown before the next phase.
    pub(crate) fn clear(&self) {
        if let Some(run) = &self.0 {
            run.meter.end();
            run.tell(Instant::now());
            redraw();
        }
    }

    /// Notes the outcome of a run of a follower.
    pub(crate) fn note_run(&self, has_changes: bool, is_complete: bool) {
        let Some(run) = &self.0 else { return };
        let mut display = lock(&run.display);
        let follower = display.follower.get_or_insert_default();
        follower.note(has_changes, is_complete, Instant::now());
    }

    /// Notes that a follower waits for its next run.
    pub(crate) fn wait(&self, has_failed: bool) {
        let Some(run) = &self.0 else { return };
        run.meter.end();
        let mut display = lock(&run.display);
        let follower = display.follower.get_or_insert_default();
        if has_failed {
            follower.note(false, false, Instant::now());
        }
        follower.waits = true;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some(run) = self.0.take() else { return };
        run.meter.end();
        lock(&ACTIVE).runs.retain(|other| !Arc::ptr_eq(other, &run));
        run.tell(Instant::now());
        redraw();
    }
}

impl Follower {
    fn note(&mut self, has_changes: bool, is_complete: bool, now: Instant) {
        if has_changes {
            (self.last_change, self.has_news) = (Some(now), true);
        }
        if is_complete {
            self.behind_since = None;
        } else {
            self.behind_since.get_or_insert(now);
        }
    }
}

impl ShownRun {
    /// Prints the lines and objects that are due.
    fn tell(&self, now: Instant) {
        let mut display = lock(&self.display);
        let ended = self.meter.ended();
        let state = self.meter.state().unwrap_or_default();
        match self.kind {
            ProgressKind::Plain => {
                for ended in &ended {
                    if display.lines.tells_end(ended) {
                        logging::progress(&end_line(self.job.as_deref(), ended, LOG_COLUMNS));
                    }
                }
                if !state.phase.is_empty() {
                    let shown = self.shown(&state, &mut display);
                    if display.lines.is_due(now) {
                        logging::progress(&log_line(&shown, now, LOG_COLUMNS));
                    }
                } else if let Some(follower) =
                    display.follower.filter(|one| one.waits && one.has_news)
                    && display.lines.is_idle_due(now)
                {
                    logging::progress(&self.idle_line(follower, now, LOG_COLUMNS));
                    if let Some(follower) = &mut display.follower {
                        follower.has_news = false;
                    }
                }
            }
            ProgressKind::Json => {
                let state = if state.phase.is_empty() { ended.last() } else { Some(&state) };
                if let Some(state) = state
                    && display.objects.is_due(now)
                {
                    terminal::warning(&self.object(state, now));
                }
            }
            ProgressKind::Tty | ProgressKind::None => {}
        }
    }

    /// The lines on a terminal.
    fn block(&self, now: Instant, columns: usize, rows: usize) -> Vec<String> {
        let mut display = lock(&self.display);
        let state = self.meter.state().unwrap_or_default();
        // Nobody needs the ends of phases on a terminal.
        drop(self.meter.ended());
        if !state.phase.is_empty() {
            let shown = self.shown(&state, &mut display);
            return block(&shown, now, columns, rows);
        }
        let follower = display.follower.filter(|follower| follower.waits);
        follower.iter().map(|follower| self.idle_line(*follower, now, columns)).collect()
    }

    fn idle_line(&self, follower: Follower, now: Instant, columns: usize) -> String {
        let since = |then: Instant| now.saturating_duration_since(then);
        let behind = follower.behind_since.map_or(Duration::ZERO, since);
        idle_line(self.job.as_deref(), follower.last_change.map(since), behind, columns)
    }

    fn shown(&self, state: &MeterState, display: &mut Display) -> Shown<'_> {
        let speed = display.speed.measure(state);
        Shown { job: self.job.as_deref(), state: state.clone(), speed }
    }

    fn object(&self, state: &MeterState, now: Instant) -> String {
        let retry = state.retry.as_ref().map(|retry| RetryObject {
            host: &retry.host,
            seconds: retry.due.saturating_duration_since(now).as_secs_f64(),
            attempt: retry.attempt,
            attempts: retry.attempts,
            message: &retry.cause,
        });
        let object = StatusObject {
            phase: state.phase,
            done: state.done,
            total: state.total,
            bytes: state.bytes,
            total_bytes: state.total_bytes,
            seconds: state.elapsed.as_secs_f64(),
            names: &state.names,
            retry,
            job: self.job.as_deref(),
        };
        // Texts and numbers only, for which this does not fail.
        serde_json::to_string(&object).unwrap_or_default()
    }
}

/// Shows all runs, and ends after the last one.
fn watch() {
    loop {
        std::thread::sleep(TICK);
        let runs = {
            let mut active = lock(&ACTIVE);
            if active.runs.is_empty() {
                active.has_thread = false;
                return;
            }
            active.runs.clone()
        };
        let now = Instant::now();
        for run in &runs {
            run.tell(now);
        }
        redraw();
    }
}

/// Draws the lines of all runs on the terminal.
fn redraw() {
    let active = lock(&ACTIVE);
    let mut runs = active.runs.iter().filter(|run| run.kind == ProgressKind::Tty).peekable();
    if runs.peek().is_none() {
        terminal::show(&[]);
        return;
    }
    let (columns, rows) = terminal::error_size();
    // The last column stays free: some terminals begin a new line after it.
    let (columns, rows) = (columns.saturating_sub(1), rows.saturating_sub(ROWS_LEFT).max(1));
    let now = Instant::now();
    let mut lines = Vec::new();
    for run in runs {
        lines.extend(run.block(now, columns, rows));
        if lines.len() >= rows {
            break;
        }
    }
    lines.truncate(rows);
    terminal::show(&lines);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_follower_is_behind_since_its_first_failure() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut follower = Follower::default();
        follower.note(true, true, at(1));
        assert_eq!((follower.last_change, follower.behind_since), (Some(at(1)), None));
        follower.note(false, false, at(2));
        follower.note(true, false, at(3));
        assert_eq!((follower.last_change, follower.behind_since), (Some(at(3)), Some(at(2))));
        follower.note(false, true, at(4));
        assert_eq!(follower.behind_since, None);
    }

    #[test]
    fn objects_have_the_fields_of_status() {
        let progress = Progress::new(ProgressKind::Json, true, Some("papers"));
        let run = progress.0.clone().unwrap();
        let mut state = MeterState { phase: "fetching", done: 1, ..MeterState::default() };
        let text = run.object(&state, Instant::now());
        assert_eq!(
            text,
            r#"{"type":"status","phase":"fetching","done":1,"total":0,"bytes":0,"total_bytes":0,"seconds":0.0,"job":"papers"}"#
        );
        state.names = vec!["a".to_owned()];
        assert!(run.object(&state, Instant::now()).contains(r#""names":["a"]"#));
    }
}
