//! Work on a separate thread, while the calling thread gives events to Python and takes its signals.

use abreast::library::Failure;
use abreast_destination::{Error, Event, Observer};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Events of a run that wait for the thread that receives them.
pub(crate) const WAITING_MAX: usize = 1_024;
/// Stack of a thread that the package starts, in bytes, as of a main thread.
const STACK: usize = 8 << 20;
/// Time between two checks for signals.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);

/// The events of a run, as JSON, for another thread.
pub(crate) struct Events {
    sender: SyncSender<String>,
    wants_items: bool,
}

impl Events {
    /// The sender, for output of the run.
    pub(crate) fn sender(&self) -> SyncSender<String> {
        self.sender.clone()
    }

    /// Passes on an event of another kind; `false` if nobody receives events any more.
    pub(crate) fn send(&self, text: String) -> bool {
        self.sender.send(text).is_ok()
    }
}

impl Observer for Events {
    fn event(&self, event: &Event<'_>) {
        if let Ok(text) = serde_json::to_string(event) {
            // The receiver ends before the work does only when the result is not needed.
            let _ = self.sender.send(text);
        }
    }

    fn wants_items(&self) -> bool {
        self.wants_items
    }

    fn attempted(&self, error: Option<&Error>) {
        if let Some(error) = error {
            let event = serde_json::json!({
                "type": "error", "code": error.code(), "uri": "", "message": error.message(), "help": error.help(),
            });
            let _ = self.sender.send(event.to_string());
        }
    }
}

/// A run on its own thread. Any thread of Python may use the methods, also while another one waits.
pub(crate) struct Work {
    events: Mutex<Receiver<String>>,
    cancel: Arc<AtomicBool>,
    is_closed: AtomicBool,
    thread: Mutex<Option<JoinHandle<Result<String, Failure>>>>,
}

/// What a run gave next.
enum Next {
    Event(String),
    /// No event came within a short time.
    Nothing,
    End,
}

impl Work {
    /// Starts the run. `waiting` is the number of events that may wait for their receiver.
    ///
    /// # Errors
    /// The thread cannot be started, or the module `logging` of Python is missing.
    pub(crate) fn begin(
        py: Python<'_>,
        wants_items: bool,
        waiting: usize,
        run: impl FnOnce(&Events, &AtomicBool) -> Result<String, Failure> + Send + 'static,
    ) -> PyResult<Self> {
        crate::logs::begin(py)?;
        let (sender, receiver) = sync_channel(waiting);
        let cancel = Arc::new(AtomicBool::new(false));
        let cancelled = Arc::clone(&cancel);
        #[expect(clippy::disallowed_methods, reason = "a thread of Python has no span")]
        let thread = std::thread::Builder::new()
            .name("abreast".to_owned())
            .stack_size(STACK)
            .spawn(move || run(&Events { sender, wants_items }, &cancelled))?;
        Ok(Self {
            events: Mutex::new(receiver),
            cancel,
            is_closed: AtomicBool::new(false),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Asks the run to end soon.
    fn cancel(&self) {
        self.cancel.store(true, Ordering::Relaxed);
    }

    /// Waits for the next event; `None` when the run has ended or was closed. The run continues after a signal; the
    /// iterator of Python closes it.
    ///
    /// # Errors
    /// The exception of a signal, or the error that ended the run.
    pub(crate) fn wait(&self, py: Python<'_>) -> PyResult<Option<String>> {
        loop {
            py.check_signals()?;
            if self.is_closed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match self.next(py) {
                Next::Event(text) => return Ok(Some(text)),
                Next::Nothing => {}
                Next::End => {
                    let ended = self.end(py);
                    // A run that was closed ends with an error of its cancellation.
                    let is_closed = self.is_closed.load(Ordering::Relaxed);
                    return if is_closed { Ok(None) } else { ended.map(|_| None) };
                }
            }
        }
    }

    /// Cancels the run, and returns when the run has ended. A thread in [`Self::wait`] returns at once.
    pub(crate) fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Relaxed);
        self.cancel();
        // Errors of a closed run concern nobody.
        let _ = self.end(py);
    }

    /// The next event, if one comes within a short time.
    fn next(&self, py: Python<'_>) -> Next {
        let events = &self.events;
        let received = py.detach(|| match events.lock() {
            Ok(events) => events.recv_timeout(SIGNALS_EVERY),
            Err(_) => Err(RecvTimeoutError::Disconnected),
        });
        match received {
            Ok(event) => Next::Event(event),
            Err(RecvTimeoutError::Timeout) => Next::Nothing,
            Err(RecvTimeoutError::Disconnected) => Next::End,
        }
    }

    /// Waits until the run has ended, and returns its result.
    ///
    /// # Errors
    /// The error that ended the run, as an exception of the package.
    fn end(&self, py: Python<'_>) -> PyResult<String> {
        // Events that nobody receives would stop the run.
        while !matches!(self.next(py), Next::End) {}
        let thread = &self.thread;
        // The lock is held until the run has ended, so that every caller waits for the end.
        let joined = py.detach(|| {
            let mut thread = thread.lock().unwrap_or_else(PoisonError::into_inner);
            thread.take().map(JoinHandle::join)
        });
        match joined {
            None => Ok(String::new()),
            Some(Ok(Ok(result))) => Ok(result),
            Some(Ok(Err(failure))) => Err(exception(py, failure)),
            Some(Err(_)) => Err(fault()),
        }
    }

    /// Gives the events to a function of Python until the run has ended, and returns its result. A signal, or an
    /// exception of the function, cancels the run, as does `closed` once it is set.
    ///
    /// # Errors
    /// The exception of the signal or of the function, or the error that ended the run.
    pub(crate) fn finish(
        self,
        py: Python<'_>,
        event: Option<&Py<PyAny>>,
        closed: Option<&AtomicBool>,
    ) -> PyResult<String> {
        loop {
            if closed.is_some_and(|closed| closed.load(Ordering::Relaxed)) {
                self.cancel();
            }
            let step = py.check_signals().and_then(|()| match (self.next(py), event) {
                (Next::End, _) => Ok(false),
                (Next::Event(text), Some(event)) => event.call1(py, (text,)).map(|_| true),
                _ => Ok(true),
            });
            match step {
                Ok(true) => {}
                Ok(false) => return self.end(py),
                Err(raised) => {
                    self.cancel();
                    let _ = self.end(py);
                    return Err(raised);
                }
            }
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.cancel();
    }
}

/// Runs code on a thread with a large stack, without the GIL: threads of Python may have 128 KiB, which the parser of
/// arguments exceeds.
///
/// # Errors
/// The thread cannot be started.
#[expect(clippy::disallowed_methods, reason = "a thread of Python has no span")]
pub(crate) fn with_large_stack<T: Send>(
    py: Python<'_>,
    run: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().name("abreast".to_owned()).stack_size(STACK);
            Ok::<_, io::Error>(thread.spawn_scoped(scope, run)?.join())
        })
    });
    done?.map_err(|_| fault())
}

fn fault() -> PyErr {
    PyRuntimeError::new_err(
        "the run ended with a fault of the program (help: its message is on standard error)",
    )
}

/// The exception of the package for an error.
pub(crate) fn exception(py: Python<'_>, failure: Failure) -> PyErr {
    let made = py.import("abreast._errors").and_then(|errors| {
        let Failure { exit_code, code, message, help } = failure;
        errors.call_method1("error_of", (exit_code, code, message, help))
    });
    match made {
        Ok(made) => PyErr::from_value(made),
        Err(error) => error,
    }
}
