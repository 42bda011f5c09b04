//! Does what our Source publishes keep to every rule, in many small lists, and while it changes?
#![allow(clippy::unwrap_used)]

use abreast_core::{Change, ChangeLog, Imported, NewSet, PageRule, SetId, ShardRule, State, SystemClock, append};
use abreast_source::publish::{Body, PublishedSet, Publisher, SourceUrls};
use abreast_store::SqliteOptions;
use abreast_validator::{Options, Report, Severity, Share, text, validate};
use abreast_webtypes::{Digests, Timestamp};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A Source of 200 resources in lists of 40, with Change Lists of 50, over HTTP; the resources themselves are not served.
struct Served {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    base: String,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

fn state(content: u64) -> State {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&content.to_le_bytes());
    State {
        modified: Timestamp::from_seconds(1_700_000_000),
        length: Some(content),
        media_type: Some("text/plain".into()),
        digests: Digests { md5: Some(md5), ..Digests::default() },
        ..State::default()
    }
}

impl Served {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let log = SqliteOptions::default()
            .with_shard_rule(ShardRule { resources: 40, bytes: 36_000_000 })
            .open(&folder.path().join("source.db"), Arc::new(SystemClock))
            .unwrap();
        let log: Arc<dyn ChangeLog> = Arc::new(log);
        let page_rule = PageRule { changes: 50, ..PageRule::default() };
        let set = log.open_set(&NewSet { slug: "set".into(), page_rule, ..NewSet::default() }).unwrap().id;
        let imported = |number| Imported { key: format!("k{number:06}"), state: state(number), witness: Vec::new() };
        log.import(set, (0..200).map(imported).collect()).unwrap();
        log.complete_import(set).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let base = format!("http://{}/", listener.local_addr().unwrap());
        let urls = SourceUrls::new(&base);
        let sets = vec![PublishedSet::new(set, "set", urls.set("set"))];
        let publisher = Publisher::new(Arc::clone(&log), urls, sets, folder.path().join("documents")).unwrap();
        let (publisher, stop) = (Arc::new(publisher), Arc::new(AtomicBool::new(false)));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let publisher = Arc::clone(&publisher);
                std::thread::spawn(move || answer(&stream.unwrap(), &publisher));
            }
        });
        Self { log, set, base, stop, thread: Some(thread), _folder: folder }
    }

    fn change(&self, random: &mut u64) {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = format!("k{:06}", (*random >> 33) % 400);
        let change = if (*random >> 20).is_multiple_of(3) {
            Change::delete(key)
        } else {
            Change::put(key, state((*random >> 40) + 1))
        };
        append(&*self.log, self.set, vec![change]).unwrap();
    }

    fn validate(&self) -> Report {
        let mut options = Options::new(vec![self.base.clone() + "set/capabilitylist.xml"]);
        options.sample = Share::Some(0);
        validate(&options, &AtomicBool::new(false))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.base.trim_start_matches("http://").trim_end_matches('/'));
        let _ = self.thread.take().unwrap().join();
    }
}

fn answer(stream: &TcpStream, publisher: &Publisher) {
    let mut input = BufReader::new(stream);
    loop {
        let (mut path, mut condition, mut line) = (String::new(), String::new(), String::new());
        loop {
            line.clear();
            if input.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(rest) = line.strip_prefix("GET ") {
                rest.split(' ').next().unwrap().clone_into(&mut path);
            } else if let Some(tag) = line.to_ascii_lowercase().strip_prefix("if-none-match: ") {
                tag.trim().clone_into(&mut condition);
            } else if line.trim().is_empty() {
                break;
            }
        }
        let document = path.strip_prefix('/').and_then(|path| publisher.document(path).ok());
        let mut out = Vec::new();
        match document {
            None => out.extend_from_slice(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
            Some(document) => {
                let tag = format!("\"{}\"", document.tag);
                let bytes = match document.plain() {
                    Body::Memory(bytes) => bytes.to_vec(),
                    Body::File(file) => std::fs::read(file.path()).unwrap(),
                };
                let (status, body) = if condition == tag.to_ascii_lowercase() {
                    ("304 Not Modified", Vec::new())
                } else {
                    ("200 OK", bytes)
                };
                write!(out, "HTTP/1.1 {status}\r\nETag: {tag}\r\nContent-Type: application/xml\r\n").unwrap();
                if status.starts_with("200") {
                    write!(out, "Content-Length: {}\r\n", body.len()).unwrap();
                }
                out.extend_from_slice(b"\r\n");
                out.extend_from_slice(&body);
            }
        }
        if (&mut &*stream).write_all(&out).is_err() {
            return;
        }
    }
}

fn assert_clean(report: &Report) {
    let faults = report.count(Severity::Error) + report.count(Severity::Warning);
    assert_eq!(faults, 0, "{}", text(report));
}

#[test]
fn indexes_of_lists_keep_to_every_rule() {
    let source = Served::start();
    let mut random = 1;
    (0..220).for_each(|_| source.change(&mut random));
    let report = source.validate();
    assert_clean(&report);
    let count = |name: &str| report.documents.iter().filter(|document| document.name == name).count();
    assert_eq!((count("Resource List Index"), count("Change List Index")), (1, 1));
    assert!(count("Resource List") >= 4 && count("Change List") >= 4, "{}", text(&report));
}

#[test]
fn a_source_that_changes_all_the_time_has_no_faults() {
    let source = Served::start();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = 7;
            while !done.load(Ordering::Relaxed) {
                source.change(&mut random);
                std::thread::yield_now();
            }
        });
        let reports: Vec<_> = (0..8).map(|_| source.validate()).collect();
        done.store(true, Ordering::Relaxed);
        reports.iter().for_each(assert_clean);
        assert!(reports.iter().all(|report| report.read() > 8));
    });
}
