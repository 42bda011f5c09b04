//! Audits decide as runs do: whatever a Source states, a run that ends without an error leaves a copy
//! that an audit finds equal, and what an audit finds, a comparison repairs.

use crate::copy::{Copy, Ran};
use crate::emm::copy_of;
use crate::emm_source::{EmmSource, Habits};
use serde_json::json;

/// A copy is equal, by digests and without them.
#[track_caller]
fn assert_equal(copy: &Copy, what: &str) {
    for full in [false, true] {
        let ran = Ran::audit(&copy.options, full);
        let report = ran.result.unwrap();
        assert_eq!(report.exit_code, 0, "{what}, full: {full}: {report:?} {:?}", ran.items);
    }
}

#[test]
fn activities_without_a_date_count_in_their_order() {
    let shapes = [
        Habits::default(),
        Habits { newest_first: true, ..Habits::default() },
        Habits { has_prev: false, has_last: false, ..Habits::default() },
        Habits { newest_first: true, has_last: false, has_prev: false, ..Habits::default() },
    ];
    let steps: [&[&str]; 6] = [
        &["Delete"],
        &["Update"],
        &["Delete", "Create"],
        &["Create", "Delete"],
        &["Update", "Delete", "Create", "Delete"],
        &["Delete", "Create", "Update"],
    ];
    for (number, habits) in shapes.iter().enumerate() {
        for page in [2, 100] {
            for (is_dumped, are_dated) in [(page == 2, false), (true, true)] {
                let source = EmmSource::start(Habits { page, ..habits.clone() });
                let put = |number: usize, kind: &'static str, is_dated: bool| {
                    match kind {
                        "Delete" => source.delete(number),
                        _ => source.put(number, kind),
                    }
                    let mut data = source.data();
                    let last = data.changes.last_mut().unwrap();
                    last.kind = kind;
                    if !is_dated {
                        last.more = json!({"published": null});
                    }
                };
                (0..8).for_each(|number| put(number, "Create", true));
                source.wait_days(1);
                if is_dumped {
                    source.make_download();
                }
                for (number, kinds) in steps.iter().enumerate() {
                    for (step, kind) in kinds.iter().enumerate() {
                        put(number, kind, are_dated && step % 2 == 0);
                    }
                }
                put(7, "Update", true);
                let what = format!("shape {number}, {page} a page, dump: {is_dumped}, {are_dated}");
                let copy = copy_of(&source);
                for _ in 0..2 {
                    let ran = copy.try_run();
                    // A run may find that what it lists among others is gone.
                    assert!(are_dated || ran.exit() == 0, "{what}: {:?}", ran.reported);
                    if ran.exit() == 0 {
                        assert_equal(&copy, &what);
                    }
                }
            }
        }
    }
}
