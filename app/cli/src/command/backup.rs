//! `abreast backup`: a consistent copy of a Source's store, also while it is served, and the removal of old ones.

use crate::command::check::DataArgs;
use crate::command::repair::failed;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{json, line};
use crate::store::state_folders::{database_refused, place_of};
use abreast_maintenance::{BackedUpSet, BackupOptions, BackupReport, Pruning, Retention};
use abreast_maintenance::{backup, list_backups, plan_backup};
use abreast_webtypes::{count, visible};
use clap::Args;
use indicatif::BinaryBytes;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast backup /var/lib/abreast /mnt/backups/papers
  abreast backup /var/lib/abreast /mnt/backups/papers --keep-daily 7 --keep-weekly 4 --keep-monthly 6
  abreast backup /var/lib/abreast /mnt/backups/papers --keep-last 3 --dry-run
  abreast backup --list /mnt/backups/papers
  abreast restore /mnt/backups/papers /var/lib/abreast

The server may be running. Later runs copy only contents that are not in BACKUPS yet, and read one in twenty of the others (all with
--read-data): a damaged one is replaced. Derived data is left out: rendered documents, dumps. The published folder itself is not
copied.

Each backup is a folder, named by its time. With a --keep option, those that no --keep option keeps are removed once the new backup
is verified, and contents that no backup needs. Days, weeks and months are those of UTC. A backup that was renamed is never removed.

Exit codes: 0 done, 1 the store or a listed backup is damaged, 2 usage, 10 another backup is running, 13 disk or permission denied.";

/// Options of `backup`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct BackupArgs {
    /// Folder of a store, or a published folder with its store in .abreast; with --list the folder of backups
    dir: String,
    /// Folder of backups; made if it is missing
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    backups: Option<PathBuf>,
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    keep: KeepArgs,
    /// Print which backups would be kept and removed, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// List the backups in a folder, the newest last
    #[arg(long, conflicts_with_all = ["dry_run", "read_data", "read_data_subset", "keep_last", "keep_daily", "keep_weekly", "keep_monthly"])]
    list: bool,
    /// Print the result as one JSON object; with --list, one for each backup
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Which backups are kept.
#[derive(Debug, Args)]
#[expect(clippy::struct_field_names, reason = "the names of the options")]
struct KeepArgs {
    /// Keep the newest N backups
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_last: Option<u32>,
    /// Keep the newest backup of each of the last N days that have one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_daily: Option<u32>,
    /// Keep the newest backup of each of the last N weeks that have one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_weekly: Option<u32>,
    /// Keep the newest backup of each of the last N months that have one
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    keep_monthly: Option<u32>,
}

impl KeepArgs {
    fn retention(&self) -> Retention {
        Retention {
            last: self.keep_last.unwrap_or_default(),
            daily: self.keep_daily.unwrap_or_default(),
            weekly: self.keep_weekly.unwrap_or_default(),
            monthly: self.keep_monthly.unwrap_or_default(),
        }
    }
}

/// The result of a dry run as JSON.
#[derive(Serialize)]
#[serde(tag = "type", rename = "summary")]
struct Plan {
    dry_run: bool,
    pruning: Pruning,
}

/// Runs `backup`.
pub(crate) fn run(args: &BackupArgs) -> ExitCode {
    /// Advice for a store in a database.
    const HELP_OF_DATABASE: &str =
        "back up the database with `pg_dump`, and the bucket: docs/nodes.md";
    if let Some(code) = database_refused(Path::new(&args.dir), HELP_OF_DATABASE) {
        return code;
    }
    let Some(backups) = &args.backups else { return list(Path::new(&args.dir), args.json) };
    let mut options = BackupOptions::new(place_of(&args.dir), backups);
    options.read = args.data.share_or(options.read);
    options.keep = args.keep.retention();
    if args.dry_run {
        return dry_run(&options, args.json);
    }
    let progress = args.progress.begin(false, args.json);
    options.meter = progress.meter();
    let made = backup(&options);
    drop(progress);
    let report = match made {
        Ok(report) => report,
        Err(error) => return failed(&error.into()),
    };
    if let Some(reason) = &report.unrecorded {
        tracing::warn!(
            "the time of the backup cannot be recorded in the folder of the store: {reason} (help: let this user write there; \
             the metric abreast_backup_time_seconds stays as it was)"
        );
    }
    if args.json {
        json(&report);
    } else {
        print_report(&report);
    }
    ExitCode::SUCCESS
}

