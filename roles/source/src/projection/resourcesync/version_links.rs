//! The links from an entry of a list to the versions of its resource [rs-core §14.6].

use crate::versions::{LINK_FORMAT, VersionUrls};
use abreast_core::State;
use abreast_resourcesync::v1_1::Ln;
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};

/// Entries with longer keys have no such links, so that a full list stays below the 50 MB that a
/// Sitemap may have. The resource itself names its TimeGate and its TimeMap all the same.
const MAX_KEY: usize = 128;

/// Appends them: the version itself, if the time since when it was there is known, its TimeGate and
/// its TimeMap.
///
/// A change has them only if its bytes were kept when it was recorded: closed lists of before stay
/// as they are.
pub(super) fn version_links(
    urls: &VersionUrls,
    key: &str,
    state: &State,
    since: Option<Timestamp>,
    out: &mut Vec<Ln>,
) {
    if key.len() > MAX_KEY || (since.is_some() && state.content.is_none()) {
        return;
    }
    if let Some(since) = since {
        out.push(Ln {
            rel: "memento".to_owned(),
            href: urls.memento(key, since),
            modified: Some(W3cDatetime { instant: state.modified, precision: Precision::Second }),
            digests: state.digests.clone(),
            length: state.length,
            media_type: state.media_type.clone(),
            encoding: state.encoding.clone(),
            ..Ln::default()
        });
    }
    out.push(Ln { rel: "timegate".to_owned(), href: urls.timegate(key), ..Ln::default() });
    out.push(Ln {
        rel: "timemap".to_owned(),
        href: urls.timemap(key),
        media_type: Some(LINK_FORMAT.to_owned()),
        ..Ln::default()
    });
}
