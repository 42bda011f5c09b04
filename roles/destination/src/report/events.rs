//! Events: what a run reports while it works and at its end, for people and for `--json`.

use crate::report::error::{ExitCode, without_help};
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// Receives what happens. Called on the thread that runs the synchronisation, in order.
pub trait Observer {
    /// Something happened.
    fn event(&self, event: &Event<'_>);

    /// Whether [`Event::Item`] is of use: where it is not, no resource's path is put into words for
    /// it.
    fn wants_items(&self) -> bool {
        true
    }
}

impl<F: Fn(&Event<'_>)> Observer for F {
    fn event(&self, event: &Event<'_>) {
        self(event);
    }
}

/// Observes nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: &Event<'_>) {}

    fn wants_items(&self) -> bool {
        false
    }
}

/// One thing that happened; as JSON an object with `type`.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[non_exhaustive]
pub enum Event<'a> {
    /// How far the run is; at most ten a second.
    Status(Status<'a>),
    /// One resource was dealt with, or in a dry run would be.
    Item(Item<'a>),
    /// One resource or document failed; the run continues.
    Error(Problem<'a>),
    /// How the filters decide about one resource.
    Filter(Filtered<'a>),
    /// Something worth knowing.
    Notice(Problem<'a>),
    /// The end.
    Summary(&'a Summary),
    /// The end of an audit.
    Audit(&'a crate::report::audited::AuditReport),
}

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Status<'a> {
    /// The phase: `reading`, `fetching`, `deleting`, `comparing` or `waiting`.
    pub phase: &'a str,
    /// Resources dealt with in this phase.
    pub done: u64,
    /// Resources to deal with in this phase; 0 when not known.
    pub total: u64,
    /// Bytes received so far.
    pub bytes: u64,
    /// Listed bytes to receive; 0 when not known.
    pub total_bytes: u64,
    /// Seconds since the phase began.
    pub seconds: f64,
}

/// One resource.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Item<'a> {
    /// Its URI.
    pub uri: &'a str,
    /// The address that it is requested at, where that is not the URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub href: Option<&'a str>,
    /// Its path in the folder.
    pub path: &'a str,
    /// The action.
    #[serde(rename = "change")]
    pub action: ItemAction,
    /// Bytes received for it.
    pub bytes: u64,
}

impl<'a> Item<'a> {
    /// A resource without a path of its own.
    pub(crate) const fn new(uri: &'a str, action: ItemAction) -> Self {
        Self { uri, href: None, path: uri, action, bytes: 0 }
    }
}

/// The action on a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ItemAction {
    /// It is new.
    Created,
    /// It has other bytes than before.
    Updated,
    /// It is here no longer.
    Deleted,
    /// It was right already; only its time was set, or a file found here was taken over.
    Unchanged,
    /// Dry run: it would be deleted, but its deletion is held back.
    Held,
    /// Audit: listed, not here.
    Missing,
    /// Audit: here, not listed.
    Extra,
    /// Audit: here with other bytes or another time.
    Different,
}

/// How the filters decide about one resource.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Filtered<'a> {
    /// Its URI.
    pub uri: &'a str,
    /// The path that rules are matched against; empty when no rule tests paths.
    pub path: &'a str,
    /// Whether it is taken.
    pub taken: bool,
    /// The rule or option that decided.
    pub rule: &'a str,
}

/// A failure or a notice. As JSON the text after `help:` is a field of its own.
#[derive(Clone, Copy, Debug)]
pub struct Problem<'a> {
    /// The stable code, for example `fixity.mismatch`.
    pub code: &'a str,
    /// The resource or document.
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

/// Which way a run took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All was compared with what the Source lists.
    Baseline,
    /// The Change Lists were followed.
    Incremental,
    /// Nothing has changed at the Source.
    #[default]
    Unchanged,
}

/// The outcome of a run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// Which way it took.
    pub mode: Mode,
    /// Whether nothing was done, only shown.
    pub dry_run: bool,
    /// New resources.
    pub created: u64,
    /// Resources with other bytes than before.
    pub updated: u64,
    /// How many of both were made with patches that came with a feed, without a request.
    pub patched: u64,
    /// Resources removed.
    pub deleted: u64,
    /// Resources compared and found up to date; 0 when nothing has changed at the Source.
    pub unchanged: u64,
    /// Resources left alone because the filters exclude them.
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
    /// Since when deletions are held back, as a W3C Datetime.
    pub held_since: Option<String>,
    /// Since when each run had failures or refusals, as a W3C Datetime.
    pub failing_since: Option<String>,
    /// Resources whose copy here was found missing or altered.
    pub damaged: u64,
    /// Resources stored without a digest to check them by.
    pub unverified: u64,
    /// Statements that the copy lacks, since they are not valid and were left out, in this run or before.
    pub invalid_statements: u64,
    /// Statements that were left out in this run.
    #[serde(skip)]
    pub newly_invalid: u64,
    /// Bytes received, all together.
    pub bytes: u64,
    /// Requests sent.
    pub requests: u64,
    /// Notices given.
    pub notices: u64,
    /// Up to which instant the Source's changes are known, as a W3C Datetime.
    pub cursor: Option<String>,
    /// Seconds taken.
    pub seconds: f64,
    /// More deletions were due than allowed.
    pub delete_limit: bool,
    /// Too many resources failed, or a limit of bytes or time was reached; the rest was not tried.
    pub budget_spent: bool,
    /// The exit code.
    pub exit_code: u8,
}

impl Summary {
    /// With which code the program ends.
    pub const fn outcome(&self) -> ExitCode {
        if self.budget_spent {
            ExitCode::Limit
        } else if self.delete_limit {
            ExitCode::DeleteLimit
        } else if self.failed + self.skipped + self.newly_invalid > 0 {
            ExitCode::Partial
        } else {
            ExitCode::Ok
        }
    }

    /// Whether anything of the Source had changed.
    pub(crate) const fn has_changes(&self) -> bool {
        self.created + self.updated + self.patched + self.deleted > 0
    }

    /// Whether there is nothing to report.
    pub(crate) fn is_idle(&self) -> bool {
        let counts = [self.created, self.updated, self.deleted, self.held, self.damaged];
        self.outcome() == ExitCode::Ok && counts == [0; 5]
    }
}
