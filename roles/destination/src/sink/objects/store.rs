//! The object store: keys and metadata of objects, and its failures.

use crate::copy::path_map::{Form, NameRules, PathMap};
use crate::report::error::{Error, ExitCode};
use crate::report::failure::Failure;
use crate::report::sinks::ObjectsOptions;
use crate::request::verify::Hasher;
use crate::sink::Body;
use abreast_objects::object_store::path::Path as Key;
use abreast_objects::object_store::{
    self, Attribute, Attributes, ObjectStore, ObjectStoreExt as _,
};
use abreast_objects::{Bucket, BucketOptions, OpenError};
use abreast_store::mirror::Row;
use abreast_webtypes::Digests;
use futures_util::TryStreamExt as _;
use tokio::runtime::Handle;

/// Maximum length of a key in S3, in bytes.
const KEY_BYTES_MAX: usize = 1_024;
/// Keys of the metadata of an object.
pub(super) const URI: &str = "abreast-uri";
pub(super) const DIGESTS: &str = "abreast-hash";
/// Maximum length of a metadata value, in bytes; S3 allows 2 KiB for all metadata.
const METADATA_MAX: usize = 1_500;
/// The rules for keys: case-sensitive, ASCII text without control characters.
pub(crate) const KEY_RULES: NameRules =
    NameRules { folds_case: false, ascii_only: true, no_controls: true };

/// An open object store.
#[derive(Debug)]
pub(super) struct Store {
    bucket: Bucket,
    map: PathMap,
}

impl Store {
    pub(super) fn open(options: &ObjectsOptions, map: PathMap) -> Result<Self, Error> {
        let shown = || abreast_webtypes::without_login(&options.url);
        let refuse = |cause: OpenError| match cause {
            OpenError::Options(cause) => {
                let message = format!("cannot use {}: {cause}", shown());
                Error::new("objects.url", ExitCode::Usage, message).with_help(
                    "expected s3://BUCKET/PREFIX with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION in the environment, or file:///FOLDER",
                )
            }
            OpenError::Folder(cause) => {
                let message = format!("cannot use {}: {cause}", shown());
                Error::new("io", ExitCode::Io, message).with_cause(cause)
            }
            OpenError::Threads(cause) => {
                Error::new("io", ExitCode::Io, "cannot start the network runtime").with_cause(cause)
            }
        };
        let (url, settings) = (options.url.clone(), options.settings.clone());
        let bucket = Bucket::open(&BucketOptions { url, settings }).map_err(refuse)?;
        Ok(Self { bucket, map })
    }

    pub(super) fn handle(&self) -> &Handle {
        self.bucket.handle()
    }

    pub(super) fn backend(&self) -> &dyn ObjectStore {
        &**self.bucket.backend()
    }

    pub(super) fn prefix(&self) -> &str {
        self.bucket.prefix()
    }

    pub(super) fn key(&self, uri: &str) -> Result<Key, Failure> {
        let mut path = Vec::new();
        self.map
            .path_into(uri, Form::Plain, &mut path)
            .map_err(|error| Failure::refused(error.code(), error.to_string()))?;
        let path = String::from_utf8_lossy(&path);
        let key = if self.prefix().is_empty() {
            path.into_owned()
        } else {
            format!("{}/{path}", self.prefix())
        };
        if key.len() > KEY_BYTES_MAX {
            return Err(Failure::refused(
                "path.length",
                format!("the key would be longer than {KEY_BYTES_MAX} bytes"),
            ));
        }
        Key::parse(key).map_err(|error| Failure::refused("path.escape", error.to_string()))
    }

    pub(super) fn uri(&self, key: &Key) -> Option<String> {
        let path = key.as_ref().strip_prefix(self.prefix())?.trim_start_matches('/');
        self.map.uri(path.as_bytes()).filter(|(_, form)| *form == Form::Plain).map(|(uri, _)| uri)
    }

    /// Digests of an object's bytes, of the algorithms that are listed, and their length.
    pub(super) async fn digests(
        &self,
        key: &Key,
        listed: &Digests,
    ) -> object_store::Result<(Digests, u64)> {
        let mut hasher = Hasher::for_listed(listed);
        let mut length = 0;
        let mut bytes = self.backend().get(key).await?.into_stream();
        while let Some(chunk) = bytes.try_next().await? {
            hasher.update(&chunk);
            length += chunk.len() as u64;
        }
        Ok((hasher.finish(), length))
    }

    pub(super) fn attributes(&self, row: &Row, body: &Body<'_>) -> Attributes {
        let mut attributes = Attributes::new();
        if !self.bucket.has_metadata() {
            return attributes;
        }
        if let Some(media_type) = &body.media_type {
            attributes.insert(Attribute::ContentType, media_type.clone().into());
        }
        // Metadata is sent in headers. Values that headers cannot contain are left out.
        let fits = |text: &str| {
            text.len() <= METADATA_MAX
                && text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
        };
        let digests = body.digests.to_string();
        for (name, value) in [(URI, row.uri.clone()), (DIGESTS, digests)] {
            if fits(&value) {
                attributes.insert(Attribute::Metadata(name.into()), value.into());
            }
        }
        attributes
    }
}

/// Whether the store responds that the bucket is missing, and not an object.
pub(super) fn is_no_bucket(error: &object_store::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("NoSuchBucket") {
            return true;
        }
        cause = error.source();
    }
    false
}

fn no_bucket() -> Failure {
    Failure::fatal("objects.bucket", "the object store has no bucket of this name")
}

pub(super) fn failed(error: &object_store::Error) -> Failure {
    use object_store::Error as E;
    let message = format!("the object store: {error}");
    match error {
        // If objects are read or deleted, a missing object is handled before.
        E::NotFound { .. } => no_bucket(),
        _ if is_no_bucket(error) => no_bucket(),
        E::Unauthenticated { .. }
        | E::PermissionDenied { .. }
        | E::UnknownConfigurationKey { .. } => Failure::fatal("objects.denied", message),
        _ => Failure::new("objects.failed", message),
    }
}
