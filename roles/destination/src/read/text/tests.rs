//! What a protocol may state, through a run, an audit and every sink.
#![cfg(test)]

use super::PROTOCOL;
use crate::read::choice::Choice;
use crate::read::protocol::Protocol;
use crate::read::resourcesync;
use crate::report::error::Error;
use crate::report::events::{Event, ItemAction, Mode, Summary};
use crate::report::options::{AuditOptions, SyncOptions};
use crate::report::sinks::{LinesOptions, NQuadsOptions, Output, SinkOptions, WarcOptions};
use crate::run::audit::audit_with;
use crate::run::sync::{Wake, sync_with};
use abreast_net::Shared;
use abreast_store::mirror::Mirror;
use abreast_testkit::digest::md5_hex;
use abreast_testkit::documents::document;
use abreast_testkit::pages::{Answer, Server};
use abreast_testkit::zip::Zip;
use abreast_webtypes::Digests;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// A Source of the text protocol, and a copy of the Source.
struct Pair {
    server: Server,
    options: SyncOptions,
    protocols: &'static [Protocol],
    /// Errors and notices of the last run: code, URI, message.
    problems: Mutex<Vec<String>>,
    /// The lines that a sink of lines wrote.
    lines: Lines,
}

/// An output that can be read.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Pair {
    fn new(place: &Path, name: &str) -> Self {
        let (server, lines) = (Server::start(), Lines::default());
        let sink = match name {
            "folder" => SinkOptions::Folder,
            "warc" => SinkOptions::Warc(WarcOptions::default()),
            #[cfg(feature = "s3")]
            "objects" => {
                let url = format!("file://{}", place.join("bucket").display());
                SinkOptions::Objects(crate::report::sinks::ObjectsOptions {
                    url,
                    settings: Vec::new(),
                })
            }
            _ => {
                let output = Output::new(lines.clone());
                SinkOptions::Lines(LinesOptions { output, content_bytes_max: Some(1 << 20) })
            }
        };
        let mut options = SyncOptions {
            sink,
            ignore_robots: true,
            ..SyncOptions::new(server.url("/"), place.join(name))
        };
        options.net.backoff_base = std::time::Duration::from_millis(1);
        options.net.retries = 1;
        let pair =
            Self { server, options, protocols: &[PROTOCOL], problems: Mutex::default(), lines };
        pair.changes(&[]);
        pair
    }

    fn problems(&self) -> Vec<String> {
        self.problems.lock().unwrap().clone()
    }

    /// The stored text of `/d/NAME`, for any sink; for a sink of lines the last written text.
    fn kept(&self, name: &str) -> Option<String> {
        let uri = self.server.url(&format!("/d/{name}"));
        if let SinkOptions::Lines(_) = self.options.sink {
            let text = String::from_utf8(self.lines.0.lock().unwrap().clone()).unwrap();
            let mut lines =
                text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
            let last = lines.rfind(|line| line["uri"] == uri)?;
            let bytes = base64::Engine::decode(
                &base64::prelude::BASE64_STANDARD,
                last["content"].as_str()?,
            )
            .unwrap();
            return Some(String::from_utf8(bytes).unwrap());
        }
        let row = Mirror::open(&self.options.folder.join(".abreast/mirror.db"))
            .unwrap()
            .row(&uri)
            .unwrap()?;
        let mut digests = Digests::default();
        digests.set_from_bytes(&row.digests);
        let texts = ["one", "old", "new", "version 1", "version 2", "version 3"]
            .map(|text| text.repeat(1_000));
        let short = ["one", "old", "new", "more"].map(str::to_owned);
        short
            .into_iter()
            .chain(texts)
            .find(|text| digests.md5 == Some(<md5::Md5 as md5::Digest>::digest(text).into()))
    }

    /// Serves a resource and gives its line.
    fn resource(&self, name: &str, body: &str) -> String {
        self.server.body(&format!("/d/{name}"), body);
        format!(
            "{} 1700000000 {}",
            self.server.url(&format!("/d/{name}")),
            md5_hex(body.as_bytes())
        )
    }

    fn list(&self, at: usize, lines: &[String]) {
        self.server.body("/list.txt", format!("{at}\n{}\nend\n", lines.join("\n")));
    }

    fn changes(&self, lines: &[String]) {
        self.server
            .body("/changes.txt", lines.iter().map(|line| line.clone() + "\n").collect::<String>());
    }

    fn sync(&self) -> Result<Summary, Error> {
        let (cancel, shared) = (AtomicBool::new(false), Shared::new(self.options.net_options()));
        let (robots, wake, mut choice) =
            (Arc::default(), Wake::default(), Choice::of(self.protocols));
        let problems = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Error(problem) | Event::Notice(problem) = event {
                problems
                    .lock()
                    .unwrap()
                    .push(format!("{} {} {}", problem.code, problem.uri, problem.message));
            }
        };
        let ran = sync_with(&self.options, &observer, &cancel, &shared, &robots, wake, &mut choice);
        *self.problems.lock().unwrap() = problems.into_inner().unwrap();
        ran.map(|ran| ran.summary)
    }

    /// The differences that an audit of all bytes finds.
    fn differences(&self) -> Vec<(String, ItemAction)> {
        let found = Mutex::new(Vec::new());
        let observer = |event: &Event<'_>| {
            if let Event::Item(item) = event {
                found.lock().unwrap().push((item.path.to_owned(), item.action));
            }
        };
        let options = AuditOptions { sync: self.options.clone(), full: true };
        audit_with(&options, &observer, &AtomicBool::new(false), &mut Choice::of(self.protocols))
            .unwrap();
        found.into_inner().unwrap()
    }
}

