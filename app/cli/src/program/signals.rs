//! SIGTERM, SIGINT and SIGHUP, which ask the program to end.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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

    /// Blocks until one comes, and returns its name.
    pub(crate) fn wait(&mut self) -> &'static str {
        let Self { runtime, terminate, interrupt, hangup } = self;
        runtime.block_on(async {
            let hangup = async {
                match hangup {
                    Some(hangup) => hangup.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = terminate.recv() => "SIGTERM",
                _ = interrupt.recv() => "SIGINT",
                _ = hangup => "SIGHUP",
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
        if std::thread::Builder::new().name("signals".into()).spawn(end).is_err() {
            tracing::warn!("a second signal cannot end the program at once");
        }
        name
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
        Ok(std::thread::Builder::new().name("signals".into()).spawn(listen)?)
    });
    if listening.is_err() {
        tracing::warn!(
            "cannot listen for signals: Ctrl-C ends the program at once; the next run continues"
        );
    }
    cancel
}
