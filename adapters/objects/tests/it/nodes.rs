//! Several nodes put and remove the same contents.

use crate::aged::Aged;
use crate::moto::Moto;
use crate::{bytes_of, key_of, keys, kind, node, options, wait, write};
use abreast_core::contents::{ContentStore as _, ErrorKind, address_of};
use abreast_objects::S3ContentsOptions;
use abreast_objects::object_store::ObjectStoreExt as _;
use abreast_objects::object_store::memory::InMemory;
use abreast_objects::object_store::path::Path as Key;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Contents are old at once.
fn no_grace() -> S3ContentsOptions {
    options(Duration::ZERO, Duration::from_millis(300))
}

fn mark_of(id: &abreast_core::ContentId) -> Key {
    Key::from(format!("a/prefix/contents-removals/{id}"))
}

#[test]
fn two_nodes_put_the_same_bytes_at_once() {
    let Some(moto) = Moto::start("two_nodes_put_the_same_bytes_at_once") else { return };
    let nodes = [(); 4].map(|()| moto.node(Duration::from_secs(3_600)));
    for length in [1, 70_000, 20 << 20] {
        let bytes = bytes_of(length, 1);
        thread::scope(|scope| {
            for node in &nodes {
                scope.spawn(|| {
                    let pin = node.put_bytes(&bytes).unwrap();
                    node.sync().unwrap();
                    assert!(node.is_whole(&pin.id()).unwrap());
                });
            }
        });
    }
    assert_eq!(keys(&moto.backend(), "a/prefix").len(), 3, "each content is one object");
    assert!(!moto.has_uploads());
}

#[test]
fn a_content_that_is_renewed_during_its_removal_stays() {
    let grace = Duration::from_secs(3_600);
    let backend = Arc::new(Aged::new(Arc::new(InMemory::new()), grace));
    let [one, other] = [(); 2].map(|()| node(&backend, options(grace, Duration::from_secs(5))));
    for length in [10, 100_000] {
        let bytes = bytes_of(length, 2);
        let id = one.put_bytes(&bytes).unwrap().id();
        backend.pass();
        let mut needed = || {
            drop(other.put_bytes(&bytes).unwrap());
            false
        };
        assert!(!one.remove_unless(&id, &mut needed).unwrap());
        assert!(one.is_whole(&id).unwrap());
        assert!(keys(&*backend, "a/prefix/contents-removals").is_empty(), "the mark is gone");
    }
}

#[test]
fn a_sync_waits_for_the_removals_of_other_nodes() {
    let backend: Arc<InMemory> = Arc::default();
    let contents = node(&backend, options(Duration::from_secs(60), Duration::from_secs(5)));
    let pin = contents.put_bytes(b"kept").unwrap();
    let mark = mark_of(&pin.id());
    write(&backend, &mark, Vec::new());
    write(&backend, &mark_of(&address_of(b"other")), Vec::new());
    let begun = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(500));
            wait(backend.delete(&mark)).unwrap();
        });
        contents.sync().unwrap();
    });
    assert!(begun.elapsed() >= Duration::from_millis(500));
    write(&backend, &mark, Vec::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            wait(backend.delete(&key_of(&pin.id()))).unwrap();
            wait(backend.delete(&mark)).unwrap();
        });
        let error = contents.sync().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy, "no row may refer to it");
        assert!(error.to_string().contains("help: keep it again"), "{error}");
    });
    let _pin = contents.put_bytes(b"kept").unwrap();
    contents.sync().unwrap();
}

#[test]
fn the_mark_of_a_killed_node_delays_a_sync_once() {
    let backend: Arc<InMemory> = Arc::default();
    let limit = Duration::from_millis(300);
    let contents = node(&backend, options(Duration::from_secs(60), limit));
    let pin = contents.put_bytes(b"kept").unwrap();
    write(&backend, &mark_of(&pin.id()), Vec::new());
    let begun = Instant::now();
    contents.sync().unwrap();
    assert!(begun.elapsed() >= 3 * limit, "a removal may have taken this long");
    assert!(keys(&*backend, "a/prefix/contents-removals").is_empty());
    let begun = Instant::now();
    contents.sync().unwrap();
    assert!(begun.elapsed() < limit);
}

#[test]
fn a_removal_leaves_neither_marks_nor_copies() {
    let backend: Arc<InMemory> = Arc::default();
    let contents = node(&backend, no_grace());
    for length in [0, 1, 70_000, 10 << 20] {
        let id = contents.put_bytes(&bytes_of(length, 3)).unwrap().id();
        // A node that was killed while it renewed the content.
        write(&backend, &Key::from(format!("a/prefix/contents-renewals/{id}")), vec![1]);
        drop(contents.hold(&id).unwrap());
        assert!(contents.remove(&id).unwrap());
        assert_eq!(keys(&*backend, "a"), Vec::<String>::new());
    }
}

#[test]
fn a_content_that_is_removed_while_it_is_held_is_not_held() {
    let backend: Arc<InMemory> = Arc::default();
    let contents = node(&backend, no_grace());
    let id = contents.put_bytes(b"x").unwrap().id();
    wait(backend.delete(&key_of(&id))).unwrap();
    assert!(contents.hold(&id).unwrap().is_none());
    assert_eq!(kind(contents.open_read(&id)), Some(ErrorKind::NotFound));
}
