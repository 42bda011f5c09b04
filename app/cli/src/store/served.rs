//! The record of the sets that a store was last served with. Other sets in the store are left over from earlier
//! configurations. The record also helps to detect that a new store would be a mistake.

use crate::config::{ServeConfig, SetConfig};
use crate::program::errors::UsageError;
use crate::store::data_folder::{MIGRATION, unfinished};
use crate::store::stores::{Stores, Task};
use abreast_core::{ChangeLog, ResourceSet};
use abreast_source::publish::{ServedSet, ServedSets};
use abreast_webtypes::{count, visible};
use anyhow::{Result, bail};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

const DATABASE: &str = "source.db";
/// Folders that only a store has whose database was there.
const OF_A_DATABASE: [&str; 4] = ["archives", "contents", "dumps", "snapshots"];
/// Other files of a store or a copy that may exist before the database does.
const BEFORE_THE_DATABASE: [&str; 6] =
    ["hub.db", "tokens.json", "mirror.db", "sets.json", "copy-of", "owner"];
/// Maximum number of adjacent folders in which another store is searched.
const BESIDE_MAX: usize = 1_000;

/// The sets of a configuration, as the record has them.
fn served_sets(sets: &[SetConfig]) -> ServedSets {
    ServedSets::new(sets.iter().map(|set| ServedSet {
        name: set.slug.clone(),
        folder: set.origin.path().map(Path::to_owned),
    }))
}

/// Records the served sets of a store, and reports its other sets.
///
/// # Errors
/// The store fails.
pub(crate) fn record(stores: &Stores, log: &dyn ChangeLog, sets: &[SetConfig]) -> Result<()> {
    let store = stores.data();
    let names: HashSet<&str> = sets.iter().map(|set| set.slug.as_str()).collect();
    // A folder that is missing may be that of the set under another name.
    let is_missing = sets.iter().any(|set| set.missing.is_some());
    for ResourceSet { id, slug } in log.sets()? {
        if names.contains(slug.as_str()) {
            continue;
        }
        let resources = log
            .head(id)
            .map_or_else(|error| error.to_string(), |head| count(head.resources, "resource"));
        let help = if stores.database().is_some() {
            format!(
                "add it to the configuration of each node to publish it; or stop all nodes, and remove it with `abreast set remove {slug} --config FILE`"
            )
        } else if is_missing {
            "see the sets whose folders are missing".to_owned()
        } else {
            format!(
                "`abreast set remove {slug} --data {}` removes it; if the set has another name now, stop this server \
                 and see `abreast set rename --help`",
                store.display()
            )
        };
        tracing::warn!(
            "the store has the set `{slug}` ({resources}), which is not configured and not published (help: {help})"
        );
    }
    if stores.database().is_some() {
        return Ok(());
    }
    // A full disk must not prevent the server from serving existing data.
    match served_sets(sets).write(store) {
        // A folder whose path is not UTF-8 cannot be recorded.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => return Err(error.into()),
        Err(error) => {
            tracing::warn!("cannot write `{}`: {error}", ServedSets::path(store).display());
        }
        Ok(()) => {}
    }
    Ok(())
}

/// The known slugs of a store's sets: the sets that were served last, and, if no other process has
/// the database open, the sets in the database.
pub(crate) fn known_sets(store: &Path) -> Vec<String> {
    let served = ServedSets::read(store).unwrap_or_default();
    let mut names: Vec<String> = served.sets.into_iter().map(|set| set.name).collect();
    if store.join(DATABASE).is_file()
        && let Ok(stores) = Stores::open(store, Task::Read)
        && let Ok(sets) = stores.log().and_then(|log| Ok(log.sets()?))
    {
        names.extend(sets.into_iter().map(|set| set.slug));
    }
    names.sort_unstable();
    names.dedup();
    names
}

/// Whether a folder has a store.
///
/// # Errors
/// Permission is denied on the way to it.
pub(crate) fn has_store(data: &Path) -> Result<bool> {
    let database = data.join(DATABASE);
    // A link that leads nowhere is a store that cannot be opened, and no place for a new one.
    Ok(database.is_symlink() || crate::program::there::found(&database)?.is_some())
}

