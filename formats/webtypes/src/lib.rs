#![doc = include_str!("../README.md")]

mod fault;
mod text;
mod uri;
mod value;
pub mod xml;

pub use fault::logins::{without_login, without_logins, without_logins_of_urls};
pub use fault::syntax_error::{SyntaxError, excerpt, help_line};
pub use text::count::{count, count_of};
pub use text::gzip::{BYTES_BEHIND_GZIP, GzipReader, MAX_GZIP_PADDING};
pub use text::html::{HtmlTag, HtmlTags};
pub use text::json::memory_of_json;
pub use text::nearest::nearest;
pub use text::robots::{robots_fields, robots_sitemaps};
pub use text::visible::{is_control, short_lines, visible, visible_lines};
pub use uri::link_header::{
    Link, LinkHeaderError, MAX_LINK_HEADER_LENGTH, MAX_LINKS, parse_link_header,
    parse_link_headers, write_link,
};
pub use uri::reference::{
    MAX_URI_LENGTH, NOT_ABSOLUTE, Origin, ResolveError, UNUSABLE, absolute_fault, has_scheme,
    resolve, without_fragment,
};
pub use uri::relation;
pub use uri::segment::{decode_segment, encode_segment};
pub use value::datetime::{Moment, ParseDatetimeError, Precision, Timestamp, W3cDatetime};
pub use value::digest::{Algorithm, Digests, ParseDigestError};
pub use value::digest_field::DigestFieldError;
pub use value::hash_fault::hash_fault;
pub use value::label::Label;
pub use value::md5_lanes;
