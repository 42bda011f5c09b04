//! Runs of `sync`, `audit` and `validate`, documents and requests for other programs, such as the package for Python: the
//! options are words of the command line, and the results are values instead of output and exit codes.

mod http;

pub use http::{Call, Http, Reply};

use crate::command::args::{Cli, Command, command_for};
use crate::command::{sync, validate};
use crate::program::{exit, logging};
use crate::values::address::is_url;
use abreast_destination::{
    AuditReport, Observer, Output, Summary, SyncOptions, requests_of_copies,
};
use abreast_documents::{Limits, Place, Reading};
use abreast_validator::Report;
use clap::parser::ValueSource;
use clap::{ArgMatches, FromArgMatches as _};
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;

/// Options that determine output of the program, or several runs: a caller has its own.
const OF_THE_PROGRAM: [&str; 13] = [
    "admin_listen",
    "admin_token_file",
    "all",
    "all_sets",
    "config",
    "depth",
    "format",
    "json",
    "progress",
    "publish_status",
    "quiet",
    "test_filter",
    "verbose",
];

/// An error that prevented or ended a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code that the command has for this error.
    pub exit_code: u8,
    /// The stable code, for example `delete.limit`.
    pub code: &'static str,
    /// What failed and where, with its causes.
    pub message: String,
    /// How to solve the problem, if a solution is known.
    pub help: Option<String>,
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        let exit_code = exit::code(&error);
        let code = logging::code_name(&error, exit_code);
        let mut help = None;
        let mut texts = Vec::new();
        for text in logging::messages(&error) {
            let (text, own) = logging::without_help(&text);
            help = help.or_else(|| own.map(str::to_owned));
            texts.push(text.to_owned());
        }
        Self { exit_code, code, message: texts.join(": "), help }
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        let text = error.to_string();
        let text = text.strip_prefix("error: ").unwrap_or(&text);
        let message = text.split("\n\nUsage:").next().unwrap_or(text).trim();
        let message = message.split("\n\nFor more information").next().unwrap_or(message).trim();
        let exit_code =
            if error.kind() == clap::error::ErrorKind::Io { exit::DISK } else { exit::USAGE };
        let code = if exit_code == exit::DISK { "path.denied" } else { "usage" };
        let help = Some(
            "the options are those of the command, without `--` and with `_` for `-`".to_owned(),
        );
        Self { exit_code, code, message: message.to_owned(), help }
    }
}

/// Exit code of an incomplete reading.
const INCOMPLETE: u8 = 8;
/// Exit code of a cancelled run.
const CANCELLED: u8 = 130;

impl From<abreast_documents::Error> for Failure {
    fn from(error: abreast_documents::Error) -> Self {
        use abreast_documents::Error as E;
        let (code, help) = (error.code(), error.help());
        let exit_code = match (&error, code) {
            (_, "documents.size" | "documents.time" | "documents.number") => Some(INCOMPLETE),
            (E::Document { .. }, _) => Some(exit::SOURCE),
            (E::Entry { .. }, _) => Some(exit::USAGE),
            (E::Cancelled, _) => Some(CANCELLED),
            _ => None,
        };
        let failure = match error {
            // The error of the network itself has the exit code.
            E::Net(error) => anyhow::Error::from(error),
            error => anyhow::Error::from(error),
        };
        let failure = Self::from(failure);
        Self {
            exit_code: exit_code.unwrap_or(failure.exit_code),
            code,
            help: help.map(str::to_owned).or(failure.help),
            ..failure
        }
    }
}

/// The command that these words ask for, with the matches of its options.
fn parsed(command: &str, words: Vec<OsString>) -> Result<(Command, ArgMatches), Failure> {
    let all: Vec<OsString> = ["abreast".into(), command.into()].into_iter().chain(words).collect();
    let mut matches = command_for(all.clone()).try_get_matches_from(&all)?;
    let command = Cli::from_arg_matches(&matches)?.command;
    let Some((_, given)) = matches.remove_subcommand() else {
        return Err(anyhow::Error::from(usage("no command is given")).into());
    };
    let is_given = |id: &&&str| {
        given.try_contains_id(id).is_ok()
            && given.value_source(id) == Some(ValueSource::CommandLine)
    };
    if let Some(id) = OF_THE_PROGRAM.iter().find(is_given) {
        return Err(of_the_program(id));
    }
    Ok((command, given))
}

fn of_the_program(id: &str) -> Failure {
    let fault = usage(&format!("`{id}` is an option of the program alone (help: leave it out)"));
    anyhow::Error::from(fault).into()
}

fn usage(text: &str) -> crate::program::errors::UsageError {
    crate::program::errors::UsageError(text.to_owned())
}

fn options_of_sync(words: Vec<OsString>, follows: bool) -> Result<SyncOptions, Failure> {
    match parsed("sync", words)? {
        (Command::Sync(args), _) if args.follow && !follows => Err(of_the_program("follow")),
        (Command::Sync(args), given) => Ok(sync::options_of_sync(&args, &given)?),
        _ => Err(anyhow::Error::from(usage("expected options of `sync`")).into()),
    }
}

