//! SIGTERM, SIGINT and SIGHUP, which ask the program to end. `serve` reloads its configuration at SIGHUP, and scans its
//! folders at SIGUSR1.

use abreast_core::start_thread;
use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals that ask a process to end.
pub(crate) struct Signals {
    runtime: tokio::runtime::Runtime,
    terminate: Signal,
    interrupt: Signal,
    /// `None` where `nohup` or a service manager ignores it.
    hangup: Option<Signal>,
}

impl Signals {
    /// From now on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let context = runtime.enter();
        let (terminate, interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let hangup = if is_hangup_ignored() { None } else { Some(signal(SignalKind::hangup())?) };
        drop(context);
        Ok(Self { runtime, terminate, interrupt, hangup })
    }

    /// From now on, SIGHUP and SIGUSR1 are requests to a server. After SIGTERM or SIGINT, the next of these two ends
    /// the process at once.
    ///
    /// # Errors
    /// The signals cannot be listened for.
    pub(crate) fn requests(self) -> Result<Requests> {
        let Self { runtime, mut terminate, mut interrupt, mut hangup } = self;
        let context = runtime.enter();
        let mut scan = signal(SignalKind::user_defined1())?;
        drop(context);
        let has_terminal = terminal_is_there();
        let (sender, receiver) = mpsc::channel();
        let listen = move || {
            runtime.block_on(async {
                let mut is_stopping = false;
                loop {
                    let stop = tokio::select! {
                        _ = terminate.recv() => "SIGTERM",
                        _ = interrupt.recv() => "SIGINT",
                        () = next(&mut hangup) => {
                            // The kernel sends it, too, when a terminal is closed.
                            if has_terminal && !terminal_is_there() {
                                "SIGHUP"
                            } else {
                                let _ = sender.send(Request::Reload);
                                continue;
                            }
                        }
                        _ = scan.recv() => {
                            let _ = sender.send(Request::Scan);
                            continue;
                        }
                    };
                    if is_stopping {
                        std::process::exit(130);
                    }
                    is_stopping = true;
                    let _ = sender.send(Request::Stop(stop));
                }
            });
        };
        start_thread("signals", listen)?;
        Ok(Requests { receiver, waiting: Vec::new() })
    }

    /// Blocks until one comes, and returns its name.
    pub(crate) fn wait(&mut self) -> &'static str {
        let Self { runtime, terminate, interrupt, hangup } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                () = next(hangup) => "SIGHUP",
            }
        })
    }

    /// Blocks until one comes; from then on, the next one ends the process at once. Returns the name
    /// of the first.
    pub(crate) fn wait_to_stop(mut self) -> &'static str {
        let name = self.wait();
        let end = move || {
            self.wait();
            std::process::exit(130);
        };
        if start_thread("signals", end).is_err() {
            tracing::warn!("a second signal cannot end the program at once");
        }
        name
    }
}

/// Waits for a signal, without end if it is ignored.
async fn next(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}

/// Whether the process has a terminal that can still be opened.
fn terminal_is_there() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// A request to a server, by a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// To end, with the name of the signal.
    Stop(&'static str),
    /// To read the configuration again.
    Reload,
    /// To scan all folders.
    Scan,
}

/// Requests to a server, in their order.
pub(crate) struct Requests {
    receiver: Receiver<Request>,
    waiting: Vec<Request>,
}

impl Requests {
    /// Blocks until a request comes. Equal requests that wait are one, and a stop comes before all others.
    pub(crate) fn next(&mut self) -> Request {
        if self.waiting.is_empty() {
            // The listening thread ended: nothing else can stop the server in order.
            self.waiting.push(self.receiver.recv().unwrap_or(Request::Stop("an error")));
        }
        for request in self.receiver.try_iter() {
            if !self.waiting.contains(&request) {
                self.waiting.push(request);
            }
        }
        let is_stop = |request: &Request| matches!(request, Request::Stop(_));
        self.waiting.remove(self.waiting.iter().position(is_stop).unwrap_or(0))
    }
}

/// Whether SIGHUP is ignored, as by `nohup`: bit 0 of the mask that the kernel shows.
fn is_hangup_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask & 1 == 1)
}

/// Becomes true at the first signal; a second one ends the process at once.
pub(crate) fn cancel_on_signal() -> Arc<AtomicBool> {
    let cancel = Arc::new(AtomicBool::new(false));
    let cancelled = Arc::clone(&cancel);
    let listening = Signals::listen().and_then(|signals| {
        let listen = move || {
            let name = signals.wait_to_stop();
            // Nobody may be at the terminal any more to know why it ends.
            if name == "SIGHUP" {
                tracing::warn!(signal = name, "stopping: what is under way is finished");
            }
            cancelled.store(true, Ordering::Relaxed);
        };
        Ok(start_thread("signals", listen)?)
    });
    if listening.is_err() {
        tracing::warn!(
            "cannot listen for signals: Ctrl-C ends the program at once; the next run continues"
        );
    }
    cancel
}
