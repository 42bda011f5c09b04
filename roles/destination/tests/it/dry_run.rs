//! A dry run changes nothing, and predicts the next run: the same counts, codes and exit code.

use crate::contract::some;
use crate::copy::{Copy, Ran};
use crate::source::Source;
use abreast_destination::{
    Filter, ItemAction, MaxDelete, SinkOptions, Summary, SyncOptions, WarcOptions,
};
use abreast_testkit::documents::document;
use abreast_testkit::pages::Answer;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn copy_of(source: &Source) -> Copy {
    Copy::kept_in(source, |_| SinkOptions::Folder)
}

/// The reports of a run: its summary, the codes of errors and notices, and the changed or held
/// resources.
type Reported = (Summary, Vec<String>, Vec<(String, ItemAction)>);

fn reported(options: &SyncOptions, dry_run: bool) -> Reported {
    let ran = Ran::sync(&SyncOptions { dry_run, ..options.clone() });
    let mut codes = ran.codes;
    // Where a file stands whose name is given to a folder, or given back, only the real run shows.
    let mut items: Vec<_> = ran.items.into_iter().map(|item| (item.path, item.action)).collect();
    codes.sort();
    items.sort_by(|one, other| one.0.cmp(&other.0));
    (ran.result.unwrap(), codes, items)
}

/// Every file that the user can see, with its bytes and time; files of the state only by their
/// names.
fn seen(place: &Path) -> BTreeMap<PathBuf, (Vec<u8>, Option<std::time::SystemTime>)> {
    let mut out = BTreeMap::new();
    let mut waiting = vec![place.to_owned()];
    while let Some(dir) = waiting.pop() {
        for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_state = path.components().any(|part| part.as_os_str() == ".abreast");
            if path.is_dir() {
                out.insert(path.clone(), (Vec::new(), None));
                waiting.push(path);
            } else if !is_state {
                let time = fs::metadata(&path).unwrap().modified().unwrap();
                out.insert(path.clone(), (fs::read(&path).unwrap(), Some(time)));
            }
        }
    }
    out
}

/// A dry run, then the run itself: gives back what both reported.
fn announced(copy: &Copy) -> Reported {
    let before = seen(copy.folder());
    let (dry, dry_codes, dry_items) = reported(&copy.options, true);
    assert_eq!(seen(copy.folder()), before, "a dry run changed something");
    let (again, ..) = reported(&copy.options, true);
    let (real, codes, items) = reported(&copy.options, false);
    let counts = |summary: &Summary| {
        let Summary {
            created,
            updated,
            deleted,
            unchanged,
            excluded,
            skipped,
            failed,
            held,
            damaged,
            ..
        } = summary;
        let numbers =
            [created, updated, deleted, unchanged, excluded, skipped, failed, held, damaged]
                .map(|n| *n);
        (
            numbers,
            summary.mode,
            summary.unverified,
            summary.delete_limit,
            summary.budget_spent,
            summary.exit_code,
        )
    };
    assert_eq!(counts(&dry), counts(&again), "a dry run after a dry run");
    assert_eq!(
        counts(&dry),
        counts(&real),
        "created, updated, deleted ...: {dry_codes:?} {codes:?}"
    );
    assert_eq!((&dry_codes, dry.notices), (&codes, real.notices));
    // Held deletions have no item in a real run.
    let (held, dry_items): (Vec<_>, Vec<_>) =
        dry_items.into_iter().partition(|item| item.1 == ItemAction::Held);
    assert_eq!(held.len() as u64, real.held);
    assert_eq!(dry_items, items);
    (real, codes, items)
}

#[test]
fn a_dry_run_announces_a_first_run_and_what_follows() {
    let mut source = some(3);
    source.set("/a", "a file");
    source.set("/docs/x/y", "deep");
    source.snapshot();
    let copy = copy_of(&source);
    assert_eq!(announced(&copy).0.created, 5);
    source.set("/a/b", "a folder now");
    source.set("/f000", "other");
    source.delete("/f001");
    let (ran, codes, _) = announced(&copy);
    assert_eq!((ran.created, ran.updated, ran.deleted), (1, 1, 1));
    assert_eq!(codes, ["path.conflict"]);
    source.delete("/a/b");
    assert_eq!(announced(&copy).0.deleted, 1);
    assert_eq!(announced(&copy).0.exit_code, 0);
}

