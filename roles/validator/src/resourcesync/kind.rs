//! Kinds of documents, and the times that each may contain [rs-core §A].

use crate::report::{Rule, rules as r};
use abreast_resourcesync::v1_1::{Capability, Root};

/// Whether a time attribute is allowed or required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttributeUse {
    Mandatory,
    Recommended,
    Optional,
    Forbidden,
    /// The table does not contain this attribute.
    Open,
}

impl AttributeUse {
    pub(crate) const fn is_allowed(self) -> bool {
        !matches!(self, Self::Forbidden)
    }
}

/// A row of the table: `at` and `from` of the document, then of its entries.
pub(crate) struct TimeRules {
    pub(crate) at: AttributeUse,
    pub(crate) from: AttributeUse,
    pub(crate) child_at: AttributeUse,
    pub(crate) child_from: AttributeUse,
}

/// Row of the table for a kind of document.
pub(crate) fn times(capability: Capability, root: Root) -> TimeRules {
    use AttributeUse::{Forbidden as X, Mandatory as M, Open, Optional as O, Recommended as R};
    use Capability as C;
    let row = |at, from, child_at, child_from| TimeRules { at, from, child_at, child_from };
    match (capability, root) {
        (C::ResourceList, Root::UrlSet) | (C::ResourceDumpManifest, _) => row(M, X, X, X),
        (C::ResourceList, Root::SitemapIndex) | (C::ResourceDump, _) => row(M, X, O, X),
        (C::ChangeList, Root::UrlSet) | (C::ChangeDumpManifest, _) => row(X, M, X, X),
        (C::ChangeList, Root::SitemapIndex) | (C::ChangeDump, _) => row(X, M, X, R),
        (C::ChangeNotification | C::FrameworkNotification, _) => row(X, O, X, X),
        _ => row(Open, Open, Open, Open),
    }
}

/// Whether the entries of a document are documents or packages, not resources.
pub(crate) fn is_container(capability: Capability, root: Root) -> bool {
    root == Root::SitemapIndex
        || points_to_packages(capability, root)
        || is_archive(capability)
        || {
            matches!(
                capability,
                Capability::Description
                    | Capability::CapabilityList
                    | Capability::FrameworkNotification
            )
        }
}

/// Whether the entries of a document are packages.
pub(crate) fn points_to_packages(capability: Capability, root: Root) -> bool {
    matches!(capability, Capability::ResourceDump | Capability::ChangeDump) && root == Root::UrlSet
}

/// Whether the entries are intervals in sequence: lists, packages or dumps of changes.
pub(crate) fn has_intervals(capability: Capability, root: Root) -> bool {
    capability == Capability::ChangeDump
        || capability == Capability::ChangeList && root == Root::SitemapIndex
}

/// Whether hubs deliver documents of this kind to subscribers.
pub(crate) fn is_notification(capability: Capability) -> bool {
    matches!(capability, Capability::ChangeNotification | Capability::FrameworkNotification)
}

pub(crate) fn is_archive(capability: Capability) -> bool {
    archived(capability).is_some()
}

/// Kind of the documents in an archive.
pub(crate) fn archived(capability: Capability) -> Option<Capability> {
    Some(match capability {
        Capability::ResourceListArchive => Capability::ResourceList,
        Capability::ResourceDumpArchive => Capability::ResourceDump,
        Capability::ChangeListArchive => Capability::ChangeList,
        Capability::ChangeDumpArchive => Capability::ChangeDump,
        _ => return None,
    })
}

pub(crate) fn is_manifest(capability: Capability) -> bool {
    matches!(capability, Capability::ResourceDumpManifest | Capability::ChangeDumpManifest)
}

/// Whether the entries of a document are changes of resources.
pub(crate) fn lists_changes(capability: Capability, root: Root) -> bool {
    matches!(
        (capability, root),
        (Capability::ChangeList | Capability::ChangeNotification, Root::UrlSet)
            | (Capability::ChangeDumpManifest, _)
    )
}

/// Name of this kind of document in its specification.
pub(crate) fn name(capability: Option<Capability>, root: Root) -> String {
    capability.map_or_else(|| "document".to_owned(), |capability| capability.name(root))
}

/// Rule for duplicate entries of a document or package. Copies refuse a Resource List Index with a
/// duplicate; with other indexes they read the document once.
pub(crate) fn of_second_entry(capability: Capability, root: Root) -> &'static Rule {
    match (capability, root) {
        (Capability::ResourceList, Root::SitemapIndex) => &r::LISTED_ONCE,
        _ => &r::NAMED_ONCE,
    }
}
