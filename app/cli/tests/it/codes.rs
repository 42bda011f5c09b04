//! Exit codes: the same cause has the same code in every command.

use crate::world::abreast;
use abreast_testkit::http::{Server, answer, send, unused_address};
use abreast_testkit::run;
use abreast_testkit::tls::Certificate;
use std::process::Output;

/// Every command with the address of a server as an argument, which is `URL` here.
const WITH_A_NETWORK: [&[&str]; 10] = [
    &["sync", "URL", "DIR/copy", "--retries", "0"],
    &["audit", "URL", "DIR", "--retries", "0"],
    &["validate", "URL", "--retries", "0"],
    &["explore", "URL", "--retries", "0"],
    &["subscribe", "URL"],
    &["log", "papers", "--server", "URL"],
    &["import", "papers", "DIR/records.ndjson", "--server", "URL"],
    &["hub", "topics", "--server", "URL"],
    &["hub", "targets", "http://h/topic", "--server", "URL"],
    &["doctor", "URL", "--listen", "127.0.0.1:0"],
];

fn with(words: &[&str], url: &str, dir: &str, more: &[&str]) -> (Option<i32>, String) {
    let words = words.iter().map(|word| word.replace("URL", url).replace("DIR", dir));
    let Output { status, stdout, stderr } = run(abreast().args(words).args(more));
    (
        status.code(),
        format!("{}{}", String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)),
    )
}

#[test]
fn a_failure_of_tls_is_code_6_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    // As `openssl req -x509` makes it; the server has nothing for anybody.
    let certificate = Certificate::self_signed("localhost", true, false);
    let server = certificate.serve(answer("404 Not Found", "Connection: close\r\n", ""));
    let port = server.address().port();
    let other = Certificate::self_signed("localhost", true, false);
    std::fs::write(place.path().join("records.ndjson"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    let (named, wrong) = (place.path().join("named.pem"), place.path().join("other.pem"));
    std::fs::write(&named, certificate.pem()).unwrap();
    std::fs::write(&wrong, other.pem()).unwrap();
    for words in WITH_A_NETWORK {
        let secure = format!("https://localhost:{port}/");
        let (code, printed) = with(words, &secure, dir, &[]);
        assert_eq!(code, Some(6), "{words:?}: {printed}");
        assert!(printed.contains("self-signed, and not known here"), "{words:?}: {printed}");
        let (code, printed) = with(words, &secure, dir, &["--ca-file", wrong.to_str().unwrap()]);
        assert_eq!(code, Some(6), "{words:?}: {printed}");
        // The server is known then, and has nothing.
        let (code, printed) = with(words, &secure, dir, &["--ca-file", named.to_str().unwrap()]);
        assert!(
            code != Some(6) && !printed.contains("self-signed"),
            "{words:?} {code:?}: {printed}"
        );
        // The certificate is of another name.
        let (code, printed) = with(
            words,
            &format!("https://127.0.0.1:{port}/"),
            dir,
            &["--ca-file", named.to_str().unwrap()],
        );
        assert_eq!(code, Some(6), "{words:?}: {printed}");
        assert!(printed.contains("for another host name"), "{words:?}: {printed}");
        let (code, printed) = with(words, &format!("http://localhost:{port}/"), dir, &[]);
        assert_eq!(code, Some(6), "{words:?}: {printed}");
        assert!(printed.contains("the server speaks TLS"), "{words:?}: {printed}");
    }
}

#[test]
fn a_path_that_is_not_there_is_code_2_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    let missing = place.path().join("missing").display().to_string();
    let missing = missing.as_str();
    let url = "http://127.0.0.1:9/";
    for words in [
        &["audit", url, missing][..],
        &["sync", url, "DIR/copy", "--config", missing],
        &["sync", "--all", "--config", missing],
        &["sync", url, "DIR/copy", "--filter-from", missing],
        &["sync", url, "DIR/copy", "--ca-file", missing],
        &["sync", url, "DIR/copy", "--token-file", missing],
        &["audit", "--all", "--config", missing],
        &["validate", missing],
        &["validate", url, "--ca-file", missing],
        &["explore", url, "--ca-file", missing],
        &["subscribe", url, "--ca-file", missing],
        &["log", "papers", "--data", missing],
        &["log", "papers", "--config", missing],
        &["log", "papers", "--server", url, "--ca-file", missing],
        &["import", "papers", missing, "--data", "DIR/store"],
        &["import", "papers", "--config", missing],
        &["hub", "--config", missing],
        &["hub", "--data", "DIR/hub", "--ca-file", missing],
        &["hub", "topics", "--data", missing],
        &["hub", "topics", "--config", missing],
        &["serve", "--config", missing],
        &["build", "--config", missing],
        &["check", missing],
        &["status", missing],
        &["repair", missing],
        &["backup", missing, "DIR/backups"],
        &["restore", missing, "DIR/restored"],
        &["migrate", missing, "DIR/moved"],
        &["doctor", missing, "--listen", "127.0.0.1:0"],
        &["doctor", url, "--ca-file", missing, "--listen", "127.0.0.1:0"],
        &["config", "check", missing],
        &["config", "show", missing],
        &["token", "list", "--config", missing],
    ] {
        let (code, printed) = with(words, "", dir, &[]);
        assert_eq!(code, Some(2), "{words:?}: {printed}");
        assert!(!printed.is_empty(), "{words:?}");
    }
}

