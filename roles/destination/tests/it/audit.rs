//! Audits: the expected content of a copy follows from the lists of the Source, by the rules of a
//! run.

use crate::copy::{Copy, Ran};
use crate::source::Source;
use abreast_destination::check::CopyPlace;
use abreast_destination::{ItemAction, SinkOptions, SyncOptions, sync};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use abreast_testkit::folder;
use abreast_testkit::pages::Server;
use std::sync::atomic::AtomicBool;

/// Actions and paths that an audit reports, in their order.
fn differences(options: &SyncOptions) -> Vec<(ItemAction, String)> {
    let ran = Ran::audit(options, true);
    ran.result.unwrap();
    ran.items.into_iter().map(|item| (item.action, item.path)).collect()
}

#[test]
fn a_list_older_than_its_index_states_moves_at_back() {
    let mut source = Source::new();
    source.set("/a", "old");
    source.snapshot();
    let old_list = source.server.page("/resourcelist.xml");
    source.set("/a", "new");
    source.set("/b", "more");
    // The index is of now, and so it says of its list; some cache still has the list from before.
    let now = source.now();
    let member = format!(
        "<sitemap><loc>{}</loc><rs:md at=\"{now}\"/></sitemap>\n",
        source.server.url("/part.xml")
    );
    let index =
        document("sitemapindex", &format!("capability=\"resourcelist\" at=\"{now}\""), &member);
    source.server.body("/resourcelist.xml", index);
    source.server.body("/part.xml", old_list);
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
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
    // Only the mirror relative to the list has the resource: neither its own URL nor the mirror
    // relative to the index has it.
    source.body("/lists/deep/copies/a", "hello");
    let index = |kind: &str, member: &str| {
        let member = format!("<sitemap><loc>{}</loc></sitemap>\n", source.url(member));
        document(
            "sitemapindex",
            &format!("capability=\"{kind}\" at=\"2026-01-01T00:00:00Z\""),
            &member,
        )
    };
    source.body("/index.xml", index("resourcelist", "/lists/deep/resources.xml"));
    let list = "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"";
    source.body("/lists/deep/resources.xml", document("urlset", list, &entry("")));
    let of_list = SyncOptions {
        ignore_robots: true,
        ..SyncOptions::new(source.url("/index.xml"), place.path().join("l"))
    };
    let cancel = AtomicBool::new(false);
    assert_eq!(sync(&of_list, &abreast_destination::Silent, &cancel).unwrap().created, 1);

    let changes = "capability=\"changelist\" from=\"2026-01-01T00:00:00Z\"";
    source.body(
        "/changes.xml",
        index("changelist", "/lists/deep/changes.xml").replace(" at=", " from="),
    );
    let change = entry(" change=\"created\" datetime=\"2026-01-02T00:00:00Z\"");
    source.body("/lists/deep/changes.xml", document("urlset", changes, &change));
    let of_changes = SyncOptions {
        ignore_robots: true,
        ..SyncOptions::new(source.url("/changes.xml"), place.path().join("c"))
    };
    assert_eq!(sync(&of_changes, &abreast_destination::Silent, &cancel).unwrap().created, 1);
}