/// A choice of protocols.
const BOTH: &[Protocol] = &[PROTOCOL, resourcesync::PROTOCOL];

/// Sinks that store the bytes or statements.
fn sinks() -> Vec<&'static str> {
    let mut all = vec!["folder", "warc"];
    if cfg!(feature = "s3") {
        all.push("objects");
    }
    all
}

/// Sinks of any kind.
fn all_sinks() -> Vec<&'static str> {
    [sinks(), vec!["lines"]].concat()
}

fn counts(summary: &Summary) -> [u64; 4] {
    [summary.created, summary.updated, summary.deleted, summary.failed]
}

#[test]
fn another_protocol_is_copied_followed_and_audited() {
    let place = tempfile::tempdir().unwrap();
    for name in sinks() {
        let pair = Pair::new(place.path(), name);
        let lines: Vec<_> = ["a", "b", "c"].iter().map(|name| pair.resource(name, "old")).collect();
        pair.list(0, &lines);
        let first = pair.sync().unwrap();
        assert_eq!((counts(&first), first.mode), ([3, 0, 0, 0], Mode::Baseline), "{name}");
        assert_eq!(pair.differences(), [], "{name}");

        let gone = format!("gone {} 1700000003", pair.server.url("/d/c"));
        let (new, other) = (pair.resource("b", "new"), pair.resource("e", "more"));
        pair.changes(&[format!("put {new}"), format!("put {other}"), gone]);
        pair.server.remove("/d/c");
        assert_eq!(pair.differences().len(), 3, "{name}: the audit knows of the changes");
        let second = pair.sync().unwrap();
        assert_eq!((counts(&second), second.mode), ([1, 1, 1, 0], Mode::Incremental), "{name}");
        assert_eq!(second.cursor.as_deref(), Some("2023-11-14T22:13:23Z"));
        assert_eq!(pair.differences(), [], "{name}");

        pair.server.take_log();
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 0, 0], "{name}");
        assert_eq!(pair.server.take_log(), ["/changes.txt"], "{name}: one request");
    }
}

#[test]
fn another_protocol_deletes_no_more_than_is_allowed() {
    let place = tempfile::tempdir().unwrap();
    for name in sinks() {
        let mut pair = Pair::new(place.path(), name);
        let lines: Vec<_> =
            (0..20).map(|number| pair.resource(&format!("r{number}"), "old")).collect();
        pair.list(0, &lines);
        pair.sync().unwrap();
        pair.options.baseline = true;

        let whole = pair.server.page("/list.txt");
        pair.server.body("/list.txt", &whole[..whole.len() / 2]);
        assert_eq!(pair.sync().unwrap_err().code(), "text.line", "{name}");
        pair.list(0, &[]);
        assert_eq!(pair.sync().unwrap_err().code(), "text.line", "{name}: an empty line is none");
        pair.list(0, &lines[..4]);
        let held = pair.sync().unwrap();
        assert_eq!((held.deleted, held.held, held.delete_limit), (0, 16, true), "{name}");
        pair.list(0, &lines);
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 0, 0], "{name}: nothing was deleted");
        pair.list(0, &lines[..19]);
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 1, 0], "{name}");
    }
}

