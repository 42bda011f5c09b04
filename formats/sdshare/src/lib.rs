#![doc = include_str!("../README.md")]

mod check;
mod document;
mod feed;
mod finding;
mod parser;
mod reader;
mod relation;
mod shape;
mod since;
mod time;
mod write;

pub use abreast_webtypes::SyntaxError as Error;
pub use document::Document;
pub use feed::{Entry, Feed, FeedKind, Link};
pub use finding::{CODES, Finding, MAX_FINDINGS_OF_A_CODE};
pub use parser::{Limits, Parser, Step};
pub use reader::{ReadError, Reader};
pub use relation::{
    ATOM_MEDIA_TYPE, ATOM_NAMESPACE, CATEGORIES, Relation, SDSHARE_2010_NAMESPACE,
    SDSHARE_NAMESPACE, has_mark, other_feed,
};
pub use since::{SinceError, parse_since, since_in_query, with_since, without_since};
pub use time::{STAMP_LENGTH, stamp, write_stamp};
pub use write::{write_end, write_entry, write_feed};
