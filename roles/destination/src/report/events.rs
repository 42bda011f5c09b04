//! Events: what a run reports while it works and at its end, for people and for `--json`.

use crate::report::clock::earlier;
use crate::report::error::{Error, ExitCode, without_help};
use crate::report::heartbeat::Heartbeat;
use abreast_core::Meter;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// Receives the events of a run, in order, on the thread that runs the synchronisation.
pub trait Observer {
    /// Receives one event of the run.
    fn event(&self, event: &Event<'_>);

    /// Whether the observer uses [`Event::Item`]. If not, the run does not compute the paths of
    /// resources for these events.
    fn wants_items(&self) -> bool {
        true
    }

    /// The run of one set of several ended, with its error if it failed. A run of a single set
    /// returns its error and does not call this method.
    fn ended(&self, _error: Option<&Error>) {}

    /// A run of a follower ended, with its error if it failed; the follower now waits until the next
    /// run is due.
    fn attempted(&self, _error: Option<&Error>) {}

    /// The value that the runs of a follower use in place of
    /// [`SyncOptions::heartbeat`](crate::SyncOptions::heartbeat).
    fn heartbeat(&self) -> Option<Heartbeat> {
        None
    }

    /// The meter that shows the progress of the run, also between events; by default none.
    fn meter(&self) -> Meter {
        Meter::default()
    }
}

impl<F: Fn(&Event<'_>)> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: &Event<'_>) {}

    fn wants_items(&self) -> bool {
        false
    }
}

/// An event of a run; as JSON an object with `type`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event<'a> {
    /// Progress of the run, at most ten events a second.
    Status(Status<'a>),
    /// The run has processed one resource; in a dry run, would process it.
    Item(Item<'a>),
    /// A resource or document failed; the run continues.
    Error(Problem<'a>),
    /// The decision of the filters about a resource.
    Filter(Filtered<'a>),
    /// An observation that is not a failure; the run continues.
    Notice(Problem<'a>),
    /// The outcome of the run, as its last event.
    Summary(&'a Summary),
    /// The outcome of an audit, as its last event.
    Audit(&'a crate::report::audited::AuditReport),
}

/// Progress of a run within its current phase.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Status<'a> {
    /// The phase: `reading`, `fetching`, `deleting`, `comparing` or `waiting`.
    pub phase: &'a str,
    /// Resources dealt with in this phase.
    pub done: u64,
    /// Resources to deal with in this phase; 0 when not known.
    pub total: u64,
    /// Bytes received since the start of the run.
    pub bytes: u64,
    /// Listed bytes to receive; 0 when not known.
    pub total_bytes: u64,
    /// Seconds since the start of the phase.
    pub seconds: f64,
}

/// One resource that a run processed or an audit compared.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Item<'a> {
    /// The URI of the resource.
    pub uri: &'a str,
    /// The address of the request, if it differs from the URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub href: Option<&'a str>,
    /// The path of the resource in the folder.
    pub path: &'a str,
    /// The action on the resource, or the difference that an audit found.
    #[serde(rename = "change")]
    pub action: ItemAction,
    /// Bytes received for this resource.
    pub bytes: u64,
}

impl<'a> Item<'a> {
    /// A resource without a separate path.
    pub(crate) const fn new(uri: &'a str, action: ItemAction) -> Self {
        Self { uri, href: None, path: uri, action, bytes: 0 }
    }
}

/// The action on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ItemAction {
    /// The copy did not contain the resource.
    Created,
    /// The copy contained the resource with other bytes.
    Updated,
    /// The resource was removed from the copy.
    Deleted,
    /// The bytes were up to date; at most the file's time was set, or an existing file was adopted.
    Unchanged,
    /// In a dry run: a deletion that a run would hold back.
    Held,
    /// In an audit: the resource is listed and not stored.
    Missing,
    /// In an audit: the resource is stored and not listed.
    Extra,
    /// In an audit: the resource is stored with other bytes or another time than listed.
    Different,
}

/// The decision of the filters about a resource.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Filtered<'a> {
    /// The URI of the resource.
    pub uri: &'a str,
    /// The path that rules are matched against; empty when no rule tests paths.
    pub path: &'a str,
    /// Whether the filters include the resource.
    pub taken: bool,
    /// The rule or option that decided.
    pub rule: &'a str,
}

/// A failure or a notice. As JSON the text after `help:` is a separate field.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The stable code, for example `fixity.mismatch`.
    pub code: &'a str,
    /// The URI of the resource or document.
    pub uri: &'a str,
    /// The cause, and how to solve it.
    pub message: &'a str,
}

impl Serialize for Problem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (message, help) = without_help(self.message);
        let mut fields = serializer.serialize_struct("Problem", 4)?;
        fields.serialize_field("code", self.code)?;
        fields.serialize_field("uri", self.uri)?;
        fields.serialize_field("message", message)?;
        match help {
            Some(help) => fields.serialize_field("help", help)?,
            None => fields.skip_field("help")?,
        }
        fields.end()
    }
}

