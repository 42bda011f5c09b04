//! `abreast repair`: repairs stores and copies without guessing, and reports what Destinations will
//! notice.

use crate::command::check::DataArgs;
use crate::program::exit::DISK;
use crate::program::logging;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{json, line};
use crate::store::state_folders::{TOKENS, database_refused, place_of, sets_in};
use abreast_maintenance::{Error, ErrorKind, RepairOptions, RepairReport, repair};
use anyhow::Result;
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
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Runs `repair`.
pub(crate) fn run(args: &RepairArgs) -> ExitCode {
    /// Advice for a store in a database.
    const HELP_OF_DATABASE: &str =
        "restore the database and the bucket from a backup: docs/nodes.md";
    if let Some(code) = database_refused(Path::new(&args.dir), HELP_OF_DATABASE) {
        return code;
    }
    let cancel = crate::program::signals::cancel_on_signal();
    let mut options = RepairOptions::new(place_of(&args.dir));
    options.sets = match sets_in(&args.dir) {
        Ok(sets) => sets,
        Err(error) => {
            logging::failure(&error, DISK);
            return ExitCode::from(DISK);
        }
    };
    options.records = vec![TOKENS];
    (options.read, options.dry_run) = (args.data.share_or(options.read), args.dry_run);
    let mut steps = Vec::new();
    let progress = args.progress.begin(false, args.json);
    options.meter = progress.meter();
    let done = repair_locked(&options, &mut |step| steps.push(step), &cancel);
    drop(progress);
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
        Err(error) => return failed(&error),
    }
    ExitCode::SUCCESS
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
