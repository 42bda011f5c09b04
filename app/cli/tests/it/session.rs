//! What a user does: serve, sync, audit, demo; and what the program says.

use crate::world::{Source, abreast, audit, catch_up, sync};
use abreast_testkit::folder::{assert_equal, files, same};
use abreast_testkit::{Running, eventually, eventually_ok, run};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

#[test]
fn a_folder_is_published_mirrored_kept_in_sync_and_audited() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    fs::create_dir_all(original.join("deep/er")).unwrap();
    for (path, content) in [
        ("one.txt", "1"),
        ("deep/er/two words & more.ttl", "2"),
        ("deep/100%.txt", "3"),
        ("empty", ""),
    ] {
        fs::write(original.join(path), content).unwrap();
    }
    let source = Source::start(&original, 0, &[]);
    let url = source.url();

    let summary = sync(&url, &copy, 0, &[]);
    assert_eq!(
        (summary["mode"].as_str(), summary["created"].as_u64()),
        (Some("baseline"), Some(4))
    );
    assert_equal(&original, &copy);
    let mtime = |path| {
        fs::metadata(path)
            .unwrap()
            .modified()
            .unwrap()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    assert_eq!(mtime(original.join("one.txt")), mtime(copy.join("one.txt")));
    assert_eq!(audit(&url, &copy), 0);

    let summary = sync(&url, &copy, 0, &[]);
    assert_eq!(summary["mode"], "unchanged");
    assert!(summary["requests"].as_u64().unwrap() <= 2, "{summary}");

    fs::write(original.join("one.txt"), "11").unwrap();
    fs::remove_file(original.join("empty")).unwrap();
    fs::rename(original.join("deep"), original.join("moved")).unwrap();
    assert_eq!(audit_after_change(&source, &copy), 1);
    catch_up(&url, &original, &copy, &[]);
    assert_eq!(audit(&url, &copy), 0);
    assert!(!copy.join("deep").exists(), "emptied folders leave with their last file");
    assert_eq!(source.stop(), Some(0), "SIGTERM is a graceful stop");
}

#[test]
fn a_file_that_follows_a_change_list_gets_its_own_time() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "1").unwrap();
    let source = Source::start(&original, 0, &[]);
    sync(&source.url(), &copy, 0, &[]);
    // Restored from somewhere: new here, but last modified long ago.
    fs::write(original.join(".b"), "2").unwrap();
    let long_ago = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options()
        .write(true)
        .open(original.join(".b"))
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    fs::rename(original.join(".b"), original.join("b")).unwrap();
    eventually("the copy follows", || {
        sync(&source.url(), &copy, 0, &[]);
        copy.join("b").exists()
    });
    assert_eq!(fs::metadata(copy.join("b")).unwrap().modified().unwrap(), long_ago);
    let audit = run(abreast().args(["audit", &source.url()]).arg(&copy));
    assert_eq!(audit.status.code(), Some(0), "{}", String::from_utf8_lossy(&audit.stdout));
}

fn audit_after_change(source: &Source, copy: &std::path::Path) -> i32 {
    eventually("the Source has seen the edit", || {
        source
            .get("/set/changelist.xml")
            .is_some_and(|list| String::from_utf8_lossy(&list).contains("one.txt"))
    });
    audit(&source.url(), copy)
}

#[test]
fn changes_made_while_the_source_was_down_are_found() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "1").unwrap();
    fs::write(original.join("b"), "1").unwrap();
    let source = Source::start(&original, 0, &[]);
    let (url, port) = (source.url(), source.port());
    sync(&url, &copy, 0, &[]);
    source.kill();
    fs::write(original.join("a"), "22").unwrap();
    fs::remove_file(original.join("b")).unwrap();
    fs::write(original.join("c"), "1").unwrap();
    let source = Source::start(&original, port, &[]);
    eventually_ok("the copy follows", || {
        let summary = sync(&source.url(), &copy, 0, &[]);
        assert_ne!(summary["mode"], "baseline", "no change was missed, so no new baseline is due");
        same(&files(&original), &files(&copy))
            .map_err(|why| format!("{why}; the last run: {summary}"))
    });
}

