//! `abreast hub topics`, `targets`, `attempts`, `replay`, `end`: inspects and changes the
//! deliveries of a hub.

use super::access::HubAccess;
use crate::program::errors::UsageError;
use crate::program::terminal::{line, warning};
use crate::store::log_access::LogAccessArgs;
use abreast_webtypes::count;
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use serde_json::Value;
use std::fmt::Write as _;
use std::process::ExitCode;

/// The query or action.
#[derive(Debug, Subcommand)]
pub(crate) enum HubCommand {
    /// List the topics
    Topics(TopicsArgs),
    /// List the targets of a topic, or of all
    Targets(TargetsArgs),
    /// List the last deliveries to a target, and its dead letters
    Attempts(TargetArgs),
    /// Deliver again all notifications after a given one, or try a failed delivery again at once
    Replay(ReplayArgs),
    /// End a subscription
    End(EndArgs),
}

/// Access to the hub, and the output format.
#[derive(Debug, Args)]
pub(crate) struct HowArgs {
    /// Print one JSON object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    access: LogAccessArgs,
}

/// Options of `hub topics`.
#[derive(Debug, Args)]
pub(crate) struct TopicsArgs {
    #[command(flatten)]
    how: HowArgs,
}

/// Options of `hub targets`.
#[derive(Debug, Args)]
pub(crate) struct TargetsArgs {
    /// The topic's URL [default: all topics]
    topic: Option<String>,
    /// List only targets that are behind or failing
    #[arg(long)]
    behind: bool,
    #[command(flatten)]
    how: HowArgs,
}

/// Options of `hub attempts`.
#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The target's number, as printed by `abreast hub targets`
    target: i64,
    #[command(flatten)]
    how: HowArgs,
}

/// Options of `hub replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The target's number
    target: i64,
    /// Deliver again the notifications after this one; 0 for all that are kept [default: attempt a waiting delivery at once]
    #[arg(long, value_name = "OFFSET")]
    after: Option<u64>,
    #[command(flatten)]
    how: HowArgs,
}

/// Options of `hub end`.
#[derive(Debug, Args)]
pub(crate) struct EndArgs {
    /// The target's number
    target: i64,
    /// Reason that the subscriber receives
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    how: HowArgs,
}

/// Runs a subcommand of `abreast hub`.
pub(super) fn run(command: &HubCommand) -> ExitCode {
    let done = match command {
        HubCommand::Topics(args) => topics(args),
        HubCommand::Targets(args) => targets(args),
        HubCommand::Attempts(args) => attempts(args),
        HubCommand::Replay(args) => replay(args),
        HubCommand::End(args) => end(args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = crate::program::exit::code(&error);
            crate::program::logging::failure(&error, code);
            ExitCode::from(code)
        }
    }
}

/// Every entry of all pages.
fn each(
    mut page: impl FnMut(i64) -> Result<(Vec<Value>, Option<i64>)>,
    mut work: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut after = 0;
    loop {
        let (entries, next) = page(after)?;
        entries.iter().try_for_each(&mut work)?;
        match next {
            Some(next) if next > after => after = next,
            _ => return Ok(()),
        }
    }
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_default()
}

fn topics(args: &TopicsArgs) -> Result<()> {
    let hub = HubAccess::open(&args.how.access, false)?;
    each(
        |after| hub.topics(after),
        |topic| {
            line(&if args.how.json {
                topic.to_string()
            } else {
                let (head, trimmed) = (number(topic, "head"), number(topic, "trimmed"));
                format!(
                    "{}  {}, {} kept",
                    text(topic, "url"),
                    count(head, "notification"),
                    head.saturating_sub(trimmed)
                )
            });
            Ok(())
        },
    )
}

fn targets(args: &TargetsArgs) -> Result<()> {
    let hub = HubAccess::open(&args.how.access, false)?;
    let mut found = false;
    each(
        |after| hub.topics(after),
        |topic| {
            if args.topic.as_ref().is_some_and(|wanted| topic["url"] != **wanted) {
                return Ok(());
            }
            found = true;
            let id = topic["id"].as_i64().unwrap_or_default();
            each(
                |after| hub.targets(id, after),
                |target| {
                    if !args.behind || target["state"] != "current" {
                        line(&if args.how.json { target.to_string() } else { shown(target) });
                    }
                    Ok(())
                },
            )
        },
    )?;
    if let Some(topic) = args.topic.as_ref().filter(|_| !found) {
        bail!(UsageError(format!("the hub has no topic `{topic}` (help: abreast hub topics)")));
    }
    Ok(())
}

fn shown(target: &Value) -> String {
    let mut shown = format!(
        "{}  {} {}  {} of {}, {}",
        target["id"],
        text(target, "kind"),
        text(target, "address"),
        target["cursor"],
        target["head"],
        text(target, "state")
    );
    if number(target, "attempts") > 0 {
        let _ = write!(shown, ": {}", count(number(target, "attempts"), "failed attempt"));
    }
    if target["error"].is_string() {
        let _ = write!(shown, ", {}", text(target, "error"));
    }
    if target["lease_until"].is_string() {
        let _ = write!(shown, ", until {}", text(target, "lease_until"));
    }
    shown
}

fn attempts(args: &TargetArgs) -> Result<()> {
    let target = HubAccess::open(&args.how.access, false)?.target(args.target)?;
    if args.how.json {
        line(&target.to_string());
        return Ok(());
    }
    line(&format!("topic {}", text(&target, "topic")));
    line(&shown(&target));
    for attempt in target["last_attempts"].as_array().into_iter().flatten() {
        let status =
            attempt["status"].as_u64().map_or("no answer".to_owned(), |status| status.to_string());
        let how = if attempt["error"].is_string() { text(attempt, "error") } else { "taken" };
        line(&format!(
            "  {}  notification {}, attempt {}: {status}, {how} ({} ms)",
            text(attempt, "time"),
            attempt["offset"],
            attempt["number"],
            attempt["took_ms"]
        ));
    }
    for dead in target["dead_letters"].as_array().into_iter().flatten() {
        let (first, last) = (&dead["first"], &dead["last"]);
        line(&format!(
            "  {}  {first} to {last} given up: {}",
            text(dead, "time"),
            text(dead, "error")
        ));
    }
    Ok(())
}

fn replay(args: &ReplayArgs) -> Result<()> {
    let target = HubAccess::open(&args.how.access, true)?.replay(args.target, args.after)?;
    line(&if args.how.json { target.to_string() } else { shown(&target) });
    Ok(())
}

fn end(args: &EndArgs) -> Result<()> {
    let (target, to_json) =
        HubAccess::open(&args.how.access, true)?.end(args.target, args.reason.as_deref())?;
    line(&if args.how.json { target.to_string() } else { format!("ended: {}", shown(&target)) });
    if !to_json && target["kind"] == "subscription" {
        warning(
            "The subscriber was not notified, and will miss what is published from now on; with --server, it is notified.",
        );
    }
    Ok(())
}
