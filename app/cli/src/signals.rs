//! When does the user want the program to end? SIGTERM and SIGINT, heard from the moment this exists.

use anyhow::Result;
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
        let (terminate, interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
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
