//! Conditions that last over several runs: held deletions, failures, and documents that cannot be
//! used. Each has the time of its first run. The copy stores them, and each run updates them.

use crate::report::clock::now_seconds;
use crate::report::error::{Error, ExitCode};
use crate::report::events::Summary;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};

/// Key of the conditions in the database of the copy.
const LASTING: &str = "lasting";
/// Number of faults that are remembered. A fault that exceeds this number counts as new in each
/// run.
const FAULTS_MAX: usize = 100;

/// The conditions that the last run left. Times are W3C Datetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Lasting {
    /// Deletions that are held back.
    pub(crate) held: Option<Held>,
    /// Resources and documents that failed or were refused.
    pub(crate) failing: Option<Failing>,
    /// Documents that could not be used.
    pub(crate) faults: Vec<Fault>,
}

/// Deletions that are held back, with the time of the first run that held them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Held {
    /// The time of the first run that held deletions.
    pub(crate) since: String,
    /// Number of deletions that the first run held.
    pub(crate) number: u64,
    /// Number of resources of the copy before, if the deletions are held because they are too many.
    pub(crate) of: Option<u64>,
}

/// Failures and refusals, with the time of the first run that had some.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Failing {
    /// The time of the first run with failures.
    pub(crate) since: String,
    /// Number of failures and refusals in the first run.
    pub(crate) number: u64,
}

/// A document that no run could use since a certain time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    /// The code of the error.
    pub(crate) code: String,
    /// The URI of the document.
    pub(crate) uri: String,
    /// The time of the first run with the fault.
    pub(crate) since: String,
    /// Runs with the fault.
    pub(crate) runs: u64,
}

/// The conditions before a run, and the faults of the run.
#[derive(Debug, Default)]
pub(crate) struct Continued {
    before: Lasting,
    faults: Vec<Fault>,
    now: String,
    /// Number of resources of the copy if more deletions were due than allowed, else `None`.
    pub(crate) size: Option<u64>,
}

impl Lasting {
    /// Reads the conditions of a copy.
    pub(crate) fn read(mirror: &Mirror) -> Result<Self, Error> {
        let text = mirror.meta(LASTING)?.unwrap_or_default();
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        let text = serde_json::to_string(self).ok().filter(|_| *self != Self::default());
        if text != mirror.meta(LASTING)? {
            mirror.set_meta(LASTING, text.as_deref())?;
        }
        Ok(())
    }
}

impl Continued {
    /// Starts a run with the conditions of the last run.
    pub(crate) fn begin(mirror: &Mirror) -> Result<Self, Error> {
        let now = Timestamp::from_seconds(i64::try_from(now_seconds()).unwrap_or(0)).to_string();
        Ok(Self { before: Lasting::read(mirror)?, now, ..Self::default() })
    }

    /// Records a document that cannot be used. Returns the time of the first run with this fault if
    /// an earlier run had it.
    pub(crate) fn note(&mut self, code: &str, uri: &str) -> Option<&str> {
        let is_it = |fault: &Fault| fault.code == code && fault.uri == uri;
        let known = self.before.faults.iter().find(|fault| is_it(fault));
        if self.faults.len() < FAULTS_MAX && !self.faults.iter().any(is_it) {
            self.faults.push(Fault {
                code: code.to_owned(),
                uri: uri.to_owned(),
                since: known.map_or(&self.now, |fault| &fault.since).clone(),
                runs: known.map_or(0, |fault| fault.runs) + 1,
            });
        }
        known.map(|fault| fault.since.as_str())
    }

    /// Deletions that earlier runs held because there were more than allowed.
    pub(crate) fn held_before(&self) -> Option<&Held> {
        self.before.held.as_ref().filter(|held| held.of.is_some())
    }

    /// Ends a run and adds the times of the conditions to its `summary`. Without `has_looked`, the
    /// run requested no document, so it does not show that a fault ended.
    pub(crate) fn end(
        self,
        mirror: &Mirror,
        summary: &mut Summary,
        has_looked: bool,
    ) -> Result<(), Error> {
        let Self { before, faults, now, size } = self;
        let of = size.filter(|_| summary.delete_limit);
        let held = (summary.held > 0).then(|| match before.held {
            // The time at which the deletions became too many takes precedence.
            Some(held) if held.of.is_some() || of.is_none() => {
                Held { of: held.of.filter(|_| of.is_some()), ..held }
            }
            _ => Held { since: now.clone(), number: summary.held, of },
        });
        let number = summary.failed + summary.skipped;
        let failing = match before.failing {
            Some(failing) if number > 0 || !has_looked => Some(failing),
            _ => (number > 0).then_some(Failing { since: now, number }),
        };
        let faults = if has_looked { faults } else { before.faults };
        summary.held_since = held.as_ref().map(|held| held.since.clone());
        summary.failing_since =
            failing.as_ref().filter(|_| number > 0).map(|failing| failing.since.clone());
        if summary.dry_run {
            return Ok(());
        }
        Lasting { held, failing, faults }.keep(mirror)
    }

