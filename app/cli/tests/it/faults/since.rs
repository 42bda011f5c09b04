//! What changed since a point, asked for at every border that there is: within a second, between
//! lists, at a change's own time. Nothing is left out, and nothing is told that was known.

use super::Copy;
use crate::api::send;
use crate::dumps::changes;
use crate::world::{Source, get};
use abreast_destination::{Dumps, MaxDelete, Mode};
use abreast_resourcesync::package::member_name;
use abreast_resourcesync::v1_1::{Change, Document, Entry};
use abreast_testkit::folder::assert_equal;
use abreast_testkit::{Random, eventually, seeds};
use abreast_webtypes::Timestamp;
use md5::{Digest as _, Md5};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Cursor, Read as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const CHANGES: usize = 100;
/// Changes in one list.
const PAGE: usize = 7;
/// Who changes things at the same time.
const WRITERS: u64 = 4;

/// Many changes as fast as they are taken in: of few resources, so that most change more than once
/// within a second.
fn hurry(source: &Source, seed: u64, count: usize) {
    std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let mut random = Random::new(seed * WRITERS + writer);
            scope.spawn(move || {
                for number in 0..count / WRITERS as usize {
                    let target = format!("/api/v1/sets/set/content/f{}", random.below(9));
                    let (method, body) = match random.below(4) {
                        0 => ("DELETE", String::new()),
                        _ => ("PUT", format!("{seed} {writer} {number}")),
                    };
                    let answer = send(&source.address, method, &target, body.as_bytes());
                    let (status, _) =
                        answer.unwrap_or_else(|| panic!("{method} {target} was not answered"));
                    // What is not there cannot be removed.
                    assert!(matches!(status, 200 | 201 | 404), "{method} {target}: {status}");
                }
            });
        }
    });
}

type Told = (String, Change, Timestamp, String);

fn printed(entry: &Entry) -> Told {
    (
        entry.loc.clone(),
        entry.change.unwrap(),
        entry.datetime.unwrap().instant,
        entry.digests.to_string(),
    )
}

/// The changes in the package that a query gives, their bytes checked against their digests.
fn package(source: &Source, query: &str) -> Vec<Told> {
    let mut answer = None;
    // Two that ask for the same at once may have to ask again.
    eventually(query, || {
        answer = get(&source.address, &format!("/set/changedump/since?{query}"));
        answer.as_ref().is_some_and(|(status, _)| *status != 503)
    });
    let (status, bytes) = answer.unwrap();
    assert_eq!(status, 200, "{query}: {}", String::from_utf8_lossy(&bytes));
    let mut zip = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut member = |name: &str| {
        let mut bytes = Vec::new();
        zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    };
    let entries = Document::from_slice(&member("manifest.xml")).unwrap().entries;
    for entry in entries.iter().filter(|entry| entry.change != Some(Change::Deleted)) {
        let bytes = member(member_name(entry.path.as_deref().unwrap()));
        assert_eq!(entry.digests.md5, Some(Md5::digest(&bytes).into()), "{query}: {}", entry.loc);
    }
    entries.iter().map(printed).collect()
}

/// The times of the changes that the API returns since a time, a few at once.
fn told_by_the_api(source: &Source, since: Timestamp) -> Vec<String> {
    let mut times = Vec::new();
    let mut query = format!("since={since}");
    loop {
        let target = format!("/api/v1/sets/set/changes?{query}&limit=3");
        let (status, answer) = send(&source.address, "GET", &target, b"").unwrap();
        assert_eq!(status, 200, "{target}: {answer}");
        let changes = answer["changes"].as_array().unwrap();
        times.extend(changes.iter().map(|change| change["datetime"].as_str().unwrap().to_owned()));
        if answer["next"] == answer["head"] {
            return times;
        }
        query = format!("after={}", answer["next"]);
    }
}

/// Of each resource the last change, in the order of time.
fn last_of_each(changes: &[Told]) -> Vec<Told> {
    let is_last = |(number, change): &(usize, &Told)| {
        changes[number + 1..].iter().all(|later| later.0 != change.0)
    };
    changes.iter().enumerate().filter(is_last).map(|(_, change)| change.clone()).collect()
}

