//! Archive and dumps of a set.

use super::archive::Archive;
use super::archives::ArchiveKind;
use super::capability_list::HasDumps;
use super::dumps::{self, SetDumps};
use super::values::link;
use crate::publish::{PublishError, PublishedSet};
use abreast_resourcesync::v1_1::Ln;
use std::sync::Arc;

impl PublishedSet {
    /// Archive of the set, if earlier lists are archived.
    pub fn archive(&self) -> Option<&Arc<Archive>> {
        self.part()
    }

    /// Dumps of the set, if dumps are enabled.
    pub fn dumps(&self) -> Option<&Arc<SetDumps>> {
        self.part()
    }

    /// Kinds of archives that the set has.
    pub(crate) fn archive_kinds(&self) -> Vec<ArchiveKind> {
        let has_dumps = self.has_dumps();
        let there = |kind: &ArchiveKind| match kind {
            ArchiveKind::ResourceLists | ArchiveKind::ChangeLists => true,
            ArchiveKind::ResourceDumps => has_dumps.resources,
            ArchiveKind::ChangeDumps => has_dumps.changes,
        };
        let kinds = ArchiveKind::ALL.into_iter().filter(|_| self.archive().is_some());
        kinds.filter(there).collect()
    }

    /// Link `rs:ln rel="archives"` for the entry point of a list.
    pub(super) fn archive_link(&self, kind: ArchiveKind) -> Option<Ln> {
        self.archive()?;
        Some(link("archives", &self.urls.archive(kind)))
    }

    /// Kinds of dumps of the set that exist now.
    pub(crate) fn has_dumps(&self) -> HasDumps {
        let Some(dumps) = self.dumps() else { return HasDumps::default() };
        HasDumps {
            resources: dumps.newest_resources().is_some(),
            changes: dumps.changes_span().is_some(),
            since: true,
        }
    }

    /// Newest Resource Dump. The call also requests a newer dump, if one is due.
    pub(super) fn resource_dump(&self) -> Result<Arc<dumps::Dump>, PublishError> {
        let dumps = self.dumps().ok_or(PublishError::NotFound)?;
        dumps.ask();
        dumps.newest_resources().ok_or_else(|| match dumps.failure() {
            _ if dumps.impossible() => PublishError::NotFound,
            Some((reason, seconds)) => PublishError::NotMade { reason, seconds },
            None => PublishError::Making,
        })
    }
}
