//! Work for probes with a limit of time: a store that does not answer must not delay them.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Runs one kind of work, at most once at a time. Callers that come during a run get its result.
pub(crate) struct Bounded<T>(Arc<Inner<T>>);

struct Inner<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
}

struct State<T> {
    is_running: bool,
    /// Number of ended runs.
    runs: u64,
    /// The result of the last run; `None` if it panicked.
    last: Option<T>,
}

impl<T> Default for Bounded<T> {
    fn default() -> Self {
        let state = Mutex::new(State { is_running: false, runs: 0, last: None });
        Self(Arc::new(Inner { state, ended: Condvar::new() }))
    }
}

impl<T> Inner<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends a run, also if the work panicked.
struct Run<T> {
    inner: Arc<Inner<T>>,
    result: Option<T>,
}

impl<T> Drop for Run<T> {
    fn drop(&mut self) {
        let mut state = self.inner.lock();
        state.is_running = false;
        state.runs += 1;
        state.last = self.result.take();
        drop(state);
        self.inner.ended.notify_all();
    }
}

impl<T: Clone + Send + 'static> Bounded<T> {
    /// The result of the work, if it is available within the limit. The work continues after the
    /// limit on its own thread, and no other run starts before its end.
    ///
    /// # Errors
    /// The system does not start a thread.
    pub(crate) fn run(
        &self,
        limit: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<Option<T>> {
        let mut state = self.0.lock();
        let awaited = state.runs;
        if !state.is_running {
            let inner = Arc::clone(&self.0);
            let run = move || {
                let mut run = Run { inner, result: None };
                run.result = Some(work());
            };
            std::thread::Builder::new().name("probe".to_owned()).spawn(run)?;
            state.is_running = true;
        }
        let waited = self.0.ended.wait_timeout_while(state, limit, |state| state.runs == awaited);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        Ok(if state.runs == awaited { None } else { state.last.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const LONG: Duration = Duration::from_secs(60);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn long_work_is_not_awaited_and_not_started_twice() {
        let bounded = Bounded::default();
        assert_eq!(bounded.run(LONG, || 1).unwrap(), Some(1));
        let (go, may_end) = channel::<()>();
        let work = move || {
            let _ = may_end.recv();
            2
        };
        assert_eq!(bounded.run(SHORT, work).unwrap(), None);
        assert_eq!(bounded.run(SHORT, || 3).unwrap(), None, "the first work is still running");
        drop(go);
        // The result is that of the running work, or of a new run after its end.
        assert!(matches!(bounded.run(LONG, || 4).unwrap(), Some(2 | 4)));
        assert_eq!(bounded.run(LONG, || 5).unwrap(), Some(5));
    }

    #[test]
    fn a_panic_ends_the_run() {
        let bounded: Bounded<u8> = Bounded::default();
        assert_eq!(bounded.run(LONG, || panic!("expected in this test")).unwrap(), None);
        assert_eq!(bounded.run(LONG, || 1).unwrap(), Some(1));
    }
}
