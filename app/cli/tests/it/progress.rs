//! Progress on terminals, in pipes and as JSON.

use crate::world::{Source, abreast, stop};
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually, run};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use unicode_width::UnicodeWidthStr as _;

/// Columns of the terminal.
const COLUMNS: u16 = 60;

/// A command with all its output on a terminal.
struct InTerminal {
    child: Running,
    output: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl InTerminal {
    fn start(command: &mut Command, columns: u16) -> Self {
        let leader = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&leader).unwrap();
        unlockpt(&leader).unwrap();
        let name = ptsname(&leader, Vec::new()).unwrap();
        let open = || File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
        let size = Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(open(), size).unwrap();
        let (out, error) = (open(), open());
        command.stdin(open()).stdout(out).stderr(error).env_remove("COLUMNS");
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm");
        }
        let child = Running(command.spawn().unwrap());
        // The terminal ends when no process has it open.
        command.stdin(std::process::Stdio::null());
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());
        let output = Arc::new(Mutex::new(String::new()));
        let (mut leader, so_far) = (File::from(leader), Arc::clone(&output));
        let reader = std::thread::spawn(move || {
            let (mut bytes, mut all) = ([0; 4_096], Vec::new());
            while let Ok(read @ 1..) = leader.read(&mut bytes) {
                all.extend_from_slice(&bytes[..read]);
                *so_far.lock().unwrap() = String::from_utf8_lossy(&all).into_owned();
            }
        });
        Self { child, output, reader }
    }

    fn output(&self) -> String {
        self.output.lock().unwrap().clone()
    }

    /// Exit code and output, at the end.
    fn end(mut self) -> (Option<i32>, String) {
        let code = self.child.0.wait().unwrap().code();
        self.reader.join().unwrap();
        let output = self.output.lock().unwrap().clone();
        (code, output)
    }
}

