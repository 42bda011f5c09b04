//! Copies of Resource Dumps and Change Dumps of ResourceSync 1.1.

use super::BASE;
use super::oracle::{assert_right, each_seed, simulate};
use crate::read::resourcesync::PROTOCOL;
use abreast_testkit::providers::{Protocol, Provider};

/// Rare histories: packages from a cache, intervals in the future, changes of the same second in
/// two lists.
const RARE: [u64; 8] = [1166, 2980, 3362, 3581, 3617, 4151, 4789, 9233];

#[test]
fn copies_of_quiet_providers_are_right() {
    assert_right("dumps::copies_of_quiet", (Protocol::Dumps, PROTOCOL.reader), true);
}

#[test]
fn copies_are_right_after_any_adversity() {
    assert_right("dumps::copies_are", (Protocol::Dumps, PROTOCOL.reader), false);
}

#[test]
fn copies_of_rare_histories_are_right() {
    let made = |seed| Provider::new(Protocol::Dumps, seed, BASE, false);
    let lived = each_seed(&RARE, |bench, seed| simulate(bench, seed, made(seed), PROTOCOL.reader));
    let failed: Vec<String> = lived.into_iter().filter_map(Result::err).collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
