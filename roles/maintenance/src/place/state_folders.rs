//! Stores and copies that a folder contains.

use crate::place::error::{Context as _, Result};
use crate::place::there;
use abreast_destination::check::CopyPlace;
use std::path::{Path, PathBuf};

/// Database of topics, subscriptions and pending deliveries, in the folder of the Source's store.
pub(crate) const HUB_DATABASE: &str = "hub.db";

/// A folder that a command is for, and its name in messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Path of the folder, without a kind.
    pub folder: PathBuf,
    /// The folder as the user wrote it, such as `warc:DIR`.
    pub shown: String,
}

impl<P: Into<PathBuf>> From<P> for Place {
    fn from(folder: P) -> Self {
        let folder = folder.into();
        Self { shown: folder.display().to_string(), folder }
    }
}

/// The stores and copies in a folder.
#[derive(Clone, Debug)]
pub struct StateFolders {
    /// The folder of a Source's store.
    pub store: Option<PathBuf>,
    /// The database of a hub; usually in the same folder.
    pub hub: Option<PathBuf>,
    /// The folders of a copy and of its database.
    pub copy: Option<CopyPlace>,
}

impl StateFolders {
    /// Finds the stores and copies in a folder, also in its folder `.abreast`.
    ///
    /// # Errors
    /// Permission is denied to search for them.
    pub fn find(dir: &Path) -> Result<Self> {
        let own = dir.join(".abreast");
        let folder_of = |database: &str| -> Result<Option<PathBuf>> {
            for folder in [dir, &own] {
                for name in [database, &format!("{database}.salvaged")] {
                    if there::is_file(&folder.join(name))? {
                        return Ok(Some(folder.to_owned()));
                    }
                }
            }
            Ok(None)
        };
        let store = folder_of("source.db")?;
        let hub = folder_of(HUB_DATABASE)?.map(|folder| folder.join(HUB_DATABASE));
        Ok(Self { store, hub, copy: CopyPlace::find(dir) })
    }

    /// The stores and copies in the folder of a place, or else `sets`, each with the name of its folder.
    ///
    /// # Errors
    /// The folder has neither a store nor a copy, or permission is denied to search for them.
    pub(crate) fn of(
        place: &Place,
        sets: &[(String, Self)],
    ) -> Result<Vec<(Option<String>, Self)>> {
        let own = Self::find(&place.folder)?;
        let shown = &place.shown;
        if own.is_none()
            && let Err(error) = std::fs::read_dir(&place.folder)
            && there::is_denied(&error)
        {
            return Err(error).with_context(|| format!("cannot read `{shown}`"));
        }
        if !own.is_none() {
            return Ok(vec![(None, own)]);
        }
        if sets.is_empty() {
            return Err(super::Error::Usage(format!(
                "there is neither a store nor a copy in `{shown}`\n  help: name the folder of a store (it has a file source.db \
                 or hub.db) or of a copy"
            )));
        }
        Ok(sets.iter().map(|(name, folders)| (Some(name.clone()), folders.clone())).collect())
    }

    /// Whether the folder contains neither a store nor a copy.
    pub fn is_none(&self) -> bool {
        self.store.is_none() && self.hub.is_none() && self.copy.is_none()
    }
}
