//! Bytes that are not as listed are requested again, past caches, and once only.
#![allow(clippy::unwrap_used, clippy::panic, clippy::format_collect, reason = "tests may stop, and need not be fast")]

mod server;

use abreast_destination::{Error, Event, Summary, SyncOptions, sync};
use server::{Answer, BEGIN, Server, document, md5_hex};
use sha2::{Digest as _, Sha256};
use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

struct Ran {
    summary: Result<Summary, Error>,
    told: Vec<(String, String)>,
}

impl Ran {
    fn summary(&self) -> &Summary {
        self.summary.as_ref().unwrap_or_else(|error| panic!("{error} {:?}", self.told))
    }

    fn count(&self, code: &str) -> usize {
        self.told.iter().filter(|(told, _)| told == code).count()
    }
}

fn options(url: String, place: &tempfile::TempDir) -> SyncOptions {
    let mut options = SyncOptions::new(url, place.path().join("copy"));
    options.net.backoff_base = Duration::from_millis(1);
    options.net.retries = 1;
    options.ignore_robots = true;
    options
}

fn run(options: &SyncOptions) -> Ran {
    let told = Mutex::new(Vec::new());
    let observer = |event: &Event<'_>| {
        if let Event::Error(problem) | Event::Notice(problem) = event {
            told.lock().unwrap().push((problem.code.to_owned(), format!("{}: {}", problem.uri, problem.message)));
        }
    };
    let summary = sync(options, &observer, &AtomicBool::new(false));
    Ran { summary, told: told.into_inner().unwrap() }
}

/// A list of bodies, with MD5 or SHA-256 digests.
fn list(server: &Server, bodies: &[(String, String)], by_md5: bool) -> String {
    let entries: String = bodies
        .iter()
        .map(|(path, body)| {
            let digest = if by_md5 {
                format!("md5:{}", md5_hex(body.as_bytes()))
            } else {
                let digest = Sha256::digest(body);
                format!("sha-256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
            };
            let (url, length) = (server.url(path), body.len());
            format!("<url><loc>{url}</loc><rs:md hash=\"{digest}\" length=\"{length}\"/></url>\n")
        })
        .collect();
    document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &entries)
}

fn bodies(count: usize) -> Vec<(String, String)> {
    (0..count).map(|number| (format!("/d/f{number:03}"), format!("file {number}"))).collect()
}

#[test]
fn a_body_that_was_damaged_on_the_way_is_asked_for_again_in_the_same_run() {
    for by_md5 in [true, false] {
        let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
        let mut all = bodies(40);
        all.push(("/d/large".to_owned(), "0123456789abcdef".repeat(100_000)));
        all.push(("/d/gone".to_owned(), "gone soon".to_owned()));
        for (path, body) in &all {
            server.body(path, body.as_str());
        }
        server.body("/list.xml", list(&server, &all[41..], by_md5));
        let options = options(server.url("/list.xml"), &place);
        assert_eq!(run(&options).summary().created, 1);
        // One has left the list; of the others each first answer is wrong: a bit, the end, or more than there is.
        let wrong: Vec<_> = all[..41].to_vec();
        let seen = Mutex::new(HashSet::new());
        server.handler(move |path, _| {
            let (_, body) = wrong.iter().find(|(known, _)| known == path)?;
            let mut bytes = body.clone().into_bytes();
            match seen.lock().unwrap().len() % 3 {
                0 => bytes[0] ^= 4,
                1 => drop(bytes.pop()),
                _ => bytes.push(b'x'),
            }
            seen.lock().unwrap().insert(path.to_owned()).then(|| Answer::ok(bytes))
        });
        server.body("/list.xml", list(&server, &all[..41], by_md5));
        server.take_log();
        let ran = run(&options);
        let summary = ran.summary();
        assert_eq!((summary.exit_code, summary.created, summary.failed), (0, 41, 0), "{:?}", ran.told);
        assert_eq!(ran.count("fixity.again"), 41, "{:?}", ran.told);
        assert_eq!((summary.deleted, summary.held), (1, 0), "what was mended at once holds back no deletion");
        assert_eq!(server.take_log().iter().filter(|path| path.starts_with("/d/")).count(), 82);
        for (path, body) in &all[..41] {
            assert_eq!(&std::fs::read_to_string(options.folder.join(&path[3..])).unwrap(), body);
        }
    }
}

#[test]
fn a_cache_that_kept_the_version_before_is_passed() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    server.body("/d/f", "old");
    server.past_caches("/d/f", Answer::ok("new"));
    server.body("/list.xml", list(&server, &[("/d/f".to_owned(), "new".to_owned())], true));
    let options = options(server.url("/list.xml"), &place);
    let ran = run(&options);
    assert_eq!((ran.summary().exit_code, ran.count("fixity.again")), (0, 1), "{:?}", ran.told);
    assert_eq!(std::fs::read_to_string(options.folder.join("f")).unwrap(), "new");
}

#[test]
fn what_stays_wrong_is_asked_for_twice_and_no_more() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    let all = bodies(60);
    for (path, _) in &all {
        server.body(path, "wrong");
    }
    server.body("/list.xml", list(&server, &all[..4], true));
    let mut options = options(server.url("/list.xml"), &place);
    options.connections = 1;
    let of_bodies = || server.take_log().iter().filter(|path| path.starts_with("/d/")).count();
    let ran = run(&options);
    assert_eq!((ran.summary().failed, of_bodies()), (4, 8), "{:?}", ran.told);
    let (code, message) = &ran.told[0];
    assert!(code == "fixity.mismatch" && message.ends_with("(asked twice)"), "{:?}", ran.told);
    // A Source whose digests are all wrong is not asked twice for everything.
    server.body("/list.xml", list(&server, &all, true));
    assert_eq!((run(&options).summary().failed, of_bodies()), (60, 76));
    // Nor is anybody when no request is to be repeated.
    options.net.retries = 0;
    assert_eq!((run(&options).summary().failed, of_bodies()), (60, 60));
}

#[test]
fn what_went_wrong_first_is_told_when_asking_again_fails_otherwise() {
    let (server, place) = (Server::start(), tempfile::tempdir().unwrap());
    server.body("/d/f", "old");
    server.past_caches("/d/f", Answer::status(404));
    server.body("/list.xml", list(&server, &[("/d/f".to_owned(), "new".to_owned())], true));
    let ran = run(&options(server.url("/list.xml"), &place));
    let (code, message) = &ran.told[0];
    assert_eq!((ran.summary().exit_code, code.as_str()), (3, "http.status"));
    assert!(message.ends_with("(asked again, since the bytes sent first were not those listed)"), "{message}");
}
