//! The last run of a copy, which the copy's database contains for reports.

use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Problem, Summary};
use abreast_store::mirror::Mirror;
use abreast_webtypes::without_logins;
use serde::{Deserialize, Serialize};

/// Key of the record in the database of the copy.
const KEY: &str = "last-run";
/// Number of problems of which the record has the text.
const PROBLEMS_MAX: usize = 20;
/// Longest text of a problem in the record, in bytes.
const TEXT_MAX: usize = 500;

/// The last run of a copy. Times are W3C Datetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastRun {
    /// The end of the last run.
    pub ended: String,
    /// The end of the last run without failures, refusals and held deletions; absent if there was
    /// none.
    pub succeeded: Option<String>,
    /// The end of the last run that changed the copy.
    pub changed: Option<String>,
    /// The number of the exit code of the last run.
    pub exit_code: u8,
    /// The error that ended the last run, or `None` if it came to its end.
    pub error: Option<RunProblem>,
    /// Duration of the last run, in milliseconds.
    pub milliseconds: u64,
    /// Resources that the last run created, updated or deleted.
    pub changes: u64,
    /// Bytes that the last run received.
    pub bytes: u64,
    /// Requests that the last run sent.
    pub requests: u64,
    /// Repeated requests of the last run.
    pub retries: u64,
    /// Number of problems that the last run reported.
    pub problem_count: u64,
    /// The first of these problems, at most 20.
    pub problems: Vec<RunProblem>,
}

/// A problem that a run reported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunProblem {
    /// The stable code, for example `fixity.mismatch`.
    pub code: String,
    /// The URI of the resource or document.
    pub uri: String,
    /// The cause, and how to solve it.
    pub message: String,
}

/// The problems of a run that is not over yet.
#[derive(Debug, Default)]
pub(crate) struct RunProblems {
    count: u64,
    first: Vec<RunProblem>,
}

impl RunProblem {
    fn new(code: &str, uri: &str, message: &str) -> Self {
        let short = |text: &str| {
            let text = without_logins(text).into_owned();
            let end = (0..=TEXT_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            text[..end.unwrap_or(0)].to_owned()
        };
        Self { code: code.to_owned(), uri: short(uri), message: short(message) }
    }
}

impl RunProblems {
    /// Adds a problem; counts it only, after twenty.
    pub(crate) fn add(&mut self, problem: &Problem<'_>) {
        self.count += 1;
        if self.first.len() < PROBLEMS_MAX {
            self.first.push(RunProblem::new(problem.code, problem.uri, problem.message));
        }
    }
}

impl LastRun {
    /// Reads the record of a copy; `None` if no run of this version has ended.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn read(mirror: &Mirror) -> Result<Option<Self>, Error> {
        let text = mirror.meta(KEY)?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Writes the record at the end of a run.
    pub(crate) fn keep(
        mirror: &Mirror,
        summary: &Summary,
        problems: RunProblems,
        failure: Option<(&str, &Error)>,
    ) -> Result<(), Error> {
        let before = Self::read(mirror)?.unwrap_or_default();
        let ended = now().to_string();
        let is_complete = failure.is_none()
            && summary.outcome() == ExitCode::Ok
            && summary.held + summary.failed + summary.skipped + summary.untried == 0
            && summary.not_handed_over == 0;
        let exit_code = failure.map_or(summary.exit_code, |(_, error)| error.exit_code().number());
        let record = Self {
            succeeded: if is_complete { Some(ended.clone()) } else { before.succeeded },
            changed: if summary.has_changes() { Some(ended.clone()) } else { before.changed },
            ended,
            exit_code,
            error: failure
                .map(|(url, error)| RunProblem::new(error.code(), url, &error.to_string())),
            milliseconds: (summary.seconds * 1e3) as u64,
            changes: summary.created + summary.updated + summary.deleted,
            bytes: summary.bytes,
            requests: summary.requests,
            retries: summary.retries,
            problem_count: problems.count,
            problems: problems.first,
        };
        let text = serde_json::to_string(&record).ok();
        Ok(mirror.set_meta(KEY, text.as_deref())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_keeps_the_time_of_the_last_success() {
        let mirror = Mirror::scratch().unwrap();
        assert_eq!(LastRun::read(&mirror).unwrap(), None);
        let error = Error::new("http.status", ExitCode::SourceInvalid, "no");
        let failed = Some(("http://h/", &error));
        LastRun::keep(&mirror, &Summary::default(), RunProblems::default(), failed).unwrap();
        let run = LastRun::read(&mirror).unwrap().unwrap();
        assert_eq!((run.succeeded, run.exit_code), (None, 4));
        let done = Summary { created: 1, ..Summary::default() };
        LastRun::keep(&mirror, &done, RunProblems::default(), None).unwrap();
        let first = LastRun::read(&mirror).unwrap().unwrap();
        assert!(first.succeeded.is_some() && first.changed == first.succeeded);
        let held = Summary { held: 1, ..Summary::default() };
        LastRun::keep(&mirror, &held, RunProblems::default(), None).unwrap();
        let second = LastRun::read(&mirror).unwrap().unwrap();
        assert_eq!((second.succeeded, second.changed), (first.succeeded, first.changed));
    }

    #[test]
    fn problems_are_counted_and_the_first_are_stored() {
        let mut problems = RunProblems::default();
        for number in 0..30 {
            let uri = format!("http://me:hush@h/{number}");
            let message = "x".repeat(1_000);
            problems.add(&Problem { code: "a", uri: &uri, message: &message });
        }
        assert_eq!((problems.count, problems.first.len()), (30, PROBLEMS_MAX));
        assert_eq!(problems.first[0].message.len(), TEXT_MAX);
        assert!(!problems.first[0].uri.contains("hush"));
    }
}
