//! A copy in a bucket of an S3 server, which may also be MinIO or Ceph.

use crate::contract::{Kept, contract_with};
use crate::copy::Copy;
use crate::source::Source;
use abreast_destination::{ObjectsOptions, SinkOptions};
use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{ObjectStore as _, ObjectStoreExt as _};
use abreast_objects::{Bucket, BucketOptions};
use abreast_testkit::s3::S3Bucket;
use futures_util::TryStreamExt as _;
use std::path::Path;

#[test]
fn a_bucket_keeps_the_contract() {
    let name = "objects_in_s3::a_bucket_keeps_the_contract";
    let Some(S3Bucket { url, settings, .. }) = &S3Bucket::provided(name) else { return };
    let sink = |place: &Path| {
        let url = format!("{url}/{}", place.file_name().unwrap().to_str().unwrap());
        SinkOptions::Objects(ObjectsOptions { url, settings: settings.clone() })
    };
    contract_with(Source::new(), &sink, fetched);
}

/// The objects of a copy.
fn fetched(copy: &Copy, _: &Source) -> Kept {
    let SinkOptions::Objects(options) = &copy.options.sink else { panic!("another kind") };
    let ObjectsOptions { url, settings } = options.clone();
    let bucket = Bucket::open(&BucketOptions { url, settings }).unwrap();
    let (backend, prefix) = (bucket.backend(), Key::from(bucket.prefix()));
    bucket.handle().block_on(async {
        let mut kept = Kept::default();
        let mut objects = backend.list(Some(&prefix));
        while let Some(object) = objects.try_next().await.unwrap() {
            let body = backend.get(&object.location).await.unwrap().bytes().await.unwrap();
            let path = object.location.as_ref().strip_prefix(prefix.as_ref()).unwrap();
            kept.insert(path.to_owned(), body.to_vec());
        }
        kept
    })
}