/// Every command that opens a store, which is `STORE` here, and whether the command creates a store.
const WITH_A_STORE: [(&[&str], bool); 30] = [
    (&["serve", "DIR/papers", "--listen", "127.0.0.1:0", "--data", "STORE"], true),
    (
        &[
            "build",
            "DIR/papers",
            "--copy",
            "--base-url",
            "http://h/",
            "--out",
            "DIR/site",
            "--data",
            "STORE",
        ],
        true,
    ),
    (&["hub", "--listen", "127.0.0.1:0", "--data", "STORE"], true),
    (&["hub", "topics", "--data", "STORE"], false),
    (&["hub", "targets", "--data", "STORE"], false),
    (&["hub", "targets", "http://h/t", "--data", "STORE"], false),
    (&["hub", "attempts", "1", "--data", "STORE"], false),
    (&["hub", "replay", "1", "--after", "0", "--data", "STORE"], false),
    (&["hub", "end", "1", "--data", "STORE"], false),
    (&["import", "set", "DIR/lines.ndjson", "--data", "STORE"], false),
    (&["import", "set", "DIR/lines.ndjson", "--dry-run", "--data", "STORE"], false),
    (&["import", "set", "DIR/table.csv", "--data", "STORE"], false),
    (&["import", "set", "DIR/a.nt", "--data", "STORE"], false),
    (&["import", "set", "DIR/a.nt", "--dry-run", "--data", "STORE"], false),
    (&["import", "set", "--add", "DIR/a.nt", "--data", "STORE"], false),
    (&["log", "set", "--data", "STORE"], false),
    (&["token", "create", "--name", "x", "--scope", "read", "--data", "STORE"], false),
    (&["token", "list", "--data", "STORE"], false),
    (&["token", "revoke", "x", "--data", "STORE"], false),
    (&["check", "STORE"], false),
    (&["check", "STORE", "--read-data"], false),
    (&["repair", "STORE"], false),
    (&["repair", "STORE", "--dry-run"], false),
    (&["drop", "STORE", "set", "--yes"], false),
    (&["drop", "STORE", "set", "--dry-run"], false),
    (&["set", "list", "--data", "STORE"], false),
    (&["set", "remove", "set", "--yes", "--data", "STORE"], false),
    (&["set", "rename", "set", "new", "--data", "STORE"], false),
    (&["set", "rename", "set", "new", "--dry-run", "--data", "STORE"], false),
    (&["backup", "STORE", "DIR/backups"], false),
];

