//! Copies in an object store: a folder through its interface, and a server that speaks S3.

use crate::contract::{self, Kept, SinkCase, contract, some};
use crate::copy::{self, Copy, Ran};
use crate::source::Source;
use abreast_destination::{ObjectsOptions, SinkOptions};
use abreast_testkit::s3::{S3Server, ask, settings};
use std::cell::Cell;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

pub(crate) fn local(place: &Path) -> SinkOptions {
    let url = format!("file://{}", place.join("store").display());
    SinkOptions::Objects(ObjectsOptions { url, settings: Vec::new() })
}

pub(crate) fn stored(copy: &Copy, _: &Source) -> Kept {
    let SinkOptions::Objects(options) = &copy.options.sink else { panic!("another kind") };
    let root = Path::new(options.url.strip_prefix("file://").unwrap());
    copy::files(root).into_iter().map(|(path, bytes)| (format!("/{path}"), bytes)).collect()
}

#[test]
fn a_store_in_a_folder_keeps_the_contract() {
    contract(local, stored);
}

#[test]
fn objects_left_by_a_killed_run_are_recognised() {
    contract::kills::killed(local, stored);
    contract::kills::killed_twice(local, stored);
}

#[test]
fn an_audit_finds_changed_missing_and_extra_objects() {
    let source = some(6);
    let copy = Copy::kept_in(&source, local);
    copy.run();
    let SinkOptions::Objects(options) = &copy.options.sink else { panic!("another kind") };
    let root = Path::new(options.url.strip_prefix("file://").unwrap()).to_owned();
    std::fs::remove_file(root.join("f001")).unwrap();
    std::fs::write(root.join("f002"), "file 2 XX").unwrap();
    std::fs::write(root.join("f003"), "another length").unwrap();
    std::fs::write(root.join("stranger"), "").unwrap();
    let quick = copy.audit(false);
    assert_eq!((quick.same, quick.updated, quick.missing, quick.extra), (4, 1, 1, 1));
    let full = copy.audit(true);
    assert_eq!((full.same, full.updated, full.missing, full.extra), (3, 2, 1, 1));
}

/// Loses one object, lengthens one and alters one, and has them restored.
fn restored(
    copy: &mut Copy,
    source: &Source,
    reader: contract::Reader,
    damage: impl Fn(&str, Option<&str>),
) {
    damage("f001", None);
    damage("f002", Some("another length"));
    damage("f003", Some("FILE 3 XXX"));
    assert_eq!(copy.run().requests, 1, "nothing has changed at the Source");
    copy.options.baseline = true;
    let Ran { result: ran, codes, .. } = copy.try_run();
    let ran = ran.unwrap();
    assert_eq!((ran.exit_code, ran.damaged, ran.updated), (0, 2, 2), "{codes:?}");
    assert_eq!(codes, ["local.missing", "local.altered"]);
    copy.options.full = true;
    let ran = copy.run();
    assert_eq!((ran.exit_code, ran.damaged, ran.updated), (0, 1, 1));
    assert_eq!(reader(copy, source), source.kept);
    assert_eq!(copy.audit(true).exit_code, 0);
    let ran = copy.run();
    assert_eq!((ran.exit_code, ran.damaged, ran.updated), (0, 0, 0));
}

#[test]
fn a_baseline_restores_objects_that_were_lost_or_altered() {
    let mut source = some(6);
    let mut copy = Copy::kept_in(&source, local);
    copy.run();
    // The newest change is checked by each run.
    source.set("/f005", "changed");
    copy.run();
    source.snapshot();
    let SinkOptions::Objects(options) = &copy.options.sink else { panic!("another kind") };
    let root = Path::new(options.url.strip_prefix("file://").unwrap()).to_owned();
    restored(&mut copy, &source, stored, |name, body| match body {
        Some(body) => std::fs::write(root.join(name), body).unwrap(),
        None => std::fs::remove_file(root.join(name)).unwrap(),
    });
}

