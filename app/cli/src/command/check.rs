//! `abreast check`: checks stored data for damage. Read-only, and safe while a server is running.

use crate::config::database::DatabaseConfig;
use crate::config::store_place::StorePlace;
use crate::program::exit::{DISK, IN_USE, NETWORK, USAGE, code};
use crate::program::logging;
use crate::program::progress::ProgressArgs;
use crate::program::terminal::{json, line};
use crate::store::database::Database;
use crate::store::state_folders::{TOKENS, place_of, sets_in};
use abreast_core::Meter;
use abreast_core::contents::ContentStore;
use abreast_maintenance::{
    CheckOptions, CheckReport, ErrorKind, ReadShare, SharedCheckOptions, check, check_shared,
};
use abreast_store::integrity::SharedStore;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const HELP: &str = "\
Examples:
  abreast check /var/lib/abreast
  abreast check ./papers --read-data-subset 10%
  abreast check warc:./packed --read-data --json
  abreast check --config /etc/abreast.toml
  abreast check postgres://abreast@db.example.org/abreast

DIR is the folder of a Source's store, a published folder with its store in .abreast, a copy made by `abreast sync`, the
folder of its state, or the folder of the copies of all sets (`--all-sets`). The URL of a database, or a configuration file, checks
the rows that several nodes share, and their contents in the bucket. The check is read-only; a server may be running.
docs/maintenance.md explains each finding.

Exit codes: 0 no damage, 1 damage found, 2 usage, 13 cannot read, 130 cancelled; of a database also 5 out of reach, 6 no secure
connection, 12 it refuses the user.";

/// Options of `check`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct CheckArgs {
    /// Folder of a store, of a copy, or of backups; or the URL of a database
    #[arg(value_name = "DIR|URL", required_unless_present = "config")]
    dir: Option<PathBuf>,
    /// Check the store of this configuration file
    #[arg(long, value_name = "FILE", conflicts_with = "dir")]
    config: Option<PathBuf>,
    /// Bucket of the contents of a database [default: that of its nodes]
    #[arg(long, value_name = "URL")]
    contents: Option<String>,
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
    let cancel = crate::program::signals::cancel_on_signal();
    // Clap has printed the usage if both are missing.
    let place = args.config.as_ref().or(args.dir.as_ref()).cloned().unwrap_or_default();
    let checked = match StorePlace::of(&place, args.contents.as_deref()) {
        Ok(StorePlace::Folder(folder)) => {
            // A target such as `warc:DIR` is not a path.
            check_folder(args, &folder.to_string_lossy(), &cancel)
        }
        Ok(StorePlace::Database(database)) => check_database(args, &database, &cancel),
        Err(error) => Err((code(&error), error)),
    };
    let (mut report, incomplete) = match checked {
        Ok(checked) => checked,
        Err((code, error)) => {
            logging::failure(&error, code);
            return ExitCode::from(code);
        }
    };
    let failures: Vec<anyhow::Error> =
        std::mem::take(&mut report.failures).into_iter().map(Into::into).collect();
    let code = match (report.is_complete, report.is_cancelled) {
        (true, _) => u8::from(!report.is_consistent()),
        (false, true) => 130,
        (false, false) => failures.first().map_or(DISK, incomplete),
    };
    for failure in failures {
        logging::failure(&failure, code);
    }
    print_report(args, &report);
    ExitCode::from(code)
}

/// A report, and the exit code of a failure that ended the check; or a failure to begin, with its exit code.
type Checked = Result<(CheckReport, fn(&anyhow::Error) -> u8), (u8, anyhow::Error)>;

fn check_folder(args: &CheckArgs, dir: &str, cancel: &AtomicBool) -> Checked {
    let mut options = CheckOptions::new(place_of(dir));
    options.sets = sets_in(dir).map_err(|error| (DISK, error))?;
    options.records = vec![TOKENS];
    options.read = args.data.share_or(options.read);
    let progress = args.progress.begin(false, args.json);
    options.meter = progress.meter();
    let checked = check(&options, cancel);
    drop(progress);
    let report = checked.map_err(|error| {
        (if error.kind() == ErrorKind::Usage { USAGE } else { DISK }, error.into())
    })?;
    Ok((report, |_| DISK))
}

fn check_database(args: &CheckArgs, database: &DatabaseConfig, cancel: &AtomicBool) -> Checked {
    let opened = CheckedStore::open(database).map_err(|error| (code(&error), error))?;
    let progress = args.progress.begin(false, args.json);
    let options = opened.options(&args.data, progress.meter());
    let report = check_shared(&options, cancel);
    drop(progress);
    // The code 1 would be that of damage.
    Ok((report, |error| if code_of_shared(error) == 1 { DISK } else { code_of_shared(error) }))
}

/// The store of several nodes that is open for a check.
pub(crate) struct CheckedStore {
    store: Box<dyn SharedStore>,
    shown: String,
    contents: Option<(String, Arc<dyn ContentStore>)>,
}

impl CheckedStore {
    /// Opens a database, and the bucket of its nodes unless the configuration has another one.
    ///
    /// # Errors
    /// The database or the bucket cannot be used.
    pub(crate) fn open(database: &DatabaseConfig) -> Result<Self> {
        let (store, recorded) = Database::to_check(database)?;
        let open = |url: String| {
            let contents = crate::store::bucket::contents(&url, &std::env::temp_dir())?;
            anyhow::Ok((url, contents))
        };
        let contents = database.contents.clone().or(recorded).map(open).transpose()?;
        Ok(Self { store, shown: database.shown(), contents })
    }

    /// The options of a check.
    pub(crate) fn options(&self, data: &DataArgs, meter: Meter) -> SharedCheckOptions<'_> {
        let contents = self.contents.as_ref();
        SharedCheckOptions {
            store: &*self.store,
            shown: self.shown.clone(),
            contents: contents.map(|(url, contents)| (url.clone(), &**contents)),
            read: data.share_or(ReadShare::NONE),
            meter,
        }
    }
}

/// The exit code of a failure with a database or its bucket. A bucket out of reach is a server on the network.
pub(crate) fn code_of_shared(error: &anyhow::Error) -> u8 {
    let code = code(error);
    if code == IN_USE { NETWORK } else { code }
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
