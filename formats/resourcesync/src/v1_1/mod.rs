//! ResourceSync 1.1 (ANSI/NISO Z39.99-2017); reads 1.0 and the 0.1 spelling of resource metadata
//! too.

mod attributes;
mod capability;
mod document;
mod notification;
mod parts;
mod version;
mod write;

pub use crate::sitemap::{
    Change, Finding, Limits, RS_NAMESPACE, ReadError, Root, SITEMAP_NAMESPACE, SPEC_MAX_ENTRIES,
    Step, Tolerance, write_end,
};
pub use abreast_webtypes::SyntaxError as Error;
pub use capability::Capability;
pub use document::Document;
pub use notification::NotificationFault;
pub use parts::{Entry, Head, Ln};
pub use version::V1_1;
pub use write::{write_entry, write_head, write_plain_entry, write_plain_head};

/// Reads a document of this version from chunks of any size.
pub type Parser = crate::sitemap::Parser<V1_1>;
/// Reads a document of this version from a file or a pipe.
pub type Reader<R> = crate::sitemap::Reader<R, V1_1>;
