//! How is a run told? A progress bar and words for people, one JSON object a line for programs.

use abreast_destination::{Event, ItemAction, Mode, Observer, Summary};
use indicatif::{HumanBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal as _;
use std::time::Duration;

/// Tells a run in the way that was asked for.
pub(crate) struct Reporter {
    json: bool,
    quiet: bool,
    /// Each item on a line: for dry runs, audits and `-v`.
    items: bool,
    /// The job's name, where several run.
    job: Option<String>,
    bar: ProgressBar,
}

impl Reporter {
    pub(crate) fn new(json: bool, quiet: bool, items: bool) -> Self {
        let bar = ProgressBar::no_length();
        let shown = !json && !quiet && std::io::stderr().is_terminal();
        bar.set_draw_target(if shown { ProgressDrawTarget::stderr_with_hz(8) } else { ProgressDrawTarget::hidden() });
        if let Ok(style) = ProgressStyle::with_template("{msg:10} {wide_bar} {pos}/{len} {per_sec}, {eta} left") {
            bar.set_style(style);
        }
        Self { json, quiet, items, job: None, bar }
    }

    /// Names the job in all that is told.
    pub(crate) fn for_job(mut self, job: Option<&str>) -> Self {
        self.job = job.map(str::to_owned);
        self
    }

    /// A line for people, above the progress bar.
    pub(crate) fn say(&self, text: &str) {
        self.bar.suspend(|| crate::terminal::line(&self.named(text)));
    }

    fn warn(&self, text: &str) {
        self.bar.suspend(|| crate::terminal::warning(&self.named(text)));
    }

    fn named<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        match &self.job {
            Some(job) => format!("{job}: {text}").into(),
            None => text.into(),
        }
    }

    /// One line of JSON, with the job's name.
    fn tell(&self, mut value: serde_json::Value) {
        if let (Some(job), Some(object)) = (&self.job, value.as_object_mut()) {
            object.insert("job".to_owned(), job.clone().into());
        }
        crate::terminal::line(&value.to_string());
    }

    /// Ends the progress bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Tells an error that ended the run.
    pub(crate) fn failed(&self, error: &abreast_destination::Error) {
        self.finish();
        if self.json {
            let mut causes = Vec::new();
            let mut cause = std::error::Error::source(error);
            while let Some(next) = cause {
                causes.push(next.to_string());
                cause = next.source();
            }
            let line = serde_json::json!({
                "type": "error", "fatal": true, "code": error.code(), "message": error.to_string(), "causes": causes,
                "exit_code": error.exit_code().number(),
            });
            self.tell(line);
        }
        let told = error.to_string();
        crate::terminal::warning(&format!("abreast: {} [{}]", self.named(&told), error.code()));
        let mut cause = std::error::Error::source(error);
        while let Some(next) = cause {
            // A cause that the error tells already, in whole, is not told again.
            let text = next.to_string();
            if !told.contains(&text) {
                crate::terminal::warning(&format!("  because: {text}"));
            }
            cause = next.source();
        }
    }
}

impl Observer for Reporter {
    fn event(&self, event: &Event<'_>) {
        if self.json {
            if self.job.is_none() {
                if let Ok(line) = serde_json::to_string(event) {
                    crate::terminal::line(&line);
                }
            } else if let Ok(value) = serde_json::to_value(event) {
                self.tell(value);
            }
            return;
        }
        match event {
            Event::Status(status) => {
                self.bar.set_message(status.phase.to_owned());
                if status.total > 0 {
                    self.bar.set_length(status.total);
                }
                self.bar.set_position(status.done);
            }
            Event::Item(item) if self.items && !(self.quiet || item.action == ItemAction::Unchanged) => {
                self.say(&format!("{:9} {}", word(item.action), item.path.escape_debug()));
            }
            Event::Filter(filtered) if self.items && !self.quiet => {
                let place = if filtered.path.is_empty() { filtered.uri } else { filtered.path };
                let word = if filtered.taken { "take" } else { "leave out" };
                self.say(&format!("{word:9} {}  ({})", place.escape_debug(), filtered.rule.escape_debug()));
            }
            Event::Error(problem) => {
                self.warn(&format!("{}: {} [{}]", problem.uri.escape_debug(), problem.message, problem.code));
            }
            Event::Notice(problem) if !self.quiet => {
                self.warn(&format!("note: {}: {} [{}]", problem.uri.escape_debug(), problem.message, problem.code));
            }
            Event::Summary(summary) if !self.quiet => self.say(&told(summary)),
            _ => {}
        }
    }

    fn wants_items(&self) -> bool {
        self.json || (self.items && !self.quiet)
    }
}

const fn word(action: ItemAction) -> &'static str {
    match action {
        ItemAction::Created => "create",
        ItemAction::Updated => "update",
        ItemAction::Deleted => "delete",
        ItemAction::Unchanged => "same",
        ItemAction::Missing => "missing",
        ItemAction::Extra => "extra",
        ItemAction::Different => "differs",
        _ => "other",
    }
}

/// A run in one line.
pub(crate) fn told(summary: &Summary) -> String {
    let how = match summary.mode {
        Mode::Baseline => "compared with the Resource List",
        Mode::Incremental => "followed the Change Lists",
        Mode::Unchanged => "nothing has changed",
    };
    let mut parts = Vec::new();
    for (count, what) in [
        (summary.created, "created"),
        (summary.updated, "updated"),
        (summary.deleted, "deleted"),
        (summary.selected, "taken"),
        (summary.excluded, "excluded by filters"),
        (summary.skipped, "refused"),
        (summary.failed, "failed"),
        (summary.held, "deletions held back"),
        (summary.unverified, "stored without a digest to check them by"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {what}"));
        }
    }
    if parts.is_empty() {
        parts.push("no difference".to_owned());
    }
    let undone = summary.failed + summary.skipped + summary.held + u64::from(summary.budget_spent);
    let status = match (summary.dry_run, undone) {
        (true, _) => "would do",
        (false, 0) => "in sync",
        (false, _) => "NOT in sync",
    };
    format!(
        "{status}: {} ({how}; {} requests, {}, {})",
        parts.join(", "),
        summary.requests,
        HumanBytes(summary.bytes),
        human(summary.seconds)
    )
}

fn human(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { HumanDuration(Duration::from_secs_f64(seconds)).to_string() }
}
