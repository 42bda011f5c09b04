//! `abreast migrate`: moves a store between a folder and a database with a bucket.

use crate::program::progress::ProgressArgs;
use anyhow::Result;
use clap::Args;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast migrate /var/lib/abreast /etc/abreast-nodes.toml
  abreast migrate /etc/abreast-nodes.toml /var/lib/abreast
  abreast migrate /var/lib/abreast postgres://abreast@db/abreast --contents s3://papers/abreast

FROM and TO are a folder, the URL of a PostgreSQL database, or a configuration file, whose data, contents and [database] are used;
exactly one is a folder. Stop all servers first, and start them with TO afterwards: nothing is changed in FROM.

Positions, times, URLs and tokens do not change, so copies and subscribers notice nothing. Dumps, snapshots and archived lists are
made again. An interrupted run continues when it is run again; after the end, another run changes nothing. Until a run ends with exit code 0, no server starts with TO.

All rows are compared at the end, and some stored contents are read back. docs/nodes.md describes a move step by step.

Exit codes: 0 done, 1 FROM is damaged or both differ, 2 usage or TO is not empty, 5 the database is out of reach, 6 no secure connection,
10 a store is in use, 12 the database refuses the user, 13 disk or permission denied, 130 cancelled.";

/// Options of `migrate`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct MigrateArgs {
    /// The present store: a folder, the URL of a database, or a configuration file
    #[arg(value_name = "FROM")]
    pub(crate) from: String,
    /// The new store, which is empty or does not exist
    #[arg(value_name = "TO")]
    pub(crate) to: String,
    /// Bucket of the contents, if the database is given by its URL: s3://BUCKET/PREFIX
    #[arg(long, value_name = "URL")]
    pub(crate) contents: Option<String>,
    /// Stored contents to read back at the end: a number, or all
    #[arg(long, value_name = "N", default_value = "100", value_parser = sample)]
    pub(crate) sample: u64,
    /// Print the result as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) progress: ProgressArgs,
}

/// Reads a number, or `all`.
fn sample(text: &str) -> Result<u64, String> {
    if text == "all" {
        return Ok(u64::MAX);
    }
    text.parse().map_err(|_| "expected a number such as 100, or all".to_owned())
}

/// Runs `migrate`.
///
/// # Errors
/// A store cannot be used, or the stores differ.
#[cfg(feature = "postgres")]
pub(crate) fn run(args: &MigrateArgs) -> Result<ExitCode> {
    use crate::program::terminal::{json, line};
    use crate::store::migration::migrate;
    use crate::store::migration_options::Options;
    use abreast_webtypes::count;
    use indicatif::BinaryBytes;

    const CANCELLED: u8 = 130;
    let cancel = crate::program::signals::cancel_on_signal();
    let is_cancelled = || cancel.load(std::sync::atomic::Ordering::Relaxed);
    let progress = args.progress.begin(false, args.json);
    let options = Options {
        from: &args.from,
        to: &args.to,
        contents: args.contents.as_deref(),
        sample: args.sample,
        meter: progress.meter(),
        is_cancelled: &is_cancelled,
    };
    let migrated = migrate(&options);
    drop(progress);
    let report = match migrated {
        Ok(report) => report,
        Err(error) if is_cancelled() => {
            crate::program::logging::failure(&error, CANCELLED);
            return Ok(ExitCode::from(CANCELLED));
        }
        Err(error) => return Err(error),
    };
    if args.json {
        json(&report);
        return Ok(ExitCode::SUCCESS);
    }
    if report.complete_before {
        line(&format!(
            "{} was completed by an earlier run; `{}` is unchanged",
            report.to, report.from
        ));
        return Ok(ExitCode::SUCCESS);
    }
    crate::command::backup::print_sets(&report.sets);
    line(&format!(
        "{} in {} copied and compared",
        count(report.rows, "row"),
        count(report.tables.len() as u64, "table")
    ));
    line(&format!(
        "{} copied ({}), {} present before, {} read back",
        count(report.contents_copied, "content"),
        BinaryBytes(report.bytes_copied),
        report.contents_present,
        report.contents_verified
    ));
    line("dumps, snapshots and archived lists are made again by the server");
    line(&format!("{} is complete; `{}` is unchanged", report.to, report.from));
    Ok(ExitCode::SUCCESS)
}

/// Refuses a migration, which needs PostgreSQL.
///
/// # Errors
/// Always.
#[cfg(not(feature = "postgres"))]
pub(crate) fn run(_: &MigrateArgs) -> Result<ExitCode> {
    anyhow::bail!(crate::config::database::WITHOUT)
}
