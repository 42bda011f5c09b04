//! The output of `sync` and `audit`: progress and text for people, one JSON object a line for
//! programs.

use crate::program::progress::Progress;
use abreast_core::Meter;
use abreast_destination::{Event, ItemAction, Mode, Observer, Problem, Summary};
use abreast_webtypes::visible;
use indicatif::{HumanBytes, HumanCount, HumanDuration};
use std::cell::RefCell;
use std::collections::HashMap;
use std::time::Duration;

/// Maximum number of failures that are printed only once. Further failures are printed in each run.
const REPEATED_MAX: usize = 10_000;
/// The code of bytes that are not those listed.
const MISMATCH: &str = "fixity.mismatch";

/// The codes of deletions that are held back.
const HELD: &[&str] = &["delete.limit", "delete.held"];

/// Prints a run in the format that was asked for.
pub(crate) struct Reporter {
    json: bool,
    quiet: bool,
    /// Each item on a line: for dry runs, audits and `-v`.
    items: bool,
    /// The job's name, where several run.
    job: Option<String>,
    /// For `--follow`: messages that earlier runs printed.
    before: Option<RefCell<EarlierRuns>>,
    /// Runs follow each other: in between, the last change is shown.
    follows: bool,
    progress: Progress,
}

/// Messages printed in earlier runs.
#[derive(Default)]
struct EarlierRuns {
    /// The code of each resource's failure, and how often it occurred.
    failures: HashMap<String, (String, u32)>,
    /// Incomplete work of the last run.
    undone: Option<Unfinished>,
    /// The last run ended with an error.
    failed: bool,
    /// The last message about held deletions, until a run holds no deletions.
    held: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unfinished {
    failed: u64,
    skipped: u64,
    held: u64,
}

impl Reporter {
    pub(crate) fn new(json: bool, quiet: bool, items: bool, progress: Progress) -> Self {
        Self { json, quiet, items, job: None, before: None, follows: false, progress }
    }

    /// Adds the name of the job to all output.
    pub(crate) fn for_job(mut self, job: Option<&str>) -> Self {
        self.job = job.map(str::to_owned);
        self
    }

    /// For repeated runs: shows the last change while the follower waits.
    pub(crate) fn waiting(mut self) -> Self {
        self.follows = true;
        self
    }

    /// For repeated runs: prints only new messages. A run without a change prints nothing, and a repeated
    /// failure is printed once.
    pub(crate) fn following(mut self) -> Self {
        self.before = Some(RefCell::default());
        self
    }

    /// A line for people, above the progress.
    pub(crate) fn print_line(&self, text: &str) {
        crate::program::terminal::line(&self.named(text));
    }

    fn warn(&self, text: &str) {
        crate::program::terminal::warning(&self.named(text));
    }

    fn named<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        match &self.job {
            Some(job) => format!("{job}: {text}").into(),
            None => text.into(),
        }
    }

    /// One line of JSON, with the job's name.
    fn print_json(&self, mut value: serde_json::Value) {
        if let (Some(job), Some(object)) = (&self.job, value.as_object_mut()) {
            object.insert("job".to_owned(), job.clone().into());
        }
        crate::program::terminal::line(&value.to_string());
    }

    /// Ends the progress that is shown.
    pub(crate) fn finish(&self) {
        self.progress.clear();
    }

    /// Prints an error that ended the run.
    pub(crate) fn failed(&self, error: &abreast_destination::Error) {
        self.finish();
        let text = error.to_string();
        let (mut causes, mut help) =
            (Vec::new(), abreast_destination::without_help(&text).1.map(str::to_owned));
        let has_help = help.is_some();
        let mut cause = std::error::Error::source(error);
        while let Some(next) = cause {
            // The help of a cause is used for an error without help.
            let whole = next.to_string();
            let (cause_text, own) = abreast_destination::without_help(&whole);
            help = help.or_else(|| own.map(str::to_owned));
            causes.push(cause_text.to_owned());
            cause = next.source();
        }
        if self.json {
            let help = error.help().or(help.as_deref());
            let line = serde_json::json!({
                "type": "error", "fatal": true, "code": error.code(), "message": error.message(), "help": help,
                "candidates": error.candidates(), "causes": causes, "exit_code": error.exit_code().number(),
            });
            self.print_json(line);
        }
        crate::program::terminal::warning(&format!(
            "abreast: {} [{}]",
            self.named(&text),
            error.code()
        ));
        // A cause whose text is part of the error is not printed again.
        for cause in causes.iter().filter(|cause| !text.contains(*cause)) {
            crate::program::terminal::warning(&format!("  because: {cause}"));
        }
        if let Some(help) = help.filter(|_| !has_help) {
            crate::program::terminal::warning(&format!("  help: {help}"));
        }
    }

