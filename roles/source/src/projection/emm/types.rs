//! Changes as they appear in the feed of a type: entities join and leave the feed when their types
//! change.

use super::paths::View;
use abreast_core::{ChangeRecord, Kind};

impl View {
    /// Kind of a change in a feed; `None` if the feed does not have the change. An entity joins the
    /// feed of a type by an `Add`, and leaves the feed by a `Remove` [emm-1.0 §4.1, §4.4].
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

    /// Whether the kind of a change differs between this feed and the feed of all changes. Such a
    /// change has a separate activity.
    pub(super) fn is_other(&self, record: &ChangeRecord) -> bool {
        self.kind_of(record).is_some_and(|kind| kind != record.kind)
    }
}

/// Last part of an IRI, after `#`, `/` or `:`.
fn last_part(iri: &str) -> &str {
    iri.rsplit(['#', '/', ':']).find(|part| !part.is_empty()).unwrap_or(iri)
}