fn print_report(report: &BackupReport) {
    print_sets(&report.sets);
    line(&format!(
        "{} copied ({}), {} reused ({})",
        count(report.contents_copied, "content"),
        BinaryBytes(report.bytes_copied),
        report.contents_reused,
        BinaryBytes(report.bytes_reused)
    ));
    if report.contents_replaced > 0 {
        line(&format!(
            "{} of earlier backups replaced: the disk may be failing",
            count(report.contents_replaced, "damaged content")
        ));
    }
    if !report.not_in_backup.is_empty() {
        let names =
            report.not_in_backup.iter().map(|name| visible(name).to_string()).collect::<Vec<_>>();
        line(&format!("not in the backup, because not a part of the store: {}", names.join(", ")));
    }
    if let Some(pruning) = &report.pruning {
        print_pruning(pruning, "removed");
        line(&format!("{} removed", count(pruning.contents_removed, "unneeded content")));
    }
    for left in &report.unremoved {
        line(&format!("not removed {}: {}", left.folder.display(), left.reason));
    }
    line(&format!("backup {}", report.backup.display()));
}

fn dry_run(options: &BackupOptions, as_json: bool) -> ExitCode {
    let pruning = match plan_backup(options) {
        Ok(pruning) => pruning,
        Err(error) => return failed(&error.into()),
    };
    if as_json {
        json(&Plan { dry_run: true, pruning });
    } else if options.keep.is_none() {
        line("nothing would be removed: there is no --keep option");
    } else {
        print_pruning(&pruning, "would be removed");
    }
    ExitCode::SUCCESS
}

fn print_pruning(pruning: &Pruning, removed: &str) {
    let name =
        |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    for kept in &pruning.kept {
        let name = kept.backup.as_deref().map_or("the new backup".to_owned(), name);
        line(&format!("kept {name}: {}", kept.reasons.join(", ")));
    }
    for path in &pruning.removed {
        line(&format!("{removed} {}", name(path)));
    }
    for left in &pruning.untouched {
        line(&format!("not touched {}: {}", name(&left.folder), left.reason));
    }
    if let Some(reason) = &pruning.contents_left {
        line(&format!(
            "no contents removed, because a backup may need them that cannot be read: {reason}"
        ));
    }
}

/// Lists the backups in a folder.
fn list(folder: &Path, as_json: bool) -> ExitCode {
    let listed = match list_backups(folder) {
        Ok(listed) => listed,
        Err(error) => return failed(&error.into()),
    };
    for one in &listed {
        if as_json {
            json(one);
            continue;
        }
        let (shown, bytes) = (one.backup.display(), BinaryBytes(one.bytes));
        match (&one.created, &one.error) {
            (Some(created), None) => {
                line(&format!("{shown}: of {created}, {bytes} without contents"));
            }
            (_, error) => line(&format!("{shown}: {}", error.as_deref().unwrap_or_default())),
        }
        print_sets(&one.sets);
    }
    ExitCode::from(u8::from(listed.iter().any(|one| one.error.is_some())))
}

/// Prints a line for each set of a backup.
pub(crate) fn print_sets(sets: &[BackedUpSet]) {
    for set in sets {
        let resources = count(set.resources, "resource");
        line(&format!("set {}: {resources}, up to position {}", set.name, set.position));
    }
}
