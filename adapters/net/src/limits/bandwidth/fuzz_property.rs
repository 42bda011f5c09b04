//! What holds for every timetable and every wish to wait: for fuzzing and for the tests of its
//! seeds.

use super::{Bandwidth, MAX_ENTRIES, WEEK};
use crate::limits::pause::retry_after;
use std::time::{Duration, UNIX_EPOCH};

/// Any text as a timetable and as the value of `Retry-After`: rates and pauses are within their
/// bounds, and at every minute the entry before it is in force.
///
/// # Panics
/// When that is not so.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let now = UNIX_EPOCH + Duration::from_secs(1_767_225_600);
    assert!(
        retry_after(&text, now)
            .is_none_or(|pause| !pause.is_zero() && pause <= Duration::from_secs(86_400))
    );
    let Ok(table) = Bandwidth::parse(&text) else { return };
    assert!((1..=MAX_ENTRIES).contains(&table.entries.len()));
    for (number, (minute, rate)) in table.entries.iter().enumerate() {
        assert!(
            *minute < WEEK && rate.is_none_or(|rate| (1..1_000_000_000_000_000).contains(&rate))
        );
        let next = table.entries.get(number + 1).map(|(minute, _)| *minute);
        if next == Some(*minute) {
            continue;
        }
        let last = next.unwrap_or(table.entries[0].0 + WEEK) - 1;
        assert_eq!((table.at(*minute), table.at(last)), (*rate, *rate), "{minute} to {last}");
        assert_eq!(table.at(minute + WEEK), *rate);
    }
    // In another order it is the same, unless two entries are of one minute.
    let words: Vec<&str> = text.split_whitespace().rev().collect();
    let twice = table.entries.windows(2).any(|pair| pair[0].0 == pair[1].0);
    let turned = Bandwidth::parse(&words.join(" ")).map(|table| table.entries);
    assert!(twice || turned.is_ok_and(|turned| turned == table.entries));
}