#[test]
fn following_applies_changes_as_they_come() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "1").unwrap();
    let source = Source::start(&original, 0, &[]);
    let mut follower = abreast();
    follower.args(["sync", &source.url()]).arg(&copy).args([
        "--follow",
        "--interval",
        "100ms",
        "--json",
    ]);
    let mut follower =
        Running(follower.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    eventually_ok("the copy is made", || same(&files(&original), &files(&copy)));
    fs::write(original.join("b"), "2").unwrap();
    fs::remove_file(original.join("a")).unwrap();
    eventually_ok("the copy follows", || same(&files(&original), &files(&copy)));
    let pid = rustix::process::Pid::from_child(&follower.0);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(follower.0.wait().unwrap().code(), Some(0), "stopped while waiting: all was done");
}

#[test]
fn another_folder_in_the_same_place_is_read_and_served() {
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "old").unwrap();
    let data = temporary.path().join("store");
    let source = Source::start(&original, 0, &["--data", data.to_str().unwrap()]);
    assert_eq!(source.get("/set/r/a").unwrap(), b"old");
    fs::rename(&original, temporary.path().join("aside")).unwrap();
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "another").unwrap();
    eventually("the bytes served are the new folder's", || {
        source.get("/set/r/a").is_some_and(|bytes| bytes == b"another")
    });
    eventually("the change is published", || {
        source
            .get("/set/changelist.xml")
            .is_some_and(|list| String::from_utf8_lossy(&list).contains("change=\"updated\""))
    });
}

#[test]
fn the_demo_ends_well() {
    let output = run(abreast().arg("demo"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(
        text.contains("7. An audit compares copy and museum")
            && text.contains("   241 files copied; both copies are equal")
            && text.contains("   equal: 241 files"),
        "{text}"
    );
}

#[test]
fn the_demo_of_rdf_ends_well() {
    let output = run(abreast().args(["demo", "--rdf"]));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        output.status.code(),
        Some(0),
        "{text}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let label = "https://id.example.org/person/3> <http://www.w3.org/2004/02/skos/core#prefLabel>";
    for expected in [
        &format!("   D <{label} \"Selma Lagerlof\" .\n   A <{label} \"Selma Lagerlöf\" .\n"),
        "   https://id.example.org/person/4,T. Jansson,,1,https://id.example.org/person/2,",
        "   equal: 24 descriptions",
    ] {
        assert!(text.contains(expected), "{expected}: {text}");
    }
}

#[test]
fn the_demo_stays_when_asked() {
    let temporary = tempfile::tempdir().unwrap();
    let mut demo = abreast();
    demo.args(["demo", "--keep", "--dir"]).arg(temporary.path());
    let mut demo = Running(demo.stdout(Stdio::piped()).spawn().unwrap());
    let lines = BufReader::new(demo.0.stdout.take().unwrap()).lines();
    let addresses =
        lines.map(Result::unwrap).find(|line| line.trim_start().starts_with("addresses")).unwrap();
    assert!(addresses.contains("/.well-known/resourcesync"), "{addresses}");
    let pid = rustix::process::Pid::from_child(&demo.0);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(demo.0.wait().unwrap().code(), Some(0));
}

#[test]
fn dry_run_prints_the_plan_and_changes_nothing() {
    let temporary = tempfile::tempdir().unwrap();
    let (original, copy) = (temporary.path().join("original"), temporary.path().join("copy"));
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "1").unwrap();
    let source = Source::start(&original, 0, &[]);
    let output = run(abreast().args(["sync", &source.url()]).arg(&copy).arg("--dry-run"));
    assert_eq!(output.status.code(), Some(0));
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("create    a"),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(files(&copy).is_empty());
    let summary = sync(&source.url(), &copy, 0, &[]);
    assert_eq!(summary["created"], 1, "the dry run left no trace");
}

#[test]
fn one_store_has_one_source_and_one_copy_has_one_run() {
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "1").unwrap();
    let _source = Source::start(&original, 0, &[]);
    let second = run(abreast().arg("serve").arg(&original).args(["--listen", "127.0.0.1:0"]));
    assert_eq!(second.status.code(), Some(10));
    assert!(
        String::from_utf8_lossy(&second.stderr).contains("another abreast is serving"),
        "{second:?}"
    );
}

