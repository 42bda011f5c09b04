//! Thread that copies the Resource Lists of all sets; the owner stops the thread and waits for its
//! end.

use super::{Archive, ArchiveError, take};
use crate::made::{Signal, Worker};
use crate::publish::PublishedSet;
use crate::publish::publisher::Publisher;
use abreast_core::ChangeLog;
use std::io;
use std::ops::Deref;
use std::sync::Arc;

/// Thread that makes archived copies; stopped by [`Keeper::stop`] or on drop.
#[derive(Debug)]
pub struct Keeper(Worker);

impl Keeper {
    /// Starts the thread for all sets of the publisher that `current` returns.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start<P: Deref<Target = Publisher>>(
        current: impl Fn() -> P + Send + 'static,
    ) -> io::Result<Self> {
        let tend = move |signal: &Signal| {
            let publisher = current();
            for set in publisher.sets() {
                if let Some(archive) = set.archive() {
                    archive.tend(&**publisher.log(), set, signal);
                }
            }
        };
        Worker::start("archives", Arc::default(), tend).map(Self)
    }

    /// Stops the thread after the current list.
    pub fn stop(self) {
        drop(self.0);
    }
}

impl Archive {
    /// Copies a set's Resource List if a copy is due.
    pub(in crate::projection) fn tend(
        &self,
        log: &dyn ChangeLog,
        set: &PublishedSet,
        signal: &Signal,
    ) {
        if self.attempts.rests() || signal.is_stopped() {
            return;
        }
        let _work = tracing::error_span!("work", set = set.slug).entered();
        // A failure is logged, and a pause follows.
        let take = || Ok(take(log, set, signal.flag())?.then_some(()));
        let _: Result<_, ArchiveError> = self.attempts.attempt(take);
    }
}
