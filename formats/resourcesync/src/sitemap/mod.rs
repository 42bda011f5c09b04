//! The common parts of documents of all versions: they are Sitemaps, with a head and then entries.
//!
//! [`Parser`] reads the Sitemap's elements; a [`Version`] reads the elements that only this version
//! has.

mod document;
mod kinds;
mod limits;
mod parser;
mod reader;
mod shape;
mod tolerance;
mod values;
mod words;
mod write;

pub use document::Document;
pub use kinds::{Change, Root};
pub use limits::{Limits, SPEC_MAX_ENTRIES, Step};
pub(crate) use parser::Child;
pub use parser::{Parser, Version};
pub use reader::ReadError;
pub(crate) use reader::Reader;
pub(crate) use shape::{
    XHTML_NAMESPACE, change_set, check_attribute, check_in_entry, check_in_head,
};
pub(crate) use tolerance::Notes;
pub use tolerance::{Finding, Tolerance};
pub(crate) use values::{
    Fault, MAX_LINKS, MAX_VALUE_LENGTH, StringPool, checked, is_before, length, note_space,
    note_unknown, parse_datetime, parse_lastmod, too_many_links,
};
pub use values::{space_around_loc, trimmed, without_date};
pub use words::{
    NAMES_ITSELF, is_another_kind, is_no_change_set, is_no_sitemap, lists_only_others,
    may_be_change_set, named_again, text_between_elements,
};
pub(crate) use write::datetime;
pub use write::write_end;
pub(crate) use write::{XMLNS_RS, close_entry, number, open_entry, open_root, text, token};

/// Namespace of the elements in every Sitemap.
pub const SITEMAP_NAMESPACE: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";
/// Namespace of Sitemap: the first of [`Version::NAMESPACES`].
pub(crate) const SM: abreast_webtypes::xml::Ns = abreast_webtypes::xml::Ns::known(0);
/// Namespace of the elements that ResourceSync defines.
pub const RS_NAMESPACE: &str = "http://www.openarchives.org/rs/terms/";
