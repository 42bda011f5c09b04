//! What every command needs: text on the terminal, exit codes, signals, logs, limits of the process.

pub(crate) mod errors;
pub(crate) mod exit;
mod log_lines;
pub(crate) mod logging;
pub(crate) mod memory;
pub(crate) mod open_files;
pub(crate) mod progress;
pub(crate) mod recent_log;
pub(crate) mod redirected;
pub(crate) mod report;
pub(crate) mod service;
pub(crate) mod shell;
pub(crate) mod signals;
pub(crate) mod small_file;
pub(crate) mod terminal;
pub(crate) mod there;
#[cfg(feature = "otlp")]
pub(crate) mod traces;
