//! `abreast check`: checks stored data for damage. Read-only, and safe while a server is running.

use crate::program::exit::{DISK, USAGE};
use crate::program::logging;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{json, line};
use crate::store::state_folders::{TOKENS, database_refused, place_of, sets_in};
use abreast_maintenance::{CheckOptions, CheckReport, ErrorKind, ReadShare, check};
use clap::Args;
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast check /var/lib/abreast
  abreast check ./papers --read-data-subset 10%
  abreast check warc:./packed --read-data --json

DIR is the folder of a Source's store, a published folder with its store in .abreast, a copy made by `abreast sync`, the
folder of its state, or the folder of the copies of all sets (`--all-sets`). The check is read-only; a server may be running.
docs/maintenance.md explains each finding.

Exit codes: 0 no damage, 1 damage found, 2 usage, 13 cannot read, 130 cancelled.";

/// Options of `check`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckArgs {
    /// Folder of a store, of a copy, or of backups
    dir: String,
    #[command(flatten)]
    data: DataArgs,
    /// Print findings as JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    progress: ProgressArgs,
}

/// Selection of the contents to read.
#[derive(Debug, Default, Args)]
pub(crate) struct DataArgs {
    /// Read all contents, files and packages, and compare digests
    #[arg(long, conflicts_with = "read_data_subset")]
    read_data: bool,
    /// Read a random part of them, such as 10%
    #[arg(long, value_name = "N%", value_parser = share)]
    read_data_subset: Option<f64>,
}

fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text
        .trim_end_matches('%')
        .parse()
        .map_err(|_| "expected a share such as 10%".to_owned())?;
    if (0.0..=100.0).contains(&share) { Ok(share) } else { Err("expected 0% to 100%".to_owned()) }
}

impl DataArgs {
    /// The share of files whose bytes are read.
    pub(crate) fn share_or(&self, default: ReadShare) -> ReadShare {
        let all = self.read_data.then_some(ReadShare::ALL);
        all.or_else(|| self.read_data_subset.map(ReadShare::percent)).unwrap_or(default)
    }
}

/// Runs `check`.
pub(crate) fn run(args: &CheckArgs) -> ExitCode {
    /// Advice for a store in a database.
    const HELP_OF_DATABASE: &str =
        "`abreast doctor --config FILE` checks a database and its bucket";
    if let Some(code) = database_refused(Path::new(&args.dir), HELP_OF_DATABASE) {
        return code;
    }
    let cancel = crate::program::signals::cancel_on_signal();
    let mut options = CheckOptions::new(place_of(&args.dir));
    options.sets = match sets_in(&args.dir) {
        Ok(sets) => sets,
        Err(code) => return code,
    };
    options.records = vec![TOKENS];
    options.read = args.data.share_or(options.read);
    let progress = args.progress.begin(false, args.json);
    options.meter = progress.meter();
    let checked = check(&options, &cancel);
    drop(progress);
    let mut report = match checked {
        Ok(report) => report,
        Err(error) => {
            let code = if error.kind() == ErrorKind::Usage { USAGE } else { DISK };
            logging::failure(&error.into(), code);
            return ExitCode::from(code);
        }
    };
    let code = match (report.is_complete, report.is_cancelled) {
        (true, _) => u8::from(!report.is_consistent()),
        (false, true) => 130,
        (false, false) => DISK,
    };
    for failure in std::mem::take(&mut report.failures) {
        logging::failure(&failure.into(), code);
    }
    print_report(args, &report);
    ExitCode::from(code)
}

/// Prints the findings. If the check stopped early, unchecked data may be damaged.
fn print_report(args: &CheckArgs, report: &CheckReport) {
    let summary = report.summary();
    if args.json {
        for finding in report.findings() {
            json(&finding);
        }
        json(&summary);
        return;
    }
    for text in &report.notes {
        line(text);
    }
    for finding in report.findings() {
        line(&format!("{} [{}] {}", finding.severity, finding.code, finding.location));
        line(&format!("  {}", finding.message));
        line(&format!("  help: {}", finding.help));
    }
    for (rule, count) in summary.counts {
        let shown = report.findings().filter(|finding| finding.code == *rule).count() as u64;
        if *count > shown {
            line(&format!("and {} more of {rule}", count - shown));
        }
    }
    line(match (report.is_consistent(), report.is_complete) {
        (false, _) => "damage found",
        (true, true) => "no damage found",
        (true, false) => "not checked to the end; nothing was found so far",
    });
}
