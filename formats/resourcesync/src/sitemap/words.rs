//! Messages for faults that several programs find, so that all report them in the same words.

use super::Root;
use crate::v1_1::Capability;
use abreast_webtypes::excerpt;

/// Fault of an index that has its own address as an entry.
pub const NAMES_ITSELF: &str = "it names itself";

/// An address that an index or dump lists more than once.
pub fn named_again(url: &str) -> String {
    format!("{} is named more than once", excerpt(url))
}

/// A document of another kind than expected.
pub fn is_another_kind(
    url: &str,
    (own, root): (Option<Capability>, Root),
    due: Capability,
) -> String {
    let own = own.map_or("plain Sitemap".to_owned(), |own| own.name(root));
    format!("{} is a {own}, not a {}", excerpt(url), due.name(Root::UrlSet))
}

/// A text at a position where only elements are allowed.
pub fn text_between_elements(text: &str) -> String {
    format!("text between elements: \"{}\"", excerpt(text))
}

/// A document that a link declares as a change set, but that is an index, or has an entry in this
/// line that is not a change.
pub fn is_no_change_set(url: &str, line: Option<u64>) -> String {
    let url = excerpt(url);
    line.map_or_else(
        || format!("{url} is not a change set: it is an index of Sitemaps"),
        |line| {
            format!(
                "{url} is not a change set: neither its root nor the entry in line {line} states that it is about changes"
            )
        },
    )
}

/// A Sitemap of ResourceSync 0.1 with this many addresses of other protocols and no resource
/// [rs-0.1 §4.3.3].
pub fn lists_only_others(url: &str, count: u64) -> String {
    format!(
        "{} lists no resource, only addresses of other protocols, such as OAI-PMH: {count}",
        excerpt(url)
    )
}

/// A change set instead of a Sitemap.
pub fn is_no_sitemap(url: &str) -> String {
    format!("{} is not a Sitemap: it is a change set", excerpt(url))
}

/// A document with changes only that may be a change set, although nothing else shows this.
pub fn may_be_change_set(url: &str) -> String {
    format!("{} may be a change set: each of its entries is a change", excerpt(url))
}
