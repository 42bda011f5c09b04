//! Requests to one server.

use crate::values::words;
use crate::work::{Work, exception, with_large_stack};
use abreast::library::{self, Call};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Status, media type and body.
type Reply<'py> = (u16, String, Bound<'py, PyBytes>);

/// A client of a server, which uses connections again.
#[pyclass(frozen)]
pub(crate) struct Http {
    http: Arc<library::Http>,
    is_closed: AtomicBool,
}

#[pymethods]
impl Http {
    /// The words are arguments of `explore`.
    #[new]
    fn new(py: Python<'_>, texts: Vec<String>, token: Option<String>) -> PyResult<Self> {
        let made = || library::Http::new(words(texts), token.as_deref());
        let http = with_large_stack(py, made)?.map_err(|failure| exception(py, failure))?;
        Ok(Self { http: Arc::new(http), is_closed: AtomicBool::new(false) })
    }

    /// A client with the same connections, to be closed alone.
    fn share(&self) -> Self {
        Self { http: Arc::clone(&self.http), is_closed: AtomicBool::new(false) }
    }

    /// Cancels the requests of all threads. Further ones are cancelled too.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Sends a request. `body` has a media type, and `limits` are the most bytes of the response, and whether only public
    /// addresses may be requested. Error statuses are returned too.
    #[pyo3(signature = (method, url, body, idempotency_key, limits))]
    fn request<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        url: String,
        body: Option<(Vec<u8>, String)>,
        idempotency_key: Option<String>,
        limits: (u64, bool),
    ) -> PyResult<Reply<'py>> {
        let call = Call {
            method: method.parse().unwrap_or_default(),
            url,
            body,
            idempotency_key,
            most: limits.0,
            public_only: limits.1,
        };
        let reply = Arc::new(Mutex::new(None));
        let (http, slot) = (Arc::clone(&self.http), Arc::clone(&reply));
        let work = Work::begin(py, false, 1, move |_, cancel| {
            let reply = http.send(&call, cancel)?;
            *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            Ok(String::new())
        })?;
        work.finish(py, None, Some(&self.is_closed))?;
        let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (status, media_type, body) =
            reply.map_or((0, String::new(), Vec::new()), |it| (it.status, it.media_type, it.body));
        Ok((status, media_type, PyBytes::new(py, &body)))
    }
}
