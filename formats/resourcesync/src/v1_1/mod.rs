//! ResourceSync 1.1 (ANSI/NISO Z39.99-2017); reads 1.0 and the 0.1 spelling of resource metadata
//! too.

mod attributes;
mod capability;
mod document;
mod names;
mod notification;
mod parser;
mod reader;
mod tolerance;
mod write;

pub use abreast_webtypes::SyntaxError as Error;
pub use capability::{Capability, Change, Root};
pub use document::{Document, Entry, Head, Ln};
pub use names::{RS_NAMESPACE, SITEMAP_NAMESPACE};
pub use notification::NotificationFault;
pub use parser::{Limits, Parser, SPEC_MAX_ENTRIES, Step};
pub use reader::{ReadError, Reader};
pub use tolerance::{Finding, Tolerance};
pub use write::{write_end, write_entry, write_head, write_plain_entry, write_plain_head};
