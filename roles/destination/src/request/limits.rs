//! Limits of a run, in time and received bytes.

use crate::copy::partial::RESUME_BYTES;
use crate::report::error::{Error, ExitCode};
use crate::report::options::SyncOptions;
use crate::request::stop::STOP_CHECK;
use abreast_net::{Reservation, Room, Shared};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// The remaining time and bytes of a run. The next run continues where this one stops.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    shared: Arc<Shared>,
    max_bytes: Option<u64>,
    max_time: Option<Duration>,
    bytes_before: u64,
    began: Instant,
    /// Length of the smallest resource that was not requested because too few bytes were left;
    /// `u64::MAX` if every resource was requested.
    lacking: Arc<AtomicU64>,
}

/// Pause of a fetch while other fetches have reserved the remaining bytes.
const RETRY: Duration = Duration::from_millis(20);

impl Allowance {
    pub(crate) fn new(options: &SyncOptions, shared: &Arc<Shared>) -> Self {
        // Several copies share one budget, so the bytes received before this run count.
        let is_common = shared.options().budget.is_some();
        let bytes_before = if is_common { 0 } else { shared.budget().bytes() };
        if let Some(most) = options.max_bytes {
            shared.budget().limit_bytes(bytes_before.saturating_add(most));
        }
        Self {
            shared: Arc::clone(shared),
            max_bytes: options.max_bytes,
            max_time: options.max_time,
            bytes_before,
            began: if is_common { shared.budget().began() } else { Instant::now() },
            lacking: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// Reserves the bytes of a resource of this length, of which `stored` bytes exist, if enough
    /// are left; waits for running fetches that may leave some. A file that a later run can
    /// continue need not be completed in this run: a part is stored from [`RESUME_BYTES`] on, and a
    /// stored part grows by any number of bytes.
    pub(crate) async fn reserve(&self, length: u64, stored: u64) -> Option<Reservation> {
        loop {
            let budget = self.shared.budget();
            let begins = length >= RESUME_BYTES && budget.bytes_left() >= RESUME_BYTES;
            match budget.reserve(length.saturating_sub(stored), stored > 0 || begins) {
                Room::Reserved(reservation) => return Some(reservation),
                Room::Later => tokio::time::sleep(RETRY).await,
                Room::Lacking => {
                    self.lacking.fetch_min(length, Relaxed);
                    return None;
                }
            }
        }
    }

    /// Whether a resource was not requested because too few bytes were left.
    pub(crate) fn is_lacking(&self) -> bool {
        self.lacking.load(Relaxed) < u64::MAX
    }

    /// Like [`Allowance::reached`], if some bytes are left, but too few for a resource.
    pub(crate) fn lacking(&self) -> Option<(&'static str, String)> {
        let (length, most) = (self.lacking.load(Relaxed), self.max_bytes?);
        let left = self.shared.budget().bytes_left();
        let help = if length > most {
            "\n  help: allow at least as many bytes as the resource and the documents have"
        } else {
            ""
        };
        self.is_lacking().then(|| {
            let message =
                format!("a resource of {length} bytes was not begun: of the {most} bytes of one run, {left} are left{help}");
            ("limit.bytes", message)
        })
    }

    /// Which limit was reached: its code, and words for it.
    pub(crate) fn reached(&self) -> Option<(&'static str, String)> {
        if let Some(most) = self.max_bytes
            && self.shared.budget().bytes() - self.bytes_before >= most
        {
            return Some((
                "limit.bytes",
                format!("{most} bytes were received, which is all that one run may"),
            ));
        }
        self.time_reached()
    }

    fn time_reached(&self) -> Option<(&'static str, String)> {
        let most = self.max_time.filter(|most| self.began.elapsed() >= *most)?;
        Some(("limit.time", format!("the run has taken {most:?}, which is all that one may")))
    }

    /// # Errors
    /// The limit that was reached.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.reached().map_or(Ok(()), |reached| Err(over(reached)))
    }

    /// For work that receives nothing.
    ///
    /// # Errors
    /// The time is over.
    pub(crate) fn check_time(&self) -> Result<(), Error> {
        self.time_reached().map_or(Ok(()), |reached| Err(over(reached)))
    }

    /// Completes when the time is over or the bytes are received; never completes without a limit.
    pub(crate) async fn expire(&self) {
        let left = || self.max_time.map(|most| most.saturating_sub(self.began.elapsed()));
        if self.max_bytes.is_some() {
            while self.reached().is_none() {
                tokio::time::sleep(left().unwrap_or(STOP_CHECK).min(STOP_CHECK)).await;
            }
            return;
        }
        match left() {
            Some(left) => tokio::time::sleep(left).await,
            None => std::future::pending().await,
        }
    }
}

fn over((code, message): (&'static str, String)) -> Error {
    Error::new(code, ExitCode::Limit, message).with_help("the next run continues")
}

/// Whether a failure is the end of the time or bytes of a run: the next one continues.
pub(crate) fn is_over(error: &Error) -> bool {
    matches!(error.code(), "limit.bytes" | "limit.time")
}
