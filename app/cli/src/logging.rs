//! Logs and errors on standard error: text for people, JSON lines for programs.

use std::io::{IsTerminal as _, Write as _};
use tracing_subscriber::EnvFilter;

/// Starts logging. A server tells what it does; other commands tell warnings only, unless asked for more.
pub(crate) fn start(verbose: u8, server: bool) {
    let level = match verbose {
        0 if server => "info",
        0 => "warn",
        1 => "info",
        _ => "debug",
    };
    let filter = EnvFilter::try_from_env("ABREAST_LOG").unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::io::stderr().is_terminal() {
        builder.with_target(false).init();
    } else if server {
        builder.json().init();
    } else {
        builder.with_target(false).without_time().with_ansi(false).init();
    }
}

/// Tells an error with its causes, the way out last.
pub(crate) fn failure(error: &anyhow::Error) {
    let mut out = std::io::stderr().lock();
    let _ = writeln!(out, "abreast: {error}");
    for cause in error.chain().skip(1) {
        let _ = writeln!(out, "  because: {cause}");
    }
}
