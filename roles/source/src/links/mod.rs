//! The links of resources: where they come from, how they are kept, and how headers state them
//! [rs-core §14].
//!
//! A link's target is stored as keys are: an absolute URI, or a reference relative to the set's
//! resources. So the public base may change without a change in the log.

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

/// The relation of a description of what changed; only changes carry it [rs-core §14.4].
pub const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";

/// The relation of a category: a URI with a name as `title`, or a word as `data:,WORD`.
pub const SUBJECT: &str = "http://purl.org/dc/terms/subject";

/// Does it begin with a scheme and a colon [rfc3986 §3.1]?
pub(crate) fn is_absolute(reference: &str) -> bool {
    let Some((scheme, _)) = reference.split_once(':') else { return false };
    let rest = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.as_bytes().iter().all(rest)
}
