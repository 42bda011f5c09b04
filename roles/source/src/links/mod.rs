//! Links of resources: sources of links, storage, and publication in headers [rs-core §14].
//!
//! The target of a link is stored in the same form as keys: an absolute URI, or a reference
//! relative to the URIs of the set. Therefore the public base can change without changes in the
//! log.

pub(crate) mod fuzz_property;
mod header;
mod nearest;
mod policy;
mod record;
mod relation;
mod rules;

pub(crate) use header::href_of;
pub use header::{PublishedLinks, header_links};
pub use nearest::nearest;
pub use policy::{FileLinks, Links, explain};
pub(crate) use policy::{fingerprint_with, owner_of, same_as_seen, sidecar_name};
pub use record::{LinkRecord, MAX_LINKS, absolute_uri, published_links, read_links};
pub use relation::check_relation;
pub use rules::RuleOptions;
pub(crate) use rules::split;

/// Relation of a description of the differences between two versions; only changes have such links
/// [rs-core §14.4].
pub const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";

/// Relation of a category: a URI with a name in `title`, or a word in the form `data:,WORD`.
pub const SUBJECT: &str = "http://purl.org/dc/terms/subject";

/// Whether a reference starts with a scheme and a colon [rfc3986 §3.1].
pub(crate) fn is_absolute(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.as_bytes().iter().all(rest)
}