#[test]
fn wrong_usage_is_code_2_with_help() {
    let place = tempfile::tempdir().unwrap();
    let output = run(abreast().args(["sync"]));
    assert_eq!(output.status.code(), Some(2));
    let output = run(abreast().args(["sync", "localhost:8080", "copy"]).current_dir(place.path()));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), printed.contains("did you mean `http://localhost:8080`?")),
        (Some(2), true),
        "{printed}"
    );
    for notified in [
        &["--callback-listen", "127.0.0.1:9"][..],
        &["--xmpp", "xmpp:h?;node=n", "--xmpp-jid", "a@h"],
    ] {
        let output = run(abreast().args(["sync", "http://127.0.0.1:9/", "copy"]).args(notified));
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert!(printed.contains("--follow"), "{printed}");
    }
    let output = run(abreast()
        .args(["sync", "http://127.0.0.1:9/", "copy", "--retries", "0"])
        .current_dir(place.path()));
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), printed.matches("cannot fetch").count()),
        (Some(5), 1),
        "printed once: {printed}"
    );
    let output =
        run(abreast().args(["serve", ".", "--listen", "127.0.0.1"]).current_dir(place.path()));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("`listen`: `127.0.0.1` is not HOST:PORT"),
        "{output:?}"
    );
    let output = run(abreast().args(["serve", "/nowhere/at/all"]));
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("`folder`: cannot open `/nowhere/at/all`")
    );
}

#[test]
fn a_signal_stops_in_order_and_a_second_one_at_once() {
    use rustix::process::{Pid, Signal, kill_process};
    let temporary = tempfile::tempdir().unwrap();
    let original = temporary.path().join("original");
    fs::create_dir_all(&original).unwrap();
    fs::write(original.join("a"), "1").unwrap();
    let serve = |log: &str| {
        let mut command = abreast();
        command.arg("serve").arg(&original).args(["--listen", "127.0.0.1:0"]);
        command.stderr(fs::File::create(temporary.path().join(log)).unwrap());
        let mut child = Running(command.stdout(Stdio::piped()).spawn().unwrap());
        let lines = BufReader::new(child.0.stdout.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|line| line.contains("listening on")).unwrap();
        (child, line.rsplit("http://").next().unwrap().trim_end_matches('/').to_owned())
    };
    let stop = |child: &Running, signal| kill_process(Pid::from_child(&child.0), signal).unwrap();
    let (mut child, _) = serve("log");
    stop(&child, Signal::TERM);
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let log = fs::read_to_string(temporary.path().join("log")).unwrap();
    assert!(log.contains("stopping") && log.contains("SIGTERM"), "{log}");
    // A request that waits keeps the server for seconds.
    let (mut child, address) = serve("log");
    let mut waiting = std::net::TcpStream::connect(&address).unwrap();
    let request = format!(
        "POST /hub HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
         Content-Length: 9\r\nExpect: 100-continue\r\n\r\n"
    );
    waiting.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(&waiting).read_line(&mut answer).unwrap();
    assert!(answer.contains("100"), "{answer}");
    stop(&child, Signal::INT);
    eventually("it stops", || {
        fs::read_to_string(temporary.path().join("log")).unwrap().contains("stopping")
    });
    stop(&child, Signal::INT);
    assert_eq!(child.0.wait().unwrap().code(), Some(130));
}
