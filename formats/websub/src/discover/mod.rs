//! Discovery of a topic's hubs [websub §4].
//!
//! The first place with a hub decides: `Link` headers, then links in a feed, then the `<head>` of a
//! web page. The body of a page is ignored, since strangers may write there [websub §8.1].

mod feed;
pub(crate) mod header;
mod links;
mod page;

use abreast_webtypes::parse_link_headers;
use abreast_webtypes::xml::utf8_begin;
use links::HubLinks;
pub use links::{DiscoverError, Discovered, DiscoverySource, MAX_HUBS};

/// Most bytes of a topic's content that are searched; the rest is not read.
pub const MAX_BODY_LENGTH: usize = 1_024 * 1_024;
/// Discovery in a response: its URL after redirects, the values of its `Link` headers, its
/// `Content-Type` and content.
///
/// # Errors
/// See [`DiscoverError`].
pub fn discover<'a>(
    url: &str,
    links: impl IntoIterator<Item = &'a str>,
    content_type: &str,
    body: &[u8],
) -> Result<Discovered, DiscoverError> {
    if let Some(found) = in_headers(url, links)? {
        return Ok(found);
    }
    in_body(url, content_type, body)?.ok_or(DiscoverError::NoHub)
}

/// Discovery in the `Link` headers of a response, `None` when they name no hub: a request with HEAD
/// is enough for this.
///
/// # Examples
/// ```
/// use abreast_websub::in_headers;
///
/// let links = [
///     r#"<https://hub.example/>; rel="hub""#,
///     r#"</feed/maps>; rel="self""#,
/// ];
/// let found = in_headers("https://library.example/feed", links)?.expect("the headers name a hub");
/// assert_eq!(found.hubs, ["https://hub.example/"]);
/// assert_eq!(found.topic, "https://library.example/feed/maps");
/// # Ok::<(), abreast_websub::DiscoverError>(())
/// ```
///
/// # Errors
/// See [`DiscoverError`].
pub fn in_headers<'a>(
    url: &str,
    links: impl IntoIterator<Item = &'a str>,
) -> Result<Option<Discovered>, DiscoverError> {
    let mut found = HubLinks::default();
    for link in parse_link_headers(links)? {
        if link.anchor().is_none() {
            found.add(url, &link.rel, &link.target)?;
        }
    }
    found.finish(DiscoverySource::Header)
}

/// Discovers hubs in content. `None` if the content does not link to a hub or cannot have such
/// links.
///
/// Lenient: a feed that is not well-formed is read up to the fault.
///
/// # Examples
/// ```
/// use abreast_websub::{DiscoverySource, in_body};
///
/// let feed = br#"<feed xmlns="http://www.w3.org/2005/Atom">
///   <link rel="hub" href="https://hub.example/"/>
///   <link rel="self" href="https://library.example/new-books.atom"/>
/// </feed>"#;
/// let url = "https://library.example/new-books";
/// let found = in_body(url, "application/atom+xml", feed)?.expect("the feed names a hub");
/// assert_eq!(found.place, DiscoverySource::Feed);
/// assert_eq!(found.topic, "https://library.example/new-books.atom");
/// # Ok::<(), abreast_websub::DiscoverError>(())
/// ```
///
/// # Errors
/// See [`DiscoverError`].
pub fn in_body(
    url: &str,
    content_type: &str,
    body: &[u8],
) -> Result<Option<Discovered>, DiscoverError> {
    let body = &body[..body.len().min(MAX_BODY_LENGTH)];
    match kind(content_type, body) {
        Some(DiscoverySource::Feed) => feed::links(url, body)?.finish(DiscoverySource::Feed),
        Some(DiscoverySource::Page) => page::links(url, body)?.finish(DiscoverySource::Page),
        _ => Ok(None),
    }
}

/// Whether content is a feed or a page, according to its media type. For general types such as XML
/// the first bytes decide.
fn kind(content_type: &str, body: &[u8]) -> Option<DiscoverySource> {
    let media_type =
        content_type.split(';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    let begin = utf8_begin(&body[..body.len().min(4_096)]);
    let text = begin.trim_ascii_start();
    let is_page = || {
        let begin = text[..text.len().min(1_024)].to_ascii_lowercase();
        ["<!doctype html", "<html"]
            .iter()
            .any(|tag| memchr::memmem::find(&begin, tag.as_bytes()).is_some())
    };
    match media_type.as_str() {
        "text/html" | "application/xhtml+xml" => Some(DiscoverySource::Page),
        "application/xml" | "text/xml" | "" if is_page() => Some(DiscoverySource::Page),
        "" if text.starts_with(b"<?xml") => Some(DiscoverySource::Feed),
        "application/xml" | "text/xml" => Some(DiscoverySource::Feed),
        other if other.ends_with("+xml") => Some(DiscoverySource::Feed),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