#[test]
fn changes_that_are_missing_lead_to_a_comparison() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), "folder");
    let lines = [pair.resource("a", "one"), pair.resource("b", "two")];
    pair.list(0, &lines[..1]);
    pair.changes(&[format!("put {}", lines[1])]);
    let first = pair.sync().unwrap();
    assert_eq!(
        (counts(&first), first.cursor.as_deref()),
        ([2, 0, 0, 0], Some("2023-11-14T22:13:20Z"))
    );
    // The log of the Source was restarted.
    pair.list(0, &lines);
    pair.changes(&[]);
    let again = pair.sync().unwrap();
    assert_eq!(
        (counts(&again), again.mode, again.cursor.as_deref()),
        ([0, 0, 0, 0], Mode::Baseline, None)
    );
}

#[test]
fn packages_of_another_protocol_are_chosen_by_their_cost() {
    let place = tempfile::tempdir().unwrap();
    for name in sinks() {
        let pair = Pair::new(place.path(), name);
        let (mut zip, mut index, mut lines) = (Zip::new(), Vec::new(), Vec::new());
        for number in 0..40 {
            let member = format!("r{number}");
            lines.push(pair.resource(&member, &member));
            index.push(format!("{} {member}", pair.server.url(&format!("/d/{member}"))));
            zip.add(&member, member.as_bytes());
        }
        zip.add("index.txt", index.join("\n").as_bytes());
        let package = zip.finish();
        pair.server
            .body("/dump.txt", format!("{} {}\n", pair.server.url("/all.zip"), package.len()));
        pair.server.body("/all.zip", package);
        pair.list(0, &lines);
        assert_eq!(counts(&pair.sync().unwrap()), [40, 0, 0, 0], "{name}");
        let requests = pair.server.take_log();
        assert_eq!(
            requests,
            ["/list.txt", "/changes.txt", "/dump.txt", "/all.zip"],
            "{name}: no resource by itself"
        );
        assert_eq!(pair.differences(), [], "{name}");
        pair.server.take_log();

        // A few are requested by themselves, and the dump is not even read.
        let changes: Vec<_> = (0..3)
            .map(|number| format!("put {}", pair.resource(&format!("r{number}"), "new")))
            .collect();
        pair.changes(&changes);
        assert_eq!(counts(&pair.sync().unwrap()), [0, 3, 0, 0], "{name}");
        let requests = pair.server.take_log();
        assert!(
            requests.iter().all(|path| path != "/dump.txt" && path != "/all.zip"),
            "{name}: {requests:?}"
        );
    }
}

#[test]
fn a_resource_is_requested_at_its_address_and_named_by_its_uri() {
    let place = tempfile::tempdir().unwrap();
    for name in all_sinks() {
        let pair = Pair::new(place.path(), name);
        let (uri, md5) = (pair.server.url("/d/a"), md5_hex(b"one"));
        pair.server.by_accept("/r/1", "text/x-wanted", Answer::ok("one"));
        let line = |href: &str| {
            format!("{uri} 1700000000 {md5} length=3 href={href} accept=text/x-wanted")
        };
        // An address on another host is refused, for any host of the URI.
        pair.list(0, &[line("http://elsewhere.example/1"), pair.resource("b", "old")]);
        assert_eq!((pair.sync().unwrap().skipped, pair.problems().len()), (1, 1), "{name}");
        assert!(
            pair.problems()[0].contains("requested at http://elsewhere.example/1"),
            "{:?}",
            pair.problems()
        );
        // The request fails temporarily: the next run knows the address from the plan alone.
        let href = pair.server.url("/r/1");
        pair.list(0, &[line(&href), pair.resource("b", "old")]);
        pair.server.by_accept("/r/1", "text/x-wanted", Answer::status(500));
        let baseline =
            Pair { options: SyncOptions { baseline: true, ..pair.options.clone() }, ..pair };
        assert_eq!(counts(&baseline.sync().unwrap())[3], 1, "{name}");
        let problems = baseline.problems();
        assert!(problems[0].contains(&uri) && problems[0].contains(&href), "{name}: {problems:?}");
        baseline.server.by_accept("/r/1", "text/x-wanted", Answer::ok("one"));
        let pair = Pair {
            options: SyncOptions { baseline: false, ..baseline.options.clone() },
            ..baseline
        };
        pair.server.take_log();
        assert_eq!(counts(&pair.sync().unwrap()), [1, 0, 0, 0], "{name}: {:?}", pair.problems());
        assert_eq!(pair.server.take_log(), ["/changes.txt", "/r/1"], "{name}");
        assert_eq!(pair.kept("a").as_deref(), Some("one"), "{name}");
        if name != "lines" {
            assert_eq!(pair.differences(), [], "{name}");
        }
    }
}