#[test]
fn a_dry_run_holds_the_deletions_that_the_run_holds() {
    let mut source = some(12);
    let mut copy = copy_of(&source);
    copy.run();
    for number in 0..8 {
        source.delete(&format!("/f{number:03}"));
    }
    source.set("/new", "new");
    for _ in 0..2 {
        let (ran, codes, _) = announced(&copy);
        assert_eq!((ran.exit_code, ran.held, ran.deleted, ran.delete_limit), (7, 8, 0, true));
        assert_eq!(codes, ["delete.limit"]);
    }
    copy.options.max_delete = MaxDelete::Count(8);
    let (ran, ..) = announced(&copy);
    assert_eq!((ran.exit_code, ran.held, ran.deleted), (0, 0, 8));
}

#[test]
fn a_dry_run_distinguishes_altered_files_from_touched_ones() {
    for has_digests in [true, false] {
        let source = some(6);
        if !has_digests {
            let entries: Vec<String> = (source.kept.keys())
                .map(|path| {
                    let url = source.server.url(path);
                    format!("<url><loc>{url}</loc><lastmod>2025-06-01T00:00:00Z</lastmod></url>")
                })
                .collect();
            let attributes = "capability=\"resourcelist\" at=\"2026-01-01T00:00:06Z\"";
            source
                .server
                .body("/resourcelist.xml", document("urlset", attributes, &entries.concat()));
        }
        let mut copy = copy_of(&source);
        copy.run();
        let at = |name: &str| copy.folder().join(name);
        fs::remove_file(at("f001")).unwrap();
        fs::write(at("f002"), "longer than it was").unwrap();
        fs::File::options()
            .write(true)
            .open(at("f003"))
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
        // As long as it was.
        let altered = "F".repeat(fs::read(at("f004")).unwrap().len());
        fs::write(at("f004"), altered).unwrap();
        copy.options.baseline = true;
        source.server.take_log();
        let (ran, codes, items) = announced(&copy);
        assert_eq!((ran.exit_code, ran.damaged, ran.updated), (0, 3, 3), "{codes:?} {items:?}");
        let expected =
            ["local.altered", "local.altered", "local.backup", "local.backup", "local.missing"];
        assert_eq!(codes, expected);
        assert!(!source.server.take_log().contains(&"/f003".to_owned()), "touched, not fetched");
        assert_eq!(copy.audit(true).same, 6);
        let time = fs::metadata(copy.folder().join("f003")).unwrap().modified().unwrap();
        assert_ne!(time, std::time::UNIX_EPOCH, "it has the listed time again");
        let (ran, codes, _) = announced(&copy);
        assert_eq!((ran.damaged, ran.updated, codes.len()), (0, 0, 0));
    }
}

#[test]
fn a_dry_run_knows_what_is_in_the_folder_already() {
    let source = some(4);
    let copy = copy_of(&source);
    fs::create_dir_all(copy.folder()).unwrap();
    fs::write(copy.folder().join("f000"), &source.kept["/f000"]).unwrap();
    fs::write(copy.folder().join("f001"), "the user's own").unwrap();
    fs::write(copy.folder().join("own"), "the user's own").unwrap();
    let (ran, codes, _) = announced(&copy);
    assert_eq!((ran.created, ran.updated, ran.unchanged), (2, 1, 1));
    assert_eq!(codes, ["local.backup", "state.missing"]);
}

