//! A server that speaks S3, on a free port of this machine.

use abreast_core::contents::ContentStore as _;
use abreast_objects::object_store::ObjectStore;
use abreast_objects::{Bucket, BucketOptions, S3Contents, S3ContentsOptions};
use abreast_testkit::s3::{S3Server, settings};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub(crate) struct Moto {
    pub(crate) address: SocketAddr,
    pub(crate) server: S3Server,
}

impl Moto {
    /// Starts the server, with an empty bucket named `bucket`.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let server = S3Server::start(test)?;
        Some(Self { address: server.address(), server })
    }

    /// A node that uses the bucket.
    pub(crate) fn node(&self, grace: Duration) -> S3Contents {
        node_at(self.address, "bucket", grace, Duration::from_secs(30))
    }

    /// The bucket itself.
    pub(crate) fn backend(&self) -> Arc<dyn ObjectStore> {
        self.backend_of("bucket")
    }

    /// A bucket with this name.
    pub(crate) fn backend_of(&self, bucket: &str) -> Arc<dyn ObjectStore> {
        let (url, settings) = (format!("s3://{bucket}"), settings(self.address));
        Arc::clone(Bucket::open(&BucketOptions { url, settings }).unwrap().backend())
    }

    /// Whether the bucket has uploads that did not end.
    pub(crate) fn has_uploads(&self) -> bool {
        self.server.ask("GET", "/bucket?uploads", "").contains("<UploadId>")
    }
}

/// A node that uses a bucket behind this address.
pub(crate) fn node_at(
    address: SocketAddr,
    bucket: &str,
    grace: Duration,
    answer_limit: Duration,
) -> S3Contents {
    let url = format!("s3://{bucket}/a/prefix");
    let mut options = S3ContentsOptions::new(BucketOptions { url, settings: settings(address) });
    (options.grace, options.answer_limit) = (grace, answer_limit);
    S3Contents::open(options).unwrap()
}

#[test]
fn contents_are_listed_over_several_pages() {
    use abreast_objects::object_store::{ObjectStoreExt as _, path::Path as Key};
    const OBJECTS: usize = 1_050;
    let Some(moto) = Moto::start("contents_are_listed_over_several_pages") else { return };
    let contents = moto.node(Duration::from_secs(60));
    let backend = moto.backend();
    super::wait(async {
        for number in 0..OBJECTS {
            let key = Key::from(format!("a/prefix/contents/ab/ab{number:062x}"));
            backend.put(&key, vec![1].into()).await.unwrap();
        }
        let other = Key::from("a/prefix/contents/ab/a note");
        backend.put(&other, vec![1].into()).await.unwrap();
    });
    let mut ids = Vec::new();
    let mut visit = |id| {
        ids.push(id);
        std::ops::ControlFlow::Continue(())
    };
    contents.visit(0xab, &mut visit).unwrap();
    assert!(ids.len() == OBJECTS && ids.is_sorted(), "other objects are ignored");
    contents.visit(0xac, &mut |_| panic!("it has no object")).unwrap();
}
