//! Made files in a bucket that several nodes share.
//!
//! | Key below the prefix | Object |
//! |---|---|
//! | `made/GROUP/record` | the record of a group, replaced by a conditional PUT |
//! | `made/GROUP/files/NAME` | a file of the group |

use crate::bucket::{Bucket, BucketOptions, OpenError};
use crate::failure::failed;
use crate::requests::{PART, Requests};
use abreast_core::contents::made::{MADE_RECORD_MAX, MadeFile, MadeStore, RecordRead};
use abreast_core::contents::{ContentHasher, Error, ErrorKind};
use futures_util::TryStreamExt as _;
use object_store::path::Path as Key;
use object_store::{GetOptions, ObjectStoreExt as _, PutMode, PutOptions, UpdateVersion};
use std::fmt;
use std::io::{Read, Write};
use std::time::{Duration, SystemTime};

/// Settings of a store of made files in S3.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct S3MadeOptions {
    /// The bucket and its prefix. All nodes of a store have the same.
    pub bucket: BucketOptions,
    /// Time limit for each request with its repeats. A call makes one request for each 8 MiB.
    pub answer_limit: Duration,
}

impl S3MadeOptions {
    /// The settings for a bucket, with a limit of 30 seconds.
    pub fn new(bucket: BucketOptions) -> Self {
        Self { bucket, answer_limit: Duration::from_secs(30) }
    }
}

/// A store of made files in S3.
pub struct S3Made {
    bucket: Bucket,
    options: S3MadeOptions,
}

impl fmt::Debug for S3Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("S3Made").field("prefix", &self.bucket.prefix()).finish_non_exhaustive()
    }
}

impl S3Made {
    /// Prepares connections to a bucket; connects when one is used.
    ///
    /// # Errors
    /// The address or a setting is wrong. An address of a folder is refused, since a folder does not
    /// have conditional writes.
    pub fn open(options: S3MadeOptions) -> Result<Self, OpenError> {
        let bucket = Bucket::open_within(&options.bucket, options.answer_limit)?;
        Ok(Self::of(bucket, options))
    }

    /// The made files in an open bucket; the address in the options is not used.
    pub fn of(bucket: Bucket, options: S3MadeOptions) -> Self {
        Self { bucket, options }
    }

    fn requests(&self) -> Requests<'_> {
        Requests { bucket: &self.bucket, limit: self.options.answer_limit }
    }

    /// The key of an object or folder of a group.
    fn key(&self, group: &str, name: &str) -> Key {
        Key::from(format!("{}/made/{group}/{name}", self.bucket.prefix()))
    }

    fn file_key(&self, group: &str, name: &str) -> Key {
        self.key(group, &format!("files/{name}"))
    }

    /// Checks that a file without bytes is stored, since a range of an empty object is refused.
    fn check_empty(&self, task: &str, key: &Key, file: &MadeFile) -> Result<(), Error> {
        let meta = self.requests().ask(task, self.requests().backend().head(key))?;
        let is_whole = meta.size == 0 && ContentHasher::default().finish() == (file.id, 0);
        if is_whole { Ok(()) } else { Err(damaged(&file.name)) }
    }
}

impl MadeStore for S3Made {
    fn record(&self, group: &str, known: Option<&str>) -> Result<RecordRead, Error> {
        use object_store::Error as E;
        let (key, task) = (self.key(group, "record"), format!("read the record of `{group}`"));
        let requests = self.requests().soon();
        let options = GetOptions::new().with_if_none_match(known);
        let got = requests.answer(&task, async {
            let got = requests.backend().get_opts(&key, options).await?;
            if got.meta.size > MADE_RECORD_MAX as u64 {
                return Ok(None);
            }
            let version = got.meta.e_tag.clone();
            Ok(Some((got.bytes().await?, version)))
        })?;
        match got {
            // A server that ignores the condition answers with the known version.
            Ok(Some((_, Some(version)))) if known == Some(&*version) => Ok(RecordRead::Same),
            Ok(Some((record, Some(version)))) => {
                Ok(RecordRead::Changed { record: record.into(), version })
            }
            Ok(Some((_, None))) => Err(without_versions(group)),
            Ok(None) => Err(Error::too_long(MADE_RECORD_MAX as u64)),
            Err(E::NotModified { .. }) => Ok(RecordRead::Same),
            Err(cause) => match failed(&task, &cause) {
                error if error.kind() == ErrorKind::NotFound => Ok(RecordRead::Missing),
                error => Err(error),
            },
        }
    }