#[test]
fn a_dry_run_refuses_what_the_run_refuses() {
    // Files that were changed here, under `--immutable`; the refusal holds a deletion.
    let mut source = some(4);
    let mut copy = copy_of(&source);
    copy.options.immutable = true;
    copy.run();
    fs::write(copy.folder().join("f001"), "by hand").unwrap();
    fs::write(copy.folder().join("way"), "the user's own").unwrap();
    source.set("/f001", "newer");
    source.set("/way/x", "no room");
    source.delete("/f002");
    let (ran, codes, _) = announced(&copy);
    assert_eq!((ran.exit_code, ran.skipped, ran.held), (3, 2, 1));
    assert_eq!(codes, ["delete.held", "local.altered", "local.changed", "path.conflict"]);

    // A host that asks programs to stay away, no digest, another host.
    let source = some(2);
    source.server.body("/robots.txt", "User-agent: *\nDisallow: /f001\n");
    let list = String::from_utf8(source.server.page("/resourcelist.xml")).unwrap();
    let more = "<url><loc>http://elsewhere.example/x</loc></url></urlset>";
    source.server.body("/resourcelist.xml", list.replace("</urlset>", more));
    source.server.put("/plain", Answer::ok("plain"));
    let copy = copy_of(&source);
    let (ran, codes, _) = announced(&copy);
    assert_eq!((ran.exit_code, ran.created, ran.skipped), (3, 1, 2));
    assert_eq!(codes, ["robots.disallow", "uri.authority"]);

    let source = some(2);
    let list = String::from_utf8(source.server.page("/resourcelist.xml")).unwrap();
    let more = format!("<url><loc>{}</loc></url></urlset>", source.server.url("/plain"));
    source.server.body("/plain", "plain");
    source.server.body("/resourcelist.xml", list.replace("</urlset>", &more));
    let mut copy = copy_of(&source);
    copy.options.require_fixity = true;
    assert_eq!(announced(&copy).1, ["fixity.missing"]);
    copy.options.require_fixity = false;
    assert_eq!(announced(&copy).0.created, 1);
}

#[test]
fn a_dry_run_follows_filters_and_broken_lists() {
    let mut source = some(6);
    let mut copy = copy_of(&source);
    copy.run();
    copy.options.filter = Filter::new(["- f00[01]"]).unwrap();
    assert_eq!(announced(&copy).1, ["filter.kept"]);
    copy.options.delete_excluded = true;
    assert_eq!(announced(&copy).0.deleted, 2);
    // A list of the index that cannot be read holds the deletions.
    source.delete("/f002");
    source.snapshot();
    let part = source.server.page("/resourcelist.xml");
    source.server.body("/part.xml", part);
    let child = |path: &str| format!("<sitemap><loc>{}</loc></sitemap>", source.server.url(path));
    let attributes = format!("capability=\"resourcelist\" at=\"{}\"", source.at);
    let index = document("sitemapindex", &attributes, &(child("/part.xml") + &child("/none.xml")));
    source.server.body("/resourcelist.xml", index);
    copy.options.baseline = true;
    let (ran, codes, _) = announced(&copy);
    assert_eq!((ran.exit_code, ran.failed, ran.deleted), (3, 1, 0), "{codes:?}");
}

#[test]
fn a_dry_run_of_a_packed_copy_is_judged_by_its_state() {
    let mut source = some(12);
    let mut copy = Copy::kept_in(&source, |_| SinkOptions::Warc(WarcOptions::default()));
    let counts = |dry_run: bool, copy: &Copy| {
        let (ran, codes, _) = reported(&copy.options, dry_run);
        ((ran.created, ran.updated, ran.deleted, ran.held, ran.exit_code), codes)
    };
    for expected in [12, 0] {
        let dry = counts(true, &copy);
        assert_eq!(dry, counts(false, &copy));
        assert_eq!(dry.0.0, expected);
    }
    for number in 0..8 {
        source.delete(&format!("/f{number:03}"));
    }
    source.set("/f009", "newer");
    let dry = counts(true, &copy);
    assert_eq!(dry, ((0, 1, 0, 8, 7), vec!["delete.limit".to_owned()]));
    assert_eq!(dry, counts(false, &copy));
    copy.options.max_delete = MaxDelete::Count(8);
    let dry = counts(true, &copy);
    assert_eq!((dry.0, dry), ((0, 0, 8, 0, 0), counts(false, &copy)));
}

#[test]
fn a_dry_run_makes_no_folder_though_there_is_a_state() {
    let source = some(2);
    let mut copy = copy_of(&source);
    copy.options.state = Some(copy.folder().with_file_name("state"));
    copy.run();
    fs::remove_dir_all(copy.folder()).unwrap();
    copy.options.baseline = true;
    let (dry, codes, _) = reported(&copy.options, true);
    assert_eq!((dry.damaged, codes.len()), (2, 3), "{codes:?}");
    assert_eq!(codes, ["local.missing", "local.missing", "local.restored"]);
    assert!(!copy.folder().exists());
    copy.options.dry_run = false;
    assert_eq!(copy.run().damaged, 2);
}
