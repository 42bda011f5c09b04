//! Values on their way between Python and Rust.

use std::ffi::OsString;

/// The words of a command line.
pub(crate) fn words(texts: Vec<String>) -> Vec<OsString> {
    texts.into_iter().map(OsString::from).collect()
}

/// A report as JSON.
pub(crate) fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}
