//! What a change is in the feed of a type: entities join it, and leave it, as their types change.

use super::paths::View;
use abreast_core::{ChangeRecord, Kind};

impl View {
    /// What a change is in a feed, `None` if it is not in it. An entity joins that of a type by an
    /// `Add`, and leaves it by a `Remove` [emm-1.0 §4.1, §4.4].
    pub(super) fn kind_of(&self, record: &ChangeRecord) -> Option<Kind> {
        let Self::Type(name) = self else { return Some(record.kind) };
        let is_named = |types: &[String]| types.iter().any(|iri| last_part(iri) == name);
        let has = record.description().is_some_and(|description| is_named(&description.types));
        let had = record.former_types.as_deref().map_or(has, is_named);
        match (had, has) {
            (false, false) => None,
            (true, false) => Some(Kind::Remove),
            (false, true) => Some(Kind::Add),
            (true, true) => Some(record.kind),
        }
    }

    /// Whether a change is another one in this feed than in that of all changes, so that it has an
    /// activity of its own.
    pub(super) fn is_other(&self, record: &ChangeRecord) -> bool {
        self.kind_of(record).is_some_and(|kind| kind != record.kind)
    }
}

/// The last part of an IRI, behind `#`, `/` or `:`.
fn last_part(iri: &str) -> &str {
    iri.rsplit(['#', '/', ':']).find(|part| !part.is_empty()).unwrap_or(iri)
}
