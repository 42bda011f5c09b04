//! Links from an entry of a list to the versions of its resource [rs-core §14.6].

use crate::versions::{LINK_FORMAT, VersionUrls};
use abreast_core::{Position, State};
use abreast_resourcesync::v1_1::Ln;
use abreast_webtypes::{Precision, Timestamp, W3cDatetime};

/// Appends the links to the TimeGate and the TimeMap, and to the version itself if the time of the
/// version is known.
pub(super) fn version_links(
    urls: &VersionUrls,
    key: &str,
    state: &State,
    change: Option<(Position, Timestamp)>,
    out: &mut Vec<Ln>,
) {
    if !urls.are_listed(key, state, change.map(|(at, _)| at)) {
        return;
    }
    if let Some((_, since)) = change {
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
