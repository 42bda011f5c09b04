//! `abreast drop`: drops a set with its history from a store.

use crate::command::repair::code_of;
use crate::config::target::folder_of;
use crate::program::errors::UsageError;
use crate::program::logging;
use crate::program::terminal::line;
use crate::store::log_access::unknown_set;
use crate::store::unwritable_store::Readable;
use abreast_contents::Contents;
use abreast_core::SystemClock;
use abreast_maintenance::{StateFolders, hold, refuse_backup, refuse_held};
use abreast_source::notify::{notified_path, topics_of_set};
use abreast_source::versions::collect_all;
use abreast_store::backup::created_sets;
use abreast_store::hub::HubStore;
use abreast_store::{DroppedTopics, SqliteLog, drop_set, drop_topics};
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

const HELP: &str = "\
Examples:
  abreast drop /var/lib/abreast old-papers --dry-run
  abreast drop /var/lib/abreast old-papers --yes

Stop the server first, and remove the set from its configuration: the next start would begin it again. The published folder is not
touched. Versions, archives, dumps, topics and subscriptions of the set are lost; `abreast backup` keeps them.

Exit codes: 0 done, 2 usage or no such set, 10 in use by another process, 13 disk or permission denied.";

/// Folders of a store with one for each set.
const SET_FOLDERS: [&str; 3] = ["archives", "dumps", "snapshots"];

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
    match drop_from_store(args) {
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

fn drop_from_store(args: &DropArgs) -> Result<()> {
    refuse_backup(Path::new(&args.dir))?;
    let Some(store) = StateFolders::find(folder_of(&args.dir))?.store else {
        bail!(UsageError(format!(
            "there is no store in `{}`\n  help: name the folder that has source.db",
            args.dir
        )));
    };
    let database = store.join("source.db");
    let then = if args.yes { "drop the set" } else { "run this again" };
    refuse_held(&store, then)?;
    let read = if args.yes {
        None
    } else {
        Some(Readable::of(&store, "source.db", SqliteLog::is_changed_by_opening)?)
    };
    let _lock = if args.yes { hold(&store, false, then)? } else { None };
    let path = read.as_ref().map_or(&database, |read| &read.path);
    let Some(dropped) = drop_set(path, &args.set, true)? else {
        let sets = created_sets(path)?;
        let names: Vec<&str> = sets.iter().map(|(slug, _)| slug.as_str()).collect();
        return Err(unknown_set(&args.set, &format!("the store `{}`", store.display()), &names));
    };
    drop(read);
    let topics = topics_of(&store, args)?;
    if args.yes {
        // Made of the set: if this is interrupted, the set is there, and can be dropped again.
        for name in SET_FOLDERS {
            let folder = store.join(name).join(&args.set);
            if folder.is_dir() {
                std::fs::remove_dir_all(&folder)
                    .with_context(|| format!("cannot remove `{}`", folder.display()))?;
            }
        }
        let documents = store.join("documents");
        if documents.is_dir() {
            std::fs::remove_dir_all(&documents).context("cannot remove rendered documents")?;
        }
        drop_set(&database, &args.set, false)?;
        topics_of_set(&notified_path(&store), &args.set, true)
            .context("cannot write the record of notified documents")?;
        collect(&store)?;
    }
    let facts = format!(
        "set {}: {}, {}, {}, {}, {}",
        args.set,
        count(dropped.resources, "resource"),
        count(dropped.changes, "change"),
        count(dropped.versions, "version"),
        count(topics.topics, "topic"),
        count(topics.targets, "subscription")
    );
    if args.json {
        let (set, resources) = (&args.set, dropped.resources);
        line(
            &json!({"type": "summary", "set": set, "resources": resources, "changes": dropped.changes,
                "versions": dropped.versions, "topics": topics.topics, "subscriptions": topics.targets, "dropped": args.yes})
            .to_string(),
        );
    } else {
        line(&format!("{facts}{}", if args.yes { "; dropped" } else { "" }));
    }
    if !args.yes && !args.dry_run {
        bail!(UsageError(
            "nothing was changed (help: `--yes` drops the set; it cannot be restored, except from a backup)".to_owned()
        ));
    }
    Ok(())
}

/// Drops the topics of the set, of which the record of notified documents has the addresses, or counts them.
fn topics_of(store: &Path, args: &DropArgs) -> Result<DroppedTopics> {
    let hub = store.join("hub.db");
    if !crate::program::there::is_file(&hub)? {
        return Ok(DroppedTopics::default());
    }
    let urls = topics_of_set(&notified_path(store), &args.set, false).context(
        "cannot read the record of notified documents (help: `abreast repair` it first)",
    )?;
    if args.yes {
        return Ok(drop_topics(&hub, &urls, false)?);
    }
    let read = Readable::of(store, "hub.db", HubStore::is_changed_by_opening)?;
    Ok(drop_topics(&read.path, &urls, true)?)
}

/// Removes stored contents that no remaining set needs.
fn collect(store: &Path) -> Result<()> {
    let folder = store.join("contents");
    if !folder.is_dir() {
        return Ok(());
    }
    let log = Arc::new(SqliteLog::open(&store.join("source.db"), Arc::new(SystemClock))?);
    collect_all(log, Contents::open(&folder)?, Vec::new())
        .map_err(|error| anyhow::anyhow!("cannot remove kept contents: {error}"))
}