    fn problem(&self, word: &str, problem: &Problem<'_>, more: &str) {
        self.warn(&format!("{word}{} [{}]", placed(problem, more), problem.code));
    }

    /// Whether the same deletions are held back as in the run before.
    fn is_still_held(&self, problem: &Problem<'_>) -> bool {
        let Some(before) = self.before.as_ref().filter(|_| HELD.contains(&problem.code)) else {
            return false;
        };
        before
            .borrow_mut()
            .held
            .replace(problem.message.to_owned())
            .is_some_and(|printed| printed == problem.message)
    }

    fn error(&self, problem: &Problem<'_>) {
        if self.before.is_some() && HELD.contains(&problem.code) {
            if !self.is_still_held(problem) {
                self.problem("", problem, "");
            }
            return;
        }
        let Some(before) = &self.before else { return self.problem("", problem, "") };
        let mut before = before.borrow_mut();
        before.failed = true;
        let is_full = before.failures.len() >= REPEATED_MAX;
        let count = match before.failures.get(problem.uri) {
            Some((code, count)) if code == problem.code => *count,
            _ => 0,
        };
        match count {
            0 => self.problem("", problem, ""),
            1 if problem.code == MISMATCH => {
                let more = " again: the resource changes faster than its list, or the list is wrong; it is tried at each \
                            run, and this is not repeated";
                self.problem("", problem, more);
            }
            _ => {}
        }
        if count > 0 || !is_full {
            before
                .failures
                .insert(problem.uri.to_owned(), (problem.code.to_owned(), count.saturating_add(1)));
        }
    }

    fn summary(&self, summary: &Summary) {
        self.progress.clear();
        if self.follows {
            let has_changes = summary.created + summary.updated + summary.deleted > 0;
            let undone = summary.failed + summary.skipped + summary.held + summary.untried;
            self.progress.note_run(has_changes, undone == 0);
        }
        let new =
            self.before.as_ref().is_none_or(|before| is_new(summary, &mut before.borrow_mut()));
        if new && !self.quiet {
            self.print_line(&summary_line(summary));
        }
    }
}

/// The error, after the address that it is about, unless the text contains that.
fn placed(problem: &Problem<'_>, more: &str) -> String {
    let Problem { uri, message, .. } = problem;
    let is_end = |c: char| c.is_whitespace() || matches!(c, ':' | ',' | ';' | ')' | '`');
    let is_named = |after: &str| after.is_empty() || after.starts_with(is_end);
    if uri.is_empty()
        || message.match_indices(*uri).any(|(at, _)| is_named(&message[at + uri.len()..]))
    {
        return format!("{message}{more}");
    }
    format!("{}: {message}{more}", visible(uri))
}

/// Whether a run of `--follow` has something to report that the run before did not.
fn is_new(summary: &Summary, before: &mut EarlierRuns) -> bool {
    let undone =
        Unfinished { failed: summary.failed, skipped: summary.skipped, held: summary.held };
    let same = before.undone.replace(undone) == Some(undone);
    if summary.held == 0 {
        before.held = None;
    }
    let recovered = std::mem::take(&mut before.failed) && summary.failed == 0;
    if summary.failed == 0 {
        // A fast-changing resource fails now and then, and is copied in between.
        before.failures.retain(|_, (code, _)| code == MISMATCH);
    }
    !same
        || recovered
        || summary.budget_spent
        || summary.created + summary.updated + summary.deleted > 0
}

impl AsRef<Self> for Reporter {
    fn as_ref(&self) -> &Self {
        self
    }
}