    /// Ends a run with an error about `url`.
    pub(crate) fn end_failed(
        mut self,
        mirror: &Mirror,
        url: &str,
        error: &Error,
    ) -> Result<(), Error> {
        if matches!(error.exit_code(), ExitCode::Cancelled | ExitCode::Usage) {
            return Ok(());
        }
        self.note(error.code(), url);
        let Self { before, mut faults, now, .. } = self;
        // This run ended early, so the other faults may still exist.
        for fault in before.faults {
            if faults.len() < FAULTS_MAX
                && !faults.iter().any(|new| new.code == fault.code && new.uri == fault.uri)
            {
                faults.push(fault);
            }
        }
        let failing = before.failing.unwrap_or(Failing { since: now, number: 1 });
        Lasting { held: before.held, failing: Some(failing), faults }.keep(mirror)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run at a time, with faults of documents and an outcome; the summary that it reports.
    fn run(
        mirror: &Mirror,
        now: &str,
        faults: &[&str],
        size: Option<u64>,
        [held, failed]: [u64; 2],
    ) -> Summary {
        let mut run = Continued::begin(mirror).unwrap();
        (run.now, run.size) = (now.to_owned(), size);
        for uri in faults {
            run.note("x", uri);
        }
        let delete_limit = size.is_some();
        let mut summary = Summary { failed, held, delete_limit, ..Summary::default() };
        run.end(mirror, &mut summary, true).unwrap();
        summary
    }

    #[test]
    fn held_deletions_last_since_they_became_too_many() {
        let mirror = Mirror::scratch().unwrap();
        for (now, size, held, since) in [
            ("1", None, 2, Some("1")),
            ("2", None, 3, Some("1")),
            ("3", Some(30), 20, Some("3")),
            ("4", Some(30), 21, Some("3")),
            ("5", None, 1, Some("3")),
            ("6", None, 0, None),
            ("7", Some(9), 8, Some("7")),
        ] {
            let summary = run(&mirror, now, &[], size, [held, 0]);
            assert_eq!(summary.held_since.as_deref(), since, "{now}");
            let noted = Lasting::read(&mirror).unwrap().held;
            assert_eq!(noted.and_then(|held| held.of), size, "{now}");
        }
        let noted = Lasting::read(&mirror).unwrap().held;
        assert_eq!(noted, Some(Held { since: "7".to_owned(), number: 8, of: Some(9) }));
    }

    #[test]
    fn a_fault_lasts_until_a_run_without_it() {
        let mirror = Mirror::scratch().unwrap();
        run(&mirror, "1", &["a", "b", "a"], None, [0, 2]);
        let summary = run(&mirror, "2", &["a"], None, [0, 1]);
        assert_eq!(summary.failing_since.as_deref(), Some("1"));
        let fault = |uri: &str, since: &str, runs| Fault {
            code: "x".to_owned(),
            uri: uri.to_owned(),
            since: since.to_owned(),
            runs,
        };
        assert_eq!(Lasting::read(&mirror).unwrap().faults, [fault("a", "1", 2)]);
        // A run without requests does not end the fault.
        let mut idle = Summary::default();
        Continued::begin(&mirror).unwrap().end(&mirror, &mut idle, false).unwrap();
        assert_eq!((idle.failing_since, Lasting::read(&mirror).unwrap().faults.len()), (None, 1));
        let mut again = Continued::begin(&mirror).unwrap();
        again.now = "3".to_owned();
        assert_eq!(again.note("x", "a"), Some("1"));
        assert_eq!(again.note("y", "a"), None);
        let error = Error::new("gone", ExitCode::SourceInvalid, "no list");
        again.end_failed(&mirror, "u", &error).unwrap();
        let uris: Vec<_> =
            Lasting::read(&mirror).unwrap().faults.into_iter().map(|fault| fault.uri).collect();
        assert_eq!(uris, ["a", "a", "u"]);
        assert_eq!(run(&mirror, "4", &[], None, [0, 0]).failing_since, None);
        assert_eq!(Lasting::read(&mirror).unwrap(), Lasting::default());
    }

    #[test]
    fn only_so_many_faults_are_remembered() {
        let mirror = Mirror::scratch().unwrap();
        let uris: Vec<String> = (0..FAULTS_MAX + 5).map(|number| number.to_string()).collect();
        let uris: Vec<&str> = uris.iter().map(String::as_str).collect();
        for _ in 0..2 {
            run(&mirror, "1", &uris, None, [0, 1]);
        }
        let faults = Lasting::read(&mirror).unwrap().faults;
        assert_eq!((faults.len(), faults[0].runs), (FAULTS_MAX, 2));
    }
}
