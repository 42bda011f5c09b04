//! What holds for every request, whatever is in it: for fuzzing and for the tests of its seeds.

use crate::api::model::{RecordAnswer, RecordRequest};
use crate::api::{JsonLines, ReadError, Table, change_of, records_of};
use crate::message::conditional::{http_date, seconds};
use crate::message::range::{RequestedRange, wanted};
use crate::routes::memento::key_of_path;
use crate::routes::timegate::whole;
use abreast_core::{
    Action, AppendDone, Change, ChangeLog, ChangeRecord, ErrorKind, Head, Imported, KeyRange,
    LogError, NewSet, Page, Position, Resource, ResourceSet, SetId, Shard, ShardId, Visit,
};
use abreast_source::Naming;
use abreast_source::publish::SourceUrls;
use abreast_source::versions::{VersionUrls, at_stamp, stamp_of};
use abreast_webtypes::Timestamp;
use std::io::{self, Read};

const RESOURCES: &str = "https://example.org/set/r/";
/// Bytes of a representation, for ranges.
const LENGTH: u64 = 1_000;

/// The lines are a date, a stamp, a range, and the path of a resource or a URI. Dates and stamps
/// are written as they were read, ranges are within the representation, and every address of a
/// version leads to its resource.
///
/// # Panics
/// When that is not so.
pub fn request(bytes: &[u8]) {
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
            let same = if exact {
                again == stamp
            } else {
                again.starts_with(stamp) || stamp.ends_with("60")
            };
            assert!(same, "{stamp} {again}");
            time
        }
    };
    for length in [0, 1, LENGTH] {
        if let RequestedRange::Ranges(ranges) = wanted(Some(range), length) {
            assert!((1..=16).contains(&ranges.len()));
            assert!(
                ranges.iter().all(|(first, last)| first <= last && *last < length),
                "{ranges:?} of {length}"
            );
            assert!(ranges.iter().map(|(first, last)| last - first + 1).sum::<u64>() <= length);
        }
    }
    let naming = Naming::new(RESOURCES);
    let Some(key) = key_of_path(&naming, path) else { return };
    let urls = VersionUrls::new(&SourceUrls::new("https://example.org"), "set", naming.clone());
    let memento = urls.memento(&key, time);
    let rest = memento.strip_prefix("https://example.org/set/m/").unwrap_or_default();
    let (stamp, path) = rest.split_once('/').unwrap_or_default();
    assert_eq!(at_stamp(stamp), Some((time, true)), "{memento}");
    assert_eq!(key_of_path(&naming, path).as_ref(), Some(&key), "{memento}");
    let timegate = urls.timegate(&key);
    let uri = whole(timegate.strip_prefix("https://example.org/timegate/").unwrap_or_default());
    if let Some(own) = uri.strip_prefix(RESOURCES) {
        assert_eq!(key_of_path(&naming, own), Some(key), "{timegate}");
    }
}

