//! `abreast repair`: repairs stores and copies without guessing, and reports what Destinations will
//! notice.

use crate::api::tokens_path;
use crate::backup_manifest::refuse_backup;
use crate::check::{DataArgs, check_store, named};
use crate::errors::UsageError;
use crate::lock_holder::holder_of;
use crate::logging;
use crate::push::notified_path;
use crate::state_folders::StateFolders;
use crate::terminal::line;
use abreast_contents::{Contents, ErrorKind, View};
use abreast_core::{Clock as _, SystemClock};
use abreast_destination::check::{repair_copy, repair_state};
use abreast_folder::Folder;
use abreast_server::api::repair_tokens;
use abreast_source::archive::repair_archives;
use abreast_source::dump::repair_dumps;
use abreast_source::notify::check_notified;
use abreast_source::projection::sdshare::remove_damaged_snapshots;
use abreast_store::integrity::Findings;
use abreast_store::repair::{drop_contents, repair_hub, repair_log};
use anyhow::{Context as _, Result};
use clap::Args;
use serde_json::json;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

const HELP: &str = "\
Examples:
  abreast repair /var/lib/abreast --dry-run
  abreast repair ./papers
  abreast repair ./copy --read-data && abreast sync https://papers.example.org/ ./copy

Stop the server, or the sync, first. A damaged database is kept beside the new one as NAME.damaged-1. When rows of a log
were lost, the log is restarted: Destinations notice it, and compare everything once.

Exit codes: 0 repaired or nothing to repair, 1 cannot be repaired, 2 usage, 10 in use by another process, 13 disk or permission denied.";

/// Options of `repair`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RepairArgs {
    /// Folder of a store, or of a copy
    dir: String,
    /// Print what would be done, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    data: DataArgs,
    /// Print steps as JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// Contents that are repaired after one check; then they are checked again.
const REPAIRED_AT_ONCE: usize = 100_000;

/// Another process has it.
#[derive(Debug)]
struct InUse(String);

impl std::fmt::Display for InUse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InUse {}

fn in_use(what: &Path, lock: Option<&Path>, then: &str) -> InUse {
    let by = lock.and_then(holder_of).map(|pid| format!(" (process {pid})")).unwrap_or_default();
    InUse(format!(
        "`{}` is in use by another process{by}\n  help: stop it, then {then}",
        what.display()
    ))
}

/// Runs `repair`.
pub(crate) fn run(args: &RepairArgs) -> ExitCode {
    let cancel = crate::signals::cancel_on_signal();
    if let Err(error) = refuse_backup(crate::target::folder_of(&args.dir)) {
        let code = crate::exit::code(&error);
        logging::failure(&error, code);
        return ExitCode::from(code);
    }
    let places = match StateFolders::find_all(&args.dir) {
        Ok(places) => places,
        Err(code) => return code,
    };
    let mut steps = Vec::new();
    let done = repair_folders(args, &places, &mut steps, &cancel);
    for step in &steps {
        if args.json {
            line(
                &json!({"type": "step", "step": step, "done": !args.dry_run && done.is_ok()})
                    .to_string(),
            );
        } else {
            line(step);
        }
    }
    match done {
        Ok(()) => {
            if args.json {
                line(
                    &json!({"type": "summary", "steps": steps.len(), "dry_run": args.dry_run})
                        .to_string(),
                );
            } else if steps.is_empty() {
                line("nothing to repair");
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            let code = code_of(&error);
            logging::failure(&error, code);
            ExitCode::from(code)
        }
    }
}

/// The exit code of a failure.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    use abreast_core::ErrorKind;
    if error.is::<InUse>() {
        return 10;
    }
    if error.is::<UsageError>() {
        return crate::exit::USAGE;
    }
    if let Some(error) = error.downcast_ref::<abreast_destination::Error>() {
        return error.exit_code().number();
    }
    match error.downcast_ref::<abreast_core::LogError>().map(abreast_core::LogError::kind) {
        Some(ErrorKind::Busy) => 10,
        Some(ErrorKind::Io | ErrorKind::Full) => 13,
        None if error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some()) => 13,
        _ => crate::exit::code(error),
    }
}

