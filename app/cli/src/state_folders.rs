//! Stores and copies that a folder holds, and the processes that use them.

use crate::logging;
use abreast_destination::check::CopyPlace;
use anyhow::Result;
use std::path::PathBuf;
use std::process::ExitCode;

/// Database of topics, subscriptions and pending deliveries, in the folder of the Source's store.
pub(crate) const HUB_DATABASE: &str = "hub.db";

/// The stores and copies in a folder.
pub(crate) struct StateFolders {
    /// The folder of a Source's store.
    pub(crate) store: Option<PathBuf>,
    /// The database of a hub; usually in the same folder.
    pub(crate) hub: Option<PathBuf>,
    /// The folders of a copy and of its database.
    pub(crate) copy: Option<CopyPlace>,
}

impl StateFolders {
    /// # Errors
    /// Permission is denied to search for them.
    pub(crate) fn find(dir: &str) -> Result<Self> {
        let dir = crate::target::folder_of(dir).to_owned();
        let own = dir.join(".abreast");
        let folder_of = |database: &str| -> Result<Option<PathBuf>> {
            for folder in [&dir, &own] {
                for name in [database, &format!("{database}.salvaged")] {
                    if crate::there::is_file(&folder.join(name))? {
                        return Ok(Some(folder.clone()));
                    }
                }
            }
            Ok(None)
        };
        let store = folder_of("source.db")?;
        let hub = folder_of(HUB_DATABASE)?.map(|folder| folder.join(HUB_DATABASE));
        Ok(Self { store, hub, copy: CopyPlace::find(&dir) })
    }

    /// The stores and copies in a folder. For a copy with `--all-sets`, one item for each set, with the
    /// name of its folder. Errors are reported, and returned as the exit code; an empty result is an
    /// error.
    pub(crate) fn find_all(dir: &str) -> Result<Vec<(Option<String>, Self)>, ExitCode> {
        let fail = |error: &anyhow::Error, code| {
            logging::failure(error, code);
            Err(ExitCode::from(code))
        };
        let own = match Self::find(dir) {
            Ok(own) => own,
            Err(error) => return fail(&error, crate::exit::code(&error)),
        };
        if own.is_none()
            && let Err(error) = std::fs::read_dir(crate::target::folder_of(dir))
            && crate::exit::is_denied(&error)
        {
            let error = anyhow::Error::new(error).context(format!("cannot read `{dir}`"));
            return fail(&error, crate::exit::DISK);
        }
        if !own.is_none() {
            return Ok(vec![(None, own)]);
        }
        match crate::all_sets::folders(crate::target::folder_of(dir)) {
            Err(error) => fail(&error, 13),
            Ok(sets) if sets.is_empty() => {
                let error = anyhow::anyhow!(
                    "there is neither a store nor a copy in `{dir}`\n  help: name the folder of a store (it has a file source.db \
                     or hub.db) or of a copy"
                );
                fail(&error, 2)
            }
            Ok(sets) => sets
                .into_iter()
                .map(|(name, folder)| Ok((Some(name), Self::find(&folder.to_string_lossy())?)))
                .collect::<Result<_>>()
                .or_else(|error: anyhow::Error| fail(&error, crate::exit::code(&error))),
        }
    }

    pub(crate) fn is_none(&self) -> bool {
        self.store.is_none() && self.hub.is_none() && self.copy.is_none()
    }
}