#[test]
fn a_lost_file_is_fetched_again_from_its_address() {
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair::new(place.path(), "folder");
    pair.options.republish = true;
    pair.server.by_accept("/r/1", "text/x-wanted", Answer::ok("one"));
    let (uri, href, md5) = (pair.server.url("/d/a"), pair.server.url("/r/1"), md5_hex(b"one"));
    pair.list(
        0,
        &[
            format!("{uri} 1700000000 {md5} href={href} accept=text/x-wanted"),
            pair.resource("b", "old"),
        ],
    );
    pair.sync().unwrap();
    let links = std::fs::read_to_string(pair.options.folder.join(".a.links.json")).unwrap();
    let links: serde_json::Value = serde_json::from_str(&links).unwrap();
    assert_eq!((&links[0]["rel"], &links[0]["href"]), (&"via".into(), &uri.as_str().into()));
    assert_eq!(links[1], serde_json::json!({"rel": "urn:abreast:rel:requested", "href": href}));
    // The audit reports both addresses, and so does the plan of a comparison for lost files.
    std::fs::remove_file(pair.options.folder.join("a")).unwrap();
    let named = Mutex::new(Vec::new());
    let observer = |event: &Event<'_>| {
        if let Event::Item(item) = event {
            named.lock().unwrap().push((item.uri.to_owned(), item.href.map(str::to_owned)));
        }
    };
    let options = AuditOptions { sync: pair.options.clone(), full: true };
    audit_with(&options, &observer, &AtomicBool::new(false), &mut Choice::of(pair.protocols))
        .unwrap();
    assert!(named.into_inner().unwrap().contains(&(uri.clone(), Some(href.clone()))));
    let changed = format!("put {uri} 1700000001 {md5} href={href} accept=text/x-wanted");
    pair.changes(&[changed]);
    pair.server.take_log();
    assert_eq!(pair.sync().unwrap().damaged, 1);
    assert_eq!(pair.server.take_log(), ["/changes.txt", "/r/1"]);
    assert_eq!(std::fs::read_to_string(pair.options.folder.join("a")).unwrap(), "one");
    // Found by the check of a restarted machine, nothing but the state knows how to request it.
    std::fs::remove_file(pair.options.folder.join("a")).unwrap();
    let mirror = Mirror::open(&pair.options.folder.join(".abreast/mirror.db")).unwrap();
    let row = mirror.row(&uri).unwrap().unwrap();
    crate::sink::kept::plan_again(&mirror, &row).unwrap();
    drop(mirror);
    pair.sync().unwrap();
    assert_eq!(pair.server.take_log(), ["/changes.txt", "/r/1"]);
    assert_eq!(std::fs::read_to_string(pair.options.folder.join("a")).unwrap(), "one");
}

/// Three versions, and the patches between them as `patch=` words with their listed properties.
struct Versions {
    bodies: [String; 3],
    patches: [String; 2],
}

/// Each version consists of the previous version and an appended text.
fn versions(pair: &Pair) -> Versions {
    let first = "version 1".repeat(1_000);
    let bodies = [first.clone(), format!("{first}, 2"), format!("{first}, 2, 3")];
    pair.server.body("/p/2", ", 2");
    pair.server.body("/p/3", ", 3");
    let md5 = |at: usize| md5_hex(bodies[at].as_bytes());
    let patches = [1, 2].map(|at| {
        let url = pair.server.url(&format!("/p/{}", at + 1));
        format!("patch={url}|application/x-append|3|{}|{}", md5(at - 1), md5(at))
    });
    Versions { bodies, patches }
}

/// Copies the first version, publishes the third with these words, and returns the requests of the
/// next run.
fn patched(pair: &Pair, versions: &Versions, changes: &[(usize, &str)]) -> Vec<String> {
    let uri = pair.server.url("/d/a");
    let line = |at: usize, words: &str| {
        let body = &versions.bodies[at];
        let href = pair.server.url("/r/a");
        format!(
            "{uri} {} {} length={} href={href} {words}",
            1_700_000_000 + at,
            md5_hex(body.as_bytes()),
            body.len()
        )
    };
    pair.server.body("/r/a", versions.bodies[0].as_str());
    pair.list(0, &[line(0, "").trim().to_owned()]);
    pair.sync().unwrap();
    pair.server.body("/r/a", versions.bodies[2].as_str());
    let lines: Vec<_> =
        changes.iter().map(|(at, words)| format!("put {}", line(*at, words).trim())).collect();
    pair.changes(&lines);
    pair.server.take_log();
    let ran = pair.sync().unwrap();
    assert_eq!((counts(&ran), pair.problems().len()), ([0, 1, 0, 0], 0), "{:?}", pair.problems());
    pair.server.take_log()
}

