//! A prefix of an object store, with the threads that serve the connections.

use crate::credentials;
use crate::silence::Silence;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::signer::Signer;
use object_store::{BackoffConfig, Certificate, ClientOptions, ObjectStore, RetryConfig};
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};

/// Time limit for a new connection to an object store.
const CONNECT_LIMIT: &str = "5 seconds";
/// Repeats of a request after a passing failure, and the time until the last repeat.
const REPEATS: usize = 6;
const REPEAT_LIMIT: Duration = Duration::from_secs(10);

/// The address of a prefix in an object store, and the way to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BucketOptions {
    /// `s3://BUCKET/PREFIX`, or `file:///FOLDER`. Credentials, region and endpoint of S3 come from
    /// the environment variables that Amazon's own programs use.
    pub url: String,
    /// Settings with precedence over the environment, with the keys of the crate `object_store`,
    /// such as `aws_endpoint`.
    pub settings: Vec<(String, String)>,
}

/// The reason why an object store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address or a setting is wrong.
    #[error(transparent)]
    Options(#[from] object_store::Error),
    /// The folder of a store in files cannot be made.
    #[error(transparent)]
    Folder(io::Error),
    /// The system cannot start a thread.
    #[error("cannot start the threads for the connections")]
    Threads(#[source] io::Error),
}

/// An open prefix of an object store.
#[derive(Debug)]
pub struct Bucket {
    backend: Arc<dyn ObjectStore>,
    /// The same store, if it signs URLs.
    pub(crate) signer: Option<Arc<dyn Signer>>,
    prefix: String,
    has_metadata: bool,
    /// The runtime of all requests from any thread, since a connection exists only as long as its
    /// runtime.
    runtime: Option<Runtime>,
    pub(crate) silence: Silence,
}

impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Bucket {
    /// Prepares connections; connects when one is used. Requests are repeated for minutes, as bulk
    /// transfers need it.
    ///
    /// # Errors
    /// The address or a setting is wrong, or the folder of a store in files cannot be made.
    pub fn open(options: &BucketOptions) -> Result<Self, OpenError> {
        if let Some(folder) = options.url.strip_prefix("file://") {
            std::fs::create_dir_all(folder).map_err(OpenError::Folder)?;
            let backend = LocalFileSystem::new_with_prefix(folder)?;
            let mut bucket = Self::of(Arc::new(backend), "")?;
            bucket.has_metadata = false;
            return Ok(bucket);
        }
        let backend = s3(options, &[])?.build()?;
        Self::of(Arc::new(backend), prefix_of(&options.url))
    }

    /// As [`Self::open`], for S3 and callers that wait: a request and its repeats end within the
    /// limit.
    ///
    /// # Errors
    /// The address or a setting is wrong. An address of a folder is refused.
    pub(crate) fn open_within(options: &BucketOptions, limit: Duration) -> Result<Self, OpenError> {
        if !options.url.starts_with("s3://") {
            let message = format!("`{}` is not s3://BUCKET/PREFIX", options.url);
            let cause = object_store::Error::Generic { store: "S3", source: message.into() };
            return Err(OpenError::Options(cause));
        }
        let limits = [
            ("connect_timeout", CONNECT_LIMIT.to_owned()),
            ("timeout", format!("{} ms", limit.as_millis())),
        ];
        let repeats = RetryConfig {
            backoff: BackoffConfig { max_backoff: Duration::from_secs(2), ..Default::default() },
            max_retries: REPEATS,
            retry_timeout: REPEAT_LIMIT.min(limit),
        };
        let backend = Arc::new(s3(options, &limits)?.with_retry(repeats).build()?);
        let mut bucket = Self::of(Arc::clone(&backend) as _, prefix_of(&options.url))?;
        bucket.signer = Some(backend);
        Ok(bucket)
    }

    /// A prefix of an open store; empty for all of the store.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn of(backend: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, OpenError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("objects")
            .enable_all()
            .build()
            .map_err(OpenError::Threads)?;
        let prefix = prefix.trim_matches('/').to_owned();
        let (runtime, silence) = (Some(runtime), Silence::default());
        Ok(Self { backend, signer: None, prefix, has_metadata: true, runtime, silence })
    }

    /// The whole store, whose keys start with the prefix.
    pub fn backend(&self) -> &Arc<dyn ObjectStore> {
        &self.backend
    }

    /// The start of all keys, without a slash at its ends.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Whether the store records metadata of objects.
    pub fn has_metadata(&self) -> bool {
        self.has_metadata
    }

    /// The runtime of the connections.
    pub fn handle(&self) -> &Handle {
        self.runtime.as_ref().expect("there until it is dropped").handle()
    }

    /// Blocks until the answer is there, or its time is over (`None`).
    pub(crate) fn wait<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
        self.handle().block_on(async { tokio::time::timeout(limit, answer).await.ok() })
    }
}

/// The client of S3: given settings have precedence over limits, and these over the environment.
fn s3(
    options: &BucketOptions,
    limits: &[(&str, String)],
) -> Result<AmazonS3Builder, object_store::Error> {
    // One provider of cryptography for the whole program; an earlier call has installed the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::new().with_client_options(client_options()?);
    // The function `from_env` of the builder accepts no options of the client.
    for (name, value) in std::env::vars_os() {
        let (Ok(name), Ok(value)) = (name.into_string(), value.into_string()) else { continue };
        let key = name.starts_with("AWS_").then(|| name.to_ascii_lowercase().parse());
        if let Some(Ok(key)) = key {
            builder = builder.with_config(key, value);
        }
    }
    builder = builder.with_url(&options.url);
    let given = options.settings.iter().map(|(name, value)| (name.as_str(), value));
    for (name, value) in limits.iter().map(|(name, value)| (*name, value)).chain(given) {
        builder = builder.with_config(name.parse()?, value);
    }
    credentials::add(builder)
}

/// Options with the certificates of the Web in addition to the certificates of the system. A container
/// may lack the latter, and the client could not be made, even for an endpoint without TLS.
fn client_options() -> Result<ClientOptions, object_store::Error> {
    let mut options = ClientOptions::new();
    for certificate in webpki_root_certs::TLS_SERVER_ROOT_CERTS {
        options = options.with_root_certificate(Certificate::from_der(certificate)?);
    }
    Ok(options)
}

/// The prefix in `s3://BUCKET/PREFIX`.
fn prefix_of(url: &str) -> &str {
    url.splitn(4, '/').nth(3).unwrap_or_default()
}
