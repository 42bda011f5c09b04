//! Discovery of a topic's hubs [websub §4].
//!
//! The first place with a hub decides: `Link` headers, then links in a feed, then the `<head>` of a
//! web page. The body of a page is ignored, since strangers may write there [websub §8.1].

mod feed;
mod page;

use abreast_webtypes::xml::utf8_begin;
use abreast_webtypes::{LinkHeaderError, ResolveError, parse_link_headers, resolve};
use thiserror::Error;

/// Most bytes of a topic's content that are searched; the rest is not read.
pub const MAX_BODY_LENGTH: usize = 1_024 * 1_024;
/// Most hubs that one topic may have.
pub const MAX_HUBS: usize = 16;

/// Where hubs and topic were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiscoverySource {
    /// The `Link` headers of the answer.
    Header,
    /// `<link>` of an Atom or RSS feed.
    Feed,
    /// `<link>` in the head of a web page.
    Page,
}

/// A topic and its hubs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Discovered {
    /// URL to subscribe to: the link `rel="self"`, whether or not this URL was fetched.
    pub topic: String,
    /// At least one hub, in the topic's order and without repetition.
    pub hubs: Vec<String>,
    /// Place of the links in the answer.
    pub place: DiscoverySource,
}

/// Why the hubs of a topic are unknown.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// Neither the headers nor the content link to a hub.
    #[error(
        "no hub is named, neither in `Link` headers nor in the content\n  help: it cannot be subscribed to; poll it"
    )]
    NoHub,
    /// A hub, and no topic.
    #[error("a hub is named, but no topic: no link has rel=\"self\"")]
    NoTopic,
    /// Several topics in one place.
    #[error("several links with rel=\"self\" name different topics: `{0}` and `{1}`")]
    Topics(String, String),
    /// The topic has more hubs than [`MAX_HUBS`].
    #[error("more than {MAX_HUBS} hubs are named")]
    Hubs,
    /// The `Link` headers cannot be read.
    #[error(transparent)]
    Header(#[from] LinkHeaderError),
    /// The target of a link cannot be resolved.
    #[error("a link leads nowhere: {0}")]
    Link(#[from] ResolveError),
}

/// Links found in one place so far.
#[derive(Debug, Default)]
struct HubLinks {
    topic: Option<String>,
    hubs: Vec<String>,
}

impl HubLinks {
    /// Records a hub or topic. Links with other relations are ignored, including unusable targets.
    fn add(&mut self, base: &str, rel: &str, target: &str) -> Result<(), DiscoverError> {
        let has = |rel_wanted: &str| {
            rel.split_ascii_whitespace().any(|rel| rel.eq_ignore_ascii_case(rel_wanted))
        };
        if has("self") {
            let topic = resolve(base, target)?;
            match &self.topic {
                Some(known) if *known != topic => {
                    let cut = abreast_webtypes::excerpt;
                    return Err(DiscoverError::Topics(cut(known), cut(&topic)));
                }
                _ => self.topic = Some(topic),
            }
        }
        if has("hub") {
            let hub = resolve(base, target)?;
            if !self.hubs.contains(&hub) {
                if self.hubs.len() == MAX_HUBS {
                    return Err(DiscoverError::Hubs);
                }
                self.hubs.push(hub);
            }
        }
        Ok(())
    }

    /// `None` without a hub: another place then decides.
    fn finish(self, place: DiscoverySource) -> Result<Option<Discovered>, DiscoverError> {
        match (self.topic, self.hubs) {
            (_, hubs) if hubs.is_empty() => Ok(None),
            (None, _) => Err(DiscoverError::NoTopic),
            (Some(topic), hubs) => Ok(Some(Discovered { topic, hubs, place })),
        }
    }
}

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
