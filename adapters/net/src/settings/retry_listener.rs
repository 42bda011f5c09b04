//! Reports of requests that are repeated, at the time of the failure.

use crate::address::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A failed request that will be repeated.
#[derive(Debug)]
#[non_exhaustive]
pub struct RepeatedRequest<'a> {
    /// Why the last attempt failed, and its URL.
    pub error: &'a Error,
    /// Time until the next attempt.
    pub wait: Duration,
    /// Number of the next attempt among the repetitions, from 1.
    pub attempt: u32,
    /// Number of repetitions at most.
    pub attempts: u32,
}

/// A function that is called before the wait for each repetition; by default none.
#[derive(Clone, Default)]
pub struct RetryListener(Option<Arc<Listener>>);

type Listener = dyn Fn(&RepeatedRequest<'_>) + Send + Sync;

impl RetryListener {
    /// Calls `listener` on the thread of the request: it must not block.
    pub fn new(listener: impl Fn(&RepeatedRequest<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(listener)))
    }

    pub(crate) fn tell(&self, repeated: &RepeatedRequest<'_>) {
        if let Some(listener) = &self.0 {
            listener(repeated);
        }
    }
}

impl fmt::Debug for RetryListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "RetryListener" } else { "none" })
    }
}
