//! The API, `import`, `log` and links, on the real binary: nothing acknowledged is lost by kills.

use crate::world::{Source, abreast};
use abreast_testkit::{Running, eventually, kills, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Times that the server is killed while it takes changes in.
const KILLS: u64 = 12;

struct Place {
    temporary: tempfile::TempDir,
}

impl Place {
    /// A folder `papers` and a set of records `records`; `more` is added to the set of the folder.
    fn new(more: &str) -> Self {
        let place = Self { temporary: tempfile::tempdir().unwrap() };
        fs::create_dir(place.path("papers")).unwrap();
        place.configure(more);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temporary.path().join(name)
    }

    fn configure(&self, more: &str) {
        let (data, papers) =
            (self.path("data").display().to_string(), self.path("papers").display().to_string());
        let text = format!(
            "data = {data:?}\n[api]\nwrite = true\n[[set]]\nname = \"records\"\nrecords = true\n\
             [[set]]\nname = \"papers\"\nfolder = {papers:?}\ndebounce = \"30ms\"\n{more}\n"
        );
        fs::write(self.path("abreast.toml"), text).unwrap();
    }

    fn serve(&self, port: u16) -> Source {
        let mut command = abreast();
        command
            .args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--config"])
            .arg(self.path("abreast.toml"));
        Source::run(&mut command)
    }

    /// `abreast` with these arguments and a text on its standard input.
    fn fed(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = abreast()
            .args(arguments)
            .current_dir(self.temporary.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // One that refuses its arguments does not read.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

/// One request; `None` when the connection ends before a whole answer.
pub(crate) fn send(address: &str, method: &str, target: &str, body: &[u8]) -> Option<(u16, Value)> {
    send_with(address, method, target, "", body)
}

/// The same with more header lines.
pub(crate) fn send_with(
    address: &str,
    method: &str,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Option<(u16, Value)> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let split = answer.windows(4).position(|window| window == b"\r\n\r\n")?;
    let status = std::str::from_utf8(&answer[9..12]).ok()?.parse().ok()?;
    Some((status, serde_json::from_slice(&answer[split + 4..]).ok()?))
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn printed(output: &Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn log(set: &str, url: &str) -> Vec<Value> {
    let output = run(abreast().args(["log", set, "--server", url]));
    assert!(output.status.success(), "{output:?}");
    lines(&output)
}

#[test]
fn acknowledged_changes_survive_kills() {
    let place = Place::new("");
    let mut source = place.serve(0);
    let (port, address) = (source.port(), source.address.clone());
    let stop = Arc::new(AtomicBool::new(false));
    // What was acknowledged: the last version of each resource, of records and of files.
    let known = Arc::new(Mutex::new(BTreeMap::<String, u64>::new()));
    let writers: Vec<_> = (0..4_u64)
        .map(|writer| {
            let (stop, known, address) = (Arc::clone(&stop), Arc::clone(&known), address.clone());
            std::thread::spawn(move || {
                let mut version = 0;
                while !stop.load(Ordering::Relaxed) {
                    version += 1;
                    let number = version % 5;
                    let (name, answer) = if writer % 2 == 0 {
                        let name = format!("urn:x:{writer}:{number}");
                        let body = format!("[{{\"uri\":\"{name}\",\"length\":{version}}}]");
                        (
                            name,
                            send(&address, "POST", "/api/v1/sets/records/changes", body.as_bytes()),
                        )
                    } else {
                        let name = format!("w{writer}-{number}.txt");
                        let body = vec![b'x'; version as usize];
                        let target = format!("/api/v1/sets/papers/content/{name}");
                        (name, send(&address, "PUT", &target, &body))
                    };
                    match answer {
                        Some((200 | 201, _)) => drop(known.lock().unwrap().insert(name, version)),
                        Some((503, _)) | None => {}
                        Some(other) => panic!("{name}: {other:?}"),
                    }
                }
            })
        })
        .collect();
    for kill in 0..kills(KILLS) {
        let before: u64 = known.lock().unwrap().values().sum();
        eventually("changes are taken in", || {
            known.lock().unwrap().values().sum::<u64>() > before + 20 + kill
        });
        source.kill();
        source = place.serve(port);
    }
    eventually("each was acknowledged", || known.lock().unwrap().len() == 20);
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.join().unwrap();
    }
    let known = known.lock().unwrap();
    // The log's last word on each resource is at least the last acknowledged version: a later one
    // may be unanswered.
    let lengths = |changes: Vec<Value>| -> BTreeMap<String, u64> {
        let last = |change: &Value| {
            let uri = change["uri"].as_str().unwrap();
            let name = if uri.starts_with("urn:") { uri } else { uri.rsplit('/').next().unwrap() };
            (name.to_owned(), change["length"].as_u64().unwrap())
        };
        changes.iter().map(last).collect()
    };
    for (set, kind) in [("records", "urn:"), ("papers", "w")] {
        let changes = log(set, &source.url());
        let positions: Vec<_> =
            changes.iter().map(|change| change["position"].as_u64().unwrap()).collect();
        assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>(), "no gaps in {set}");
        let logged = lengths(changes);
        for (name, version) in known.iter().filter(|(name, _)| name.starts_with(kind)) {
            assert!(
                logged[name] >= *version,
                "{name}: version {version} was acknowledged, {} is logged",
                logged[name]
            );
        }
    }
    for (name, version) in known.iter().filter(|(name, _)| name.starts_with('w')) {
        assert!(fs::metadata(place.path("papers").join(name)).unwrap().len() >= *version);
    }
}

#[test]
fn output_of_log_can_be_imported_elsewhere() {
    let place = Place::new("");
    let config = place.path("abreast.toml");
    let config = config.to_str().unwrap();
    // Into a store that no server has open, before its log begins.
    let base = "{\"uri\":\"https://a.example/1\",\"length\":1}\n{\"uri\":\"https://a.example/2\",\"links\":[\
                {\"rel\":\"via\",\"href\":\"https://original.example/2\"}]}\n";
    let output = place.fed(&["import", "records", "--config", config], base);
    assert_eq!(printed(&output).0, Some(0), "{output:?}");

    let source = place.serve(0);
    let list = String::from_utf8(source.get("/records/resourcelist.xml").unwrap()).unwrap();
    assert!(list.contains("https://a.example/1") && list.contains("rel=\"via\""), "{list}");
    assert!(log("records", &source.url()).is_empty(), "what was there before is no change");

    // Through the API of the running server, in all three formats.
    let url = source.url();
    let csv = "uri,change,length,type\nhttps://a.example/3,created,3,text/html\nhttps://a.example/1,deleted,,\n";
    let import = |format: &str, input: &str| {
        let output = place.fed(
            &["import", "records", "--format", format, "--server", &url, "--json", "--batch", "1"],
            input,
        );
        (printed(&output), lines(&output).pop().unwrap_or_default())
    };
    assert_eq!(import("csv", csv).1["recorded"], 2);
    assert_eq!(import("csv", csv).1["unchanged"], 2, "run again, nothing is new");
    let (_, again) = import("sitemap", &list);
    assert_eq!(
        (&again["recorded"], &again["unchanged"]),
        (&Value::from(1), &Value::from(1)),
        "one was deleted meanwhile"
    );
    let kept = String::from_utf8(source.get("/records/changelist.xml").unwrap()).unwrap();
    assert!(kept.contains("https://a.example/3"), "{kept}");

    // A twin with the same log.
    let twin = Place::new("");
    let twin_source = twin.serve(0);
    let told_lines = run(abreast().args(["log", "records", "--server", &url]));
    let text = String::from_utf8(told_lines.stdout).unwrap();
    let output = twin.fed(&["import", "records", "--server", &twin_source.url()], &text);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let words = |changes: Vec<Value>| -> Vec<String> {
        changes.iter().map(|change| format!("{} {}", change["uri"], change["length"])).collect()
    };
    assert_eq!(
        words(log("records", &twin_source.url())),
        ["\"https://a.example/3\" 3", "\"https://a.example/1\" 1"],
        "deleting what was never there is no change"
    );
}

#[test]
fn reading_a_log_makes_neither_store_nor_set() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let log = |set: &str| {
        let output = run(abreast().args(["log", set, "--data"]).arg(&data));
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, printed) = log("records");
    assert!(code == Some(2) && printed.contains("no store"), "{printed}");
    assert!(!data.exists());
    let file = place.path().join("records.ndjson");
    std::fs::write(&file, "{\"uri\":\"urn:x:1\"}\n").unwrap();
    let import = || run(abreast().args(["import", "records"]).arg(&file).arg("--data").arg(&data));
    assert_eq!(import().status.code(), Some(2), "a mistyped path becomes no store");
    assert!(!data.exists());
    std::fs::create_dir(&data).unwrap();
    let import = import();
    assert_eq!(import.status.code(), Some(0), "{import:?}");
    assert_eq!(log("records").0, Some(0));
    for _ in 0..2 {
        let (code, printed) = log("recrods");
        assert!(
            code == Some(2) && printed.contains("no set `recrods`"),
            "the first look made it: {printed}"
        );
    }
}

#[test]
fn a_file_with_wrong_input_is_known_before_it_is_recorded() {
    let place = Place::new("");
    let source = place.serve(0);
    let url = source.url();
    let good = "{\"uri\":\"urn:x:1\"}\n{\"uri\":\"urn:x:2\"}\n";
    let links: Vec<String> = (0..50)
        .map(|n| {
            format!(
                "{{\"rel\":\"related\",\"href\":\"http://a.example/{n}{}\"}}",
                "x".repeat(2_000)
            )
        })
        .collect();
    for (wrong, part) in [
        (format!("{{\"uri\":\"urn:x:{}\"}}", "x".repeat(9_000)), "`uri`"),
        (format!("{{\"uri\":\"urn:x:3\",\"type\":\"{}\"}}", "x".repeat(2_000)), "`type`"),
        (format!("{{\"uri\":\"urn:x:3\",\"links\":[{}]}}", links.join(",")), "links"),
        ("{\"uri\":\"urn:x:3\",\"lastmod\":\"soon\"}".to_owned(), "`lastmod`"),
    ] {
        let file = place.path("records.ndjson");
        std::fs::write(&file, format!("{good}{wrong}\n")).unwrap();
        for more in [&["--dry-run"][..], &[]] {
            let mut command = abreast();
            command.args(["import", "records", "--batch", "1", "--server", &url]).arg(&file);
            let (code, error) = printed(&run(command.args(more)));
            assert!(code == Some(2) && error.contains(part), "{code:?} {error}");
            assert!(error.contains("line 3"), "{error}");
        }
        assert_eq!(log("records", &url).len(), 0, "{part}");
    }
}

#[test]
fn wrong_input_is_refused_with_its_line_and_its_whole_batch() {
    let place = Place::new("");
    let source = place.serve(0);
    let url = source.url();
    let import = |format: &str, input: &str| {
        printed(&place.fed(
            &["import", "records", "--format", format, "--server", &url, "--batch", "2"],
            input,
        ))
    };
    for (format, input, code, part) in [
        ("ndjson", "{\"uri\":\"urn:x:1\"}\n{\"ury\":\"urn:x:2\"}\n", 2, "line 2"),
        ("ndjson", "{\"uri\":\"relative\"}\n", 2, "`uri`"),
        ("ndjson", "{\"uri\":\"urn:x:1\",\"lastmod\":\"soon\"}\n", 2, "`lastmod`"),
        ("csv", "url,length\nurn:x:1,1\n", 2, "did you mean `uri`?"),
        ("csv", "uri,length\nurn:x:1,one\n", 2, "line 2"),
        ("csv", "uri,change\nurn:x:1,gone\n", 2, "created, updated, deleted"),
        ("sitemap", "<html></html>", 2, "cannot import"),
        (
            "sitemap",
            "<sitemapindex xmlns=\"http://www.sitemaps.org/schemas/sitemap/0.9\"/>",
            2,
            "one by one",
        ),
        ("ndjson", "{\"uri\":\"urn:y:1\"}\n{\"uri\":\"urn:y:2\"}\n{\n", 3, "line 3"),
    ] {
        let (status, error) = import(format, input);
        assert_eq!(status, Some(code), "{input}: {error}");
        assert!(error.contains(part), "{input}: {error}");
    }
    assert_eq!(log("records", &url).len(), 2);
    let locked =
        printed(&place.fed(&["import", "records", "--data", "data"], "{\"uri\":\"urn:x:1\"}\n"));
    assert_eq!(locked.0, Some(10));
    assert!(locked.1.contains("--server"), "{}", locked.1);
    assert_eq!(printed(&place.fed(&["import", "records"], "")).0, Some(2));
    let nobody = printed(&place.fed(&["log", "nothing", "--server", &url], ""));
    assert_eq!(nobody.0, Some(2));
    assert!(
        nobody.1.contains("has no set `nothing`") && nobody.1.contains("records"),
        "{}",
        nobody.1
    );
}

#[test]
fn follower_of_the_log_gets_changes_at_once() {
    let place = Place::new("");
    let source = place.serve(0);
    let mut follower = abreast();
    follower.args(["log", "papers", "--server", &source.url(), "--follow"]).stdout(Stdio::piped());
    let mut follower = Running(follower.spawn().unwrap());
    let mut printed = BufReader::new(follower.0.stdout.take().unwrap()).lines();
    for name in ["a.txt", "b.txt"] {
        fs::write(place.path("papers").join(name), name).unwrap();
        let line: Value = serde_json::from_str(&printed.next().unwrap().unwrap()).unwrap();
        assert!(line["uri"].as_str().unwrap().ends_with(name), "{line}");
    }
}

#[test]
fn a_changed_rule_changes_what_it_concerns_and_nothing_else() {
    let place = Place::new("");
    for name in ["a.pdf", "b.pdf", "a.xml", "c.txt"] {
        fs::write(place.path("papers").join(name), name).unwrap();
    }
    let source = place.serve(0);
    source.stop();
    let rule = "[[set.links]]\nmatch = \"*.pdf\"\nrel = \"describedby\"\nhref = \"{stem}.xml\"\nif_exists = true\n\
                [[set.set_links]]\nrel = \"license\"\nhref = \"https://example.org/l\"";
    place.configure(rule);
    let source = place.serve(0);
    let url = source.url();
    eventually("the rule is applied", || !log("papers", &url).is_empty());
    let changes = log("papers", &url);
    assert_eq!(changes.len(), 1, "{changes:?}");
    assert_eq!(changes[0]["change"], "updated");
    assert_eq!(changes[0]["links"][0]["href"], format!("{url}papers/r/a.xml"));
    let list = String::from_utf8(source.get("/papers/resourcelist.xml").unwrap()).unwrap();
    assert_eq!(list.matches("rel=\"describedby\"").count(), 1, "{list}");
    let capabilities =
        String::from_utf8(source.get("/papers/capabilitylist.xml").unwrap()).unwrap();
    assert!(
        capabilities.contains("<rs:ln href=\"https://example.org/l\" rel=\"license\"/>"),
        "{capabilities}"
    );
    source.stop();
    // Nothing changed since: no change either.
    let source = place.serve(0);
    fs::write(place.path("papers/d.txt"), "d").unwrap();
    eventually("the next change is recorded", || log("papers", &source.url()).len() == 2);
}

#[test]
fn a_server_that_anyone_could_write_to_does_not_start() {
    let place =
        Place::new("[[set.links]]\nmatch = \"*\"\nrel = \"describedBy\"\nhref = \"{stm}.xml\"");
    let config = place.path("abreast.toml");
    let serve = |more: &[&str]| {
        let mut command = abreast();
        command.args(["serve", "--config"]).arg(&config).args(more);
        printed(&run(&mut command))
    };
    let (code, error) =
        serve(&["--listen", "127.0.0.1:0", "--base-url", "https://papers.example.org/"]);
    assert_eq!(code, Some(2));
    for part in [
        "`api.write`",
        "abreast token create",
        "`set.links` 1 of set `papers`",
        "did you mean `describedby`?",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    place.configure("");
    fs::create_dir_all(place.path("data")).unwrap();
    let token = |arguments: &[&str]| {
        run(abreast().arg("token").args(arguments).arg("--data").arg(place.path("data")))
    };
    let made = token(&["create", "--name", "loader", "--scope", "write", "--set", "records"]);
    let secret = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    assert!(secret.starts_with("abreast_"), "{secret}");
    assert_eq!(
        token(&["create", "--name", "loader", "--scope", "read"]).status.code(),
        Some(2),
        "one name, one token"
    );
    let source = place.serve(0);
    let import = |secret: &str| {
        let file = place.path("token");
        fs::write(&file, secret).unwrap();
        let file = file.to_str().unwrap();
        printed(&place.fed(
            &["import", "records", "--server", &source.url(), "--token-file", file],
            "{\"uri\":\"urn:x:1\"}\n",
        ))
    };
    assert_eq!(import(&secret).0, Some(0));
    assert_eq!(token(&["revoke", "loader"]).status.code(), Some(0));
    eventually("the token is of no use", || import(&secret).0 == Some(12));
    let kept = fs::read_to_string(place.path("data/tokens.json")).unwrap();
    assert!(!kept.contains(&secret));
    no_secret_in(place.temporary.path().join("data").as_path(), &secret);
}

#[test]
fn tokens_are_made_in_the_folder_of_a_store_only() {
    let place = tempfile::tempdir().unwrap();
    let (typo, other) = (place.path().join("dtaa"), place.path().join("other"));
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("letter.txt"), "x").unwrap();
    for data in [&typo, &other] {
        for command in
            [&["list"][..], &["revoke", "a"], &["create", "--name", "a", "--scope", "read"]]
        {
            let (code, error) =
                printed(&run(abreast().arg("token").args(command).arg("--data").arg(data)));
            assert!(
                code == Some(2) && error.contains("`--data`") && error.contains("help:"),
                "{command:?}: {error}"
            );
        }
    }
    assert!(!typo.exists() && !other.join("tokens.json").exists());
    let config = place.path().join("abreast.toml");
    let text = format!("data = {:?}\n", place.path().join("new/data").display().to_string());
    std::fs::write(&config, text).unwrap();
    let of_config =
        |words: &[&str]| run(abreast().arg("token").args(words).arg("--config").arg(&config));
    assert_eq!(of_config(&["list"]).status.code(), Some(0));
    assert!(!place.path().join("new").exists(), "reading makes nothing");
    assert_eq!(of_config(&["create", "--name", "a", "--scope", "read"]).status.code(), Some(0));
    assert!(
        place.path().join("new/data/tokens.json").exists(),
        "what the configuration names is made"
    );
}

/// No file of a folder holds a token.
fn no_secret_in(folder: &Path, secret: &str) {
    let output = Command::new("grep")
        .args(["-rl", "--", &secret["abreast_".len()..]])
        .arg(folder)
        .output()
        .unwrap();
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_set_of_records_needs_no_folder() {
    let place = Place { temporary: tempfile::tempdir().unwrap() };
    let data = place.path("data");
    let mut command = abreast();
    command.args([
        "serve",
        "--origin",
        "records",
        "--name",
        "known",
        "--api-write",
        "--listen",
        "127.0.0.1:0",
        "--data",
    ]);
    let source = Source::run(command.arg(&data));
    let url = source.url();
    let body = br#"[{"uri":"urn:x:1","length":3}]"#;
    let (status, _) = send(&source.address, "POST", "/api/v1/sets/known/changes", body).unwrap();
    assert_eq!(status, 200);
    let list = String::from_utf8(source.get("/known/resourcelist.xml").unwrap()).unwrap();
    assert!(list.contains("<loc>urn:x:1</loc>"), "{list}");
    assert!(source.get("/known/r/x").is_none(), "nothing is served where there is no folder");
    assert_eq!(log("known", &url).len(), 1);
    let folders =
        fs::read_dir(&data).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!folders.into_iter().any(|name| name == "records"), "no folder stands in for one");
    let refused =
        run(abreast().args(["serve", "--origin", "records", "--listen", "127.0.0.1:0", "."]));
    let (code, text) = printed(&refused);
    assert_eq!(code, Some(2), "{text}");
    for part in
        ["`data`", "`folder`: a set of records has none", "`name`: a set of records needs one"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
}

#[test]
fn the_log_of_a_store_that_cannot_be_written_is_printed() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::os::unix::process::CommandExt as _;
    let place = Place::new("");
    fs::write(place.path("papers/a.txt"), "a").unwrap();
    for is_killed in [true, false] {
        let source = place.serve(0);
        let name = format!("killed-{is_killed}.txt");
        fs::write(place.path("papers").join(&name), "1").unwrap();
        eventually("it is recorded", || {
            let log = run(abreast().args(["log", "papers", "--server", &source.url()]));
            String::from_utf8_lossy(&log.stdout).contains(&name)
        });
        if is_killed {
            source.kill();
        } else {
            assert_eq!(source.stop(), Some(0));
        }
        let data = place.path("data");
        let before = abreast_testkit::folder::paths(&data);
        for path in before.iter().chain([&data, &place.temporary.path().to_owned()]) {
            let mode = if path.is_dir() { 0o555 } else { 0o444 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut command = abreast();
        command.args(["log", "papers", "--data"]).arg(&data);
        if rustix::process::getuid().is_root() {
            command.uid(65_534).gid(65_534);
        }
        let output = command.output();
        for path in before.iter().chain([&data, &place.temporary.path().to_owned()]) {
            let mode = if path.is_dir() { 0o755 } else { 0o644 };
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        // Others may not run the program everywhere.
        let Ok(output) = output else { return };
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success() && text.contains(&name), "{text}{output:?}");
        assert_eq!(abreast_testkit::folder::paths(&data), before, "nothing was written");
    }
}
