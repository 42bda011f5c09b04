//! SIGTERM and SIGINT, which ask the program to end.

use anyhow::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the signals that ask a process to end.
pub(crate) struct Signals {
    runtime: tokio::runtime::Runtime,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From now on the signals no longer end the process by themselves.
    pub(crate) fn listen() -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let context = runtime.enter();
        let (terminate, interrupt) =
            (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        drop(context);
        Ok(Self { runtime, terminate, interrupt })
    }

    /// Blocks until one comes.
    pub(crate) fn wait(&mut self) {
        let Self { runtime, terminate, interrupt } = self;
        runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
        });
    }
}

/// Becomes true at the first SIGTERM or SIGINT; a second one ends the process at once.
pub(crate) fn cancel_on_signal() -> Arc<AtomicBool> {
    let cancel = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&cancel);
    let listening = Signals::listen().and_then(|mut signals| {
        let listen = move || {
            signals.wait();
            told.store(true, Ordering::Relaxed);
            signals.wait();
            std::process::exit(130);
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
