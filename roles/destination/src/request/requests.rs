//! Requests of a run's own thread: with the user's credentials, within the run's time and bytes,
//! stopped when the user wants.

use crate::report::error::{Error, ExitCode};
use crate::report::heartbeat::Heartbeat;
use crate::report::options::SyncOptions;
use crate::request::diagnostics::Diagnostics;
use crate::request::freshness::Freshness;
use crate::request::limits::Allowance;
use crate::request::moves::Moves;
use crate::request::origins::Origins;
use crate::request::pieces::{Documents, Network};
use crate::request::robots::Robots;
use crate::request::stop::STOP_CHECK;
use abreast_net::{Authorization, Client, Request, Response, Shared, StatusCode, UnaskedEncoding};
use abreast_rdf::Contexts;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::runtime::Runtime;

/// Total time that a run waits for documents that servers are creating, and the pauses between its
/// requests.
const MAKING_PATIENCE: Duration = Duration::from_secs(15 * 60);
/// Total time that a run waits for optional documents that servers are creating.
const SHORT_PATIENCE: Duration = Duration::from_secs(5);
const MAKING_PAUSE_MIN: Duration = Duration::from_millis(250);
const MAKING_PAUSE_MAX: Duration = Duration::from_secs(30);

/// The client and the settings of a run's own thread.
#[derive(Clone)]
pub(crate) struct Requests<'a> {
    pub(crate) runtime: Rc<Runtime>,
    pub(crate) client: Client,
    pub(crate) authorization: Option<Authorization>,
    /// The URL the credentials are for.
    pub(crate) authorized_url: String,
    /// Stops waiting for a server.
    pub(crate) cancel: &'a AtomicBool,
    /// Shows that the run works.
    pub(crate) heartbeat: Heartbeat,
    /// The remaining bytes and time of the run.
    pub(crate) allowance: Allowance,
    /// For how long the list polled is fresh.
    pub(crate) fresh: Freshness,
    /// Number of retries after a transient failure.
    pub(crate) retries: u32,
    /// The tolerance for faults in documents, and the observed faults.
    pub(crate) diagnostics: Diagnostics,
    /// The rules of hosts, for requests of resources; `None` where they are ignored.
    pub(crate) robots: Option<Arc<Robots>>,
    /// Whether IRIs that replace blank nodes are separate resources of this Source.
    pub(crate) skolems_are_resources: Cell<bool>,
    /// The contexts of JSON-LD.
    pub(crate) contexts: Contexts,
    /// Whether statements that are not valid are left out of files with descriptions.
    pub(crate) leaves_out_invalid: bool,
    /// The source of documents: the network or a simulation.
    pub(crate) documents: Rc<dyn Documents>,
    /// Copies of other Sources, according to the responses.
    pub(crate) origins: Origins,
    /// Notices that the set of the copy has another address now.
    pub(crate) moves: Rc<RefCell<Moves>>,
    /// A response whose body has not been read completely.
    opened: Rc<RefCell<Option<Opened>>>,
    /// Remaining time for waiting for documents that servers are creating.
    patience: Rc<Cell<Duration>>,
}

/// The response from which a reader was chosen, stored until the reader makes the same request.
struct Opened {
    url: String,
    answer: Result<Begun, abreast_net::Error>,
}

/// A response whose first bytes were read.
pub(crate) struct Begun {
    pub(crate) response: Response,
    pub(crate) begin: Vec<u8>,
    /// Time from the request to the head of the response.
    pub(crate) round_trip: Duration,
}

