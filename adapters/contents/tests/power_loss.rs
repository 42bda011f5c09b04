//! Contents that were made durable survive a kill between any two calls, and loss of power at any
//! instant.
//!
//! A child puts, removes, makes durable and compacts while `strace` notes every call that changes
//! the folder. From these notes the test makes the folder as it was after each of them (a kill),
//! and as it may be after loss of power: of what was not made durable each write is there, missing
//! or torn, and each name given or not. Every such folder must open, give out nothing but whole
//! contents, have all that were acknowledged, and take new ones.
//!
//! `ABREAST_POWER_LOSSES` asks for more instants than 200, `ABREAST_CRASH_SEED` repeats a failing
//! run.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Condition, Contents, ErrorKind, Limits, View};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore as _;
use abreast_testkit::power::{self, Event};
use abreast_testkit::{Random, folder};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

const CHILD: &str = "ABREAST_CONTENTS_CHILD";
const LOSSES: u64 = 200;
/// Steps; each puts one content and removes an earlier one in two of three cases.
const STEPS: u64 = 130;
/// How long a content is kept at least, in steps.
const LIFE: u64 = 20;

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.packed_bytes, limits.segment_bytes, limits.unindexed, limits.garbage_bytes) =
        (2_000, 6_000, 12, 500);
    limits
}

fn open(path: &Path) -> Contents {
    Contents::open_with(path, limits()).expect("the folder opens")
}

/// The content that a step puts: some large, most small.
fn body(step: u64) -> Vec<u8> {
    let length = match step % 9 {
        0 => 2_500,
        1 => 1_900,
        _ => 30 + step % 7 * 50,
    };
    step.to_le_bytes().iter().copied().cycle().take(length as usize).collect()
}

fn id(step: u64) -> ContentId {
    ContentId(*blake3::hash(&body(step)).as_bytes())
}

/// The content that a step removes.
fn removed(step: u64) -> Option<u64> {
    step.checked_sub(LIFE).filter(|step| step % 3 > 0)
}

fn acknowledge(step: u64) {
    std::io::stderr().write_all(format!("ack {step}\n").as_bytes()).unwrap();
}

#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let mut contents = open(path);
    acknowledge(0);
    for step in 1..=STEPS {
        let _ = contents.put_bytes(&body(step)).unwrap();
        if let Some(removed) = removed(step) {
            contents.remove(&id(removed)).unwrap();
        }
        if step % 5 == 0 {
            contents.sync().unwrap();
            acknowledge(step);
        }
        if step % 24 == 0 {
            contents.compact().unwrap();
        }
        if step % 50 == 0 {
            drop(contents);
            contents = open(path);
        }
    }
}

