//! A signal sent after every commit, for readers that wait for changes.

use abreast_core::{ChangeLog, LogError, Position, SetId};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A counter of commits on which readers can wait.
#[derive(Debug, Default)]
pub(crate) struct CommitSignal {
    commits: Mutex<u64>,
    waiting: Condvar,
}

impl CommitSignal {
    /// Reports that readers can see a new commit.
    pub(crate) fn notify(&self) {
        *self.commits.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.waiting.notify_all();
    }

    /// Calls `so` after every commit, until it returns true or the time is over.
    pub(crate) fn wait_until<E>(
        &self,
        timeout: Duration,
        so: impl Fn() -> Result<bool, E>,
    ) -> Result<bool, E> {
        let begun = Instant::now();
        loop {
            // Read the count before `so` runs, so that a commit in between ends the wait.
            let seen = *self.commits.lock().unwrap_or_else(PoisonError::into_inner);
            if so()? {
                return Ok(true);
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            let commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
            drop(self.waiting.wait_timeout_while(commits, left, |commits| *commits == seen));
        }
    }
}

/// Whether one of these sets has a change after its position.
pub(crate) fn is_beyond(
    log: &dyn ChangeLog,
    known: &[(SetId, Position)],
) -> Result<bool, LogError> {
    for (set, position) in known {
        if log.head(*set)?.position > *position {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn waiters_check_again_after_each_signal() {
        let (commit_signal, so) = (CommitSignal::default(), AtomicBool::new(false));
        let ask = || Ok::<_, ()>(so.load(Ordering::SeqCst));
        assert_eq!(commit_signal.wait_until(Duration::from_millis(1), ask), Ok(false));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| commit_signal.wait_until(Duration::from_secs(60), ask));
            commit_signal.notify();
            so.store(true, Ordering::SeqCst);
            commit_signal.notify();
            assert_eq!(waiting.join().unwrap(), Ok(true));
        });
        assert_eq!(commit_signal.wait_until(Duration::MAX, || Err(7)), Err(7));
    }
}
