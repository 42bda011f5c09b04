//! Properties of every document and package with any content, for fuzzing and for the tests of its
//! seeds.

use crate::fetch::Budget;
use crate::report::{Finding, Findings, Mode};
use crate::resourcesync::collect::Context;
use crate::resourcesync::package::{self, PackageOrigin};
use crate::walk::sketch::Seen;
use std::io::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::{Duration, Instant};

/// Longest message about one place, in bytes.
const MESSAGE_MAX: usize = 1_000;
/// Most findings of a rule that are stored.
const MOST_EACH: usize = 3;
/// Most bytes that are unpacked from one package.
const BYTES_MAX: u64 = 4 << 20;

/// Checks a document or feed in pieces of different sizes. The findings must be the same, also in
/// the lenient mode, except for their severities. Each finding must have a short message and a
/// line of the document.
///
/// # Panics
/// One of these properties is violated.
pub fn document(bytes: &[u8]) {
    let whole = findings(bytes, Mode::Strict, usize::MAX, usize::MAX);
    let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).count() as u64;
    for finding in &whole {
        assert!(finding.message.len() <= MESSAGE_MAX, "{}: {}", finding.rule.id, finding.message);
        assert!(finding.line <= lines);
    }
    let piece =
        bytes.iter().fold(0_usize, |sum, byte| sum.wrapping_add(usize::from(*byte))) % 31 + 1;
    assert_eq!(findings(bytes, Mode::Strict, usize::MAX, piece), whole, "in pieces of {piece}");
    let places = |found: &[Finding]| -> Vec<_> {
        found
            .iter()
            .map(|found| (found.rule.id, found.line, found.column, found.message.clone()))
            .collect()
    };
    let lenient = findings(bytes, Mode::Lenient, usize::MAX, usize::MAX);
    assert_eq!(places(&lenient), places(&whole));
    // Only the first findings of a rule are stored; the others are counted.
    let few = findings(bytes, Mode::Strict, MOST_EACH, usize::MAX);
    let count = |found: &[Finding]| found.iter().map(|found| 1 + found.more).sum::<u64>();
    assert_eq!(count(&few), count(&whole));
    for finding in &whole {
        let same = few.iter().filter(|found| found.rule.id == finding.rule.id).count();
        assert!((1..=MOST_EACH).contains(&same));
    }
}

fn findings(bytes: &[u8], mode: Mode, most_each: usize, piece: usize) -> Vec<Finding> {
    super::check(bytes, piece, Findings::new("d", mode, most_each))
}

/// Checks any bytes as a package. The bytes that are unpacked and the messages must stay within
/// their limits.
///
/// # Panics
/// One of these properties is violated.
pub fn package(bytes: &[u8]) {
    let Ok(mut file) = tempfile::tempfile() else { return };
    if file.write_all(bytes).is_err() {
        return;
    }
    let cancel = AtomicBool::new(false);
    let until = Instant::now() + Duration::from_secs(60);
    let budget = Budget {
        bytes_left: AtomicU64::new(BYTES_MAX),
        until,
        cancel: &cancel,
        unreachable: Mutex::default(),
    };
    let context = Context { seed: 1, seen: Mutex::new(Seen::new(1_000, 1)), sketch: 16 };
    let of = PackageOrigin {
        url: "p.zip",
        number: 1,
        context: &context,
        mode: Mode::Strict,
        most_each: MOST_EACH,
        dump: None,
    };
    let mut found = Findings::new("p.zip", Mode::Strict, MOST_EACH);
    let checked = package::check(file, None, &of, &budget, &mut found);
    let in_manifest = checked.map(|(_, found)| found).unwrap_or_default();
    for finding in found.into_list().iter().chain(&in_manifest) {
        assert!(finding.message.len() <= MESSAGE_MAX, "{}: {}", finding.rule.id, finding.message);
    }
}