impl<'a> Requests<'a> {
    pub(crate) fn new(
        options: &SyncOptions,
        cancel: &'a AtomicBool,
        shared: &Arc<Shared>,
    ) -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(
            |cause| {
                Error::new("io", ExitCode::Io, "cannot start the network runtime").with_cause(cause)
            },
        )?;
        Ok(Self {
            runtime: Rc::new(runtime),
            client: Client::new(Arc::clone(shared)),
            authorization: options.authorization.clone(),
            authorized_url: options.url.clone(),
            cancel,
            heartbeat: options.heartbeat.clone(),
            allowance: Allowance::new(options, shared),
            fresh: Freshness::default(),
            retries: options.net.retries,
            diagnostics: Diagnostics::new(options.tolerance),
            robots: (!options.ignore_robots).then(Arc::default),
            skolems_are_resources: Cell::default(),
            contexts: options.contexts.clone(),
            leaves_out_invalid: options.leave_out_invalid,
            documents: Rc::new(Network),
            origins: Origins::default(),
            moves: Rc::default(),
            opened: Rc::default(),
            patience: Rc::new(Cell::new(MAKING_PATIENCE)),
        })
    }

    /// Number of requests that a host may get in parallel.
    pub(crate) fn parallel(&self, options: &SyncOptions) -> u64 {
        options.parallel(self.client.shared()) as u64
    }

    /// A request for a document, with the credentials if they are for its host.
    pub(crate) fn request<'r>(&'r self, url: &'r str) -> Request<'r> {
        let authorization = self
            .authorization
            .as_ref()
            .filter(|_| crate::request::admit::same_origin(url, &self.authorized_url));
        Request {
            accept_gzip: true,
            unasked_encoding: UnaskedEncoding::Decode,
            authorization,
            ..Request::new(url)
        }
    }

    /// Requests a document, and passes the first bytes of the response, at most `most`, or the
    /// final error to `show`. If the next [`Requests::begin`] is for the same document, it
    /// continues with this response.
    ///
    /// # Errors
    /// A response did not arrive, or the failure is transient.
    pub(crate) fn open<T>(
        &self,
        url: &str,
        most: usize,
        show: impl FnOnce(Result<&Begun, &abreast_net::Error>) -> T,
    ) -> Result<T, Error> {
        let request = self.request(url);
        let answer = self.run(abreast_net::with_retries(&self.client, url, async |_| {
            let mut begun = self.begin(&request).await?;
            while begun.begin.len() < most
                && let Some(chunk) = begun.response.chunk().await?
            {
                begun.begin.extend_from_slice(&chunk);
            }
            Ok(begun)
        }))?;
        let answer = match answer {
            // After a header block that is too large, other addresses of the site are tried.
            Err(error)
                if (error.status().is_none() && error.kind() != abreast_net::ErrorKind::Header)
                    || error.is_transient() =>
            {
                return Err(net_error(error));
            }
            Ok(begun) if begun.response.status() == StatusCode::ACCEPTED => {
                return Err(answered_else(url, StatusCode::ACCEPTED));
            }
            answer => answer,
        };
        let shown = show(answer.as_ref());
        *self.opened.borrow_mut() = Some(Opened { url: url.to_owned(), answer });
        Ok(shown)
    }

    /// Starts to read a document, or continues with the response of [`Requests::open`]. Server
    /// errors of any status are transient, since the next attempt may succeed.
    pub(crate) async fn begin(&self, request: &Request<'_>) -> Result<Begun, abreast_net::Error> {
        // Another request drops the response, which occupies a connection to its host.
        let opened = self.opened.borrow_mut().take();
        if let Some(opened) = opened.filter(|opened| opened.url == request.url) {
            return opened.answer;
        }
        let asked = Instant::now();
        let mut response = self.send(&self.client, request).await?.require_success().map_err(
            |error| match error.status() {
                Some(500..) => error.passing(),
                _ => error,
            },
        )?;
        response.refuse_challenge().await?;
        if response.has_moved() {
            self.moves.borrow_mut().check(request.url, response.url())?;
        }
        Ok(Begun { response, begin: Vec::new(), round_trip: asked.elapsed() })
    }

    /// Sends a request, and repeats the request while the server answers that it is creating the
    /// document (202). Returns such a response if the wait exceeds the remaining time of the run or
    /// the time that the server requires.
    pub(crate) async fn send(
        &self,
        client: &Client,
        request: &Request<'_>,
    ) -> Result<Response, abreast_net::Error> {
        let mut pause = MAKING_PAUSE_MIN;
        loop {
            let response = client.send(request).await?;
            if response.status() != StatusCode::ACCEPTED {
                return Ok(response);
            }
            let asked = response
                .header("retry-after")
                .and_then(|value| abreast_net::retry_after(value, SystemTime::now()));
            let patience = self.patience.get();
            if asked.unwrap_or(pause) > patience {
                return Ok(response);
            }
            response.discard().await;
            if pause == MAKING_PAUSE_MIN {
                tracing::warn!(
                    "{} is being made (202); waiting for it up to {} s",
                    request.url,
                    patience.as_secs()
                );
            }
            let wait = asked.unwrap_or(pause).clamp(MAKING_PAUSE_MIN, MAKING_PAUSE_MAX);
            self.patience.set(patience.saturating_sub(wait));
            tokio::time::sleep(wait).await;
            pause = (pause * 2).min(MAKING_PAUSE_MAX);
        }
    }

    /// Runs optional work, which waits at most [`SHORT_PATIENCE`] for documents that servers are
    /// creating.
    pub(crate) fn briefly<T>(&self, work: impl FnOnce() -> T) -> T {
        let left = self.patience.get();
        let given = left.min(SHORT_PATIENCE);
        self.patience.set(given);
        let done = work();
        self.patience.set(left.saturating_sub(given.saturating_sub(self.patience.get())));
        done
    }

    /// # Errors
    /// The user wants to stop.
    pub(crate) fn check_cancelled(&self) -> Result<(), Error> {
        if self.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// For work that takes long and receives nothing.
    ///
    /// # Errors
    /// The user wants to stop, or the time of the run is over.
    pub(crate) fn check_continues(&self) -> Result<(), Error> {
        self.check_cancelled()?;
        self.allowance.check_time()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.heartbeat.beat();
        self.cancel.load(Ordering::Relaxed)
    }

    /// Completes when the user wants to stop. Polling it shows that the run works.
    async fn stopped(&self) {
        while !self.is_cancelled() {
            tokio::time::sleep(STOP_CHECK).await;
        }
    }

    /// Runs to the end, or until the user wants to stop.
    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> Result<T, Error> {
        self.allowance.check()?;
        self.runtime.block_on(async {
            tokio::select! {
                biased;
                done = work => Ok(done),
                () = self.allowance.expire() => Err(self.allowance.check().err().unwrap_or_else(Error::cancelled)),
                () = self.stopped() => Err(Error::cancelled()),
            }
        })
    }
}

