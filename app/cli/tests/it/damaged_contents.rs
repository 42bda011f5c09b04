//! Damage to the files of kept contents is reported by `abreast check`, and repaired by `abreast
//! repair`.

use crate::world::abreast;
use abreast_contents::{Contents, Limits, View};
use abreast_core::contents::ContentStore as _;
use abreast_core::{Change, ChangeLog as _, ContentId, NewSet, State, SystemClock, append};
use abreast_store::SqliteLog;
use abreast_testkit::{folder, run};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Packed contents, as many in several segments; and large ones.
const SMALL: u64 = 150;
const LARGE: u64 = 3;

fn body(number: u64) -> Vec<u8> {
    let length = if number < SMALL { 300 } else { 5_000 };
    number.to_le_bytes().iter().copied().cycle().take(length).collect()
}

/// A store with versions, all of whose contents are kept.
fn write(data: &Path) {
    let mut limits = Limits::default();
    (limits.packed_bytes, limits.segment_bytes, limits.unindexed) = (1_000, 20_000, 40);
    let contents = Contents::open_with(&data.join("contents"), limits).unwrap();
    let log = SqliteLog::open(&data.join("source.db"), Arc::new(SystemClock)).unwrap();
    let set = log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
    log.complete_import(set).unwrap();
    log.keep_versions(set, true).unwrap();
    let changes = (0..SMALL + LARGE).map(|number| {
        let content = contents.put_bytes(&body(number)).unwrap();
        let state = State {
            length: Some(content.length()),
            content: Some(content.id()),
            ..State::default()
        };
        Change::put(
            format!("r{}", number % 50),
            State { media_type: Some(format!("text/{number}")), ..state },
        )
    });
    let changes: Vec<Change> = changes.collect();
    contents.sync().unwrap();
    append(&log, set, changes).unwrap();
}

fn tool(words: &[&str], data: &Path) -> (Option<i32>, String) {
    let output = run(abreast().args(&words[..1]).arg(data).args(&words[1..]));
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), text)
}

/// Codes of the findings.
fn check(data: &Path) -> BTreeSet<String> {
    let (code, text) = tool(&["check", "--read-data", "--json"], data);
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = lines.filter(|line| line["type"] == "finding" && line["severity"] == "error");
    let codes: BTreeSet<String> =
        errors.map(|line| line["code"].as_str().unwrap().to_owned()).collect();
    assert_eq!(code, Some(i32::from(!codes.is_empty())), "{text}");
    codes
}

fn kept(data: &Path) -> BTreeSet<ContentId> {
    let mut kept = BTreeSet::new();
    View::open(&data.join("contents"))
        .unwrap()
        .visit(&mut |id, _| {
            kept.insert(id);
            Ok(())
        })
        .unwrap();
    kept
}

fn files(data: &Path, extension: &str) -> Vec<PathBuf> {
    let files = folder::paths(&data.join("contents/packed")).into_iter();
    files.filter(|path| path.extension().is_some_and(|own| own == extension)).collect()
}

/// Damages a file, and names the findings that follow.
type Case = (&'static str, fn(&Path), &'static [&'static str]);

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

const CASES: &[Case] = &[
    (
        "a segment is lost",
        |data| fs::remove_file(&files(data, "segment")[1]).unwrap(),
        &["contents.missing"],
    ),
    (
        "a segment is cut off",
        |data| edit(&files(data, "segment")[1], |bytes| bytes.truncate(9_999)),
        &["contents.missing"],
    ),
    (
        "a segment is empty",
        |data| edit(&files(data, "segment")[0], Vec::clear),
        &["contents.missing"],
    ),
    (
        "a part of a segment is overwritten",
        |data| edit(&files(data, "segment")[0], |bytes| bytes[5_000..6_000].fill(0x5a)),
        &["contents.digest", "contents.record"],
    ),
    (
        "the begin of a segment is overwritten",
        |data| edit(&files(data, "segment")[0], |bytes| bytes[..100].fill(0x5a)),
        &["contents.digest", "contents.record"],
    ),
    (
        "a part of the index is lost",
        // The name of a file that begins with the first part, as if it began with the second.
        |data| {
            let first = files(data, "index").swap_remove(0);
            fs::rename(&first, first.with_file_name("000000000002-000000999999.index")).unwrap();
        },
        &["contents.index"],
    ),
    (
        "the index is lost",
        |data| files(data, "index").iter().for_each(|path| fs::remove_file(path).unwrap()),
        &[],
    ),
    (
        "the index is overwritten",
        |data| edit(&files(data, "index")[0], |bytes| bytes.fill(0)),
        &["contents.index"],
    ),
    (
        "a large content is another",
        |data| {
            let large = folder::paths(&data.join("contents"));
            let large = large.iter().find(|path| path.file_name().unwrap().len() == 62).unwrap();
            edit(large, |bytes| bytes[9] ^= 1);
        },
        &["contents.digest"],
    ),
    (
        "all contents are lost",
        |data| fs::remove_dir_all(data.join("contents")).unwrap(),
        &["contents.missing"],
    ),
];

#[test]
fn damaged_files_of_kept_contents_are_found_and_repaired() {
    let place = tempfile::tempdir().unwrap();
    let original = place.path().join("original");
    fs::create_dir(&original).unwrap();
    write(&original);
    assert_eq!(check(&original), BTreeSet::new());
    let all = kept(&original);
    assert_eq!(all.len() as u64, SMALL + LARGE);
    for (what, damage, expected) in CASES {
        let data = place.path().join("data");
        folder::copy(&original, &data);
        damage(&data);
        let found = check(&data);
        let named: Vec<&str> = found.iter().map(String::as_str).collect();
        assert!(named.iter().all(|code| expected.contains(code)), "{what}: {found:?}");
        assert_eq!(found.is_empty(), expected.is_empty(), "{what}: {found:?}");
        let (code, text) = tool(&["repair", "--read-data"], &data);
        assert_eq!(code, Some(0), "{what}: {text}");
        assert_eq!(check(&data), BTreeSet::new(), "{what}, repaired: {text}");
        let (code, text) = tool(&["repair", "--read-data"], &data);
        assert!(code == Some(0) && text == "nothing to repair\n", "{what}: {text}");
        assert!(kept(&data).is_subset(&all), "{what}");
        if *expected == ["contents.index"] || expected.is_empty() {
            assert_eq!(kept(&data), all, "{what}: no content is lost");
        }
        fs::remove_dir_all(&data).unwrap();
    }
}
