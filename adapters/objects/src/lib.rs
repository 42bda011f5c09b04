//! Objects in S3 and compatible services.
#![doc = include_str!("../README.md")]

mod bucket;
mod contents;
mod credentials;
mod failure;
mod made;
mod probe;
mod requests;
mod silence;

pub use bucket::{Bucket, BucketOptions, OpenError};
pub use contents::{S3Contents, S3ContentsOptions};
pub use made::{S3Made, S3MadeOptions};
pub use object_store;
pub use probe::check_bucket;
