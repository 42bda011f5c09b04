//! WARC 1.1 records, in gzip members or as they stand, and their CDXJ index: read and write.
#![doc = include_str!("../README.md")]

mod cdxj;
mod digest;
mod member;
mod payload;
mod read;
mod record;
mod surt;

pub use cdxj::Capture;
pub use digest::parse_digest;
pub use member::{Member, Packing};
pub use payload::{HttpHead, Payload};
pub use read::{
    Block, CountingReader, Head, Read, ReadError, read_record, skip_http_head, skip_padding,
};
pub use record::{END, Kind, Original, Record, timestamp14};
pub use surt::surt;
