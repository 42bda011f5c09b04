//! `abreast set remove`, and its former name `abreast drop`: removes a set with its history from a store.

use crate::command::repair::code_of;
use crate::config::database::DatabaseConfig;
use crate::config::target::folder_of;
use crate::program::errors::UsageError;
use crate::program::logging;
use crate::program::terminal::line;
use crate::store::data_folder::refuse_database;
use crate::store::log_access::unknown_set;
use crate::store::shared_sets::DatabaseSets;
use crate::store::unwritable_store::Readable;
use abreast_contents::Contents;
use abreast_core::{Clock as _, SystemClock};
use abreast_maintenance::{StateFolders, hold, refuse_backup, refuse_held};
use abreast_source::notify::{notified_path, topics_of_set};
use abreast_source::versions::collect_all;
use abreast_store::backup::created_sets;
use abreast_store::hub::SqliteHub;
use abreast_store::{DroppedSet, DroppedTopics, Removal, SqliteLog, drop_set, drop_topics};
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
The same as `abreast set remove SET --data DIR`.

Exit codes: 0 done, 2 usage or no such set, 10 in use by another process, 13 disk or permission denied.";

/// Folders of a store with one for each set.
pub(crate) const SET_FOLDERS: [&str; 3] = ["archives", "dumps", "snapshots"];

/// Options of `drop`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct DropArgs {
    /// Folder of a store, or a published folder with its store in .abreast
    dir: String,
    /// Name of the set
    set: String,
    /// Print what would be dropped, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Drop it: the history of the set cannot be restored, except from a backup
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `drop`.
pub(crate) fn run(args: &DropArgs) -> ExitCode {
    let removal = SetRemoval {
        place: SetPlace::Folder(&args.dir),
        set: &args.set,
        yes: args.yes,
        dry_run: args.dry_run,
        json: args.json,
        moved_to: None,
    };
    finish(removal.run())
}

/// The exit code of a command that changes a store.
pub(crate) fn finish(result: Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = match crate::program::exit::code(&error) {
                1 => code_of(&error),
                code => code,
            };
            logging::failure(&error, code);
            ExitCode::from(code)
        }
    }
}

/// The store in or of a folder.
///
/// # Errors
/// The folder is without a store, or is a backup.
pub(crate) fn store_of(dir: &str) -> Result<PathBuf> {
    refuse_database(Path::new(dir), "remove a set of a database with `abreast set remove`")?;
    refuse_backup(Path::new(dir))?;
    match StateFolders::find(folder_of(dir))?.store {
        Some(store) => Ok(store),
        None => bail!(UsageError(format!(
            "there is no store in `{dir}`\n  help: name the folder that has source.db"
        ))),
    }
}

/// The error for a set that a store does not have.
///
/// # Errors
/// The store cannot be read.
pub(crate) fn no_such_set(store: &Path, path: &Path, set: &str) -> Result<anyhow::Error> {
    let sets = created_sets(path)?;
    let names: Vec<&str> = sets.iter().map(|(slug, _)| slug.as_str()).collect();
    Ok(unknown_set(set, &format!("the store `{}`", store.display()), &names))
}

/// The store of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SetPlace<'a> {
    /// A folder with a store, or a published folder.
    Folder(&'a str),
    /// A database that several nodes share.
    Database(&'a DatabaseConfig),
}

/// The removal of a set from a store.
pub(crate) struct SetRemoval<'a> {
    pub(crate) place: SetPlace<'a>,
    pub(crate) set: &'a str,
    pub(crate) yes: bool,
    pub(crate) dry_run: bool,
    pub(crate) json: bool,
    /// The address at which the set is published now.
    pub(crate) moved_to: Option<String>,
}

