//! One line for each request, in a file that may be moved away while the server runs.

use crate::world::{Source, abreast, sync};
use abreast_testkit::{Running, eventually, run};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

/// A folder with one file and a large one, and the flags for a log beside it.
fn folder() -> tempfile::TempDir {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "four").unwrap();
    fs::write(folder.join("large.bin"), vec![7; 64 << 20]).unwrap();
    temporary
}

fn serve(temporary: &Path, format: &str, more: &[&str]) -> Source {
    let log = temporary.join("access.log");
    let flags = ["--access-log", log.to_str().unwrap(), "--access-log-format", format];
    Source::start(&temporary.join("papers"), 0, &[&flags, more].concat())
}

/// Sends a request as it is, and reads at most this number of bytes of the answer.
fn ask(source: &Source, request: &str, most: u64) -> String {
    let mut stream = TcpStream::connect(&source.address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.take(most).read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

fn get(path: &str, headers: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{headers}\r\n")
}

/// The lines for a path, once there are this many.
fn lines(temporary: &Path, path: &str, number: usize) -> Vec<String> {
    let found = || {
        let text = fs::read_to_string(temporary.join("access.log")).unwrap_or_default();
        text.lines().filter(|line| line.contains(path)).map(str::to_owned).collect::<Vec<_>>()
    };
    eventually(&format!("{number} lines for {path}"), || found().len() >= number);
    let found = found();
    assert_eq!(found.len(), number, "{found:?}");
    found
}

#[test]
fn each_request_is_one_line_in_the_combined_format() {
    let temporary = folder();
    let source = serve(temporary.path(), "combined", &[]);
    let answer = ask(
        &source,
        &get("/set/r/a.txt?x=%22", "User-Agent: a \"b\" \\cé\r\nReferer: http://r/\r\n"),
        9_999,
    );
    assert!(answer.ends_with("four"), "{answer}");
    let line = lines(temporary.path(), "a.txt", 1).remove(0);
    let (before, rest) = line.split_once(" - - [").unwrap();
    let (time, rest) = rest.split_once("] ").unwrap();
    assert_eq!(before, "127.0.0.1");
    assert!(time.ends_with(" +0000") && time.len() == 26, "{time}");
    let expected =
        "\"GET /set/r/a.txt?x=%22 HTTP/1.1\" 200 4 \"http://r/\" \"a \\\"b\\\" \\\\c\\xc3\\xa9\" ";
    let after = rest.strip_prefix(expected).unwrap_or_else(|| panic!("{rest}"));
    let (seconds, id) = after.split_once(' ').unwrap();
    assert!(seconds.parse::<f64>().unwrap() < 60.0, "{seconds}");
    let has_id = answer.lines().any(|line| line == format!("x-request-id: {id}"));
    assert!(id.len() == 16 && has_id, "{answer}");
    // Of all parts of the server, and what it refuses.
    for (path, status) in [
        ("/hub?p=1", 0),
        ("/api/v1/sets?p=2", 200),
        ("/nothing?p=3", 404),
        ("/livez?p=4", 200),
        ("/set/capabilitylist.xml?p=5", 200),
    ] {
        ask(&source, &get(path, ""), 99_999);
        let line = lines(temporary.path(), path, 1).remove(0);
        assert!(status == 0 || line.contains(&format!("\" {status} ")), "{line}");
    }
    let metrics = ask(&source, &get("/metrics", ""), 9_999_999);
    for kind in ["document", "resource", "api", "hub", "other"] {
        let name = format!("abreast_http_request_seconds_count{{kind=\"{kind}\"}} ");
        let count = metrics.lines().find_map(|line| line.strip_prefix(&name)).unwrap_or("0");
        assert_ne!(count, "0", "{kind}");
    }
}

#[test]
fn json_lines_have_the_bytes_that_were_sent() {
    let temporary = folder();
    let source = serve(temporary.path(), "json", &["--trusted-proxy", "127.0.0.1"]);
    let headers = "X-Forwarded-For: 192.0.2.7\r\nX-Request-Id: from-the-proxy.1\r\n";
    assert!(
        ask(&source, &get("/set/r/a.txt", headers), 9_999)
            .contains("x-request-id: from-the-proxy.1")
    );
    let entry = |path: &str| -> Value {
        serde_json::from_str(&lines(temporary.path(), path, 1).remove(0)).unwrap()
    };
    let whole = entry("a.txt");
    for (field, value) in [
        ("client", Value::from("192.0.2.7")),
        ("method", "GET".into()),
        ("target", "/set/r/a.txt".into()),
        ("version", "HTTP/1.1".into()),
        ("status", 200.into()),
        ("bytes", 4.into()),
        ("complete", true.into()),
        ("request_id", "from-the-proxy.1".into()),
        ("user_agent", Value::Null),
    ] {
        assert_eq!(whole[field], value, "{field} of {whole}");
    }
    assert!(abreast_time(&whole["time"]), "{whole}");
    // A client that leaves in the middle.
    ask(&source, &get("/set/r/large.bin", "X-Request-Id: no word\r\n"), 100_000);
    let part = entry("large.bin");
    assert_eq!((&part["status"], &part["complete"]), (&200.into(), &false.into()), "{part}");
    assert!(part["bytes"].as_u64().unwrap() < 64 << 20, "{part}");
    assert_eq!(part["request_id"].as_str().unwrap().len(), 16, "{part}");
    let head = get("/set/r/large.bin?head", "").replacen("GET", "HEAD", 1);
    ask(&source, &head, 9_999);
    let head = entry("large.bin?head");
    assert_eq!((&head["bytes"], &head["complete"]), (&0.into(), &true.into()), "{head}");
}

fn abreast_time(value: &Value) -> bool {
    value.as_str().is_some_and(|time| time.starts_with("20") && time.ends_with('Z'))
}

#[test]
fn a_moved_log_is_opened_anew_and_no_line_is_lost() {
    let temporary = folder();
    let source = serve(temporary.path(), "combined", &[]);
    let (log, old) = (temporary.path().join("access.log"), temporary.path().join("access.log.1"));
    // This download ends after the file was moved.
    let mut slow = TcpStream::connect(&source.address).unwrap();
    slow.write_all(get("/set/r/large.bin?slow", "").as_bytes()).unwrap();
    let mut first = [0; 1024];
    slow.read_exact(&mut first).unwrap();
    for number in 0..50 {
        ask(&source, &get(&format!("/set/r/a.txt?n={number}"), ""), 9_999);
    }
    fs::rename(&log, &old).unwrap();
    kill_process(Pid::from_child(&source.child.0), Signal::HUP).unwrap();
    eventually("the log is open again", || log.exists());
    for number in 50..100 {
        ask(&source, &get(&format!("/set/r/a.txt?n={number}"), ""), 9_999);
    }
    slow.read_to_end(&mut Vec::new()).unwrap();
    assert_eq!(source.stop(), Some(0));
    let [old, new] = [&old, &log].map(|path| fs::read_to_string(path).unwrap());
    for number in 0..100 {
        let wanted = format!("?n={number} ");
        let found = old.matches(&wanted).count() + new.matches(&wanted).count();
        assert_eq!(found, 1, "{number}");
    }
    assert!(new.contains("large.bin?slow"), "{new}");
}

#[test]
fn a_log_that_cannot_be_written_is_refused_at_the_start() {
    let temporary = folder();
    let serve = |flags: &[&str]| {
        let folder = temporary.path().join("papers");
        let mut command = abreast();
        command.arg("serve").arg(folder).args(["--listen", "127.0.0.1:0"]).args(flags);
        let output = run(&mut command);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, text) = serve(&["--access-log", "/nowhere/at/all/access.log"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("cannot open the access log `/nowhere/at/all/access.log`"), "{text}");
    let (code, text) = serve(&["--access-log", "-", "--access-log-format", "common"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("`access_log_format`: `common` is unknown"), "{text}");
}

#[test]
fn a_hub_opens_its_log_again() {
    let temporary = tempfile::tempdir().unwrap();
    let log = temporary.path().join("access.log");
    let mut command = abreast();
    command.args(["hub", "--listen", "127.0.0.1:0", "--access-log"]).arg(&log).arg("--data");
    let mut child = command
        .arg(temporary.path().join("hub"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let out = std::io::BufReader::new(child.stdout.take().unwrap());
    let hub = Running(child);
    let mut found = std::io::BufRead::lines(out).map(Result::unwrap);
    let line = found.find(|line| line.contains("listening on")).unwrap();
    let address = line.trim().rsplit("://").next().unwrap().trim_end_matches('/').to_owned();
    let ask = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(get("/livez", "").as_bytes()).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    };
    ask();
    eventually("a line", || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() == 1));
    fs::rename(&log, temporary.path().join("old")).unwrap();
    kill_process(Pid::from_child(&hub.0), Signal::HUP).unwrap();
    eventually("the log is open again", || log.exists());
    ask();
    eventually("a line", || fs::read_to_string(&log).is_ok_and(|text| text.lines().count() == 1));
}

#[test]
fn a_copy_of_a_logged_source_is_exact() {
    let temporary = folder();
    let source = serve(temporary.path(), "json", &[]);
    let copy = temporary.path().join("copy");
    sync(&source.url(), &copy, 0, &[]);
    abreast_testkit::folder::assert_equal(&temporary.path().join("papers"), &copy);
    let text = fs::read_to_string(temporary.path().join("access.log")).unwrap();
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{text}");
    assert!(text.contains("\"user_agent\":\"abreast/"), "{text}");
}
