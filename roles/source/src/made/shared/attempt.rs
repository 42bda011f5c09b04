//! One attempt to make and publish an item of a group.

use super::error::SharedError;
use super::files::SharedGroup;
use super::group::{Base, Offer};
use super::record::{Item, SharedFile};
use crate::made::making::Making;
use std::path::{Path, PathBuf};

/// An attempt to make an item. Dropping removes all local files, unless [`Self::publish`] was
/// successful.
pub(crate) struct Attempt<'a> {
    group: &'a SharedGroup,
    base: Base,
    making: Making,
    folder: PathBuf,
    needs_turn: bool,
}

/// Description of an item whose files are complete.
pub(crate) struct Finished<'a> {
    pub(crate) name: String,
    pub(crate) text: String,
    /// New files, which are in the folder of the attempt.
    pub(crate) names: Vec<String>,
    /// Files of earlier items that the item lists too.
    pub(crate) earlier: Vec<SharedFile>,
    /// Whether the last item must be the same as when the attempt started.
    pub(crate) follows: bool,
    /// Number of the first items that the new item replaces.
    pub(crate) surplus: &'a dyn Fn(&[Item]) -> usize,
}

impl<'a> Attempt<'a> {
    /// Starts an attempt of the node that has the turn, if the record is the same as when the caller
    /// decided to make the item.
    pub(crate) fn begin(group: &'a SharedGroup, stamp: u64) -> Result<Self, SharedError> {
        let base = group.begin_mine()?;
        if group.known().0 != stamp {
            return Err(SharedError::Published);
        }
        Self::of(group, base, true)
    }

    /// Starts an attempt that every node may make.
    pub(crate) fn begin_any(group: &'a SharedGroup) -> Result<Self, SharedError> {
        let base = group.begin_soon()?;
        Self::of(group, base, false)
    }

    fn of(group: &'a SharedGroup, base: Base, needs_turn: bool) -> Result<Self, SharedError> {
        let folder = group.folder_of(&base);
        let mut making = Making::begin(folder.parent().unwrap_or(&folder));
        let folder = making.folder(&base.token)?;
        Ok(Self { group, base, making, folder, needs_turn })
    }

    /// Folder for the files of the item.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores and publishes the files.
    pub(crate) fn publish(
        self,
        finished: Finished<'_>,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), SharedError> {
        let Self { group, base, making, folder, needs_turn } = self;
        let Finished { name, text, names, earlier, follows, surplus } = finished;
        if needs_turn && !group.is_mine() {
            return Err(SharedError::NotMine);
        }
        let mut files = group.upload(&base, &folder, &names, stop)?;
        files.extend(earlier);
        making.publish(&base.token)?;
        group.publish(&base, Offer { name, text, files, follows, surplus }, needs_turn)
    }
}