impl SetRemoval<'_> {
    /// Removes the set, or prints what would be removed.
    ///
    /// # Errors
    /// The set is unknown, the store is in use or cannot be changed, or the removal is not confirmed.
    pub(crate) fn run(&self) -> Result<()> {
        match self.place {
            SetPlace::Folder(dir) => self.run_in_folder(dir)?,
            SetPlace::Database(config) => self.run_in_database(config)?,
        }
        if !self.yes && !self.dry_run {
            bail!(UsageError(
                "nothing was changed (help: `--yes` removes the set; it cannot be restored, except from a backup)"
                    .to_owned()
            ));
        }
        Ok(())
    }

    fn run_in_database(&self, config: &DatabaseConfig) -> Result<()> {
        let sets = DatabaseSets::open(config)?;
        sets.check_unused()?;
        let (dropped, topics) = sets.count(self.set)?;
        if self.yes {
            sets.remove(self.set, self.moved_to.clone())?;
        }
        self.print(&dropped, &topics);
        Ok(())
    }

    fn run_in_folder(&self, dir: &str) -> Result<()> {
        let store = store_of(dir)?;
        let database = store.join("source.db");
        let then = if self.yes { "remove the set" } else { "run this again" };
        refuse_held(&store, then)?;
        let read = if self.yes {
            None
        } else {
            Some(Readable::of(&store, "source.db", SqliteLog::is_changed_by_opening)?)
        };
        let _lock = if self.yes { hold(&store, false, then)? } else { None };
        let path = read.as_ref().map_or(&database, |read| &read.path);
        let Some(dropped) = drop_set(path, self.set, None)? else {
            return Err(no_such_set(&store, path, self.set)?);
        };
        drop(read);
        let topics = topics_of(&store, self)?;
        if self.yes {
            self.remove_from(&store)?;
        }
        self.print(&dropped, &topics);
        Ok(())
    }

    fn remove_from(&self, store: &Path) -> Result<()> {
        // Made of the set: if this is interrupted, the set is there, and can be removed again.
        for name in SET_FOLDERS {
            remove_folder(&store.join(name).join(self.set))?;
        }
        remove_folder(&store.join("documents"))?;
        let removal = Removal { time: SystemClock.now(), moved_to: self.moved_to.clone() };
        drop_set(&store.join("source.db"), self.set, Some(&removal))?;
        topics_of_set(&notified_path(store).into(), self.set, true)
            .context("cannot write the record of notified documents")?;
        collect(store)
    }

    fn print(&self, dropped: &DroppedSet, topics: &DroppedTopics) {
        let facts = format!(
            "set {}: {}, {}, {}, {}, {}",
            self.set,
            count(dropped.resources, "resource"),
            count(dropped.changes, "change"),
            count(dropped.versions, "version"),
            count(topics.topics, "topic"),
            count(topics.targets, "subscription")
        );
        if self.json {
            let (set, resources) = (self.set, dropped.resources);
            let told = json!({"type": "summary", "set": set, "resources": resources, "changes": dropped.changes,
                "versions": dropped.versions, "topics": topics.topics, "subscriptions": topics.targets, "dropped": self.yes});
            line(&told.to_string());
        } else {
            line(&format!("{facts}{}", if self.yes { "; removed" } else { "" }));
        }
    }
}

/// Removes a folder of a store, if it is there.
///
/// # Errors
/// It cannot be removed.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    if folder.is_dir() {
        std::fs::remove_dir_all(folder)
            .with_context(|| format!("cannot remove `{}`", folder.display()))?;
    }
    Ok(())
}

/// Drops the topics of the set, of which the record of notified documents has the addresses, or counts them.
fn topics_of(store: &Path, args: &SetRemoval<'_>) -> Result<DroppedTopics> {
    let hub = store.join("hub.db");
    if !crate::program::there::is_file(&hub)? {
        return Ok(DroppedTopics::default());
    }
    let urls = topics_of_set(&notified_path(store).into(), args.set, false).context(
        "cannot read the record of notified documents (help: `abreast repair` it first)",
    )?;
    if args.yes {
        return Ok(drop_topics(&hub, &urls, false)?);
    }
    let read = Readable::of(store, "hub.db", SqliteHub::is_changed_by_opening)?;
    Ok(drop_topics(&read.path, &urls, true)?)
}

/// Removes stored contents that no remaining set needs.
fn collect(store: &Path) -> Result<()> {
    let folder = store.join("contents");
    if !folder.is_dir() {
        return Ok(());
    }
    let log = Arc::new(SqliteLog::open(&store.join("source.db"), Arc::new(SystemClock))?);
    collect_all(log, Arc::new(Contents::open(&folder)?), Vec::new())
        .map_err(|error| anyhow::anyhow!("cannot remove kept contents: {error}"))
}
