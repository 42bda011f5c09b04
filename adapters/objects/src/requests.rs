//! Requests to a bucket that end within a limit: reading of ranges, and writing of objects whose
//! digest is compared before they become visible.

use crate::bucket::Bucket;
use crate::failure::{failed, is_unanswered, late, silent};
use abreast_core::ContentId;
use abreast_core::contents::{ContentHasher, Error, address_of};
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::signer::{Method, SignedUrlOptions};
use object_store::{
    GetOptions, GetRange, MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt as _,
};
use std::future::Future;
use std::io::{self, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Length in bytes of the parts of a large object, which limits the memory for a call.
pub(crate) const PART: u64 = 8 << 20;
/// Maximum number of parts of an object in S3.
const PARTS_MAX: u64 = 10_000;
/// Maximum length in bytes of an object in S3.
const OBJECT_MAX: u64 = 5 << 40;
/// Time limit for the start of an answer to a read, which clients wait for.
const READ_START_LIMIT: Duration = Duration::from_secs(10);
/// Time limit for giving up an upload that failed.
const ABORT_LIMIT: Duration = Duration::from_secs(5);

/// A bucket, and the time limit for each request with its repeats.
#[derive(Clone, Copy)]
pub(crate) struct Requests<'a> {
    pub(crate) bucket: &'a Bucket,
    pub(crate) limit: Duration,
}

impl<'a> Requests<'a> {
    pub(crate) fn backend(self) -> &'a dyn ObjectStore {
        &**self.bucket.backend()
    }

    /// Blocks until the store has answered, for a limited time.
    pub(crate) fn ask<T>(
        self,
        task: &str,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, Error> {
        self.answer(task, answer)?.map_err(|cause| failed(task, &cause))
    }

    /// As [`Self::ask`], for callers that act by the store's error.
    pub(crate) fn answer<T>(
        self,
        task: &str,
        answer: impl Future<Output = object_store::Result<T>>,
    ) -> Result<object_store::Result<T>, Error> {
        if !self.bucket.silence.may_ask(Instant::now(), self.limit) {
            return Err(silent(task));
        }
        let answer = self.bucket.wait(self.limit, answer);
        let has_answered = match &answer {
            Some(Err(cause)) => !is_unanswered(cause),
            answer => answer.is_some(),
        };
        self.bucket.silence.note(Instant::now(), has_answered);
        answer.ok_or_else(|| late(task, self.limit))
    }

    /// The same requests, with a limit for answers that start soon.
    pub(crate) fn soon(self) -> Self {
        Self { limit: self.limit.min(READ_START_LIMIT), ..self }
    }

    /// A range of an object with its metadata. With an entity tag, another version is the store's
    /// error `Precondition`.
    pub(crate) fn range(
        self,
        task: &str,
        key: &Key,
        range: Range<u64>,
        tag: Option<&str>,
    ) -> Result<object_store::Result<(ObjectMeta, Bytes)>, Error> {
        let options =
            GetOptions::new().with_range(Some(GetRange::Bounded(range))).with_if_match(tag);
        let got = match self.soon().answer(task, self.backend().get_opts(key, options))? {
            Ok(got) => got,
            Err(cause) => return Ok(Err(cause)),
        };
        let meta = got.meta.clone();
        if let (Some(expected), Some(found)) = (tag, &meta.e_tag)
            && expected != found
        {
            // A server that ignores the condition answers with another version.
            let path = key.to_string();
            return Ok(Err(object_store::Error::Precondition {
                path,
                source: "another version".into(),
            }));
        }
        let bytes = self.answer(task, got.bytes())?;
        Ok(bytes.map(|bytes| (meta, bytes)))
    }

    /// A URL with which anybody can read an object by GET, as this media type, until its time is over. No
    /// request is made, unless credentials are fetched.
    pub(crate) fn signed_url(
        self,
        task: &str,
        key: &Key,
        media_type: &str,
        valid: Duration,
    ) -> Result<Option<String>, Error> {
        let Some(signer) = &self.bucket.signer else { return Ok(None) };
        let options = SignedUrlOptions::new().with_query([("response-content-type", media_type)]);
        let limit = self.soon().limit;
        let signed = signer.signed_url_opts(Method::GET, key, valid, &options);
        let signed = self.bucket.wait(limit, signed).ok_or_else(|| late(task, limit))?;
        signed.map(|url| Some(url.into())).map_err(|cause| failed(task, &cause))
    }

    /// Writes an object, in parts if it is long. The digest is compared before the object becomes
    /// visible.
    pub(crate) fn write(
        self,
        task: &str,
        key: &Key,
        content: (&ContentId, u64),
        reader: &mut dyn Read,
    ) -> Result<(), Error> {
        let (id, length) = content;
        if length > OBJECT_MAX {
            return Err(Error::too_long(OBJECT_MAX));
        }
        if length <= PART {
            let mut bytes = Vec::with_capacity(length as usize);
            reader.take(length + 1).read_to_end(&mut bytes).map_err(Error::input)?;
            if address_of(&bytes) != *id {
                return Err(changed());
            }
            return self.ask(task, self.backend().put(key, bytes.into())).map(|_| ());
        }
        let mut upload = self.ask(task, self.backend().put_multipart(key))?;
        let written = self.write_parts(task, content, upload.as_mut(), reader);
        if written.is_err() {
            // A rule of the bucket removes the parts of uploads whose node was killed.
            let _ = self.bucket.wait(ABORT_LIMIT, upload.abort());
        }
        written
    }

    fn write_parts(
        self,
        task: &str,
        content: (&ContentId, u64),
        upload: &mut dyn MultipartUpload,
        reader: &mut dyn Read,
    ) -> Result<(), Error> {
        let (id, length) = content;
        let part_length = PART.max(length.div_ceil(PARTS_MAX));
        let mut hasher = ContentHasher::default();
        loop {
            let mut part = Vec::with_capacity(part_length as usize);
            reader.take(part_length).read_to_end(&mut part).map_err(Error::input)?;
            if part.is_empty() {
                break;
            }
            hasher.update(&part);
            if hasher.length() > length {
                return Err(changed());
            }
            self.ask(task, upload.put_part(part.into()))?;
        }
        if hasher.finish() != (*id, length) {
            return Err(changed());
        }
        self.ask(task, upload.complete()).map(|_| ())
    }
}

fn changed() -> Error {
    Error::input(io::Error::other("the bytes were changed while they were read"))
}
