//! `abreast config`: is a configuration file usable, and which settings are in force, from where?

use crate::config::{File, ServeConfig};
use crate::jobs::{self, Origin, Setting};
use crate::sync_args::SyncArgs;
use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::process::ExitCode;

const HELP: &str = "\
Examples:
  abreast config check /etc/abreast.toml
  abreast config show /etc/abreast.toml --origin
  abreast config show /etc/abreast.toml papers --all --json

A flag comes before the environment, the environment before the file, the file before the default.
Exit codes: 0 usable, 2 not.";

/// What to do with a configuration file.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Tell everything that is wrong with a configuration file
    #[command(after_help = HELP)]
    Check(CheckArgs),
    /// Show the settings of a configuration file as they are in force
    #[command(after_help = HELP)]
    Show(ShowArgs),
}

/// Options of `config check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// The configuration file
    #[arg(env = "ABREAST_CONFIG")]
    file: PathBuf,
}

/// Options of `config show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The configuration file
    #[arg(env = "ABREAST_CONFIG")]
    file: PathBuf,
    /// Jobs to show [default: all, and what is served]
    job: Vec<String>,
    /// Say where each value comes from: environment, file or default
    #[arg(long)]
    origin: bool,
    /// Show defaults as well
    #[arg(long)]
    all: bool,
    /// One JSON object a line
    #[arg(long)]
    json: bool,
}

/// Runs `config`.
pub(crate) fn run(command: &ConfigCommand) -> Result<ExitCode> {
    match command {
        ConfigCommand::Check(args) => check(args),
        ConfigCommand::Show(args) => show(args),
    }
}

/// No flags at all: only the environment counts.
fn nothing_given(command: &clap::Command) -> Result<clap::ArgMatches> {
    Ok(command.clone().try_get_matches_from(["abreast", "--all", "--config", "-"])?)
}

fn check(args: &CheckArgs) -> Result<ExitCode> {
    let command = jobs::command::<SyncArgs>();
    let file = File::read(&args.file)?;
    let jobs = jobs::read(&args.file, &command)?;
    let given = nothing_given(&command)?;
    let (mut problems, sets) = (Vec::new(), file.set.len());
    for job in &jobs {
        if let Err(error) = job.args::<SyncArgs>(&command, &given) {
            problems.push(error.to_string());
        }
    }
    // A file of jobs alone is not one to serve from, and a hub may be alone, too.
    let only_hub = sets == 0 && file.hub.is_some();
    if only_hub {
        if let Err(error) = crate::hub::check_file(file) {
            problems.push(error.to_string());
        }
    } else if (sets > 0 || jobs.is_empty())
        && let Err(error) = ServeConfig::check(file)
    {
        problems.push(error.to_string());
    }
    if !problems.is_empty() {
        anyhow::bail!(crate::config::Unusable(problems.join("\n")));
    }
    let hub = if only_hub { ", a hub" } else { "" };
    crate::terminal::line(&format!("{}: {sets} sets to publish, {} mirrors{hub}", args.file.display(), jobs.len()));
    Ok(ExitCode::SUCCESS)
}

fn show(args: &ShowArgs) -> Result<ExitCode> {
    let command = jobs::command::<SyncArgs>();
    let file = File::read(&args.file)?;
    let read = jobs::read(&args.file, &command)?;
    let given = nothing_given(&command)?;
    if args.job.is_empty() {
        tell(args, "serve", None, &serve_settings(&file));
        for set in &file.set {
            let name = set.name.clone().unwrap_or_else(|| set.folder.display().to_string());
            let folder = Setting {
                key: "folder".to_owned(),
                value: format!("{:?}", set.folder.display().to_string()),
                origin: Origin::File,
            };
            tell(args, "set", Some(&name), &[folder]);
        }
    }
    let chosen = if args.job.is_empty() { read } else { jobs::choose(read, &args.job, false)? };
    for job in &chosen {
        tell(args, "mirror", Some(&job.name), &job.settings(&command, &given, args.all)?);
    }
    Ok(ExitCode::SUCCESS)
}

/// What `serve` takes from the environment before the file.
fn serve_settings(file: &File) -> Vec<Setting> {
    let data = file.data.as_ref().map(|data| data.display().to_string());
    [
        ("listen", "ABREAST_LISTEN", file.listen.clone(), "127.0.0.1:8080"),
        ("base_url", "ABREAST_BASE_URL", file.base_url.clone(), "http:// and the listen address"),
        ("data", "ABREAST_DATA", data, ".abreast in the published folder"),
    ]
    .into_iter()
    .map(|(key, variable, in_file, default)| {
        let (value, origin) = match (std::env::var(variable), in_file) {
            (Ok(value), _) => (value, Origin::Environment),
            (Err(_), Some(value)) => (value, Origin::File),
            (Err(_), None) => (default.to_owned(), Origin::Default),
        };
        Setting { key: key.to_owned(), value: format!("\"{}\"", jobs::shown(&value)), origin }
    })
    .collect()
}

fn tell(args: &ShowArgs, kind: &str, name: Option<&str>, settings: &[Setting]) {
    let settings = settings.iter().filter(|setting| args.all || setting.origin != Origin::Default);
    if args.json {
        for setting in settings {
            let line = serde_json::json!({
                "type": "setting", "table": kind, "name": name, "key": setting.key, "value": setting.value,
                "origin": setting.origin.to_string(),
            });
            crate::terminal::line(&line.to_string());
        }
        return;
    }
    let mut settings = settings.peekable();
    if settings.peek().is_none() {
        return;
    }
    crate::terminal::line(&format!("[{kind}{}]", name.map(|name| format!(" {name}")).unwrap_or_default()));
    for setting in settings {
        let origin = if args.origin { format!("  # {}", setting.origin) } else { String::new() };
        crate::terminal::line(&format!("{} = {}{origin}", setting.key, setting.value));
    }
}
