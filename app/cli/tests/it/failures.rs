//! Output and remaining files of commands that fail.

use crate::world::abreast;
use abreast_testkit::documents::{BEGIN, document, entry};
use abreast_testkit::folder::paths;
use abreast_testkit::pages::Server;
use abreast_testkit::run;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::net::TcpListener;
use std::process::Output;

/// Every command with `--json`, so that it fails.
const FAILING: [&[&str]; 25] = [
    &["build", "DIR/missing", "--out", "DIR/site", "--base-url", "https://example.org/", "--copy"],
    &["sync", "http://127.0.0.1:1/", "DIR/copy", "--retries", "0"],
    &["audit", "http://127.0.0.1:1/", "DIR/full", "--retries", "0"],
    &["explore", "http://127.0.0.1:1/", "--retries", "0"],
    &["import", "papers", "DIR/missing", "--server", "http://127.0.0.1:1/"],
    &["check", "DIR/full"],
    &["status", "DIR/missing"],
    &["repair", "DIR/full"],
    &["backup", "DIR/full", "DIR/backup"],
    &["restore", "DIR/missing", "DIR/new"],
    &["migrate", "DIR/missing", "DIR/new"],
    &["drop", "DIR/full", "papers", "--yes"],
    &["set", "list", "--data", "DIR/missing"],
    &["set", "remove", "papers", "--data", "DIR/full", "--yes"],
    &["set", "rename", "papers", "articles", "--data", "DIR/full"],
    &["doctor", "DIR/missing"],
    &["token", "list", "--data", "DIR/missing"],
    &["config", "show", "DIR/missing.toml"],
    &["hub", "topics", "--data", "DIR/missing"],
    &["hub", "targets", "https://example.org/topic", "--data", "DIR/missing"],
    &["hub", "attempts", "1", "--data", "DIR/missing"],
    &["hub", "replay", "1", "--after", "0", "--data", "DIR/missing"],
    &["hub", "end", "1", "--data", "DIR/missing"],
    &["sync", "http://127.0.0.1:1/", "DIR/copy", "--max-delete", "many"],
    &["build"],
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The names of commands in a help text.
fn commands_in(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    lines
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

/// All commands that have `--json`.
fn with_json() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut commands = vec![Vec::new()];
    while let Some(words) = commands.pop() {
        let help = text(&run(abreast().args(&words).arg("--help")).stdout);
        commands.extend(
            commands_in(&help).into_iter().map(|name: String| [&words[..], &[name]].concat()),
        );
        if help.lines().any(|line| line.trim_start().starts_with("--json")) {
            found.insert(words.join(" "));
        }
    }
    found
}

#[test]
fn a_command_with_json_that_fails_prints_an_object() {
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().display().to_string();
    fs::create_dir(place.path().join("full")).unwrap();
    fs::write(place.path().join("full/letter.txt"), "x").unwrap();
    let mut untested = with_json();
    assert!(untested.contains("hub replay") && untested.contains("build"), "{untested:?}");
    for words in FAILING {
        untested.retain(|command| !words.join(" ").starts_with(command.as_str()));
        let words: Vec<_> = words.iter().map(|word| word.replace("DIR", &dir)).collect();
        let output = run(abreast().args(&words).arg("--json"));
        let (out, code) = (text(&output.stdout), output.status.code().unwrap());
        let printed = format!("{words:?}: {code}\n{out}{}", text(&output.stderr));
        assert!(code != 0 && !out.is_empty(), "{printed}");
        let lines: Vec<serde_json::Value> = out
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {printed}"))
            })
            .collect();
        if words[0] == "doctor" {
            assert!(
                lines.iter().any(|line| line["ok"] == false && line["help"].is_string()),
                "{printed}"
            );
            continue;
        }
        let errors: Vec<_> = lines.iter().filter(|line| line["type"] == "error").collect();
        assert_eq!(errors.len(), 1, "{printed}");
        assert!(errors[0]["code"].is_string() && errors[0]["message"].is_string(), "{printed}");
        assert!(errors[0]["causes"].is_array() && errors[0]["fatal"] == true, "{printed}");
        assert_eq!(errors[0]["exit_code"], code, "{printed}");
        assert!(!output.stderr.is_empty(), "people read the text: {printed}");
    }
    assert!(untested.is_empty(), "no case for {untested:?}");
}

