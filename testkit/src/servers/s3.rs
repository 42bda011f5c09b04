//! A server that speaks S3, with an empty bucket.

use crate::http::unused_address;
use crate::network::Place;
use crate::{Running, eventually, provided};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::SystemTime;
use tempfile::TempDir;

/// The server accepts any signature, but one must be there.
const SIGNED: &str = "Authorization: AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                      SignedHeaders=host, Signature=0";

/// Runs moto, with reads and conditional writes that are atomic, and signed URLs that expire.
const ATOMIC: &str = include_str!("s3_server.py");

/// Moto on a free port, which is killed when the test ends.
pub struct S3Server {
    address: SocketAddr,
    running: Running,
    _log: TempDir,
}

impl S3Server {
    /// Starts the program that the environment provides, and makes a bucket named `bucket`.
    pub fn start(test: &str) -> Option<Self> {
        Self::start_in(test, None)
    }

    /// As [`Self::start`], on a machine of a network.
    pub fn start_at(test: &str, place: &Place) -> Option<Self> {
        Self::start_in(test, Some(place))
    }

    fn start_in(test: &str, place: Option<&Place>) -> Option<Self> {
        let program = provided(test, "ABREAST_TEST_S3")?;
        let mut address = unused_address();
        if let Some(place) = place {
            address = place.address(address.port());
        }
        let log = TempDir::new().unwrap();
        let path = log.path().join("log");
        let mut command = Command::new(program.with_file_name("python"));
        command.args(["-c", ATOMIC, &address.ip().to_string(), &address.port().to_string()]);
        if let Some(place) = place {
            command = place.command(&command, None);
        }
        let output = File::create(&path).unwrap();
        command.stdout(Stdio::null()).stderr(output);
        let mut running = Running::start(&mut command);
        // A server that listens may still refuse or reset its first connections.
        eventually("the S3 server answers", || {
            let ended = running.0.try_wait().unwrap();
            assert!(ended.is_none(), "{ended:?}: {}", std::fs::read_to_string(&path).unwrap());
            ask(address, "PUT", "/bucket", "").is_ok_and(|answer| answer.contains(" 200 "))
        });
        Some(Self { address, running, _log: log })
    }

    /// Where the server listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number of the server's process.
    pub fn id(&self) -> u32 {
        self.running.0.id()
    }

    /// The answer to a request with this body.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> String {
        ask(self.address, method, path, body).unwrap()
    }
}

/// Settings of a client of an S3 server at this address, as pairs of a name and a value.
pub fn settings(address: SocketAddr) -> Vec<(String, String)> {
    client(&format!("http://{address}"), "test", "test")
}

fn client(endpoint: &str, key: &str, secret: &str) -> Vec<(String, String)> {
    let settings = [
        ("aws_endpoint", endpoint),
        ("aws_allow_http", "true"),
        ("aws_access_key_id", key),
        ("aws_secret_access_key", secret),
        ("aws_region", "us-east-1"),
    ];
    settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

/// The answer of the server at an address to a request with this body.
///
/// # Errors
/// The connection fails.
pub fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\n{SIGNED}\r\nContent-Length: {}\r\n\
         \r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A place for a test in an S3 server: in the bucket of `ABREAST_TEST_S3_OTHER`, where tests leave their
/// objects, or in moto.
#[derive(Clone)]
pub struct S3Bucket {
    /// Address of the prefix, `s3://BUCKET/PREFIX`.
    pub url: String,
    /// Settings of a client, as pairs of a name and a value.
    pub settings: Vec<(String, String)>,
    _moto: Option<Arc<S3Server>>,
}

impl S3Bucket {
    /// A new prefix in the bucket.
    ///
    /// # Panics
    /// When the variable has another form than `http://KEY:SECRET@HOST:PORT/BUCKET`.
    pub fn provided(test: &str) -> Option<Self> {
        let Ok(address) = std::env::var("ABREAST_TEST_S3_OTHER") else {
            let moto = S3Server::start(test)?;
            let settings = settings(moto.address);
            return Some(Self {
                url: "s3://bucket/test".to_owned(),
                settings,
                _moto: Some(moto.into()),
            });
        };
        let parts = || {
            let (scheme, rest) = address.split_once("://")?;
            let (login, rest) = rest.split_once('@')?;
            let ((key, secret), (host, bucket)) = (login.split_once(':')?, rest.split_once('/')?);
            Some((format!("{scheme}://{host}"), key, secret, bucket))
        };
        let (endpoint, key, secret, bucket) =
            parts().expect("ABREAST_TEST_S3_OTHER is not http://KEY:SECRET@HOST:PORT/BUCKET");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos();
        let url = format!("s3://{bucket}/abreast-test-{}-{now}", std::process::id());
        Some(Self { url, settings: client(&endpoint, key, secret), _moto: None })
    }
}
