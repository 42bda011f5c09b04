//! What is true of every request, whatever is in it? For fuzzing and for the tests of its seeds.

use crate::api::model::{RecordAnswer, RecordRequest};
use crate::api::{change_of, records_of};
use crate::conditional::{http_date, seconds};
use crate::range::{Wanted, wanted};
use crate::routes::memento::key_of_path;
use crate::routes::timegate::whole;
use abreast_core::{
    Action, AppendDone, Change, ChangeLog, ChangeRecord, ErrorKind, Head, Imported, KeyRange, LogError, NewSet, Page,
    Position, Resource, ResourceSet, SetId, Shard, ShardId,
};
use abreast_source::publish::SourceUrls;
use abreast_source::versions::{VersionUrls, at_stamp, stamp_of};
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;

const RESOURCES: &str = "https://example.org/set/r/";
/// Bytes of a representation, for ranges.
const LENGTH: u64 = 1_000;

/// The lines are a date, a stamp, a range, and the path of a resource or a URI. Dates and stamps are written as they
/// were read, ranges are within the representation, and every address of a version leads to its resource.
///
/// # Panics
/// When that is not so.
pub fn check_any_request(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let mut lines = text.splitn(4, '\n');
    let mut line = || lines.next().unwrap_or_default();
    let (date, stamp, range, path) = (line(), line(), line(), line());
    if let Some(read) = seconds(date.trim()).filter(|read| *read >= 0) {
        assert_eq!(seconds(&http_date(read)), Some(read), "{date}");
    }
    let time = match at_stamp(stamp) {
        None => Timestamp::from_seconds(1_767_225_600),
        Some((time, exact)) => {
            assert!((Timestamp::MIN..=Timestamp::MAX).contains(&time));
            let again = stamp_of(time);
            let same = if exact { again == stamp } else { again.starts_with(stamp) || stamp.ends_with("60") };
            assert!(same, "{stamp} {again}");
            time
        }
    };
    for length in [0, 1, LENGTH] {
        if let Wanted::Ranges(ranges) = wanted(Some(range), length) {
            assert!((1..=16).contains(&ranges.len()));
            assert!(ranges.iter().all(|(first, last)| first <= last && *last < length), "{ranges:?} of {length}");
            assert!(ranges.iter().map(|(first, last)| last - first + 1).sum::<u64>() <= length);
        }
    }
    let Some(key) = key_of_path(path) else { return };
    let urls = VersionUrls::new(&SourceUrls::new("https://example.org"), "set", RESOURCES);
    let memento = urls.memento(&key, time);
    let rest = memento.strip_prefix("https://example.org/set/m/").unwrap_or_default();
    let (stamp, path) = rest.split_once('/').unwrap_or_default();
    assert_eq!(at_stamp(stamp), Some((time, true)), "{memento}");
    assert_eq!(key_of_path(path).as_ref(), Some(&key), "{memento}");
    let timegate = urls.timegate(&key);
    let uri = whole(timegate.strip_prefix("https://example.org/timegate/").unwrap_or_default());
    if let Some(own) = uri.strip_prefix(RESOURCES) {
        assert_eq!(key_of_path(own), Some(key), "{timegate}");
    }
}

/// Any bytes as a batch of changes. An array is as good as lines, and what is recorded is told so that it can be
/// recorded elsewhere as the same.
///
/// # Panics
/// When that is not so.
pub fn check_any_batch(bytes: &[u8]) {
    let Ok(records) = records_of(bytes) else { return };
    let array = serde_json::to_vec(&records).unwrap_or_default();
    let lines: Vec<u8> = records.iter().flat_map(json_line).collect();
    let shown = |bytes: &[u8]| records_of(bytes).map(|records| format!("{records:?}")).unwrap_or_default();
    assert_eq!(shown(&array), format!("{records:?}"));
    assert_eq!(shown(&lines), format!("{records:?}"));
    for record in records {
        let record = RecordRequest { lastmod: record.lastmod.or_else(|| Some("2026-01-01".to_owned())), ..record };
        let Ok(change) = change_of(&record, RESOURCES, &NoLog, SetId(1), false) else { continue };
        let Action::Put { state, .. } = &change.action else { continue };
        let told = RecordAnswer::of_state(&change.key, 1, state, RESOURCES);
        let again = records_of(&json_line(&told)).ok().and_then(|mut records| records.pop());
        let again = again.map(|again| change_of(&again, RESOURCES, &NoLog, SetId(1), false));
        let again = again.and_then(Result::ok);
        assert_eq!(again.map(|again| (again.key, again.action)), Some((change.key, change.action)));
    }
}

fn json_line(value: &impl serde::Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

/// A log that is never asked.
struct NoLog;

fn never<T>() -> Result<T, LogError> {
    Err(LogError::new(ErrorKind::Io, "there is no log"))
}

impl ChangeLog for NoLog {
    fn open_set(&self, _: &NewSet) -> Result<ResourceSet, LogError> {
        never()
    }
    fn head(&self, _: SetId) -> Result<Head, LogError> {
        never()
    }
    fn import(&self, _: SetId, _: Vec<Imported>) -> Result<(), LogError> {
        never()
    }
    fn complete_import(&self, _: SetId) -> Result<(), LogError> {
        never()
    }
    fn append_then(&self, _: SetId, _: Vec<Change>, done: AppendDone) {
        done(never());
    }
    fn refresh_witnesses(&self, _: SetId, _: Vec<(String, Vec<u8>)>) -> Result<(), LogError> {
        never()
    }
    fn read(&self, _: SetId, _: Position, _: &mut dyn FnMut(&ChangeRecord) -> ControlFlow<()>) -> Result<(), LogError> {
        never()
    }
    fn resource(&self, _: SetId, _: &str) -> Result<Option<Resource>, LogError> {
        never()
    }
    fn scan(&self, _: SetId, _: &KeyRange, _: &mut dyn FnMut(&Resource) -> ControlFlow<()>) -> Result<(), LogError> {
        never()
    }
    fn shards(&self, _: SetId) -> Result<Vec<Shard>, LogError> {
        never()
    }
    fn shard(&self, _: SetId, _: ShardId) -> Result<Option<Shard>, LogError> {
        never()
    }
    fn pages(&self, _: SetId, _: u64, _: usize) -> Result<Vec<Page>, LogError> {
        never()
    }
}
