//! The requests of the first run of a copy.

use crate::copy::Copy;
use abreast_testkit::documents::{self, BEGIN, capability_list, document};
use abreast_testkit::pages::Server;
use std::time::Duration;

/// A Source with a Resource List, a Change List and one resource.
fn source() -> (Server, Copy) {
    let server = Server::start();
    server.body("/d/a", "a");
    server.body("/robots.txt", "User-agent: *\nDisallow: /x/\n");
    let entry = documents::entry(&server.url("/d/a"), b"a", "");
    let attributes = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    server.body("/list.xml", document("urlset", &attributes, &entry));
    let attributes = format!("capability=\"changelist\" from=\"{BEGIN}\"");
    server.body("/changes.xml", document("urlset", &attributes, ""));
    let lists = [("resourcelist", "/list.xml"), ("changelist", "/changes.xml")];
    let offered = lists.map(|(capability, path)| (capability, server.url(path)));
    server.body("/caps.xml", capability_list(offered));
    let mut copy = Copy::of(server.url("/caps.xml"));
    copy.options.ignore_robots = false;
    (server, copy)
}

#[test]
fn each_document_is_requested_once() {
    let (server, copy) = source();
    assert_eq!(copy.run().created, 1);
    let mut log = server.take_log();
    log.sort();
    assert_eq!(log, ["/caps.xml", "/changes.xml", "/d/a", "/list.xml", "/robots.txt"]);
    // No connections are made for a copy that has resources already.
    assert_eq!(copy.run().created, 0);
    assert_eq!(server.take_log(), ["/changes.xml"]);
}

#[test]
fn robots_txt_is_requested_while_lists_are_read() {
    let (server, copy) = source();
    server.delay(Duration::from_millis(500));
    assert_eq!(copy.run().created, 1);
    let log = server.take_log();
    let place = |wanted: &str| log.iter().position(|path| path == wanted);
    // The Change List is requested after the answer with the Resource List.
    assert!(place("/robots.txt") < place("/changes.xml"), "{log:?}");
}

#[test]
fn ignored_rules_are_not_requested() {
    let (server, mut copy) = source();
    copy.options.ignore_robots = true;
    assert_eq!(copy.run().created, 1);
    let log = server.take_log();
    assert!(!log.iter().any(|path| path == "/robots.txt"), "{log:?}");
}
