//! Words for people and lines for programs: the only place that writes to standard output.

use std::io::Write as _;

/// One line on standard output. A closed pipe is no error of ours.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
    let _ = out.flush();
}

/// One line on standard error.
pub(crate) fn warning(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
