//! The mapping from URIs to names in the folder, and refused URIs.

use crate::copy::Copy;
use crate::source::{Source, list_of};
use abreast_destination::{AuditOptions, audit};
use abreast_testkit::documents::document;
use abreast_testkit::pages::Server;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;

#[test]
fn uris_that_would_escape_are_refused_and_the_rest_copied() {
    let server = Server::start();
    list_of(
        &server,
        &[
            "/d/../../../escaped.txt",
            "/%2e%2e%2fescape1",
            "/..%2fescape2",
            "/%2e./escape3",
            "/..%5cescape4",
            "/%252e%252e%252fsafe5",
            "/ok.txt",
        ],
    );
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().skipped, ran.summary().created),
        (3, 5, 2),
        "{:?}",
        ran.codes
    );
    assert_eq!(ran.codes.iter().filter(|code| *code == "path.escape").count(), 5);
    assert_eq!(copy.paths(), ["%2e%2e%2fsafe5", "ok.txt"]);
    assert_eq!(std::fs::read_dir(copy.place.path()).unwrap().count(), 1);
}

#[test]
fn queries_are_resources_of_their_own() {
    let server = Server::start();
    list_of(&server, &["/i", "/i?", "/i?id=1", "/i?id=2", "/i?p=../../x", "/i?id=1#frag"]);
    let copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.paths().len()), (0, 5), "{:?}", ran.codes);
}

#[test]
fn other_hosts_and_schemes_need_permission() {
    let server = Server::start();
    let other = Server::start();
    other.body("/x", "other");
    list_of(&server, &["/ok.txt"]);
    let more = format!(
        "<url><loc>{}</loc></url><url><loc>file:///etc/passwd</loc></url><url><loc>data:text/plain,x</loc></url>\
         <url><loc>ftp://127.0.0.1/x</loc></url><url><loc>{}</loc></url>",
        other.url("/x"),
        server.url("/ok.txt")
    );
    server.body("/list.xml", document("urlset", "capability=\"resourcelist\"", &more));
    let mut copy = Copy::of(server.url("/list.xml"));
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().skipped), (3, 4), "{:?}", ran.codes);
    assert_eq!(ran.codes[0], "rs.no-at");
    assert!(ran.codes[1..].iter().all(|code| code == "uri.authority"), "{:?}", ran.codes);
    assert_eq!(copy.paths(), ["ok.txt"]);
    // Permission that is given later is sufficient: refused resources are tried again.
    copy.options.allow_hosts.push(other.base.trim_start_matches("http://").to_owned());
    let ran = copy.try_run();
    assert_eq!(
        (ran.exit(), ran.summary().created, ran.summary().skipped),
        (3, 1, 3),
        "{:?}",
        ran.codes
    );
}

#[test]
fn names_that_are_files_and_folders_are_all_kept_in_any_order() {
    for (order, expected_moves) in [
        (["/a", "/a/b", "/a/b/c"], 2),
        (["/a/b/c", "/a/b", "/a"], 0),
        (["/a/b", "/a", "/a/b/c"], 1),
    ] {
        let mut moved = 0;
        let mut source = Source::new();
        source.snapshot();
        let mut copy = Copy::of(source.url());
        copy.options.base = Some(source.server.url("/"));
        assert_eq!(copy.try_run().exit(), 0);
        for path in order {
            source.set(path, path);
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 0, "{order:?} {:?}", ran.codes);
            moved += ran.count("path.conflict");
        }
        // Reported where a file had its name between two runs.
        assert_eq!(moved, expected_moves, "{order:?}");
        let expected: BTreeMap<String, String> =
            [("%!a", "/a"), ("a/%!b", "/a/b"), ("a/b/c", "/a/b/c")]
                .map(|(path, text)| (path.to_owned(), text.to_owned()))
                .into();
        assert_eq!(copy.texts(), expected, "{order:?}");
        source.set("/a", "other");
        source.snapshot();
        copy.options.baseline = true;
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.summary().updated), (0, 1), "{:?}", ran.codes);
        copy.options.baseline = false;
        source.delete("/a/b/c");
        assert_eq!(copy.try_run().exit(), 0);
        // Names that folders do not need any more are restored, as in a new copy.
        assert_eq!(copy.paths(), ["%!a", "a/b"]);
        source.delete("/a/b");
        assert_eq!(copy.try_run().exit(), 0);
        assert_eq!(copy.texts(), BTreeMap::from([("a".to_owned(), "other".to_owned())]));
        assert_eq!(copy.try_run().codes, [""; 0]);
    }
}

