//! Entity Patches [emm-0.1 §4.2], and the log of all patches, as RDF Delta publishes logs.

use super::activity::Activities;
use super::log_patch::LogPatch;
use super::pages::{Pages, descriptions};
use super::paths::{Feed, Part};
use crate::projection::routes::Route as _;
use crate::publish::{PublishError, PublishedSet, Rendered};
use abreast_core::{ChangeLog, ChangeRecord, Head, Position};
use abreast_emm::{Profile, write_patch};
use abreast_rdf::{EntityPatch, PatchBlankNodes};
use md5::{Digest as _, Md5};

/// Media type of the state before the first patch.
const N_QUADS: &str = "application/n-quads";

/// Ids of a set's patches. Each id is a UUID that encodes the log and the position.
#[derive(Clone, Copy, Debug)]
pub(super) struct PatchIds([u8; 8]);

impl PatchIds {
    pub(super) fn new(set: &PublishedSet, head: &Head) -> Self {
        let log = format!("{} {}", set.urls.base(), head.created.as_micros());
        let hash: [u8; 16] = Md5::digest(log).into();
        let mut half = [0; 8];
        half.copy_from_slice(&hash[..8]);
        Self(half)
    }

    /// Id of the patch at a position, as an IRI.
    fn iri(self, position: Position) -> String {
        let mut bits = [0; 16];
        bits[..8].copy_from_slice(&self.0);
        bits[8..].copy_from_slice(&position.0.to_be_bytes());
        rdf_patch::uuid_iri(bits)
    }

    /// Position of the patch with an id, if the id belongs to this log.
    pub(super) fn position(self, id: [u8; 16]) -> Option<Position> {
        let mut half = [0; 8];
        half.copy_from_slice(&id[8..]);
        // The two highest bits encode the variant of the UUID.
        let position = Position(u64::from_be_bytes(half) & (u64::MAX >> 2));
        (rdf_patch::parse_uuid(&self.iri(position)) == Some(id)).then_some(position)
    }
}

impl Pages<'_, '_> {
    /// Patch of a change, with blank nodes as `blank_nodes` specifies; `None` if the description
    /// before the change is no longer stored.
    pub(super) fn patch(
        &self,
        record: &ChangeRecord,
        blank_nodes: PatchBlankNodes<'_>,
    ) -> Result<Option<String>, PublishError> {
        let set = self.feed().set;
        let Some(found) = descriptions(self.log(), set, record)? else { return Ok(None) };
        let ids = PatchIds::new(set, self.head());
        let prev = self.previous(record)?.map(|at| ids.iri(at));
        let entity_prev = found.former.filter(|at| *at > self.begin()).map(|at| ids.iri(at));
        let mut text = Vec::new();
        EntityPatch {
            entity: &record.key,
            old: &found.before,
            new: &found.after,
            id: &ids.iri(record.position),
            prev: prev.as_deref(),
            entity_prev: entity_prev.as_deref(),
            blank_nodes,
        }
        .write(&mut text)
        .map_err(|error| PublishError::Contents(std::io::Error::other(error)))?;
        // Stored descriptions and identifiers are valid text.
        Ok(Some(String::from_utf8_lossy(&text).into_owned()))
    }
}

/// Prefix of the IRIs that replace blank nodes; it belongs to this server.
pub(super) fn skolem_base(set: &PublishedSet) -> &str {
    let base = set.urls.base();
    let host = base.find("://").map_or(0, |scheme| scheme + 3);
    base[host..].find('/').map_or(base, |path| &base[..host + path])
}

/// Entity Patch of a change as a document: the JSON document of version 0.1, or the plain patch.
pub(super) fn document(
    feed: &Feed<'_>,
    pages: &Pages<'_, '_>,
    record: &ChangeRecord,
    raw: bool,
) -> Result<Rendered, PublishError> {
    let blank_nodes = PatchBlankNodes::Skolem(skolem_base(feed.set));
    let text = pages.patch(record, blank_nodes)?.ok_or(PublishError::NotKept)?;
    if raw || feed.profile != Profile::Emm01 {
        return Ok(as_it_is(text));
    }
    let id = feed.history().url_of(&Part::Patch(record.position));
    let bytes = Activities::new(feed)
        .with(record, None, None, |activity| write_patch(feed.profile, activity, &id, &text));
    Ok(Rendered { bytes, content_type: feed.profile.media_types()[0] })
}

/// Patch in the log of a set, with labels of blank nodes, because stores that follow such logs
/// retain the labels.
pub(super) fn of_log(
    feed: &Feed<'_>,
    log: &dyn ChangeLog,
    pages: &Pages<'_, '_>,
    patch: LogPatch,
) -> Result<Rendered, PublishError> {
    let set = feed.set;
    let position = match patch {
        // The first patch does not have a predecessor.
        LogPatch::Init => {
            return Ok(Rendered { bytes: Vec::new(), content_type: N_QUADS });
        }
        LogPatch::Current => {
            let last = pages.head().position;
            if pages.count() == Some(0) {
                return Err(PublishError::NotFound);
            }
            return Err(PublishError::Elsewhere(LogPatch::At(last).url(&set.urls)));
        }
        LogPatch::At(position) => position,
        LogPatch::Id(id) => {
            PatchIds::new(set, &log.head(set.id)?).position(id).ok_or(PublishError::NotFound)?
        }
    };
    let record = pages.change(position)?.ok_or(PublishError::NotFound)?;
    let text = pages.patch(&record, PatchBlankNodes::Labels)?.ok_or(PublishError::NotKept)?;
    Ok(as_it_is(text))
}

fn as_it_is(text: String) -> Rendered {
    Rendered { bytes: text.into_bytes(), content_type: rdf_patch::MEDIA_TYPE }
}
