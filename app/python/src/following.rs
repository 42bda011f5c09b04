//! A run that follows a Source, as an iterator of Python.

use crate::values::{json, words};
use crate::work::{Next, WAITING_MAX, Work};
use abreast::library;
use pyo3::prelude::*;

/// The events of `sync --follow`, as JSON, until the iterator is closed.
#[pyclass]
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
    fn next(&mut self, py: Python<'_>) -> PyResult<Option<String>> {
        loop {
            if let Err(raised) = py.check_signals() {
                self.close(py);
                return Err(raised);
            }
            match self.work.next(py) {
                Next::Event(text) => return Ok(Some(text)),
                Next::Nothing => {}
                Next::End => return self.work.end(py).map(|_| None),
            }
        }
    }

    /// Ends the run, and waits until the copy is free.
    fn close(&mut self, py: Python<'_>) {
        self.work.cancel();
        let _ = self.work.end(py);
    }
}
