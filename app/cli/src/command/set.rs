//! `abreast set`: lists, removes and renames the sets of a store.

use crate::command::drop::{
    SET_FOLDERS, SetPlace, SetRemoval, finish, no_such_set, remove_folder, store_of,
};
use crate::command::init::question;
use crate::command::token::StoreArgs;
use crate::config::File;
use crate::config::database::DatabaseConfig;
use crate::config::set::check_slug;
use crate::program::errors::UsageError;
use crate::program::terminal::line;
use crate::store::database::Database;
use crate::store::shared_sets::DatabaseSets;
use crate::store::stores::token_place;
use crate::store::unwritable_store::Readable;
use crate::values::hidden_logins::shown;
use abreast_core::{Clock as _, SystemClock};
use abreast_maintenance::{hold, refuse_held};
use abreast_server::api::{TokenPlace, change_tokens, tokens_path};
use abreast_source::notify::{notified_path, rename_in_record};
use abreast_source::publish::ServedSets;
use abreast_store::summary::{SetSummary, read_sets};
use abreast_store::{
    FormerSet, NowAt, RenamedSet, SqliteLog, former_sets, rename_set, rename_topics,
};
use abreast_webtypes::count;
use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use indicatif::BinaryBytes;
use serde_json::json;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast set list --config /etc/abreast.toml
  abreast set remove old-papers --data /var/lib/abreast --dry-run
  abreast set remove papers --config /etc/abreast.toml --moved-to https://new.example.org/papers/
  abreast set rename papers articles --config /etc/abreast.toml

Stop the server, or all nodes, before `remove` and `rename`, and change the configuration first: remove the lines of the set, or its `name`. Later,
the server answers 410 for the addresses of a removed set, and 308 for those of a renamed set or one that moved to another server, until
a set has the name again. The published folder is not touched. docs/maintenance.md describes what copies notice.

Exit codes: 0 done, 2 usage or no such set, 5 the database is out of reach, 6 no secure connection to it, 10 in use by
another process or by nodes, 12 the database refuses the user, 13 disk or permission denied.";

/// Commands for the sets of a store.
#[derive(Debug, Subcommand)]
pub(crate) enum SetCommand {
    /// List the sets of a store, and the names that sets had
    #[command(after_help = HELP)]
    List(ListArgs),
    /// Remove a set with its history
    #[command(after_help = HELP)]
    Remove(RemoveArgs),
    /// Give a set another name; its history continues
    #[command(after_help = HELP)]
    Rename(RenameArgs),
}