/// The requests of a run in a new copy.
fn patched_in(
    sink: &str,
    change: impl Fn(&Pair, &mut Versions) -> Vec<(usize, String)>,
) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), sink);
    let mut versions = versions(&pair);
    let changes = change(&pair, &mut versions);
    let changes: Vec<_> = changes.iter().map(|(at, words)| (*at, words.as_str())).collect();
    let requests = patched(&pair, &versions, &changes);
    if sink != "lines" {
        assert_eq!(pair.differences(), [], "{sink}");
    }
    requests
}

#[test]
fn a_chain_of_patches_is_applied_in_order() {
    // In one change, and in one change each.
    let one = patched_in("folder", |_, versions| vec![(2, versions.patches.join(" "))]);
    assert_eq!(one, ["/changes.txt", "/p/2", "/p/3"]);
    let each = patched_in("folder", |_, versions| {
        vec![(1, versions.patches[0].clone()), (2, versions.patches[1].clone())]
    });
    assert_eq!(each, ["/changes.txt", "/p/2", "/p/3"]);
    // Other sinks do not return the stored bytes.
    for sink in all_sinks().into_iter().filter(|sink| *sink != "folder") {
        let requests = patched_in(sink, |_, versions| vec![(2, versions.patches.join(" "))]);
        assert_eq!(requests, ["/changes.txt", "/r/a"], "{sink}");
    }
}

#[test]
fn a_chain_that_breaks_leads_to_one_fetch_of_the_address() {
    type Break = fn(&Pair, &mut Versions);
    let cases: [(&str, Break, &[&str]); 6] = [
        ("a patch is missing", |pair, _| pair.server.remove("/p/3"), &["/p/2", "/p/3"]),
        ("a patch leads elsewhere", |pair, _| pair.server.body("/p/2", ", X"), &["/p/2"]),
        ("a patch is for another version", |_, versions| versions.patches.swap(0, 1), &[]),
        ("a patch is longer than stated", |pair, _| pair.server.body("/p/2", ", 22"), &["/p/2"]),
        (
            "the chain costs more than the whole",
            |_, versions| versions.patches[1] = versions.patches[1].replace("|3|", "|9000|"),
            &[],
        ),
        (
            "the chain is too long",
            |pair, versions| {
                let more = (0..16).map(|number| {
                    format!(
                        " patch={}|application/x-append|3||",
                        pair.server.url(&format!("/more/{number}"))
                    )
                });
                versions.patches[0].extend(more);
            },
            &[],
        ),
    ];
    for (what, broken, before) in cases {
        let requests = patched_in("folder", |pair, versions| {
            broken(pair, versions);
            vec![(2, versions.patches.join(" "))]
        });
        let expected: Vec<_> =
            ["/changes.txt"].iter().chain(before).chain(&["/r/a"]).copied().collect();
        assert_eq!(requests, expected, "{what}");
    }
    // A change in between that lacks a patch.
    let requests = patched_in("folder", |_, versions| {
        vec![(1, String::new()), (2, versions.patches[1].clone())]
    });
    assert_eq!(requests, ["/changes.txt", "/r/a"]);
}

#[test]
fn a_patch_that_was_applied_before_is_not_requested_again() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), "folder");
    let versions = versions(&pair);
    let second = Versions { bodies: [0, 1, 1].map(|at| versions.bodies[at].clone()), ..versions };
    assert_eq!(patched(&pair, &second, &[(1, &second.patches[0])]), ["/changes.txt", "/p/2"]);
    // The change at the cursor is listed again, before the new one.
    let first = "version 1".repeat(1_000);
    let uri = pair.server.url("/d/a");
    let line = |time: u32, body: &str, patch: &str| {
        format!("put {uri} {time} {} length={} {patch}", md5_hex(body.as_bytes()), body.len())
    };
    let bodies = [format!("{first}, 2"), format!("{first}, 2, 3")];
    let old = line(1_700_000_001, &bodies[0], &second.patches[0]);
    pair.changes(&[old.clone(), old, line(1_700_000_002, &bodies[1], &second.patches[1])]);
    assert_eq!(counts(&pair.sync().unwrap()), [0, 1, 0, 0]);
    assert_eq!(pair.server.take_log(), ["/changes.txt", "/p/3"]);
}

