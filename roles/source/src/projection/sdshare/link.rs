//! The links from an entry to the fragments of its resource, and what is behind them: the one place
//! that knows what a fragment is in each kind of set.
//!
//! A set of files: a resource is one fragment, its bytes with their media type. Its address is not
//! that of the resource, which answers 404 once that is deleted: a fragment that is deleted is
//! empty, and has the status 200.

use super::paths::{FragmentPath, fragment};
use crate::projection::{FileContent, FileError, PublishedFile};
use crate::publish::{Freshness, PublishedSet, Publisher};
use crate::{Naming, Representation};
use abreast_contents::Content;
use abreast_core::State;
use abreast_sdshare::{Link, Relation};
use bytes::Bytes;
use std::borrow::Cow;
use std::sync::Arc;

/// The media type of bytes about which nothing is known.
const BYTES: &str = "application/octet-stream";

/// The IRI of a resource.
pub(super) fn resource_iri(naming: &Naming, key: &str) -> String {
    naming.uri(key)
}

/// Adds the links to the fragments of a resource; `None` is the state of one that is deleted.
pub(super) fn add_links(
    set: &PublishedSet,
    naming: &Naming,
    key: &str,
    state: Option<&State>,
    links: &mut Vec<Link>,
) {
    let href = match state {
        // Its bytes are on another server.
        Some(state) if !set.representations.has(key, state) => naming.uri(key),
        _ => fragment(set, key),
    };
    let media_type = state.and_then(|state| state.media_type.as_deref()).unwrap_or(BYTES);
    links.push(Link::new(Relation::Fragment, href).with_type(media_type));
}

/// The fragment at a path, as the resource is now: empty for a resource that the set does not have,
/// since the set states nothing about it.
pub(super) fn open(
    publisher: &Publisher,
    path: &FragmentPath<&Arc<PublishedSet>>,
) -> Result<PublishedFile, FileError> {
    let FragmentPath { set, key } = path;
    let failed = |cause: Box<dyn std::error::Error + Send + Sync>| FileError::Failed {
        detail: "the fragment cannot be read".to_owned(),
        cause,
    };
    let later = |detail: String| FileError::Later { detail, seconds: 1 };
    let log = publisher.log();
    let found = log.resource(set.id, key).map_err(|error| failed(Box::new(error)))?;
    let Some(resource) = found else {
        let head = log.head(set.id).map_err(|error| failed(Box::new(error)))?;
        if head.importing {
            return Err(later("the set is being read for the first time".to_owned()));
        }
        return Ok(PublishedFile {
            content: FileContent::Memory { bytes: Bytes::new(), tag: "empty".to_owned() },
            content_type: Cow::Borrowed(BYTES),
            set: Arc::clone(set),
            location: None,
            freshness: Freshness::Revalidate,
        });
    };
    let content = match set.representations.now().open(key, &resource.state) {
        Ok(Representation::File(file) | Representation::Kept(Content::File(file))) => {
            FileContent::File(file)
        }
        Ok(Representation::Kept(Content::Bytes(bytes))) => FileContent::Memory {
            bytes: bytes.into_inner().into(),
            tag: format!("{:x}", resource.position.0),
        },
        Ok(Representation::Elsewhere) => {
            let uri = set.urls.naming().uri(key);
            return Err(FileError::NotFound(format!("its bytes are at {uri}")));
        }
        // The file was removed or is written now; the log will have that soon.
        Err(_) => return Err(later("the resource is being changed".to_owned())),
    };
    Ok(PublishedFile {
        content,
        content_type: resource.state.media_type.map_or(Cow::Borrowed(BYTES), Cow::Owned),
        set: Arc::clone(set),
        location: Some(set.urls.naming().uri(key)),
        freshness: Freshness::Revalidate,
    })
}
