//! Copies of collections over SDShare.

use super::oracle::assert_right;
use crate::read::sdshare::PROTOCOL;
use abreast_testkit::providers::Protocol;

#[test]
fn copies_of_quiet_providers_are_right() {
    assert_right("atom::copies_of_quiet", (Protocol::Atom, PROTOCOL.reader), true);
}

#[test]
fn copies_are_right_after_any_adversity() {
    assert_right("atom::copies_are", (Protocol::Atom, PROTOCOL.reader), false);
}