/// How a run determined the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// The whole copy was compared with the Source's list of resources.
    Baseline,
    /// The changes that the Source lists were applied.
    Incremental,
    /// Nothing has changed at the Source.
    #[default]
    Unchanged,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// How the run determined the changes.
    pub mode: Mode,
    /// Whether the run only reported its actions, without changing the copy.
    pub dry_run: bool,
    /// Resources that the copy did not contain before.
    pub created: u64,
    /// Resources with other bytes than before.
    pub updated: u64,
    /// Created and updated resources that were made with patches from a feed, without a request.
    pub patched: u64,
    /// Resources that were removed from the copy.
    pub deleted: u64,
    /// Resources compared and found up to date; 0 when nothing has changed at the Source.
    pub unchanged: u64,
    /// Resources that are not changed because the filters exclude them.
    pub excluded: u64,
    /// Resources that the filters take; counted only when filters are tested.
    pub selected: u64,
    /// Resources due that were not tried, since a limit of failures, bytes or time ended the run.
    pub untried: u64,
    /// Resources refused: no safe path, another host, no digest under `--require-fixity`.
    pub skipped: u64,
    /// Resources that could not be fetched, and lists that could not be read.
    pub failed: u64,
    /// Deletions held back: after failures, or beyond the limit.
    pub held: u64,
    /// Changes of the copy that the command of
    /// [`SyncOptions::on_change`](crate::SyncOptions::on_change) did not accept in several tries; the
    /// next run gives them to it again.
    pub not_handed_over: u64,
    /// The time of the first run that held deletions back, as a W3C Datetime.
    pub held_since: Option<String>,
    /// The time of the first of the uninterrupted runs with failures or refusals, as a W3C
    /// Datetime.
    pub failing_since: Option<String>,
    /// Resources whose stored bytes were missing or changed.
    pub damaged: u64,
    /// Resources that were stored without a digest for verification.
    pub unverified: u64,
    /// Statements that the copy lacks because they are not valid and were left out, in this run or
    /// before.
    pub invalid_statements: u64,
    /// Statements that were left out in this run.
    #[serde(skip)]
    pub newly_invalid: u64,
    /// Bytes received in all requests of the run.
    pub bytes: u64,
    /// Number of requests that the run sent.
    pub requests: u64,
    /// Number of these requests that repeated another one after a transient failure.
    pub retries: u64,
    /// Number of [`Event::Notice`] in the run.
    pub notices: u64,
    /// The instant up to which the changes of the Source are known, as a W3C Datetime.
    pub cursor: Option<String>,
    /// Duration of the run, in seconds.
    pub seconds: f64,
    /// More deletions were due than allowed.
    pub delete_limit: bool,
    /// Too many resources failed, or a limit of bytes or time was reached; the rest was not tried.
    pub budget_spent: bool,
    /// The number of the exit code of [`Self::outcome`].
    pub exit_code: u8,
}

impl Summary {
    /// The exit code for this outcome.
    pub const fn outcome(&self) -> ExitCode {
        if self.budget_spent {
            ExitCode::Limit
        } else if self.delete_limit {
            ExitCode::DeleteLimit
        } else if self.failed + self.skipped + self.newly_invalid + self.not_handed_over > 0 {
            ExitCode::Partial
        } else {
            ExitCode::Ok
        }
    }

    /// Adds the counts of the run of another set, and keeps the exit code.
    pub fn add(&mut self, run: &Self) {
        self.mode = match (self.mode, run.mode) {
            (Mode::Baseline, _) | (_, Mode::Baseline) => Mode::Baseline,
            (Mode::Incremental, _) | (_, Mode::Incremental) => Mode::Incremental,
            _ => Mode::Unchanged,
        };
        for (sum, part) in [
            (&mut self.created, run.created),
            (&mut self.updated, run.updated),
            (&mut self.patched, run.patched),
            (&mut self.deleted, run.deleted),
            (&mut self.unchanged, run.unchanged),
            (&mut self.excluded, run.excluded),
            (&mut self.selected, run.selected),
            (&mut self.skipped, run.skipped),
            (&mut self.failed, run.failed),
            (&mut self.held, run.held),
            (&mut self.not_handed_over, run.not_handed_over),
            (&mut self.damaged, run.damaged),
            (&mut self.unverified, run.unverified),
            (&mut self.untried, run.untried),
            (&mut self.invalid_statements, run.invalid_statements),
            (&mut self.newly_invalid, run.newly_invalid),
            (&mut self.bytes, run.bytes),
            (&mut self.requests, run.requests),
            (&mut self.retries, run.retries),
            (&mut self.notices, run.notices),
        ] {
            *sum += part;
        }
        self.held_since = earlier(self.held_since.take(), run.held_since.clone());
        self.failing_since = earlier(self.failing_since.take(), run.failing_since.clone());
        self.delete_limit |= run.delete_limit;
        self.budget_spent |= run.budget_spent;
    }

    /// Whether the run applied any change of the Source.
    pub(crate) const fn has_changes(&self) -> bool {
        self.created + self.updated + self.patched + self.deleted > 0
    }

    /// Whether the run neither changed the copy nor found a fault, so that no report is due.
    pub(crate) fn is_idle(&self) -> bool {
        let counts = [self.created, self.updated, self.deleted, self.held, self.damaged];
        self.outcome() == ExitCode::Ok && counts == [0; 5]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_of_a_run_is_added() {
        // Every field is named, so that a new field is considered here too.
        let run = Summary {
            mode: Mode::Incremental,
            dry_run: false,
            created: 1,
            updated: 1,
            patched: 1,
            deleted: 1,
            unchanged: 1,
            excluded: 1,
            selected: 1,
            untried: 1,
            skipped: 1,
            failed: 1,
            held: 1,
            not_handed_over: 1,
            held_since: None,
            failing_since: None,
            damaged: 1,
            unverified: 1,
            invalid_statements: 1,
            newly_invalid: 1,
            bytes: 1,
            requests: 1,
            retries: 1,
            notices: 1,
            cursor: None,
            seconds: 0.0,
            delete_limit: false,
            budget_spent: false,
            exit_code: 0,
        };
        let mut sum = run.clone();
        sum.add(&run);
        assert_eq!(sum.newly_invalid, 2);
        let counts = serde_json::to_value(&sum).unwrap();
        for (name, count) in counts.as_object().unwrap() {
            if count.as_u64().is_some() && name != "exit_code" {
                assert_eq!(count, 2, "{name}");
            }
        }
    }
}
