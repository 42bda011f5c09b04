#![doc = include_str!("../README.md")]

mod feed;
mod read;
mod write;

pub use abreast_webtypes::SyntaxError as Error;
pub use feed::finding::{CODES, Finding, MAX_FINDINGS_OF_A_CODE};
pub use feed::model::{Entry, Feed, FeedKind, Link};
pub use feed::relation::{
    ATOM_MEDIA_TYPE, ATOM_NAMESPACE, CATEGORIES, Relation, SDSHARE_2010_NAMESPACE,
    SDSHARE_NAMESPACE, has_mark, other_feed,
};
pub use feed::since::{SinceError, parse_since, since_in_query, with_since, without_since};
pub use feed::time::{STAMP_LENGTH, stamp, write_stamp};
pub use read::document::Document;
pub use read::parser::{Limits, Parser, Step};
pub use read::reader::{ReadError, Reader};
pub use write::writer::{write_end, write_entry, write_feed};
