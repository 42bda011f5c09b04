//! `abreast repair`: repairs stores and copies without guessing, and reports what Destinations will
//! notice.

use crate::command::check::{CheckedStore, DataArgs, code_of_shared};
use crate::config::database::DatabaseConfig;
use crate::config::store_place::StorePlace;
use crate::program::errors::UsageError;
use crate::program::exit::DISK;
use crate::program::logging;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{json, line};
use crate::store::state_folders::{TOKENS, place_of, sets_in};
use abreast_maintenance::{
    Error, ErrorKind, RepairOptions, RepairReport, SharedRepairOptions, repair, repair_shared,
};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

const HELP: &str = "\
Examples:
  abreast repair /var/lib/abreast --dry-run
  abreast repair ./papers
  abreast repair ./copy --read-data && abreast sync https://papers.example.org/ ./copy

  abreast repair --config /etc/abreast-nodes.toml --from /srv/papers --from /var/backups/abreast

Stop the server, or the sync, first. A damaged database is kept beside the new one as NAME.damaged-1. When rows of a log
were lost, the log is restarted: Destinations notice it, and compare everything once.

Of the store of several nodes, contents that the bucket lost are put there again, also while nodes run. Rows are not repaired: restore the
database from its backup.

Exit codes: 0 repaired or nothing to repair, 1 cannot be repaired, 2 usage, 10 in use by another process, 13 disk or permission denied; of a
database also 5 out of reach, 6 no secure connection, 12 it refuses the user.";

/// Options of `repair`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RepairArgs {
    /// Folder of a store, or of a copy; or the URL of a database
    #[arg(value_name = "DIR|URL", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// Repair the store of this configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    config: Option<PathBuf>,
    /// Bucket of the contents of a database [default: that of its nodes]
    #[arg(long, value_name = "URL")]
    contents: Option<String>,
    /// Folder of a store, of backups, or of files, with contents that the bucket of a database lost; repeatable
    #[arg(long, value_name = "DIR")]
    from: Vec<PathBuf>,
    /// Print what would be done, and change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
    #[command(flatten)]
    data: DataArgs,
    /// Print steps as JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Runs `repair`.
pub(crate) fn run(args: &RepairArgs) -> ExitCode {
    let cancel = crate::program::signals::cancel_on_signal();
    // Clap has printed the usage if both are missing.
    let place = args.config.as_ref().or(args.dir.as_ref()).cloned().unwrap_or_default();
    let mut steps = Vec::new();
    let mut step = |step| steps.push(step);
    let (done, code): (_, fn(&anyhow::Error) -> u8) =
        match StorePlace::of(&place, args.contents.as_deref()) {
            Ok(StorePlace::Database(database)) => {
                (repair_database(args, &database, &mut step, &cancel), code_of_shared)
            }
            // A target such as `warc:DIR` is not a path.
            Ok(StorePlace::Folder(folder)) => {
                (repair_dir(args, &folder.to_string_lossy(), &mut step, &cancel), code_of)
            }
            Err(error) => (Err(error), crate::program::exit::code),
        };
    for step in &steps {
        if args.json {
            json(&json!({"type": "step", "step": step, "done": !args.dry_run && done.is_ok()}));
        } else {
            line(step);
        }
    }
    match done {
        Ok(report) if args.json => json(&report),
        Ok(_) if steps.is_empty() => line("nothing to repair"),
        Ok(_) => {}
        Err(error) => {
            let code = code(&error);
            logging::failure(&error, code);
            return ExitCode::from(code);
        }
    }
    ExitCode::SUCCESS
}

/// Puts lost contents of several nodes into their bucket again.
fn repair_database(
    args: &RepairArgs,
    database: &DatabaseConfig,
    step: &mut dyn FnMut(String),
    cancel: &AtomicBool,
) -> Result<RepairReport> {
    let opened = CheckedStore::open(database)?;
    let progress = args.progress.begin(false, args.json);
    let check = opened.options(&args.data, progress.meter());
    let options = SharedRepairOptions { check, from: args.from.clone(), dry_run: args.dry_run };
    Ok(repair_shared(&options, step, cancel)?)
}

fn repair_dir(
    args: &RepairArgs,
    dir: &str,
    step: &mut dyn FnMut(String),
    cancel: &AtomicBool,
) -> Result<RepairReport> {
    if !args.from.is_empty() {
        bail!(UsageError("`--from` is for a store in a database (help: leave it out)".to_owned()));
    }
    let mut options = RepairOptions::new(place_of(dir));
    options.sets = sets_in(dir)?;
    options.records = vec![TOKENS];
    (options.read, options.dry_run) = (args.data.share_or(options.read), args.dry_run);
    let progress = args.progress.begin(false, args.json);
    options.meter = progress.meter();
    repair_locked(&options, step, cancel)
}

/// Repairs a folder, or the copies of all sets, while no other run uses them.
fn repair_locked(
    options: &RepairOptions,
    step: &mut dyn FnMut(String),
    cancel: &AtomicBool,
) -> Result<RepairReport> {
    let _lock = if options.sets.is_empty() || options.dry_run {
        None
    } else {
        crate::store::all_sets::take(&options.place.folder)?
    };
    Ok(repair(options, step, cancel)?)
}

/// Prints the failure of a command of maintenance, and returns its exit code.
pub(crate) fn failed(error: &anyhow::Error) -> ExitCode {
    let code = code_of(error);
    logging::failure(error, code);
    ExitCode::from(code)
}

/// The exit code of a failure.
pub(crate) fn code_of(error: &anyhow::Error) -> u8 {
    let is_disk = match error.downcast_ref::<Error>() {
        Some(error) => error.kind() == ErrorKind::Disk,
        None if error.is::<abreast_destination::Error>() => false,
        None => error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some()),
    };
    if is_disk { DISK } else { crate::program::exit::code(error) }
}
