//! The part of a report on copies that the public may know.

use crate::status::report::{AuditStatus, CopyStatus, STATUS_VERSION, StatusReport};
use abreast_core::{Clock as _, SystemClock};
use abreast_webtypes::{Timestamp, W3cDatetime, without_login};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A copy of which no run ended for so long is stalled, unless the caller has another limit.
pub const STALLED_AFTER: Duration = Duration::from_secs(24 * 3_600);

/// The state of copies for the public. Times are W3C Datetimes, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublishedStatus {
    /// The constant text `published-status`, as in other JSON lines.
    #[serde(rename = "type")]
    pub kind: String,
    /// Version of this format, that of the report.
    pub version: u32,
    /// The time of the report.
    pub time: String,
    /// Whether all copies are in step.
    pub in_step: bool,
    /// The copies, in the order of the report.
    pub copies: Vec<PublishedCopy>,
    /// Number of copies that are left out.
    pub copies_left_out: u64,
}

/// The state of a copy for the public.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PublishedCopy {
    /// Name of the job, of the job and the set, or of the set; else the URL of the Source, or `copy`.
    pub name: String,
    /// URL of the Source, without login, query and fragment.
    pub source: Option<String>,
    /// `in step`, `incomplete` if a run ended and something is missing, or `stalled`.
    pub state: String,
    /// The time since which the copy is stalled, if it is and if that is known.
    pub stalled_since: Option<String>,
    /// End of the last run.
    pub last_run: Option<String>,
    /// End of the last run without failures, refusals and held deletions.
    pub last_success: Option<String>,
    /// End of the last run that changed the copy.
    pub last_change: Option<String>,
    /// The instant up to which the changes of the Source are known.
    pub cursor: Option<String>,
    /// Seconds since the copy was last known to have everything that its Source lists: 0 while
    /// nothing is known to be missing; absent if that never was.
    pub behind_seconds: Option<u64>,
    /// Whether nothing is known to be missing.
    pub complete: bool,
    /// Number of resources, counted up to 100,000.
    pub resources: u64,
    /// Whether there are more resources than were counted.
    pub resources_more: bool,
    /// Changes that are planned and not carried out yet.
    pub pending: u64,
    /// Resources that failed in the last run.
    pub failed: u64,
    /// Deletions that are held back.
    pub held_deletions: u64,
    /// Codes of the problems of the last run.
    pub problems: Vec<String>,
    /// The last audit that came to its end.
    pub last_audit: Option<AuditStatus>,
}

impl PublishedStatus {
    /// Leaves out of a report all that may be private. A copy is stalled if its last run ended with an error, if its process
    /// hangs, or if no run ended for `stalled_after`.
    pub fn new(report: &StatusReport, stalled_after: Duration) -> Self {
        let now = SystemClock.now();
        let of = |copy: &CopyStatus| PublishedCopy::new(copy, now, stalled_after);
        let mut copies: Vec<PublishedCopy> = report.copies.iter().map(of).collect();
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        for copy in &mut copies {
            let number = names.entry(copy.name.clone()).or_default();
            *number += 1;
            if *number > 1 {
                copy.name = format!("{} ({number})", copy.name);
            }
        }
        Self {
            kind: "published-status".to_owned(),
            version: STATUS_VERSION,
            time: report.time.clone(),
            in_step: report.copies_left_out == 0
                && copies.iter().all(|copy| copy.state == "in step"),
            copies,
            copies_left_out: report.copies_left_out,
        }
    }
}

impl PublishedCopy {
    fn new(copy: &CopyStatus, now: Timestamp, stalled_after: Duration) -> Self {
        let source = copy.source.as_deref().map(public_url);
        let name = match (&copy.job, &copy.set) {
            (Some(job), Some(set)) => format!("{job}/{set}"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => source.clone().unwrap_or_else(|| "copy".to_owned()),
        };
        let complete = copy.behind_seconds == Some(0);
        let is_working = matches!(copy.state.as_str(), "running" | "following");
        let stops = matches!(copy.state.as_str(), "hung" | "ended");
        // Partial success, held deletions, a limit of the run, and a run that was stopped: the next run continues.
        let fails =
            copy.run.as_ref().is_none_or(|run| !matches!(run.exit_code, 0 | 3 | 7 | 8 | 130));
        let limit = stalled_after.as_secs();
        let age = copy.last_run.as_deref().and_then(|text| seconds_until(now, text));
        let is_old = !is_working && age.is_none_or(|age| age >= limit);
        let first_run = is_working && copy.run.is_none();
        let (state, stalled_since) = if (stops || fails) && !first_run {
            let since = copy.last_success.clone().or_else(|| copy.failing_since.clone());
            ("stalled", since)
        } else if is_old && !first_run {
            ("stalled", copy.last_run.clone())
        } else if complete {
            ("in step", None)
        } else {
            ("incomplete", None)
        };
        let behind_seconds = if state == "stalled" {
            copy.last_success.as_deref().and_then(|text| seconds_until(now, text))
        } else {
            copy.behind_seconds
        };
        let codes: BTreeSet<&str> = copy.problems.iter().map(|one| one.code.as_str()).collect();
        Self {
            name,
            source,
            state: state.to_owned(),
            stalled_since,
            last_run: copy.last_run.clone(),
            last_success: copy.last_success.clone(),
            last_change: copy.last_change.clone(),
            cursor: copy.cursor.clone(),
            behind_seconds,
            complete,
            resources: copy.resources,
            resources_more: copy.resources_more,
            pending: copy.pending,
            failed: copy.failed,
            held_deletions: copy.held_deletions,
            problems: codes.into_iter().map(str::to_owned).collect(),
            last_audit: copy.last_audit.clone(),
        }
    }
}

/// A URL without login, query and fragment, each of which may contain a secret.
fn public_url(url: &str) -> String {
    let url = without_login(url);
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Seconds from a time, a W3C Datetime, until now.
fn seconds_until(now: Timestamp, text: &str) -> Option<u64> {
    let then = W3cDatetime::parse(text.as_bytes()).ok()?.instant;
    Some(u64::try_from((now.as_micros() - then.as_micros()) / 1_000_000).unwrap_or(0))
}