/// The error of a run for a response with an unexpected status.
pub(crate) fn answered_else(url: &str, status: StatusCode) -> Error {
    if status == StatusCode::ACCEPTED {
        let message = format!("cannot read {url}: it is still being made (202)");
        return Error::new("http.making", ExitCode::Retryable, message)
            .with_status(Some(status.as_u16()))
            .with_help("run again later, or ask the Source's operator whether it can be made");
    }
    let message = format!("cannot read {url}: the server answered {status}");
    Error::new("http.status", ExitCode::SourceInvalid, message)
}

/// The error of a run for a failed request.
pub(crate) fn net_error(error: abreast_net::Error) -> Error {
    let exit = match error.status() {
        Some(401 | 403 | 407) => ExitCode::Auth,
        _ if error.kind() == abreast_net::ErrorKind::Tls => ExitCode::Tls,
        _ if error.kind() == abreast_net::ErrorKind::Challenge => ExitCode::Auth,
        _ if error.is_transient() => ExitCode::Retryable,
        _ => ExitCode::SourceInvalid,
    };
    let status = error.status();
    Error::new(error.code(), exit, error.to_string()).with_status(status).with_cause(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_what_is_made_ends_in_all() {
        let options = SyncOptions::new("http://h/s.xml", "/tmp/copy");
        let (cancel, shared) = (AtomicBool::new(false), Shared::new(options.net_options()));
        let requests = Requests::new(&options, &cancel, &shared).unwrap();
        let wait = |seconds| {
            let left = requests.patience.get().saturating_sub(Duration::from_secs(seconds));
            requests.patience.set(left);
        };
        requests.briefly(|| assert_eq!(requests.patience.get(), SHORT_PATIENCE));
        assert_eq!(requests.patience.get(), MAKING_PATIENCE);
        requests.briefly(|| wait(4));
        assert_eq!(requests.patience.get(), MAKING_PATIENCE.saturating_sub(Duration::from_secs(4)));
        wait(15 * 60);
        requests.briefly(|| assert_eq!(requests.patience.get(), Duration::ZERO));
        assert_eq!(requests.patience.get(), Duration::ZERO);
    }
}
