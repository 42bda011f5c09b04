//! The state of copies for the public, in a folder: as JSON, as RDF and as a page.
//!
//! It has no paths, no processes and no texts of problems, which may name either or contain a secret.

mod page;
mod turtle;

use super::report::{AuditStatus, CopyStatus, STATUS_VERSION, StatusReport};
use crate::place::{Context as _, Result};
use abreast_core::{Clock as _, SystemClock};
use abreast_webtypes::{Timestamp, W3cDatetime, without_login};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::Permissions;
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

/// Names of the files of a published state.
const FILES: [&str; 3] = ["status.json", "status.ttl", "index.html"];
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
    /// The copies.
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
    /// Changes that are planned.
    pub pending: u64,
    /// Resources that failed.
    pub failed: u64,
    /// Deletions that are held back.
    pub held_deletions: u64,
    /// Codes of the problems of the last run.
    pub problems: Vec<String>,
    /// The last audit.
    pub last_audit: Option<AuditStatus>,
}

impl PublishedStatus {
    /// What the public may know of a report. A copy is stalled if its last run ended with an error, if its process
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

    /// Writes the state into a folder, which is made if it does not exist. Each file is replaced in one step.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn publish(&self, folder: &Path) -> Result<()> {
        let json = serde_json::to_vec(self).map_err(io::Error::other);
        let texts = [json, turtle::text(self), Ok(page::text(self).into_bytes())];
        let task = || format!("cannot publish the state in `{}`", folder.display());
        std::fs::create_dir_all(folder).with_context(task)?;
        for (name, text) in FILES.into_iter().zip(texts) {
            let task = || format!("cannot publish the state as `{}`", folder.join(name).display());
            text.and_then(|text| replace(folder, name, &text)).with_context(task)?;
        }
        Ok(())
    }
}

/// Replaces a file that everyone may read.
fn replace(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new()
        .prefix(".status-")
        .permissions(Permissions::from_mode(0o644))
        .tempfile_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(folder.join(name)).map_err(|error| error.error)?;
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::report::{CopyRun, ProblemStatus};

    fn copy() -> CopyStatus {
        let now = SystemClock.now().to_string();
        CopyStatus {
            place: "/home/me/secret".to_owned(),
            source: Some("http://me:hush@h/a/?key=hush#hush".to_owned()),
            state: "stopped".to_owned(),
            last_run: Some(now.clone()),
            last_success: Some(now),
            behind_seconds: Some(0),
            resources: 3,
            run: Some(CopyRun::default()),
            ..CopyStatus::default()
        }
    }

    fn published(copy: CopyStatus) -> PublishedStatus {
        let mut report = StatusReport::new("0", SystemClock.now().to_string());
        report.copies.push(copy);
        PublishedStatus::new(&report, STALLED_AFTER)
    }

    fn state(copy: CopyStatus) -> (String, Option<String>) {
        let copy = published(copy).copies.remove(0);
        (copy.state, copy.stalled_since)
    }

    #[test]
    fn a_copy_is_in_step_incomplete_or_stalled() {
        let old = "2020-01-01T00:00:00Z".to_owned();
        let with = |change: &dyn Fn(&mut CopyStatus)| {
            let mut one = copy();
            change(&mut one);
            state(one)
        };
        let stalled = || ("stalled".to_owned(), Some(old.clone()));
        assert_eq!(with(&|_| {}).0, "in step");
        assert_eq!(with(&|copy| copy.behind_seconds = Some(9)).0, "incomplete");
        assert_eq!(with(&|copy| copy.last_run = Some(old.clone())), stalled());
        let fails = |code: u8| CopyRun { exit_code: code, ..CopyRun::default() };
        let failed = |copy: &mut CopyStatus| {
            (copy.run, copy.last_success) = (Some(fails(5)), Some(old.clone()));
        };
        assert_eq!(with(&failed), stalled());
        let hung = |copy: &mut CopyStatus| {
            (copy.state, copy.last_success) = ("hung".to_owned(), Some(old.clone()));
        };
        assert_eq!(with(&hung), stalled());
        let follows = |copy: &mut CopyStatus| {
            (copy.state, copy.last_run) = ("following".to_owned(), Some(old.clone()));
        };
        assert_eq!(with(&follows).0, "in step");
        let first = |copy: &mut CopyStatus| {
            *copy = CopyStatus { state: "running".to_owned(), ..CopyStatus::default() };
        };
        assert_eq!(with(&first).0, "incomplete");
        let never = |copy: &mut CopyStatus| {
            *copy = CopyStatus { state: "stopped".to_owned(), ..CopyStatus::default() };
        };
        assert_eq!(with(&never), ("stalled".to_owned(), None));
    }

    #[test]
    fn what_is_private_is_in_no_file() {
        let place = tempfile::tempdir().unwrap();
        let mut one = copy();
        one.run = Some(CopyRun { exit_code: 5, ..CopyRun::default() });
        one.problems.push(ProblemStatus {
            code: "http.status".to_owned(),
            uri: "http://h/secret".to_owned(),
            message: "secret".to_owned(),
        });
        published(one).publish(place.path()).unwrap();
        let mut names: Vec<String> = Vec::new();
        for entry in std::fs::read_dir(place.path()).unwrap().flatten() {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            assert!(!text.contains("hush") && !text.contains("secret"), "{text}");
            assert!(text.contains("http://h/a/"), "{text}");
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o044, 0o044);
            names.push(entry.file_name().into_string().unwrap());
        }
        names.sort();
        assert_eq!(names, ["index.html", "status.json", "status.ttl"]);
        let page = std::fs::read_to_string(place.path().join("index.html")).unwrap();
        for element in ["dl", "section", "main", "dt", "dd", "p"] {
            let count = |tag: String| page.matches(&tag).count();
            let begun = count(format!("<{element}>")) + count(format!("<{element} "));
            assert_eq!(begun, count(format!("</{element}>")), "{element}: {page}");
        }
    }

    #[test]
    fn two_copies_of_a_source_have_two_names() {
        let mut report = StatusReport::new("0", String::new());
        report.copies = vec![copy(), copy()];
        let published = PublishedStatus::new(&report, STALLED_AFTER);
        let names: Vec<&str> = published.copies.iter().map(|copy| &*copy.name).collect();
        assert_eq!(names, ["http://h/a/", "http://h/a/ (2)"]);
    }
}