/// All paths beneath a folder, hidden ones as well.
#[test]
fn a_server_that_cannot_start_leaves_nothing_behind() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "x").unwrap();
    fs::create_dir(place.path().join("empty")).unwrap();
    fs::create_dir_all(place.path().join("used/kept")).unwrap();
    let (two, tokens) = (place.path().join("two.toml"), place.path().join("tokens"));
    fs::write(
        &two,
        format!(
            "data = \"{0}/two\"\n[[set]]\nfolder = \"{0}/lost\"\n[[set]]\nfolder = \"{0}/gone\"\n",
            place.path().display()
        ),
    )
    .unwrap();
    fs::create_dir(&tokens).unwrap();
    fs::create_dir(tokens.join("tokens.json")).unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let before = paths(place.path());
    let path = |name: &str| place.path().join(name).display().to_string();
    let papers = path("papers");
    let cases: [&[&str]; 12] = [
        &["serve", &papers, "--listen", &taken],
        &["serve", &papers, "--listen", &taken, "--data", &path("new/deep")],
        &["serve", &papers, "--listen", &taken, "--data", &path("empty")],
        &["serve", &papers, "--listen", "nowhere"],
        &["serve", &papers, "--digests", "crc"],
        &["serve", &papers, "--listen", "127.0.0.1:0", "--data", &path("tokens")],
        &["serve", &papers, "--listen", "127.0.0.1:0", "--hub-bad"],
        &["serve", &path("missing")],
        &["serve", &path("papers/a.txt")],
        &["serve", "--config", &path("two.toml")],
        &["hub", "--listen", &taken, "--data", &path("hub")],
        &[
            "build",
            &papers,
            "--out",
            &path("papers/site"),
            "--base-url",
            "https://example.org/",
            "--copy",
        ],
    ];
    for words in cases {
        let output: Output = run(abreast().args(words));
        assert!(!output.status.success(), "{words:?}");
        assert_eq!(paths(place.path()), before, "{words:?}: {}", text(&output.stderr));
    }
    // A store that cannot be completed: the folder of rendered documents has the place of a file.
    fs::create_dir(folder.join(".abreast")).unwrap();
    fs::write(folder.join(".abreast/documents"), "in the way").unwrap();
    let before = paths(place.path());
    let output = run(abreast().args(["serve", &papers, "--listen", "127.0.0.1:0"]));
    assert!(!output.status.success());
    assert!(paths(place.path()).is_superset(&before), "nothing of others is removed");
}

#[test]
fn a_server_reports_the_one_error_there_is() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("a.txt"), "x").unwrap();
    let mirrors =
        "[[mirror]]\nname = \"one\"\nsource = \"https://example.org/\"\nfolder = \"copy\"\n";
    fs::write(place.path().join("mirrors.toml"), mirrors).unwrap();
    fs::write(place.path().join("mirrors-too.toml"), format!("listen = \"0.0.0.0:0\"\n{mirrors}"))
        .unwrap();
    let path = |name: &str| place.path().join(name).display().to_string();
    let cases: [(&[&str], &str); 4] = [
        (&["serve", &path("a.txt")], "is not a folder"),
        (&["serve", "--config", &path("mirrors.toml")], "abreast sync --config FILE"),
        (&["serve", "--config", &path("mirrors-too.toml")], "abreast sync --config FILE"),
        (&["serve", &path(""), "--data", &path("a.txt"), "--listen", "127.0.0.1:0"], "a.txt"),
    ];
    for (words, cause) in cases {
        let mut command = abreast();
        let output = run(command.args(words).env("ABREAST_LOG_FORMAT", "text"));
        let error = text(&output.stderr);
        assert!(error.contains(cause) && !error.contains("tokens"), "{words:?}: {error}");
        assert_eq!(
            error.matches("help:").count() + error.matches("because:").count(),
            1,
            "{words:?}: {error}"
        );
    }
}

#[test]
fn one_is_written_in_the_singular() {
    let place = tempfile::tempdir().unwrap();
    let papers = place.path().join("papers");
    fs::create_dir(&papers).unwrap();
    fs::write(papers.join("a.txt"), "x").unwrap();
    let (site, data) = (place.path().join("site"), place.path().join("site/.abreast"));
    let mut command = abreast();
    command.arg("build").arg(&papers).arg("--out").arg(&site).args([
        "--base-url",
        "https://example.org/",
        "--copy",
    ]);
    let mut shown = text(&run(&mut command).stdout);
    shown += &text(&run(abreast().arg("check").arg(&data)).stdout);
    shown +=
        &text(&run(abreast().arg("backup").arg(&data).arg(place.path().join("backups"))).stdout);
    for part in [
        "1 file, 0 changes",
        "1 resource copied",
        "set papers: 1 resource, up to position 0",
        "1 resource, up to",
    ] {
        assert!(shown.contains(part), "`{part}` is not in:\n{shown}");
    }
}

#[test]
fn lines_follow_one_that_was_cut_short_on_their_own() {
    let server = Server::start();
    let entry = entry(&server.url("/a"), b"hello", "");
    let attributes = format!("capability=\"resourcelist\" at=\"{BEGIN}\"");
    server.body("/list.xml", document("urlset", &attributes, &entry));
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("changes.jsonl");
    std::fs::write(&path, "{\"uri\":\"http").unwrap();
    let output = File::options().append(true).open(&path).unwrap();
    let status = abreast()
        .args(["sync", &server.url("/list.xml"), "-", "--state", "state", "--ignore-robots"])
        .current_dir(place.path())
        .stdout(output)
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("{\"uri\":\"http"));
    let line: serde_json::Value = serde_json::from_str(lines.next().unwrap()).unwrap();
    assert_eq!((line["change"].as_str(), lines.next()), (Some("created"), None), "{text}");
}
