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
/// Simultaneous writes with one condition.
const WRITES: usize = 8;
/// Faults of a bucket, with help.
const IGNORED: &str = "the bucket ignores the conditions of writes\n  help: use a service with conditional writes (If-Match, If-None-Match)";
const TWO_STEPS: &str = "several simultaneous writes with the same condition succeeded, so changes of nodes would be lost\n  help: use a \
                         service that checks the condition and writes in one step";

/// Checks that a bucket stores and deletes objects, and that it refuses a conditional write whose
/// condition does not hold, also of simultaneous writes. The check writes a small object below the prefix, and deletes it.
///
/// # Errors
/// The bucket does not answer within the limit, refuses the credentials, or has no conditional writes in one step.
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
        checked.and_then(|fault| deleted.map(|()| fault))
    });
    match checked {
        Some(Ok(None)) => Ok(()),
        Some(Ok(Some(fault))) => Err(Error::new(ErrorKind::Other, fault)),
        Some(Err(cause)) => Err(failed(TASK, &cause)),
        None => Err(late(TASK, limit)),
    }
}

/// The fault if writes whose condition does not hold are not refused, or others are.
async fn conditional_writes(
    backend: &dyn ObjectStore,
    key: &Key,
) -> object_store::Result<Option<&'static str>> {
    let write = async |text: String, mode: PutMode| -> object_store::Result<Option<PutResult>> {
        let options = PutOptions { mode, ..PutOptions::default() };
        match backend.put_opts(key, text.into(), options).await {
            Ok(put) => Ok(Some(put)),
            Err(
                object_store::Error::AlreadyExists { .. }
                | object_store::Error::Precondition { .. },
            ) => Ok(None),
            Err(cause) => Err(cause),
        }
    };
    let put = async |mode: PutMode| write("probe".to_owned(), mode).await;
    let update =
        |tag: &str| PutMode::Update(UpdateVersion { e_tag: Some(tag.to_owned()), version: None });
    let Some(PutResult { e_tag: Some(tag), .. }) = put(PutMode::Create).await? else {
        return Ok(Some(IGNORED));
    };
    let is_refused =
        put(PutMode::Create).await?.is_none() && put(update(OTHER_TAG)).await?.is_none();
    if !is_refused || put(update(&tag)).await?.is_none() {
        return Ok(Some(IGNORED));
    }
    // A write that the client repeated may be refused although it succeeded, so there may be none.
    let writes = (0..WRITES).map(|number| write(format!("probe {number}"), update(&tag)));
    let written = futures_util::future::try_join_all(writes).await?;
    Ok((written.iter().flatten().count() > 1).then_some(TWO_STEPS))
}