/// A command that makes a store fails at a path where nobody may write; the others at a path that is not there.
#[test]
fn a_path_that_is_no_store_has_one_code_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for name in ["papers", "site"] {
        std::fs::create_dir(at(name)).unwrap();
    }
    std::fs::write(at("papers/a.txt"), "a").unwrap();
    std::fs::write(at("lines.ndjson"), "{\"uri\":\"http://h/a\",\"change\":\"created\"}\n")
        .unwrap();
    std::fs::write(at("table.csv"), "uri\nhttp://h/a\n").unwrap();
    std::fs::write(at("a.nt"), "<http://h/a> <http://h/p> <http://h/b> .\n").unwrap();
    let before = abreast_testkit::folder::paths(place.path());
    let dir = place.path().to_str().unwrap();
    let mut wrong = Vec::new();
    for (store, of_makers) in [
        ("/proc/zz", 13),
        ("/proc/self/zz/below", 13),
        ("DIR/lines.ndjson", 2),
        ("DIR/lines.ndjson/below", 2),
        // Where commands make a store, this is none.
        ("DIR/missing", -1),
    ] {
        for (words, makes_one) in WITH_A_STORE {
            let expected = if makes_one { of_makers } else { 2 };
            if expected < 0 {
                continue;
            }
            let words: Vec<String> =
                words.iter().map(|word| word.replace("STORE", store)).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let (code, printed) = with(&words, "", dir, &[]);
            let named = printed.contains(&store.replace("DIR", dir));
            if code != Some(expected) || !named || printed.contains("File exists") {
                wrong.push(format!("{words:?}\n  {code:?}, not {expected}: {printed}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(abreast_testkit::folder::paths(place.path()), before, "something was made");
}

#[test]
fn a_bad_argument_is_code_2_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    std::fs::write(place.path().join("records.ndjson"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    for words in WITH_A_NETWORK {
        for url in ["http://[", "ftp://papers.example.org/", "nonsense://"] {
            let (code, printed) = with(words, url, dir, &[]);
            assert_eq!(code, Some(2), "{words:?} {url}: {printed}");
        }
        for more in [["--proxy", "nonsense://"], ["--pin", "nonsense"], ["--no-such-option", "x"]] {
            let (code, printed) = with(words, "http://127.0.0.1:9/", dir, &more);
            assert_eq!(code, Some(2), "{words:?} {more:?}: {printed}");
        }
    }
}

/// Every argument that is an address, with the place of it.
const ADDRESSES: [&[&str]; 17] = [
    &["sync", "URL", "DIR/copy"],
    &["sync", "URL", "DIR/copies", "--all-sets"],
    &["audit", "URL", "DIR"],
    &["validate", "URL"],
    &["explore", "URL"],
    &["subscribe", "URL"],
    &["doctor", "URL", "--listen", "127.0.0.1:0"],
    &["log", "papers", "--server", "URL"],
    &["import", "papers", "DIR/records.ndjson", "--server", "URL"],
    &["hub", "topics", "--server", "URL"],
    &["hub", "targets", "http://h/topic", "--server", "URL"],
    &["hub", "--data", "DIR/hub", "--base-url", "URL"],
    &["serve", "DIR", "--base-url", "URL"],
    &["serve", "DIR", "--hub", "URL"],
    &["build", "DIR", "--out", "DIR/../site", "--copy", "--base-url", "URL"],
    &["build", "DIR", "--out", "DIR/../site", "--base-url", "http://h/", "--resources-url", "URL"],
    &[
        "sync",
        "http://127.0.0.1:9/",
        "DIR/copy",
        "--callback-listen",
        "127.0.0.1:0",
        "--callback-url",
        "URL",
    ],
];

#[test]
fn an_address_that_is_no_url_is_code_2_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    std::fs::write(place.path().join("records.ndjson"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    for words in ADDRESSES {
        for url in [
            "http:/host.example",
            "http:host.example",
            "http://",
            "http:///x",
            "ftp://h.example/",
            "host.example:80",
            "",
        ] {
            let (code, printed) = with(words, url, dir, &[]);
            assert_eq!(code, Some(2), "{words:?} {url}: {printed}");
            let names_a_url =
                ["URL", "http://", "https://"].iter().any(|word| printed.contains(word));
            assert!(url.is_empty() || names_a_url, "{words:?} {url}: {printed}");
        }
    }
    for proxy in ["http:/proxy.example", "ftp://proxy.example/"] {
        let (code, printed) =
            with(&["explore", "http://127.0.0.1:9/", "--proxy", "URL"], proxy, dir, &[]);
        assert_eq!(code, Some(2), "{proxy}: {printed}");
    }
    for host in ["http://h.example/", "h.example/", ""] {
        for words in [WITH_A_NETWORK[0], WITH_A_NETWORK[2]] {
            let (code, printed) = with(words, "http://127.0.0.1:9/", dir, &["--allow-host", host]);
            assert_eq!(code, Some(2), "{words:?} {host}: {printed}");
        }
    }
}

#[test]
fn a_file_or_nothing_where_a_folder_is_needed_is_code_2() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    std::fs::write(place.path().join("file"), "x").unwrap();
    let url = "http://127.0.0.1:9/";
    for target in ["DIR/file", "DIR/file/below", "warc:DIR/file", ""] {
        for more in [&[][..], &["-n"], &["--all-sets"], &["--test-filter"]] {
            let (code, printed) = with(&["sync", url, target], "", dir, more);
            assert_eq!(code, Some(2), "{target} {more:?}: {printed}");
            assert!(
                printed.contains("help:") || printed.contains("Not a directory"),
                "{target} {more:?}: {printed}"
            );
        }
        let (code, printed) = with(&["audit", url, target], "", dir, &[]);
        assert_eq!(code, Some(2), "{target}: {printed}");
    }
    for words in [
        &["sync", url, "DIR/copy", "--state", "DIR/file"][..],
        &["sync", url, "DIR/copy", "--backup-dir", "DIR/file"],
        &["sync", url, "-", "--state", "DIR/file"],
        &["serve", "DIR/file"],
        &["build", "DIR/file", "--out", "DIR/site", "--base-url", "http://h/", "--copy"],
        &["build", "DIR", "--out", "DIR/file", "--base-url", "http://h/", "--copy"],
        &["check", "DIR/file"],
        &["repair", "DIR/file"],
        &["backup", "DIR/file", "DIR/backups"],
        &["restore", "DIR/file", "DIR/restored"],
        &["doctor", "DIR/file", "--listen", "127.0.0.1:0"],
        &["log", "papers", "--data", "DIR/file"],
        &["token", "list", "--data", "DIR/file"],
        &["hub", "--data", "DIR/file"],
        &["config", "check", "DIR"],
        &["validate", "DIR"],
        &["explore", "DIR"],
    ] {
        let (code, printed) = with(words, "", dir, &[]);
        assert_eq!(code, Some(2), "{words:?}: {printed}");
    }
    assert!(
        !place.path().join("copy").exists()
            && std::fs::read(place.path().join("file")).unwrap() == b"x"
    );
}

#[test]
fn a_server_that_cannot_be_reached_is_code_5_in_every_command() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    std::fs::write(place.path().join("records.ndjson"), "{\"uri\":\"http://h/a\"}\n").unwrap();
    let address = unused_address();
    for words in WITH_A_NETWORK {
        // These wait longer between attempts than a test should.
        if ["log", "import", "hub"].contains(&words[0]) {
            continue;
        }
        let (code, printed) = with(words, &format!("http://{address}/"), dir, &[]);
        assert_eq!(code, Some(5), "{words:?}: {printed}");
        assert!(!printed.contains("publish the document"), "{words:?}: {printed}");
    }
}

#[test]
fn a_site_without_a_source_is_code_4_with_what_was_tried() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    let server = Server::new(|request, stream| match request.target() {
        "/page" => {
            send(stream, "200 OK", "", b"<!doctype html><html><title>Welcome</title></html>")
        }
        "/text" => send(stream, "200 OK", "", b"ok"),
        _ => send(stream, "404 Not Found", "", b""),
    });
    let address = server.address();
    for path in ["", "page", "text", "missing"] {
        let url = format!("http://{address}/{path}");
        for words in
            [&["sync", "URL", "DIR/copy"][..], &["audit", "URL", "DIR"], &["explore", "URL"]]
        {
            let (code, printed) = with(words, &url, dir, &["--retries", "0"]);
            assert_eq!(code, Some(4), "{words:?} {path}: {printed}");
            assert!(
                printed.contains(&url) && printed.contains("help:"),
                "{words:?} {path}: {printed}"
            );
            for place in ["host-meta", "host-meta.json"] {
                let tried =
                    format!("tried http://{address}/.well-known/{place}: the server answered 404");
                assert_eq!(
                    printed.contains(&tried),
                    path.is_empty(),
                    "{words:?} {path}: {printed}"
                );
            }
        }
        let (_, printed) = with(&["explore", "URL"], &url, dir, &[]);
        assert!(
            printed.contains(&format!("tried http://{address}/.well-known/resourcesync")),
            "{printed}"
        );
        if path != "text" {
            assert_eq!(with(&["validate", "URL"], &url, dir, &[]).0, Some(4), "{path}");
        }
    }
}

#[test]
fn what_is_still_being_made_is_code_5() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().to_str().unwrap();
    let server = Server::new(|_, stream| send(stream, "202 Accepted", "", b"being made"));
    for path in ["dump.zip", "sitemap.xml"] {
        let url = format!("http://{}/{path}", server.address());
        for words in [&["explore", "URL"][..], &["validate", "URL"]] {
            let (code, printed) = with(words, &url, dir, &[]);
            assert_eq!(code, Some(5), "{words:?}: {printed}");
            assert!(printed.contains("still being made (202)"), "{words:?}: {printed}");
        }
    }
}

#[test]
fn unknown_host_is_reported_during_retries() {
    let place = tempfile::tempdir().unwrap();
    let mut command = abreast();
    command.args(["sync", "http://no-such-host.invalid/"]).arg(place.path().join("copy"));
    let begun = std::time::Instant::now();
    let mut child = command
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut said = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("no-such-host.invalid") {
        line.clear();
        assert!(
            std::io::BufRead::read_line(&mut said, &mut line).unwrap() > 0,
            "it ended without a word"
        );
    }
    assert!(child.try_wait().unwrap().is_none(), "it goes on trying");
    assert!(begun.elapsed() < std::time::Duration::from_secs(3), "{:?}: {line}", begun.elapsed());
    child.kill().unwrap();
    child.wait().unwrap();
}