#[test]
fn an_audit_of_an_empty_list_reports_every_file_as_extra() {
    let source = Source::new();
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
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

#[test]
fn an_audit_finds_the_state_of_a_copy_elsewhere() {
    let mut source = Source::new();
    source.set("/d/e/a", "1");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.state = Some(copy.place.path().join("state"));
    copy.run();
    // From now on, only the database contains the base.
    source.set("/x", "2");
    source.snapshot();
    assert_eq!(copy.run().created, 1);
    for state in [copy.options.state.clone(), None] {
        copy.options.state = state;
        assert_eq!(differences(&copy.options), []);
    }
    // A folder with the path of another copy's state is not accepted.
    let other = Copy::of(source.url());
    let marker = other.folder().join(".abreast");
    std::fs::create_dir_all(&marker).unwrap();
    std::fs::copy(copy.folder().join(".abreast/owner"), marker.join("owner")).unwrap();
    std::fs::write(other.folder().join("x"), "2").unwrap();
    assert_eq!(differences(&other.options), [(ItemAction::Missing, "d/e/a".to_owned())]);
}

#[test]
fn an_audit_reports_each_difference() {
    let mut source = Source::new();
    for path in ["/same", "/longer", "/flipped", "/gone"] {
        source.set(path, "text");
    }
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let audited = |full| {
        let ran = Ran::audit(&copy.options, full);
        let mut items: Vec<String> =
            ran.items.iter().map(|item| format!("{:?}", item.action)).collect();
        items.sort();
        (ran.result.unwrap(), items)
    };
    assert_eq!((audited(true).0.same, audited(true).0.exit_code), (4, 0));
    std::fs::write(copy.folder().join("longer"), "longer text").unwrap();
    let before = std::fs::metadata(copy.folder().join("flipped")).unwrap().modified().unwrap();
    std::fs::write(copy.folder().join("flipped"), "tExt").unwrap();
    std::fs::File::options()
        .write(true)
        .open(copy.folder().join("flipped"))
        .unwrap()
        .set_modified(before)
        .unwrap();
    std::fs::remove_file(copy.folder().join("gone")).unwrap();
    std::fs::create_dir(copy.folder().join("mine")).unwrap();
    std::fs::write(copy.folder().join("mine/own"), "mine").unwrap();
    source.set("/later", "not here yet");
    let (report, items) = audited(false);
    assert_eq!(
        (report.same, report.updated, report.missing, report.extra, report.exit_code),
        (2, 1, 2, 1, 1)
    );
    assert_eq!(items, ["Different", "Extra", "Missing", "Missing"]);
    let (report, _) = audited(true);
    assert_eq!((report.same, report.updated, report.missing, report.extra), (1, 2, 2, 1));
}

#[test]
fn an_audit_lists_what_is_extra_by_name() {
    let mut source = Source::new();
    source.set("/same", "text");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    for folder in ["b", "a", "a/c", "d"] {
        std::fs::create_dir_all(copy.folder().join(folder)).unwrap();
        for number in (0..20).rev() {
            std::fs::write(copy.folder().join(format!("{folder}/{number:02}")), "mine").unwrap();
        }
    }
    let ran = Ran::audit(&copy.options, false);
    assert_eq!(ran.result.unwrap().extra, 80);
    let paths: Vec<String> = ran.items.into_iter().map(|item| item.path).collect();
    assert!(paths.is_sorted(), "{paths:?}");
}

#[test]
fn a_touched_file_is_unchanged_for_an_audit() {
    let mut source = Source::new();
    source.set("/a", "text");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let file = std::fs::File::options().write(true).open(copy.folder().join("a")).unwrap();
    file.set_modified(std::time::SystemTime::now()).unwrap();
    let report = copy.audit(false);
    assert_eq!((report.same, report.exit_code), (1, 0));
}

/// Every file of a copy and of its state, with its digest.
fn everything(copy: &Copy) -> Vec<(std::path::PathBuf, String)> {
    let state = copy.folder().join(".abreast");
    let mut found: Vec<_> = [copy.folder(), &state]
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .map(|path| (path.clone(), md5_hex(std::fs::read(path).unwrap())))
        .collect();
    // What processes share is in memory.
    found.retain(|(path, _)| !path.to_string_lossy().ends_with("-shm"));
    found.sort();
    found
}

#[test]
fn an_audit_changes_a_state_only_with_the_lock_of_the_copy() {
    let mut source = Source::new();
    source.set("/a", "one");
    source.snapshot();
    let copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
    copy.run();
    let place = CopyPlace::find(copy.folder()).unwrap();
    let database = copy.folder().join(".abreast/mirror.db");
    let held = place.take().unwrap().unwrap();
    let before = everything(&copy);
    assert_eq!(copy.audit(true).exit_code, 0, "while another run works");
    // Its result is in a file that no run reads, and that is replaced in one step.
    std::fs::remove_file(copy.folder().join(".abreast/last-audit")).unwrap();
    assert_eq!(everything(&copy), before);
    // A database of the previous version.
    let former = "DROP TABLE waiting_change; UPDATE schema_version SET version = version - 1";
    rusqlite::Connection::open(&database).unwrap().execute_batch(former).unwrap();
    let before = everything(&copy);
    let ran = Ran::audit(&copy.options, true);
    assert_eq!(ran.code(), "locked");
    assert!(ran.result.unwrap_err().to_string().contains("another run"));
    assert_eq!(everything(&copy), before);
    drop(held);
    assert_eq!(copy.audit(true).exit_code, 0);
    assert_eq!(copy.run().exit_code, 0);
}

#[test]
fn audits_and_comparisons_agree_about_times_that_no_file_has() {
    // Many file systems do not support times before 1901, and none supports all of these.
    let times = [
        "1850-03-01T00:00:00Z",
        "1600-01-01T12:00:00Z",
        "1969-12-31T23:59:59.5Z",
        "9998-01-01T00:00:00Z",
    ];
    for (place, with_digests) in [false, true].into_iter().flat_map(|is_in_memory| {
        let place = if is_in_memory { folder::in_memory } else { || tempfile::tempdir().unwrap() };
        [true, false].map(|with_digests| (place, with_digests))
    }) {
        let mut source = Source::new();
        for (number, _) in times.iter().enumerate() {
            source.set(&format!("/f{number}"), &format!("file {number}"));
        }
        source.snapshot();
        let list = String::from_utf8(source.server.page("/resourcelist.xml")).unwrap();
        let mut entries = list.split_inclusive("</url>").map(str::to_owned).collect::<Vec<_>>();
        for (entry, time) in entries.iter_mut().zip(times) {
            *entry = entry.replace("2025-06-01T00:00:00Z", time);
            if !with_digests {
                let (before, rest) = entry.split_once("<rs:md hash").unwrap();
                *entry = format!("{before}{}", rest.split_once("/>").unwrap().1);
            }
        }
        source.server.body("/resourcelist.xml", entries.concat());
        let mut copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
        copy.place = place();
        copy.options.folder = copy.place.path().join("copy");
        assert_eq!((copy.run().created, copy.run().updated), (times.len() as u64, 0));
        for full in [false, true] {
            let ran = Ran::audit(&copy.options, full);
            assert_eq!((ran.items, ran.codes), (Vec::new(), Vec::new()), "full: {full}");
        }
        copy.options.baseline = true;
        for full in [false, true] {
            copy.options.full = full;
            let ran = copy.try_run();
            assert_eq!((ran.codes.len(), ran.items), (0, Vec::new()), "{full}: {:?}", ran.reported);
        }
        // A file that was touched gets its time back.
        let path = copy.folder().join("f0");
        let time = || std::fs::metadata(&path).unwrap().modified().unwrap();
        let before = time();
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        copy.options.full = false;
        assert_eq!((copy.run().damaged, copy.audit(false).exit_code), (0, 0));
        assert_eq!(time(), before, "with digests: {with_digests}");
    }
}

#[test]
fn altered_bytes_of_the_same_length_are_different() {
    for has_time in [true, false] {
        let mut source = Source::new();
        source.set("/a", "text");
        source.snapshot();
        if !has_time {
            let list = String::from_utf8(source.server.page("/resourcelist.xml")).unwrap();
            let (before, after) = list.split_once("<lastmod>").unwrap();
            let after = after.split_once("</lastmod>").unwrap().1;
            source.server.body("/resourcelist.xml", format!("{before}{after}"));
        }
        let copy = Copy::of(source.url());
        copy.run();
        std::fs::write(copy.folder().join("a"), "TEXT").unwrap();
        let report = copy.audit(false);
        assert_eq!((report.updated, report.exit_code), (1, 1), "with `lastmod`: {has_time}");
    }
}
