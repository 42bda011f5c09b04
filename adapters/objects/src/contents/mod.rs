//! Contents in a bucket that several nodes share.
//!
//! | Key below the prefix | Object |
//! |---|---|
//! | `contents/ab/abcd…` | a content under the digest of its bytes; the first byte of the digest is a folder |
//! | `contents-removals/abcd…` | a mark: a node removes this content now |
//! | `contents-renewals/abcd…` | a copy of a content for the time in which it is renewed |
//!
//! A pin is known only to its own node. Between nodes, the age of an object replaces the pins: an
//! object is removed only if it is older than the grace time, and a put or hold of an object that
//! is older than half of this time writes it again. A row must be recorded within half of the grace
//! time after its content was put.
//!
//! An object that is old may be renewed by one node at the moment at which another removes it. The
//! node that removes therefore first writes a mark, and then asks for the age again. The node that
//! puts first writes its object; [`ContentStore::sync`] then asks for marks. An object store shows
//! every write to all later requests, so at least one of both sees the other.

mod put;
mod read;
mod remove;

use crate::bucket::{Bucket, BucketOptions, OpenError};
use crate::failure::failed;
use crate::requests::Requests;
use abreast_core::ContentId;
use abreast_core::contents::{Content, ContentStore, Error, PinnedContent, Pins};
use futures_util::TryStreamExt as _;
use object_store::path::Path as Key;
use object_store::{GetOptions, ObjectMeta, ObjectStore};
use std::fmt;
use std::future::Future;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::BorrowedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Names of the folders of contents, marks and copies.
const CONTENTS: &str = "contents";
const REMOVALS: &str = "contents-removals";
const RENEWALS: &str = "contents-renewals";

/// Settings of a store of contents in S3.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct S3ContentsOptions {
    /// The bucket and its prefix. All nodes of a store have the same.
    pub bucket: BucketOptions,
    /// Age that an unneeded content must have before it is removed. The clocks of nodes and of the
    /// object store may differ by a quarter of this time. All nodes have the same.
    pub grace: Duration,
    /// Time limit for each request with its repeats. A call makes a few requests, and one for each
    /// part of a large content.
    pub answer_limit: Duration,
    /// Folder for contents of unknown length, until their address is known.
    pub temporary: PathBuf,
}

impl S3ContentsOptions {
    /// The settings for a bucket, with a grace time of 24 hours and a limit of 30 seconds.
    pub fn new(bucket: BucketOptions) -> Self {
        Self {
            bucket,
            grace: Duration::from_secs(24 * 3_600),
            answer_limit: Duration::from_secs(30),
            temporary: std::env::temp_dir(),
        }
    }
}

/// A store of contents in S3. A clone shares the connections and the pins.
#[derive(Clone)]
pub struct S3Contents {
    inner: Arc<Inner>,
}

struct Inner {
    bucket: Bucket,
    options: S3ContentsOptions,
    pins: Arc<Pins>,
}

impl fmt::Debug for S3Contents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Contents").field("prefix", &self.inner.bucket.prefix()).finish()
    }
}

impl fmt::Debug for Inner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl S3Contents {
    /// Prepares connections to a bucket; connects when one is used.
    ///
    /// # Errors
    /// The address or a setting is wrong. An address of a folder is refused, since a folder does not
    /// renew the time of a copy.
    pub fn open(options: S3ContentsOptions) -> Result<Self, OpenError> {
        let bucket = Bucket::open_within(&options.bucket, options.answer_limit)?;
        Ok(Self::of(bucket, options))
    }

    /// The contents in an open bucket, whatever the address in the options.
    pub fn of(bucket: Bucket, options: S3ContentsOptions) -> Self {
        Self { inner: Arc::new(Inner { bucket, options, pins: Arc::default() }) }
    }
}

