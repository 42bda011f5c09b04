//! `abreast health`: asks a running program whether it is alive and ready, for probes of containers and
//! service managers.

use crate::admin::ask::Access;
use crate::admin::{ask, socket};
use crate::command::places::{self, Place};
use crate::config::admin::token;
use crate::program::terminal::warning;
use anyhow::Result;
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
Examples:
  abreast health
  abreast health /var/lib/abreast --ready
  abreast health --config /etc/abreast.toml papers
  abreast health https://papers.example.org/ --ready --timeout 2s

Asks `/livez`: does the program work? With --ready, `/readyz` too: can it do its work? By a URL, or by the socket in the folder of a
store or copy; without an argument, in this folder and the folders in it. With --config, asks the server of the file's sets, or the
jobs with these names; without sets, all jobs that follow. Prints the answer if it fails.
The whole command takes at most the time of --timeout. It needs no shell: `HEALTHCHECK CMD [\"/usr/bin/abreast\", \"health\"]`.

Exit codes: 0 healthy, 1 not healthy or not reached, 2 usage.";

/// Options of `health`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct HealthArgs {
    /// URL of a program, or the folder of its store or copy; with --config, jobs [default: this folder]
    #[arg(value_name = "URL|DIR|JOB")]
    places: Vec<String>,
    /// Ask the programs of this configuration file
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    config: Option<PathBuf>,
    /// Ask whether it is ready, not only whether it is alive
    #[arg(long)]
    ready: bool,
    /// Limit of the time for everything
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Send the token in this file, for an address that needs one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Also trust the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// Runs `health`.
pub(crate) fn run(args: &HealthArgs) -> ExitCode {
    match failures(args) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            for failure in &failures {
                warning(failure.trim_end());
            }
            ExitCode::from(1)
        }
        Err(error) => {
            crate::program::logging::failure(&error, 1);
            ExitCode::from(1)
        }
    }
}

/// The answers that show a failure.
fn failures(args: &HealthArgs) -> Result<Vec<String>> {
    let end = Instant::now() + args.timeout;
    let given = args.token_file.as_deref().map(token).transpose()?;
    let mut failures = Vec::new();
    for place in places::of(&args.places, args.config.as_deref(), true)? {
        let asked = Asked { place: &place, args, given: given.as_deref(), end };
        failures.extend(asked.failures()?);
    }
    Ok(failures)
}

struct Asked<'a> {
    place: &'a Place,
    args: &'a HealthArgs,
    given: Option<&'a str>,
    end: Instant,
}

impl Asked<'_> {
    fn failures(&self) -> Result<Vec<String>> {
        let mut failures = Vec::new();
        let paths = if self.args.ready { &["/livez", "/readyz"][..] } else { &["/livez"] };
        if let Some(url) = self.place.url() {
            let own = match (self.given, self.place.token_file()) {
                (None, Some(file)) => Some(token(file)?),
                _ => None,
            };
            for path in paths {
                let token = self.given.or(own.as_deref());
                let access = Access { token, ca_file: self.args.ca_file.as_deref() };
                match ask::ask_url(ask::base_of(&url), path, access, self.left()) {
                    Ok((200, _)) => {}
                    Ok((status, body)) => failures.push(format!("{url}: {status} {body}")),
                    Err(error) => failures.push(format!("{error:#}")),
                }
            }
            return Ok(failures);
        }
        let folder = self.place.folder();
        let sockets = ask::sockets_in(folder);
        let mut answered = 0;
        for (state, name) in &sockets {
            for path in paths {
                let shown = state.join(name);
                match socket::ask((state, name), path, self.left()) {
                    Ok(None) => {}
                    Ok(Some((200, _))) => answered += 1,
                    Ok(Some((status, body))) => {
                        answered += 1;
                        failures.push(format!("{}: {status} {body}", shown.display()));
                    }
                    Err(error) => {
                        answered += 1;
                        let why = ask::in_words(&error, self.args.timeout);
                        failures.push(format!("{}: {why}", shown.display()));
                    }
                }
            }
        }
        if answered == 0 {
            failures.push(format!(
                "no program reports its state in `{}`\n  help: start it, name its URL or the folder of its store or copy, or use --config",
                folder.display()
            ));
        }
        Ok(failures)
    }

    fn left(&self) -> Duration {
        self.end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1))
    }
}
