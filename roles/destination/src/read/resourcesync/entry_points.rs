//! The documents of a set, as found by discovery.

use super::keys;
use crate::read::moved::other_source;
use crate::report::error::Error;
use abreast_store::mirror::Mirror;

/// The documents that describe a set of resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EntryPoints {
    pub(crate) capability_list: Option<String>,
    /// The address of a Capability List that is missing.
    pub(crate) missing_capability_list: Option<String>,
    pub(crate) resource_list: Option<String>,
    pub(crate) change_list: Option<String>,
    pub(crate) resource_dump: Option<String>,
    pub(crate) change_dump: Option<String>,
    /// The archive of older Change Lists.
    pub(crate) change_list_archive: Option<String>,
    /// The common start of the URIs of the set's resources.
    pub(crate) uri_space: Option<String>,
    /// The address that creates a package with all changes since a time.
    pub(crate) changes_since: Option<String>,
}

impl EntryPoints {
    /// Whether there is anything that a copy can be made from.
    pub(crate) const fn has_any(&self) -> bool {
        self.resource_list.is_some()
            || self.change_list.is_some()
            || self.resource_dump.is_some()
            || self.change_dump.is_some()
    }

    /// The document that identifies the set: hosts are judged by it.
    pub(crate) fn first(&self) -> Option<&str> {
        let documents =
            [&self.resource_list, &self.change_list, &self.resource_dump, &self.change_dump];
        documents.into_iter().find_map(|document| document.as_deref())
    }

    /// # Errors
    /// The folder is a copy of another set, `known`.
    pub(crate) fn check_same(&self, known: &Self, url: &str) -> Result<(), Error> {
        let pairs = [
            (&self.capability_list, &known.capability_list),
            (&self.resource_list, &known.resource_list),
            (&self.change_list, &known.change_list),
            (&self.resource_dump, &known.resource_dump),
            (&self.change_dump, &known.change_dump),
        ];
        if known.has_any() && !pairs.iter().any(|(own, known)| own.is_some() && own == known) {
            let of = |entry_points: &Self| {
                entry_points
                    .capability_list
                    .as_deref()
                    .or(entry_points.first())
                    .unwrap_or_default()
                    .to_owned()
            };
            let message =
                format!("this folder is a copy of {}, not of {} ({url})", of(known), of(self));
            return Err(other_source(message));
        }
        Ok(())
    }

    /// The documents that an earlier run stored.
    pub(crate) fn known(mirror: &Mirror) -> Result<Self, Error> {
        Ok(Self {
            capability_list: mirror.meta(keys::CAPABILITY_LIST)?,
            missing_capability_list: mirror.meta(keys::MISSING_CAPABILITY_LIST)?,
            resource_list: mirror.meta(keys::RESOURCE_LIST)?,
            change_list: mirror.meta(keys::CHANGE_LIST)?,
            resource_dump: mirror.meta(keys::RESOURCE_DUMP)?,
            change_dump: mirror.meta(keys::CHANGE_DUMP)?,
            change_list_archive: mirror.meta(keys::CHANGE_LIST_ARCHIVE)?,
            uri_space: mirror.meta(keys::URI_SPACE)?,
            changes_since: mirror.meta(keys::CHANGES_SINCE)?,
        })
    }

    /// Stores the documents for the next run, if they have changed.
    pub(crate) fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        if Self::known(mirror)? == *self {
            return Ok(());
        }
        for (key, value) in [
            (keys::CAPABILITY_LIST, &self.capability_list),
            (keys::MISSING_CAPABILITY_LIST, &self.missing_capability_list),
            (keys::RESOURCE_LIST, &self.resource_list),
            (keys::CHANGE_LIST, &self.change_list),
            (keys::RESOURCE_DUMP, &self.resource_dump),
            (keys::CHANGE_DUMP, &self.change_dump),
            (keys::CHANGE_LIST_ARCHIVE, &self.change_list_archive),
            (keys::CHANGES_SINCE, &self.changes_since),
        ] {
            mirror.set_meta(key, value.as_deref())?;
        }
        if self.uri_space.is_some() {
            mirror.set_meta(keys::URI_SPACE, self.uri_space.as_deref())?;
        }
        Ok(())
    }
}
