//! The state file of the notifier, with the start of each topic and its notified documents. The
//! file is small, and is rewritten as a whole. Several nodes have a record in their store instead.
//!
//! A notification of documents is published before the file is written. After a crash between these
//! steps the notification is published again, which subscribers must accept anyway.

use crate::projection::TOPIC_PATHS;
use crate::publish::NotifiedDocuments;
use abreast_core::{Finding, Lease, Position, Records, Severity};
use abreast_folder::{read_sealed, write_sealed};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// State of a topic, by the name of its record ([`crate::publish::topic::Topic::record`]).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct TopicState {
    /// Position of the log when the topic of changes was created. Earlier changes are never
    /// notified.
    pub(super) begun: Option<u64>,
    /// URL of the topic of changes. If the URL changes, a new topic starts.
    pub(super) topic: Option<String>,
    /// Time of the last notification of documents, in microseconds since 1970; 0 if there was none.
    pub(super) until: i64,
    /// Notified documents, in a format that the projection defines.
    #[serde(flatten)]
    pub(super) documents: NotifiedDocuments,
}

/// The entries of topics by their keys.
type States = BTreeMap<String, TopicState>;

/// Name of the record in the store of several nodes.
const SHARED: &str = "notified";

/// Where a notifier stores its state, and when it may work.
#[derive(Clone)]
pub enum NotifiedPlace {
    /// A file of this process.
    File(PathBuf),
    /// The store that several nodes share. The notifier works while its node holds the lease.
    Shared(Arc<dyn Records>, Lease),
}

impl From<PathBuf> for NotifiedPlace {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl fmt::Display for NotifiedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "`{}`", path.display()),
            Self::Shared(..) => write!(f, "the record `{SHARED}`"),
        }
    }
}

impl NotifiedPlace {
    /// Whether this process may publish notifications now.
    pub(super) fn is_turn(&self) -> bool {
        match self {
            Self::File(_) => true,
            Self::Shared(_, lease) => lease.is_held(),
        }
    }

    /// Whether other processes publish notifications, too.
    pub(super) const fn is_shared(&self) -> bool {
        matches!(self, Self::Shared(..))
    }

    /// The entries of all topics, and the number of the record. A damaged record of several nodes counts as empty.
    fn read(&self) -> io::Result<(States, u64)> {
        let (states, revision) = self.read_record()?;
        match (states, self) {
            (Err(error), Self::Shared(..)) => {
                tracing::warn!("{self} is damaged ({error}): all documents are notified again");
                Ok((States::new(), revision))
            }
            (states, _) => Ok((states?, revision)),
        }
    }

    /// As [`Self::read`]; a damaged record is an error.
    fn read_undamaged(&self) -> io::Result<(States, u64)> {
        let (states, revision) = self.read_record()?;
        Ok((states?, revision))
    }

    /// The entries in the record, unless it is damaged, and its number.
    fn read_record(&self) -> io::Result<(io::Result<States>, u64)> {
        match self {
            Self::File(path) => Ok((topics(path), 0)),
            Self::Shared(records, _) => {
                Ok(match records.record(SHARED).map_err(io::Error::other)? {
                    Some(record) => (parse(&record.bytes), record.revision),
                    None => (Ok(States::new()), 0),
                })
            }
        }
    }
}

/// States of all topics, by their records.
pub(super) struct StateFile {
    place: NotifiedPlace,
    /// Number of the shared record.
    revision: u64,
    topics: States,
    /// Whether the state differs from the file.
    changed: bool,
}

#[derive(Serialize, Deserialize)]
struct Stored<S> {
    sets: S,
}

