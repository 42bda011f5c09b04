//! The report on stores, copies and hubs. As JSON it has the schema `docs/status.schema.json`.

use crate::place::DatabaseStatus;
use serde::{Deserialize, Serialize};

/// Version of the report in JSON. Fields may be added in the same version.
pub const STATUS_VERSION: u32 = 1;
/// Most sets of a store, topics of a hub, and copies in a report.
const LISTED_MAX: usize = 500;
/// Most bytes in the URIs of held deletions of a store, and in its followers.
const NAMES_MAX: usize = 64 << 10;
/// Bytes of a follower in JSON, without its texts.
const FOLLOWER_BYTES: usize = 200;

/// A report on stores, copies and hubs. Times are W3C Datetimes, in UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusReport {
    /// The constant text `status-report`, as in other JSON lines.
    #[serde(rename = "type")]
    pub kind: String,
    /// Version of this format: [`STATUS_VERSION`].
    pub version: u32,
    /// Version of the program that made the report.
    pub program: String,
    /// The time of the report.
    pub time: String,
    /// Whether there is no condition in [`Attention`].
    pub healthy: bool,
    /// Stores of Sources and hubs.
    pub stores: Vec<StoreStatus>,
    /// Copies of the given folders and jobs.
    pub copies: Vec<CopyStatus>,
    /// Further conditions, which do not belong to a store, set or copy.
    pub attention: Vec<Attention>,
    /// Number of copies that are left out, because a report has at most 500.
    pub copies_left_out: u64,
}

/// A condition that an operator has to know, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// The condition, as a text in one line.
    pub message: String,
    /// The next step, such as a command.
    pub help: String,
}

/// The store of a Source or of a hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreStatus {
    /// The folder of the store, the URL of its database, or the URL of the server that was asked.
    pub place: String,
    /// `serving`, `stopped`, `in use` by a process that does not report its status, or `unreachable` for
    /// a database that does not answer.
    pub state: String,
    /// The process that uses the store.
    pub process: Option<u32>,
    /// The public base URL, if it is known.
    pub url: Option<String>,
    /// Disk space, if it is known.
    pub disk: Option<DiskUse>,
    /// The database, if the store is in one that several nodes share.
    #[serde(default)]
    pub database: Option<DatabaseStatus>,
    /// The sets of the store, at most 500.
    pub sets: Vec<SetStatus>,
    /// Number of sets that are left out, because a report has at most 500 of a store.
    pub sets_left_out: u64,
    /// The deliveries of notifications, if the store has a hub.
    pub hub: Option<HubStatus>,
    /// The clients that follow the sets without being subscribers, the last to ask first, at most 100;
    /// only of a running server.
    #[serde(default)]
    pub followers: Vec<FollowerStatus>,
    /// Number of followers that are left out.
    #[serde(default)]
    pub followers_left_out: u64,
    /// Conditions of the store as a whole.
    pub attention: Vec<Attention>,
}

/// A client that follows a set: it asks for the newest changes, or has a stream of notifications open.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowerStatus {
    /// Name of a client in `[[known]]`, or an address.
    pub client: String,
    /// The program of the client, from `User-Agent`; empty without this field.
    pub program: String,
    /// Name of the set, or URL of the topic of a stream.
    pub of: String,
    /// `poll` for requests, `stream` for an open event stream.
    pub by: String,
    /// Time of the last request.
    pub last_request: String,
    /// Changes since the last request, or notifications that were not yet sent to the stream; absent if
    /// the number is not known.
    pub behind: Option<u64>,
}

/// Disk space of a store, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUse {
    /// The databases with their write-ahead logs.
    pub databases: u64,
    /// Stored contents of resources and their versions, as the store counts them.
    pub contents: u64,
    /// Packages of all dumps of the sets.
    pub dumps: u64,
    /// Free space of the file system.
    pub free: Option<u64>,
}

/// A set of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetStatus {
    /// Name of the set in URLs.
    pub name: String,
    /// `ready`, `reading`, `incomplete`, `held`, `confirmed`, `missing` or `failed`; `stopped` if the
    /// set is not being served.
    pub state: String,
    /// Number of resources in the set now.
    pub resources: u64,
    /// Position of the last change in the log.
    pub position: u64,
    /// Time of the last change.
    pub last_change: Option<String>,
    /// End of the last full scan of this process.
    pub last_scan: Option<String>,
    /// Files and folders that the last full scan could not read.
    pub unreadable_files: u64,
    /// Deletions that wait for a confirmation.
    pub held_deletions: u64,
    /// URIs of some of these resources, at most 20.
    #[serde(default)]
    pub held: Vec<String>,
    /// Subscribers, other hubs included, of the notifications of the set; absent without a hub.
    pub subscribers: Option<u64>,
    /// Notifications that the subscriber furthest behind lacks.
    pub subscribers_lag: Option<u64>,
    /// Age in seconds of the oldest notification that a subscriber lacks.
    pub subscribers_lag_seconds: Option<u64>,
    /// Dumps, if the set has any.
    pub dumps: Option<DumpUse>,
    /// Bytes of the stored contents, if the set stores earlier versions.
    pub versions_bytes: Option<u64>,
    /// Conditions that an operator has to know.
    pub attention: Vec<Attention>,
}

