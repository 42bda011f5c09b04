//! Names and texts of strangers, fed to every command: nothing that is printed may steer a
//! terminal.

use crate::world::{Source, abreast};
use abreast_testkit::http::{Request, Server, send, unused_address};
use abreast_testkit::{Running, run};
use abreast_webtypes::is_control;
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;

/// Clears the screen, rings, turns the text around, and begins a line as messages of this program
/// begin: for arguments and settings, which are the user's own.
const EVIL: &str = "x\u{1b}[2J\u{7}\u{9b}31m\u{202e}\u{2066}\u{85}\u{2028}\u{7f}\u{8}\r\nabreast: FORGED\nINFO FORGED";
/// What servers and names of files hold: it also begins lines as further lines of messages begin.
const FOREIGN: &str = "x\u{1b}[2J\u{7}\u{9b}31m\u{202e}\u{2066}\u{85}\u{2028}\u{7f}\u{8}\r\nabreast: FORGED\nINFO FORGED\n  \
     help: FORGED\n  because: FORGED\nnote: FORGED";
/// The part of `FOREIGN` that XML allows in one line.
const EVIL_XML: &str = "x\u{9b}31m\u{202e}\u{2066}\u{85}\u{2028}\u{7f}";
/// The part of `FOREIGN` that XML allows, as text and in attributes.
const EVIL_LINES: &str = "x\u{9b}31m\u{202e}&#10;abreast: FORGED&#10;  help: FORGED&#10;  because: FORGED&#13;note: FORGED";
/// The part of `FOREIGN` that a header may contain.
const EVIL_HEADER: &str = "x\u{9b}31m\u{202e}\u{2066}\u{85}\u{2028}";
/// Such lines would pass for the program's own, and for further lines of its messages.
const FORGED: [&str; 2] = ["abreast: FORGED", "INFO FORGED"];
const FORGED_MORE: [&str; 3] = ["help: FORGED", "because: FORGED", "note: FORGED"];

/// A line that passes for the program's own.
fn forged(text: &str) -> Option<&str> {
    let begins = |line: &str, all: &[&str]| all.iter().any(|forged| line.starts_with(forged));
    text.lines().find(|line| begins(line, &FORGED) || begins(line.trim_start(), &FORGED_MORE))
}

/// The commands that were run, by name.
#[derive(Default)]
struct Seen {
    commands: BTreeSet<String>,
    /// Output in which hostile text was shown, escaped.
    shown: BTreeSet<String>,
}

impl Seen {
    fn run(&mut self, arguments: &[&str]) -> Output {
        let output = run(abreast().args(arguments));
        self.check(arguments, &output);
        output
    }

    fn check(&mut self, arguments: &[&str], output: &Output) {
        for bytes in [&output.stdout, &output.stderr] {
            let text = std::str::from_utf8(bytes)
                .unwrap_or_else(|_| panic!("{arguments:?} prints no UTF-8"));
            if let Some(found) = text.chars().find(|c| is_control(*c) && *c != '\n') {
                panic!("{arguments:?} prints {found:?}: {text:?}");
            }
            if let Some(line) = forged(text) {
                panic!("{arguments:?} prints a line of others: {line:?} in {text:?}");
            }
            if text.contains("\\u202e") || text.contains("\\u{202e}") || text.contains("FORGED") {
                self.shown.insert(arguments[0].to_owned());
            }
        }
        self.commands.insert(arguments[0].to_owned());
    }
}

/// A server whose every answer is hostile.
fn hostile_server() -> Server {
    Server::new(|request, stream| {
        answer(request, stream);
        false
    })
}

