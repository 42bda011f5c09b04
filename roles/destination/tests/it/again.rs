//! Bytes that are not as listed are requested again, past caches, and once only.

use crate::copy::{Copy, Reported};
use abreast_testkit::digest::{md5_hex, sha256_hex};
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::{Answer, Server};
use std::collections::HashSet;
use std::sync::Mutex;

/// A copy that retries a request once.
fn copy_of(server: &Server) -> Copy {
    let mut copy = Copy::of(server.url("/list.xml"));
    copy.options.net.retries = 1;
    copy
}

/// A list of bodies, with MD5 or SHA-256 digests.
fn list(server: &Server, bodies: &[(String, String)], by_md5: bool) -> String {
    let entries: String = bodies
        .iter()
        .map(|(path, body)| {
            let digest = if by_md5 {
                format!("md5:{}", md5_hex(body))
            } else {
                format!("sha-256:{}", sha256_hex(body))
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
fn a_damaged_body_is_requested_again_in_the_same_run() {
    for by_md5 in [true, false] {
        let server = Server::start();
        let mut all = bodies(40);
        all.push(("/d/large".to_owned(), "0123456789abcdef".repeat(100_000)));
        all.push(("/d/gone".to_owned(), "gone soon".to_owned()));
        for (path, body) in &all {
            server.body(path, body.as_str());
        }
        server.body("/list.xml", list(&server, &all[41..], by_md5));
        let copy = copy_of(&server);
        assert_eq!(copy.run().created, 1);
        // One resource is not listed any more. The first response for each other one is wrong: a
        // bit, the end, or additional bytes.
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
        let ran = copy.try_run();
        let summary = ran.summary();
        assert_eq!(
            (summary.exit_code, summary.created, summary.failed),
            (0, 41, 0),
            "{:?}",
            ran.reported
        );
        assert_eq!(ran.count("fixity.again"), 41, "{:?}", ran.reported);
        assert_eq!(
            (summary.deleted, summary.held),
            (1, 0),
            "what was mended at once holds back no deletion"
        );
        assert_eq!(server.take_log().iter().filter(|path| path.starts_with("/d/")).count(), 82);
        for (path, body) in &all[..41] {
            assert_eq!(&std::fs::read_to_string(copy.folder().join(&path[3..])).unwrap(), body);
        }
    }
}

#[test]
fn a_cache_with_an_old_version_is_bypassed() {
    let server = Server::start();
    server.body("/d/f", "old");
    server.past_caches("/d/f", Answer::ok("new"));
    server.body("/list.xml", list(&server, &[("/d/f".to_owned(), "new".to_owned())], true));
    let copy = copy_of(&server);
    let ran = copy.try_run();
    assert_eq!((ran.summary().exit_code, ran.count("fixity.again")), (0, 1), "{:?}", ran.reported);
    assert_eq!(std::fs::read_to_string(copy.folder().join("f")).unwrap(), "new");
}

#[test]
fn a_body_that_stays_wrong_is_requested_twice_at_most() {
    let server = Server::start();
    let all = bodies(60);
    for (path, _) in &all {
        server.body(path, "wrong");
    }
    server.body("/list.xml", list(&server, &all[..4], true));
    let mut copy = copy_of(&server);
    copy.options.connections = 1;
    let of_bodies = || server.take_log().iter().filter(|path| path.starts_with("/d/")).count();
    let ran = copy.try_run();
    assert_eq!((ran.summary().failed, of_bodies()), (4, 8), "{:?}", ran.reported);
    let Reported { code, message, .. } = &ran.reported[0];
    assert!(code == "fixity.mismatch" && message.ends_with("(asked twice)"), "{:?}", ran.reported);
    // A Source whose digests are all wrong is not asked twice for everything.
    server.body("/list.xml", list(&server, &all, true));
    assert_eq!((copy.run().failed, of_bodies()), (60, 76));
    // Nor is anybody when no request is to be repeated.
    copy.options.net.retries = 0;
    assert_eq!((copy.run().failed, of_bodies()), (60, 60));
}

#[test]
fn a_failed_second_request_reports_the_first_failure_too() {
    let server = Server::start();
    server.body("/d/f", "old");
    server.past_caches("/d/f", Answer::status(404));
    server.body("/list.xml", list(&server, &[("/d/f".to_owned(), "new".to_owned())], true));
    let ran = copy_of(&server).try_run();
    let Reported { code, message, .. } = &ran.reported[0];
    assert_eq!((ran.summary().exit_code, code.as_str()), (3, "http.status"));
    assert!(
        message.ends_with("(asked again, since the bytes sent first were not those listed)"),
        "{message}"
    );
}
