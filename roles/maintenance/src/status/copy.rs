//! Reports on a copy, from its database.

use super::report::{Attention, AuditStatus, CopyRun, CopyStatus, ProblemStatus};
use crate::place::{Context as _, Result, holder_of};
use abreast_core::{Clock as _, SystemClock};
use abreast_destination::check::{CopyPlace, CopyState, copy_state};
use abreast_destination::{LastAudit, LastRun, RunProblem};
use abreast_webtypes::{W3cDatetime, count};
use std::path::Path;

/// Reports on a copy, from its database.
///
/// # Errors
/// The database cannot be read.
pub fn copy_status(place: &CopyPlace) -> Result<CopyStatus> {
    let shown = place.shown_folder().display().to_string();
    let state = copy_state(place).with_context(|| format!("cannot read the copy `{shown}`"))?;
    let process = place.lock_file().and_then(|lock| holder_of(&lock));
    let word = if process.is_some() { "in use" } else { "stopped" };
    Ok(status_of(shown, state, word, process))
}

fn status_of(place: String, state: CopyState, word: &str, process: Option<u32>) -> CopyStatus {
    let CopyState {
        source,
        cursor,
        resources,
        resources_more,
        plan,
        held_since,
        failing_since,
        run,
        audit,
    } = state;
    let run = run.unwrap_or_default();
    let is_complete = plan.due + plan.failed + plan.held == 0 && run.exit_code == 0;
    let mut status = CopyStatus {
        state: word.to_owned(),
        process,
        source,
        cursor,
        resources,
        resources_more,
        pending: plan.due,
        failed: plan.failed,
        pending_more: plan.is_cut,
        held_deletions: plan.held,
        held_since,
        failing_since,
        behind_seconds: run.succeeded.as_deref().and_then(seconds_since),
        problem_count: run.problem_count,
        problems: run.problems.iter().map(problem).collect(),
        last_run: Some(run.ended.clone()).filter(|text| !text.is_empty()),
        last_success: run.succeeded.clone(),
        last_change: run.changed.clone(),
        last_audit: audit.map(of_audit),
        ..CopyStatus::default()
    };
    if is_complete && status.last_success.is_some() {
        status.behind_seconds = Some(0);
    }
    if status.last_run.is_some() {
        status.run = Some(of_run(&run));
    }
    if let Some(error) = &run.error {
        status.problems.insert(0, problem(error));
        status.problems.truncate(20);
        status.problem_count += 1;
    }
    note_attention(&mut status, &place, &run);
    status.place = place;
    status
}

/// After a command that is to be repeated, of a copy whose options are not recorded.
const SAME_OPTIONS: &str = ", with the same options as before";

fn command_of(source: Option<&str>, place: &str) -> String {
    format!("abreast sync {} {place}", source.unwrap_or("URL"))
}

impl CopyStatus {
    /// Sets the job of the copy, and its configuration file if it is known. Commands in the help are then commands of
    /// the job, which has all its options.
    pub fn name_job(&mut self, job: &str, config: Option<&Path>) {
        let config = config.map_or("FILE".into(), |config| config.to_string_lossy());
        let former = command_of(self.source.as_deref(), &self.place);
        let command = format!("abreast sync --config {config} {job}");
        for attention in &mut self.attention {
            attention.help = attention.help.replace(&former, &command).replace(SAME_OPTIONS, "");
        }
        self.job = Some(job.to_owned());
    }
}

