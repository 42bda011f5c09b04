//! One flipped bit in the text of the schema: no row is lost by a repair.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_core::{Change, ChangeLog as _, NewSet, State, SystemClock, append};
use abreast_store::SqliteLog;
use abreast_store::integrity::{Findings, check_log};
use abreast_store::repair::repair_log;
use abreast_testkit::bits::flip;
use abreast_webtypes::Timestamp;
use std::fs;
use std::path::Path;
use std::sync::Arc;

const RESOURCES: u64 = 60;

fn write(path: &Path) {
    let log = SqliteLog::open(path, Arc::new(SystemClock)).unwrap();
    let set = log.open_set(&NewSet { slug: "set".into(), ..NewSet::default() }).unwrap().id;
    log.complete_import(set).unwrap();
    log.keep_versions(set, true).unwrap();
    for length in 0..2 {
        let state = |number: u64| State { length: Some(number + length), ..State::default() };
        let put = |number| Change::put(format!("r{number}"), state(number));
        append(&log, set, (0..RESOURCES).map(put).collect()).unwrap();
    }
    append(&log, set, vec![Change::delete("r0")]).unwrap();
}

#[test]
fn a_flipped_bit_in_the_schema_costs_no_row() {
    let place = abreast_testkit::folder::in_memory();
    let original = place.path().join("original.db");
    write(&original);
    let bytes = fs::read(&original).unwrap();
    let texts: Vec<usize> =
        (0..bytes.len() - 7).filter(|at| &bytes[*at..*at + 7] == b"CREATE ").collect();
    assert!(texts.len() > 12, "{texts:?}");
    let mut repaired = 0;
    for (number, text) in texts.iter().enumerate() {
        // In the name before it, in the word, in the name of the table, in a column.
        for (offset, bit) in [(-3_i64, 0), (2, 5), (14, 1), (30, 0), (45, 7)] {
            let path = place.path().join(format!("{number}-{offset}.db"));
            let mut flipped = bytes.clone();
            flip(&mut flipped, (*text as i64 + offset) as u64 * 8 + bit);
            fs::write(&path, flipped).unwrap();
            let mut findings = Findings::default();
            if check_log(&path, &mut findings).is_ok() && findings.is_consistent() {
                // A comment, or the space behind the text.
                continue;
            }
            repaired += 1;
            let words = format!("text {number} at {text}, {offset}, {:?}", findings.list());
            let now = Timestamp::from_seconds(1_800_000_000);
            let done = repair_log(&path, false, now);
            assert!(done.is_ok(), "{words}: {:?}", done.err());
            let mut findings = Findings::default();
            let sets = check_log(&path, &mut findings).unwrap();
            assert!(findings.is_consistent(), "{words}: {:?}", findings.list());
            assert_eq!((sets.len(), sets[0].resources), (1, RESOURCES - 1), "{words}");
            // The log is begun again: earlier changes were read, and are not published any more.
            let read = format!("changes: {} rows", 2 * RESOURCES + 1);
            assert!(done.unwrap().steps.contains(&read), "{words}");
        }
    }
    let left = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().contains(".reading")).collect();
    assert!(left.is_empty(), "{left:?}");
    println!("{repaired} repaired");
    assert!(repaired > texts.len() * 2, "{repaired}");
}
