//! The module `abreast._abreast` of the package for Python: wiring between the library functions of the command line
//! and the interpreter. Values pass as JSON, from which `python/abreast` makes records.

mod documents;
mod following;
mod http;
mod logs;
mod streaming;
mod values;
mod work;

use crate::values::{json, words};
use crate::work::{WAITING_MAX, Work, with_large_stack};
use abreast::library;
use abreast_validator::ndjson;
use pyo3::prelude::*;
use std::process::ExitCode;

/// The native part of the package `abreast`.
#[pymodule]
mod _abreast {
    #[pymodule_export]
    use super::documents::{Reading, Writer};
    #[pymodule_export]
    use super::following::Following;
    #[pymodule_export]
    use super::http::Http;
    #[pymodule_export]
    use super::streaming::Streaming;
    #[pymodule_export]
    use super::{audit, command, sync, validate};
}

/// Runs a command as the program does, and returns its exit code. The first word is the name of the program.
#[pyfunction]
fn command(py: Python<'_>, texts: Vec<String>) -> PyResult<u8> {
    let code = with_large_stack(py, || abreast::main_with(&words(texts)))?;
    Ok((0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1))
}

/// One run of `sync`: its summary.
#[pyfunction]
fn sync(
    py: Python<'_>,
    texts: Vec<String>,
    wants_items: bool,
    event: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = Work::begin(py, wants_items, WAITING_MAX, move |events, cancel| {
        library::sync_once(words(texts), events, cancel).map(|summary| json(&summary))
    })?;
    work.finish(py, event.as_ref(), None)
}

/// An audit: its report.
#[pyfunction]
fn audit(
    py: Python<'_>,
    texts: Vec<String>,
    wants_items: bool,
    event: Option<Py<PyAny>>,
) -> PyResult<String> {
    let work = Work::begin(py, wants_items, WAITING_MAX, move |events, cancel| {
        library::audit(words(texts), events, cancel).map(|report| json(&report))
    })?;
    work.finish(py, event.as_ref(), None)
}

/// A validation: the exit code, and a line of JSON for each document and finding, and for the summary.
#[pyfunction]
fn validate(py: Python<'_>, texts: Vec<String>) -> PyResult<String> {
    let work = Work::begin(py, false, WAITING_MAX, move |_, cancel| {
        library::validate(words(texts), cancel)
            .map(|(report, code)| format!("{code}\n{}", ndjson(&report)))
    })?;
    work.finish(py, None, None)
}