/// The dumps of a set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpUse {
    /// Number of packages of all dumps.
    pub packages: u64,
    /// Length of the packages in bytes.
    pub bytes: u64,
    /// Time of the newest package.
    pub newest: Option<String>,
}

/// The deliveries of a hub, and failures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HubStatus {
    /// Number of topics of the hub.
    pub topics: u64,
    /// Number of subscriptions and hubs to notify.
    pub targets: u64,
    /// Targets to which the last attempt failed.
    pub failing: u64,
    /// The targets with the longest failures, at most 20.
    pub failing_targets: Vec<FailingTarget>,
    /// Notifications that were given up; consecutive ones of a target count once.
    pub dead_letters: u64,
    /// Subscriptions of the last 7 days that ended because the subscriber is gone or did not renew
    /// them.
    pub dead_subscriptions: u64,
    /// Deliveries since the start of the process; absent if it is stopped.
    pub delivered: Option<u64>,
    /// Failed deliveries since the start of the process; absent if it is stopped.
    pub failed: Option<u64>,
    /// Topics with targets that lack notifications, the furthest behind first, at most 20.
    pub behind: Vec<TopicStatus>,
    /// Conditions that an operator has to know.
    pub attention: Vec<Attention>,
}

/// A target to which the last attempt failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingTarget {
    /// The target's number in the store.
    pub id: i64,
    /// The URL of the callback or hub.
    pub address: String,
    /// The URL of the topic, as subscribers use it.
    pub topic: String,
    /// Failed attempts in a row.
    pub attempts: u64,
    /// Time of the first of these attempts.
    pub since: Option<String>,
    /// Reason of the last failed attempt.
    pub error: Option<String>,
}

/// A topic with targets that lack notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopicStatus {
    /// The URL of the topic, as subscribers use it.
    pub url: String,
    /// Number of targets of the topic.
    pub targets: u64,
    /// Targets that lack a notification.
    pub behind: u64,
    /// Notifications that the target furthest behind lacks.
    pub lag: u64,
    /// Age in seconds of the oldest of them.
    pub lag_seconds: Option<u64>,
}

/// A copy and its last run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyStatus {
    /// The folder or database of the copy.
    pub place: String,
    /// Name of the job, if the copy has one.
    pub job: Option<String>,
    /// Name of the set, if the copy is one of all sets of a Source.
    pub set: Option<String>,
    /// URL of the Source, without a login.
    pub source: Option<String>,
    /// `following` (waits for changes), `running`, `stopped`, `ended` (the follower of this set
    /// stopped), `hung`, or `in use` by a process that does not report its status.
    pub state: String,
    /// The process that uses the copy.
    pub process: Option<u32>,
    /// Phase of the current run, if one is running.
    pub phase: Option<String>,
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
    /// Number of resources, counted up to 100,000.
    pub resources: u64,
    /// Whether there are more resources than were counted.
    pub resources_more: bool,
    /// Changes that are planned, counted up to 100,000 items of the plan.
    pub pending: u64,
    /// Resources that failed, counted in the same way.
    pub failed: u64,
    /// Whether the plan has more items than were counted.
    pub pending_more: bool,
    /// The first problems of the last run, at most 20.
    pub problems: Vec<ProblemStatus>,
    /// Number of problems of the last run.
    pub problem_count: u64,
    /// Deletions that are held back.
    pub held_deletions: u64,
    /// Time of the first run that held them.
    pub held_since: Option<String>,
    /// Time of the first of the uninterrupted runs with failures.
    pub failing_since: Option<String>,
    /// The work of the last run.
    pub run: Option<CopyRun>,
    /// Sum of the runs of the process; absent if it is stopped.
    pub since_start: Option<CopyRun>,
    /// The last audit that came to its end.
    pub last_audit: Option<AuditStatus>,
    /// Conditions that an operator has to know.
    pub attention: Vec<Attention>,
}

/// A problem of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemStatus {
    /// The stable code, such as `fixity.mismatch`.
    pub code: String,
    /// The URI of the resource or document.
    pub uri: String,
    /// The cause, and how to solve it.
    pub message: String,
}

