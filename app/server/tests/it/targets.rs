//! Request targets that try to leave the published folder: refused, and never a byte from outside.

use crate::world::{SECRET, World};

/// Paths to try at the root and beneath a set's resources.
const PATHS: &[&str] = &[
    "../secret",
    "../../secret",
    "dir/../../secret",
    "dir/../a",
    "./a",
    "dir/./inner",
    "%2e%2e/secret",
    "%2e%2e%2fsecret",
    "..%2fsecret",
    "..%2Fsecret",
    ".%2e/secret",
    "%2e./secret",
    "dir/%2e%2e/%2e%2e/secret",
    "dir%2f..%2f..%2fsecret",
    "dir%2finner",
    "%252e%252e/secret",
    "%252e%252e%252fsecret",
    "..%252fsecret",
    "..%5csecret",
    "..\\secret",
    "%c0%ae%c0%ae/secret",
    "%c0%ae%c0%ae%c0%afsecret",
    "%e0%80%ae%e0%80%ae/secret",
    "%uff0e%uff0e/secret",
    "..;/secret",
    "dir/..;/../secret",
    "dir;x/inner",
    "..%00/secret",
    "a%00",
    "a%00.txt",
    "%00",
    "/secret",
    "//secret",
    "/etc/passwd",
    "%2fetc%2fpasswd",
    "dir//inner",
    "dir/",
    "a/",
    "a/x",
    ".",
    "..",
    ".git/config",
    ".hidden",
    "dir/.hidden",
    ".abreast/source.db",
    "%2eabreast/source.db",
    "draft~",
    "%23draft%23",
    "~root/secret",
    "C:/secret",
    "file:///etc/passwd",
    "link",
    "link/passwd",
    "loop/loop/a",
    "pipe",
    "dir",
];

fn world() -> World {
    let world = World::new();
    for name in [
        "a",
        "dir/inner",
        ".git/config",
        ".hidden",
        "dir/.hidden",
        ".abreast/source.db",
        "draft~",
        "#draft#",
    ] {
        world.write(name, if name.contains(['.', '~', '#']) { SECRET } else { "public" });
    }
    std::os::unix::fs::symlink("/etc", world.folder.join("link")).unwrap();
    std::os::unix::fs::symlink(".", world.folder.join("loop")).unwrap();
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, world.folder.join("pipe"), mode).unwrap();
    world.publish();
    world
}

fn refused(served: &crate::world::Served, target: &[u8]) {
    let request =
        [b"GET ", target, b" HTTP/1.1\r\nHost: example.org\r\nConnection: close\r\n\r\n"].concat();
    let shown = String::from_utf8_lossy(&target[..target.len().min(80)]).into_owned();
    let replies = served.answers_to(&request);
    // What is sent after the limit may make the refusal itself be lost.
    let Some(reply) = replies.first() else { return assert!(target.len() > 64 * 1024, "{shown}") };
    assert_eq!(replies.len(), 1, "{shown}");
    assert!(matches!(reply.status, 400 | 403 | 404 | 414 | 431), "{shown}: {}", reply.status);
    let text = reply.text();
    assert!(
        !text.contains(SECRET) && !text.contains("root:") && !text.contains("public"),
        "{shown}: {text}"
    );
}

#[test]
fn paths_outside_the_folder_or_to_hidden_files_are_refused() {
    let world = world();
    let served = world.serve();
    for path in PATHS {
        refused(&served, format!("/set/r/{path}").as_bytes());
    }
    for path in PATHS.iter().filter(|path| !path.is_empty()) {
        refused(&served, format!("/{path}").as_bytes());
        refused(&served, format!("/set/{path}").as_bytes());
    }
    assert_eq!(served.get("/set/r/a").body, b"public");
    assert_eq!(served.get("/set/r/dir/inner").body, b"public");
}

#[test]
fn targets_of_other_forms_are_refused() {
    let world = world();
    let served = world.serve();
    for target in [
        &b"example.org:80"[..],
        b"example.org",
        b"*",
        b"file:///etc/passwd",
        b"ftp://example.org/etc/passwd",
        b"http://example.org/../secret",
        b"http:///etc/passwd",
        b"a",
        b"../secret",
        b"\\..\\secret",
        b"/set/r/\x01",
        b"/set/r/\x7f",
        b"/set/r/\xff\xfe",
        b"/set/r/..\xc0\xafsecret",
        b"/set/r/a b",
    ] {
        refused(&served, target);
    }
    // A target with a scheme is one that every server must understand [rfc9112 §3.2.2].
    assert_eq!(served.get("http://elsewhere.example/set/r/a").body, b"public");
}

#[test]
fn targets_of_any_length_are_answered_or_refused() {
    let world = world();
    let served = world.serve();
    for length in [9_000, 20_000, 65_534, 70_000, 1_000_000] {
        refused(&served, format!("/set/r/{}", "a".repeat(length)).as_bytes());
        refused(&served, format!("/set/r/{}a", "x/../".repeat(length / 5)).as_bytes());
    }
    assert_eq!(served.get(&format!("/set/r/{}", "a".repeat(20_000))).status, 414);
}
