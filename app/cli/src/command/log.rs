//! `abreast log`: prints the change log, one JSON object per line, oldest first.

use crate::program::logging;
use crate::store::log_access::{LogAccess, LogAccessArgs};
use crate::store::stores::Task;
use abreast_webtypes::{Timestamp, W3cDatetime};
use anyhow::Result;
use clap::Args;
use std::io::{BufWriter, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Changes read at a time.
const PAGE: usize = 1_000;
/// Seconds that a server is asked to wait for the next change.
const WAIT: Duration = Duration::from_secs(20);

const HELP: &str = "\
Examples:
  abreast log papers --server http://127.0.0.1:8080/
  abreast log papers --server https://papers.example.org/ --since 2026-01-01 --follow
  abreast log papers --data /var/lib/abreast --after 1200 --limit 50

Each line is one change: position, datetime, change, uri and the metadata of the resource. `abreast import` reads such
lines. To continue an earlier run, give the last `position` as --after.

Exit codes: 0 ok, 1 other, 2 usage, 5 try again later, 6 no secure connection, 10 a server has the
store open, 12 not authorised, 130 cancelled.";

/// Options of `log`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct LogArgs {
    /// Name of the set
    set: String,
    /// Print changes after this position
    #[arg(long, value_name = "POSITION", default_value_t = 0, conflicts_with = "since")]
    after: u64,
    /// Print changes after this instant, such as 2026-01-31 or 2026-01-31T12:00:00Z
    #[arg(long, value_name = "DATETIME", value_parser = instant)]
    since: Option<Timestamp>,
    /// Print at most this many changes
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// Keep running, and print changes as they happen
    #[arg(short, long, requires = "server")]
    follow: bool,
    #[command(flatten)]
    log: LogAccessArgs,
}

fn instant(text: &str) -> Result<Timestamp, String> {
    W3cDatetime::parse(text.as_bytes()).map(|read| read.instant).map_err(|error| error.to_string())
}

/// Prints the log.
pub(crate) fn run(args: &LogArgs) -> ExitCode {
    match print_log(args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = crate::program::exit::code(&error);
            logging::failure(&error, code);
            ExitCode::from(code)
        }
    }
}

fn print_log(args: &LogArgs) -> Result<()> {
    let mut log = LogAccess::open(&args.log, &args.set, Task::Read)?;
    let mut out = BufWriter::new(crate::program::terminal::output());
    let (mut after, mut since) = (args.after, args.since);
    let mut left = args.limit.unwrap_or(usize::MAX);
    while left > 0 {
        let wait = if args.follow && log.is_live() { WAIT } else { Duration::ZERO };
        let (changes, next) = log.read(after, since, PAGE.min(left), wait)?;
        let ended = next <= after && changes.is_empty();
        if next > 0 {
            (after, since) = (next, None);
        }
        left -= changes.len().min(left);
        for change in &changes {
            // The reader of the output has closed the pipe.
            if writeln!(out, "{change}").is_err() {
                return Ok(());
            }
        }
        if out.flush().is_err() || (ended && !args.follow) {
            return Ok(());
        }
    }
    Ok(())
}
