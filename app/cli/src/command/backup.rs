//! `abreast backup`: a consistent copy of a Source's store, also while it is served.

use crate::command::check::DataArgs;
use crate::command::repair::failed;
use crate::program::terminal::{json, line};
use crate::store::state_folders::place_of;
use abreast_maintenance::{BackedUpSet, BackupOptions, backup};
use abreast_webtypes::count;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast backup /var/lib/abreast /mnt/backups/papers
  abreast backup ./papers /mnt/backups/papers --json
  abreast restore /mnt/backups/papers /var/lib/abreast

The server may be running. Later runs copy only contents that are not in BACKUPS yet, and read one in twenty of the others (all with
--read-data): a damaged one is replaced. Derived data is left out: rendered documents, dumps. The published folder itself is not
copied.

Exit codes: 0 done, 1 the store is damaged, 2 usage, 10 another backup is running, 13 disk or permission denied.";

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BackupArgs {
    /// Folder of a store, or a published folder with its store in .abreast
    dir: String,
    /// Folder of backups; made if it is missing
    backups: PathBuf,
    #[command(flatten)]
    data: DataArgs,
    /// Print the result as one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs `backup`.
pub(crate) fn run(args: &BackupArgs) -> ExitCode {
    let mut options = BackupOptions::new(place_of(&args.dir), &args.backups);
    options.read = args.data.share_or(options.read);
    let report = match backup(&options) {
        Ok(report) => report,
        Err(error) => return failed(&error.into()),
    };
    if args.json {
        json(&report);
        return ExitCode::SUCCESS;
    }
    print_sets(&report.sets);
    line(&format!("{} copied", count(report.contents_copied, "content")));
    if report.contents_replaced > 0 {
        line(&format!(
            "{} of earlier backups replaced: the disk may be failing",
            count(report.contents_replaced, "damaged content")
        ));
    }
    line(&format!("backup {}", report.backup.display()));
    ExitCode::SUCCESS
}

/// Prints a line for each set of a backup.
pub(crate) fn print_sets(sets: &[BackedUpSet]) {
    for set in sets {
        let resources = count(set.resources, "resource");
        line(&format!("set {}: {resources}, up to position {}", set.name, set.position));
    }
}