/// An audit: a comparison of a copy with its Source.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditStatus {
    /// The end of the audit.
    pub time: String,
    /// `equal`, `different`, or `incomplete` if no difference was found but not all could be compared.
    pub result: String,
    /// Whether digests were compared, not only lengths and times.
    pub full: bool,
    /// Resources that are stored as listed.
    pub same: u64,
    /// Resources with other bytes or another time than listed.
    pub different: u64,
    /// Resources that are listed and not stored.
    pub missing: u64,
    /// Resources that are stored and not listed.
    pub extra: u64,
    /// Resources that could not be compared.
    pub unverified: u64,
}

/// The work of a run, or of all runs of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyRun {
    /// Exit code of the last run.
    pub exit_code: u8,
    /// Duration of the runs in milliseconds.
    pub milliseconds: u64,
    /// Resources that were created, updated or deleted.
    pub changes: u64,
    /// Bytes that were received, headers included.
    pub bytes: u64,
    /// Requests that were sent, redirects included.
    pub requests: u64,
    /// Requests that repeated another one.
    pub retries: u64,
}

impl StatusReport {
    /// A report without stores and copies.
    pub fn new(program: &str, time: String) -> Self {
        Self {
            kind: "status-report".to_owned(),
            version: STATUS_VERSION,
            program: program.to_owned(),
            time,
            healthy: true,
            stores: Vec::new(),
            copies: Vec::new(),
            attention: Vec::new(),
            copies_left_out: 0,
        }
    }

    /// Limits the length of the report, and determines whether anything needs attention.
    pub fn finish(&mut self) {
        let is_good = |attention: &Vec<Attention>| attention.is_empty();
        let is_store_good = |store: &StoreStatus| {
            is_good(&store.attention)
                && store.sets.iter().all(|set| is_good(&set.attention))
                && store.hub.as_ref().is_none_or(|hub| is_good(&hub.attention))
        };
        self.healthy = is_good(&self.attention)
            && self.stores.iter().all(is_store_good)
            && self.copies.iter().all(|copy| is_good(&copy.attention));
        for store in &mut self.stores {
            store.sets_left_out += limit(&mut store.sets, |set| !set.attention.is_empty());
            let mut room = NAMES_MAX;
            for set in &mut store.sets {
                fit(&mut set.held, &mut room, String::len);
            }
            let mut room = NAMES_MAX;
            let length = |one: &FollowerStatus| {
                FOLLOWER_BYTES + one.client.len() + one.program.len() + one.of.len()
            };
            store.followers_left_out += fit(&mut store.followers, &mut room, length);
        }
        self.copies_left_out += limit(&mut self.copies, |copy| !copy.attention.is_empty());
    }
}

impl Attention {
    /// A condition with the next step.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

/// Keeps the first items that fit into the room, and returns the number of the others.
fn fit<T>(items: &mut Vec<T>, room: &mut usize, length: impl Fn(&T) -> usize) -> u64 {
    let before = items.len();
    items.retain(|item| {
        let rest = room.checked_sub(length(item));
        *room = rest.unwrap_or(*room);
        rest.is_some()
    });
    (before - items.len()) as u64
}

/// Keeps the first items, items with conditions before the others, and returns the number of items
/// that are left out.
fn limit<T>(items: &mut Vec<T>, needs_attention: impl Fn(&T) -> bool) -> u64 {
    let left_out = items.len().saturating_sub(LISTED_MAX);
    if left_out > 0 {
        items.sort_by_key(|item| !needs_attention(item));
        items.truncate(LISTED_MAX);
    }
    left_out as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_report_keeps_what_needs_attention() {
        let set = |name: usize| SetStatus {
            name: name.to_string(),
            held_deletions: 20,
            held: vec!["x".repeat(8_192); 20],
            ..SetStatus::default()
        };
        let mut sets: Vec<SetStatus> = (0..LISTED_MAX + 10).map(set).collect();
        sets[LISTED_MAX + 9].attention.push(Attention::new("x".repeat(600), "y"));
        let follower = FollowerStatus { of: "x".repeat(8_192), ..FollowerStatus::default() };
        let followers = vec![follower; 100];
        let store = StoreStatus { sets, followers, ..StoreStatus::default() };
        let mut report = StatusReport::new("0", String::new());
        report.stores.push(store);
        report.finish();
        assert!(!report.healthy);
        assert_eq!((report.stores[0].sets.len(), report.stores[0].sets_left_out), (LISTED_MAX, 10));
        let (set, store) = (&report.stores[0].sets[0], &report.stores[0]);
        assert_eq!(set.held.len() as u64 + set.more_held(), 20);
        assert_eq!(store.followers.len() as u64 + store.followers_left_out, 100);
        assert_eq!(report.stores[0].sets[0].name, (LISTED_MAX + 9).to_string());
        let text = serde_json::to_string(&report).unwrap();
        assert!(text.len() < 1 << 20, "{}", text.len());
        assert_eq!(serde_json::from_str::<StatusReport>(&text).unwrap(), report);
    }
}
