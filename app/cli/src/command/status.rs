//! `abreast status`: reports on stores, copies and hubs, running or stopped.

mod collect;
pub(crate) mod database;
mod print;
mod publish;

pub(crate) use publish::{Publication, Repeated};

use crate::admin::ask::Access;
use crate::command::places;
use crate::program::terminal;
use abreast_core::spawn_scoped;
use abreast_maintenance::{Attention, CopyStatus, STALLED_AFTER, StatusReport};
use anyhow::Result;
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const HELP: &str = "\
Examples:
  abreast status
  abreast status /var/lib/abreast ./papers --json
  abreast status --config /etc/abreast.toml papers
  abreast status http://127.0.0.1:8080/ --watch=2s
  abreast status --config /etc/abreast.toml papers --publish /srv/www/status

DIR is the folder of a store, of a copy, or of the copies of all sets; the URL of a database reports the nodes that share it. A running program is asked on its socket in that folder; the
state of a stopped one is read from its databases, which are not changed. By a URL, a server is asked on `/status` of its address for
operators, else on `/readyz` and its API. Without an argument: the configuration, else this folder.
docs/observing.md describes each line, docs/status.schema.json the report of --json.

Exit codes: 0 healthy, 3 something needs attention, 1 other, 2 usage, 5 the server does not answer, 12 not authorised, 13 cannot read.";

/// Exit code if something needs attention.
const ATTENTION: u8 = 3;

/// Options of `status`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct StatusArgs {
    /// URL of a server, or the folder of a store or copy; with --config, jobs
    #[arg(value_name = "DIR|URL|JOB")]
    places: Vec<String>,
    /// Report the store and the jobs of this configuration file
    #[arg(long, value_name = "FILE", env = "ABREAST_CONFIG")]
    config: Option<PathBuf>,
    /// Print the report as one JSON object
    #[arg(long)]
    json: bool,
    /// Report again every 5 s, or at this interval of at least 1s
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "5s",
        value_parser = interval
    )]
    watch: Option<Duration>,
    /// Limit of the time for each program that is asked
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// Send the token in this file, for an address that needs one
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Write the status of the copies into this folder for the public, as JSON, RDF and a page, without paths and texts of problems
    #[arg(long, value_name = "DIR")]
    publish: Option<PathBuf>,
    /// With --publish: a copy of which no run ended for so long is stalled [default: 1 day]
    #[arg(long, value_name = "TIME", requires = "publish", value_parser = humantime::parse_duration)]
    stalled_after: Option<Duration>,
    /// Also trust the certificates in this PEM file
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

/// Time limit for each program that a server asks about the copies of its configuration file.
const COPY_TIMEOUT: Duration = Duration::from_secs(2);
/// Programs that are asked at the same time.
const ASKED_AT_ONCE: usize = 16;
/// Time after which a server asks no further programs.
const COPIES_TIME: Duration = Duration::from_secs(4);

/// The copies of the jobs in a configuration file. A copy that cannot be reported is in the list with
/// the reason.
pub(crate) fn copies_of_jobs(config: &Path) -> Vec<CopyStatus> {
    let unknown = |job: Option<String>, attention: Vec<Attention>| CopyStatus {
        job,
        state: "unknown".to_owned(),
        attention,
        ..CopyStatus::default()
    };
    let help = || format!("abreast status --config {}", config.display());
    let mut jobs: Vec<_> = match places::of(&[], Some(config), false) {
        Ok(places) => places.into_iter().filter(|place| place.job.is_some()).collect(),
        Err(error) => {
            return vec![unknown(None, vec![Attention::new(format!("{error:#}"), help())])];
        }
    };
    let (begun, mut copies) = (Instant::now(), Vec::new());
    while !jobs.is_empty() {
        if begun.elapsed() > COPIES_TIME {
            let message =
                format!("{} further jobs were not asked: others took too long", jobs.len());
            copies.push(unknown(None, vec![Attention::new(message, help())]));
            break;
        }
        let asked: Vec<_> = jobs.drain(..jobs.len().min(ASKED_AT_ONCE)).collect();
        let reports = std::thread::scope(|scope| {
            let ask = |place| {
                let of_job = std::slice::from_ref(place);
                spawn_scoped(scope, move || {
                    collect::report(of_job, Access::default(), COPY_TIMEOUT)
                })
            };
            let threads: Vec<_> = asked.iter().map(ask).collect();
            threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect::<Vec<_>>()
        });
        for (place, report) in asked.into_iter().zip(reports) {
            match report {
                Ok(Ok(mut report)) => {
                    // A process that does not answer is reported next to the copy.
                    match report.copies.first_mut() {
                        Some(copy) => copy.attention.append(&mut report.attention),
                        None => report.copies.push(unknown(place.job, report.attention)),
                    }
                    copies.append(&mut report.copies);
                }
                Ok(Err(error)) => {
                    let attention = Attention::new(format!("{error:#}"), help());
                    copies.push(unknown(place.job, vec![attention]));
                }
                Err(_) => {
                    let attention = Attention::new("the report failed", help());
                    copies.push(unknown(place.job, vec![attention]));
                }
            }
        }
    }
    copies
}

fn interval(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    if time < Duration::from_secs(1) {
        return Err("shorter than 1s".to_owned());
    }
    Ok(time)
}

impl StatusArgs {
    fn publish(&self, report: &StatusReport) -> Result<()> {
        let stalled_after = self.stalled_after.unwrap_or(STALLED_AFTER);
        self.publish
            .as_ref()
            .map_or(Ok(()), |folder| publish::publish(report, stalled_after, folder))
    }
}

/// Runs `status`.
pub(crate) fn run(args: &StatusArgs) -> Result<ExitCode> {
    let token = args.token_file.as_deref().map(crate::config::admin::token).transpose()?;
    let access = Access { token: token.as_deref(), ca_file: args.ca_file.as_deref() };
    loop {
        let report = places::of(&args.places, args.config.as_deref(), false)
            .and_then(|places| collect::report(&places, access, args.timeout));
        let Some(interval) = args.watch else {
            let report = report?;
            args.publish(&report)?;
            show(args, &report);
            return Ok(ExitCode::from(if report.healthy { 0 } else { ATTENTION }));
        };
        match report.and_then(|report| args.publish(&report).map(|()| report)) {
            Ok(report) => show(args, &report),
            // A program that is being restarted answers again.
            Err(error) => {
                crate::program::logging::print_error(&error);
            }
        }
        std::thread::sleep(interval);
    }
}

fn show(args: &StatusArgs, report: &StatusReport) {
    if args.json {
        terminal::json(report);
        return;
    }
    if args.watch.is_some() {
        terminal::clear();
    }
    for line in print::lines(report, print::width()) {
        terminal::line(&line);
    }
    if args.watch.is_some() {
        terminal::line("");
    }
}