/// Options of `set list`.
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Options of `set remove`.
#[derive(Debug, Args)]
pub(crate) struct RemoveArgs {
    /// Name of the set
    set: String,
    /// Redirect its addresses to this one, where another server publishes it
    #[arg(long, value_name = "URL")]
    moved_to: Option<String>,
    /// Print what would be removed, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not ask: the history of the set cannot be restored, except from a backup
    #[arg(long, conflicts_with = "dry_run")]
    yes: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Options of `set rename`.
#[derive(Debug, Args)]
pub(crate) struct RenameArgs {
    /// Name of the set
    old: String,
    /// New name of the set in URLs
    new: String,
    /// Print what would be done, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    store: StoreArgs,
}

/// Runs `set`.
pub(crate) fn run(command: &SetCommand) -> ExitCode {
    finish(match command {
        SetCommand::List(args) => list(args),
        SetCommand::Remove(args) => remove(args),
        SetCommand::Rename(args) => rename(args),
    })
}

fn list(args: &ListArgs) -> Result<()> {
    if let Some(database) = args.store.database()? {
        return list_of_database(args, &database);
    }
    let store = store_of(&args.store.folder()?.to_string_lossy())?;
    // Also while a server has it open.
    let database = store.join("source.db");
    let (sets, former) = (read_sets(&database)?, former_sets(&database)?);
    let known = Configured::of(args.store.config(), &store)?;
    for set in &sets {
        print_set(set, &known, Some(&store), args.json);
    }
    print_former(&former, args.json);
    Ok(())
}

/// Prints the sets in a database. The sizes of their contents are not known.
fn list_of_database(args: &ListArgs, database: &DatabaseConfig) -> Result<()> {
    let log = Database::log_to_read(database)?;
    let known = Configured::of(args.store.config(), Path::new(""))?;
    for set in log.sets()? {
        let head = log.head(set.id)?;
        let set = SetSummary {
            slug: set.slug,
            created: head.created,
            importing: head.importing,
            position: head.position.0,
            changed: (head.position.0 > 0).then_some(head.time),
            resources: head.resources,
            kept_bytes: None,
        };
        print_set(&set, &known, None, args.json);
    }
    print_former(&DatabaseSets::open(database)?.former_sets()?, args.json);
    Ok(())
}

fn print_former(former: &[FormerSet], json: bool) {
    for FormerSet { slug, time, now } in former {
        let (state, to) = match now {
            NowAt::Removed => ("removed", None),
            NowAt::Name(name) => ("renamed", Some(name)),
            NowAt::Url(url) => ("moved", Some(url)),
        };
        if json {
            let time = time.to_string();
            let told =
                json!({"type": "former_set", "set": slug, "state": state, "to": to, "time": time});
            line(&told.to_string());
        } else {
            let to = to.map_or_else(String::new, |to| format!(" to {to}"));
            line(&format!("{slug}  {state}{to}  {time}"));
        }
    }
}

fn print_set(set: &SetSummary, known: &Configured, store: Option<&Path>, json: bool) {
    let of_folder = |store: &Path| -> u64 {
        let folders = SET_FOLDERS.iter().map(|name| size_of(&store.join(name).join(&set.slug)));
        set.kept_bytes.unwrap_or(0) + folders.sum::<u64>()
    };
    let bytes = store.map(of_folder);
    let (kind, configured) = known.find(&set.slug);
    let changed = set.changed.map(|time| time.to_string());
    if json {
        let told = json!({"type": "set", "set": set.slug, "kind": kind, "resources": set.resources,
            "changes": set.position, "changed": changed, "bytes": bytes, "configured": configured});
        line(&told.to_string());
        return;
    }
    let changed = changed.map_or_else(|| "no changes".to_owned(), |at| format!("changed {at}"));
    line(&format!(
        "{}  {}  {}  {changed}  {}  {}",
        set.slug,
        kind.unwrap_or("-"),
        count(set.resources, "resource"),
        bytes.map_or_else(|| "-".to_owned(), |bytes| BinaryBytes(bytes).to_string()),
        if configured { "configured" } else { "not configured" }
    ));
}

/// The configured sets with their kinds: the sets of the file, else the sets that the store was last served with.
struct Configured(Vec<(String, Option<&'static str>)>);

impl Configured {
    fn of(config: Option<&Path>, store: &Path) -> Result<Self> {
        if let Some(config) = config {
            let file = File::read(config)?;
            let names = file.set_names();
            let kinds = file.set.iter().map(|set| match () {
                () if set.is_records() => "records",
                () if set.is_sparql() => "sparql",
                () if set.is_rdf() => "rdf",
                () => "folder",
            });
            return Ok(Self(names.into_iter().zip(kinds.map(Some)).collect()));
        }
        let served = ServedSets::read(store).unwrap_or_default();
        let kind = |folder: bool| if folder { Some("folder") } else { None };
        Ok(Self(
            served.sets.into_iter().map(|set| (set.name, kind(set.folder.is_some()))).collect(),
        ))
    }

    /// The kind of a set if it is known, and whether the set is configured.
    fn find(&self, slug: &str) -> (Option<&'static str>, bool) {
        let found = self.0.iter().find(|(name, _)| name == slug);
        found.map_or((None, false), |(_, kind)| (*kind, true))
    }
}

/// Bytes of the files in a folder and below, without unreadable ones.
fn size_of(folder: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(data) if data.is_dir() => size_of(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    };
    entries.flatten().map(size).sum()
}

fn remove(args: &RemoveArgs) -> Result<()> {
    let moved_to = args.moved_to.as_deref().map(checked_url).transpose()?;
    let database = args.store.database()?;
    let folder = if database.is_some() { PathBuf::new() } else { args.store.folder()? };
    if let Some(config) = args.store.config()
        && File::read(config)?.set_names().contains(&args.set)
    {
        bail!(UsageError(format!(
            "`{}` has the set `{}`: the next start would begin it again (help: remove its `[[set]]` there first)",
            config.display(),
            args.set
        )));
    }
    let dir = folder.to_string_lossy().into_owned();
    let mut removal = SetRemoval {
        place: database.as_ref().map_or(SetPlace::Folder(&dir), SetPlace::Database),
        set: &args.set,
        yes: args.yes,
        dry_run: args.dry_run,
        json: args.json,
        moved_to,
    };
    let asks = !(args.yes || args.dry_run || args.json) && std::io::stdin().is_terminal();
    if asks {
        (removal.dry_run, removal.yes) = (true, false);
        removal.run()?;
        if question("Remove it? It cannot be restored, except from a backup", "no")? != "yes" {
            bail!(UsageError("nothing was changed (help: answer `yes` to remove the set)".into()));
        }
        (removal.dry_run, removal.yes) = (false, true);
    }
    removal.run()?;
    if !removal.yes {
        return Ok(());
    }
    if let Some(database) = &database {
        let place = args.store.config().map_or_else(
            || format!("--data {}", database.shown()),
            |config| format!("--config {}", config.display()),
        );
        report_tokens(&DatabaseSets::open(database)?.tokens(), &place, &args.set)
    } else {
        let store = store_of(&dir)?;
        let place = format!("--data {}", store.display());
        report_tokens(&token_place(&store, None), &place, &args.set)
    }
}

/// Reports tokens that are for a removed set alone: they are for the next set of this name. `place` is the option with
/// their store.
fn report_tokens(tokens: &TokenPlace, place: &str, set: &str) -> Result<()> {
    let tokens = tokens.read().context("cannot read the tokens of the API")?;
    for token in tokens.iter().filter(|token| token.sets == [set]) {
        tracing::warn!(
            "the token `{}` is only for the removed set (help: `abreast token revoke {} {place}`)",
            token.name,
            token.name,
        );
    }
    Ok(())
}

/// The address of a set at another server, ending in `/`.
fn checked_url(text: &str) -> Result<String> {
    let is_usable = (text.starts_with("http://") || text.starts_with("https://"))
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && !text.contains(['?', '#', '"', '<', '>', '\\', '@'])
        && text.split('/').nth(2).is_some_and(|host| !host.is_empty());
    if !is_usable {
        bail!(UsageError(format!(
            "`--moved-to`: `{}` is not the address of a set (help: for example https://new.example.org/papers/)",
            shown(text)
        )));
    }
    Ok(if text.ends_with('/') { text.to_owned() } else { format!("{text}/") })
}

fn rename(args: &RenameArgs) -> Result<()> {
    let (old, new) = (args.old.as_str(), args.new.as_str());
    let mut problems = Vec::new();
    check_slug(&shown(new), &mut problems);
    if let Some(problem) = problems.into_iter().next() {
        bail!(UsageError(problem));
    }
    let database = args.store.database()?;
    let folder = if database.is_some() { PathBuf::new() } else { args.store.folder()? };
    if let Some(config) = args.store.config() {
        check_config(config, old, new)?;
    }
    match &database {
        Some(database) => {
            let sets = DatabaseSets::open(database)?;
            let renamed = sets.rename((old, new), args.dry_run)?;
            check_renamed(renamed, new, || sets.no_such_set(old))?;
        }
        None => rename_in_folder(&store_of(&folder.to_string_lossy())?, (old, new), args.dry_run)?,
    }
    if args.json {
        let told = json!({"type": "summary", "set": new, "former": old, "renamed": !args.dry_run});
        line(&told.to_string());
    } else if args.dry_run {
        line(&format!("set {old}: would be renamed to {new}"));
    } else {
        line(&format!("set {old}: renamed to {new}; its former addresses are redirected"));
        if args.store.config().is_none() {
            line(&format!("in the configuration, the set needs: name = \"{new}\""));
        }
    }
    Ok(())
}

/// Renames the set in a folder, unless `dry_run`.
fn rename_in_folder(store: &Path, (old, new): (&str, &str), dry_run: bool) -> Result<()> {
    refuse_held(store, "rename the set")?;
    let _lock = if dry_run { None } else { hold(store, false, "rename the set")? };
    let database = store.join("source.db");
    let read = if dry_run {
        Some(Readable::of(store, "source.db", SqliteLog::is_changed_by_opening)?)
    } else {
        None
    };
    let path = read.as_ref().map_or(&database, |read| &read.path);
    let possible = rename_set(path, (old, new), None)?;
    check_renamed(possible, new, || no_such_set(store, path, old))?;
    drop(read);
    if dry_run { Ok(()) } else { rename_in(store, old, new) }
}

/// The error if a set could not get its new name.
fn check_renamed(
    renamed: RenamedSet,
    new: &str,
    no_such_set: impl FnOnce() -> Result<anyhow::Error>,
) -> Result<()> {
    match renamed {
        RenamedSet::Renamed => Ok(()),
        RenamedSet::Missing => Err(no_such_set()?),
        RenamedSet::Taken => bail!(UsageError(format!(
            "the store has a set `{new}` (help: choose another name, or `abreast set remove {new}` first)"
        ))),
    }
}

/// Checks that the next start finds the set under its new name.
fn check_config(config: &Path, old: &str, new: &str) -> Result<()> {
    let names = File::read(config)?.set_names();
    let file = config.display();
    let has = |name: &str| names.iter().any(|known| known == name);
    let line = match (has(old), has(new)) {
        (false, true) => return Ok(()),
        (true, true) => format!("`{file}` has both sets (help: remove the `[[set]]` of `{old}`)"),
        (true, false) => {
            format!(
                "`{file}` has the set `{old}` (help: change its `name` first: name = \"{new}\")"
            )
        }
        (false, false) => {
            format!("`{file}` has no set `{new}` (help: give the set this line: name = \"{new}\")")
        }
    };
    bail!(UsageError(line))
}

/// Renames the set in all parts of a store. The log is last: if this is interrupted, it can be run again.
fn rename_in(store: &Path, old: &str, new: &str) -> Result<()> {
    let record = notified_path(store).into();
    let failed = "cannot change the record of notified documents (help: `abreast repair` it first)";
    let hub = store.join("hub.db");
    let topics = rename_in_record(&record, (old, new), false).context(failed)?;
    if crate::program::there::is_file(&hub)? {
        rename_topics(&hub, &topics)?;
    }
    rename_in_record(&record, (old, new), true).context(failed)?;
    // Dumps and snapshots contain the former addresses of resources: they are made again. Archives are history.
    for name in ["dumps", "snapshots"] {
        remove_folder(&store.join(name).join(old))?;
    }
    remove_folder(&store.join("documents"))?;
    let of = |name: &str| store.join("archives").join(name);
    let record_of_files = |name: &str| store.join("temporary").join(format!("{name}.read"));
    for (from, to) in [(of(old), of(new)), (record_of_files(old), record_of_files(new))] {
        if !from.exists() {
            continue;
        }
        // Left over from a set that was not removed completely.
        remove_folder(&to)?;
        std::fs::rename(&from, &to)
            .with_context(|| format!("cannot rename `{}`", from.display()))?;
    }
    let tokens = tokens_path(store);
    if crate::program::there::is_file(&tokens)? {
        change_tokens(&tokens, |tokens| -> Result<()> {
            for set in tokens.iter_mut().flat_map(|token| &mut token.sets) {
                if set == old {
                    new.clone_into(set);
                }
            }
            Ok(())
        })
        .context("cannot change the tokens of the API")?;
    }
    rename_set(&store.join("source.db"), (old, new), Some(SystemClock.now()))?;
    if let Some(mut served) = ServedSets::read(store) {
        served.sets.iter_mut().filter(|set| set.name == old).for_each(|set| {
            new.clone_into(&mut set.name);
        });
        served.write(store).context("cannot write the record of the served sets")?;
    }
    Ok(())
}
