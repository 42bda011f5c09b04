//! Waiting for changes that any node records.

use crate::log::commit_signal::CommitSignal;
use crate::postgres::client::Client;
use abreast_core::{Position, SetId};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Interval at which the heads are read while a caller waits for changes.
const LOOK: Duration = Duration::from_millis(50);
/// Interval while the database is out of reach.
const LOOK_FAILED: Duration = Duration::from_secs(1);

/// The heads as one thread reads them, however many callers wait.
#[derive(Default)]
pub(crate) struct Watch {
    heads: Mutex<HashMap<SetId, Position>>,
    waiting: Mutex<usize>,
    arrived: Condvar,
    pub(crate) signal: CommitSignal,
    ended: AtomicBool,
}

impl Watch {
    /// Whether one of these sets is known to have a change after its position.
    pub(crate) fn is_beyond(&self, known: &[(SetId, Position)]) -> bool {
        let heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        known.iter().any(|(set, position)| heads.get(set).is_some_and(|head| head > position))
    }

    /// Records the head of a set after a commit of this node.
    pub(crate) fn recorded(&self, set: SetId, head: Position) {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = heads.entry(set).or_default();
        *seen = head.max(*seen);
        drop(heads);
        self.signal.notify();
    }

    /// Runs a wait, during which the heads are read.
    pub(crate) fn during<T>(&self, wait: impl FnOnce() -> T) -> T {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.arrived.notify_all();
        let result = wait();
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        result
    }

    /// Ends the thread.
    pub(crate) fn end(&self) {
        // With the lock, so that the thread does not miss it between its check and its wait.
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        self.ended.store(true, Ordering::SeqCst);
        drop(waiting);
        self.arrived.notify_all();
    }

    /// Reads the heads while somebody waits, until [`Self::end`].
    pub(crate) fn run(self: Arc<Self>, client: &Client) {
        while self.wait_for_waiter() {
            let pause = match read_heads(client) {
                Ok(read) => {
                    self.take(&read);
                    LOOK
                }
                Err(_) => LOOK_FAILED,
            };
            std::thread::sleep(pause);
        }
    }

    /// Blocks until a caller waits; `false` at the end.
    fn wait_for_waiter(&self) -> bool {
        let waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let nobody = |waiting: &mut usize| *waiting == 0 && !self.ended.load(Ordering::SeqCst);
        drop(self.arrived.wait_while(waiting, nobody));
        !self.ended.load(Ordering::SeqCst)
    }

    fn take(&self, read: &[(SetId, Position)]) {
        let mut heads = self.heads.lock().unwrap_or_else(PoisonError::into_inner);
        let mut changed = false;
        for (set, position) in read {
            let seen = heads.entry(*set).or_default();
            changed |= *position > *seen;
            // A database that was restored may be behind.
            *seen = *position;
        }
        drop(heads);
        if changed {
            self.signal.notify();
        }
    }
}

fn read_heads(client: &Client) -> Result<Vec<(SetId, Position)>, abreast_core::LogError> {
    client.read("cannot read the heads of sets", |connection| {
        let rows = client.wait(async {
            Ok(connection.query_typed("SELECT id, position FROM abreast.sets", &[]).await?)
        })?;
        let head = |row: &tokio_postgres::Row| {
            Ok((SetId(row.try_get(0)?), Position(row.try_get::<_, i64>(1)? as u64)))
        };
        rows.iter().map(head).collect()
    })
}