fn answer(request: &Request, stream: &mut TcpStream) {
    let base = format!("http://{}", request.header("host").unwrap_or_default());
    let path = request.target();
    let json = |value: serde_json::Value| ("200 OK", "application/json", value.to_string());
    let target = serde_json::json!({
        "id": 1, "kind": FOREIGN, "address": FOREIGN, "topic": FOREIGN, "cursor": 0, "head": 1, "state": FOREIGN, "attempts": 2,
        "lease_until": FOREIGN,
        "last_attempts": [{"time": FOREIGN, "offset": 1, "number": 1, "error": FOREIGN, "took_ms": 1}],
        "dead_letters": [{"first": 1, "last": 2, "time": FOREIGN, "error": FOREIGN}],
    });
    let (status, kind, body) = match path {
        _ if path.starts_with("/api/v1/hub/topics?") => json(
            serde_json::json!({"topics": [{"id": 1, "url": FOREIGN, "head": 1, "trimmed": 0}], "next": null}),
        ),
        _ if path.starts_with("/api/v1/hub/topics/") => {
            json(serde_json::json!({"targets": [target], "next": null}))
        }
        _ if path.starts_with("/api/v1/hub/") => json(target),
        _ if path.starts_with("/api/v1/sets/log/") => {
            json(serde_json::json!({"changes": [{"position": 1, "uri": FOREIGN}], "next": 1}))
        }
        _ if path.starts_with("/api/") => {
            let problem = serde_json::json!({"detail": FOREIGN, "help": FOREIGN});
            ("422 Unprocessable Content", "application/problem+json", problem.to_string())
        }
        "/events" => ("200 OK", "text/event-stream", format!("id: 7\ndata: {EVIL_XML}\n\n")),
        "/list.xml" => ("200 OK", "application/xml", list(&base)),
        "/capabilities.xml" => {
            let text = format!(
                "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
                 <rs:md capability=\"capabilitylist\"/><url><loc>{base}/list.xml</loc><rs:md capability=\"resourcelist\"/></url>\
                 <url><loc>{base}/{EVIL_LINES}</loc><rs:md capability=\"{EVIL_LINES}\"/></url></urlset>"
            );
            ("200 OK", "application/xml", text)
        }
        "/v0.1.xml" => ("200 OK", "application/xml", old_list(&base)),
        "/changes.xml" => (
            "200 OK",
            "application/xml",
            old_list(&base).replace("<urlset", "<urlset rs:type=\"changeset\""),
        ),
        "/feed.json" => json(serde_json::json!({
            "@context": FOREIGN, "type": "OrderedCollection", "id": FOREIGN, "first": {"id": format!("{base}/page.json")},
            "last": {"id": format!("{base}/page.json")}, "totalItems": 1, "summary": FOREIGN,
        })),
        "/other.json" => json(serde_json::json!({"type": FOREIGN})),
        "/feed.xml" => (
            "200 OK",
            "application/atom+xml",
            format!(
                "<feed xmlns=\"http://www.w3.org/2005/Atom\"><id>x</id><title>{EVIL_LINES}</title></feed>"
            ),
        ),
        "/page.json" => {
            let object = serde_json::json!({"id": format!("{base}/{FOREIGN}"), "type": FOREIGN, "canonical": FOREIGN});
            let activity = |kind: &str| serde_json::json!({"id": FOREIGN, "type": kind, "object": object, "endTime": FOREIGN});
            json(serde_json::json!({
                "type": "OrderedCollectionPage", "id": FOREIGN, "partOf": FOREIGN, "next": FOREIGN, "prev": FOREIGN,
                "orderedItems": [activity("Update"), activity(FOREIGN), activity("Delete")],
            }))
        }
        "/overview" | "/collection" | "/fragments" => {
            ("200 OK", "application/atom+xml", feed(&base, path))
        }
        "/fragment" => (
            "200 OK",
            "text/turtle",
            format!(
                "<{base}/a> <http://h/p> \"{EVIL_XML}\" . <{FOREIGN}> <http://h/p> \"\"\"{FOREIGN}\"\"\" ."
            ),
        ),
        "/broken.xml" => ("200 OK", "application/xml", format!("<urlset><{EVIL_XML}>{FOREIGN}")),
        "/page" => (
            "200 OK",
            "text/html",
            format!("<html><link rel=\"resourcesync\" href=\"{FOREIGN}\">{FOREIGN}</html>"),
        ),
        "/robots.txt" => ("404 Not Found", "text/plain", String::new()),
        _ => ("200 OK", "text/plain", FOREIGN.to_owned()),
    };
    let headers = format!(
        "Content-Type: {kind}\r\nLink: <{EVIL_HEADER}>; rel=\"resourcesync\"\r\nConnection: close\r\n"
    );
    send(stream, status, &headers, body.as_bytes());
}

