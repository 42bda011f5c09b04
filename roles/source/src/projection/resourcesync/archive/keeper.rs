//! The thread that takes the copies of all sets; its owner stops and awaits it.

use super::{Archive, ArchiveError, take};
use crate::made::{Signal, Worker};
use crate::publish::PublishedSet;
use crate::publish::publisher::Publisher;
use abreast_core::ChangeLog;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// The thread that takes copies; stopped by [`Keeper::stop`], or when dropped.
#[derive(Debug)]
pub struct Keeper(Worker);

impl Keeper {
    /// Starts it.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(publisher: impl Deref<Target = Publisher> + Send + 'static) -> io::Result<Self> {
        let tend = move |signal: &Signal| {
            for set in publisher.sets() {
                if let Some(archive) = set.archive() {
                    archive.tend(&**publisher.log(), set, signal);
                }
            }
        };
        Worker::start("archives", Arc::default(), tend).map(Self)
    }

    /// Stops after the list being copied.
    pub fn stop(self) {
        self.0.stop();
    }
}

impl Archive {
    /// Takes a copy of a set's Resource List if it is time.
    pub(in crate::projection) fn tend(
        &self,
        log: &dyn ChangeLog,
        set: &PublishedSet,
        signal: &Signal,
    ) {
        if self.attempts.rests() || signal.is_stopped() {
            return;
        }
        // A failure is logged, and followed by a pause.
        let take = || Ok(take(log, set, signal.flag())?.then_some(()));
        let _: Result<_, ArchiveError> = self.attempts.attempt(take);
    }
}
