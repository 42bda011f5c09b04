//! A check of a bucket for operators: whether it answers, takes objects, and writes conditionally.

use crate::bucket::{Bucket, BucketOptions};
use crate::failure::{failed, late};
use abreast_core::contents::{Error, ErrorKind};
use object_store::path::Path as Key;
use object_store::{
    ObjectStore, ObjectStoreExt as _, PutMode, PutOptions, PutResult, UpdateVersion,
};
use std::time::Duration;

/// Entity tag that no object has.
const OTHER_TAG: &str = "\"00000000000000000000000000000000\"";

/// Checks that a bucket stores and deletes objects, and that it refuses a conditional write whose
/// condition does not hold. The check writes a small object below the prefix, and deletes it.
///
/// # Errors
/// The bucket does not answer within the limit, refuses the credentials, or has no conditional writes.
/// The text has the help.
pub fn check_bucket(options: &BucketOptions, limit: Duration) -> Result<(), Error> {
    const TASK: &str = "use the bucket";
    let opened = Bucket::open_within(options, limit);
    let bucket = opened.map_err(|error| Error::new(ErrorKind::Other, error.to_string()))?;
    let mut random = [0; 8];
    getrandom::fill(&mut random)
        .map_err(|cause| Error::new(ErrorKind::Other, format!("no random number: {cause}")))?;
    let name = u64::from_le_bytes(random);
    let key = Key::from(format!("{}/probes/{name:016x}", bucket.prefix()));
    let backend = &**bucket.backend();
    let checked = bucket.wait(limit, async {
        let checked = conditional_writes(backend, &key).await;
        // Also after a failure; a missing object is not an error of S3.
        let deleted = backend.delete(&key).await;
        checked.and_then(|is_conditional| deleted.map(|()| is_conditional))
    });
    match checked {
        Some(Ok(true)) => Ok(()),
        Some(Ok(false)) => Err(Error::new(
            ErrorKind::Other,
            "the bucket ignores the conditions of writes\n  help: use a service with conditional writes (If-Match, If-None-Match)",
        )),
        Some(Err(cause)) => Err(failed(TASK, &cause)),
        None => Err(late(TASK, limit)),
    }
}

/// Whether writes whose condition does not hold are refused, and others are not.
async fn conditional_writes(backend: &dyn ObjectStore, key: &Key) -> object_store::Result<bool> {
    let put = async |mode: PutMode| -> object_store::Result<Option<PutResult>> {
        let options = PutOptions { mode, ..PutOptions::default() };
        match backend.put_opts(key, "probe".into(), options).await {
            Ok(put) => Ok(Some(put)),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(None),
            Err(cause) => Err(cause),
        }
    };
    let update =
        |tag: &str| PutMode::Update(UpdateVersion { e_tag: Some(tag.to_owned()), version: None });
    let Some(PutResult { e_tag: Some(tag), .. }) = put(PutMode::Create).await? else {
        return Ok(false);
    };
    let is_refused =
        put(PutMode::Create).await?.is_none() && put(update(OTHER_TAG)).await?.is_none();
    Ok(is_refused && put(update(&tag)).await?.is_some())
}
