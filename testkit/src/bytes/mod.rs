//! Formats that tests write or read: digests, documents, ZIP and WARC files.

pub mod digest;
pub mod documents;
pub mod warc;
pub mod zip;
