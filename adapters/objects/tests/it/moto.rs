//! A server that speaks S3, on a free port of this machine.

use abreast_core::contents::ContentStore as _;
use abreast_objects::object_store::ObjectStore;
use abreast_objects::object_store::aws::AmazonS3Builder;
use abreast_objects::{BucketOptions, S3Contents, S3ContentsOptions};
use abreast_testkit::{Running, eventually};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Any signature is accepted, but one must be there.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0\r\n";

pub(crate) struct Moto {
    pub(crate) address: SocketAddr,
    _running: Running,
}

impl Moto {
    /// Starts the server, with an empty bucket named `bucket`.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let program = abreast_testkit::provided(test, "ABREAST_TEST_S3")?;
        let address = abreast_testkit::http::unused_address();
        let mut command = Command::new(program);
        command.args(["-H", "127.0.0.1", "-p", &address.port().to_string()]);
        let running = Running::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
        eventually("moto listens", || TcpStream::connect(address).is_ok());
        let moto = Self { address, _running: running };
        assert!(moto.ask("PUT /bucket").starts_with("HTTP/1.1 200"));
        Some(moto)
    }

    /// The answer to a request without a body.
    pub(crate) fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        write!(
            stream,
            "{request} HTTP/1.1\r\nHost: {}\r\n{SIGNED}Content-Length: 0\r\nConnection: close\r\n\r\n",
            self.address
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A node that uses the bucket.
    pub(crate) fn node(&self, grace: Duration) -> S3Contents {
        node_at(self.address, "bucket", grace, Duration::from_secs(30))
    }

    /// The bucket itself.
    pub(crate) fn backend(&self) -> impl ObjectStore + use<> {
        self.backend_of("bucket")
    }

    /// A bucket with this name.
    pub(crate) fn backend_of(&self, bucket: &str) -> impl ObjectStore + use<> {
        let settings = settings(self.address);
        let mut builder = AmazonS3Builder::new().with_url(format!("s3://{bucket}"));
        for (name, value) in settings {
            builder = builder.with_config(name.parse().unwrap(), value);
        }
        builder.build().unwrap()
    }

    /// Whether the bucket has uploads that did not end.
    pub(crate) fn has_uploads(&self) -> bool {
        self.ask("GET /bucket?uploads").contains("<UploadId>")
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

pub(crate) fn settings(address: SocketAddr) -> Vec<(String, String)> {
    let endpoint = format!("http://{address}");
    [
        ("aws_endpoint", endpoint.as_str()),
        ("aws_allow_http", "true"),
        ("aws_access_key_id", "test"),
        ("aws_secret_access_key", "test"),
        ("aws_region", "us-east-1"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec()
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
