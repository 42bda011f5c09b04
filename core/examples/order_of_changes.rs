//! Changes as a Source records them: their actions, and times that never go back.
#![allow(clippy::print_stdout)]

use abreast_core::{Action, Change, State, next_time};
use abreast_webtypes::Timestamp;

fn main() {
    let state = State {
        length: Some(8_876),
        media_type: Some("application/pdf".to_owned()),
        ..State::default()
    };
    let batch = [
        Change::put("a.pdf", state.clone()),
        Change::put("a.pdf", State { length: Some(9_001), ..state }).with_summary("corrected"),
        Change::deprecate("a.pdf", vec!["https://example.org/b.pdf".to_owned()]),
        Change::delete("a.pdf"),
    ];
    // The clock stands still, then goes back: every change still has a time of its own, later than
    // the one before.
    let clock = [100, 100, 100, 40].map(Timestamp::from_seconds);
    let mut last = Timestamp::from_seconds(0);
    for (change, now) in batch.iter().zip(clock) {
        let time = next_time(last, now);
        let action = match &change.action {
            Action::Put { state, .. } => format!("put, {} bytes", state.length.unwrap_or_default()),
            Action::Deprecate { replaced_by, .. } => {
                format!("deprecated, use {}", replaced_by.join(", "))
            }
            Action::Delete => "deleted".to_owned(),
            _ => "another action".to_owned(),
        };
        println!("{time} {}: {action}", change.key);
        assert!(time > last);
        last = time;
    }
}
