//! Audits: what is expected of a copy follows from what the Source lists, by the rules of a run.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests may stop")]

mod contract;
mod server;

use abreast_destination::{AuditOptions, Event, ItemAction, SinkOptions, SyncOptions, audit, sync};
use contract::Copy;
use server::{Server, Source, document, md5_hex};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Actions and paths that an audit reports, in their order.
fn differences(options: &SyncOptions) -> Vec<(ItemAction, String)> {
    let found = Mutex::new(Vec::new());
    let observer = |event: &Event<'_>| {
        if let Event::Item(item) = event {
            found.lock().unwrap().push((item.action, item.path.to_owned()));
        }
    };
    let options = AuditOptions { sync: options.clone(), full: true };
    audit(&options, &observer, &AtomicBool::new(false)).unwrap();
    found.into_inner().unwrap()
}

#[test]
fn a_list_older_than_its_index_says_moves_at_back() {
    let mut source = Source::new();
    source.set("/a", "old");
    source.snapshot();
    let old_list = source.server.page("/resourcelist.xml");
    source.set("/a", "new");
    source.set("/b", "more");
    // The index is of now, and so it says of its list; some cache still has the list from before.
    let now = source.now();
    let member = format!("<sitemap><loc>{}</loc><rs:md at=\"{now}\"/></sitemap>\n", source.server.url("/part.xml"));
    let index = document("sitemapindex", &format!("capability=\"resourcelist\" at=\"{now}\""), &member);
    source.server.body("/resourcelist.xml", index);
    source.server.body("/part.xml", old_list);
    let copy = Copy::of(&source, |_| SinkOptions::Folder);
    assert_eq!(copy.run().created, 2, "the run replays the changes that the list does not have");
    assert_eq!(differences(&copy.options), [], "and so does the audit");
    std::fs::write(copy.folder().join("b"), "less").unwrap();
    assert_eq!(differences(&copy.options), [(ItemAction::Different, "b".to_owned())]);
}

#[test]
fn links_are_relative_to_the_document_that_lists_them() {
    let (source, place) = (Server::start(), tempfile::tempdir().unwrap());
    let entry = |change: &str| {
        format!(
            "<url><loc>{}</loc><rs:md hash=\"md5:{}\" length=\"5\"{change}/>\
             <rs:ln rel=\"duplicate\" pri=\"1\" href=\"copies/a\"/></url>\n",
            source.url("/d/a"),
            md5_hex(b"hello")
        )
    };
    // Only the mirror beside the list has the resource: neither its own URL nor a mirror beside the index does.
    source.body("/lists/deep/copies/a", "hello");
    let index = |kind: &str, member: &str| {
        let member = format!("<sitemap><loc>{}</loc></sitemap>\n", source.url(member));
        document("sitemapindex", &format!("capability=\"{kind}\" at=\"2026-01-01T00:00:00Z\""), &member)
    };
    source.body("/index.xml", index("resourcelist", "/lists/deep/resources.xml"));
    let list = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
    source.body("/lists/deep/resources.xml", document("urlset", list, &entry("")));
    let of_list =
        SyncOptions { ignore_robots: true, ..SyncOptions::new(source.url("/index.xml"), place.path().join("l")) };
    let cancel = AtomicBool::new(false);
    assert_eq!(sync(&of_list, &abreast_destination::Silent, &cancel).unwrap().created, 1);

    let changes = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    source.body("/changes.xml", index("changelist", "/lists/deep/changes.xml").replace(" at=", " from="));
    let change = entry(" change=\"created\" datetime=\"2026-01-02T00:00:00Z\"");
    source.body("/lists/deep/changes.xml", document("urlset", changes, &change));
    let of_changes =
        SyncOptions { ignore_robots: true, ..SyncOptions::new(source.url("/changes.xml"), place.path().join("c")) };
    assert_eq!(sync(&of_changes, &abreast_destination::Silent, &cancel).unwrap().created, 1);
}

#[test]
fn of_a_source_that_lists_nothing_every_file_is_extra() {
    let source = Source::new();
    let copy = Copy::of(&source, |_| SinkOptions::Folder);
    assert_eq!(copy.run().created, 0);
    assert_eq!(copy.audit(true).exit_code, 0, "an empty copy of an empty Source is right");
    std::fs::write(copy.folder().join("stray"), "x").unwrap();
    assert_eq!(differences(&copy.options), [(ItemAction::Extra, "stray".to_owned())]);
    // Also where no run has been.
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("stray"), "x").unwrap();
    let never = SyncOptions::new(source.url(), place.path());
    assert_eq!(differences(&never), [(ItemAction::Extra, "stray".to_owned())]);
}
