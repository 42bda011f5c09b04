//! The heads of all logs, for requests that wait for a change: one thread waits for the store, and
//! the requests wait for the channel of their set.

use abreast_core::{ChangeLog, Position, SetId};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// Longest delay until the thread waits for a further set, and until it ends.
const INTERVAL: Duration = Duration::from_millis(50);

/// The heads of all logs. The thread is idle while no request waits, and ends when this is dropped.
pub(crate) struct Heads {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    stopping: bool,
    /// The last known head of each set for which a request waits.
    sets: BTreeMap<SetId, watch::Sender<Position>>,
}

impl Heads {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system cannot start one.
    pub(crate) fn start(log: Arc<dyn ChangeLog>) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let followed = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("heads".into()).spawn(move || followed.run(&*log))?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Waits until the head of a set's log is after `position`, or until the time limit.
    pub(crate) async fn wait_behind(&self, set: SetId, position: Position, until: Instant) {
        let mut head = {
            let mut state = self.shared.lock();
            state.sets.entry(set).or_insert_with(|| watch::Sender::new(position)).subscribe()
        };
        self.shared.changed.notify_one();
        let _ = timeout_at(until, head.wait_for(|head| *head > position)).await;
    }
}

impl Drop for Heads {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, log: &dyn ChangeLog) {
        while let Some(known) = self.wanted() {
            if log.wait_for(&known, INTERVAL).is_err() {
                thread::sleep(INTERVAL);
            }
            for (set, known) in known {
                let Ok(head) = log.head(set) else { continue };
                if head.position != known
                    && let Some(sender) = self.lock().sets.get(&set)
                {
                    sender.send_replace(head.position);
                }
            }
        }
    }

    /// Waits until there are requests; returns their sets with the last known heads. `None` at the
    /// end.
    fn wanted(&self) -> Option<Vec<(SetId, Position)>> {
        let mut state = self.lock();
        state.sets.retain(|_, head| head.receiver_count() > 0);
        let idle = |state: &mut State| !state.stopping && state.sets.is_empty();
        let state = self.changed.wait_while(state, idle).unwrap_or_else(PoisonError::into_inner);
        (!state.stopping)
            .then(|| state.sets.iter().map(|(set, head)| (*set, *head.borrow())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::{Change, NewSet, State as ResourceState, SystemClock, append};
    use abreast_store::SqliteLog;

    #[test]
    fn requests_wait_for_a_change_of_their_set() {
        let log: Arc<dyn ChangeLog> =
            Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
        let [one, two] = ["one", "two"].map(|slug| {
            let set = log.open_set(&NewSet { slug: slug.into(), ..NewSet::default() }).unwrap().id;
            log.complete_import(set).unwrap();
            set
        });
        let heads = Heads::start(Arc::clone(&log)).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let put = |set, key: &str| {
            append(&*log, set, vec![Change::put(key, ResourceState::default())]).unwrap()
        };
        runtime.block_on(async {
            let late = || Instant::now() + Duration::from_secs(60);
            put(one, "a");
            // A change that was there before is noticed, too.
            heads.wait_behind(one, Position(0), late()).await;
            let (first, second) = (
                heads.wait_behind(one, Position(1), late()),
                heads.wait_behind(one, Position(2), late()),
            );
            let changes = async {
                tokio::time::sleep(Duration::from_millis(20)).await;
                put(one, "b");
                put(one, "c");
            };
            let begun = Instant::now();
            tokio::join!(first, second, changes);
            let soon = Instant::now() + Duration::from_millis(100);
            heads.wait_behind(two, Position(0), soon).await;
            assert!(Instant::now() >= soon, "a change of another set ends no wait");
            assert!(begun.elapsed() < Duration::from_secs(30));
        });
    }
}