#[test]
fn what_is_deprecated_stays_and_what_is_removed_goes() {
    let place = tempfile::tempdir().unwrap();
    for name in all_sinks() {
        let pair = Pair::new(place.path(), name);
        let lines: Vec<_> =
            ["a", "b", "c", "d"].iter().map(|name| pair.resource(name, "old")).collect();
        pair.list(0, &lines);
        pair.sync().unwrap();
        let url = |name: &str| pair.server.url(&format!("/d/{name}"));
        let (updated, added) = (pair.resource("b", "new"), pair.resource("e", "more"));
        let changes = [
            format!("deprecated {} 1700000001 by={} by={}", url("a"), url("b"), url("e")),
            // Changed before: it comes, and is deprecated.
            format!("put {updated}"),
            format!("deprecated {} 1700000001", url("b")),
            // Used again after.
            format!("deprecated {} 1700000001", url("c")),
            format!("put {}", lines[2].replace("1700000000", "1700000002")),
            format!("removed {} 1700000001", url("d")),
            format!("add {added}"),
        ];
        pair.changes(&changes);
        pair.server.take_log();
        let ran = pair.sync().unwrap();
        assert_eq!(counts(&ran), [1, 1, 1, 0], "{name}: {:?}", pair.problems());
        let requests = pair.server.take_log();
        assert!(
            requests.iter().all(|path| path != "/d/a" && path != "/d/c"),
            "{name}: {requests:?}"
        );
        let mut problems = pair.problems();
        problems.sort();
        let deprecated = |name: &str| {
            format!("resource.deprecated {} the Source deprecates it; the copy is kept", url(name))
        };
        let expected = [
            format!("{}\n  help: use {} or {} instead", deprecated("a"), url("b"), url("e")),
            deprecated("b"),
            format!(
                "resource.removed {} the Source reports that it left the set, not that it was deleted",
                url("d")
            ),
        ];
        assert_eq!(problems, expected, "{name}");
        assert_eq!(
            (pair.kept("a").as_deref(), pair.kept("b").as_deref()),
            (Some("old"), Some("new")),
            "{name}"
        );
        if name != "lines" {
            // The list still has it, and the change takes it away.
            assert_eq!((pair.kept("d"), pair.differences()), (None, Vec::new()), "{name}");
        }
        // Another change, and the change at the cursor again, which is not reported again.
        pair.changes(
            &[&changes[..], &[changes[0].clone(), format!("gone {} 1700000003", url("c"))]]
                .concat(),
        );
        assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 1, 0], "{name}");
        assert_eq!(pair.problems(), [""; 0], "{name}");
    }
}

#[test]
fn what_is_deprecated_and_not_here_is_fetched() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), "folder");
    let line = pair.resource("b", "new");
    pair.resource("a", "old");
    pair.list(0, &[pair.resource("c", "old")]);
    let url = |name: &str| pair.server.url(&format!("/d/{name}"));
    // The first resource is not listed otherwise; the second is, and remains verified in any order.
    pair.changes(&[
        format!("deprecated {} 1700000001", url("a")),
        format!("deprecated {} 1700000001", url("b")),
        format!("new {line}"),
    ]);
    let ran = pair.sync().unwrap();
    assert_eq!((counts(&ran), ran.unverified), ([3, 0, 0, 0], 1), "{:?}", pair.problems());
    assert_eq!(pair.problems().len(), 2);
    assert_eq!(pair.differences(), Vec::new());
}

#[test]
fn a_deprecation_does_not_replace_what_is_planned() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), "folder");
    let (uri, href) = (pair.server.url("/d/a"), pair.server.url("/elsewhere"));
    pair.server.body("/elsewhere", "old");
    pair.list(0, &[format!("{uri} 1700000000 {} href={href}", md5_hex(b"old"))]);
    pair.changes(&[format!("deprecated {uri} 1700000001")]);
    let ran = pair.sync().unwrap();
    assert_eq!((counts(&ran), ran.unverified), ([1, 0, 0, 0], 0), "{:?}", pair.problems());
    let requests = pair.server.take_log();
    assert!(requests.contains(&"/elsewhere".to_owned()) && !requests.contains(&"/d/a".to_owned()));
    assert_eq!((pair.kept("a").as_deref(), pair.differences()), (Some("old"), Vec::new()));
}

