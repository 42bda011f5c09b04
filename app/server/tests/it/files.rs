//! Resources on a disk that changes while they are served.

use crate::world::World;
use std::os::unix::fs::symlink;

#[test]
fn a_file_swapped_for_a_link_is_not_there_any_more() {
    let world = World::new();
    world.write("a", "1");
    world.write("dir/b", "1");
    world.publish();
    let served = world.serve();
    assert_eq!(served.get("/set/r/a").status, 200);
    std::fs::remove_file(world.folder.join("a")).unwrap();
    symlink(world.temporary.path().join("secret"), world.folder.join("a")).unwrap();
    assert_eq!(served.get("/set/r/a").status, 404);
    // The same for a folder on the way, inside the root or not.
    std::fs::rename(world.folder.join("dir"), world.folder.join("real")).unwrap();
    symlink("real", world.folder.join("dir")).unwrap();
    assert_eq!(served.get("/set/r/dir/b").status, 404);
    assert_eq!(served.get("/set/r/real/b").status, 200);
}

#[test]
fn hard_links_are_files_like_others() {
    let world = World::new();
    world.write("a", "1");
    std::fs::hard_link(world.folder.join("a"), world.folder.join("b")).unwrap();
    assert_eq!(world.serve().get("/set/r/b").body, b"1");
}

#[test]
fn odd_names_are_found_by_their_encoded_form() {
    use std::os::unix::ffi::OsStrExt as _;
    let world = World::new();
    for name in [
        &b"new\nline"[..],
        b"<&\"'>",
        b"100%",
        b"%41",
        b"\xff\xfe",
        b"a b",
        b"?x#y",
        b"back\\slash",
    ] {
        std::fs::write(world.folder.join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let served = world.serve();
    for (path, name) in [
        ("new%0Aline", &b"new\nline"[..]),
        ("%3C&%22'%3E", b"<&\"'>"),
        ("100%25", b"100%"),
        ("%2541", b"%41"),
        ("%FF%FE", b"\xff\xfe"),
        ("a%20b", b"a b"),
        ("%3Fx%23y", b"?x#y"),
        ("back%5Cslash", b"back\\slash"),
    ] {
        assert_eq!(served.get(&format!("/set/r/{path}")).body, name, "{path}");
    }
    assert_eq!(served.get("/set/r/A").status, 404, "decoded once, not twice");
}

/// Larger than what the sockets between hold.
const LARGE: usize = 64 << 20;

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection() {
    let world = World::new();
    world.write("large", vec![b'x'; LARGE]);
    let served = world.serve();
    let mut client = served.connect();
    client.request("GET", "/set/r/large", &[]);
    let head = client.head().unwrap().unwrap();
    assert_eq!(head.header("content-length"), LARGE.to_string());
    std::fs::File::options()
        .write(true)
        .open(world.folder.join("large"))
        .unwrap()
        .set_len(1_000)
        .unwrap();
    let mut body = Vec::new();
    let end = std::io::Read::read_to_end(&mut client.stream, &mut body);
    assert!(
        body.len() < LARGE && body.iter().all(|byte| *byte == b'x'),
        "{} bytes, {end:?}",
        body.len()
    );
}

#[test]
fn a_file_written_while_it_is_sent_never_arrives_whole() {
    let world = World::new();
    world.write("large", vec![b'x'; LARGE]);
    let served = world.serve();
    let mut client = served.connect();
    client.request("GET", "/set/r/large", &[]);
    client.head().unwrap().unwrap();
    // Same length, another state: what is sent is of neither.
    world.write("large", vec![b'y'; LARGE]);
    let mut body = Vec::new();
    let _ = std::io::Read::read_to_end(&mut client.stream, &mut body);
    assert!(body.len() < LARGE, "{} bytes", body.len());
    assert_eq!(
        served.get("/set/r/large").body,
        vec![b'y'; LARGE],
        "the next one is of the new state"
    );
}

#[test]
fn a_change_under_the_same_mtime_and_size_changes_the_tag() {
    let world = World::new();
    world.write("a", "one");
    let served = world.serve();
    let path = world.folder.join("a");
    let mtime = std::fs::metadata(&path).unwrap().modified().unwrap();
    let before = served.get("/set/r/a").header("etag");
    std::fs::write(&path, "two").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(mtime).unwrap();
    let tag = [("If-None-Match", before.as_str())];
    abreast_testkit::eventually("the tag differs", || {
        // A clock tick later at most; each write is a change of its own.
        std::fs::write(&path, "two").unwrap();
        served.ask("GET", "/set/r/a", &tag).status == 200
    });
}

#[test]
fn published_html_is_a_stranger_to_this_origin() {
    let world = World::new();
    for name in ["page.html", "drawing.svg", "doc.xml", "plain.txt", "noextension"] {
        world.write(name, "<script>fetch('/metrics')</script>");
    }
    let served = world.serve();
    for name in ["page.html", "drawing.svg", "doc.xml", "plain.txt", "noextension"] {
        for headers in [&[][..], &[("Range", "bytes=0-3")], &[("Range", "bytes=0-3,6-7")]] {
            let reply = served.ask("GET", &format!("/set/r/{name}"), headers);
            assert!(matches!(reply.status, 200 | 206));
            assert_eq!(reply.header("content-security-policy"), "sandbox", "{name}");
            assert_eq!(reply.header("x-content-type-options"), "nosniff", "{name}");
            assert!(reply.header("link").contains("rel=\"resourcesync\""));
        }
    }
    for target in ["/", "/about.html", "/set/about.html"] {
        let page = served.get(target);
        assert!(page.text().contains("A &lt;set&gt;") && !page.text().contains("A <set"));
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(page.header("content-security-policy").contains("default-src 'none'"));
        assert!(page.header("link").contains("/set/capabilitylist.xml>; rel=\"resourcesync\""));
    }
}

#[test]
fn what_was_modified_since_a_date_is_not_sent() {
    let world = World::new();
    world.write("a", "1");
    world.publish();
    let served = world.serve();
    std::fs::File::open(world.folder.join("a"))
        .unwrap()
        .set_modified(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_500_000_000))
        .unwrap();
    let (before, after) = ("Sun, 09 Sep 2001 01:46:40 GMT", "Tue, 01 Sep 2099 20:30:00 GMT");
    for target in ["/set/r/a", "/set/resourcelist.xml", "/.well-known/resourcesync"] {
        let of = |date: &str| served.ask("GET", target, &[("If-Unmodified-Since", date)]).status;
        abreast_testkit::eventually("the second of the change is over", || {
            !served.get(target).header("last-modified").is_empty()
        });
        assert_eq!((of(before), of(after)), (412, 200), "{target}");
    }
}
