//! Links from an entry to the fragments of its resource, and the content of fragments. No other
//! module depends on the kind of set for fragments.
//!
//! | set | fragments of a resource |
//! |---|---|
//! | of files | the bytes of the resource, with their media type |
//! | of entities | the description, in each syntax that can express it |
//!
//! The URL of a fragment differs from the URI of the resource, because a deleted resource is
//! answered with 404, and the fragment of a deleted resource is empty, with status 200.

use super::form::Form;
use super::paths::{FragmentPath, fragment};
use crate::publish::files::{FileContent, FileError, PublishedFile};
use crate::publish::publisher::Publisher;
use crate::publish::{Freshness, PublishedSet, tag_of_bytes};
use crate::{Naming, Representation};
use abreast_core::contents::Content;
use abreast_core::{Resource, State};
use abreast_rdf::{Syntax, WriteError, can_write};
use abreast_sdshare::{Link, Relation};
use std::borrow::Cow;
use std::io::{self, Read as _};
use std::sync::Arc;

/// The media type of bytes about which nothing is known.
const BYTES: &str = "application/octet-stream";

/// IRI of a resource, by its key.
pub(super) fn resource_iri(naming: &Naming, key: &str) -> String {
    if naming.names_entities() { key.to_owned() } else { naming.uri(key) }
}

/// Adds the links to the fragments of a resource; `None` is the state of a deleted resource.
pub(super) fn add_links(
    set: &PublishedSet,
    naming: &Naming,
    key: &str,
    state: Option<&State>,
    links: &mut Vec<Link>,
) {
    if naming.names_entities() {
        let is_offered = |form: &Form| *form != Form::RdfXml || is_rdf_xml(set, state);
        for form in Form::ALL.into_iter().filter(is_offered) {
            let href = fragment(set, naming, key, Some(form));
            links.push(Link::new(Relation::Fragment, href).with_type(form.media_type()));
        }
        return;
    }
    let href = match state {
        // The bytes are on another server.
        Some(state) if !set.representations.has(key, state) => naming.uri(key),
        _ => fragment(set, naming, key, None),
    };
    let media_type = state.and_then(|state| state.media_type.as_deref()).unwrap_or(BYTES);
    links.push(Link::new(Relation::Fragment, href).with_type(media_type));
}

/// Whether RDF/XML can express a description. An empty description is possible in RDF/XML.
fn is_rdf_xml(set: &PublishedSet, state: Option<&State>) -> bool {
    let Some(state) = state else { return true };
    let lines = description(set, state).ok().flatten();
    lines.is_some_and(|lines| can_write(Syntax::RdfXml, &lines).is_ok())
}

/// Description of an entity; `None` if the description is no longer stored.
fn description(set: &PublishedSet, state: &State) -> io::Result<Option<Vec<u8>>> {
    let Some(mut kept) = set.representations.open_kept(state)? else { return Ok(None) };
    let mut lines = Vec::with_capacity(state.length.unwrap_or_default() as usize);
    kept.read_to_end(&mut lines)?;
    Ok(Some(lines))
}

/// Opens the current fragment at a path. The fragment is empty if the set does not have the
/// resource, because the set does not contain statements about it.
pub(super) fn open(
    publisher: &Publisher,
    path: &FragmentPath<'_>,
) -> Result<PublishedFile, FileError> {
    let FragmentPath { set, key, form } = path;
    let log = publisher.log();
    let found = log.resource(set.id, key).map_err(failed)?;
    if found.is_none() && log.head(set.id).map_err(failed)?.importing {
        return Err(later("the set is being read for the first time"));
    }
    match form {
        Some(form) => {
            let length = found.as_ref().and_then(|found| found.state.length);
            let _turn = publisher.turn(length.unwrap_or_default());
            description_in(publisher, set, *form, found.as_ref())
        }
        None => bytes_of(publisher, set, found),
    }
}

