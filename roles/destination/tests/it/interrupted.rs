//! Runs that are stopped, killed or overtaken by changes, and the runs after them.

use crate::copy::Copy;
use crate::source::Source;
use abreast_destination::{ExitCode, NQuadsOptions, SinkOptions, WarcOptions, sync};
use abreast_testkit::documents::{BEGIN, document};
use abreast_testkit::pages::Answer;
use abreast_warc::{Kind, read_record, skip_http_head};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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
    // Stored resources are not fetched again.
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
    // Two resources are planned, and none can be fetched.
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

/// A description of an entity in as many bytes, and a little more.
fn description(uri: &str, least: usize) -> Vec<u8> {
    let mut text = String::new();
    for number in 0.. {
        if text.len() > least {
            break;
        }
        text.push_str(&format!("<{uri}> <http://ns.example/p> \"{number:0200}\" .\n"));
    }
    text.into_bytes()
}

#[test]
fn a_continued_file_has_the_head_of_its_first_part() {
    let sinks = [
        ("folder", SinkOptions::Folder),
        ("warc", SinkOptions::Warc(WarcOptions::default())),
        ("nquads", SinkOptions::NQuads(NQuadsOptions::default())),
    ];
    // Killed between the two answers, or cut off within one run.
    for ((what, sink), killed) in
        sinks.into_iter().flat_map(|sink| [true, false].map(|killed| (sink.clone(), killed)))
    {
        let source = Source::new();
        let body = description(&source.server.url("/large"), 9 << 20);
        let entry = format!("<url><loc>{}</loc></url>", source.server.url("/large"));
        let list = format!("capability=\"resourcelist\" at=\"{}\"", source.now());
        source.server.body("/resourcelist.xml", document("urlset", &list, &entry));
        let mut copy = Copy::kept_in(&source, |_| sink);
        copy.options.republish = what == "folder";
        copy.options.net.retries = u32::from(!killed);
        let half = 9 << 20;
        let answered = AtomicUsize::new(0);
        let whole = body.clone();
        source.server.handler(move |path, _| {
            if path != "/large" {
                return None;
            }
            let (mut raw, bytes) = if answered.fetch_add(1, Ordering::Relaxed) == 0 {
                let of_whole = "Last-Modified: Sat, 01 Jun 2024 00:00:00 GMT\r\n\
                                Content-Type: application/n-triples\r\nX-Made-By: hand\r\n";
                let length = whole.len();
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n{of_whole}");
                (head, &whole[..half])
            } else {
                let (end, length) = (whole.len() - 1, whole.len());
                let range = format!("Content-Range: bytes {half}-{end}/{length}\r\n");
                (format!("HTTP/1.1 206 Partial Content\r\n{range}"), &whole[half..])
            };
            raw.push_str("ETag: \"v1\"\r\n\r\n");
            Some(Answer::raw([raw.as_bytes(), bytes].concat()))
        });
        let mut ran = copy.try_run();
        if killed {
            assert_eq!(ran.exit(), 3, "{what}: {:?}", ran.codes);
            ran = copy.try_run();
        }
        assert_eq!(ran.exit(), 0, "{what}, killed: {killed}: {:?}", ran.reported);
        match what {
            "folder" => {
                let path = copy.folder().join("large");
                let since = std::fs::metadata(&path).unwrap().modified().unwrap();
                let since = since.duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
                assert_eq!(since, 1_717_200_000, "killed: {killed}");
                assert!(std::fs::read(path).unwrap() == body);
                let links = copy.read(".large.links.json").unwrap();
                assert!(links.contains("application/n-triples"), "killed: {killed}: {links}");
            }
            "warc" => {
                let segment = std::fs::read_dir(copy.folder().join("archive")).unwrap().next();
                let bytes = std::fs::read(segment.unwrap().unwrap().path()).unwrap();
                let (mut input, mut heads) = (bytes.as_slice(), Vec::new());
                while let Some(mut read) = read_record(&mut input).unwrap() {
                    if read.head.kind() == Some(Kind::Response) {
                        heads.extend(skip_http_head(&mut read.block).unwrap());
                    }
                    read.block.finish().unwrap();
                }
                let head = String::from_utf8(heads).unwrap().to_ascii_lowercase();
                for field in ["last-modified: sat", "content-type: application", "x-made-by: hand"]
                {
                    assert!(head.contains(field), "killed: {killed}: {head}");
                }
                assert!(!head.contains("content-range"), "{head}");
            }
            _ => {
                let lines = body.split_inclusive(|byte| *byte == b'\n').count();
                assert_eq!(crate::rdf::quads(copy.folder()).len(), lines, "{what}");
            }
        }
    }
}
