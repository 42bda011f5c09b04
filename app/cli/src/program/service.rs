//! The service manager, such as systemd: a socket that it passes on, readiness, a status line, and
//! the watchdog. The functions have no effect if no service manager started the program.

use abreast_core::start_thread;
use abreast_server::{CurrentSite, Server, ServerOptions};
use anyhow::{Context as _, Result};
use listenfd::ListenFd;
use sd_notify::NotifyState;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

/// How often the status line is written if there is no watchdog.
const STATUS_PAUSE: Duration = Duration::from_secs(30);
/// Time that tasks of ended requests have to finish, such as a read of the store.
const STOP_REST: Duration = Duration::from_millis(500);

/// Listens on the socket that the service manager passes on, else on the address.
pub(crate) fn listen(
    runtime: &Runtime,
    address: SocketAddr,
    options: ServerOptions,
) -> Result<Server> {
    let passed = ListenFd::from_env().take_tcp_listener(0).context(
        "cannot use the socket that the service manager passes on (help: `ListenStream=` of its unit takes an address and a port)",
    )?;
    let _context = runtime.enter();
    match passed {
        Some(listener) => Server::on(listener, options)
            .context("cannot use the socket that the service manager passes on"),
        None => runtime.block_on(Server::bind(address, options)).context(
            "cannot start the server (help: if the address is in use, choose another with --listen)",
        ),
    }
}

/// Runs a server in a thread until `stopped`, and then ends its runtime.
///
/// # Errors
/// The system cannot start a thread.
pub(crate) fn start_server(
    runtime: Runtime,
    server: Server,
    site: Arc<CurrentSite>,
    stopped: watch::Receiver<bool>,
) -> Result<JoinHandle<()>> {
    let run = move || {
        runtime.block_on(server.run(site, stopped));
        // Requests were waited for; nothing else is.
        runtime.shutdown_timeout(STOP_REST);
    };
    start_thread("server", run).context("cannot start the server's thread")
}

/// A program that reported to the service manager that it is ready.
pub(crate) struct Service {
    /// Asks for a status line now; the lines end when it is dropped.
    wake: mpsc::Sender<()>,
}

impl Service {
    /// Reports readiness. `status` gives one line on the program's state: it is asked again and
    /// again, and the watchdog restarts the program if it does not return.
    pub(crate) fn ready(status: impl Fn() -> String + Send + 'static) -> Result<Self> {
        let (wake, stopped) = mpsc::channel();
        if std::env::var_os("NOTIFY_SOCKET").is_some() {
            // The service manager waits for half of the time at most.
            let watchdog = sd_notify::watchdog_enabled().map(|time| time / 2);
            report(&[NotifyState::Ready, NotifyState::Status(&status())]);
            let watch = move || {
                let pause = watchdog.unwrap_or(STATUS_PAUSE).min(STATUS_PAUSE);
                while stopped.recv_timeout(pause) != Err(RecvTimeoutError::Disconnected) {
                    report(&[NotifyState::Watchdog, NotifyState::Status(&status())]);
                }
                // A stop in order may take longer than the watchdog waits.
                loop {
                    report(&[NotifyState::Watchdog]);
                    std::thread::sleep(pause);
                }
            };
            start_thread("service", watch)
                .context("cannot start the thread that answers the watchdog")?;
        }
        Ok(Self { wake })
    }

    /// Reports the end of a reload, with or without success, and the new status line.
    pub(crate) fn end_reload(&self) {
        report(&[NotifyState::Ready]);
        let _ = self.wake.send(());
    }

    /// Reports that the program is stopping.
    pub(crate) fn stopping(self) {
        drop(self.wake);
        report(&[NotifyState::Stopping, NotifyState::Status("finishing requests in flight")]);
    }
}

/// The line on the state of a site. It is made by a task of the server, so it comes only while the
/// server and its store answer.
pub(crate) fn status_of(
    handle: Handle,
    site: Arc<CurrentSite>,
) -> impl Fn() -> String + Send + 'static {
    move || {
        let site = site.now();
        let line = handle.spawn_blocking(move || site.status_line());
        handle.block_on(line).unwrap_or_else(|_| "stopping".to_owned())
    }
}

/// Reports the begin of a reload. The time distinguishes it from earlier ones.
pub(crate) fn begin_reload() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => report(&[NotifyState::Reloading, now]),
        Err(error) => tracing::warn!("cannot read the time since the system began: {error}"),
    }
}

fn report(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("cannot reach the service manager: {error}");
    }
}
