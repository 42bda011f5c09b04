//! Projections: each makes the documents of one protocol from the log, and is the only place that
//! knows its addresses, versions, bytes and topics.
//!
//! The [`crate::publish::Publisher`] asks its projections in turn, keeps what they render and answers by path. The
//! server, the static site and the notifier know paths, topics and positions, and no protocol.

pub mod emm;
pub mod entities;
pub mod pages;
mod registry;
pub mod resourcesync;
pub mod resourcesync_0_1;
pub mod sdshare;

pub use crate::publish::{
    EndedTopic, FileContent, FileError, HeadReader, LogState, News, NewsRequest, NotifiedDocuments,
    Output, Projection, PublishedFile, Rendered, ResolvedDocument, SiteDocument, SiteStage, Topic,
    TopicContent, Version,
};
use abreast_webtypes::Link;

/// The paths of the topics of all protocols, below that of their set: what [`Projection::topic_urls`] makes, for those that have
/// only a store.
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

/// A number in its one spelling: no sign, no leading zero.
fn plain_number(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten()
}

/// A link to an entry point.
fn site_link(rel: &str, target: String, media_type: &str) -> Link {
    Link { target, rel: rel.to_owned(), params: vec![("type".to_owned(), media_type.to_owned())] }
}

#[cfg(test)]
mod made_files;
