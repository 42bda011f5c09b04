//! The bucket with the contents of sets of several nodes.

use abreast_core::contents::ContentStore;
use anyhow::Result;
use std::path::Path;
use std::sync::Arc;

/// Opens the contents in a bucket.
///
/// # Errors
/// The address or a setting of the environment is wrong.
#[cfg(feature = "s3")]
pub(crate) fn contents(url: &str, scratch: &Path) -> Result<Arc<dyn ContentStore>> {
    use abreast_objects::{BucketOptions, S3Contents, S3ContentsOptions};
    use anyhow::Context as _;
    let bucket = BucketOptions { url: url.to_owned(), settings: Vec::new() };
    let mut options = S3ContentsOptions::new(bucket);
    options.temporary = scratch.to_owned();
    let contents = S3Contents::open(options);
    Ok(Arc::new(contents.with_context(|| format!("cannot open the contents in `{url}`"))?))
}

/// Refuses a bucket, which this program cannot open.
///
/// # Errors
/// Always.
#[cfg(not(feature = "s3"))]
pub(crate) fn contents(_: &str, _: &Path) -> Result<Arc<dyn ContentStore>> {
    anyhow::bail!("`contents`: this program was built without S3 (help: use a released one)")
}
