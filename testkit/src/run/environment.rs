//! What the environment asks of a test: numbers, seeds and the programs that it needs.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// A number in the environment.
///
/// # Panics
/// When the variable is set to anything else.
pub fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}")))
}

/// How often a test kills: `ABREAST_TEST_KILLS`, or its own number.
pub fn kills(own: u64) -> u64 {
    let kills = number("ABREAST_TEST_KILLS").unwrap_or(own);
    eprintln!("repeat with ABREAST_TEST_KILLS={kills}");
    kills
}

/// How long a test with faults runs, instead of a number of faults: `ABREAST_TEST_MINUTES`.
pub fn minutes() -> Option<Duration> {
    number("ABREAST_TEST_MINUTES").map(|minutes| Duration::from_secs(60 * minutes))
}

/// The seed of a test's random numbers: `ABREAST_TEST_SEED`, or its own.
pub fn seed(own: u64) -> u64 {
    let seed = number("ABREAST_TEST_SEED").unwrap_or(own);
    eprintln!("repeat with ABREAST_TEST_SEED={seed}");
    seed
}

/// The seeds of a test that runs once for each: only `ABREAST_TEST_SEED`, or 1 to
/// `ABREAST_TEST_SEEDS`, or 1 to `count`.
pub fn seeds(count: u64) -> Vec<u64> {
    match number("ABREAST_TEST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=number("ABREAST_TEST_SEEDS").unwrap_or(count)).collect(),
    }
}

/// A value that `cargo xtask test` provides; without it the test is counted as skipped, with the
/// reason.
pub fn provided(test: &str, name: &str) -> Option<PathBuf> {
    let value = std::env::var_os(name).map(PathBuf::from);
    if value.is_none() {
        skipped(test, &format!("{name} is not set; run `cargo xtask test`"));
    }
    value
}

/// Counts a test as skipped: it should return now.
pub fn skipped(test: &str, why: &str) {
    let line = format!("{test}: {why}\n");
    if let Some(log) = std::env::var_os("ABREAST_TEST_SKIP_LOG") {
        let mut log = std::fs::File::options().append(true).create(true).open(log).unwrap();
        log.write_all(line.as_bytes()).unwrap();
    }
    eprint!("skipped: {line}");
}
