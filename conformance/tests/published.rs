//! Documents published by our Source break no rule, in many small lists, and while it changes.
#![allow(clippy::unwrap_used)]

use abreast_core::{
    Change, ChangeLog, Imported, NewSet, PageRule, SetId, ShardRule, State, SystemClock, append,
};
use abreast_source::publish::{Body, PublishedSet, Publisher, SourceUrls};
use abreast_store::SqliteOptions;
use abreast_testkit::Random;
use abreast_testkit::http::{Request, Server, send};
use abreast_validator::{Options, Report, Severity, Share, text, validate};
use abreast_webtypes::{Digests, Timestamp};
use std::io::Write as _;
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// A Source of 200 resources in lists of 40, with Change Lists of 50, over HTTP; the resources
/// themselves are not served.
struct Served {
    log: Arc<dyn ChangeLog>,
    set: SetId,
    server: Server,
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
        let set = log
            .open_set(&NewSet { slug: "set".into(), page_rule, ..NewSet::default() })
            .unwrap()
            .id;
        let imported = |number| Imported {
            key: format!("k{number:06}"),
            state: state(number),
            witness: Vec::new(),
        };
        log.import(set, (0..200).map(imported).collect()).unwrap();
        log.complete_import(set).unwrap();
        let publisher = Arc::new(OnceLock::<Publisher>::new());
        let own = Arc::clone(&publisher);
        let server = Server::new(move |request, stream| answer(request, stream, own.wait()));
        let urls = SourceUrls::new(&server.url("/"));
        let sets = vec![PublishedSet::new(set, "set", urls.set("set"))];
        let made =
            Publisher::new(Arc::clone(&log), urls, sets, folder.path().join("documents")).unwrap();
        assert!(publisher.set(made).is_ok());
        Self { log, set, server, _folder: folder }
    }

    fn change(&self, random: &mut Random) {
        let key = format!("k{:06}", random.below(400));
        let change = if random.below(3) == 0 {
            Change::delete(key)
        } else {
            Change::put(key, state(1 + random.below(1 << 24)))
        };
        append(&*self.log, self.set, vec![change]).unwrap();
    }

    fn validate(&self) -> Report {
        let mut options = Options::new(vec![self.server.url("/set/capabilitylist.xml")]);
        options.sample = Share::Some(0);
        validate(&options, &AtomicBool::new(false))
    }
}

/// Answers with a document; the resources themselves are not served.
fn answer(request: &Request, stream: &mut TcpStream, publisher: &Publisher) -> bool {
    let Some(document) =
        request.target().strip_prefix('/').and_then(|path| publisher.document(path).ok())
    else {
        return send(stream, "404 Not Found", "", b"");
    };
    let tag = format!("\"{}\"", document.tag);
    let headers = format!("ETag: {tag}\r\nContent-Type: application/xml\r\n");
    if request.header("if-none-match") == Some(&tag) {
        return write!(stream, "HTTP/1.1 304 Not Modified\r\n{headers}\r\n").is_ok();
    }
    let bytes = match document.plain() {
        Body::Memory(bytes) => bytes.to_vec(),
        Body::File(file) => std::fs::read(file.path()).unwrap(),
    };
    send(stream, "200 OK", &headers, &bytes)
}

fn assert_clean(report: &Report) {
    let faults = report.count(Severity::Error) + report.count(Severity::Warning);
    assert_eq!(faults, 0, "{}", text(report));
}

#[test]
fn indexes_of_lists_keep_to_every_rule() {
    let source = Served::start();
    let mut random = Random::new(1);
    (0..220).for_each(|_| source.change(&mut random));
    let report = source.validate();
    assert_clean(&report);
    let count =
        |name: &str| report.documents.iter().filter(|document| document.name == name).count();
    assert_eq!((count("Resource List Index"), count("Change List Index")), (1, 1));
    assert!(count("Resource List") >= 4 && count("Change List") >= 4, "{}", text(&report));
}

#[test]
fn a_source_that_changes_all_the_time_has_no_faults() {
    let source = Served::start();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(7);
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
