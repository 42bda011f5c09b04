//! The contract of stores of contents, run by object stores.

use crate::aged::Aged;
use crate::places::Places;
use crate::{key_of, node, options, wait};
use abreast_core::ContentId;
use abreast_core::contents::ContentStore;
use abreast_core::testing::{ContentStores, content_store_contract};
use abreast_objects::object_store::memory::InMemory;
use abreast_objects::object_store::{ObjectStore, ObjectStoreExt as _};
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

const GRACE: Duration = Duration::from_secs(3_600);

/// Nodes that use an object store.
struct Nodes<'t> {
    /// Makes an empty object store.
    create: Box<dyn FnMut() -> Arc<dyn ObjectStore> + 't>,
    /// The store of the test that runs.
    backend: Option<Aged>,
}

impl<'t> Nodes<'t> {
    fn new(create: impl FnMut() -> Arc<dyn ObjectStore> + 't) -> Self {
        Self { create: Box::new(create), backend: None }
    }

    fn backend(&self) -> &Aged {
        self.backend.as_ref().unwrap()
    }

    fn node(&self) -> Arc<dyn ContentStore> {
        let backend = Arc::new(self.backend().clone());
        Arc::new(node(&backend, options(GRACE, Duration::from_secs(30))))
    }
}

impl ContentStores for Nodes<'_> {
    fn create(&mut self) -> Arc<dyn ContentStore> {
        self.backend = Some(Aged::new((self.create)(), GRACE));
        self.node()
    }

    fn reopen(&mut self, store: Arc<dyn ContentStore>) -> Arc<dyn ContentStore> {
        drop(store);
        self.node()
    }

    fn share(&mut self) -> Option<Arc<dyn ContentStore>> {
        Some(self.node())
    }

    fn damage(&mut self, id: &ContentId) {
        let (backend, key) = (self.backend(), key_of(id));
        wait(async {
            let mut bytes = backend.get(&key).await.unwrap().bytes().await.unwrap().to_vec();
            *bytes.last_mut().unwrap() ^= 1;
            backend.put(&key, bytes.into()).await.unwrap();
        });
    }

    fn pass_grace(&mut self) {
        self.backend().pass();
    }

    fn file(&mut self, bytes: &[u8]) -> OwnedFd {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.into()
    }
}

#[test]
fn an_object_store_in_memory_holds_the_contract() {
    content_store_contract(&mut Nodes::new(|| Arc::new(InMemory::new())));
}

#[test]
fn a_bucket_in_s3_holds_the_contract() {
    let Some(places) = Places::provided("a_bucket_in_s3_holds_the_contract") else { return };
    let mut number = 0;
    content_store_contract(&mut Nodes::new(|| {
        number += 1;
        places.backend_of(number)
    }));
}
