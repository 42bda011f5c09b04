//! The bucket with the contents and the made files of several nodes.

use abreast_core::contents::ContentStore;
use abreast_core::contents::made::MadeStore;
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Opens the contents in a bucket.
///
/// # Errors
/// The address or a setting of the environment is wrong.
#[cfg(feature = "s3")]
pub(crate) fn contents(url: &str, scratch: &Path) -> Result<Arc<dyn ContentStore>> {
    use abreast_objects::{S3Contents, S3ContentsOptions};
    use anyhow::Context as _;
    let mut options = S3ContentsOptions::new(bucket_at(url));
    scratch.clone_into(&mut options.temporary);
    let contents = S3Contents::open(options);
    Ok(Arc::new(contents.with_context(|| format!("cannot open the contents in `{url}`"))?))
}

/// Opens the made files in a bucket.
///
/// # Errors
/// The address or a setting of the environment is wrong.
#[cfg(feature = "s3")]
pub(crate) fn made_files(url: &str) -> Result<Arc<dyn MadeStore>> {
    use abreast_objects::{S3Made, S3MadeOptions};
    use anyhow::Context as _;
    let made = S3Made::open(S3MadeOptions::new(bucket_at(url)));
    Ok(Arc::new(made.with_context(|| format!("cannot open the made files in `{url}`"))?))
}

/// Checks that a bucket can be used by several nodes.
///
/// # Errors
/// The bucket does not answer within the limit, or refuses an operation.
#[cfg(feature = "s3")]
pub(crate) fn check(url: &str, limit: Duration) -> Result<()> {
    Ok(abreast_objects::check_bucket(&bucket_at(url), limit)?)
}

#[cfg(feature = "s3")]
fn bucket_at(url: &str) -> abreast_objects::BucketOptions {
    abreast_objects::BucketOptions { url: url.to_owned(), settings: Vec::new() }
}

/// Refuses a bucket, which this program cannot open.
///
/// # Errors
/// Always.
#[cfg(not(feature = "s3"))]
pub(crate) fn contents(_: &str, _: &Path) -> Result<Arc<dyn ContentStore>> {
    anyhow::bail!(WITHOUT)
}

/// Refuses a bucket, which this program cannot open.
///
/// # Errors
/// Always.
#[cfg(not(feature = "s3"))]
pub(crate) fn made_files(_: &str) -> Result<Arc<dyn MadeStore>> {
    anyhow::bail!(WITHOUT)
}

/// Refuses a bucket, which this program cannot open.
///
/// # Errors
/// Always.
#[cfg(not(feature = "s3"))]
pub(crate) fn check(_: &str, _: Duration) -> Result<()> {
    anyhow::bail!(WITHOUT)
}

#[cfg(not(feature = "s3"))]
const WITHOUT: &str = "`contents`: this program was built without S3 (help: use a released one)";
