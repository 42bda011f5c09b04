//! Runs of copies of ResourceSync 0.1 that are killed after they stored or deleted a resource and
//! before the database records it.

use crate::contract::kills::run_killed;
use crate::copy::{Copy, Ran};
use crate::rs01_source::OldSource;

const PATH: &str = "/x";

fn copy_of(source: &OldSource) -> Copy {
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.options.immutable = true;
    copy
}

fn change(source: &mut OldSource, to: Option<&str>) {
    match to {
        Some(body) => source.set(PATH, body),
        None if source.kept.contains_key(PATH) => source.delete(PATH),
        None => {}
    }
}

/// After the next run, the copy equals the Source, whatever happened meanwhile, and no own file is
/// taken for somebody else's.
#[test]
fn runs_of_0_1_that_were_killed_are_continued() {
    let states = [None, Some("1"), Some("2 longer")];
    let all = states.iter().flat_map(|first| states.iter().map(move |second| (*first, *second)));
    for (first, second) in all.filter(|(first, second)| first != second) {
        for third in states {
            for is_compared in [false, true] {
                let what = format!("{first:?} {second:?} {third:?} {is_compared}");
                let mut source = OldSource::new();
                change(&mut source, first);
                source.set("/other", "stays");
                source.snapshot();
                let mut copy = copy_of(&source);
                copy.run();
                change(&mut source, second);
                run_killed(&copy);
                if third != second {
                    change(&mut source, third);
                }
                if is_compared {
                    source.snapshot();
                    copy.options.baseline = true;
                }
                let Ran { result, codes, .. } = copy.try_run();
                let summary = result.unwrap_or_else(|error| panic!("{what}: {error} {codes:?}"));
                assert_eq!(summary.exit_code, 0, "{what}: {codes:?}");
                assert!(codes.iter().all(|code| !code.starts_with("local.")), "{what}: {codes:?}");
                assert_eq!(copy.texts(), source.texts(), "{what}");
                source.snapshot();
                assert_eq!(copy.audit(true).exit_code, 0, "{what}");
            }
        }
    }
}
