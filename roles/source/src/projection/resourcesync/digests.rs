//! Cache of the digests of rendered documents.

use crate::projection::resourcesync::dumps::keeper::lock;
use crate::publish::{PublishError, PublishedSet, Publisher};
use abreast_core::SetId;
use md5::Digest as _;
use sha2::Sha256;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Mutex;

/// Digests of Source Descriptions and Capability Lists, cached while these documents are unchanged.
#[derive(Debug, Default)]
pub(super) struct Digests {
    /// Digests by URL; a Source Description does not change while the process runs.
    source_descriptions: Mutex<HashMap<String, String>>,
    /// Digest for each set, with the entity tag of the Capability List.
    capability_lists: Mutex<HashMap<SetId, (String, String)>>,
}

impl Digests {
    pub(crate) fn source_description(
        &self,
        publisher: &Publisher,
        url: &str,
    ) -> Result<String, PublishError> {
        if let Some(known) = lock(&self.source_descriptions).get(url) {
            return Ok(known.clone());
        }
        let digest = digest(publisher, &publisher.urls().path_of(url))?;
        lock(&self.source_descriptions).insert(url.to_owned(), digest.clone());
        Ok(digest)
    }

    pub(crate) fn capability_list(
        &self,
        publisher: &Publisher,
        set: &PublishedSet,
    ) -> Result<String, PublishError> {
        let path = publisher.urls().path_of(&set.urls.capability_list());
        let document = publisher.document(&path)?;
        if let Some((tag, known)) = lock(&self.capability_lists).get(&set.id)
            && *tag == document.tag
        {
            return Ok(known.clone());
        }
        let digest = digest(publisher, &path)?;
        lock(&self.capability_lists).insert(set.id, (document.tag.clone(), digest.clone()));
        Ok(digest)
    }
}

/// Digest of the current document at a path.
pub(super) fn digest(publisher: &Publisher, path: &str) -> Result<String, PublishError> {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(publisher.bytes(path)?) {
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}
