//! Lost and changed files of a copy are found, reported and restored; so are wrong names and
//! databases.

use crate::contract::{files, some};
use crate::copy::{Copy, Ran};
use crate::source::Source;
use abreast_destination::check::{CopyPlace, check_copy, repair_copy};
use abreast_destination::{ItemAction, SinkOptions, SyncOptions, WarcOptions};
use abreast_store::integrity::Findings;
use abreast_testkit::Random;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

fn folder(_: &Path) -> SinkOptions {
    SinkOptions::Folder
}

/// Writes other bytes of the same length, and gives the file its old time back.
fn flip(path: &Path) {
    let before = fs::metadata(path).unwrap().modified().unwrap();
    let flipped: Vec<u8> = fs::read(path).unwrap().iter().map(|byte| byte ^ 1).collect();
    fs::write(path, flipped).unwrap();
    fs::File::options().write(true).open(path).unwrap().set_modified(before).unwrap();
}

fn place_of(copy: &Copy) -> CopyPlace {
    CopyPlace::find(copy.folder()).unwrap()
}

/// Loses a file, lengthens another, touches another and flips the bits of another.
fn damage(copy: &Copy) {
    let at = |name: &str| copy.folder().join(name);
    fs::remove_file(at("f001")).unwrap();
    fs::write(at("f002"), "longer than it was").unwrap();
    fs::File::options()
        .write(true)
        .open(at("f003"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH)
        .unwrap();
    flip(&at("f004"));
}

#[test]
fn a_baseline_restores_what_was_lost_or_altered_here() {
    for with_digests in [true, false] {
        let mut source = some(8);
        if !with_digests {
            let list = String::from_utf8(source.server.page("/resourcelist.xml")).unwrap();
            let (begin, _) = list.split_once("<url>").unwrap();
            let entries: String = (source.kept.keys())
                .map(|path| {
                    format!(
                        "<url><loc>{}</loc><lastmod>2025-06-01T00:00:00Z</lastmod></url>",
                        source.server.url(path)
                    )
                })
                .collect();
            source.server.body("/resourcelist.xml", format!("{begin}{entries}</urlset>"));
        }
        let mut copy = Copy::kept_in(&source, folder);
        assert_eq!(copy.run().created, 8);
        damage(&copy);
        copy.options.baseline = true;
        let Ran { result: ran, codes, .. } = copy.try_run();
        let ran = ran.unwrap();
        assert_eq!((ran.exit_code, ran.damaged), (0, 2), "{codes:?}");
        assert_eq!(codes, ["local.missing", "local.altered", "local.backup"]);
        assert_eq!(copy.audit(false).exit_code, 0);
        // Only digests show a flipped bit.
        copy.options.full = true;
        let Ran { result: ran, codes, .. } = copy.try_run();
        let ran = ran.unwrap();
        assert_eq!((ran.exit_code, ran.damaged), (0, 1), "{codes:?}");
        assert_eq!(codes, ["local.altered", "local.backup"]);
        assert_eq!(files(&copy, &source), source.kept);
        assert_eq!(copy.audit(true).exit_code, 0);
        // And then nothing is to do, nor fetched.
        source.server.take_log();
        let Ran { result: ran, codes, .. } = copy.try_run();
        let ran = ran.unwrap();
        assert_eq!((ran.damaged, ran.updated, ran.created, codes.len()), (0, 0, 0, 0));
        assert!(!source.server.take_log().iter().any(|path| path.starts_with("/f")));
        source.set("/f001", "still followed");
        copy.options.baseline = false;
        assert_eq!(copy.run().updated, 1);
    }
}

#[test]
fn every_comparison_with_the_whole_list_finds_losses() {
    // A plain Sitemap: a run in which the list changed compares everything, without being asked to.
    let source = some(3);
    let entry = |path: &str, body: &str| {
        let (url, digest) = (source.server.url(path), md5_hex(body.as_bytes()));
        format!(
            "<url><loc>{url}</loc><rs:md hash=\"md5:{digest}\" length=\"{}\"/></url>",
            body.len()
        )
    };
    let entries: String = source
        .kept
        .iter()
        .map(|(path, body)| entry(path, std::str::from_utf8(body).unwrap()))
        .collect();
    let list = |entries: &str| document("urlset", "capability=\"resourcelist\"", entries);
    source.server.body("/list.xml", list(&entries));
    let mut copy = Copy::kept_in(&source, folder);
    copy.options.url = source.server.url("/list.xml");
    assert_eq!(copy.run().created, 3);
    fs::remove_file(copy.folder().join("f001")).unwrap();
    // Nothing has changed at the Source: one request, and nothing is read.
    assert_eq!(copy.run().requests, 1);
    source.server.body("/new", "new");
    source.server.body("/list.xml", list(&(entries + &entry("/new", "new"))));
    let Ran { result: ran, codes, .. } = copy.try_run();
    assert_eq!(ran.unwrap().damaged, 1);
    assert_eq!(codes, ["local.missing", "rs.no-at"]);
    assert_eq!(copy.audit(true).same, 4);
}

#[test]
fn a_run_that_follows_changes_reports_the_losses_it_meets() {
    let mut source = some(4);
    let copy = Copy::kept_in(&source, folder);
    copy.run();
    fs::remove_file(copy.folder().join("f001")).unwrap();
    fs::write(copy.folder().join("f002"), "by hand").unwrap();
    // The resources are listed once more without changes: only the files show the damage.
    for path in ["/f001", "/f002"] {
        let body = String::from_utf8(source.kept[path].clone()).unwrap();
        source.set(path, &body);
    }
    let Ran { result: ran, codes, .. } = copy.try_run();
    assert_eq!(
        (ran.unwrap().damaged, codes),
        (2, ["local.missing", "local.altered", "local.backup"].map(str::to_owned).to_vec())
    );
    assert_eq!(files(&copy, &source), source.kept);
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn with_immutable_an_altered_file_is_kept_and_reported() {
    let source = some(3);
    let mut copy = Copy::kept_in(&source, folder);
    copy.run();
    fs::write(copy.folder().join("f001"), "by hand").unwrap();
    copy.options.baseline = true;
    copy.options.immutable = true;
    for _ in 0..2 {
        let Ran { result: ran, codes, .. } = copy.try_run();
        assert_eq!(ran.unwrap().exit_code, 3, "{codes:?}");
        assert!(codes.contains(&"local.changed".to_owned()), "{codes:?}");
        assert_eq!(fs::read_to_string(copy.folder().join("f001")).unwrap(), "by hand");
    }
}

#[test]
fn an_altered_file_that_the_source_deletes_is_backed_up() {
    let mut source = some(12);
    let mut copy = Copy::kept_in(&source, folder);
    copy.run();
    fs::write(copy.folder().join("f001"), "by hand").unwrap();
    fs::remove_file(copy.folder().join("f002")).unwrap();
    // Neither can be had again meanwhile.
    source.server.remove("/f001");
    source.server.remove("/f002");
    copy.options.baseline = true;
    assert_eq!(copy.run().exit_code, 3);
    source.delete("/f001");
    source.delete("/f002");
    copy.options.baseline = false;
    copy.run();
    assert_eq!(files(&copy, &source), source.kept);
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn records_lost_from_a_warc_file_are_fetched_again() {
    let source = some(3);
    let mut copy = Copy::kept_in(&source, |_| SinkOptions::Warc(WarcOptions::default()));
    copy.run();
    let archive = copy.folder().join("archive");
    let segment = fs::read_dir(archive).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&segment).unwrap();
    let text = b"file 2 xx";
    let at = bytes.windows(text.len()).position(|window| window == text).unwrap();
    bytes[at] ^= 1;
    fs::write(&segment, bytes).unwrap();
    copy.options.baseline = true;
    assert_eq!(copy.run().damaged, 0);
    copy.options.full = true;
    let ran = copy.run();
    assert_eq!((ran.damaged, ran.exit_code), (1, 0));
    assert_eq!((copy.audit(true).same, copy.audit(true).exit_code), (3, 0));
}

/// Paths and actions that an audit prints.
fn audited(options: &SyncOptions) -> Vec<(ItemAction, String)> {
    let ran = Ran::audit(options, false);
    ran.result.unwrap();
    ran.items.into_iter().map(|item| (item.action, item.path)).collect()
}

#[test]
fn an_audit_names_everything_that_is_missing() {
    let source = some(3);
    let copy = Copy::kept_in(&source, folder);
    copy.run();
    fs::remove_file(copy.folder().join("f001")).unwrap();
    let list = String::from_utf8(source.server.page("/resourcelist.xml")).unwrap();
    let hidden = source.server.url("/a/%2e%2e/b");
    source.server.body(
        "/resourcelist.xml",
        list.replace("</urlset>", &format!("<url><loc>{hidden}</loc></url></urlset>")),
    );
    let mut found = audited(&copy.options);
    found.sort_by(|one, two| one.1.cmp(&two.1));
    assert_eq!(found, [(ItemAction::Missing, "f001".to_owned()), (ItemAction::Missing, hidden)]);
}

// Names of files.

fn names(copy: &Copy) -> Vec<String> {
    files(copy, &Source::new()).into_keys().collect()
}

#[test]
fn a_folder_that_becomes_a_file_leaves_the_plain_name() {
    for republish in [false, true] {
        let mut source = Source::new();
        for path in ["/x", "/y", "/a/b", "/a/c/d"] {
            source.set(path, path);
        }
        source.snapshot();
        let mut copy = Copy::kept_in(&source, folder);
        copy.options.republish = republish;
        copy.run();
        source.delete("/a/b");
        source.delete("/a/c/d");
        source.set("/a", "a file now");
        let ran = copy.run();
        assert_eq!((ran.created, ran.deleted, ran.exit_code), (1, 2, 0));
        let expected: &[&str] = if republish {
            &["/.a.links.json", "/.x.links.json", "/.y.links.json", "/a", "/x", "/y"]
        } else {
            &["/a", "/x", "/y"]
        };
        assert_eq!(names(&copy), expected);
        assert_eq!(copy.audit(true).exit_code, 0);
        // The resource is known under this name.
        source.set("/a", "changed");
        assert_eq!(copy.run().updated, 1);
        source.delete("/a");
        assert_eq!(copy.run().deleted, 1);
        assert_eq!(names(&copy).len(), expected.len() - 1 - usize::from(republish));
    }
}

#[test]
fn a_comparison_replaces_reserved_names_of_earlier_versions() {
    let mut source = some(3);
    let mut copy = Copy::kept_in(&source, folder);
    copy.run();
    let as_before = || {
        let mirror =
            abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
        let mut row = mirror.row(&source.server.url("/f001")).unwrap().unwrap();
        row.leaf = true;
        mirror.put_row(&row).unwrap();
    };
    as_before();
    fs::rename(copy.folder().join("f001"), copy.folder().join("%!f001")).unwrap();
    let mut findings = Findings::default();
    check_copy(
        &place_of(&copy),
        &|_| false,
        &mut findings,
        &AtomicBool::new(false),
        &abreast_core::Meter::default(),
    )
    .unwrap();
    assert_eq!(
        findings.list().iter().map(|finding| finding.rule).collect::<Vec<_>>(),
        ["copy.name"]
    );
    copy.options.baseline = true;
    let ran = copy.run();
    assert_eq!((ran.exit_code, ran.damaged, ran.updated), (0, 0, 0));
    assert_eq!(names(&copy), ["/f000", "/f001", "/f002"]);
    // As a run leaves it that is killed between the move and its record.
    let mirror =
        abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
    let mut row = mirror.row(&source.server.url("/f002")).unwrap().unwrap();
    row.leaf = true;
    mirror.put_row(&row).unwrap();
    drop(mirror);
    copy.options.baseline = false;
    source.set("/f002", "other");
    assert_eq!(copy.run().updated, 1);
    assert_eq!(names(&copy), ["/f000", "/f001", "/f002"]);
    assert_eq!(copy.audit(true).exit_code, 0);
}

#[test]
fn a_sidecar_of_links_without_its_file_is_found_and_removed() {
    let mut source = some(12);
    let mut copy = Copy::kept_in(&source, folder);
    copy.options.republish = true;
    copy.run();
    // A run that is killed between the two files, of a resource that is then deleted at the Source.
    fs::remove_file(copy.folder().join("f001")).unwrap();
    let mirror =
        abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
    let row = mirror.row(&source.server.url("/f001")).unwrap().unwrap();
    let planned = abreast_store::mirror::Pending {
        uri: row.uri.clone(),
        length: Some(row.length),
        digests: row.digests.clone(),
        ..Default::default()
    };
    mirror.put_pending(&planned).unwrap();
    mirror.delete_row(&row.uri).unwrap();
    mirror.set_meta("finished", Some("0")).unwrap();
    drop(mirror);
    let codes = || {
        let mut findings = Findings::default();
        check_copy(
            &place_of(&copy),
            &|_| false,
            &mut findings,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        findings
            .list()
            .iter()
            .map(|finding| (finding.rule, finding.location.clone()))
            .collect::<Vec<_>>()
    };
    let place = copy.folder().display().to_string();
    assert_eq!(
        codes(),
        [("copy.pending", place), ("copy.leftover", ".f001.links.json".to_owned())]
    );
    source.delete("/f001");
    copy.run();
    assert!(!copy.folder().join(".f001.links.json").exists());
    assert_eq!(copy.audit(true).exit_code, 0);

    // One of an earlier program; links that people wrote are theirs.
    fs::write(copy.folder().join(".gone.links.json"), r#"[{"rel": "via", "href": "http://h/"}]"#)
        .unwrap();
    fs::write(
        copy.folder().join(".mine.links.json"),
        r#"[{"rel": "license", "href": "http://h/"}]"#,
    )
    .unwrap();
    assert_eq!(codes(), [("copy.leftover", ".gone.links.json".to_owned())]);
    repair_copy(
        &place_of(&copy),
        &|_| false,
        false,
        &AtomicBool::new(false),
        &abreast_core::Meter::default(),
    )
    .unwrap();
    assert_eq!(codes(), []);
    assert!(copy.folder().join(".mine.links.json").exists());
}

// Databases and their folders.

#[test]
fn a_folder_that_is_published_is_not_copied_into() {
    let source = some(3);
    let mut copy = Copy::kept_in(&source, folder);
    fs::create_dir_all(copy.folder().join(".abreast")).unwrap();
    fs::write(copy.folder().join(".abreast/source.db"), "").unwrap();
    fs::write(copy.folder().join("f001"), "published").unwrap();
    for dry_run in [true, false] {
        copy.options.dry_run = dry_run;
        let error = copy.try_run().result.unwrap_err();
        assert_eq!((error.code(), error.exit_code().number()), ("folder.published", 2));
        assert_eq!(names(&copy), ["/f001"]);
    }
    copy.options.republish = true;
    copy.options.dry_run = false;
    assert_eq!(copy.run().exit_code, 0);
}

#[test]
fn a_copy_without_its_state_continues_with_a_notice() {
    for (sink, elsewhere) in [
        (SinkOptions::Folder, false),
        (SinkOptions::Folder, true),
        (SinkOptions::Warc(WarcOptions::default()), false),
    ] {
        let mut source = some(3);
        let mut copy = Copy::kept_in(&source, |_| sink.clone());
        let state: PathBuf = if elsewhere {
            copy.folder().with_extension("state")
        } else {
            copy.folder().join(".abreast")
        };
        copy.options.state = elsewhere.then(|| state.clone());
        let Ran { result: first, codes, .. } = copy.try_run();
        assert_eq!((first.unwrap().created, codes.len()), (3, 0), "{codes:?}");
        for named in [true, false] {
            fs::remove_dir_all(&state).unwrap();
            copy.options.state = (elsewhere && named).then(|| state.clone());
            source.server.take_log();
            let Ran { result: ran, codes, .. } = copy.try_run();
            let ran = ran.unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                (ran.exit_code, ran.created, ran.updated),
                (0, 0, 0),
                "{sink:?} {elsewhere} {named}"
            );
            assert_eq!(codes, ["state.missing"], "{sink:?} {elsewhere} {named}");
            assert!(!source.server.take_log().iter().any(|path| path.starts_with("/f")));
            let Ran { result: ran, codes, .. } = copy.try_run();
            assert_eq!((ran.unwrap().requests, codes.len()), (1, 0), "{codes:?}");
            source.set("/f001", if named { "followed" } else { "followed again" });
            assert_eq!(copy.run().updated, 1);
            if elsewhere && !named {
                break;
            }
            source.snapshot();
        }
        assert_eq!(copy.audit(true).exit_code, 0);
    }
}

#[test]
fn a_full_comparison_restores_a_copy_after_any_damage() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    for round in 0..6 {
        let mut source = Source::new();
        let paths: Vec<String> = (0..30)
            .map(|number| format!("/d{}/e{}/f{number:02}", number % 3, number % 2))
            .collect();
        for path in &paths {
            source.set(path, &format!("{path} {round}"));
        }
        source.snapshot();
        let mut copy = Copy::kept_in(&source, folder);
        copy.options.base = Some(source.server.url("/"));
        copy.run();
        for _ in 0..12 {
            let path = copy.folder().join(&random.of(&paths)[1..]);
            let parent = path.parent().unwrap();
            let _ = match random.below(6) {
                0 => fs::remove_file(&path),
                1 => fs::write(&path, "other"),
                2 if path.is_file() => {
                    flip(&path);
                    Ok(())
                }
                3 => fs::remove_dir_all(parent),
                4 if parent.is_dir() => fs::rename(&path, parent.join("moved")),
                _ if parent.is_dir() => {
                    let _ = fs::remove_file(&path);
                    let _ = fs::create_dir(&path);
                    fs::write(path.join("mine"), "mine")
                }
                _ => Ok(()),
            };
        }
        copy.options.baseline = true;
        copy.options.full = true;
        assert_eq!(copy.run().exit_code, 0, "round {round}");
        let report = copy.audit(true);
        assert_eq!((report.same, report.updated, report.missing), (30, 0, 0), "round {round}");
        let again = copy.run();
        assert_eq!((again.damaged, again.updated, again.created), (0, 0, 0), "round {round}");
    }
}

#[test]
fn a_foreign_folder_at_the_name_of_a_resource_is_reported() {
    let mut source = some(2);
    source.set("/a", "a file");
    source.snapshot();
    let mut copy = Copy::kept_in(&source, folder);
    let own = copy.folder().join("a");
    fs::create_dir_all(&own).unwrap();
    fs::write(own.join("mine"), "the user's own").unwrap();
    let Ran { result: ran, codes, .. } = copy.try_run();
    assert_eq!(
        (ran.unwrap().notices, codes),
        (2, vec!["state.missing".to_owned(), "path.conflict".to_owned()])
    );
    assert_eq!(fs::read(copy.folder().join("%!a")).unwrap(), b"a file");
    // A run in which nothing changes is silent; a comparison and an audit report it until it is
    // over.
    assert_eq!(copy.run().notices, 0);
    copy.options.baseline = true;
    for dry_run in [true, false] {
        copy.options.dry_run = dry_run;
        assert_eq!(copy.try_run().codes, ["path.conflict"]);
    }
    let report = copy.audit(false);
    assert_eq!((report.same, report.extra, report.conflicts), (3, 1, 1));
    // A folder that resources need does not count.
    source.set("/f000/x", "beneath a file");
    copy.options.baseline = false;
    assert_eq!(copy.try_run().codes, ["path.conflict"], "the resource that was moved");
    copy.options.baseline = true;
    let message = copy.try_run().codes;
    assert_eq!((message, copy.audit(true).conflicts), (vec!["path.conflict".to_owned()], 1));
    fs::remove_dir_all(&own).unwrap();
    assert!(copy.try_run().codes.is_empty());
    let report = copy.audit(true);
    assert_eq!(
        (report.exit_code, report.conflicts, copy.folder().join("a").is_file()),
        (0, 0, true)
    );
}

#[test]
fn what_is_stored_without_a_row_is_found_and_compared() {
    let sinks: [fn(&std::path::Path) -> SinkOptions; 3] =
        [crate::rdf::nquads, crate::sinks::warc, crate::rdf::sparql];
    for sink in sinks {
        let mut source = Source::of_statements();
        (0..9).for_each(|number| source.set(&format!("/f{number}"), "text"));
        source.snapshot();
        let mut copy = Copy::kept_in(&source, sink);
        copy.run();
        let path = copy.folder().join(".abreast/mirror.db");
        let mirror = abreast_store::mirror::Mirror::open(&path).unwrap();
        for path in ["/f1", "/f2"] {
            mirror.delete_row(&source.server.url(path)).unwrap();
        }
        drop(mirror);
        source.delete("/f1");
        source.snapshot();
        let place = place_of(&copy);
        let unrecorded = || {
            let mut findings = Findings::default();
            check_copy(
                &place,
                &|_| true,
                &mut findings,
                &AtomicBool::new(false),
                &abreast_core::Meter::default(),
            )
            .unwrap();
            findings.list().iter().filter(|finding| finding.rule == "copy.unrecorded").count()
        };
        assert_eq!(unrecorded(), 2);
        for is_full in [false, true] {
            let report = copy.audit(is_full);
            assert_eq!((report.updated, report.extra, report.missing), (1, 1, 0), "{is_full}");
            assert_eq!((report.same, report.exit_code), (7, 1), "{is_full}");
        }
        repair_copy(
            &place,
            &|_| true,
            false,
            &AtomicBool::new(false),
            &abreast_core::Meter::default(),
        )
        .unwrap();
        assert_eq!(unrecorded(), 0);
        copy.options.baseline = true;
        assert_eq!(copy.run().deleted, 1);
        assert_eq!(copy.audit(true).exit_code, 0);
    }
}
