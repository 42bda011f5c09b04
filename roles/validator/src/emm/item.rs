//! Facts about activities, for checks across pages.

use abreast_webtypes::W3cDatetime;

pub(super) fn is_activity(name: &str) -> bool {
    [EMM, IIIF, OTHERS].iter().any(|names| names.contains(&name))
}

/// Facts about an activity that are remembered.
#[derive(Clone, Debug, Default)]
pub(super) struct Item {
    /// Index of the activity on the page, from 0.
    pub(super) number: u32,
    pub(super) id: Option<String>,
    /// Type of the activity, without prefix or namespace.
    pub(super) kind: String,
    /// IRI of the entity that changed.
    pub(super) object: Option<String>,
    pub(super) time: Option<W3cDatetime>,
    /// URLs of representations with their media types.
    pub(super) links: Vec<(String, String)>,
    /// URL of the Entity Patch, if the activity links to one.
    pub(super) instrument: Option<String>,
    pub(super) patch: Option<PatchFacts>,
}

impl Item {
    /// Whether the activity ends the existence of its entity.
    pub(super) fn is_end(&self) -> bool {
        matches!(&*self.kind, "Delete" | "Remove")
    }
}

/// Facts from the header of a patch.
#[derive(Clone, Debug, Default)]
pub(super) struct PatchFacts {
    pub(super) id: Option<String>,
    pub(super) prev: Option<String>,
    pub(super) entity_prev: Option<String>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl PatchFacts {
    /// Whether all texts are short enough to be remembered. Servers may send texts of any length.
    pub(super) fn is_short(&self) -> bool {
        let all = [&self.id, &self.prev, &self.entity_prev, &self.before, &self.after];
        all.into_iter().flatten().all(|text| text.len() <= TEXT_MAX)
    }
}

/// Most bytes of an identifier or digest that is remembered.
pub(super) const TEXT_MAX: usize = 500;

/// Types of activities in Entity Metadata Management [emm-1.0 §3.3] [emm-0.1 §5].
pub(super) const EMM: &[&str] = &["Create", "Add", "Update", "Delete", "Remove", "Deprecate"];

/// Types of activities in IIIF Change Discovery [iiif-discovery §3.3].
pub(super) const IIIF: &[&str] =
    &["Create", "Update", "Delete", "Move", "Add", "Remove", "Refresh"];

/// Other types of activities in Activity Streams.
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
