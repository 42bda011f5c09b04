//! The snapshot of a Source in lists, and the detection of changes while the lists are read
//! [rs-core §10, rs-0.1 §2.2.1].

use super::document::{Read as DocumentRead, has_changed};
use super::walk::{Lists, ListsRead, read_lists};
use crate::read::walk::Walk;
use crate::report::error::Error;
use crate::request::requests::Requests;
use abreast_resourcesync::sitemap::Version;
use abreast_store::mirror::Document;

/// Maximum number of lists that are tested again for changes meanwhile.
const RECHECKED_MAX: usize = 1_000;

/// A snapshot that was read.
pub(crate) struct Read<V: Version> {
    /// The first document.
    pub(crate) top: DocumentRead<V>,
    /// The URLs of the documents that are indexes.
    pub(crate) indexes: Vec<String>,
    /// The documents to test for changes afterwards.
    documents: Vec<(String, Document)>,
}

/// Passes on a list, or an index and its lists. With `keeps_all`, later runs can test each of the
/// documents, regardless of their number.
pub(crate) fn read_snapshot<L: Lists>(
    walk: &mut Walk<'_, '_>,
    list: &str,
    lists: &mut L,
    keeps_all: bool,
) -> Result<Read<L::Version>, Error> {
    walk.begin_snapshot(list)?;
    let ListsRead { top, mut read, indexes } = read_lists(walk, list, lists)?;
    walk.clock(&top.answered);
    for (url, document) in read.iter().take(if keeps_all { usize::MAX } else { RECHECKED_MAX }) {
        walk.keep_document(url, document);
    }
    read.truncate(RECHECKED_MAX);
    Ok(Read { top, indexes, documents: read })
}

impl<V: Version> Read<V> {
    /// Whether a list of an index changed while others were read.
    pub(crate) fn changed_meanwhile(&self, requests: &Requests<'_>) -> Result<bool, Error> {
        if !self.top.is_index {
            return Ok(false);
        }
        for (url, known) in &self.documents {
            if has_changed(requests, url, known)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
