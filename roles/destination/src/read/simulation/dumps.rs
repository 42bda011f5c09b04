//! Copies of Resource Dumps and Change Dumps of ResourceSync 1.1.

use super::oracle::assert_right;
use crate::read::resourcesync::PROTOCOL;
use abreast_testkit::providers::Protocol;

#[test]
fn copies_of_quiet_providers_are_right() {
    assert_right("dumps::copies_of_quiet", (Protocol::Dumps, PROTOCOL.reader), true);
}

#[test]
fn copies_are_right_after_any_adversity() {
    assert_right("dumps::copies_are", (Protocol::Dumps, PROTOCOL.reader), false);
}