/// Fragment in a set of files: the bytes of the resource.
fn bytes_of(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
    found: Option<Resource>,
) -> Result<PublishedFile, FileError> {
    let Some(resource) = found else {
        return Ok(PublishedFile {
            content: made(publisher, BYTES, Vec::new())?,
            gzip: None,
            content_type: Cow::Borrowed(BYTES),
            set: Arc::clone(set),
            location: None,
            freshness: Freshness::Revalidate,
            negotiated: false,
            digest: None,
        });
    };
    let uri = set.urls.naming().uri(&resource.key);
    let content = match set.representations.now().open(&resource.key, &resource.state) {
        Ok(Representation::File(file)) => FileContent::File(file),
        Ok(Representation::Kept(kept)) => {
            let media_type = resource.state.media_type.as_deref().unwrap_or(BYTES);
            stored(publisher, media_type, &resource.state, kept)?
        }
        Ok(Representation::Elsewhere) => {
            return Err(FileError::NotFound(format!("its bytes are at {uri}")));
        }
        // The file was removed or is being written; the log will have the change soon.
        Err(_) => return Err(changing()),
    };
    Ok(PublishedFile {
        content,
        gzip: None,
        content_type: resource.state.media_type.map_or(Cow::Borrowed(BYTES), Cow::Owned),
        set: Arc::clone(set),
        location: Some(uri),
        freshness: Freshness::Revalidate,
        negotiated: true,
        digest: None,
    })
}

/// Fragment in a set of entities: the description in a syntax.
fn description_in(
    publisher: &Publisher,
    set: &Arc<PublishedSet>,
    form: Form,
    found: Option<&Resource>,
) -> Result<PublishedFile, FileError> {
    let lines = match found {
        None => Vec::new(),
        // The description was replaced after the state was read.
        Some(found) => description(set, &found.state)
            .map_err(failed)?
            .ok_or_else(|| later("the entity is being changed"))?,
    };
    let bytes = form.write(lines).map_err(|error| match error {
        WriteError::Cannot(error) => FileError::NotAcceptable(error.to_string()),
        error => failed(error),
    })?;
    Ok(PublishedFile {
        content: made(publisher, form.media_type(), bytes)?,
        gzip: None,
        content_type: Cow::Borrowed(form.media_type()),
        set: Arc::clone(set),
        location: None,
        freshness: Freshness::Revalidate,
        negotiated: true,
        digest: None,
    })
}

/// Content of a file that was rendered for this request.
fn changing() -> FileError {
    later("the resource is being changed")
}

/// A stored content, as the file or the bytes that it is on this machine.
fn stored(
    publisher: &Publisher,
    media_type: &str,
    state: &State,
    kept: Content,
) -> Result<FileContent, FileError> {
    if let Some(bytes) = kept.in_memory() {
        return made(publisher, media_type, bytes.to_vec());
    }
    if let Some(file) = kept.file() {
        let file = file.try_clone_to_owned().map_err(|_| changing())?;
        return Ok(FileContent::File(file.into()));
    }
    let tag = state.content.map(|id| id.to_string()).unwrap_or_default();
    Ok(FileContent::Stored { tag, content: kept })
}

fn made(publisher: &Publisher, media_type: &str, bytes: Vec<u8>) -> Result<FileContent, FileError> {
    let tag = tag_of_bytes(media_type, &bytes);
    let body = publisher.body(bytes).map_err(|error| match error.kind() {
        io::ErrorKind::QuotaExceeded => later(&error.to_string()),
        _ => failed(error),
    })?;
    Ok(FileContent::Made { tag, body })
}

fn later(detail: &str) -> FileError {
    FileError::Later { detail: detail.to_owned(), seconds: 1 }
}

fn failed(cause: impl std::error::Error + Send + Sync + 'static) -> FileError {
    FileError::Failed { detail: "the fragment cannot be read".to_owned(), cause: Box::new(cause) }
}