    fn replace_record(
        &self,
        group: &str,
        record: &[u8],
        expected: Option<&str>,
    ) -> Result<Option<String>, Error> {
        use object_store::Error as E;
        if record.len() > MADE_RECORD_MAX {
            return Err(Error::too_long(MADE_RECORD_MAX as u64));
        }
        let (key, task) = (self.key(group, "record"), format!("write the record of `{group}`"));
        let mode = match expected {
            None => PutMode::Create,
            Some(tag) => {
                PutMode::Update(UpdateVersion { e_tag: Some(tag.to_owned()), version: None })
            }
        };
        let options = PutOptions { mode, ..PutOptions::default() };
        let requests = self.requests();
        let put = requests.backend().put_opts(&key, record.to_vec().into(), options);
        match requests.answer(&task, put)? {
            Ok(put) => put.e_tag.map(Some).ok_or_else(|| without_versions(group)),
            Err(E::AlreadyExists { .. } | E::Precondition { .. }) => Ok(None),
            Err(cause) => Err(failed(&task, &cause)),
        }
    }

    fn put(&self, group: &str, file: &MadeFile, reader: &mut dyn Read) -> Result<(), Error> {
        let task = format!("write the file `{}` of `{group}`", file.name);
        let key = self.file_key(group, &file.name);
        self.requests().write(&task, &key, (&file.id, file.length), reader)
    }

    fn fetch(&self, group: &str, file: &MadeFile, to: &mut dyn Write) -> Result<(), Error> {
        let task = format!("read the file `{}` of `{group}`", file.name);
        let key = self.file_key(group, &file.name);
        if file.length == 0 {
            return self.check_empty(&task, &key, file);
        }
        let (mut hasher, mut tag) = (ContentHasher::default(), None::<String>);
        while hasher.length() < file.length {
            let offset = hasher.length();
            let range = offset..file.length.min(offset + PART);
            let length = range.end - offset;
            let got = self.requests().range(&task, &key, range, tag.as_deref())?;
            let (meta, bytes) = got.map_err(|cause| match cause {
                object_store::Error::Precondition { .. } => damaged(&file.name).with_cause(cause),
                cause => failed(&task, &cause),
            })?;
            if meta.size != file.length || bytes.len() as u64 != length {
                return Err(damaged(&file.name));
            }
            tag = tag.or(meta.e_tag);
            hasher.update(&bytes);
            to.write_all(&bytes).map_err(|cause| {
                Error::new(ErrorKind::Other, format!("cannot {task}: writing failed"))
                    .with_cause(cause)
            })?;
        }
        if hasher.finish() == (file.id, file.length) { Ok(()) } else { Err(damaged(&file.name)) }
    }

    fn signed_url(
        &self,
        group: &str,
        name: &str,
        media_type: &str,
        valid: Duration,
    ) -> Result<Option<String>, Error> {
        let task = format!("sign a URL of the file `{name}` of `{group}`");
        self.requests().signed_url(&task, &self.file_key(group, name), media_type, valid)
    }

    fn remove(&self, group: &str, name: &str) -> Result<(), Error> {
        let task = format!("remove the file `{name}` of `{group}`");
        let key = self.file_key(group, name);
        match self.requests().ask(&task, self.requests().backend().delete(&key)) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn visit(&self, group: &str, visit: &mut dyn FnMut(&str, Duration)) -> Result<(), Error> {
        let (folder, task) = (self.key(group, "files"), format!("list the files of `{group}`"));
        let mut objects = self.requests().backend().list(Some(&folder));
        while let Some(object) = self.requests().ask(&task, objects.try_next())? {
            let name = object.location.as_ref().strip_prefix(folder.as_ref());
            let Some(name) = name.and_then(|name| name.strip_prefix('/')) else { continue };
            let put = object.last_modified.into();
            visit(name, SystemTime::now().duration_since(put).unwrap_or_default());
        }
        Ok(())
    }
}

fn damaged(name: &str) -> Error {
    let message = format!(
        "the object of the made file `{name}` has other bytes\n  help: restore the object from a backup, or remove the \
         file; later files do not depend on it"
    );
    Error::new(ErrorKind::Damaged, message)
}

fn without_versions(group: &str) -> Error {
    let message = format!(
        "the object store answers without an entity tag for the record of `{group}`\n  help: use a service with \
         conditional writes (If-Match, If-None-Match)"
    );
    Error::new(ErrorKind::Other, message)
}