/// A Resource List with names that decode to control characters, and attributes that hold them.
fn list(base: &str) -> String {
    let name = encoded();
    format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\">\
         <rs:md capability=\"resourcelist\" at=\"2026-01-01T00:00:00Z\"/>\
         <url><loc>{base}/good{name}</loc><rs:md length=\"{length}\"/></url>\
         <url><loc>{base}/wrong{name}</loc><rs:md hash=\"md5:1e0d5cb8ef6ba40c99b14c0237be735e\"/></url>\
         <url><loc>{base}/raw{EVIL_XML}</loc><lastmod>{EVIL_XML}</lastmod></url>\
         <url><loc>{base}/lines{EVIL_LINES}</loc><lastmod>{EVIL_LINES}</lastmod></url>\
         <url><loc>{base}/type</loc><rs:md type=\"{EVIL_LINES}\" hash=\"{EVIL_LINES}\" length=\"{EVIL_LINES}\" change=\"{EVIL_LINES}\"/>\
         <rs:ln rel=\"{EVIL_LINES}\" href=\"{EVIL_LINES}\"/></url>\
         <url><loc>http://other.invalid/{name}</loc></url></urlset>",
        length = FOREIGN.len(),
    )
}

/// A Sitemap of ResourceSync 0.1.
fn old_list(base: &str) -> String {
    format!(
        "<urlset xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\" xmlns:rs=\"http://www.openarchives.org/rs/terms/\" \
         xmlns:xhtml=\"http://www.w3.org/1999/xhtml\"><xhtml:meta name=\"DCTERMS.modified\" content=\"{EVIL_LINES}\"/>\
         <xhtml:link rel=\"current http://www.openarchives.org/rs/changeset\" href=\"{EVIL_LINES}\"/>\
         <xhtml:link rel=\"http://www.openarchives.org/rs/dump\" href=\"{base}/dump{EVIL_LINES}\" type=\"{EVIL_LINES}\"/>\
         <url><loc>{base}/good{name}</loc><lastmod rs:type=\"{EVIL_LINES}\">2026-01-01T00:00:00Z</lastmod>\
         <rs:fixity type=\"{EVIL_LINES}\">{EVIL_LINES}</rs:fixity><rs:size>{EVIL_LINES}</rs:size>\
         <rs:mimetype>{EVIL_LINES}</rs:mimetype><rs:path>{EVIL_LINES}</rs:path>\
         <xhtml:meta name=\"DC.subject\" content=\"{EVIL_LINES}\"/></url>\
         <url><loc>{base}/lines{EVIL_LINES}</loc><expires>{EVIL_LINES}</expires></url></urlset>",
        name = encoded(),
    )
}

