//! Pause after a request that an object store did not answer, so that later requests do not wait.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after a request without an answer in which other requests fail at once.
pub(crate) const SILENCE_PAUSE: Duration = Duration::from_secs(5);

/// Whether an object store answered the last request.
#[derive(Debug, Default)]
pub(crate) struct Silence(Mutex<Option<Instant>>);

impl Silence {
    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request may be made now. After the pause, a single request finds out whether the store
    /// answers again; the others fail until its time `limit` is over.
    pub(crate) fn may_ask(&self, now: Instant, limit: Duration) -> bool {
        let mut until = self.lock();
        match *until {
            Some(time) if now < time => false,
            Some(_) => {
                *until = Some(now + limit);
                true
            }
            None => true,
        }
    }

    /// Notes whether the store answered a request, also with an error.
    pub(crate) fn note(&self, now: Instant, has_answered: bool) {
        *self.lock() = (!has_answered).then(|| now + SILENCE_PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_asks_a_silent_store() {
        let (silence, limit) = (Silence::default(), Duration::from_secs(10));
        let now = Instant::now();
        assert!(silence.may_ask(now, limit) && silence.may_ask(now, limit));
        silence.note(now, false);
        assert!(!silence.may_ask(now, limit));
        let later = now + SILENCE_PAUSE;
        assert!(silence.may_ask(later, limit));
        assert!(!silence.may_ask(later, limit), "the first request has not ended");
        assert!(silence.may_ask(later + limit, limit), "the first request was lost");
        silence.note(later, true);
        assert!(silence.may_ask(later, limit) && silence.may_ask(later, limit));
    }
}
