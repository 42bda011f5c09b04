//! Made files in an object store: the contract, and a store that is out of reach.

use crate::places::Places;
use crate::{kind, wait};
use abreast_core::contents::made::{MadeFile, MadeStore};
use abreast_core::contents::{ErrorKind, address_of};
use abreast_core::testing::{MadeStores, made_store_contract};
use abreast_objects::object_store::memory::InMemory;
use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{ObjectStore, ObjectStoreExt as _};
use abreast_objects::{Bucket, BucketOptions, OpenError, S3Made, S3MadeOptions};
use abreast_testkit::s3::settings;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Nodes that use the bucket with the newest number.
struct Nodes<'a> {
    node: &'a dyn Fn(u32) -> S3Made,
    backend: &'a dyn Fn(u32) -> Arc<dyn ObjectStore>,
    number: u32,
}

impl MadeStores for Nodes<'_> {
    fn create(&mut self) -> Arc<dyn MadeStore> {
        self.number += 1;
        self.share()
    }

    fn share(&mut self) -> Arc<dyn MadeStore> {
        Arc::new((self.node)(self.number))
    }

    fn damage(&mut self, group: &str, name: &str) {
        let backend = (self.backend)(self.number);
        let key = Key::from(format!("a/prefix/made/{group}/files/{name}"));
        wait(async {
            let mut bytes = backend.get(&key).await.unwrap().bytes().await.unwrap().to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            backend.put(&key, bytes.into()).await.unwrap();
        });
    }
}

fn at(address: SocketAddr, bucket: &str, limit: Duration) -> S3Made {
    let url = format!("s3://{bucket}/a/prefix");
    let mut options = S3MadeOptions::new(BucketOptions { url, settings: settings(address) });
    options.answer_limit = limit;
    S3Made::open(options).unwrap()
}

#[test]
fn made_files_in_memory_hold_the_contract() {
    let stores: Vec<Arc<InMemory>> = (0..20).map(|_| Arc::default()).collect();
    let backend = |number: u32| Arc::clone(&stores[number as usize]) as Arc<dyn ObjectStore>;
    let node = |number| {
        let options = S3MadeOptions::new(BucketOptions::default());
        S3Made::of(Bucket::of(backend(number), "a/prefix").unwrap(), options)
    };
    made_store_contract(&mut Nodes { node: &node, backend: &backend, number: 0 });
}

#[test]
fn made_files_in_s3_hold_the_contract() {
    let Some(places) = Places::provided("made_files_in_s3_hold_the_contract") else { return };
    let backend = |number| places.backend_of(number);
    let node =
        |number| S3Made::open(S3MadeOptions::new(places.options_of(number, "/a/prefix"))).unwrap();
    made_store_contract(&mut Nodes { node: &node, backend: &backend, number: 0 });
}

#[test]
fn a_silent_store_of_made_files_is_busy_within_the_limit() {
    let server = abreast_testkit::http::Server::raw(|mut stream| {
        let _ = std::io::Read::read_to_end(&mut stream, &mut Vec::new());
    });
    let limit = Duration::from_millis(500);
    let made = at(server.address(), "bucket", limit);
    let file = MadeFile { name: "ab/x".to_owned(), length: 1, id: address_of(b"x") };
    let large = vec![1; 9 << 20];
    let large_file = MadeFile { name: "ab/y".to_owned(), length: 9 << 20, id: address_of(&large) };
    let calls: [(&str, &dyn Fn() -> Option<ErrorKind>); 7] = [
        ("record", &|| kind(made.record("group", None))),
        ("replace", &|| kind(made.replace_record("group", b"x", Some("\"1\"")))),
        ("put", &|| kind(made.put("group", &file, &mut &b"x"[..]))),
        ("put large", &|| kind(made.put("group", &large_file, &mut large.as_slice()))),
        ("fetch", &|| kind(made.fetch("group", &file, &mut Vec::new()))),
        ("remove", &|| kind(made.remove("group", "ab/x"))),
        ("visit", &|| kind(made.visit("group", &mut |_, _| {}))),
    ];
    for (call, make) in calls {
        let begun = Instant::now();
        assert_eq!(make(), Some(ErrorKind::Busy), "{call}");
        assert!(begun.elapsed() < limit + Duration::from_secs(2), "{call}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_folder_is_no_store_of_made_files() {
    let bucket = BucketOptions { url: "file:///tmp/x".to_owned(), settings: Vec::new() };
    let opened = S3Made::open(S3MadeOptions::new(bucket));
    assert!(matches!(opened, Err(OpenError::Options(_))), "{opened:?}");
}