#[test]
fn names_with_control_characters_are_escaped_in_keys() {
    let mut source = some(1);
    source.set("/a%0Ab", "two lines");
    source.set("/%7F", "delete");
    source.snapshot();
    let copy = Copy::kept_in(&source, local);
    assert_eq!(
        (copy.run().exit_code, copy.audit(true).same, copy.audit(true).exit_code),
        (0, 3, 0)
    );
    let names: Vec<String> = stored(&copy, &source).into_keys().collect();
    assert_eq!(names, ["/%_%257F", "/%_a%250Ab", "/f000"]);
    source.delete("/a%0Ab");
    assert_eq!(copy.run().deleted, 1);
}

#[test]
fn a_folder_store_keeps_foreign_files_and_adopts_identical_ones() {
    let mut source = some(3);
    let large = "0123456789abcdef".repeat(200_000);
    source.set("/large", &large);
    source.set("/large2", &large);
    source.snapshot();
    let copy = Copy::kept_in(&source, local);
    let SinkOptions::Objects(options) = &copy.options.sink else { panic!("another kind") };
    let root = Path::new(options.url.strip_prefix("file://").unwrap()).to_owned();
    std::fs::create_dir_all(&root).unwrap();
    for (name, body) in [
        ("f001", "precious"),
        ("f002", "file 2 xx"),
        ("large", "precious"),
        ("large2", large.as_str()),
    ] {
        std::fs::write(root.join(name), body).unwrap();
    }
    let Ran { result, codes, .. } = copy.try_run();
    assert_eq!((result.unwrap().exit_code, codes), (3, vec!["local.changed".to_owned(); 2]));
    for name in ["f001", "large"] {
        assert_eq!(std::fs::read_to_string(root.join(name)).unwrap(), "precious");
    }
    assert_eq!(copy.audit(true).same, 3);
}

#[test]
fn the_state_of_one_store_is_not_used_for_another() {
    let mut source = some(3);
    let mut copy = Copy::kept_in(&source, local);
    copy.run();
    let SinkOptions::Objects(options) = &mut copy.options.sink else { panic!("another kind") };
    let first = options.url.clone();
    options.url = format!("{first}-other");
    // The object with the same key was not written by this copy.
    let other = Path::new(options.url.strip_prefix("file://").unwrap()).to_owned();
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("f000"), "precious").unwrap();
    source.delete("/f000");
    for dry_run in [true, false] {
        copy.options.dry_run = dry_run;
        let result = copy.try_run().result;
        assert_eq!(result.unwrap_err().code(), "sink.kind");
    }
    assert!(other.join("f000").exists());
    let SinkOptions::Objects(options) = &mut copy.options.sink else { panic!("another kind") };
    options.url = format!("{first}/");
    assert_eq!(copy.run().deleted, 1);
}

/// A server for this thread, with an empty bucket.
pub(crate) fn s3(test: &str) -> Option<S3Server> {
    let server = S3Server::start(test)?;
    SERVER.set(server.address());
    Some(server)
}

thread_local! {
    static SERVER: Cell<SocketAddr> =
        const { Cell::new(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0)) };
}

/// The address of the server of this thread.
pub(crate) fn address() -> SocketAddr {
    SERVER.get()
}

/// Each copy has a separate place in the bucket.
pub(crate) const BUCKET: SinkCase = SinkCase {
    name: "bucket",
    source: Source::new,
    sink: |place| in_bucket(address(), place),
    read: fetched,
};

/// The sink of a copy in a server's bucket.
pub(crate) fn in_bucket(address: SocketAddr, place: &Path) -> SinkOptions {
    in_bucket_at(address, place.file_name().unwrap().to_str().unwrap())
}

fn remote(_: &Path) -> SinkOptions {
    in_bucket_at(address(), "papers")
}

fn in_bucket_at(address: SocketAddr, prefix: &str) -> SinkOptions {
    let settings = settings(address);
    SinkOptions::Objects(ObjectsOptions { url: format!("s3://bucket/{prefix}"), settings })
}