/// Runs `abreast sync` once. The words are the command's arguments.
///
/// # Errors
/// The options are wrong, or the run was stopped by an error. A run that left something undone has its exit code in
/// the summary.
pub fn sync_once(
    words: Vec<OsString>,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Failure> {
    let options = options_of_sync(words, false)?;
    abreast_destination::sync(&options, observer, cancel)
        .map_err(|error| anyhow::Error::from(error).into())
}

/// Runs `abreast sync --follow` until it is cancelled. The words are the command's arguments.
///
/// # Errors
/// The options are wrong, or an error stopped the follower.
pub fn follow(
    words: Vec<OsString>,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Failure> {
    follow_with(words, observer, cancel, |_| Ok(()))
}

/// Runs `abreast sync --follow` with the target `-`, and writes the lines to `output`. The words are the command's
/// arguments. A change is recorded when `output` has accepted its line.
///
/// # Errors
/// The options are wrong, an error stopped the follower, or `output` failed.
pub fn follow_lines(
    words: Vec<OsString>,
    output: Output,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Failure> {
    follow_with(words, observer, cancel, |options| {
        if options.sink.write_to(output) {
            return Ok(());
        }
        Err(anyhow::Error::from(usage("only the target `-` is written as lines")).into())
    })
}

fn follow_with(
    words: Vec<OsString>,
    observer: &dyn Observer,
    cancel: &AtomicBool,
    adapt: impl FnOnce(&mut SyncOptions) -> Result<(), Failure>,
) -> Result<Summary, Failure> {
    let words = std::iter::once("--follow".into()).chain(words).collect();
    let mut options = options_of_sync(words, true)?;
    adapt(&mut options)?;
    let fitting =
        requests_of_copies(1, 1).map_err(|error| anyhow::Error::from(usage(&error.to_string())))?;
    options.limit_requests(fitting);
    abreast_destination::follow(&options, observer, cancel)
        .map_err(|error| anyhow::Error::from(error).into())
}

/// Runs `abreast audit`. The words are the command's arguments.
///
/// # Errors
/// The options are wrong, or the audit was stopped by an error.
pub fn audit(
    words: Vec<OsString>,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<AuditReport, Failure> {
    let options = match parsed("audit", words)? {
        (Command::Audit(args), given) => sync::options_of_audit(&args, &given)?,
        _ => return Err(anyhow::Error::from(usage("expected options of `audit`")).into()),
    };
    abreast_destination::audit(&options, observer, cancel)
        .map_err(|error| anyhow::Error::from(error).into())
}

/// Runs `abreast validate`, and returns the report with the exit code of the command. The words are the command's
/// arguments.
///
/// # Errors
/// The options are wrong.
pub fn validate(words: Vec<OsString>, cancel: &AtomicBool) -> Result<(Report, u8), Failure> {
    let (options, fail_on) = match parsed("validate", words)? {
        (Command::Validate(args), _) => (validate::options(&args)?, args.fail_on),
        _ => return Err(anyhow::Error::from(usage("expected options of `validate`")).into()),
    };
    let report = abreast_validator::validate(&options, cancel);
    let code = validate::exit_code(&report, fail_on);
    Ok((report, code))
}

/// The document at an address or in a file, with the access and limits of `abreast explore`. The words are the
/// command's arguments.
///
/// # Errors
/// The options are wrong.
pub fn reading(words: Vec<OsString>, follow_indexes: bool) -> Result<Reading, Failure> {
    let (Command::Explore(args), _) = parsed("explore", words)? else {
        return Err(anyhow::Error::from(usage("expected options of `explore`")).into());
    };
    let options = args.walk.options(vec![args.url.clone()])?;
    let start = options.starts.into_iter().next().unwrap_or_default();
    let place = if is_url(&start) { Place::Url(start) } else { Place::File(start.into()) };
    let limits = Limits {
        documents: options.max_documents,
        bytes: options.max_bytes,
        time: options.max_time,
    };
    let mut reading = Reading::new(place, limits);
    reading.follow_indexes = follow_indexes;
    (reading.net, reading.allow_hosts) = (options.net, options.allow_hosts);
    Ok(reading)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_destination::Silent;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn wrong_options_are_failures_with_help() {
        let cancel = AtomicBool::new(false);
        let of = |text: &[&str]| sync_once(words(text), &Silent, &cancel).unwrap_err();
        let failure = of(&["http://h/", "copy", "--no-such"]);
        assert_eq!((failure.exit_code, failure.code), (2, "usage"), "{failure:?}");
        assert!(failure.message.contains("--no-such"), "{failure:?}");
        assert!(!failure.message.contains("Usage"), "{failure:?}");
        let failure = of(&["http://h/"]);
        assert_eq!(failure.exit_code, 2, "{failure:?}");
        assert!(failure.help.is_some(), "{failure:?}");
    }

    #[test]
    fn options_of_the_program_alone_are_refused() {
        let cancel = AtomicBool::new(false);
        for option in ["--follow", "--json", "--all-sets", "--quiet", "--publish-status=x"] {
            let failure =
                sync_once(words(&["http://h/", "copy", option]), &Silent, &cancel).unwrap_err();
            assert_eq!(failure.exit_code, 2, "{failure:?}");
            assert!(failure.message.contains("of the program alone"), "{failure:?}");
        }
        let failure = validate(words(&["http://h/", "--format=html"]), &cancel).unwrap_err();
        assert!(failure.message.contains("`format`"), "{failure:?}");
    }

    #[test]
    fn an_error_of_a_run_has_its_code() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().to_str().unwrap();
        let cancel = AtomicBool::new(false);
        let given = words(&["http://127.0.0.1:1/", folder, "--retries=0"]);
        let failure = sync_once(given, &Silent, &cancel).unwrap_err();
        assert_eq!(failure.exit_code, 5, "{failure:?}");
    }
}
