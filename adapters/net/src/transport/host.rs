//! One origin as a client sees it, with its open connections.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use http::uri::Authority;

use crate::address::origin::Origin;
use crate::address::secret::Authorization;
use crate::transport::connection::Connection;
use crate::transport::shared::{HostState, Shared};

/// An origin as this client uses it.
pub(crate) struct Host {
    pub(crate) shared: Arc<Shared>,
    pub(crate) state: Arc<HostState>,
    pub(crate) origin: Origin,
    /// The HTTP proxy to which whole URLs are sent, for an http server behind one.
    pub(crate) forwards: Option<Forwards>,
    /// Whether a missing `https` in the address needs no further test: the server was reached with
    /// TLS, or is known to answer without it.
    pub(crate) tls_is_known: AtomicBool,
    #[expect(clippy::vec_box, reason = "a connection is boxed once and moved many times")]
    idle: Mutex<Vec<Box<Connection>>>,
}

/// Headers for a proxy that forwards requests.
pub(crate) struct Forwards {
    pub(crate) authority: Authority,
    pub(crate) authorization: Option<Authorization>,
}

impl Host {
    pub(crate) fn new(
        shared: Arc<Shared>,
        state: Arc<HostState>,
        origin: Origin,
        forwards: Option<Forwards>,
    ) -> Self {
        let tls_is_known = AtomicBool::new(origin.https);
        Self { shared, state, origin, forwards, tls_is_known, idle: Mutex::default() }
    }

    /// Closes connections that were idle for longer than `keep_alive`.
    pub(crate) fn close_idle(&self, keep_alive: Duration) {
        self.idle().retain(|connection| connection.idle_since.elapsed() < keep_alive);
    }

    /// An idle connection that still works, the youngest first.
    pub(crate) fn take_idle(&self) -> Option<Box<Connection>> {
        let mut idle = self.idle();
        while let Some(connection) = idle.pop() {
            if connection.idle_since.elapsed() < self.shared.options.keep_alive
                && connection.is_open()
            {
                return Some(connection);
            }
        }
        None
    }

    /// Makes a connection available for the next request if it can serve one.
    pub(crate) fn give_back(&self, mut connection: Box<Connection>) {
        if !connection.settle() {
            return;
        }
        connection.idle_since = Instant::now();
        let mut idle = self.idle();
        if idle.len() < self.shared.options.connections_per_host.max(1) {
            idle.push(connection);
        }
    }

    #[expect(clippy::vec_box, reason = "a connection is boxed once and moved many times")]
    fn idle(&self) -> MutexGuard<'_, Vec<Box<Connection>>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