impl StateFile {
    /// Reads the file. If the file is missing or damaged, nothing counts as notified.
    pub(super) fn read(place: impl Into<NotifiedPlace>) -> io::Result<Self> {
        let place = place.into();
        let ((topics, revision), changed) = match place.read() {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                tracing::warn!("{place} is damaged ({error}): all documents are notified again");
                ((BTreeMap::new(), 0), true)
            }
            read => (read?, false),
        };
        Ok(Self { place, revision, topics, changed })
    }

    /// Reads a file or record; a damaged one is an error.
    fn undamaged(place: &NotifiedPlace) -> io::Result<Self> {
        let (topics, revision) = place.read_undamaged()?;
        Ok(Self { place: place.clone(), revision, topics, changed: false })
    }

    /// Whether other nodes, whose sets may differ for a time, notify too.
    pub(super) const fn is_shared(&self) -> bool {
        self.place.is_shared()
    }

    /// Returns the states of all topics, by their records.
    pub(super) fn topics(&self) -> &States {
        &self.topics
    }

    /// Sets the documents that a topic has notified.
    pub(super) fn notified(&mut self, record: &str, until: i64, documents: NotifiedDocuments) {
        let state = self.topics.entry(record.to_owned()).or_default();
        (state.until, state.documents) = (until, documents);
        self.changed = true;
    }

    /// Removes the state of a topic that has ended.
    pub(super) fn remove(&mut self, record: &str) {
        self.changed |= self.topics.remove(record).is_some();
    }

    /// Returns the start of a topic of changes; for a new topic, stores and returns `head`.
    pub(super) fn begun(&mut self, record: &str, url: &str, head: Position) -> Position {
        let state = self.topics.entry(record.to_owned()).or_default();
        // Earlier versions of the program wrote records without an address.
        if state.topic.as_deref().is_some_and(|topic| topic != url) {
            state.begun = None;
        }
        self.changed |= state.begun.is_none() || state.topic.is_none();
        state.topic = Some(url.to_owned());
        Position(*state.begun.get_or_insert(head.0))
    }

    /// Writes the file if the state has changed.
    pub(super) fn save(&mut self) -> io::Result<()> {
        if self.changed {
            self.write()?;
            self.changed = false;
        }
        Ok(())
    }

    /// The base URLs of the Source that its topics have had.
    fn bases(&self) -> BTreeSet<&str> {
        let mut bases = BTreeSet::new();
        for (record, state) in &self.topics {
            let (of, topic) = (set_of(record), state.topic.as_deref().unwrap_or_default());
            let base = |path| topic.strip_suffix(path)?.strip_suffix('/')?.strip_suffix(of);
            let found = TOPIC_PATHS.iter().filter_map(|path| base(*path));
            bases.extend(found.filter(|base| base.ends_with('/')));
        }
        bases
    }

    /// The names of the records of a set.
    fn records_of(&self, slug: &str) -> Vec<String> {
        self.topics.keys().filter(|record| set_of(record) == slug).cloned().collect()
    }

    fn write(&mut self) -> io::Result<()> {
        let bytes = serde_json::to_vec(&Stored { sets: &self.topics })?;
        let records = match &self.place {
            NotifiedPlace::File(path) => return write_sealed(path, bytes),
            NotifiedPlace::Shared(records, _) => records,
        };
        if !records.replace_record(SHARED, self.revision, &bytes).map_err(io::Error::other)? {
            // A lost answer is repeated, and finds its own change.
            let (topics, revision) = self.place.read()?;
            if topics != self.topics {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            self.revision = revision;
            return Ok(());
        }
        self.revision = records.record_revision(SHARED).map_err(io::Error::other)?;
        Ok(())
    }
}

/// The set of a record, whose name is `SLUG`, or `SLUG/` and a protocol.
fn set_of(record: &str) -> &str {
    record.split('/').next().unwrap_or_default()
}

/// Gives the records of a set the names for another slug, so that its topics continue at other URLs. Returns the URLs
/// of its topics before and after, of all protocols and for each base URL of the Source. Without `write`, the record is
/// not changed.
///
/// # Errors
/// The record is damaged, or cannot be read or written.
pub fn rename_in_record(
    place: &NotifiedPlace,
    (old, new): (&str, &str),
    write: bool,
) -> io::Result<Vec<(String, String)>> {
    let mut file = StateFile::undamaged(place)?;
    let renamed: Vec<(String, String)> = file
        .bases()
        .into_iter()
        .flat_map(|base| {
            TOPIC_PATHS.map(|path| (format!("{base}{old}/{path}"), format!("{base}{new}/{path}")))
        })
        .collect();
    for record in file.records_of(old) {
        let Some(mut state) = file.topics.remove(&record) else { continue };
        let of = |url: &String| renamed.iter().find(|(before, _)| before == url);
        if let Some((_, after)) = state.topic.as_ref().and_then(of) {
            state.topic = Some(after.clone());
        }
        file.topics.insert(format!("{new}{}", &record[old.len()..]), state);
        file.changed = true;
    }
    if write {
        file.save()?;
    }
    Ok(renamed)
}

/// Returns the URLs of a set's topics in the notifier's record, of all protocols and for each base
/// URL of the Source. With `drop`, the entries of the set are removed.
///
/// # Errors
/// The record is damaged, or cannot be read or written.
pub fn topics_of_set(place: &NotifiedPlace, slug: &str, drop: bool) -> io::Result<Vec<String>> {
    let mut file = StateFile::undamaged(place)?;
    let mut found: BTreeSet<String> = file
        .bases()
        .into_iter()
        .flat_map(|base| TOPIC_PATHS.map(|path| format!("{base}{slug}/{path}")))
        .collect();
    let records = file.records_of(slug);
    found.extend(records.iter().filter_map(|record| file.topics.get(record)?.topic.clone()));
    if drop {
        for record in records {
            file.remove(&record);
        }
        file.save()?;
    }
    Ok(found.into_iter().collect())
}

fn topics(path: &Path) -> io::Result<States> {
    let text = match read_sealed(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(States::new()),
        text => text?,
    };
    parse(&text)
}