/// Checks that a new store may be created here: the history is not in another place, and is not lost. Returns
/// whether the store is new.
///
/// # Errors
/// The new store is likely a mistake.
pub(crate) fn check_new(config: &ServeConfig) -> Result<bool> {
    let data = &config.data;
    if has_store(data)? {
        return Ok(false);
    }
    if data.join(MIGRATION).exists() {
        bail!(unfinished(&data.display().to_string()));
    }
    if config.new_store {
        return Ok(true);
    }
    let shown = data.display();
    if let Some(found) = OF_A_DATABASE.iter().find(|name| data.join(name).is_dir()) {
        bail!(UsageError(format!(
            "`data`: the store `{shown}` has lost its database: there is `{found}`, and no `{DATABASE}` (help: restore a backup; or begin a \
             new history with --new-store)"
        )));
    }
    if let Some(other) = other_store(config) {
        let (sets, other) = (names(&config.sets), other.display());
        bail!(UsageError(format!(
            "`data`: the store `{shown}` would be new, and `{other}` has the history of {sets} (help: name that store: --data {other}; or \
             begin a new history with --new-store)"
        )));
    }
    if let Some(found) = foreign(config) {
        bail!(UsageError(format!(
            "`data`: the folder `{shown}` holds no store, and is not empty: there is `{}` (help: check the path; or begin a new store there \
             with --new-store)",
            visible(&found)
        )));
    }
    Ok(true)
}

fn names(sets: &[SetConfig]) -> String {
    match sets {
        [one] => format!("the set `{}`", one.slug),
        _ => "these sets".to_owned(),
    }
}

/// Another store that is in the configuration file, or was served with a set of this configuration.
fn other_store(config: &ServeConfig) -> Option<PathBuf> {
    let data = abreast_destination::resolved(&config.data);
    let is_other = |store: &PathBuf| abreast_destination::resolved(store) != data;
    let has_database = |store: &PathBuf| store.join(DATABASE).is_file();
    // The store in the configuration file, and the default places of stores.
    let own = config.sets.iter().filter_map(|set| Some(set.origin.path()?.join(".abreast")));
    let mut named = config.data_in_file.iter().cloned().chain(own);
    if let Some(store) = named.find(|store| is_other(store) && has_database(store)) {
        return Some(store);
    }
    let wanted = served_sets(&config.sets).sets;
    let has_set = |store: &PathBuf| {
        let served = ServedSets::read(store).unwrap_or_default().sets;
        served.iter().any(|set| set.folder.is_some() && wanted.contains(set))
    };
    // A folder that is there was chosen; a mistyped one is not there.
    if data.exists() {
        return None;
    }
    let above = data.parent()?;
    let beside = fs::read_dir(above).ok()?.flatten().take(BESIDE_MAX).map(|entry| entry.path());
    let mut beside = std::iter::once(above.to_owned()).chain(beside);
    beside.find(|store| is_other(store) && has_database(store) && has_set(store))
}

/// A file in the folder of a new store that does not belong to a store and is not in the configuration.
fn foreign(config: &ServeConfig) -> Option<String> {
    let data = &config.data;
    if BEFORE_THE_DATABASE.iter().any(|name| data.join(name).exists()) {
        return None;
    }
    let data = abreast_destination::resolved(data);
    let is_known = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_published = config
            .sets
            .iter()
            .filter_map(|set| set.origin.path())
            .any(|folder| folder.starts_with(path));
        // Hidden files, the file system's folder, lock files of a killed start, configuration files.
        name.starts_with('.')
            || name == "lost+found"
            || name.ends_with(".lock")
            || path.extension().is_some_and(|end| end == "toml")
            || is_published
    };
    let entries = fs::read_dir(&data).ok()?.flatten();
    let mut others = entries.map(|entry| entry.path()).filter(|path| !is_known(path));
    others.next().map(|path| path.file_name().unwrap_or_default().to_string_lossy().into_owned())
}