/// A feed of SDShare.
fn feed(base: &str, path: &str) -> String {
    let (relation, href) = match path {
        "/overview" => ("collectionfeed", "/collection"),
        "/collection" => ("fragmentsfeed", "/fragments"),
        _ => ("fragment", "/fragment"),
    };
    let entry = |id: &str, href: &str| {
        format!(
            "<entry><id>{EVIL_LINES}</id><title>{EVIL_LINES}</title><updated>2026-01-01T00:00:00Z</updated>\
             <s:resource>{base}/{id}</s:resource>\
             <link rel=\"http://www.sdshare.org/2012/core/{relation}\" type=\"text/turtle\" href=\"{href}\"/></entry>"
        )
    };
    format!(
        "<feed xmlns=\"http://www.w3.org/2005/Atom\" xmlns:s=\"http://www.sdshare.org/2012/core/\"><id>{EVIL_LINES}</id>\
         <title>{EVIL_LINES}</title><updated>{EVIL_LINES}</updated>{}{}{}</feed>",
        entry("a", href),
        entry(EVIL_LINES, href),
        entry("b", EVIL_LINES)
    )
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn no_command_prints_what_steers_a_terminal() {
    let mut seen = Seen::default();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let server = hostile_server();
    let base = server.url("");
    let url = |name: &str| format!("{base}/{name}");

    // A hostile Source.
    let copy = path("copy");
    let sources = [
        "list.xml",
        "capabilities.xml",
        "broken.xml",
        "page",
        "v0.1.xml",
        "changes.xml",
        "feed.json",
        "other.json",
        "feed.xml",
        "overview",
        EVIL,
    ];
    for (number, source) in sources.into_iter().enumerate() {
        for more in [
            &["-v"][..],
            &["--json"],
            &["--dry-run"],
            &["--test-filter"],
            &["--lenient"],
            &["--strict"],
            &["--category", EVIL],
        ] {
            let copy = path(&format!("copy-{number}"));
            seen.run(&[&["sync", &url(source), text(&copy), "--retries", "0"], more].concat());
        }
        for format in ["text", "json", "html"] {
            seen.run(&["validate", &url(source), "--retries", "0", "--format", format]);
        }
        seen.run(&["explore", &url(source), "--retries", "0"]);
        seen.run(&["explore", &url(source), "--retries", "0", "--json"]);
        let graph = format!("nquads:{}", text(&path(&format!("graph-{number}"))));
        seen.run(&["sync", &url(source), &graph, "--retries", "0"]);
        seen.run(&["subscribe", &url(source), "--limit", "1", "--max-time", "5s"]);
    }
    seen.run(&[
        "sync",
        &url("list.xml"),
        text(&copy),
        "--retries",
        "0",
        "--immutable",
        "--lenient",
    ]);
    seen.run(&["sync", &url("list.xml"), "-", "--state", text(&path("state")), "--retries", "0"]);
    for more in [&[][..], &["--json"], &["--full"]] {
        seen.run(&[&["audit", &url("list.xml"), text(&copy), "--retries", "0"], more].concat());
    }
    seen.run(&["subscribe", &url("events"), "--limit", "1", "--max-time", "5s"]);
    seen.run(&["doctor", &url(EVIL)]);
    seen.run(&["doctor", EVIL]);

    // Files that a stranger named, and files that are gone.
    fs::write(copy.join(FOREIGN), "extra").unwrap();
    seen.run(&["audit", &url("list.xml"), text(&copy), "--retries", "0"]);
    for entry in
        fs::read_dir(&copy).unwrap().flatten().filter(|entry| entry.file_name() != ".abreast")
    {
        let _ = fs::remove_file(entry.path());
    }
    for more in [&[][..], &["--json"], &["--read-data"]] {
        seen.run(&[&["check", text(&copy)], more].concat());
    }
    seen.run(&["repair", text(&copy), "--dry-run"]);
    seen.run(&["repair", text(&copy)]);

    // A hostile API.
    let lines = path("lines.ndjson");
    fs::write(&lines, "{\"uri\":\"http://example.org/a\"}\n").unwrap();
    seen.run(&["import", "set", text(&lines), "--server", &base]);
    for (name, content) in
        [("a.ndjson", FOREIGN), ("b.csv", FOREIGN), ("c.xml", EVIL_XML), ("d.xml", &list(&base))]
    {
        fs::write(path(name), content).unwrap();
        seen.run(&["import", "set", text(&path(name)), "--dry-run"]);
        seen.run(&["import", "set", text(&path(name)), "--dry-run", "--json"]);
    }
    fs::write(path("e.ndjson"), format!("{{\"uri\":{}}}\n", serde_json::json!(FOREIGN))).unwrap();
    seen.run(&["import", "set", text(&path("e.ndjson")), "--dry-run"]);
    seen.run(&["log", "set", "--server", &base]);
    seen.run(&["log", "log", "--server", &base, "--limit", "1"]);
    for command in ["topics", "targets"] {
        seen.run(&["hub", command, "--server", &base]);
        seen.run(&["hub", command, "--server", &base, "--json"]);
    }
    seen.run(&["hub", "targets", EVIL, "--server", &base]);
    seen.run(&["hub", "attempts", "1", "--server", &base]);
    seen.run(&["hub", "replay", "1", "--after", "0", "--server", &base]);
    seen.run(&["hub", "end", "1", "--reason", EVIL, "--server", &base]);

    // A published folder in which strangers may write, with a server's log in both formats.
    let folder = path("folder");
    fs::create_dir_all(folder.join(format!("d{FOREIGN}"))).unwrap();
    fs::write(folder.join(FOREIGN), "bytes").unwrap();
    fs::write(folder.join(format!(".{FOREIGN}.links.json")), FOREIGN).unwrap();
    fs::write(folder.join("linked"), "bytes").unwrap();
    let links = serde_json::json!({FOREIGN: FOREIGN, "links": [{"rel": FOREIGN, "href": FOREIGN, FOREIGN: 1}]});
    fs::write(folder.join(".linked.links.json"), links.to_string()).unwrap();
    std::os::unix::fs::symlink("/nowhere", folder.join(format!("l{FOREIGN}"))).unwrap();
    std::os::unix::fs::symlink(FOREIGN, folder.join("link")).unwrap();
    let out = path("out");
    for more in [&[][..], &["--json"]] {
        let build =
            ["build", text(&folder), "--base-url", "http://example.org/", "--out", text(&out)];
        seen.run(&[&build, more].concat());
    }
    let data = path("data");
    serve(&mut seen, &folder, &data, "text");
    serve(&mut seen, &folder, &data, "json");
    for more in [&[][..], &["--json"]] {
        seen.run(&[&["check", text(&data), "--read-data"], more].concat());
    }
    seen.run(&["log", "set", "--data", text(&data)]);
    seen.run(&["backup", text(&data), text(&path("backup"))]);
    seen.run(&["restore", text(&path("backup")), text(&path("restored"))]);
    seen.run(&["token", "create", "--name", EVIL, "--scope", "admin", "--data", text(&data)]);
    seen.run(&["token", "list", "--data", text(&data)]);
    seen.run(&["token", "revoke", EVIL, "--data", text(&data)]);

    // Arguments and settings.
    let config = path("abreast.toml");
    for text_of in [
        format!("[[set]]\nname = {}\nfolder = {}\n", toml(EVIL), toml(EVIL)),
        format!("data = \"{EVIL}\"\n"),
        format!("{} = 1\n", toml(EVIL)),
        format!("[[mirror]]\nname = {0}\nurl = {0}\nfolder = {0}\nexclude = [{0}]\n", toml(EVIL)),
    ] {
        fs::write(&config, text_of).unwrap();
        for command in [&["config", "check", text(&config)][..], &["config", "show", text(&config)]]
        {
            seen.run(command);
        }
        seen.run(&["serve", "--config", text(&config), "--listen", EVIL]);
        seen.run(&["sync", "--config", text(&config), "--all"]);
        seen.run(&["hub", "--config", text(&config), "--listen", EVIL]);
    }
    for command in commands() {
        seen.run(&[&command, EVIL, EVIL, EVIL, EVIL]);
        seen.run(&[&command, "--no-such-option", EVIL]);
        seen.run(&[&command, &format!("--{EVIL}")]);
    }
    seen.run(&[EVIL]);
    seen.run(&["completions", "bash", EVIL]);
    seen.run(&["man", "--dir", text(&path(EVIL))]);
    seen.run(&["demo"]);

    for command in commands() {
        assert!(
            seen.commands.contains(&command),
            "`{command}` is not tried with hostile text: extend this test"
        );
    }
    // Hidden text is no proof: each of these has to have shown some.
    for command in [
        "sync",
        "audit",
        "validate",
        "explore",
        "import",
        "log",
        "hub",
        "subscribe",
        "check",
        "build",
    ] {
        assert!(
            seen.shown.contains(command),
            "`{command}` showed no hostile text: {:?}",
            seen.shown
        );
    }
}

/// As it stands in a URI.
fn encoded() -> String {
    FOREIGN.bytes().fold(String::new(), |out, byte| format!("{out}%{byte:02X}"))
}

/// A string of TOML.
fn toml(text: &str) -> String {
    let escaped =
        text.chars().fold(String::new(), |out, c| format!("{out}\\U{:08x}", u32::from(c)));
    format!("\"{escaped}\"")
}

/// What `abreast --help` lists.
fn commands() -> Vec<String> {
    let help = String::from_utf8(run(abreast().arg("--help")).stdout).unwrap();
    let list = help.split("Commands:\n").nth(1).unwrap().split("\n\n").next().unwrap();
    let names = list.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    names.filter(|name| !name.is_empty() && *name != "help").map(str::to_owned).collect()
}

/// Serves a folder, asks for hostile things, and stops; its output is checked.
fn serve(seen: &mut Seen, folder: &Path, data: &Path, format: &str) {
    let address = unused_address().to_string();
    let mut command = abreast();
    command.env("ABREAST_LOG_FORMAT", format).env("ABREAST_LOG", "debug");
    command
        .arg("serve")
        .arg(folder)
        .arg("--data")
        .arg(data)
        .args(["--listen", &address, "--name", "set"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = rustix::process::Pid::from_child(&child);
    std::thread::spawn({
        let address = address.clone();
        move || {
            abreast_testkit::eventually("it is ready", || {
                crate::world::get(&address, "/readyz").is_some_and(|(status, _)| status == 200)
            });
            for request in [
                format!("GET /{EVIL_XML} HTTP/1.1\r\nHost: {EVIL_XML}\r\n\r\n"),
                format!(
                    "GET /set/{} HTTP/1.1\r\nHost: x\r\nUser-Agent: {EVIL_XML}\r\n\r\n",
                    encoded()
                ),
                format!("{EVIL}\r\n\r\n"),
            ] {
                let mut stream = TcpStream::connect(&address).unwrap();
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                let _ = stream.write_all(request.as_bytes());
                let _ = stream.read(&mut [0; 512]);
            }
            let form = format!(
                "hub.mode=subscribe&hub.topic={0}&hub.callback=http%3A%2F%2F127.0.0.1%3A9%2F{0}",
                encoded()
            );
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let _ = write!(
                stream,
                "POST /hub HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\
                 Connection: close\r\n\r\n{form}",
                form.len()
            );
            let _ = stream.read(&mut [0; 512]);
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
    });
    let output = child.wait_with_output().unwrap();
    assert!(output.stderr.len() > 100, "the log says something");
    if format == "json" {
        assert!(output.stdout.is_empty(), "a log in JSON has no prose beside it");
        for line in String::from_utf8_lossy(&output.stderr).lines() {
            assert!(serde_json::from_str::<serde_json::Value>(line).is_ok(), "{line}");
        }
    }
    seen.check(&["serve", format], &output);
}

#[test]
fn a_server_whose_log_is_json_prints_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let mut command = abreast();
    command.env_remove("ABREAST_LOG_FORMAT").arg("serve").arg(place.path().join("nowhere"));
    let output = run(&mut command);
    assert_ne!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty() && !text.is_empty());
    for line in text.lines() {
        let line: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"));
        assert_eq!(line["level"], "ERROR", "{line}");
    }
    let source = Source::start(place.path(), 0, &[]);
    assert_eq!(
        source.stop(),
        Some(0),
        "with ABREAST_LOG_FORMAT=text it says on standard output where it listens"
    );
}

#[test]
fn a_log_entry_of_a_stranger_stays_one_entry() {
    let server = Server::raw(drop);
    let mut child = Running(
        abreast()
            .args(["sync", &server.url("/list.xml"), "-", "--state", EVIL, "-v", "--retries", "0"])
            .current_dir(tempfile::tempdir().unwrap().path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    drop(server);
    let mut text = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert!(!text.is_empty() && forged(&text).is_none(), "{text}");
}
