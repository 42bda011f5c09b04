//! Copies of Resource Lists and Change Lists of ResourceSync 1.1.

use super::oracle::assert_right;
use crate::read::resourcesync::PROTOCOL;
use abreast_testkit::providers::Protocol;

#[test]
fn copies_of_quiet_providers_are_right() {
    assert_right("lists::copies_of_quiet", (Protocol::Lists, PROTOCOL.reader), true);
}

#[test]
fn copies_are_right_after_any_adversity() {
    assert_right("lists::copies_are", (Protocol::Lists, PROTOCOL.reader), false);
}
