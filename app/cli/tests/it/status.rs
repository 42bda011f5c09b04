//! `status`, `health` and `--admin-listen`: a program reports its state while it runs, and its databases
//! do when it is stopped.

use crate::world::{Source, abreast, get, stop, sync};
use abreast_testkit::http::unused_address;
use abreast_testkit::{Running, eventually, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A place with a folder to publish.
struct Place {
    root: tempfile::TempDir,
}

impl Place {
    fn new(files: usize) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("papers")).unwrap();
        for number in 0..files {
            fs::write(root.path().join(format!("papers/{number}.txt")), number.to_string())
                .unwrap();
        }
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn serve(&self, more: &[&str]) -> Source {
        Source::start(&self.path("papers"), 0, more)
    }
}

/// `abreast status --json`, its exit code and report, which is as the schema says.
fn status(place: &Path, code: i32, more: &[&str]) -> Value {
    let output = run(abreast().arg("status").arg(place).arg("--json").args(more));
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{}\n{text}\n{error}", place.display());
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_schema(&report);
    assert!(!text.trim_end().contains('\n') && text.len() < 1 << 20);
    report
}

pub(crate) fn assert_schema(report: &Value) {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/status.schema.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut faults = Vec::new();
    check(&schema, &schema, report, "$", &mut faults);
    assert_eq!(faults, [""; 0], "{report:#}");
}

/// Checks a value with the part of JSON Schema that the schema of the report uses.
fn check(whole: &Value, schema: &Value, value: &Value, place: &str, faults: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = reference.strip_prefix("#/$defs/").unwrap();
        return check(whole, &whole["$defs"][name], value, place, faults);
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let fits = |one: &Value| {
            let mut faults = Vec::new();
            check(whole, one, value, place, &mut faults);
            faults.is_empty()
        };
        if !any.iter().any(fits) {
            faults.push(format!("{place}: fits none of anyOf"));
        }
        return;
    }
    let is_type = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("type {other}"),
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        several => several.as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect(),
    };
    if !types.iter().any(|name| is_type(name)) {
        faults.push(format!("{place}: {value} is not {types:?}"));
        return;
    }
    if let Some(known) = schema["enum"].as_array()
        && !known.contains(value)
    {
        faults.push(format!("{place}: {value} is not one of {known:?}"));
    }
    if let Some(object) = value.as_object() {
        for needed in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(needed.as_str().unwrap()) {
                faults.push(format!("{place}: {needed} is missing"));
            }
        }
        for (name, value) in object {
            match schema["properties"].get(name) {
                Some(schema) => check(whole, schema, value, &format!("{place}.{name}"), faults),
                None => faults.push(format!("{place}: {name} is not in the schema")),
            }
        }
    }
    for (number, item) in value.as_array().into_iter().flatten().enumerate() {
        check(whole, &schema["items"], item, &format!("{place}[{number}]"), faults);
    }
}

/// `abreast health`, its exit code, its output, and how long it took.
fn health(arguments: &[&str]) -> (i32, String, Duration) {
    let begun = Instant::now();
    let output = run(abreast().arg("health").args(arguments));
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    (output.status.code().unwrap(), text, begun.elapsed())
}

/// `abreast sync --follow`, once its socket is there.
fn follow(url: &str, copy: &Path, more: &[&str]) -> Running {
    let mut command = abreast();
    command.arg("sync").arg(url).arg(copy).args(["--follow", "--interval", "1s", "--retries", "0"]);
    let child = command.args(more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let child = Running(child);
    eventually("the copy follows", || {
        let output = run(abreast().arg("status").arg(copy).arg("--json"));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        report["copies"][0]["state"] == "following"
    });
    child
}

fn signal(child: &Running, signal: rustix::process::Signal) {
    rustix::process::kill_process(rustix::process::Pid::from_child(&child.0), signal).unwrap();
}

/// The files of a folder with their bytes, without those that SQLite needs for sharing.
fn bytes_of(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if !path.to_string_lossy().ends_with("-shm") {
                found.insert(path.clone(), fs::read(path).unwrap());
            }
        }
    }
    found
}

