//! `abreast demo`: publishes a collection, copies and follows it on this machine, and prints each
//! step.

mod museum;
mod names;
mod parts;

use crate::command::args::DemoArgs;
use anyhow::{Context as _, Result};
use std::process::ExitCode;

/// Runs the demonstration; fails if the copy is not equal at any step.
pub(crate) fn run(args: &DemoArgs) -> Result<ExitCode> {
    let temporary = tempfile::tempdir().context("cannot make a temporary folder")?;
    let place = args.dir.clone().unwrap_or_else(|| temporary.path().to_owned());
    if args.rdf { names::run(&place, args.keep) } else { museum::run(&place, args.keep) }
}
