//! The command line of `abreast`, and its runs as functions for other programs: wiring only; it builds things and passes
//! them in.
#![doc = include_str!("../README.md")]
#![warn(clippy::print_stderr)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

mod admin;
mod command;
mod config;
mod program;
mod store;
mod values;

use clap::{ArgMatches, FromArgMatches as _};
use command::args::{Cli, Command};
use command::{
    args, backup, build, check, config_command, demo, doctor, drop, explore, health, hub, import,
    init, log, migrate, repair, restore, serve, set, status, subscribe, sync, token, validate,
};
use program::{exit, logging, memory, shell, terminal};
use std::ffi::OsString;
use std::process::ExitCode;

pub use command::library;

/// Runs a command as the program `abreast` does, and returns the exit code of the process. The first word is the name
/// of the program.
pub fn main_with(words: &[OsString]) -> ExitCode {
    let parsed = args::command_for(words.iter().cloned())
        .try_get_matches_from(words)
        .and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            if error.use_stderr() && words.iter().any(|word| word == "--json") {
                logging::usage_as_json(&error);
            }
            return terminal::usage(&error);
        }
    };
    // The arguments of the command line, to be merged with a configuration file.
    let given = matches.subcommand().map_or(&matches, |(_, given)| given);
    let serves = match &cli.command {
        Command::Serve(_) => true,
        Command::Hub(args) => args.serves(),
        _ => false,
    };
    if serves {
        memory::use_few_heaps(words);
    }
    logging::start(cli.verbose, serves);
    if wants_json(&matches) {
        logging::report_json();
    }
    let result = match &cli.command {
        Command::Init(args) => init::run(args),
        Command::Serve(args) => serve::run(args).map(|()| ExitCode::SUCCESS),
        Command::Hub(args) => hub::run(args),
        Command::Build(args) => build::run(args),
        Command::Sync(args) => sync::run(args, given, cli.verbose),
        Command::Audit(args) => sync::audit(args, given),
        Command::Config(command) => config_command::run(command),
        Command::Completions(args) => Ok(shell::completions(args, args::command())),
        Command::Man(args) => shell::man(args, args::command()),
        Command::Validate(args) => Ok(validate::run(args)),
        Command::Explore(args) => Ok(explore::run(args)),
        Command::Import(args) => Ok(import::run(args)),
        Command::Log(args) => Ok(log::run(args)),
        Command::Subscribe(args) => Ok(subscribe::run(args)),
        Command::Token(command) => token::run(command),
        Command::Check(args) => Ok(check::run(args)),
        Command::Repair(args) => Ok(repair::run(args)),
        Command::Set(command) => Ok(set::run(command)),
        Command::Drop(args) => Ok(drop::run(args)),
        Command::Backup(args) => Ok(backup::run(args)),
        Command::Restore(args) => Ok(restore::run(args)),
        Command::Migrate(args) => migrate::run(args),
        Command::Doctor(args) => Ok(doctor::run(args)),
        Command::Status(args) => status::run(args),
        Command::Health(args) => Ok(health::run(args)),
        Command::Demo(args) => demo::run(args),
    };
    let code = result.unwrap_or_else(|error| {
        let code = exit::code(&error);
        logging::failure(&error, code);
        ExitCode::from(code)
    });
    #[cfg(feature = "otlp")]
    program::traces::end();
    code
}

/// Was `--json` given to the command, or to the one inside it?
fn wants_json(matches: &ArgMatches) -> bool {
    let given =
        |matches: &ArgMatches| matches!(matches.try_get_one::<bool>("json"), Ok(Some(true)));
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    given(innermost)
}