fn keys() -> Vec<String> {
    let listing = ask(address(), "GET", "/bucket?list-type=2", "").unwrap();
    let keys = listing.split("<Key>").skip(1);
    keys.map(|rest| rest.split("</Key>").next().unwrap().to_owned()).collect()
}

fn fetched(copy: &Copy, _: &Source) -> Kept {
    let SinkOptions::Objects(options) = &copy.options.sink else { panic!("another kind") };
    let prefix = options.url.strip_prefix("s3://bucket/").unwrap();
    let body = |key: &String| {
        let answer = ask(address(), "GET", &format!("/bucket/{key}"), "").unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.as_bytes().to_vec()
    };
    let keys = keys();
    keys.iter().filter_map(|key| Some((key.strip_prefix(prefix)?.to_owned(), body(key)))).collect()
}

#[test]
fn a_bucket_keeps_foreign_objects() {
    let Some(server) = s3("a_bucket_keeps_foreign_objects") else { return };
    // What lies under the key of a new resource, and is not ours, stays.
    let source = some(2);
    for key in keys() {
        server.ask("DELETE", &format!("/bucket/{key}"), "");
    }
    server.ask("PUT", "/bucket/papers/f001", "precious");
    let copy = Copy::kept_in(&source, remote);
    let Ran { result, codes, .. } = copy.try_run();
    assert_eq!((result.unwrap().exit_code, codes), (3, vec!["local.changed".to_owned()]));
    assert!(server.ask("GET", "/bucket/papers/f001", "").ends_with("precious"));
    let head = server.ask("HEAD", "/bucket/papers/f000", "").to_ascii_lowercase();
    assert!(head.contains("x-amz-meta-abreast-hash: md5:"), "{head}");
    assert!(
        head.contains(&format!("x-amz-meta-abreast-uri: {}/f000", source.server.base)),
        "{head}"
    );
    // An object of a killed run of this copy is adopted.
    server.ask("DELETE", "/bucket/papers/f001", "");
    std::fs::remove_dir_all(copy.folder().join(".abreast")).unwrap();
    assert_eq!(copy.run().exit_code, 0);
    assert_eq!(copy.audit(true).same, 2);

    let mut source = some(6);
    for key in keys() {
        server.ask("DELETE", &format!("/bucket/{key}"), "");
    }
    let mut copy = Copy::kept_in(&source, remote);
    copy.run();
    source.set("/f005", "changed");
    copy.run();
    source.snapshot();
    restored(&mut copy, &source, fetched, |name, body| {
        let method = if body.is_some() { "PUT" } else { "DELETE" };
        server.ask(method, &format!("/bucket/papers/{name}"), body.unwrap_or_default());
    });

    // A bucket that is not there is one error, and nothing is forgotten.
    for key in keys() {
        server.ask("DELETE", &format!("/bucket/{key}"), "");
    }
    let answer = server.ask("DELETE", "/bucket", "");
    assert!(answer.contains(" 204 "), "{answer}");
    let is_missing = |ran: Ran| {
        let error = ran.result.unwrap_err();
        assert_eq!((error.code(), error.exit_code().number()), ("objects.bucket", 2), "{error}");
        assert!(ran.codes.is_empty(), "{:?}", ran.codes);
    };
    is_missing(copy.try_run());
    assert_eq!(Ran::audit(&copy.options, false).code(), "objects.bucket");
    let fresh = Copy::kept_in(&source, remote);
    is_missing(fresh.try_run());
    copy.options.baseline = false;
    let mut source = source;
    source.delete("/f001");
    is_missing(copy.try_run());
    server.ask("PUT", "/bucket", "");
    copy.options.baseline = true;
    let ran = copy.run();
    assert_eq!((ran.exit_code, ran.damaged), (0, 5));
    assert_eq!(copy.audit(true).exit_code, 0);
}
