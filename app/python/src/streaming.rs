//! The changes of a Source without a copy, as an iterator of Python.

use crate::values::{json, words};
use crate::work::Work;
use abreast::library;
use abreast_destination::Output;
use pyo3::prelude::*;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Interval of the checks whether the iterator was closed.
const TICK: Duration = Duration::from_millis(50);
/// Events that wait for Python.
const WAITING: usize = 16;

/// Lines of `sync --follow` with the target `-`, until the iterator is closed.
#[pyclass(frozen)]
pub(crate) struct Streaming {
    work: Work,
    accepted: Mutex<SyncSender<()>>,
    closed: Arc<AtomicBool>,
}

#[pymethods]
impl Streaming {
    #[new]
    fn new(py: Python<'_>, texts: Vec<String>) -> PyResult<Self> {
        let (accepted, acceptances) = sync_channel(1);
        let closed = Arc::new(AtomicBool::new(false));
        let is_closed = Arc::clone(&closed);
        let work = Work::begin(py, false, WAITING, move |events, cancel| {
            let lines = Lines { sender: events.sender(), acceptances, closed: is_closed };
            let output = Output::new(lines);
            library::follow_lines(words(texts), output, events, cancel).map(|done| json(&done))
        })?;
        Ok(Self { work, accepted: Mutex::new(accepted), closed })
    }

    /// The next event as JSON, or a line break and lines; `None` when the run has ended.
    fn next(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.work.wait(py)
    }

    /// Confirms the last lines: the state of the copy records them.
    fn accept(&self) {
        if let Ok(accepted) = self.accepted.lock() {
            let _ = accepted.try_send(());
        }
    }

    /// Ends the run, and waits until the state is free. Lines that were not accepted come again.
    fn close(&self, py: Python<'_>) {
        self.closed.store(true, Ordering::Relaxed);
        self.work.close(py);
    }
}

/// Gives lines to Python, and waits until they are accepted.
struct Lines {
    sender: SyncSender<String>,
    acceptances: Receiver<()>,
    closed: Arc<AtomicBool>,
}

impl Write for Lines {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        if lines.is_empty() {
            return Ok(0);
        }
        let text = format!("\n{}", String::from_utf8_lossy(lines));
        self.sender.send(text).map_err(|_| io::Error::from(ErrorKind::BrokenPipe))?;
        loop {
            match self.acceptances.recv_timeout(TICK) {
                Ok(()) => return Ok(lines.len()),
                Err(RecvTimeoutError::Timeout) if !self.closed.load(Ordering::Relaxed) => {}
                Err(_) => return Err(ErrorKind::BrokenPipe.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