#[test]
fn a_server_reports_its_sets_running_and_stopped() {
    let place = Place::new(3);
    let data = place.path("data");
    let source = place.serve(&["--data", data.to_str().unwrap(), "--versions", "all"]);
    let socket = data.join("status.sock");
    assert_eq!(fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    fs::write(place.path("papers/new.txt"), "new").unwrap();
    eventually("the change is reported", || {
        status(&data, 0, &[])["stores"][0]["sets"][0]["position"] == 1
    });
    let report = status(&data, 0, &[]);
    let store = &report["stores"][0];
    assert_eq!((&report["healthy"], &store["state"]), (&true.into(), &"serving".into()));
    assert_eq!(store["process"], source.pid());
    let set = &store["sets"][0];
    assert_eq!(
        (&set["name"], &set["state"], &set["resources"]),
        (&"set".into(), &"ready".into(), &4.into())
    );
    assert!(set["last_change"].is_string() && set["last_scan"].is_string(), "{set}");
    assert!(set["versions_bytes"].as_u64().unwrap() > 0 && set["subscribers"] == 0, "{set}");
    assert!(store["hub"]["delivered"].is_u64() && store["disk"]["free"].as_u64().unwrap() > 0);
    // By its URL, from the API and the readiness.
    let by_url = status(Path::new(&source.url()), 0, &[]);
    assert_eq!(by_url["stores"][0]["sets"][0]["resources"], 4);
    assert_eq!(source.stop(), Some(0));
    assert!(!socket.exists(), "it is removed at the end");
    let before = bytes_of(&data);
    let report = status(&data, 0, &[]);
    assert_eq!(bytes_of(&data), before, "nothing is written");
    let store = &report["stores"][0];
    assert_eq!((&store["state"], &store["process"]), (&"stopped".into(), &Value::Null));
    let set = &store["sets"][0];
    assert_eq!(
        (&set["state"], &set["resources"], &set["position"]),
        (&"stopped".into(), &4.into(), &1.into())
    );
}

#[test]
fn held_deletions_of_a_set_need_attention() {
    let place = Place::new(20);
    let data = place.path("data");
    let source = place.serve(&["--data", data.to_str().unwrap()]);
    for number in 0..18 {
        fs::remove_file(place.path(&format!("papers/{number}.txt"))).unwrap();
    }
    eventually("the deletions are held", || {
        let output = run(abreast().arg("status").arg(&data));
        output.status.code() == Some(3)
    });
    let report = status(&data, 3, &[]);
    let set = &report["stores"][0]["sets"][0];
    assert_eq!((&set["state"], &set["held_deletions"]), (&"held".into(), &18.into()));
    let help = set["attention"][0]["help"].as_str().unwrap();
    assert!(help.contains("/api/v1/sets/set/deletions"), "{help}");
    assert_eq!(status(Path::new(&source.url()), 3, &[])["stores"][0]["sets"][0]["state"], "held");
    let output = run(abreast().arg("status").arg(&data).env("COLUMNS", "60"));
    let text = String::from_utf8(output.stdout).unwrap();
    // A single word may be longer, such as an address.
    let is_short = |line: &str| line.chars().count() <= 60 || line.trim().split(' ').count() == 1;
    assert!(text.lines().all(is_short), "{text}");
    assert!(text.contains("! the deletion of 18 of 20 resources is held"), "{text}");
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn a_copy_reports_its_state_following_and_stopped() {
    let place = Place::new(3);
    let copy = place.path("copy");
    let source = place.serve(&["--data", place.path("data").to_str().unwrap()]);
    let follower = follow(&source.url(), &copy, &[]);
    let found = status(&copy, 0, &[]);
    let found = &found["copies"][0];
    assert_eq!((&found["process"], &found["resources"]), (&follower.0.id().into(), &3.into()));
    assert_eq!((&found["behind_seconds"], &found["pending"]), (&0.into(), &0.into()));
    for field in ["last_success", "last_change", "cursor", "source"] {
        assert!(found[field].is_string(), "{field}: {found}");
    }
    assert_eq!(found["since_start"]["changes"], 3);
    let text = health(&[copy.to_str().unwrap(), "--ready"]);
    assert_eq!(text.0, 0, "{}", text.1);
    // The Source fails: alive, and not ready.
    source.kill();
    eventually("a run fails", || health(&[copy.to_str().unwrap(), "--ready"]).0 == 1);
    let (_, text, _) = health(&[copy.to_str().unwrap(), "--ready"]);
    assert!(text.contains("has failed, and is tried again"), "{text}");
    assert_eq!(health(&[copy.to_str().unwrap()]).0, 0);
    let found = status(&copy, 3, &[]);
    assert!(found["copies"][0]["behind_seconds"].is_u64(), "{found}");
    assert_eq!(stop(follower), Some(0));
    assert!(!copy.join(".abreast/follow.sock").exists(), "it is removed at the end");
    let before = bytes_of(&copy);
    let found = status(&copy, 3, &[]);
    assert_eq!(bytes_of(&copy), before, "nothing is written");
    let found = &found["copies"][0];
    assert_eq!((&found["state"], &found["process"]), (&"stopped".into(), &Value::Null));
    let message = found["attention"][0]["message"].as_str().unwrap();
    assert!(message.contains("the last run ended with an error"), "{message}");
    assert_eq!(health(&[copy.to_str().unwrap()]).0, 1, "nothing runs");
}

#[test]
fn failures_and_held_deletions_of_a_copy_are_named() {
    let place = Place::new(30);
    let (copy, data) = (place.path("copy"), place.path("data"));
    let data = data.to_str().unwrap();
    let source = place.serve(&["--data", data]);
    sync(&source.url(), &copy, 0, &[]);
    assert_eq!(status(&copy, 0, &[])["copies"][0]["run"]["exit_code"], 0);
    let port = source.port();
    assert_eq!(source.stop(), Some(0));
    for number in 0..28 {
        fs::remove_file(place.path(&format!("papers/{number}.txt"))).unwrap();
    }
    let more = ["--data", data, "--confirm-deletions"];
    let source = Source::start(&place.path("papers"), port, &more);
    eventually("the copy holds the deletions", || {
        run(abreast().args(["sync", &source.url()]).arg(&copy)).status.code() == Some(7)
    });
    let found = status(&copy, 3, &[]);
    let found = &found["copies"][0];
    assert_eq!(found["held_deletions"], 28, "{found}");
    assert!(found["held_since"].is_string() && found["last_success"].is_string());
    let help = found["attention"][0]["help"].as_str().unwrap();
    let release = help.split("release them: abreast ").nth(1).unwrap();
    let words: Vec<&str> = release.split(' ').collect();
    assert_eq!(run(abreast().args(words)).status.code(), Some(0), "{release}");
    assert_eq!(status(&copy, 0, &[])["copies"][0]["resources"], 2);
}

#[test]
fn a_copy_that_never_succeeded_says_so() {
    let place = Place::new(3);
    let copy = place.path("copy");
    let source = place.serve(&["--data", place.path("data").to_str().unwrap()]);
    // The limit ends each run before everything is copied: it stores a plan and some files.
    let limit = ["--max-bytes", "1", "--connections", "1"];
    let code = run(abreast().args(["sync", &source.url()]).arg(&copy).args(limit)).status.code();
    assert_eq!(code, Some(8));
    if copy.join(".abreast/mirror.db").exists() {
        let report = status(&copy, 3, &[]);
        let found = &report["copies"][0];
        assert_eq!(
            (&found["last_success"], &found["behind_seconds"]),
            (&Value::Null, &Value::Null)
        );
        let output = run(abreast().arg("status").arg(&copy));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.contains("last success  never") && text.contains("help: abreast sync"),
            "{text}"
        );
    } else {
        status_fails(copy.to_str().unwrap(), 2);
    }
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn a_job_without_a_copy_needs_attention() {
    let place = Place::new(1);
    let config = place.path("abreast.toml");
    let copy = place.path("never");
    let text = format!(
        "[[mirror]]\nname = \"never\"\nurl = \"http://{}/\"\nfolder = {copy:?}\nfollow = true\n",
        unused_address()
    );
    fs::write(&config, text).unwrap();
    let output = run(abreast().args(["status", "--json", "--config"]).arg(&config));
    assert_eq!(output.status.code(), Some(3));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_schema(&report);
    assert_eq!(report["copies"][0]["job"], "never");
    let output = run(abreast().args(["status", "never", "--config"]).arg(&config));
    assert_eq!(output.status.code(), Some(3));
    let (code, text, _) = health(&["--config", config.to_str().unwrap()]);
    assert!(code == 1 && text.contains("no program reports its state"), "{text}");
    for (arguments, code) in [(vec!["other", "--config"], 2), (vec!["--config"], 3)] {
        let output = run(abreast().arg("status").args(arguments).arg(&config));
        assert_eq!(output.status.code(), Some(code));
    }
}

#[test]
fn jobs_report_on_their_own_addresses() {
    let place = Place::new(2);
    let source = place.serve(&["--data", place.path("data").to_str().unwrap()]);
    let address = unused_address().to_string();
    let config = place.path("abreast.toml");
    let mut text = String::new();
    for name in ["one", "two"] {
        let _ = write!(
            text,
            "[[mirror]]\nname = \"{name}\"\nurl = \"{}\"\nfolder = {:?}\nfollow = true\ninterval = \"1s\"\nadmin_listen = \"{address}\"\n",
            source.url(),
            place.path(name)
        );
    }
    fs::write(&config, text).unwrap();
    let mut command = abreast();
    command.args(["sync", "--all", "--config"]).arg(&config);
    let follower = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let follower = Running(follower);
    let config = config.to_str().unwrap();
    eventually("both jobs are ready", || health(&["--config", config, "--ready"]).0 == 0);
    let (code, ready) = get(&address, "/readyz").unwrap();
    let ready = String::from_utf8(ready).unwrap();
    assert_eq!(code, 200);
    for name in ["one", "two"] {
        assert!(ready.contains(&format!("job `{name}` is following; last success")), "{ready}");
    }
    let (_, metrics) = get(&address, "/metrics").unwrap();
    let metrics = String::from_utf8(metrics).unwrap();
    for name in [
        "abreast_copy_last_success_time_seconds{job=\"one\",set=\"\"}",
        "abreast_copy_complete{job=\"two\",set=\"\"} 1",
        "abreast_copy_changes_applied_total{job=\"two\",set=\"\"} 2",
        "abreast_copy_requests_total",
        "abreast_copy_retries_total",
        "abreast_copy_cursor_time_seconds",
        "abreast_copy_attempts_total",
    ] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
    let output = run(abreast().args(["status", "--json", "--config", config]));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_schema(&report);
    let jobs = report["copies"].as_array().unwrap().iter().map(|copy| copy["job"].clone());
    assert_eq!(jobs.collect::<Vec<_>>(), ["one", "two"], "{report}");
    assert_eq!(stop(follower), Some(0));
    assert!(get(&address, "/livez").is_none());
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn copies_of_all_sets_report_together_and_each() {
    let place = Place::new(2);
    let config = place.path("abreast.toml");
    fs::create_dir(place.path("maps")).unwrap();
    fs::write(place.path("maps/a"), "a").unwrap();
    let text = format!(
        "data = {:?}\n[[set]]\nfolder = {:?}\n[[set]]\nfolder = {:?}\n",
        place.path("data"),
        place.path("papers"),
        place.path("maps")
    );
    fs::write(&config, text).unwrap();
    let source = Source::start_config(config.to_str().unwrap());
    let library = place.path("library");
    let mut command = abreast();
    command.args(["sync", &source.url()]).arg(&library).args(["--all-sets", "--follow"]);
    let follower = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let follower = Running(follower);
    let library = library.to_str().unwrap();
    eventually("both sets are ready", || {
        let output = run(abreast().args(["status", library, "--json"]));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        let copies = report["copies"].as_array().map_or(0, Vec::len);
        copies == 2 && health(&[library, "--ready"]).0 == 0
    });
    let report = status(&place.path("library/maps"), 0, &[]);
    assert_eq!(report["copies"].as_array().unwrap().len(), 1, "{report}");
    assert_eq!(
        (&report["copies"][0]["set"], &report["copies"][0]["resources"]),
        (&"maps".into(), &1.into())
    );
    assert_eq!(stop(follower), Some(0));
    let report = status(Path::new(library), 0, &[]);
    assert_eq!(report["copies"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn an_address_that_others_reach_needs_the_token() {
    let place = Place::new(1);
    let data = place.path("data");
    let token = place.path("token");
    fs::write(&token, "a-secret\n").unwrap();
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = run(abreast()
        .arg("serve")
        .arg(place.path("papers"))
        .args(["--listen", "127.0.0.1:0", "--admin-listen", "0.0.0.0:0", "--data"])
        .arg(&data));
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && error.contains("--admin-token-file"), "{error}");
    let refused = run(abreast()
        .args(["sync", "http://127.0.0.1:1/"])
        .arg(place.path("copy"))
        .args(["--follow", "--admin-listen", "0.0.0.0:0"]));
    assert_eq!(refused.status.code(), Some(2));
    let address = unused_address().to_string();
    let admin = ["--admin-listen", &address, "--admin-token-file", token.to_str().unwrap()];
    let source = place.serve(&[&["--data", data.to_str().unwrap()][..], &admin].concat());
    for path in ["/livez", "/readyz", "/metrics", "/status"] {
        assert_eq!(get(&address, path).unwrap().0, 401, "{path}");
    }
    let url = format!("http://{address}");
    let with_token = [&url, "--ready", "--token-file", token.to_str().unwrap()];
    let (code, text, _) = health(&with_token);
    assert_eq!(code, 0, "{text}");
    assert_eq!(health(&[&url, "--ready"]).0, 1);
    let report = status(Path::new(&url), 0, &["--token-file", token.to_str().unwrap()]);
    assert_eq!(report["stores"][0]["state"], "serving");
    status_fails(&url, 12);
    assert_eq!(source.stop(), Some(0));
    status_fails(&url, 5);
}

fn status_fails(place: &str, code: i32) {
    let output = run(abreast().args(["status", place]));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{error}");
}

#[test]
fn a_hub_reports_its_deliveries() {
    let place = Place::new(0);
    let data = place.path("hub");
    let address = unused_address().to_string();
    let admin = unused_address().to_string();
    let mut command = abreast();
    command.args(["hub", "--listen", &address, "--admin-listen", &admin, "--data"]).arg(&data);
    let hub = Running(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let data_text = data.to_str().unwrap();
    eventually("the hub is ready", || health(&[data_text, "--ready"]).0 == 0);
    assert_eq!(health(&[&format!("http://{admin}/livez")]).0, 0);
    let report = status(&data, 0, &[]);
    let store = &report["stores"][0];
    assert_eq!((&store["state"], &store["sets"]), (&"serving".into(), &Value::Array(Vec::new())));
    assert_eq!((&store["hub"]["targets"], &store["hub"]["delivered"]), (&0.into(), &0.into()));
    assert!(
        String::from_utf8(get(&admin, "/metrics").unwrap().1).unwrap().contains("abreast_hub_")
    );
    assert_eq!(stop(hub), Some(0));
    let report = status(&data, 0, &[]);
    assert_eq!(report["stores"][0]["hub"]["delivered"], Value::Null);
}

#[test]
fn failing_targets_of_a_hub_are_named() {
    let place = Place::new(1);
    let data = place.path("data");
    let data_text = data.to_str().unwrap();
    let other = format!("http://{}/", unused_address());
    let source = place.serve(&["--data", data_text, "--hub", &other]);
    fs::write(place.path("papers/new"), "new").unwrap();
    eventually("a delivery fails", || {
        run(abreast().args(["status", data_text])).status.code() == Some(3)
    });
    let check = |report: &Value, more: &str| {
        let hub = &report["stores"][0]["hub"];
        assert!(hub["failing"].as_u64().unwrap() > 0, "{hub}");
        assert_eq!(hub["failing_targets"][0]["address"], other);
        let help = hub["attention"][0]["help"].as_str().unwrap();
        assert!(help.starts_with("abreast hub attempts ") && help.contains(more), "{help}");
        help.to_owned()
    };
    let help = check(&status(&data, 3, &[]), "--server ");
    assert_eq!(run(abreast().args(help.split(' ').skip(1))).status.code(), Some(0), "{help}");
    assert_eq!(source.stop(), Some(0));
    let help = check(&status(&data, 3, &[]), "--data ");
    assert_eq!(run(abreast().args(help.split(' ').skip(1))).status.code(), Some(0), "{help}");
}

#[test]
fn a_process_that_hangs_fails_its_probe_in_time() {
    use rustix::process::Signal;
    let place = Place::new(1);
    let copy = place.path("copy");
    let source = place.serve(&["--data", place.path("data").to_str().unwrap()]);
    let address = unused_address().to_string();
    let follower = follow(&source.url(), &copy, &["--admin-listen", &address]);
    signal(&follower, Signal::STOP);
    for probe in [copy.to_str().unwrap(), &format!("http://{address}/")] {
        let (code, text, took) = health(&[probe, "--timeout", "1s"]);
        assert!(code == 1 && text.contains("no answer within 1s"), "{text}");
        assert!(took < Duration::from_secs(4), "{probe}: {took:?}");
    }
    // The state is read from its databases, with a warning.
    let report = status(&copy, 3, &["--timeout", "1s"]);
    assert_eq!(report["copies"][0]["state"], "in use", "{report}");
    assert_eq!(report["copies"][0]["resources"], 1);
    let message = report["attention"][0]["message"].as_str().unwrap();
    assert!(message.contains("does not report its state"), "{message}");
    signal(&follower, Signal::CONT);
    eventually("it answers again", || health(&[copy.to_str().unwrap(), "--ready"]).0 == 0);
    assert_eq!(stop(follower), Some(0));
    assert_eq!(source.stop(), Some(0));
}

#[test]
fn the_socket_of_a_killed_process_is_replaced() {
    let place = Place::new(1);
    // The path of the socket is longer than its address may be.
    let long = place.path(&"x".repeat(100));
    fs::create_dir(&long).unwrap();
    let (data, copy) = (long.join("data"), long.join("copy"));
    let source = place.serve(&["--data", data.to_str().unwrap()]);
    let follower = follow(&source.url(), &copy, &[]);
    drop(follower);
    let port = source.port();
    source.kill();
    let sockets = [data.join("status.sock"), copy.join(".abreast/follow.sock")];
    assert!(sockets.iter().all(|socket| socket.exists()));
    // Nothing answers: the databases are read.
    assert_eq!(status(&data, 0, &[])["stores"][0]["state"], "stopped");
    assert_eq!(status(&copy, 0, &[])["copies"][0]["state"], "stopped");
    assert_eq!(health(&[data.to_str().unwrap()]).0, 1);
    let source = Source::start(&place.path("papers"), port, &["--data", data.to_str().unwrap()]);
    let follower = follow(&source.url(), &copy, &[]);
    assert_eq!(status(&data, 0, &[])["stores"][0]["state"], "serving");
    // A second process is refused, and the first keeps its socket.
    let second = run(abreast().arg("sync").arg(source.url()).arg(&copy).arg("--follow"));
    assert_eq!(second.status.code(), Some(10));
    assert_eq!(status(&copy, 0, &[])["copies"][0]["state"], "following");
    assert_eq!(stop(follower), Some(0));
    assert_eq!(source.stop(), Some(0));
    assert!(sockets.iter().all(|socket| !socket.exists()));
}

#[test]
fn damage_and_missing_folders_are_errors() {
    let place = Place::new(3);
    let (copy, data) = (place.path("copy"), place.path("data"));
    let source = place.serve(&["--data", data.to_str().unwrap()]);
    sync(&source.url(), &copy, 0, &[]);
    assert_eq!(source.stop(), Some(0));
    for (folder, database) in
        [(&data, data.join("source.db")), (&copy, copy.join(".abreast/mirror.db"))]
    {
        let _ = fs::remove_file(format!("{}-wal", database.display()));
        fs::write(&database, [7; 9_000]).unwrap();
        let output = run(abreast().arg("status").arg(folder));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!matches!(output.status.code(), Some(0 | 3)), "{error}");
        assert!(error.contains("cannot read"), "{error}");
    }
    for missing in ["papers", "nowhere"] {
        let output = run(abreast().arg("status").arg(place.path(missing)));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains("help:"), "{error}");
    }
}