#[test]
fn names_that_are_files_and_folders_are_all_kept_in_one_run() {
    let server = Server::start();
    list_of(&server, &["/a", "/a/b", "/a/b/c", "/a/b/d", "/a!"]);
    let mut copy = Copy::of(server.url("/list.xml"));
    copy.options.limit_requests(1);
    let ran = copy.try_run();
    // The order in which resources arrive is not reported.
    assert_eq!(ran.count("path.conflict"), 0, "{:?}", ran.reported);
    assert_eq!((ran.exit(), ran.summary().created), (0, 5), "{:?}", ran.codes);
    assert_eq!(copy.paths(), ["%!a", "a!", "a/%!b", "a/b/c", "a/b/d"]);
    let report = audit(
        &AuditOptions { sync: copy.options.clone(), full: true },
        &abreast_destination::Silent,
        &AtomicBool::new(false),
    )
    .unwrap();
    assert_eq!((report.same, report.exit_code), (5, 0));
}

#[test]
fn nothing_is_written_through_a_link() {
    let server = Server::start();
    list_of(&server, &["/a", "/a/b", "/a/b/c", "/l"]);
    let copy = Copy::of(server.url("/list.xml"));
    let outside = copy.place.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("file"), "mine").unwrap();
    std::fs::create_dir(copy.folder()).unwrap();
    std::os::unix::fs::symlink(&outside, copy.folder().join("a")).unwrap();
    std::os::unix::fs::symlink(outside.join("file"), copy.folder().join("l")).unwrap();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().failed), (3, 4), "{:?}", ran.codes);
    assert!(ran.codes.iter().skip(1).all(|code| code == "path.symlink"), "{:?}", ran.codes);
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
    assert_eq!(std::fs::read_to_string(outside.join("file")).unwrap(), "mine");
}

#[test]
fn pipes_and_hard_links_are_not_written_to() {
    let server = Server::start();
    list_of(&server, &["/pipe", "/linked"]);
    let copy = Copy::of(server.url("/list.xml"));
    std::fs::create_dir(copy.folder()).unwrap();
    assert!(
        std::process::Command::new("mkfifo")
            .arg(copy.folder().join("pipe"))
            .status()
            .unwrap()
            .success()
    );
    let outside = copy.place.path().join("outside");
    std::fs::write(&outside, "mine").unwrap();
    std::fs::hard_link(&outside, copy.folder().join("linked")).unwrap();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().failed), (3, 1));
    assert_eq!(ran.codes, ["state.missing", "local.backup", "path.special"]);
    assert_eq!(copy.read("linked").as_deref(), Some("hello"));
    assert_eq!(std::fs::read_to_string(&outside).unwrap(), "mine");
}

#[test]
fn a_move_to_the_leaf_name_that_was_broken_off_is_finished() {
    let mut source = Source::new();
    source.set("/a", "file");
    source.snapshot();
    let mut copy = Copy::of(source.url());
    copy.options.base = Some(source.server.url("/"));
    copy.run();
    // The database already has the new name, and the file has not moved yet.
    let mirror =
        abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
    let mut row = mirror.row(&source.server.url("/a")).unwrap().unwrap();
    row.leaf = true;
    mirror.put_row(&row).unwrap();
    drop(mirror);
    source.set("/a/b", "below");
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    let expected =
        [("%!a", "file"), ("a/b", "below")].map(|(path, text)| (path.to_owned(), text.to_owned()));
    assert_eq!(copy.texts(), expected.into());
}

/// The name of an empty segment is a file for one and a folder for the other, as any other is.
#[test]
fn empty_segments_are_folders_that_are_needed() {
    let server = Server::start();
    list_of(&server, &["/", "//", "/a/", "/a//", "/b//", "/b/"]);
    let copy = Copy::of(server.url("/list.xml"));
    for _ in 0..2 {
        let ran = copy.try_run();
        assert_eq!((ran.exit(), ran.count("path.conflict")), (0, 0), "{:?}", ran.reported);
    }
    assert_eq!(copy.paths().len(), 6);
    let audited = crate::copy::Ran::audit(&copy.options, true);
    assert_eq!(audited.codes, [""; 0], "{:?}", audited.reported);
    assert_eq!(audited.result.unwrap().exit_code, 0);
}

#[test]
fn folders_of_resources_that_failed_do_not_take_their_names() {
    let mut source = Source::new();
    source.set("/kept", "1");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    std::fs::create_dir(copy.folder().join("own")).unwrap();
    for path in ["/x/y/z", "/own/z", "/own/y/z"] {
        source.set(path, "1");
        source.server.remove(path);
    }
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().failed), (3, 3), "{:?}", ran.reported);
    assert!(!copy.folder().join("x").exists() && !copy.folder().join("own/y").exists());
    assert!(copy.folder().join("own").is_dir(), "the user made it");
    for path in ["/x/y/z", "/own/z", "/own/y/z"] {
        source.delete(path);
    }
    source.set("/x", "1");
    assert_eq!(copy.run().exit_code, 0);
    assert_eq!(std::fs::read(copy.folder().join("x")).unwrap(), b"1");
}
