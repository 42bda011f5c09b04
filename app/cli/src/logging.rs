//! Logs and errors on standard error: text for people, one JSON object a line for programs.

use crate::terminal::{self, LogEntry};
use clap::ValueEnum as _;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use tracing_subscriber::EnvFilter;

/// Names the format of the log.
const FORMAT: &str = "ABREAST_LOG_FORMAT";

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Json,
}

static CHOSEN: OnceLock<Format> = OnceLock::new();

/// Starts logging. A server logs what it does; other commands log warnings, or more with `-v`.
pub(crate) fn start(verbose: u8, server: bool) {
    let level = match verbose {
        0 if server => "info",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let wanted = std::env::var(FORMAT).ok().map(|name| (Format::from_str(&name, true), name));
    let on_terminal = terminal::error_is_terminal();
    let format = match &wanted {
        Some((Ok(format), _)) => *format,
        _ if server && !on_terminal => Format::Json,
        _ => Format::Text,
    };
    let _ = CHOSEN.set(format);
    let filter = EnvFilter::try_from_env("ABREAST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| LogEntry).with_ansi(false);
    match format {
        Format::Json => builder.json().init(),
        Format::Text if server || on_terminal => builder.with_target(false).init(),
        Format::Text => builder.with_target(false).without_time().init(),
    }
    std::panic::set_hook(Box::new(panicked));
    if let Some((Err(_), name)) = wanted {
        tracing::warn!("{FORMAT} is `{name}`; expected text or json");
    }
}

fn is_json() -> bool {
    CHOSEN.get() == Some(&Format::Json)
}

/// Prints an error with its causes, the way out last.
pub(crate) fn failure(error: &anyhow::Error) {
    let causes: Vec<String> = error.chain().skip(1).map(ToString::to_string).collect();
    if is_json() {
        tracing::error!(causes = causes.join("; "), "{error}");
        return;
    }
    let mut text = format!("abreast: {error}");
    for cause in causes {
        text.push_str("\n  because: ");
        text.push_str(&cause);
    }
    terminal::warning(&text);
}

/// Prints what a server offers when it is ready: on standard output for people, else in the log.
pub(crate) fn ready(line: &str) {
    if is_json() && !terminal::output_is_terminal() {
        tracing::info!("{}", line.trim());
    } else {
        terminal::line(line);
    }
}

fn panicked(panic: &PanicHookInfo<'_>) {
    let mut text =
        format!("internal error: {panic}\n  help: this is a fault of the program: report it with this message");
    let trace = Backtrace::capture();
    if trace.status() == BacktraceStatus::Captured {
        text = format!("{text}\n{trace}");
    }
    if is_json() {
        tracing::error!("{text}");
    } else {
        terminal::warning(&format!("abreast: {text}"));
    }
}