/// Opens a folder that a crash left, and checks all of it.
fn examine(path: &Path, acknowledged: u64, whole: bool, context: &str) {
    let seen = View::open(path);
    let contents = open(path);
    let mut all = BTreeSet::new();
    for first in 0..=255 {
        contents
            .visit(first, &mut |id| {
                all.insert(id);
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    // Between this acknowledgement and the next one, five steps may have removed something.
    for step in 1..=acknowledged {
        let is_removed = (1..=acknowledged + 5).any(|later| removed(later) == Some(step));
        assert!(is_removed || all.contains(&id(step)), "{context}: {step} was acknowledged");
    }
    for id in &all {
        let mut bytes = Vec::new();
        // A large one that was not made durable may be torn, as nothing names it.
        let read = match contents.open_read(id) {
            Ok(mut content) => content.read_to_end(&mut bytes),
            Err(error) => panic!("{context}: {error}"),
        };
        let is_file = path.join(&id.to_string()[..2]).join(&id.to_string()[2..]).exists();
        let is_whole = blake3::hash(&bytes).as_bytes() == id.as_bytes();
        match read {
            Ok(_) => assert!(is_whole, "{context}: {id} was read although it is torn"),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::InvalidData, "{context}"),
        }
        let must_be = (1..=acknowledged).any(|step| self::id(step) == *id);
        assert!(is_whole || is_file && !must_be, "{context}: {id} is torn");
        if let Ok(view) = &seen
            && is_whole
            && !is_file
        {
            assert_eq!(
                view.examine(id).unwrap(),
                Condition::Whole,
                "{context}: as another process sees it"
            );
        }
    }
    if !whole {
        return;
    }
    // What was lost is put again, and then it is there.
    for step in 1..=acknowledged + 5 {
        let _ = contents.put_bytes(&body(step)).unwrap();
    }
    contents.sync().unwrap();
    contents.compact().unwrap();
    drop(contents);
    let contents = open(path);
    for step in 1..=acknowledged + 5 {
        let mut bytes = Vec::new();
        contents.open_read(&id(step)).unwrap().read_to_end(&mut bytes).unwrap();
        assert!(bytes == body(step), "{context}: {step} was put again");
    }
}

#[test]
fn contents_survive_kills_between_calls_and_loss_of_power() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let noted = folder.path().join("contents");
    let Some(events) = power::folder_events(CHILD, &noted) else { return };
    let first = events
        .iter()
        .position(|event| matches!(event, Event::Acknowledged(_)))
        .expect("one at least")
        + 1;
    let acknowledged = |until: usize| {
        let last = events[..until].iter().rev().find_map(|event| match event {
            Event::Acknowledged(step) => Some(*step),
            _ => None,
        });
        last.unwrap()
    };
    let (seed, losses) = (power::seed(), power::losses(LOSSES));
    let mut random = Random::new(seed);
    let check = |files: &power::Folder, until: usize, whole: bool, kind: &str| {
        let place = folder::in_memory();
        let path = place.path().join("contents");
        power::lay_down(files, &noted, &path);
        let context =
            format!("{kind} after {until} of {} calls, ABREAST_CRASH_SEED={seed}", events.len());
        examine(&path, acknowledged(until), whole, &context);
    };
    for until in first..=events.len() {
        check(&power::after_kill(&events[..until]), until, until.is_multiple_of(5), "kill");
    }
    for _ in 0..losses {
        let until = first + random.below((events.len() - first) as u64) as usize;
        let files = power::folder_after_loss(&events[..until], &mut random);
        check(&files, until, true, "loss of power");
    }
    println!("{} kills, {losses} losses of power", events.len() - first + 1);
}

/// Told of a folder, and that making something durable fails.
const FAILING: &str = "ABREAST_CONTENTS_FAILING";

#[test]
fn failing_child() {
    let Some(path) = std::env::var_os(FAILING) else { return };
    let path = Path::new(&path);
    let contents = open(path);
    let kept = contents.put_bytes(b"first").unwrap();
    let mut failed = false;
    // The call that fails is the first one for the segment.
    for _ in 0..3 {
        failed |= contents.sync().is_err();
    }
    assert!(failed, "a failure is reported");
    let kind = |error: abreast_contents::Error| error.kind();
    assert_eq!(contents.put_bytes(b"second").map(drop).map_err(kind), Err(ErrorKind::Untrusted));
    assert_eq!(
        contents.sync().map_err(kind),
        Err(ErrorKind::Untrusted),
        "the call is not repeated"
    );
    let id = kept.id();
    drop(kept);
    contents.remove(&id).unwrap_err();
    contents.compact().unwrap();
    drop(contents);
    // No index was written that says more than the disk may have.
    let runs = std::fs::read_dir(path.join("packed")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(
        runs.filter(|path| path.extension().is_some_and(|extension| extension == "index")).count(),
        0
    );
    let contents = open(path);
    let _ = contents.put_bytes(b"second").unwrap();
    contents.sync().unwrap();
}

#[test]
fn nothing_is_put_after_the_disk_failed_to_make_it_durable() {
    if std::env::var_os(FAILING).is_some() || std::env::var_os(CHILD).is_some() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = power::strace()
        .args([
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            "trace=fdatasync",
            "-e",
            "inject=fdatasync:error=EIO:when=1",
        ])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "failing_child", "--nocapture", "--test-threads=1"])
        .env(FAILING, folder.path().join("contents"))
        .output();
    match output {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success() && text.contains("1 passed"),
                "{text}\n{}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Err(_) => power::skip(),
    }
}
