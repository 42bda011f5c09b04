//! Value types shared by every format: no disk, no network, no clock.
#![doc = include_str!("../README.md")]

mod datetime;
mod digest;
mod link_header;
mod segment;
mod uri;
pub mod xml;

pub use datetime::{ParseDatetimeError, Precision, Timestamp, W3cDatetime};
pub use digest::{Algorithm, Digests, ParseDigestError};
pub use link_header::{Link, LinkHeaderError, parse_link_header, write_link};
pub use segment::{decode_segment, encode_segment};
pub use uri::{Origin, resolve, without_fragment};