#[test]
fn removals_are_held_back_and_keep_their_reason() {
    let place = tempfile::tempdir().unwrap();
    for name in all_sinks() {
        let mut pair = Pair::new(place.path(), name);
        let lines: Vec<_> =
            (0..20).map(|number| pair.resource(&format!("r{number}"), "old")).collect();
        pair.list(0, &lines);
        pair.sync().unwrap();
        let removed =
            |number| format!("removed {} 1700000001", pair.server.url(&format!("/d/r{number}")));
        pair.changes(&(0..16).map(removed).collect::<Vec<_>>());
        let held = pair.sync().unwrap();
        assert_eq!((held.deleted, held.held, held.delete_limit), (0, 16, true), "{name}");
        pair.options.max_delete = crate::MaxDelete::Count(16);
        let ran = pair.sync().unwrap();
        assert_eq!((ran.deleted, ran.held), (16, 0), "{name}");
        let reasons = pair.problems();
        assert_eq!(
            reasons.iter().filter(|text| text.starts_with("resource.removed ")).count(),
            16,
            "{name}"
        );
    }
}

/// A run whose database is restored to its content at a kill right before the commit.
fn run_killed(pair: &Pair) {
    let state = pair.options.folder.join(".abreast");
    let names = ["mirror.db", "mirror.db-wal"];
    let before: Mutex<Option<Vec<Option<Vec<u8>>>>> = Mutex::new(None);
    let observer = |event: &Event<'_>| {
        let mut before = before.lock().unwrap();
        if let Event::Item(item) = event
            && item.action != ItemAction::Unchanged
            && before.is_none()
        {
            *before = Some(names.iter().map(|name| std::fs::read(state.join(name)).ok()).collect());
        }
    };
    let (cancel, shared) = (AtomicBool::new(false), Shared::new(pair.options.net_options()));
    let (robots, mut choice) = (Arc::default(), Choice::of(pair.protocols));
    sync_with(&pair.options, &observer, &cancel, &shared, &robots, Wake::default(), &mut choice)
        .unwrap();
    let before = before.into_inner().unwrap().expect("the run had something to do");
    let _ = std::fs::remove_file(state.join("mirror.db-shm"));
    for (name, bytes) in names.iter().zip(before) {
        match bytes {
            Some(bytes) => std::fs::write(state.join(name), bytes).unwrap(),
            None => drop(std::fs::remove_file(state.join(name))),
        }
    }
}

#[test]
fn a_killed_run_of_another_protocol_is_continued() {
    for name in all_sinks() {
        for then in ["nothing", "updated", "removed"] {
            let place = tempfile::tempdir().unwrap();
            let pair = Pair::new(place.path(), name);
            let versions = versions(&pair);
            pair.server.body("/r/new", "one");
            let (new, href) = (pair.server.url("/d/new"), pair.server.url("/r/new"));
            let line = |time: u32, body: &str| {
                format!("{new} {time} {} href={href}", md5_hex(body.as_bytes()))
            };
            pair.list(0, &[pair.resource("other", "old"), pair.resource("gone", "old")]);
            pair.sync().unwrap();
            let mut changes = vec![
                format!("new {}", line(1_700_000_001, "one")),
                format!("removed {} 1700000001", pair.server.url("/d/gone")),
                format!("deprecated {} 1700000001", pair.server.url("/d/other")),
            ];
            pair.changes(&changes);
            run_killed(&pair);
            match then {
                "updated" => {
                    pair.server.body("/r/new", versions.bodies[0].as_str());
                    changes.push(format!("put {}", line(1_700_000_002, &versions.bodies[0])));
                }
                "removed" => changes.push(format!("removed {new} 1700000002")),
                _ => {}
            }
            pair.changes(&changes);
            let ran = pair.sync().unwrap();
            assert_eq!(
                (ran.failed, ran.skipped, ran.held),
                (0, 0, 0),
                "{name}, {then}: {:?}",
                pair.problems()
            );
            if name == "lines" {
                continue;
            }
            assert_eq!(pair.differences(), [], "{name}, {then}");
            assert_eq!(pair.kept("gone"), None, "{name}, {then}");
            assert_eq!(pair.kept("new").is_some(), then != "removed", "{name}, {then}");
        }
    }
}