impl Observer for Reporter {
    fn event(&self, event: &Event<'_>) {
        if self.json {
            if self.job.is_none() {
                if let Ok(line) = serde_json::to_string(event) {
                    crate::program::terminal::line(&line);
                }
            } else if let Ok(value) = serde_json::to_value(event) {
                self.print_json(value);
            }
            return;
        }
        match event {
            Event::Item(item)
                if self.items && !(self.quiet || item.action == ItemAction::Unchanged) =>
            {
                self.print_line(&format!("{:9} {}", word(item.action), item.path));
            }
            Event::Filter(filtered) if self.items && !self.quiet => {
                let place = if filtered.path.is_empty() { filtered.uri } else { filtered.path };
                let word = if filtered.taken { "take" } else { "leave out" };
                self.print_line(&format!("{word:9} {place}  ({})", filtered.rule));
            }
            Event::Error(problem) => self.error(problem),
            Event::Notice(problem) if !self.quiet && !self.is_still_held(problem) => {
                self.problem("note: ", problem, "");
            }
            Event::Summary(summary) => self.summary(summary),
            _ => {}
        }
    }

    fn wants_items(&self) -> bool {
        self.json || (self.items && !self.quiet)
    }

    fn attempted(&self, error: Option<&abreast_destination::Error>) {
        if self.follows {
            self.progress.wait(error.is_some());
        }
    }

    fn meter(&self) -> Meter {
        self.progress.meter()
    }

    fn ended(&self, error: Option<&abreast_destination::Error>) {
        self.finish();
        if let Some(error) = error {
            self.failed(error);
        }
    }
}

const fn word(action: ItemAction) -> &'static str {
    match action {
        ItemAction::Created => "create",
        ItemAction::Updated => "update",
        ItemAction::Deleted => "delete",
        ItemAction::Held => "hold",
        ItemAction::Unchanged => "same",
        ItemAction::Missing => "missing",
        ItemAction::Extra => "extra",
        ItemAction::Different => "different",
        _ => "other",
    }
}

