//! Projections. Each one renders the documents of one protocol from the log; no other code knows
//! the protocol's addresses, versions, bytes and topics.
//!
//! The [`crate::publish::Publisher`] tries the projections in order, caches rendered documents and
//! answers by path. The server, the static site and the notifier use paths, topics and positions,
//! and are independent of protocols.

pub mod emm;
pub mod entities;
pub mod pages;
mod registry;
pub mod resourcesync;
pub mod resourcesync_0_1;
mod routes;
pub mod sdshare;

pub use crate::publish::{
    EndedTopic, FileContent, FileError, HeadReader, LogState, News, NewsRequest, NotifiedDocuments,
    Output, Projection, PublishedFile, Rendered, ResolvedDocument, SharedContent, SiteDocument,
    SiteStage, Topic, TopicContent, Version,
};
use abreast_webtypes::Link;

/// Paths of the topics of all protocols, below the path of their set. They are the paths in
/// [`Projection::topic_urls`], for callers that only have a store.
pub(crate) const TOPIC_PATHS: [&str; 10] = [
    "notify/change",
    "notify/framework",
    "v0.1/notify/changeset",
    "sdshare/fragments",
    "emm/0.1",
    "emm/0.1/collection.json",
    "emm/1.0",
    "emm/1.0/collection.json",
    "iiif",
    "iiif/collection.json",
];

/// Parses a number in canonical form, without sign and leading zeros.
fn plain_number(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// Link of the site to an entry point.
fn site_link(rel: &str, target: String, media_type: &str) -> Link {
    Link { target, rel: rel.to_owned(), params: vec![("type".to_owned(), media_type.to_owned())] }
}

#[cfg(test)]
mod made_files;