fn repair_folders(
    args: &RepairArgs,
    places: &[(Option<String>, StateFolders)],
    steps: &mut Vec<String>,
    cancel: &AtomicBool,
) -> Result<()> {
    let is_of_sets = places.iter().any(|(set, _)| set.is_some());
    let _lock = if is_of_sets && !args.dry_run {
        crate::all_sets::take(crate::target::folder_of(&args.dir))?
    } else {
        None
    };
    for (set, place) in places {
        let mut own = Vec::new();
        let done = repair_folder(args, place, &mut own, cancel);
        steps.extend(own.iter().map(|step| named(set.as_deref(), step)));
        done?;
    }
    Ok(())
}

fn repair_folder(
    args: &RepairArgs,
    place: &StateFolders,
    steps: &mut Vec<String>,
    cancel: &AtomicBool,
) -> Result<()> {
    let wants = args.data.wants();
    // Take the server's lock first: its error contains the server's process id.
    let _lock =
        place.store.as_ref().map(|store| hold(store, args.dry_run, "repair")).transpose()?;
    if let Some(store) = &place.store {
        repair_store(args, store, steps, &wants, cancel)?;
    }
    if let Some(hub) = &place.hub {
        let repaired = repair_hub(hub, args.dry_run)?;
        steps.extend(repaired.steps.into_iter().map(|step| format!("hub: {step}")));
    }
    if let Some(copy) = &place.copy {
        let lock = copy.lock_file();
        let _lock = if args.dry_run && !lock.as_ref().is_some_and(|lock| lock.exists()) {
            None
        } else {
            Some(
                copy.take()?
                    .ok_or_else(|| in_use(copy.shown_folder(), lock.as_deref(), "repair"))?,
            )
        };
        let salvaged = repair_state(copy, args.dry_run)?;
        let unreadable = args.dry_run && !salvaged.is_empty();
        steps.extend(salvaged);
        if !unreadable {
            steps.extend(repair_copy(copy, &wants, args.dry_run, cancel)?);
        }
    }
    Ok(())
}

/// Locks a store against servers; `then` is the command in the error if the store is in use.
pub(crate) fn hold(
    store: &Path,
    dry_run: bool,
    then: &str,
) -> Result<Option<abreast_folder::Locked>> {
    if dry_run {
        return Ok(None);
    }
    let folder = Folder::open(store)
        .with_context(|| format!("cannot open the store's folder `{}`", store.display()))?;
    match folder
        .root()
        .lock(b"source.lock")
        .with_context(|| format!("cannot lock the store `{}`", store.display()))?
    {
        Some(lock) => Ok(Some(lock)),
        None => Err(in_use(store, Some(&store.join("source.lock")), then).into()),
    }
}

/// Refuses a store that a server has, where nothing is to be written and so no lock is taken.
pub(crate) fn refuse_held(store: &Path, then: &str) -> Result<()> {
    let lock = store.join("source.lock");
    if holder_of(&lock).is_some() { Err(in_use(store, Some(&lock), then).into()) } else { Ok(()) }
}

