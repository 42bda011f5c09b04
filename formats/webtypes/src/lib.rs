#![doc = include_str!("../README.md")]

mod count;
mod datetime;
mod digest;
mod digest_field;
mod gzip;
mod hash_fault;
mod html;
mod json;
mod link_header;
mod logins;
pub mod md5_lanes;
mod nearest;
pub mod relation;
mod robots;
mod segment;
mod syntax_error;
mod uri;
mod visible;

pub mod xml;

pub use count::{count, count_of};
pub use datetime::{Moment, ParseDatetimeError, Precision, Timestamp, W3cDatetime};
pub use digest::{Algorithm, Digests, ParseDigestError};
pub use digest_field::DigestFieldError;
pub use gzip::{BYTES_BEHIND_GZIP, GzipReader, MAX_GZIP_PADDING};
pub use hash_fault::hash_fault;
pub use html::{HtmlTag, HtmlTags};
pub use json::memory_of_json;
pub use link_header::{
    Link, LinkHeaderError, MAX_LINK_HEADER_LENGTH, MAX_LINKS, parse_link_header,
    parse_link_headers, write_link,
};
pub use logins::{without_login, without_logins, without_logins_of_urls};
pub use nearest::nearest;
pub use robots::{robots_fields, robots_sitemaps};
pub use segment::{decode_segment, encode_segment};
pub use syntax_error::{SyntaxError, excerpt};
pub use uri::{
    MAX_URI_LENGTH, NOT_ABSOLUTE, Origin, ResolveError, UNUSABLE, absolute_fault, has_scheme,
    resolve, without_fragment,
};
pub use visible::{is_control, short_lines, visible, visible_lines};