impl Inner {
    fn requests(&self) -> Requests<'_> {
        Requests { bucket: &self.bucket, limit: self.options.answer_limit }
    }

    fn backend(&self) -> &dyn ObjectStore {
        &**self.bucket.backend()
    }

    /// The key of an object of a content.
    fn key(&self, folder: &str, id: &ContentId) -> Key {
        let name = id.to_string();
        let part = if folder == CONTENTS { &name[..2] } else { "" };
        self.folder(folder, part).join(name.as_str())
    }

    /// The key of a folder, or of one of its parts.
    fn folder(&self, folder: &str, part: &str) -> Key {
        let key = Key::from(format!("{}/{folder}/{part}", self.bucket.prefix()));
        debug_assert!(!key.as_ref().ends_with('/'));
        key
    }

    /// Blocks until the store has answered, for a limited time.
    fn ask<T>(
        &self,
        task: &str,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Error> {
        self.requests().ask(task, answer)
    }

    /// As [`Self::ask`], for callers that act by the store's error.
    fn answer<T>(
        &self,
        task: &str,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> Result<object_store::Result<T>, Error> {
        self.requests().answer(task, answer)
    }

    /// Length and time of a content; `None` if it is not stored.
    fn head(&self, id: &ContentId) -> Result<Option<ObjectMeta>, Error> {
        let key = self.key(CONTENTS, id);
        let options = GetOptions::new().with_head(true);
        let task = format!("examine the kept content {id}");
        match self.requests().soon().answer(&task, self.backend().get_opts(&key, options))? {
            Ok(found) => Ok(Some(found.meta)),
            Err(cause) => match failed(&task, &cause) {
                error if error.kind() == abreast_core::contents::ErrorKind::NotFound => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Time since an object was written.
    fn age(meta: &ObjectMeta) -> Duration {
        SystemTime::now().duration_since(meta.last_modified.into()).unwrap_or_default()
    }

    /// Whether a content stays long enough for a row to be recorded.
    fn is_fresh(&self, meta: &ObjectMeta) -> bool {
        Self::age(meta) < self.options.grace / 2
    }

    /// Visits the objects of a folder, in the order of their keys. The store lists them in pages.
    fn list(
        &self,
        folder: &Key,
        visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut objects = self.backend().list(Some(folder));
        while let Some(object) = self.ask("list the kept contents", objects.try_next())? {
            // Ignore objects whose name is not a content's address.
            let id = object.location.filename().and_then(|name| name.parse().ok());
            if id.is_some_and(|id| visit(id).is_break()) {
                break;
            }
        }
        Ok(())
    }
}

impl ContentStore for S3Contents {
    fn put_bytes(&self, bytes: &[u8]) -> Result<PinnedContent, Error> {
        self.inner.put_bytes(bytes)
    }

    fn put_reader(&self, reader: &mut dyn Read, limit: u64) -> Result<PinnedContent, Error> {
        self.inner.put_reader(reader, limit)
    }

    fn put_file(
        &self,
        file: BorrowedFd<'_>,
        limit: u64,
        seen: &mut dyn FnMut(&[u8]) -> io::Result<()>,
    ) -> Result<PinnedContent, Error> {
        self.inner.put_file(file, limit, seen)
    }

    fn hold(&self, id: &ContentId) -> Result<Option<PinnedContent>, Error> {
        self.inner.hold(id)
    }

    fn sync(&self) -> Result<(), Error> {
        self.inner.wait_for_removals()
    }

    fn open_read(&self, id: &ContentId) -> Result<Content, Error> {
        self.open_object(id)
    }

    fn length(&self, id: &ContentId) -> Result<Option<u64>, Error> {
        Ok(self.inner.head(id)?.map(|meta| meta.size))
    }

    fn remove_unless(
        &self,
        id: &ContentId,
        needed: &mut dyn FnMut() -> bool,
    ) -> Result<bool, Error> {
        self.inner.remove_unless(id, needed)
    }

    fn visit(
        &self,
        first: u8,
        visit: &mut dyn FnMut(ContentId) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        self.inner.list(&self.inner.folder(CONTENTS, &format!("{first:02x}")), visit)
    }
}
