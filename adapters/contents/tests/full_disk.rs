//! A disk that is full for a while: at any write, rename or new folder. Contents that were put are
//! there, others are refused as long as there is no room, contents can be removed, and afterwards
//! everything goes on without a restart.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

use abreast_contents::{Contents, ErrorKind, Limits};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore as _;
use abreast_testkit::{folder, power};
use std::collections::BTreeSet;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::Path;

const CHILD: &str = "ABREAST_CONTENTS_FULL";
const STEPS: u64 = 70;
/// How often in a row there is no room.
const TIMES: u64 = 5;
/// Printed by the child when there was no room for something.
const WAS_FULL: &str = "the disk was full";

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.packed_bytes, limits.segment_bytes, limits.unindexed, limits.garbage_bytes) =
        (2_000, 3_000, 8, 500);
    limits
}

fn body(step: u64) -> Vec<u8> {
    let length = if step.is_multiple_of(9) { 2_500 } else { 30 + step % 7 * 90 };
    step.to_le_bytes().iter().copied().cycle().take(length as usize).collect()
}

fn id(step: u64) -> ContentId {
    ContentId(*blake3::hash(&body(step)).as_bytes())
}

fn check(contents: &Contents, expected: &BTreeSet<u64>, context: &str) {
    for step in expected {
        let mut bytes = Vec::new();
        contents.open_read(&id(*step)).unwrap().read_to_end(&mut bytes).unwrap();
        assert!(bytes == body(*step), "{context}: {step}");
    }
    let mut seen = 0;
    for first in 0..=255 {
        contents
            .visit(first, &mut |_| {
                seen += 1;
                ControlFlow::Continue(())
            })
            .unwrap();
    }
    assert_eq!(seen, expected.len(), "{context}: others are there");
}

#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let contents = Contents::open_with(path, limits()).unwrap();
    let (mut expected, mut full) = (BTreeSet::new(), 0);
    for step in 1..=STEPS {
        match contents.put_bytes(&body(step)) {
            Ok(_) => drop(expected.insert(step)),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full, "step {step}: {error}");
                full += 1;
            }
        }
        if let Some(earlier) = step.checked_sub(12).filter(|earlier| earlier % 3 > 0) {
            assert_eq!(
                contents.remove(&id(earlier)).unwrap(),
                expected.remove(&earlier),
                "step {step}"
            );
        }
        if step % 4 == 0 {
            contents.sync().unwrap();
        }
        if step % 20 == 0
            && let Err(error) = contents.compact()
        {
            assert_eq!(error.kind(), ErrorKind::Full, "step {step}: {error}");
            full += 1;
        }
    }
    check(&contents, &expected, "when there is room again");
    for step in 1..=STEPS {
        let _ = contents.put_bytes(&body(step)).unwrap();
        expected.insert(step);
    }
    contents.sync().unwrap();
    contents.compact().unwrap();
    check(&contents, &expected, "put again");
    drop(contents);
    let contents = Contents::open_with(path, limits()).unwrap();
    check(&contents, &expected, "opened again");
    drop(contents);
    assert_eq!(std::fs::read_dir(path.join("tmp")).unwrap().count(), 0);
    for path in folder::paths(&path.join("packed")) {
        assert!(std::fs::metadata(&path).unwrap().len() >= 24, "{} is left over", path.display());
    }
    if full > 0 {
        println!("{WAS_FULL}");
    }
}

#[test]
fn full_disk_at_any_call_refuses_some_contents_and_loses_none() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    let mut refused = 0;
    for (call, most, apart) in [("pwrite64", 100, 3), ("renameat", 20, 2), ("mkdirat", 6, 2)] {
        for first in (1..=most).step_by(apart) {
            let place = folder::in_memory();
            let output = power::strace()
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e"])
                .arg(format!("inject={call}:error=ENOSPC:when={first}..{}", first + TIMES - 1))
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "child", "--nocapture", "--test-threads=1"])
                .env(CHILD, place.path().join("contents"))
                .output();
            let Ok(output) = output else { return power::skip() };
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            if errors.contains("PTRACE") {
                return power::skip();
            }
            // Without its folders it does not open: the first names are made then.
            let is_opening = call == "mkdirat" && errors.contains("Full");
            assert!(
                is_opening || output.status.success() && text.contains("1 passed"),
                "{call} {first}:\n{text}\n{errors}"
            );
            refused += u64::from(text.contains(WAS_FULL));
        }
    }
    println!("in {refused} runs the disk was full for something");
    assert!(refused > 20, "{refused}");
}
