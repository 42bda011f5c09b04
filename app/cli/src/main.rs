//! The `abreast` program: wiring only; it builds things and passes them in.
#![doc = include_str!("../README.md")]

mod args;
mod config;
mod demo;
mod logging;
mod report;
mod serve;
mod signals;
mod sync;
mod terminal;

use args::{Cli, Command};
use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    logging::start(cli.verbose, matches!(cli.command, Command::Serve(_)));
    let result = match &cli.command {
        Command::Serve(args) => serve::run(args).map(|()| ExitCode::SUCCESS),
        Command::Sync(args) => Ok(sync::run(args, cli.verbose)),
        Command::Audit(args) => Ok(sync::audit(args)),
        Command::Demo(args) => demo::run(args),
    };
    result.unwrap_or_else(|error| {
        logging::failure(&error);
        ExitCode::from(if error.is::<config::Unusable>() { 2 } else { 1 })
    })
}
