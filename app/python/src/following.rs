//! A run that follows a Source, as an iterator of Python.

use crate::values::{json, words};
use crate::work::{WAITING_MAX, Work};
use abreast::library;
use pyo3::prelude::*;

/// The events of `sync --follow`, as JSON, until the iterator is closed.
#[pyclass(frozen)]
pub(crate) struct Following {
    work: Work,
}

#[pymethods]
impl Following {
    #[new]
    fn new(py: Python<'_>, texts: Vec<String>) -> PyResult<Self> {
        let work = Work::begin(py, true, WAITING_MAX, move |events, cancel| {
            library::follow(words(texts), events, cancel).map(|summary| json(&summary))
        })?;
        Ok(Self { work })
    }

    /// The next event; `None` when the run has ended.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.work.wait(py)
    }

    /// Ends the run, and waits until the copy is free.
    fn close(&self, py: Python<'_>) {
        self.work.close(py);
    }
}
