//! Runs that are stopped, killed or overtaken by changes, and the runs after them.

use crate::copy::Copy;
use crate::source::Source;
use abreast_destination::{ExitCode, sync};
use abreast_testkit::documents::{BEGIN, document};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

#[test]
fn a_run_that_was_stopped_is_continued() {
    let mut source = Source::new();
    for number in 0..300 {
        source.set(&format!("/d/{number:03}"), &format!("text {number}"));
    }
    source.snapshot();
    let copy = Copy::of(source.url());
    let cancel = std::sync::Arc::new(AtomicBool::new(false));
    let seen = cancel.clone();
    source.server.handler(move |path, number| {
        if path.starts_with("/d/") && number > 100 {
            seen.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        None
    });
    let error = sync(&copy.options, &abreast_destination::Silent, &cancel).unwrap_err();
    assert_eq!(error.exit_code(), ExitCode::Cancelled);
    let kept = copy.paths().len();
    assert!(kept < 300 && copy.paths().iter().all(|path| !path.contains(".%~")), "{kept}");
    source.server.handler(|_, _| None);
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), copy.paths().len()), (0, 300));
    // Nothing that was kept is fetched again.
    let again = source.server.take_log().iter().filter(|path| path.starts_with("/d/")).count();
    assert!(again <= 300 - kept, "{again} {kept}");
}

#[test]
fn resources_that_change_during_a_run_are_checked_again() {
    let mut source = Source::new();
    source.set("/a", "one");
    source.set("/b", "two");
    source.snapshot();
    let copy = Copy::of(source.url());
    // After the lists were read, one resource changes and another goes.
    let later = {
        let mut later = source.changes.clone();
        later.push_str(&source.entry(
            "/a",
            b"newer",
            " change=\"updated\" datetime=\"2026-01-01T00:10:00Z\"",
        ));
        later.push_str(&format!(
            "<url><loc>{}</loc><rs:md change=\"deleted\" datetime=\"2026-01-01T00:10:01Z\"/></url>",
            source.server.url("/b")
        ));
        document("urlset", &format!("capability=\"changelist\" from=\"{BEGIN}\""), &later)
    };
    let server = source.server.clone();
    let armed = AtomicBool::new(true);
    source.server.handler(move |path, _| {
        if (path == "/a" || path == "/b") && armed.swap(false, std::sync::atomic::Ordering::Relaxed)
        {
            server.body("/a", "newer");
            server.remove("/b");
            server.body("/changelist.xml", later.clone());
        }
        None
    });
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.codes.len(), ran.summary().failed), (0, 0, 0), "{:?}", ran.codes);
    assert_eq!(copy.texts(), BTreeMap::from([("a".to_owned(), "newer".to_owned())]));
}

#[test]
fn the_next_run_continues_after_a_kill() {
    let mut source = Source::new();
    source.set("/d/a", "one");
    source.set("/d/b", "two");
    source.snapshot();
    let copy = Copy::of(source.url());
    // Both are planned, neither is had.
    source.server.remove("/d/a");
    source.server.remove("/d/b");
    assert_eq!(copy.try_run().exit(), 3);
    assert!(copy.paths().is_empty());
    source.server.body("/d/a", "one");
    source.server.body("/d/b", "two");
    // One file had its final name when the process died, of the other only the beginning was
    // written.
    std::fs::write(copy.folder().join("a"), "one").unwrap();
    let leftover = {
        use std::hash::{DefaultHasher, Hash as _, Hasher as _};
        let mut hasher = DefaultHasher::new();
        source.server.url("/d/b").hash(&mut hasher);
        format!(".%~{:016x}", hasher.finish())
    };
    std::fs::write(copy.folder().join(leftover), "tw").unwrap();
    source.server.take_log();
    let ran = copy.try_run();
    assert_eq!(ran.exit(), 0, "{:?}", ran.codes);
    assert_eq!(copy.paths(), ["a", "b"]);
    assert_eq!(source.server.take_log(), ["/changelist.xml", "/d/b"]);
}

#[test]
fn files_damaged_by_a_power_loss_are_fetched_again() {
    let mut source = Source::new();
    source.set("/a", "good");
    source.set("/b", "fine");
    source.snapshot();
    let copy = Copy::of(source.url());
    copy.run();
    let path = copy.folder().join("a");
    let before = std::fs::metadata(&path).unwrap().modified().unwrap();
    std::fs::write(&path, "\0\0\0\0").unwrap();
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(before).unwrap();
    let mirror =
        abreast_store::mirror::Mirror::open(&copy.folder().join(".abreast/mirror.db")).unwrap();
    mirror.set_meta("written", Some("0 another-life-of-this-machine")).unwrap();
    drop(mirror);
    let ran = copy.try_run();
    assert!(ran.codes.contains(&"settle.recheck".to_owned()), "{:?}", ran.codes);
    assert_eq!((ran.exit(), copy.read("a").as_deref()), (0, Some("good")));
    let ran = copy.try_run();
    assert_eq!((ran.codes.len(), ran.summary().requests), (0, 1));
}

#[test]
fn a_silent_server_does_not_keep_a_run_from_stopping() {
    // Takes connections, never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let copy = Copy::of(format!("http://{}/caps.xml", silent.local_addr().unwrap()));
    let cancel = AtomicBool::new(false);
    let began = std::time::Instant::now();
    let error = std::thread::scope(|scope| {
        let run = scope.spawn(|| sync(&copy.options, &abreast_destination::Silent, &cancel));
        let _connection = silent.accept().unwrap();
        cancel.store(true, std::sync::atomic::Ordering::Relaxed);
        run.join().unwrap().unwrap_err()
    });
    assert_eq!(error.exit_code(), ExitCode::Cancelled);
    assert!(began.elapsed() < Duration::from_secs(20));
}
