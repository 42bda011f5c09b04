//! Places in an S3 server, which may also be MinIO or Ceph, and what nodes need of the server.

use abreast_objects::object_store::ObjectStore;
use abreast_objects::object_store::prefix::PrefixStore;
use abreast_objects::{Bucket, BucketOptions, check_bucket};
use abreast_testkit::s3::S3Bucket;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Places(S3Bucket);

impl Places {
    pub(crate) fn provided(test: &str) -> Option<Self> {
        S3Bucket::provided(test).map(Self)
    }

    /// A place in the bucket, with more of its address.
    pub(crate) fn options_of(&self, number: u32, more: &str) -> BucketOptions {
        let S3Bucket { url, settings, .. } = self.0.clone();
        BucketOptions { url: format!("{url}/{number}{more}"), settings }
    }

    /// The objects of a place.
    pub(crate) fn backend_of(&self, number: u32) -> Arc<dyn ObjectStore> {
        let bucket = Bucket::open(&self.options_of(number, "")).unwrap();
        Arc::new(PrefixStore::new(Arc::clone(bucket.backend()), bucket.prefix()))
    }
}

#[test]
fn an_s3_server_has_what_nodes_need() {
    let Some(places) = Places::provided("an_s3_server_has_what_nodes_need") else { return };
    check_bucket(&places.options_of(0, ""), Duration::from_secs(10)).unwrap();
}
