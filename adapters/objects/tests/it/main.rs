//! Contents in an object store: in memory, and in a server that speaks S3.
#![expect(clippy::unwrap_used, reason = "a test ends where its premise is broken")]

mod aged;
mod contract;
mod made;
mod moto;
mod nodes;
mod outages;
mod places;
mod proxy;
mod reading;
mod uploads;

use abreast_core::contents::{Error, ErrorKind};
use abreast_objects::object_store::memory::InMemory;
use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{ObjectStore, ObjectStoreExt as _};
use abreast_objects::{Bucket, BucketOptions, S3Contents, S3ContentsOptions};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// Bytes that differ from those of other seeds.
fn bytes_of(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|place| ((place + seed) % 251) as u8).collect()
}

fn kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Runs a request of the test itself.
fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(answer)
}

fn options(grace: Duration, answer_limit: Duration) -> S3ContentsOptions {
    let mut options = S3ContentsOptions::new(BucketOptions::default());
    (options.grace, options.answer_limit) = (grace, answer_limit);
    options
}

/// A node that uses a store.
fn node(backend: &Arc<impl ObjectStore>, options: S3ContentsOptions) -> S3Contents {
    let backend: Arc<dyn ObjectStore> = Arc::clone(backend) as _;
    S3Contents::of(Bucket::of(backend, "a/prefix").unwrap(), options)
}

/// The keys of all objects under a prefix.
fn keys(backend: &dyn ObjectStore, prefix: &str) -> Vec<String> {
    use futures_util::TryStreamExt as _;
    let objects = backend.list(Some(&Key::from(prefix)));
    let objects: Vec<_> = wait(objects.try_collect()).unwrap();
    objects.into_iter().map(|object| object.location.to_string()).collect()
}

/// The key of a content in the store in memory.
fn key_of(id: &abreast_core::ContentId) -> Key {
    let name = id.to_string();
    Key::from(format!("a/prefix/contents/{}/{name}", &name[..2]))
}

fn write(backend: &InMemory, key: &Key, bytes: Vec<u8>) {
    wait(backend.put(key, bytes.into())).unwrap();
}
