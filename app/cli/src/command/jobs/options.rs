//! The options of `sync` that a job may have.

use anyhow::Result;
use clap::{Arg, ArgAction, Args, Command};

/// Options that select jobs or the output of one run. They are not allowed in files.
const NOT_FOR_FILES: &[&str] = &[
    "places",
    "config",
    "all",
    "json",
    "quiet",
    "progress",
    "verbose",
    "dry_run",
    "test_filter",
    "help",
    "version",
];

/// The command line that jobs are turned into.
pub(crate) fn command<A: Args>() -> Command {
    A::augment_args(Command::new("abreast").disable_version_flag(true))
}

pub(super) fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    command
        .get_arguments()
        .filter(|arg| arg.get_long().is_some() && !NOT_FOR_FILES.contains(&arg.get_id().as_str()))
}

/// No flags at all: only the environment counts.
pub(crate) fn nothing_given(command: &clap::Command) -> Result<clap::ArgMatches> {
    Ok(command.clone().try_get_matches_from(["abreast", "--all", "--config", "-"])?)
}

pub(super) fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
}

/// Options of one run that jobs do not have, but a command line may.
pub(super) fn is_how_told(arg: &Arg) -> bool {
    matches!(arg.get_id().as_str(), "json" | "quiet" | "progress" | "dry_run" | "test_filter")
}