/// An entity is not requested by its URI, and its digests are those of one of its documents.
#[test]
fn entities_of_another_protocol_are_kept_as_triples() {
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair::new(place.path(), "triples");
    pair.options.sink = SinkOptions::NQuads(NQuadsOptions::default());
    let entity = |name: &str, value: &str| {
        let uri = format!("http://id.example/{name}");
        let document =
            format!("<{uri}> <http://ns.example/text> [ <http://ns.example/is> '{value}' ] .");
        pair.server.by_accept(
            &format!("/d/{name}"),
            "text/turtle",
            Answer::ok(document.as_str()).header("content-type", "text/turtle"),
        );
        let (href, md5) = (pair.server.url(&format!("/d/{name}")), md5_hex(document.as_bytes()));
        format!("{uri} 1700000000 {md5} href={href} accept=text/turtle")
    };
    let kept = || {
        let text =
            std::fs::read_to_string(pair.options.folder.join("abreast-00000001.nq")).unwrap();
        let lines = text.lines().filter_map(|line| line.split_once("http://ns.example/is> \""));
        let mut values: Vec<_> = lines.map(|(_, value)| value.to_owned()).collect();
        values.sort();
        values
    };
    pair.list(0, &["a", "b", "c", "d"].map(|name| entity(name, &format!("old {name}"))));
    assert_eq!(counts(&pair.sync().unwrap()), [4, 0, 0, 0], "{:?}", pair.problems());
    let mut changes = vec![
        format!("put {}", entity("a", "new a")),
        format!("new {}", entity("e", "new e")),
        "deprecated http://id.example/b 1700000001 by=http://id.example/e".to_owned(),
        "removed http://id.example/c 1700000001".to_owned(),
        "gone http://id.example/d 1700000001".to_owned(),
    ];
    pair.changes(&changes);
    assert_eq!(counts(&pair.sync().unwrap()), [1, 1, 2, 0], "{:?}", pair.problems());
    assert_eq!(kept(), ["new a\" .", "new e\" .", "old b\" ."]);
    // Two changes of an entity between two runs.
    changes.extend([
        "gone http://id.example/a 1700000002".to_owned(),
        format!("new {}", entity("a", "again a").replace("1700000000", "1700000003")),
    ]);
    pair.changes(&changes);
    assert_eq!(counts(&pair.sync().unwrap()), [0, 1, 0, 0], "{:?}", pair.problems());
    assert_eq!(kept(), ["again a\" .", "new e\" .", "old b\" ."]);
    assert_eq!(pair.differences(), []);
}

#[test]
fn the_reader_is_chosen_by_what_the_address_answers() {
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair::new(place.path(), "folder");
    pair.protocols = BOTH;
    let lines = [pair.resource("a", "old")];
    pair.list(0, &lines);
    pair.options.url = pair.server.url("/list.txt");
    assert_eq!(counts(&pair.sync().unwrap()), [1, 0, 0, 0]);
    assert_eq!(
        pair.server.take_log(),
        ["/list.txt", "/changes.txt", "/d/a"],
        "one request of the list"
    );
    // The state knows the protocol from now on.
    assert_eq!(counts(&pair.sync().unwrap()), [0, 0, 0, 0]);
    assert_eq!(pair.server.take_log(), ["/changes.txt"]);
    assert_eq!(pair.differences(), []);

    // With a choice and without one, the requests are the same.
    let requests = [(BOTH, "warc"), (&BOTH[1..], "lines")].map(|(protocols, sink)| {
        let mut other = Pair { protocols, ..Pair::new(place.path(), sink) };
        let entry = format!("<url><loc>{}</loc></url>", other.server.url("/d/a"));
        other
            .server
            .body("/sitemap.xml", document("urlset", "capability=\"resourcelist\"", &entry));
        other.server.body("/d/a", "old");
        other.options.url = other.server.url("/sitemap.xml");
        assert_eq!(counts(&other.sync().unwrap()), [1, 0, 0, 0], "{:?}", other.problems());
        other.server.take_log()
    });
    assert_eq!(requests[0], requests[1]);
}

#[test]
fn an_address_that_no_reader_recognises_is_an_error() {
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair { protocols: BOTH, ..Pair::new(place.path(), "folder") };
    pair.options.url = pair.server.url("/api");
    pair.server.put("/api", Answer::ok("{\"a\": 1}").header("content-type", "application/json"));
    let error = pair.sync().unwrap_err();
    assert_eq!(error.code(), "discover.nothing");
    assert!(error.to_string().contains("another protocol that is read"), "{error}");
    assert!(!pair.options.folder.join(".abreast").exists(), "nothing is begun");
}

#[test]
fn a_copy_that_was_begun_without_a_choice_is_of_resourcesync() {
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair { protocols: &BOTH[1..], ..Pair::new(place.path(), "folder") };
    let list = document("urlset", "capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"", "");
    pair.server.body("/list.xml", list);
    pair.options.url = pair.server.url("/list.xml");
    pair.sync().unwrap();
    pair.server.take_log();
    pair.protocols = BOTH;
    pair.sync().unwrap();
    assert_eq!(pair.server.take_log(), ["/list.xml"], "the address is not requested to choose");
}