fn repair_store(
    args: &RepairArgs,
    store: &Path,
    steps: &mut Vec<String>,
    wants: &dyn Fn(&str) -> bool,
    cancel: &AtomicBool,
) -> Result<()> {
    let database = store.join("source.db");
    let repaired = repair_log(&database, args.dry_run, SystemClock.now())?;
    let unreadable = args.dry_run && repaired.lost;
    // The next run reads all RDF files again, and so finds lost entities.
    if !args.dry_run && store.join("temporary").is_dir() {
        std::fs::remove_dir_all(store.join("temporary"))
            .context("cannot remove temporary files")?;
    }
    steps.extend(repaired.steps);
    let dumps = repair_dumps(&store.join("dumps"), wants("dumps"), args.dry_run)
        .context("cannot repair dumps")?;
    steps.extend(
        dumps
            .removed
            .iter()
            .map(|dump| format!("drop the dump {}, which is not whole", dump.display())),
    );
    steps.extend(dumps.aside.iter().map(|dump| {
        format!(
            "set the damaged package of changes {} aside: changes in it may be nowhere else",
            dump.display()
        )
    }));
    steps.extend(
        dumps.restored.iter().map(|manifest| {
            format!("restore the manifest {} from its package", manifest.display())
        }),
    );
    let unsound =
        remove_damaged_snapshots(&store.join("snapshots"), wants("snapshots"), args.dry_run)
            .context("cannot drop snapshots")?;
    steps.extend(
        unsound
            .iter()
            .map(|snapshot| format!("drop the snapshot {}, which is damaged", snapshot.display())),
    );
    repair_records(args, store, steps, wants("archives"))?;
    if unreadable {
        return Ok(());
    }
    // Opening the contents rebuilds a damaged index, and removes incomplete files of a killed server.
    let path = store.join("contents");
    let is_damaged = |error: &abreast_contents::Error| error.kind() == ErrorKind::Damaged;
    if View::open(&path).is_err_and(|error| is_damaged(&error)) {
        steps.push("rebuild the index of packed contents".to_owned());
    }
    let contents = if args.dry_run || !path.is_dir() { None } else { Some(Contents::open(&path)?) };
    loop {
        let (mut lost, mut records) = (Vec::new(), Vec::new());
        let mut findings = Findings::default();
        let mut damaged = |rule, id| {
            let list = if rule == "contents.record" { &mut records } else { &mut lost };
            if list.len() < REPAIRED_AT_ONCE {
                list.push(id);
            }
        };
        check_store(store, wants, &mut findings, &mut Vec::new(), &mut damaged, cancel)?;
        // Contents whose bytes are lost: the versions that name them go.
        if !lost.is_empty() {
            steps.push(format!(
                "drop the kept contents that are missing or damaged, and what names them: {}",
                lost.len()
            ));
        }
        if !records.is_empty() {
            steps.push(format!(
                "rewrite the kept contents whose records are damaged: {}",
                records.len()
            ));
        }
        if args.dry_run {
            return Ok(());
        }
        if !lost.is_empty() {
            drop_contents(&database, &lost)?;
        }
        if let Some(contents) = &contents {
            for id in &lost {
                contents.remove(id)?;
            }
            for id in &records {
                contents.rewrite(id)?;
            }
            contents.sync()?;
        }
        if lost.len().max(records.len()) < REPAIRED_AT_ONCE {
            return Ok(());
        }
    }
}

/// Repairs the small records of a store.
fn repair_records(
    args: &RepairArgs,
    store: &Path,
    steps: &mut Vec<String>,
    read_archives: bool,
) -> Result<()> {
    let archives = repair_archives(&store.join("archives"), read_archives, args.dry_run);
    steps.extend(archives.context("cannot repair the archives")?);
    let tokens = repair_tokens(&tokens_path(store), args.dry_run);
    steps.extend(tokens.context("cannot repair the tokens")?);
    let served = store.join(crate::served::RECORD);
    if abreast_folder::read_sealed(&served)
        .is_err_and(|error| error.kind() == std::io::ErrorKind::InvalidData)
    {
        if !args.dry_run {
            std::fs::remove_file(&served).context("cannot remove the record of served sets")?;
        }
        steps.push(
            "drop the record of the sets that were served: the next start writes it".to_owned(),
        );
    }
    let notified = notified_path(store);
    let damage =
        check_notified(&notified).context("cannot read the record of notified documents")?;
    if damage.is_some() {
        if !args.dry_run {
            std::fs::remove_file(&notified)
                .context("cannot remove the record of notified documents")?;
        }
        steps.push(
            "drop the record of notified documents: at the next start they are notified again, and changes from then on"
                .to_owned(),
        );
    }
    Ok(())
}
