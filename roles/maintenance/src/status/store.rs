//! Reports on a Source's store and on a hub, from their databases.

use super::report::{
    Attention, DiskUse, DumpUse, FailingTarget, FollowerStatus, HubStatus, SetStatus, StoreStatus,
    TopicStatus,
};
use crate::place::{Context as _, Result, StateFolders, holder_of};
use abreast_core::hub::{HubSummary, TopicSummary};
use abreast_core::{Clock as _, SystemClock};
use abreast_store::summary::{SetSummary, read_hub, read_sets};
use abreast_webtypes::{Timestamp, count};
use std::fs::Metadata;
use std::path::Path;

/// Subscriptions that ended within this time are reported, in microseconds.
const ENDED_MICROS: i64 = 7 * 24 * 3_600 * 1_000_000;
/// Most topics that are behind in a report.
const BEHIND_MAX: usize = 20;
/// Most files of the dumps of a set that are counted.
const DUMP_FILES_MAX: usize = 10_000;

/// Reports on the store in a folder and on the hub next to it, from their databases.
///
/// # Errors
/// A database cannot be read.
pub fn store_status(folders: &StateFolders) -> Result<StoreStatus> {
    let hub_folder = || folders.hub.as_deref().and_then(Path::parent);
    let folder = folders.store.as_deref().or_else(hub_folder).unwrap_or_else(|| Path::new("."));
    let process = holder_of(&folder.join("source.lock"));
    let mut status = StoreStatus {
        place: folder.display().to_string(),
        state: if process.is_some() { "in use" } else { "stopped" }.to_owned(),
        process,
        ..StoreStatus::default()
    };
    let task = || format!("cannot read the store `{}`", folder.display());
    let hub = match &folders.hub {
        Some(hub) => Some(read_hub(hub, since()).with_context(task)?),
        None => None,
    };
    if let Some(store) = &folders.store {
        let topics = hub.as_ref().map(|hub| hub.topics.as_slice());
        let sets = read_sets(&store.join("source.db")).with_context(task)?;
        status.sets = sets.iter().map(|set| set_status(store, set, topics)).collect();
    }
    status.disk = Some(disk_use(folder, &status.sets));
    status.hub = hub.map(|hub| hub_status(&hub, &status.place));
    Ok(status)
}

/// The time from which on ended subscriptions are counted.
fn since() -> Timestamp {
    Timestamp::from_micros(SystemClock.now().as_micros() - ENDED_MICROS)
}

fn set_status(store: &Path, set: &SetSummary, topics: Option<&[TopicSummary]>) -> SetStatus {
    let mut status = SetStatus {
        name: set.slug.clone(),
        state: "stopped".to_owned(),
        resources: set.resources,
        position: set.position,
        last_change: set.changed.map(|time| time.to_string()),
        dumps: dump_use(&store.join("dumps").join(&set.slug)),
        versions_bytes: set.kept_bytes,
        ..SetStatus::default()
    };
    if set.importing {
        status.attention.push(Attention::new(
            "the first reading or import of the set is not complete",
            "start `abreast serve`, or repeat the import",
        ));
    }
    if let Some(topics) = topics {
        status.note_subscribers(topics);
    }
    status
}

impl FollowerStatus {
    /// How far the follower is behind, with the unit; `None` if it is not known.
    pub fn lag(&self) -> Option<String> {
        let unit = if self.by == "stream" { "notification" } else { "change" };
        Some(count(self.behind?, unit))
    }
}

impl SetStatus {
    /// Number of resources whose deletion is held, and whose URIs are not in the report.
    pub fn more_held(&self) -> u64 {
        self.held_deletions.saturating_sub(self.held.len() as u64)
    }

    /// Adds the deliveries in the topics of the set.
    pub fn note_subscribers(&mut self, topics: &[TopicSummary]) {
        let part = format!("/{}/notify/", self.name);
        let own = || topics.iter().filter(|topic| topic.url.contains(&part));
        self.subscribers = Some(own().map(|topic| topic.targets).sum());
        self.subscribers_lag = Some(own().map(|topic| topic.lag).max().unwrap_or(0));
        self.subscribers_lag_seconds = own().filter_map(|topic| age(topic.oldest)).max();
    }
}

/// Seconds since a time, if there is one.
fn age(time: Option<Timestamp>) -> Option<u64> {
    let age = SystemClock.now().as_micros() - time?.as_micros();
    Some(u64::try_from(age / 1_000_000).unwrap_or(0))
}

/// Reports on the deliveries of a hub; `store` is its folder, for the commands in the help.
pub fn hub_status(hub: &HubSummary, store: &str) -> HubStatus {
    let mut behind: Vec<&TopicSummary> =
        hub.topics.iter().filter(|topic| topic.behind > 0).collect();
    behind.sort_by_key(|topic| std::cmp::Reverse(topic.lag));
    let mut status = HubStatus {
        topics: hub.topic_count,
        targets: hub.targets,
        failing: hub.failing,
        dead_letters: hub.dead_letters,
        dead_subscriptions: hub.dead_subscriptions,
        behind: behind.into_iter().take(BEHIND_MAX).map(topic_status).collect(),
        ..HubStatus::default()
    };
    status.failing_targets = hub
        .failing_targets
        .iter()
        .map(|target| FailingTarget {
            id: target.id,
            address: target.address.clone(),
            topic: target.topic.clone(),
            attempts: target.attempts,
            since: target.since.map(|time| time.to_string()),
            error: target.error.clone(),
        })
        .collect();
    if let Some(first) = status.failing_targets.first() {
        let message = format!("deliveries fail to {}", count(hub.failing, "target"));
        let help = format!("abreast hub attempts {} --data {store}", first.id);
        status.attention.push(Attention::new(message, help));
    }
    status
}

fn topic_status(topic: &TopicSummary) -> TopicStatus {
    TopicStatus {
        url: topic.url.clone(),
        targets: topic.targets,
        behind: topic.behind,
        lag: topic.lag,
        lag_seconds: age(topic.oldest),
    }
}

/// The packages in the folder of the dumps of a set, and in the folders in it.
fn dump_use(folder: &Path) -> Option<DumpUse> {
    let mut found = DumpUse::default();
    let mut newest = None;
    let (mut folders, mut files) = (vec![folder.to_owned()], 0);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            files += 1;
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() {
                folders.push(entry.path());
            } else if entry.path().extension().is_some_and(|end| end == "zip") {
                found.packages += 1;
                found.bytes += about.len();
                newest = newest.max(about.modified().ok());
            }
            if files > DUMP_FILES_MAX {
                return None;
            }
        }
    }
    let since = newest?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let newest = Timestamp::from_seconds(i64::try_from(since.as_secs()).ok()?);
    found.newest = Some(newest.to_string());
    Some(found)
}

/// The disk space of a store with these sets.
fn disk_use(folder: &Path, sets: &[SetStatus]) -> DiskUse {
    let length =
        |name: String| std::fs::metadata(folder.join(name)).map_or(0, |m: Metadata| m.len());
    let databases = ["source.db", "hub.db"];
    let files = databases.iter().flat_map(|name| ["", "-wal"].map(|end| format!("{name}{end}")));
    DiskUse {
        databases: files.map(length).sum(),
        contents: sets.iter().filter_map(|set| set.versions_bytes).sum(),
        dumps: sets.iter().filter_map(|set| set.dumps.as_ref()).map(|dumps| dumps.bytes).sum(),
        free: free_bytes(folder),
    }
}

/// Free space of the file system of a folder, for this user.
pub fn free_bytes(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}
