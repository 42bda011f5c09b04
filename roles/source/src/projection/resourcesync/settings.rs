//! Projection of ResourceSync 1.1 with its settings.

use super::archives::{ArchiveKind, Archives, MAX_ENTRIES};
use super::digests;
use super::source_description::MAX_SETS;
use crate::publish::{PublishError, PublishedSet, Publisher};

/// Projection of ResourceSync 1.1, and the settings of its documents.
#[derive(Debug)]
pub struct ResourceSync {
    pub(super) sets_per_description: usize,
    entries_per_archive: u64,
    pub(super) digests: digests::Digests,
}

/// Source Description that lists a set.
pub(super) struct OfSet {
    pub(super) url: String,
    /// URL of the index, if the Source Description is a part of one.
    pub(super) index: Option<String>,
}

impl Default for ResourceSync {
    fn default() -> Self {
        Self {
            sets_per_description: MAX_SETS,
            entries_per_archive: MAX_ENTRIES,
            digests: digests::Digests::default(),
        }
    }
}

impl ResourceSync {
    /// Sets the number of entries per archive document, at most 50,000. More entries need an index.
    #[must_use]
    pub fn with_entries_per_archive(self, entries: u64) -> Self {
        Self { entries_per_archive: entries.clamp(1, MAX_ENTRIES), ..self }
    }

    /// Sets the number of sets per Source Description, at most 50,000. More sets need an index.
    #[must_use]
    pub fn with_sets_per_description(self, sets: usize) -> Self {
        Self { sets_per_description: sets.clamp(1, MAX_SETS), ..self }
    }

    /// Source Description that lists a set.
    pub(super) fn description_of(&self, publisher: &Publisher, set: &PublishedSet) -> OfSet {
        let (most, all) = (self.sets_per_description, publisher.sets().len());
        let urls = publisher.urls();
        match publisher.place_of(&set.slug).filter(|_| all > most) {
            None => OfSet { url: urls.source_description(), index: None },
            Some(place) => {
                let part = (place / most + 1) as u64;
                OfSet {
                    url: urls.source_description_part(part),
                    index: Some(urls.source_description()),
                }
            }
        }
    }

    /// Number of Source Descriptions in the index; 0 if one document is enough.
    pub(super) fn description_parts(&self, publisher: &Publisher) -> u64 {
        let (most, all) = (self.sets_per_description, publisher.sets().len());
        if all <= most { 0 } else { all.div_ceil(most) as u64 }
    }

    /// Approximate length of a Source Description in bytes.
    pub(super) fn description_length(&self, publisher: &Publisher) -> u64 {
        publisher.sets().len().min(self.sets_per_description) as u64 * 300
    }

    /// Archive of one kind for a set.
    pub(super) fn archives<'a>(
        &self,
        publisher: &'a Publisher,
        set: &'a PublishedSet,
        kind: ArchiveKind,
    ) -> Result<Archives<'a>, PublishError> {
        let lists = set.archive().map(AsRef::as_ref).ok_or(PublishError::NotFound)?;
        Ok(Archives { log: &**publisher.log(), set, lists, kind, most: self.entries_per_archive })
    }
}
