//! Copies of Sitemaps and change sets of ResourceSync 0.1.

use super::oracle::assert_right;
use crate::read::resourcesync_0_1::PROTOCOL;
use abreast_testkit::providers::Protocol;

#[test]
fn copies_of_quiet_providers_are_right() {
    assert_right("sitemaps::copies_of_quiet", (Protocol::Sitemaps, PROTOCOL.reader), true);
}

#[test]
fn copies_are_right_after_any_adversity() {
    assert_right("sitemaps::copies_are", (Protocol::Sitemaps, PROTOCOL.reader), false);
}
