//! Parallel readers: a document is rendered once, and small documents do not wait for large ones.

use crate::world::{BASE, body};
use abreast_core::testing::HeldLog;
use abreast_core::{Change, ChangeLog, Imported, NewSet, SetId, State, SystemClock, append};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_store::SqliteLog;
use abreast_testkit::eventually;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Entries of the large set: more than in any small document.
const LARGE: usize = 5_000;

struct Slow {
    log: Arc<HeldLog>,
    large: SetId,
    publisher: Arc<Publisher>,
    _temporary: tempfile::TempDir,
}

/// A large and a small set; the test holds readers of the large set.
fn slow() -> Slow {
    let log = SqliteLog::temporary(Arc::new(SystemClock)).unwrap();
    let urls = SourceUrls::new(BASE);
    let sets = [("large", LARGE), ("small", 5)].map(|(slug, count)| {
        let id = log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).unwrap().id;
        let resource = |number| Imported {
            key: format!("f{number}"),
            state: State::default(),
            witness: Vec::new(),
        };
        log.import(id, (0..count).map(resource).collect()).unwrap();
        log.complete_import(id).unwrap();
        PublishedSet::new(id, slug, urls.set(slug))
    });
    let large = sets[0].id;
    let log = Arc::new(HeldLog::new(Arc::new(log)));
    log.hold(Some(large));
    let temporary = tempfile::tempdir().unwrap();
    let publisher =
        Publisher::new(Arc::clone(&log) as _, urls, sets, temporary.path().join("documents"));
    Slow { log, large, publisher: Arc::new(publisher.unwrap()), _temporary: temporary }
}

impl Slow {
    /// Requests a document in gzip from a separate thread, which sends the number of entries when
    /// the document is complete.
    fn ask(&self, path: &'static str) -> mpsc::Receiver<usize> {
        let (sender, answer) = mpsc::channel();
        let publisher = Arc::clone(&self.publisher);
        std::thread::spawn(move || {
            let document = publisher.document(path).unwrap();
            publisher.gzip(&document).unwrap();
            let text = String::from_utf8(body(document.plain())).unwrap();
            let _ = sender.send(text.matches("<loc>").count());
        });
        answer
    }

    fn scans(&self, wanted: usize) {
        eventually("so many scans", || self.log.scans() == wanted);
    }
}

#[test]
fn a_small_document_does_not_wait_for_large_ones() {
    let slow = slow();
    let large = slow.ask("large/resourcelist.xml");
    slow.scans(1);
    // More requests for large documents wait than reading connections exist, by every kind of wait.
    let waiting: Vec<_> = (0..20).map(|_| slow.ask("large/sitemap/1.xml")).collect();
    for path in [
        "small/resourcelist.xml",
        "small/sitemap/1.xml",
        "large/changelist.xml",
        "small/resourcelist/1.xml",
    ] {
        let answer = slow.ask(path).recv_timeout(Duration::from_secs(20));
        assert!(answer.is_ok(), "{path:?} waits for a large list");
    }
    assert!(large.try_recv().is_err(), "the large list is still being rendered");
    slow.log.hold(None);
    for answer in [large].into_iter().chain(waiting) {
        assert_eq!(answer.recv_timeout(Duration::from_secs(60)), Ok(LARGE));
    }
}

#[test]
fn a_document_that_many_ask_for_is_rendered_once() {
    let slow = slow();
    let answers: Vec<_> = (0..8).map(|_| slow.ask("large/resourcelist.xml")).collect();
    slow.scans(1);
    slow.log.hold(None);
    for answer in answers {
        assert_eq!(answer.recv_timeout(Duration::from_secs(60)), Ok(LARGE));
    }
    slow.scans(1);
}

#[test]
fn large_documents_are_rendered_one_after_the_other() {
    let slow = slow();
    let list = slow.ask("large/resourcelist.xml");
    slow.scans(1);
    let sitemap = slow.ask("large/sitemap/1.xml");
    assert!(sitemap.recv_timeout(Duration::from_millis(100)).is_err());
    assert_eq!(slow.log.scans(), 1, "the second waits before it reads the store");
    slow.log.hold(None);
    assert_eq!(list.recv_timeout(Duration::from_secs(60)), Ok(LARGE));
    assert_eq!(sitemap.recv_timeout(Duration::from_secs(60)), Ok(LARGE));
    slow.log.hold(Some(slow.large));
}

#[test]
fn a_kept_document_is_answered_without_reading_the_store() {
    let slow = slow();
    slow.log.hold(None);
    let paths = ["small/resourcelist/1.xml", "small/sitemap/1.xml"];
    for path in paths {
        assert!(slow.publisher.cached(path).is_none());
        slow.publisher.document(path).unwrap();
    }
    let reads = slow.log.shard_reads();
    for path in paths {
        assert!(slow.publisher.cached(path).is_some(), "{path:?}");
    }
    assert_eq!(slow.log.shard_reads(), reads);
    let small = slow.publisher.sets()[1].id;
    append(&*slow.log, small, vec![Change::put("new", State::default())]).unwrap();
    for path in paths {
        assert!(
            slow.publisher.cached(path).is_none(),
            "after a change of the set {path:?} is examined again"
        );
    }
}

#[test]
fn a_list_whose_part_did_not_change_is_kept() {
    let slow = slow();
    slow.log.hold(None);
    let path = "small/resourcelist/1.xml";
    let before = slow.publisher.document(path).unwrap();
    let scans = slow.log.scans();
    append(&*slow.log, slow.large, vec![Change::put("new", State::default())]).unwrap();
    assert!(Arc::ptr_eq(&before, &slow.publisher.cached(path).unwrap()));
    assert_eq!(slow.log.scans(), scans);
}
