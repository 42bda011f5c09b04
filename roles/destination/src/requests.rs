//! Requests of a run's own thread: with the user's credentials, within the run's time and bytes, stopped when the user wants.

use crate::diagnostics::Diagnostics;
use crate::error::{Error, ExitCode};
use crate::freshness::Freshness;
use crate::limits::Allowance;
use crate::options::SyncOptions;
use abreast_net::{Authorization, Client, Request, Shared, UnaskedEncoding};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::runtime::Runtime;

/// What the requests of a run's own thread have in common.
#[derive(Clone)]
pub(crate) struct Requests<'a> {
    pub(crate) runtime: Rc<Runtime>,
    pub(crate) client: Client,
    pub(crate) authorization: Option<Authorization>,
    /// The URL the credentials are for.
    pub(crate) authorized_url: String,
    /// Stops waiting for a server.
    pub(crate) cancel: &'a AtomicBool,
    /// What is left of the run's bytes and time.
    pub(crate) allowance: Allowance,
    /// For how long the list polled is fresh.
    pub(crate) fresh: Freshness,
    /// Retries of a request that failed in passing.
    pub(crate) retries: u32,
    /// How documents are judged, and what was noticed.
    pub(crate) diagnostics: Diagnostics,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(options: &SyncOptions, cancel: &'a AtomicBool, shared: &Arc<Shared>) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|cause| Error::new("io", ExitCode::Io, "cannot start the network runtime").with_cause(cause))?;
        Ok(Self {
            runtime: Rc::new(runtime),
            client: Client::new(Arc::clone(shared)),
            authorization: options.authorization.clone(),
            authorized_url: options.url.clone(),
            cancel,
            allowance: Allowance::new(options, shared),
            fresh: Freshness::default(),
            retries: options.net.retries,
            diagnostics: Diagnostics::new(options.tolerance),
        })
    }

    /// For a document, with the credentials if they are for its host.
    pub(crate) fn request<'r>(&'r self, url: &'r str) -> Request<'r> {
        let authorization =
            self.authorization.as_ref().filter(|_| crate::admit::same_origin(url, &self.authorized_url));
        Request { accept_gzip: true, unasked_encoding: UnaskedEncoding::Decode, authorization, ..Request::new(url) }
    }

    /// # Errors
    /// The user wants to stop.
    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    /// Runs to the end, or until the user wants to stop.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.allowance.check()?;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                () = self.allowance.expire() => Err(self.allowance.check().err().unwrap_or_else(Error::cancelled)),
                () = crate::transfer::workers::stopped(self.cancel) => Err(Error::cancelled()),
            }
        })
    }
}

/// What a failed request means for a run.
pub(crate) fn net_error(error: abreast_net::Error) -> Error {
    let exit = match error.status() {
        Some(401 | 403 | 407) => ExitCode::Auth,
        _ if error.kind() == abreast_net::ErrorKind::Tls => ExitCode::Tls,
        _ if error.is_transient() => ExitCode::Retryable,
        _ => ExitCode::SourceInvalid,
    };
    let status = error.status();
    Error::new(error.code(), exit, error.to_string()).with_status(status).with_cause(error)
}
