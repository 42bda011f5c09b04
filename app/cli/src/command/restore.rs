//! `abreast restore`: a store as a backup has it, verified first.

use crate::command::backup::print_sets;
use crate::command::repair::failed;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{json, line};
use crate::store::state_folders::database_refused;
use abreast_maintenance::{RestoreOptions, restore};
use abreast_webtypes::count;
use clap::Args;
use indicatif::BinaryBytes;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast restore /mnt/backups/papers /var/lib/abreast
  abreast restore /mnt/backups/papers/20260131T120000.000000Z /var/lib/abreast
  abreast restore /mnt/backups/papers /srv/new/.abreast --same-log
  abreast restore /mnt/backups/papers /var/lib/abreast --dry-run
  abreast restore /mnt/backups/papers /var/lib/abreast --replace

BACKUP is one backup, or a folder of backups, of which the newest is used; `abreast backup --list` lists them. All of it is verified before anything is written.
Changes recorded after the backup are not in it. The log is therefore restarted: Destinations notice it, and compare everything
once. Use --same-log only if nothing was recorded after the backup, as in a move to another machine.

Exit codes: 0 done, 1 the backup is damaged, 2 usage or DIR has a store, 10 DIR is in use, 13 disk or permission denied.";

/// Options of `restore`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct RestoreArgs {
    /// A backup, or a folder of backups
    backup: PathBuf,
    /// Folder of the store to make; must be missing or without a store
    dir: PathBuf,
    /// Move the store that is there into the folder replaced-TIME in DIR. Stop its server first
    #[arg(long)]
    replace: bool,
    /// Continue the same log: nothing was recorded after the backup was made
    #[arg(long)]
    same_log: bool,
    /// Leave out kept contents that are damaged or missing in the backup, with the versions that need them
    #[arg(long)]
    without_damaged: bool,
    /// Verify the backup, print what would be restored, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Runs `restore`.
pub(crate) fn run(args: &RestoreArgs) -> ExitCode {
    /// Advice for a store in a database.
    const HELP_OF_DATABASE: &str =
        "restore the database with `pg_restore`, and the bucket: docs/nodes.md";
    if let Some(code) = database_refused(&args.dir, HELP_OF_DATABASE) {
        return code;
    }
    let mut options = RestoreOptions::new(&args.backup, &args.dir);
    (options.same_log, options.without_damaged) = (args.same_log, args.without_damaged);
    (options.dry_run, options.replace) = (args.dry_run, args.replace);
    let progress = args.progress.begin(false, args.json);
    options.meter = progress.meter();
    let restored = restore(&options);
    drop(progress);
    let report = match restored {
        Ok(report) => report,
        Err(error) => return failed(&error.into()),
    };
    if args.json {
        json(&report);
        return ExitCode::SUCCESS;
    }
    print_sets(&report.sets);
    let done = if report.dry_run { "would be restored" } else { "restored" };
    line(&format!("{done} as of {}", report.created));
    if report.dry_run {
        line(&format!("from {}", report.backup.display()));
        let contents = count(report.contents, "content");
        line(&format!("to {}: {contents}, {}", report.dir.display(), BinaryBytes(report.bytes)));
    }
    if let Some(folder) = &report.replaced {
        line(&format!("the former store is in {folder}"));
    }
    if report.contents_lost > 0 {
        line(&format!("without {}", count(report.contents_lost, "damaged content")));
    }
    if !args.same_log {
        let begins = if report.dry_run { "would begin" } else { "begins" };
        line(&format!(
            "a new history {begins}; each copy compares all files once (equal files are not fetched)"
        ));
    }
    ExitCode::SUCCESS
}