fn parse(text: &[u8]) -> io::Result<States> {
    let stored = serde_json::from_slice::<Stored<_>>(text);
    stored
        .map(|stored| stored.sets)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The file of the notifier in the folder of a store.
pub fn notified_path(store: &Path) -> PathBuf {
    store.join("notified.json")
}

/// Copies the record of notified documents to another store, in which no notifier runs.
///
/// # Errors
/// The record is damaged, or cannot be read or written.
pub fn copy_notified(from: &NotifiedPlace, to: &NotifiedPlace) -> io::Result<()> {
    let (topics, _) = from.read()?;
    if topics.is_empty() {
        return Ok(());
    }
    let (_, revision) = to.read()?;
    StateFile { place: to.clone(), revision, topics, changed: true }.save()
}

/// Checks the file of a notifier for damage. A missing file is not damaged.
///
/// # Errors
/// The file cannot be read.
pub fn check_notified(path: &Path) -> io::Result<Option<Finding>> {
    match topics(path) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Some(Finding {
            severity: Severity::Error,
            rule: "notified.record",
            location: path.display().to_string(),
            message: format!("the record of notified documents is damaged: {error}"),
        })),
        topics => topics.map(|_| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_was_notified_is_known_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.json");
        let mut file = StateFile::read(path.clone()).unwrap();
        assert!(file.topics.is_empty());
        let serde_json::Value::Object(documents) = serde_json::json!({"capability_list": "ab", "log": 3, "archives": {"changelist-archive": 7}})
        else {
            unreachable!()
        };
        file.notified("set", -1, documents.clone());
        file.save().unwrap();
        fs::remove_file(&path).unwrap();
        file.save().unwrap();
        assert!(!path.exists(), "nothing is different");
        assert_eq!(file.begun("set", "http://a/", Position(4)), Position(4));
        file.save().unwrap();
        let topic = Some("http://a/".to_owned());
        let state = TopicState { begun: Some(4), topic, until: -1, documents };
        let mut read = StateFile::read(path.clone()).unwrap();
        assert_eq!(read.topics, BTreeMap::from([("set".to_owned(), state)]));
        assert_eq!(read.begun("set", "http://a/", Position(6)), Position(4));
        assert_eq!(read.begun("set", "http://b/", Position(6)), Position(6), "another topic");
        // The projection parses the documents, and unknown keys outside `sets` are ignored.
        fs::write(&path, r#"{"sets":{"a":{"begun":null,"until":0,"position":5}},"more":2}"#)
            .unwrap();
        let read = StateFile::read(path.clone()).unwrap().topics["a"].clone();
        assert_eq!(
            (read.begun, read.until, read.documents["position"].as_u64()),
            (None, 0, Some(5))
        );
        fs::write(&path, "{").unwrap();
        assert!(check_notified(&path).unwrap().is_some());
        let mut read = StateFile::read(path.clone()).unwrap();
        assert!(read.topics.is_empty());
        read.save().unwrap();
        assert_eq!(check_notified(&path).unwrap(), None);
    }
    #[test]
    fn a_renamed_set_continues_its_topics() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.json");
        let mut file = StateFile::read(path.clone()).unwrap();
        file.begun("old", "http://a/x/old/notify/change", Position(4));
        file.begun("old/v0.1", "http://a/x/old/v0.1/notify/changeset", Position(5));
        file.begun("older", "http://a/x/older/notify/change", Position(6));
        file.save().unwrap();
        let place = NotifiedPlace::File(path.clone());
        for write in [false, true] {
            let urls = rename_in_record(&place, ("old", "new"), write).unwrap();
            let expected = TOPIC_PATHS
                .map(|path| (format!("http://a/x/old/{path}"), format!("http://a/x/new/{path}")));
            assert_eq!(urls, expected);
        }
        let mut file = StateFile::read(path).unwrap();
        assert_eq!(file.topics.keys().collect::<Vec<_>>(), ["new", "new/v0.1", "older"]);
        let head = Position(9);
        assert_eq!(file.begun("new", "http://a/x/new/notify/change", head), Position(4));
        assert_eq!(file.begun("older", "http://a/x/older/notify/change", head), Position(6));
    }

    #[test]
    fn topics_of_a_set_are_its_own_at_each_base() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify.json");
        let mut file = StateFile::read(path.clone()).unwrap();
        for (record, url) in [
            ("papers", "https://library.example.org/papers/notify/change"),
            ("notify/v0.1", "https://library.example.org/notify/v0.1/notify/changeset"),
            ("notify", "http://other/notify/notify/change"),
            ("papers/sdshare", "http://elsewhere/unknown"),
            ("a", "http://x/not-a/notify/change"),
        ] {
            file.begun(record, url, Position(1));
        }
        file.save().unwrap();
        let place = NotifiedPlace::File(path.clone());
        for slug in ["papers", "notify"] {
            let topics = topics_of_set(&place, slug, false).unwrap();
            let of = |base: &str| TOPIC_PATHS.map(|path| format!("{base}{slug}/{path}"));
            let mut expected = [of("http://other/"), of("https://library.example.org/")].concat();
            if slug == "papers" {
                expected.push("http://elsewhere/unknown".to_owned());
            }
            expected.sort();
            assert_eq!(topics, expected);
        }
        topics_of_set(&place, "papers", true).unwrap();
        let left = StateFile::read(path).unwrap();
        assert_eq!(left.topics.keys().collect::<Vec<_>>(), ["a", "notify", "notify/v0.1"]);
    }
}
