//! Detection of servers that are too slow.

use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

use crate::settings::options::Options;

/// The limits that a slow server exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TooSlow {
    /// No byte for `idle_timeout`.
    Idle,
    /// Fewer bytes than `min_speed` over its window.
    Speed,
}

/// Watches a connection. The timer is set once per window, not once per request. Only time in which
/// the client waits for the server counts, so that a caller that reads the body slowly does not
/// make the server seem slow.
pub(crate) struct Watchdog {
    timer: Option<Pin<Box<Sleep>>>,
    armed_until: Option<Instant>,
    waiting: bool,
    answering: bool,
    /// Whether bytes also have to come with `min_speed`.
    has_speed: bool,
    /// Longest silence, if it is shorter than `idle_timeout`.
    silence: Option<Duration>,
    seen: u64,
    progress: Instant,
    window_start: Instant,
    window_bytes: u64,
    waited: Duration,
}

impl Watchdog {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            timer: None,
            armed_until: None,
            waiting: false,
            answering: false,
            has_speed: true,
            silence: None,
            seen: 0,
            progress: now,
            window_start: now,
            window_bytes: 0,
            waited: Duration::ZERO,
        }
    }

    /// Starts a request, after `received` bytes on this connection.
    pub(crate) fn begin(&mut self, received: u64) {
        self.waiting = false;
        self.answering = false;
        self.seen = received;
        self.window_bytes = received;
        self.waited = Duration::ZERO;
    }

    /// Starts a request whose answer others may precede: bytes need no speed before
    /// [`Self::begin_body`].
    pub(crate) fn begin_among_others(&mut self, received: u64) {
        self.begin(received);
        self.has_speed = false;
    }

    /// Starts to wait for an answer whose first byte must come within this time.
    pub(crate) fn begin_in_row(&mut self, received: u64, silence: Duration) {
        self.begin(received);
        self.silence = Some(silence);
    }

    /// The body of the answer begins.
    pub(crate) fn begin_body(&mut self, received: u64) {
        self.begin(received);
        self.has_speed = true;
        self.silence = None;
    }

    /// The awaited bytes have arrived.
    pub(crate) fn end_wait(&mut self) {
        if self.waiting {
            self.waiting = false;
            self.waited = self.window_start.elapsed();
        }
    }

    /// Must be called whenever the client has to wait; ready when the wait was too long.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        received: u64,
        options: &Options,
    ) -> Poll<TooSlow> {
        loop {
            let now = Instant::now();
            if !self.waiting {
                self.waiting = true;
                self.progress = now;
                self.window_start = now.checked_sub(self.waited).unwrap_or(now);
            }
            if received != self.seen {
                if !self.answering {
                    // The time before the first byte is limited by the idle timeout only.
                    self.answering = true;
                    self.window_start = now;
                }
                self.seen = received;
                self.progress = now;
            }
            let mut deadline = self.progress + self.silence.unwrap_or(options.idle_timeout);
            if now >= deadline {
                return Poll::Ready(TooSlow::Idle);
            }
            if self.answering && self.has_speed && options.min_speed > 0 {
                let window_end = self.window_start + options.min_speed_window;
                if now >= window_end {
                    let seconds = now.duration_since(self.window_start).as_secs_f64();
                    if ((received - self.window_bytes) as f64) < options.min_speed as f64 * seconds
                    {
                        return Poll::Ready(TooSlow::Speed);
                    }
                    self.window_start = now;
                    self.window_bytes = received;
                }
                deadline = deadline.min(self.window_start + options.min_speed_window);
            }
            if self.poll_timer(cx, deadline).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Sets the timer only if it would fire too late. If it fires early, the limits are only
    /// checked again.
    fn poll_timer(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if self.armed_until.is_none_or(|armed| armed > deadline) {
            timer.as_mut().reset(deadline);
            self.armed_until = Some(deadline);
        }
        if timer.as_mut().poll(cx).is_ready() {
            self.armed_until = None;
            return Poll::Ready(());
        }
        Poll::Pending
    }
}
