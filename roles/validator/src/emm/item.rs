//! Activities as the history needs them.

use abreast_webtypes::W3cDatetime;

pub(super) fn is_activity(name: &str) -> bool {
    [EMM, IIIF, OTHERS].iter().any(|names| names.contains(&name))
}

/// What is remembered of an activity.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    /// Its place on the page, from 0.
    pub(super) number: u32,
    pub(super) id: Option<String>,
    /// The last part of its type.
    pub(super) kind: String,
    /// The IRI of the entity.
    pub(super) object: Option<String>,
    pub(super) time: Option<W3cDatetime>,
    /// Addresses of representations, with their media types.
    pub(super) links: Vec<(String, String)>,
    /// The address of its Entity Patch.
    pub(super) instrument: Option<String>,
    pub(super) patch: Option<PatchFacts>,
}

impl Item {
    /// Whether the entity is gone after it.
    pub(super) fn is_end(&self) -> bool {
        matches!(&*self.kind, "Delete" | "Remove")
    }
}

/// What the header of a patch states.
#[derive(Clone, Debug, Default)]
pub(super) struct PatchFacts {
    pub(super) id: Option<String>,
    pub(super) prev: Option<String>,
    pub(super) entity_prev: Option<String>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl PatchFacts {
    /// Whether it may be remembered: what servers send has any length.
    pub(super) fn is_short(&self) -> bool {
        let all = [&self.id, &self.prev, &self.entity_prev, &self.before, &self.after];
        all.into_iter().flatten().all(|text| text.len() <= TEXT_MAX)
    }
}

/// Bytes of an identifier or digest that is remembered.
pub(super) const TEXT_MAX: usize = 500;

/// Types of changes [emm-1.0 §3.3] [emm-0.1 §5].
pub(super) const EMM: &[&str] = &["Create", "Add", "Update", "Delete", "Remove", "Deprecate"];

/// [iiif-discovery §3.3].
pub(super) const IIIF: &[&str] =
    &["Create", "Update", "Delete", "Move", "Add", "Remove", "Refresh"];

/// Other types of activities that are registered.
pub(super) const OTHERS: &[&str] = &[
    "Accept",
    "Activity",
    "Announce",
    "Arrive",
    "Block",
    "Dislike",
    "Flag",
    "Follow",
    "Ignore",
    "Invite",
    "Join",
    "Leave",
    "Like",
    "Listen",
    "Offer",
    "Question",
    "Read",
    "Reject",
    "TentativeAccept",
    "TentativeReject",
    "Travel",
    "Undo",
    "View",
    "IntransitiveActivity",
];