/// The lines as they were drawn: nothing but the sequences that redraw is left out.
fn drawn(output: &str) -> Vec<String> {
    let mut text = output.replace("\r\n", "\n").replace("\u{1b}[J", "\n").replace('\r', "\n");
    for up in 1..30 {
        text = text.replace(&format!("\u{1b}[{up}A"), "\n");
    }
    text.split('\n').filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

fn assert_fits(lines: &[String]) {
    for line in lines {
        assert!(!line.chars().any(char::is_control), "{line:?}");
        let is_progress = ["scanning", "fetching", "reading", "following", "  "];
        if is_progress.iter().any(|start| line.starts_with(start)) {
            assert!(line.width() < COLUMNS.into(), "{}: {line}", line.width());
        }
    }
}

/// A folder with odd names, and one file that takes some time to read.
fn papers(place: &Path, large: u64) -> PathBuf {
    let papers = place.join("papers");
    fs::create_dir(&papers).unwrap();
    for number in 0..6 {
        let name = format!("{number}-{}.txt", "a long name of a report ".repeat(6));
        fs::write(papers.join(name), vec![b'x'; 40 << 10]).unwrap();
    }
    fs::write(papers.join("a\u{1b}[2Jb\nc\u{202e}.txt"), vec![b'y'; 40 << 10]).unwrap();
    let odd = papers.join(format!("large \u{1b}[31m{}.bin", "語".repeat(60)));
    File::create(odd).unwrap().set_len(large).unwrap();
    papers
}

fn build(papers: &Path, site: &Path) -> Command {
    let mut command = abreast();
    command.arg("build").arg(papers).arg("--out").arg(site);
    command.args(["--base-url", "http://h/", "--resources-url", "http://h/r/"]);
    command
}

#[test]
fn sync_fits_a_terminal_of_60_columns() {
    let place = tempfile::tempdir().unwrap();
    let papers = papers(place.path(), 1);
    let source = Source::start(&papers, 0, &[]);
    let mut command = abreast();
    command.args(["sync", &source.url()]).arg(place.path().join("copy"));
    let shown = InTerminal::start(command.args(["--bwlimit", "100K"]), COLUMNS);
    let (code, output) = shown.end();
    assert_eq!(code, Some(0), "{output}");
    let lines = drawn(&output);
    assert_fits(&lines);
    let is_phase = |line: &&String| line.starts_with("fetching, ") && line.contains("/8, ");
    let phases: Vec<_> = lines.iter().filter(is_phase).collect();
    assert!(phases.len() >= 3, "{output}");
    assert!(phases.iter().any(|line| line.contains("KiB/s")), "{phases:?}");
    let names: Vec<_> = lines.iter().filter(|line| line.starts_with("  ")).collect();
    assert!(names.iter().any(|name| name.contains("...")), "{names:?}");
    let end = output.rsplit("\u{1b}[J").next().unwrap();
    assert!(end.contains("in sync: 8 created") && !end.contains("fetching"), "{end:?}");
}

#[test]
fn build_fits_a_terminal_of_60_columns() {
    let place = tempfile::tempdir().unwrap();
    let papers = papers(place.path(), 600 << 20);
    let shown = InTerminal::start(&mut build(&papers, &place.path().join("site")), COLUMNS);
    let (code, output) = shown.end();
    assert_eq!(code, Some(0), "{output}");
    let lines = drawn(&output);
    assert_fits(&lines);
    assert!(lines.iter().any(|line| line.starts_with("scanning, 8, ")), "{output}");
    assert!(lines.iter().any(|line| line.contains("large \\u001b[31m")), "{output}");
    let end = output.rsplit("\u{1b}[J").next().unwrap();
    assert!(end.contains("8 files") && !end.contains("scanning"), "{end:?}");
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_gets_lines() {
    let place = tempfile::tempdir().unwrap();
    let papers = papers(place.path(), 300 << 20);
    for (name, value, columns) in [("TERM", "dumb", COLUMNS), ("NO_COLOR", "1", 10)] {
        let site = place.path().join(format!("site-{name}"));
        let mut command = build(&papers, &site);
        let shown = InTerminal::start(command.env(name, value), columns);
        let (code, output) = shown.end();
        assert_eq!(code, Some(0), "{output}");
        assert!(!output.contains('\u{1b}') && !output.contains("scanning"), "{output}");
    }
}

#[test]
fn a_follower_tells_its_last_change_on_a_terminal() {
    let place = tempfile::tempdir().unwrap();
    let papers = papers(place.path(), 1);
    let source = Source::start(&papers, 0, &[]);
    let mut command = abreast();
    command.args(["sync", &source.url(), "--follow"]).arg(place.path().join("copy"));
    let shown = InTerminal::start(&mut command, COLUMNS);
    eventually("the age of the last change is refreshed", || {
        let output = shown.output();
        let is_there = |seconds| {
            let line = format!("following; last change {seconds} s ago, 0 s behind");
            output.contains(&line)
        };
        (0..60).filter(|seconds| is_there(*seconds)).count() >= 3
    });
    assert_fits(&drawn(&shown.output()));
    let InTerminal { child, reader, .. } = shown;
    assert_eq!(stop(child), Some(0));
    reader.join().unwrap();
}

/// Each command that shows progress, with arguments for which it succeeds, in this order.
fn commands(place: &Path, url: &str) -> Vec<(&'static str, Vec<String>)> {
    let at = |name: &str| place.join(name).display().to_string();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let with = |mut words: Vec<String>, more: &[String]| {
        words.extend_from_slice(more);
        words
    };
    fs::write(at("records.ndjson"), "{\"uri\":\"http://h/a\",\"length\":3}\n").unwrap();
    let base = "--base-url http://h/ --copy --data";
    vec![
        ("sync", vec![url.to_owned(), at("copy")]),
        ("audit", vec![url.to_owned(), at("copy"), "--full".to_owned()]),
        ("check", vec![at("copy"), "--read-data".to_owned()]),
        (
            "build",
            with(
                vec![at("papers"), "--out".to_owned(), at("site")],
                &with(words(base), &[at("store")]),
            ),
        ),
        (
            "import",
            with(words("records"), &[at("records.ndjson"), "--data".to_owned(), at("store")]),
        ),
        ("backup", vec![at("store"), at("backups")]),
        ("restore", vec![at("backups"), at("restored")]),
        ("repair", vec![at("copy"), "--read-data".to_owned()]),
    ]
}

fn each_command(how: &str, more: &[&str], see: &mut dyn FnMut(&str, &Output)) {
    let place = tempfile::tempdir().unwrap();
    let papers = papers(place.path(), 1);
    let source = Source::start(&papers, 0, &[]);
    for (command, words) in commands(place.path(), &source.url()) {
        let output =
            run(abreast().arg(command).args(words).args(more).args(how.split_whitespace()));
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{command}: {text}");
        see(command, &output);
    }
}

#[test]
fn pipes_get_few_lines_without_control_characters() {
    each_command("--progress=plain", &[], &mut |command, output| {
        let text = String::from_utf8(output.stderr.clone()).unwrap();
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with("note: ")).collect();
        assert!((1..=10).contains(&lines.len()), "{command}: {text}");
        for line in lines {
            assert!(line.starts_with("progress: "), "{command}: {line}");
            assert!(!line.chars().any(char::is_control), "{command}: {line:?}");
            assert!(line.contains("; done in "), "{command}: {line}");
        }
    });
}

#[test]
fn short_runs_in_pipes_show_nothing_unless_asked_to() {
    for how in ["", "--progress=none"] {
        each_command(how, &[], &mut |command, output| {
            let text = String::from_utf8_lossy(&output.stderr);
            let is_note = |line: &str| line.starts_with("note: ");
            assert!(text.lines().all(is_note), "{command} {how}: {text}");
        });
    }
}

#[test]
fn a_server_tells_its_first_scan() {
    let place = tempfile::tempdir().unwrap();
    let (papers, log) = (papers(place.path(), 1), place.path().join("log"));
    let source = Source::start_logged(&papers, &log, &["--progress=plain"]);
    eventually("the log has the scan", || {
        let text = fs::read_to_string(&log).unwrap();
        text.lines().any(|line| line.starts_with("progress: set: scanning, 8, "))
    });
    drop(source);
}

/// The fields of a line of progress in `docs/json.md`, and those that are not in each line.
fn documented() -> [BTreeSet<String>; 2] {
    let text = include_str!("../../../../docs/json.md");
    let (_, rest) = text.split_once("\n## Progress\n").unwrap();
    let row = rest.lines().find(|line| line.starts_with("| `status`")).unwrap();
    let fields = row.split(" | ").nth(1).unwrap();
    let all = fields.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let optional = fields.split("*`").skip(1).filter_map(|rest| rest.split_once("`*"));
    [all, optional.map(|(name, _)| name.to_owned()).collect()]
}

#[test]
fn json_lines_have_the_documented_fields() {
    let [documented, optional] = documented();
    each_command("--progress=json", &["--json"], &mut |command, output| {
        let text = String::from_utf8(output.stderr.clone()).unwrap();
        assert!((1..=5).contains(&text.lines().count()), "{command}: {text}");
        for line in text.lines() {
            let value: Value = serde_json::from_str(line).unwrap();
            assert_eq!(value["type"], "status", "{command}: {line}");
            let fields: BTreeSet<String> = value.as_object().unwrap().keys().cloned().collect();
            let fields = &fields - &BTreeSet::from(["type".to_owned()]);
            assert!(fields.is_subset(&documented), "{command}: {line}");
            assert!((&documented - &optional).is_subset(&fields), "{command}: {line}");
        }
        let output = String::from_utf8_lossy(&output.stdout);
        let last = output.lines().last().unwrap();
        assert!(serde_json::from_str::<Value>(last).is_ok(), "{command}: {output}");
    });
}

#[test]
fn a_retry_is_told_before_it_begins() {
    let place = tempfile::tempdir().unwrap();
    let url = format!("http://{}/", unused_address());
    let mut command = abreast();
    command.args(["sync", &url]).arg(place.path()).args(["--retries", "3", "--progress=json"]);
    let output = run(&mut command);
    let text = String::from_utf8_lossy(&output.stderr);
    let retries = text.lines().filter_map(|line| {
        let value: Value = serde_json::from_str(line).ok()?;
        value.get("retry").cloned()
    });
    let retries: Vec<_> = retries.collect();
    let is_right = |retry: &Value| {
        retry["host"].as_str().is_some_and(|host| host.starts_with("127.0.0.1:"))
            && retry["attempts"] == 3
            && retry["message"] == "connection refused"
    };
    assert!(!retries.is_empty() && retries.iter().all(is_right), "{text}");
}
