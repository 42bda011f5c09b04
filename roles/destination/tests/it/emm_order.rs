//! The order of the pages and changes of a feed, where times, late changes or restored servers obscure it.

use crate::emm::{assert_same, copy_of, with_numbers};
use crate::emm_source::{Change, Habits};
use abreast_testkit::pages::Answer;
use serde_json::{Value, json};

/// 2099-01-01, seconds.
const FUTURE: i64 = 4_070_908_800;

#[test]
fn times_in_the_future_show_no_order_of_pages() {
    let marva = Habits::of_marva();
    for page in [1, 2, 3] {
        for habits in [
            Habits::of_iiif(),
            Habits::of_getty(),
            Habits::of_blue_core(),
            marva.clone(),
            Habits { newest_first: true, ..marva.clone() },
        ] {
            let source = with_numbers(Habits { page, ..habits }, 9);
            // Each page starts or ends with a time in the future.
            for (at, change) in source.data().changes.iter_mut().enumerate() {
                if at % 3 == 0 {
                    change.time = FUTURE + at as i64;
                }
            }
            let copy = copy_of(&source);
            let follow = |what: &str| {
                let ran = copy.try_run();
                let what = format!("{what}, {page}, {:?}", source.data().habits.newest_first);
                assert_eq!((ran.exit(), ran.has("gap")), (0, false), "{what} {:?}", ran.reported);
                assert_same(&copy, &source);
            };
            follow("first run");
            source.wait_days(1);
            source.put(3, "second");
            source.data().changes.last_mut().unwrap().time = FUTURE + 50;
            source.put(1, "second");
            source.put(20, "first");
            follow("changes");
        }
    }
}

#[test]
fn a_refresh_among_times_in_the_future_hides_nothing() {
    let source = with_numbers(Habits { page: 2, ..Habits::of_iiif() }, 1);
    source.data().changes[0].time = FUTURE;
    source.record(0, "Refresh");
    for number in 1..6 {
        source.put(number, "first");
    }
    source.put(0, "second");
    source.data().changes.last_mut().unwrap().time = FUTURE + 1;
    source.put(7, "first");
    let copy = copy_of(&source);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn late_changes_are_found_as_far_back_as_they_are() {
    let source = with_numbers(Habits { page: 2, ..Habits::default() }, 16);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    // The first walk reads back to the first late change, and only the next walk to the other one.
    for (number, place) in [(1, 10), (0, 12)] {
        source.put(number, "late");
        let mut data = source.data();
        let Change { number, kind, .. } = data.changes.pop().unwrap();
        let time = data.changes[place - 1].time + 1;
        data.changes.insert(place, Change { number, kind, time, more: Value::Null });
    }
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn a_late_change_before_all_others_is_found() {
    let source = with_numbers(Habits::default(), 3);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    source.put(9, "late");
    let mut late = source.data().changes.pop().unwrap();
    late.time = source.data().changes[0].time - 1;
    source.data().changes.insert(0, late);
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.reported);
    assert_same(&copy, &source);
}

#[test]
fn what_a_lost_history_planned_is_forgotten() {
    let source = with_numbers(Habits::default(), 6);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let backup = source.data().clone();
    source.put(20, "never had");
    source.put(3, "never had");
    source.answer_first(|target, _| {
        let is_away = target.starts_with("/id/20") || target.starts_with("/id/3");
        is_away.then(|| Answer::status(404))
    });
    assert_eq!(copy.try_run().exit(), 3);
    source.answer_first(|_, _| None);
    *source.data() = backup;
    source.wait_days(2);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("gap")), (0, true), "{:?}", ran.reported);
    assert_same(&copy, &source);
    assert_eq!(copy.try_run().exit(), 0);
}

#[test]
fn what_was_seen_before_a_page_failed_shows_a_restore() {
    let source = with_numbers(Habits { page: 1, ..Habits::default() }, 4);
    let copy = copy_of(&source);
    assert_eq!(copy.try_run().exit(), 0);
    let backup = source.data().clone();
    // The Entry Point of a cache leads to the page that was the newest, and that to two newer ones.
    let base = source.server.base.clone();
    source.put(8, "never had");
    source.put(9, "never had");
    source.answer_first(move |target, _| match target {
        "/feed/6" => Some(Answer::status(403)),
        "/feed" => {
            let page = |number| json!({"id": format!("{base}/feed/{number}"), "type": "OrderedCollectionPage"});
            Some(Answer::ok(json!({"@context": "https://emm-spec.org/1.0/context.json", "id": format!("{base}/feed"),
                "type": "OrderedCollection", "first": page(1), "last": page(4)}).to_string()))
        }
        _ => None,
    });
    assert_ne!(copy.try_run().exit(), 0);
    source.answer_first(|_, _| None);
    *source.data() = backup;
    source.wait_days(2);
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.has("gap")), (0, true), "{:?}", ran.reported);
    assert_same(&copy, &source);
}