/// Any bytes as a batch of changes. Arrays and lines have the same result, and recorded changes are
/// returned so that they can be recorded elsewhere as the same.
///
/// # Panics
/// When that is not so.
pub fn batch(bytes: &[u8]) {
    let Ok(records) = records_of(bytes) else { return };
    let array = serde_json::to_vec(&records).unwrap_or_default();
    let lines: Vec<u8> = records.iter().flat_map(json_line).collect();
    let shown =
        |bytes: &[u8]| records_of(bytes).map(|records| format!("{records:?}")).unwrap_or_default();
    assert_eq!(shown(&array), format!("{records:?}"));
    assert_eq!(shown(&lines), format!("{records:?}"));
    for record in records {
        let record = RecordRequest {
            lastmod: record.lastmod.or_else(|| Some("2026-01-01".to_owned())),
            ..record
        };
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

/// Any bytes as lines of JSON and as a table. They are read the same however they come, a record is
/// on the line that is reported, records that are read can be written and read again, lines as the
/// API reads them, and messages are short.
///
/// # Panics
/// When that is not so.
pub fn import(bytes: &[u8]) {
    let step = bytes.len() % 5 + 1;
    let lines = import_lines(bytes);
    assert_eq!(lines, import_lines(Pieces(bytes, step, 0)));
    let table = import_table(bytes);
    assert_eq!(table, import_table(Pieces(bytes, step, 0)));
    for read in [&lines, &table] {
        assert!(read.records.is_sorted_by_key(|(line, _)| *line));
        assert!(read.records.last().is_none_or(|(line, _)| from_line(bytes, *line).is_some()));
        let written: Vec<&str> =
            read.records.iter().flat_map(|(_, record)| ["\n", record, "\r\n"]).collect();
        let again = import_lines(written.concat().as_bytes());
        let lines =
            (2..).step_by(2).zip(&read.records).map(|(line, (_, record))| (line, record.clone()));
        assert_eq!((again.records, again.wrong), (lines.collect(), None));
        if let Some(wrong) = &read.wrong {
            assert!(wrong.chars().count() < 300 && !wrong.contains(char::is_control), "{wrong:?}");
            let number: String =
                wrong.chars().skip("line ".len()).take_while(char::is_ascii_digit).collect();
            assert!(number.parse().is_ok_and(|line| from_line(bytes, line).is_some()), "{wrong}");
        }
    }
    // Each record is at its reported place, and the API reads the same.
    for (line, record) in &lines.records {
        let own = from_line(bytes, *line)
            .and_then(|rest| rest.split(|byte| *byte == b'\n').next())
            .unwrap_or_default();
        let own = own.strip_prefix(b"\xef\xbb\xbf").unwrap_or(own);
        let api: Vec<_> = records_of(own).unwrap_or_default().iter().map(json_text).collect();
        assert_eq!(api, std::slice::from_ref(record));
    }
    let (Some((first, _)), Some((line, record))) = (table.records.first(), table.records.last())
    else {
        return;
    };
    let names = bytes.len() - from_line(bytes, *first).unwrap_or(bytes).len();
    let lone_returns = bytes
        .iter()
        .zip(bytes.iter().skip(1).chain([&0]))
        .any(|pair| *pair.0 == b'\r' && *pair.1 != b'\n');
    if !lone_returns {
        let rest = from_line(bytes, *line).unwrap_or_default();
        let again = import_table(&*[&bytes[..names], rest].concat());
        assert_eq!(again.records.first(), Some(&(*first, record.clone())));
    }
    // As a table written by others: everything quoted, the names in another order.
    let names = ["hash", "encoding", "type", "length", "lastmod", "change", "uri"];
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let row = |fields: [String; 7]| fields.map(|field| quoted(&field)).join(",") + "\r\n";
    let mut written = row(names.map(str::to_owned));
    for (_, record) in &table.records {
        let Ok(record) = serde_json::from_str::<serde_json::Value>(record) else { continue };
        written += &row(names.map(|name| match &record[name] {
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Null => String::new(),
            other => other.to_string(),
        }));
    }
    let again = import_table(written.as_bytes());
    assert_eq!(again.wrong, None);
    assert!(
        again
            .records
            .iter()
            .map(|(_, record)| record)
            .eq(table.records.iter().map(|(_, record)| record))
    );
}

/// Records as JSON, each with its line, up to what is wrong.
#[derive(Debug, PartialEq)]
struct Import {
    records: Vec<(u64, String)>,
    wrong: Option<String>,
}

fn import_lines(input: impl Read) -> Import {
    let mut lines = JsonLines::new(input).expect("nothing that fails is read");
    collect(|| lines.read())
}

fn import_table(input: impl Read) -> Import {
    let mut table = Table::new(input).expect("nothing that fails is read");
    collect(|| table.read())
}

fn collect(mut read: impl FnMut() -> Result<Option<(u64, RecordRequest)>, ReadError>) -> Import {
    let mut records = Vec::new();
    let wrong = loop {
        match read() {
            Ok(Some((line, record))) => records.push((line, json_text(&record))),
            Ok(None) => break None,
            Err(error) => break Some(error.to_string()),
        }
    };
    Import { records, wrong }
}

fn json_text(record: &RecordRequest) -> String {
    serde_json::to_string(record).unwrap_or_default()
}

/// The text from a line on, counted from 1.
fn from_line(bytes: &[u8], line: u64) -> Option<&[u8]> {
    bytes
        .splitn(usize::try_from(line).ok()?, |byte| *byte == b'\n')
        .nth(usize::try_from(line).ok()?.checked_sub(1)?)
}

/// Bytes that come a few at a time, with signals between them.
struct Pieces<'b>(&'b [u8], usize, usize);

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.2 += 1;
        if self.2.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let length = self.1.min(into.len());
        self.0.read(&mut into[..length])
    }
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
    fn sets(&self) -> Result<Vec<ResourceSet>, LogError> {
        never()
    }
    fn idempotency_key(&self, _: SetId, _: &str) -> Result<Option<String>, LogError> {
        never()
    }
    fn head(&self, _: SetId) -> Result<Head, LogError> {
        never()
    }
    fn latest(&self, _: SetId, _: Position, _: Visit<'_, ChangeRecord>) -> Result<(), LogError> {
        never()
    }
    fn latest_before(&self, _: SetId, _: Position) -> Result<Option<Position>, LogError> {
        never()
    }
    fn position_at(&self, _: SetId, _: Timestamp) -> Result<Position, LogError> {
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
    fn read(&self, _: SetId, _: Position, _: Visit<'_, ChangeRecord>) -> Result<(), LogError> {
        never()
    }
    fn resource(&self, _: SetId, _: &str) -> Result<Option<Resource>, LogError> {
        never()
    }
    fn scan(&self, _: SetId, _: &KeyRange, _: Visit<'_, Resource>) -> Result<(), LogError> {
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