fn note_attention(status: &mut CopyStatus, place: &str, run: &LastRun) {
    let plain = command_of(status.source.as_deref(), place);
    let command = |more: &str| format!("{plain}{more}");
    if status.held_deletions > 0 {
        let held = status.held_deletions;
        let since = status.held_since.as_ref().map(|since| format!(" since {since}"));
        let message = format!("{} held back{}", count(held, "deletion"), since.unwrap_or_default());
        let help = format!(
            "check them with `{}`, then release them: {}",
            format_args!("{plain} --dry-run"),
            command(&format!(" --max-delete {held}"))
        );
        status.attention.push(Attention::new(message, help));
    }
    if let Some(error) = &run.error {
        let message = format!("the last run ended with an error: {}", one_line(&error.message));
        let same = format!("`{plain}`");
        let help = help_of(&error.message).map_or_else(
            || command(""),
            |help| match help.replace("the same command", &same) {
                named if named != help => format!("{named}{SAME_OPTIONS}"),
                unchanged => unchanged,
            },
        );
        status.attention.push(Attention::new(message, help));
    } else if status.failed > 0 || matches!(run.exit_code, 3) {
        let failed = status.failed.max(status.problem_count);
        let since = status.failing_since.as_ref().map(|since| format!(" since {since}"));
        let message = format!("{} failed{}", count(failed, "item"), since.unwrap_or_default());
        status.attention.push(Attention::new(message, command(" -v")));
    } else if run.exit_code == 8 {
        let message = "the last run stopped at a limit of failures, bytes or time";
        status.attention.push(Attention::new(message, command("")));
    }
    if status.last_run.is_some() && status.last_success.is_none() && status.attention.is_empty() {
        let message = "no run of this copy has succeeded yet";
        status.attention.push(Attention::new(message, command("")));
    }
}

/// How to solve a problem, if its message has it.
fn help_of(message: &str) -> Option<&str> {
    let (_, help) = message.split_once("help: ")?;
    help.lines().next()
}

fn one_line(message: &str) -> &str {
    message.lines().next().unwrap_or_default()
}

fn problem(problem: &RunProblem) -> ProblemStatus {
    ProblemStatus {
        code: problem.code.clone(),
        uri: problem.uri.clone(),
        message: problem.message.clone(),
    }
}

fn of_run(run: &LastRun) -> CopyRun {
    CopyRun {
        exit_code: run.exit_code,
        milliseconds: run.milliseconds,
        changes: run.changes,
        bytes: run.bytes,
        requests: run.requests,
        retries: run.retries,
    }
}

fn of_audit(audit: LastAudit) -> AuditStatus {
    let result = match audit.exit_code {
        0 => "equal",
        3 => "incomplete",
        _ => "different",
    };
    AuditStatus {
        time: audit.ended,
        result: result.to_owned(),
        full: audit.full,
        same: audit.same,
        different: audit.different,
        missing: audit.missing,
        extra: audit.extra,
        unverified: audit.unverified,
    }
}

/// Seconds since a time, a W3C Datetime.
fn seconds_since(text: &str) -> Option<u64> {
    let then = W3cDatetime::parse(text.as_bytes()).ok()?.instant;
    let micros = SystemClock.now().as_micros() - then.as_micros();
    Some(u64::try_from(micros / 1_000_000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_of_a_job_is_the_command_of_the_job() {
        let mut run = LastRun { exit_code: 13, ..LastRun::default() };
        run.error = Some(RunProblem {
            message: "the disk is full\n  help: free space, then run the same command again"
                .to_owned(),
            ..RunProblem::default()
        });
        let mut status =
            CopyStatus { source: Some("http://h/".to_owned()), ..CopyStatus::default() };
        status.place = "/copy".to_owned();
        note_attention(&mut status, "/copy", &run);
        let help = "free space, then run `abreast sync http://h/ /copy` again, with the same options as before";
        assert_eq!(status.attention[0].help, help);
        status.name_job("papers", Some(Path::new("/etc/abreast.toml")));
        let help = "free space, then run `abreast sync --config /etc/abreast.toml papers` again";
        assert_eq!(status.attention[0].help, help);
        let mut status =
            CopyStatus { held_deletions: 3, place: "/copy".to_owned(), ..CopyStatus::default() };
        note_attention(&mut status, "/copy", &LastRun::default());
        status.name_job("papers", None);
        let help = &status.attention[0].help;
        assert!(
            help.ends_with("release them: abreast sync --config FILE papers --max-delete 3"),
            "{help}"
        );
    }
}