fn second_of(time: Timestamp) -> Timestamp {
    Timestamp::from_micros(time.as_micros().div_euclid(1_000_000) * 1_000_000)
}

#[test]
fn changes_since_any_point_of_a_second_are_complete() {
    for seed in seeds(1) {
        eprintln!("repeat with ABREAST_TEST_SEED={seed}");
        let place = tempfile::tempdir().unwrap();
        let (original, folder) = (place.path().join("original"), place.path().join("copy"));
        fs::create_dir(&original).unwrap();
        for number in 0..5 {
            fs::write(original.join(format!("f{number}")), "begin").unwrap();
        }
        let more = [
            "--api-write",
            "--changes-per-list",
            &PAGE.to_string(),
            "--dumps",
            "on-demand",
            "--versions",
            "all",
        ];
        let source = Source::start(&original, 0, &more);
        let mut copy = Copy::of(source.url(), &folder);
        copy.options.dumps = Dumps::Always;
        copy.options.max_delete = MaxDelete::parse("100%").unwrap();
        assert_eq!(copy.run().summary().mode, Mode::Baseline);
        // What is asked for by whole seconds begins before the log does within its first.
        let list = Document::from_slice(&source.get("/set/changelist.xml").unwrap()).unwrap();
        let created = second_of(list.head.from.unwrap().instant);
        eventually("another second begins", || {
            SystemTime::now()
                > UNIX_EPOCH + Duration::from_micros(created.as_micros() as u64 + 1_000_000)
        });
        // A copy that takes packages of what changed since the last time, which is within a second
        // of changes.
        let mut round = 0;
        while changes(&source).len() < CHANGES {
            round += 1;
            hurry(&source, seed * 1_000 + round, CHANGES / 4);
            let ran = copy.run();
            assert_eq!(
                (ran.exit(), ran.summary().mode),
                (0, Mode::Incremental),
                "seed {seed}: {:?}",
                ran.codes
            );
            assert_equal(&original, &folder);
        }

        let all: Vec<Told> = changes(&source).iter().map(printed).collect();
        let mut seconds = BTreeMap::<Timestamp, usize>::new();
        for (_, _, time, _) in &all {
            *seconds.entry(second_of(*time)).or_default() += 1;
        }
        eprintln!("{} changes; {:?} of them in one second", all.len(), seconds.values().max());
        for known in (0..=all.len()).filter(|known| matches!(known % PAGE, 0 | 1 | 6)) {
            let what = format!("seed {seed}, {known} known");
            let since = |query: &str| package(&source, query);
            assert_eq!(since(&format!("position={known}")), all[known..], "{what}");
            let mut found = since(&format!("changes=last&position={known}"));
            found.sort_by_key(|(.., time, _)| *time);
            // For a deleted entity, an earlier deletion may be listed as well.
            assert_eq!(
                last_of_each(&found),
                last_of_each(&all[known..]),
                "{what}, the last of each"
            );
            let Some((_, _, last, _)) = known.checked_sub(1).map(|last| &all[last]) else {
                continue;
            };
            assert_eq!(since(&format!("time={last}")), all[known..], "{what}, by its time");
            let before = last.plus_micros(-1);
            assert_eq!(
                since(&format!("time={before}")),
                all[known - 1..],
                "{what}, by the time before"
            );
        }
        for second in seconds.keys() {
            // A client that has whole seconds only gets all of that second again.
            let expected: Vec<_> =
                all.iter().filter(|(_, _, time, _)| time > second).cloned().collect();
            assert_eq!(
                package(&source, &format!("time={second}")),
                expected,
                "seed {seed}, since {second}"
            );
            let times: Vec<_> = expected.iter().map(|(_, _, time, _)| time.to_string()).collect();
            assert_eq!(told_by_the_api(&source, *second), times, "seed {seed}, since {second}");
        }
    }
}