/// A run in one line.
pub(crate) fn summary_line(summary: &Summary) -> String {
    if summary.dry_run && summary.requests == 0 {
        // A test of filters, which compares nothing.
        let (taken, excluded) = (HumanCount(summary.selected), HumanCount(summary.excluded));
        return format!("{taken} taken, {excluded} excluded by filters");
    }
    let changed = summary.created + summary.updated + summary.deleted;
    let how = match summary.mode {
        Mode::Baseline => "compared with all that the Source lists",
        Mode::Incremental => "followed the changes",
        Mode::Unchanged if changed > 0 => "finished what an earlier run left undone",
        Mode::Unchanged => "the Source reports no change",
    };
    let held_since = summary.held_since.iter().map(|since| format!(" (held since {since})"));
    let (one, many) = if summary.delete_limit {
        ("deletion needs your confirmation", "deletions need your confirmation")
    } else {
        ("deletion waits for a run without failures", "deletions wait for a run without failures")
    };
    let held = if summary.held == 1 { one } else { many };
    let held = format!("{held}{}", held_since.collect::<String>());
    let mut parts = Vec::new();
    for (count, what) in [
        (summary.created, "created"),
        (summary.updated, "updated"),
        (summary.patched, "of them by patches"),
        (summary.deleted, "deleted"),
        (summary.excluded, "excluded by filters"),
        (summary.skipped, "refused"),
        (summary.failed, "failed"),
        (summary.untried, "not tried"),
        (summary.held, &held),
        (summary.damaged, "found missing or altered here"),
        (summary.unverified, "could not be verified (no digest published)"),
    ] {
        if count > 0 {
            parts.push(format!("{} {what}", HumanCount(count)));
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
    let status = match summary.invalid_statements {
        0 => status.to_owned(),
        invalid => {
            format!("{status} without {}", abreast_webtypes::count(invalid, "invalid statement"))
        }
    };
    format!(
        "{status}: {} ({how}; {} request{}, {}, {})",
        parts.join(", "),
        HumanCount(summary.requests),
        if summary.requests == 1 { "" } else { "s" },
        HumanBytes(summary.bytes),
        human(summary.seconds)
    )
}

fn human(seconds: f64) -> String {
    if seconds < 10.0 {
        format!("{seconds:.2} s")
    } else {
        HumanDuration(Duration::from_secs_f64(seconds)).to_string()
    }
}

/// Reports the error of a run, and returns its exit code.
pub(crate) fn failed(reporter: &Reporter, error: &abreast_destination::Error) -> u8 {
    reporter.failed(error);
    error.exit_code().number()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::progress::ProgressArgs;

    fn hidden() -> Progress {
        ProgressArgs::hidden().begin(false, false)
    }

    fn summary(mode: Mode, created: u64, failed: u64) -> Summary {
        let mut summary = Summary::default();
        (summary.mode, summary.created, summary.failed) = (mode, created, failed);
        summary
    }

    #[test]
    fn an_address_is_printed_once() {
        let of = |uri, message| placed(&Problem { code: "x", uri, message }, " again");
        assert_eq!(
            of("http://h/", "http://h/ links to http://h/a"),
            "http://h/ links to http://h/a again"
        );
        assert_eq!(
            of("http://h/", "cannot fetch http://h/: no"),
            "cannot fetch http://h/: no again"
        );
        assert_eq!(of("http://h/", "http://h/a is gone"), "http://h/: http://h/a is gone again");
        assert_eq!(of("", "the copy is old"), "the copy is old again");
    }

    #[test]
    fn nothing_changed_is_not_printed_beside_changes() {
        let text = summary_line(&summary(Mode::Unchanged, 417, 0));
        assert!(
            text.starts_with("in sync: 417 created (finished what an earlier run left undone;"),
            "{text}"
        );
        assert!(
            summary_line(&summary(Mode::Unchanged, 0, 0))
                .contains("no difference (the Source reports no change;")
        );
    }

    #[test]
    fn held_deletions_are_printed_with_their_time() {
        let mut summary = summary(Mode::Incremental, 0, 0);
        (summary.held, summary.held_since) = (5, Some("2026-01-01T00:00:00Z".to_owned()));
        let text = summary_line(&summary);
        let expected = "NOT in sync: 5 deletions wait for a run without failures (held since 2026-01-01T00:00:00Z) (";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_copy_that_lacks_statements_is_not_simply_in_sync() {
        let summary = Summary { invalid_statements: 2, ..summary(Mode::Unchanged, 0, 0) };
        let text = summary_line(&summary);
        assert!(text.starts_with("in sync without 2 invalid statements: no difference"), "{text}");
    }

    #[test]
    fn idle_runs_of_follow_are_not_reported() {
        let mut before = EarlierRuns::default();
        let runs = [
            (3, 0, true),
            (0, 0, false),
            (0, 0, false),
            (0, 1, true),
            (0, 1, false),
            (0, 0, true),
            (1, 0, true),
        ];
        for (created, failed, expected) in runs {
            let summary = summary(Mode::Incremental, created, failed);
            assert_eq!(
                is_new(&summary, &mut before),
                expected,
                "{created} created, {failed} failed"
            );
        }
        before.failed = true;
        assert!(
            is_new(&summary(Mode::Unchanged, 0, 0), &mut before),
            "the end of a failure is reported"
        );
    }

    #[test]
    fn held_deletions_are_reported_until_they_change() {
        let reporter = Reporter::new(false, true, false, hidden()).following();
        let run = |message: &str, held: u64| {
            let problem = Problem { code: "delete.limit", uri: "http://h/", message };
            let printed = held > 0 && !reporter.is_still_held(&problem);
            let mut summary = summary(Mode::Incremental, 0, 0);
            summary.held = held;
            (printed, is_new(&summary, &mut reporter.before.as_ref().unwrap().borrow_mut()))
        };
        assert_eq!(run("5 are due", 5), (true, true));
        assert_eq!(run("5 are due", 5), (false, false));
        assert_eq!(run("6 are due", 6), (true, true));
        assert_eq!(run("", 0), (false, true));
        assert_eq!(run("6 are due", 6), (true, true), "new ones after none");
    }

    #[test]
    fn repeated_failure_is_counted_until_it_ends() {
        let reporter = Reporter::new(false, true, false, hidden()).following();
        for code in [MISMATCH, "http.status"] {
            let problem = Problem { code, uri: code, message: "other bytes" };
            (0..3).for_each(|_| reporter.event(&Event::Error(problem)));
        }
        let count = |code| {
            let before = reporter.before.as_ref().unwrap().borrow();
            before.failures.get(code).map_or(0, |(_, count)| *count)
        };
        assert_eq!((count(MISMATCH), count("http.status")), (3, 3));
        reporter.event(&Event::Summary(&summary(Mode::Incremental, 1, 0)));
        assert_eq!(
            (count(MISMATCH), count("http.status")),
            (3, 0),
            "what changes fast is reported once"
        );
    }
}
