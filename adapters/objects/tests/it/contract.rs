//! The contract of stores of contents, run by object stores.

use crate::moto::Moto;
use crate::{node, options, wait};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore;
use abreast_core::testing::{ContentStores, content_store_contract};
use abreast_objects::object_store::memory::InMemory;
use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{ObjectStore, ObjectStoreExt as _};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// An object store, and the prefix of a node's keys.
type Prefix = (Arc<dyn ObjectStore>, String);

/// Nodes that use an object store.
struct Nodes {
    /// Makes a node of the store with this number.
    node: Box<dyn Fn(u32) -> Arc<dyn ContentStore>>,
    /// The object store with this number, and the prefix in it.
    backend: Box<dyn Fn(u32) -> Prefix>,
    grace: Duration,
    number: u32,
}

impl ContentStores for Nodes {
    fn create(&mut self) -> Arc<dyn ContentStore> {
        self.number += 1;
        (self.node)(self.number)
    }

    fn reopen(&mut self, store: Arc<dyn ContentStore>) -> Arc<dyn ContentStore> {
        drop(store);
        (self.node)(self.number)
    }

    fn share(&mut self) -> Option<Arc<dyn ContentStore>> {
        Some((self.node)(self.number))
    }

    fn damage(&mut self, id: &ContentId) {
        let (backend, prefix) = (self.backend)(self.number);
        let name = id.to_string();
        let key = Key::from(format!("{prefix}/contents/{}/{name}", &name[..2]));
        wait(async {
            let mut bytes = backend.get(&key).await.unwrap().bytes().await.unwrap().to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            backend.put(&key, bytes.into()).await.unwrap();
        });
    }

    fn pass_grace(&mut self) {
        // S3 counts times in seconds.
        std::thread::sleep(self.grace + Duration::from_millis(1_100));
    }

    fn file(&mut self, bytes: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.into()
    }
}

#[test]
fn an_object_store_in_memory_holds_the_contract() {
    let grace = Duration::from_secs(4);
    let stores: Vec<Arc<InMemory>> = (0..20).map(|_| Arc::default()).collect();
    let of_nodes = stores.clone();
    content_store_contract(&mut Nodes {
        node: Box::new(move |number| {
            let options = options(grace, Duration::from_secs(30));
            Arc::new(node(&of_nodes[number as usize], options))
        }),
        backend: Box::new(move |number| {
            (Arc::clone(&stores[number as usize]) as _, "a/prefix".to_owned())
        }),
        grace,
        number: 0,
    });
}

#[test]
fn a_bucket_in_s3_holds_the_contract() {
    let Some(moto) = Moto::start("a_bucket_in_s3_holds_the_contract") else { return };
    let moto = Arc::new(moto);
    let of_nodes = Arc::clone(&moto);
    let grace = Duration::from_secs(8);
    content_store_contract(&mut Nodes {
        node: Box::new(move |number| {
            let bucket = format!("/bucket{number}");
            assert!(of_nodes.server.ask("PUT", &bucket, "").contains(" 200 "));
            let bucket = format!("bucket{number}");
            let limit = Duration::from_secs(30);
            Arc::new(crate::moto::node_at(of_nodes.address, &bucket, grace, limit))
        }),
        backend: Box::new(move |number| {
            (Arc::new(moto.backend_of(&format!("bucket{number}"))), "a/prefix".to_owned())
        }),
        grace,
        number: 0,
    });
}
