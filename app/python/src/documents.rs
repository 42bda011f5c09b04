//! Documents as iterators of Python, and Python's entries as documents.

use crate::values::words;
use crate::work::{Events, Work, exception};
use abreast::library;
use abreast_documents::{Entry, Head, Item, ListWriter, Place, read};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt as _;
use pyo3::types::PyBytes;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Bytes of JSON that are passed on together.
const BATCH_BYTES: usize = 32 << 10;
/// Batches that wait for Python: with their size, the memory of a reading.
const BATCHES_WAITING: usize = 8;

/// Entries of documents, in batches of JSON.
#[pyclass(frozen)]
pub(crate) struct Reading {
    work: Work,
}

#[pymethods]
impl Reading {
    /// Reads a document at an address or in a file, or in memory.
    #[new]
    fn new(
        py: Python<'_>,
        texts: Vec<String>,
        bytes: Option<Vec<u8>>,
        url: Option<String>,
        follow_indexes: bool,
    ) -> PyResult<Self> {
        let work = Work::begin(py, false, BATCHES_WAITING, move |events, cancel| {
            let mut reading = library::reading(words(texts), follow_indexes)?;
            if let Some(bytes) = bytes {
                reading.place = Place::Bytes { bytes, url: url.unwrap_or_default() };
            }
            let mut batch = Batch { events, cancel, kind: "", text: String::new() };
            read(&reading, cancel, &mut |item| batch.add(&item))?;
            let _ = batch.pass_on();
            Ok(String::new())
        })?;
        Ok(Self { work })
    }

    /// The next batch: a head, entries or statements; `None` at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.work.wait(py)
    }

    /// Ends the reading.
    fn close(&self, py: Python<'_>) {
        self.work.close(py);
    }
}

/// Items of the same kind, passed on together.
struct Batch<'w> {
    events: &'w Events,
    cancel: &'w AtomicBool,
    kind: &'static str,
    text: String,
}

impl Batch<'_> {
    fn add(&mut self, item: &Item) -> ControlFlow<()> {
        let (kind, json) = match item {
            Item::Document(head) => ("document", serde_json::to_string(head)),
            Item::Entry(entry) => ("entries", serde_json::to_string(entry)),
            Item::Statement(statement) => ("statements", serde_json::to_string(statement)),
        };
        if kind != self.kind {
            self.pass_on()?;
            self.kind = kind;
        }
        self.text.push(if self.text.is_empty() { '[' } else { ',' });
        self.text.push_str(&json.unwrap_or_default());
        if kind == "document" || self.text.len() >= BATCH_BYTES {
            return self.pass_on();
        }
        ControlFlow::Continue(())
    }

    fn pass_on(&mut self) -> ControlFlow<()> {
        if self.cancel.load(Ordering::Relaxed) {
            return ControlFlow::Break(());
        }
        if self.text.is_empty() {
            return ControlFlow::Continue(());
        }
        let batch = format!("{{\"{}\":{}]}}", self.kind, std::mem::take(&mut self.text));
        if self.events.send(batch) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}

/// Writes a document of ResourceSync in pieces.
#[pyclass(frozen)]
pub(crate) struct Writer {
    writer: Mutex<Option<ListWriter>>,
}

#[pymethods]
impl Writer {
    /// Starts a document; `head` is JSON, and `before` the number of entries in earlier documents of the list.
    #[new]
    fn new(py: Python<'_>, head: &str, before: u64) -> PyResult<Self> {
        let head: Head = serde_json::from_str(head).map_err(refused)?;
        let writer = ListWriter::new(&head).map_err(|error| exception(py, error.into()))?;
        Ok(Self { writer: Mutex::new(Some(writer.numbered_after(before))) })
    }

    /// Adds entries, a list of JSON, and returns the bytes that are complete.
    fn entries<'py>(&self, py: Python<'py>, entries: &str) -> PyResult<Bound<'py, PyBytes>> {
        let entries: Vec<Entry> = serde_json::from_str(entries).map_err(refused)?;
        let mut writer = self.writer.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        let Some(writer) = &mut *writer else {
            return Err(PyValueError::new_err("the document has already ended"));
        };
        for entry in &entries {
            writer.entry(entry).map_err(|error| exception(py, error.into()))?;
        }
        Ok(PyBytes::new(py, &writer.take()))
    }

    /// Ends the document, and returns its last bytes.
    fn end<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let writer =
            self.writer.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner).take();
        let rest = writer.map(ListWriter::finish).unwrap_or_default();
        PyBytes::new(py, &rest)
    }
}

fn refused(error: serde_json::Error) -> PyErr {
    PyValueError::new_err(format!("the entry cannot be written: {error}"))
}
