//! Contract of scans: readers see complete, ordered, consistent states.

use super::{Fixture, Stores, everything, put, state};
use crate::{Change, ContentId, KeyRange, PageRule, Position, State};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};

pub(super) fn scans_follow_byte_order(stores: &mut dyn Stores) {
    let fixture = Fixture::new(stores, PageRule::default(), 4, 1_000_000);
    let mut keys = vec![
        "",
        "%",
        "%25",
        "%_",
        "_",
        "A",
        "B",
        "Z",
        "a",
        "a%",
        "a%2Fb",
        "a/",
        "a/b",
        "a/b/",
        "aa",
        "ab",
        "b",
        "z",
        "é",
        "e\u{301}",
        "ß",
        "ss",
        "\u{7f}",
        "\u{ffff}",
        "\u{10000}",
        "😀",
        " ",
        "~",
        "https://example.org/?q=1&r=2#x",
        "'",
        "\"",
        "\\",
        "a'; DROP TABLE resources; --",
        "日本語",
    ];
    for (number, key) in keys.iter().enumerate() {
        fixture.append(vec![put(*key, number as u64)]);
    }
    keys.sort_unstable_by_key(|key| key.as_bytes());
    assert_eq!(fixture.keys(&everything()), keys);
    let kept = State { content: Some(ContentId([7; 32])), ..state(1_000) };
    fixture.append(vec![Change::put("ab", kept)]);
    let witness = ("b".to_owned(), b"seen".to_vec());
    fixture.log.refresh_witnesses(fixture.set, vec![witness]).expect("refreshed");
    let borders =
        ["", " ", "%", "%2", "A", "a", "a/", "a/b", "a0", "b", "é", "\u{10000}", "\u{10ffff}"];
    for start in borders {
        for end in borders {
            let inside = |key: &&&str| **key >= start && **key < end;
            let expected: Vec<&str> = keys.iter().filter(inside).copied().collect();
            let range = KeyRange { start: start.into(), end: Some(end.into()) };
            assert_eq!(fixture.keys(&range), expected, "{range:?}");
            let mut seen = Vec::new();
            let mut compare = |witnessed: &crate::Witnessed| {
                let found = fixture.log.resource(fixture.set, &witnessed.key).expect("read");
                let found = found.map(|found| (found.witness, found.state.content));
                assert_eq!(found, Some((witnessed.witness.clone(), witnessed.content)));
                seen.push(witnessed.key.clone());
                ControlFlow::Continue(())
            };
            fixture.log.scan_witnesses(fixture.set, &range, &mut compare).expect("scanned");
            assert_eq!(seen, expected, "of what was seen: {range:?}");
        }
        let expected: Vec<&str> = keys.iter().filter(|key| **key >= start).copied().collect();
        assert_eq!(
            fixture.keys(&KeyRange { start: start.into(), end: None }),
            expected,
            "from {start:?}"
        );
    }
    let mut seen = 0;
    let mut stop_at_three = |_: &crate::Resource| {
        seen += 1;
        if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    fixture.log.scan(fixture.set, &everything(), &mut stop_at_three).expect("scanned");
    assert_eq!(seen, 3, "a visit can end the scan");
    for key in &keys {
        let found = fixture.log.resource(fixture.set, key).expect("read").map(|found| found.key);
        assert_eq!(found.as_deref(), Some(*key));
    }
    fixture.check();
}

pub(super) fn a_scan_sees_one_state(stores: &mut dyn Stores) {
    let fixture = Fixture::plain(stores);
    fixture.append((0..20).map(|number| put(format!("{number:02}"), 1)).collect());
    let mut seen = Vec::new();
    let mut change_meanwhile = |resource: &crate::Resource| {
        if seen.is_empty() {
            fixture.append(vec![Change::delete("10"), put("15", 2), put("12a", 1)]);
        }
        seen.push((resource.key.clone(), resource.position.0));
        ControlFlow::Continue(())
    };
    fixture.log.scan(fixture.set, &everything(), &mut change_meanwhile).expect("scanned");
    let expected: Vec<_> = (0..20).map(|number| (format!("{number:02}"), number + 1)).collect();
    assert_eq!(seen, expected, "changes during a scan do not show in it");
    assert_eq!(fixture.keys(&everything()).len(), 20);
    fixture.check();
}

pub(super) fn readers_see_whole_batches(stores: &mut dyn Stores) {
    const BATCH: u64 = 7;
    const BATCHES: u64 = 60;
    let fixture = Fixture::new(stores, PageRule::default(), 50, 1_000_000);
    let finished = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (fixture, finished) = (&fixture, &finished);
        scope.spawn(move || {
            let mut last = 0;
            while !finished.load(Ordering::SeqCst) {
                let head = fixture.log.head(fixture.set).expect("a head");
                assert!(head.position.0 >= last, "the head never goes back");
                last = head.position.0;
                assert_eq!(
                    (head.position.0 % BATCH, head.resources % BATCH),
                    (0, 0),
                    "part of a batch in the head"
                );
                let scanned = fixture.keys(&everything()).len() as u64;
                assert_eq!(scanned % BATCH, 0, "part of a batch in a scan");
                assert!(scanned >= head.resources, "a scan sees at least what the head saw");
                let mut read = 0;
                let mut count = |change: &crate::ChangeRecord| {
                    read = change.position.0;
                    ControlFlow::Continue(())
                };
                fixture.log.read(fixture.set, Position(0), &mut count).expect("read");
                assert!(
                    read >= head.position.0 && read.is_multiple_of(BATCH),
                    "part of a batch in the log: {read}"
                );
            }
        });
        let (sender, done) = mpsc::channel();
        for batch in 0..BATCHES {
            let (log, set) = (Arc::clone(&fixture.log), fixture.set);
            let sender = sender.clone();
            let changes: Vec<_> =
                (0..BATCH).map(|number| put(format!("{batch}/{number}"), 1)).collect();
            let told = Box::new(move |result: Result<crate::Appended, crate::LogError>| {
                let seen = result.map(|appended| {
                    let head = log.head(set).expect("a head").position;
                    let newest =
                        log.resource(set, &format!("{batch}/{}", BATCH - 1)).expect("read");
                    (appended.head, head, newest.map(|resource| resource.position))
                });
                drop(log);
                sender.send(seen).expect("the test listens");
            });
            fixture.log.append_then(fixture.set, changes, told);
        }
        drop(sender);
        let mut answers = 0;
        for answer in done {
            let (own, head, newest) = answer.expect("appended");
            answers += 1;
            assert!(head >= own, "the head includes a batch when its appender gets the result");
            assert_eq!(newest, Some(own), "and its resources can be read");
        }
        assert_eq!(answers, BATCHES, "each appender gets one result");
        finished.store(true, Ordering::SeqCst);
    });
    fixture.check();
}
