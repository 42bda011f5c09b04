//! A watch of which one node at a time is responsible, if several nodes share the store.

use super::status::{WatchState, WatchStatus};
use abreast_core::Lease;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Interval at which the lease is checked.
const TICK: Duration = Duration::from_millis(100);

/// Calls `run` as long as this node holds the lease, until `stop` is set. The flag that `run` gets is
/// set when the lease ends or the folder cannot be read, which another node may be able to.
pub(crate) fn run_while_held(
    lease: &Lease,
    status: &WatchStatus,
    stop: &Arc<AtomicBool>,
    mut run: impl FnMut(&Arc<AtomicBool>),
) {
    if !lease.is_shared() {
        run(stop);
        return;
    }
    let is_stopping = || stop.load(Ordering::SeqCst);
    while !is_stopping() {
        if !lease.is_held() {
            // Otherwise the reason remains for which this node gave up, such as a missing folder.
            if lease.is_elsewhere() {
                status.set(WatchState::Elsewhere);
            }
            thread::sleep(TICK);
            continue;
        }
        let (ending, ended) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        // A folder that was missing is tried again.
        status.set(WatchState::Starting);
        let last = thread::scope(|scope| {
            let monitor = scope.spawn(|| {
                let mut last = WatchState::Elsewhere;
                while !ended.load(Ordering::SeqCst) {
                    let state = status.state();
                    if matches!(state, WatchState::Vanished(_)) {
                        lease.give_up();
                        last = state;
                    }
                    if is_stopping() || !lease.is_held() {
                        ending.store(true, Ordering::SeqCst);
                    }
                    thread::sleep(TICK);
                }
                last
            });
            {
                // Also after a panic, so that the thread of the monitor ends.
                let _end = SetOnDrop(&ended);
                run(&ending);
            }
            monitor.join()
        });
        status.set(last.unwrap_or(WatchState::Elsewhere));
        status.forget_judgements();
    }
    status.set(WatchState::Stopped);
}

/// Sets a flag when it is dropped.
struct SetOnDrop<'f>(&'f AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::Leases;
    use abreast_testkit::eventually;

    /// A lease that a test gives and takes; another node has it after a test took it.
    #[derive(Default)]
    struct Given {
        is_held: AtomicBool,
        is_elsewhere: AtomicBool,
    }

    impl Given {
        fn give(&self, is_held: bool) {
            self.is_elsewhere.store(!is_held, Ordering::SeqCst);
            self.is_held.store(is_held, Ordering::SeqCst);
        }
    }

    impl Leases for Given {
        fn want(&self, _: &str) {}

        fn release(&self, _: &str) {}

        fn is_held(&self, _: &str) -> bool {
            self.is_held.load(Ordering::SeqCst)
        }

        fn is_elsewhere(&self, _: &str) -> bool {
            self.is_elsewhere.load(Ordering::SeqCst)
        }

        fn give_up(&self, _: &str) {
            self.is_held.store(false, Ordering::SeqCst);
        }
    }

    #[test]
    fn work_runs_while_its_lease_is_held() {
        let given = Arc::new(Given::default());
        let (status, stop) = (Arc::new(WatchStatus::default()), Arc::new(AtomicBool::new(false)));
        let lease = Lease::of(Arc::clone(&given) as _, "watch/papers");
        let runs = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let worker = {
            let (status, stop, runs) = (Arc::clone(&status), Arc::clone(&stop), Arc::clone(&runs));
            thread::spawn(move || {
                run_while_held(&lease, &status, &stop, |ending| {
                    runs.fetch_add(1, Ordering::SeqCst);
                    status.set(WatchState::Watching);
                    while !ending.load(Ordering::SeqCst) {
                        thread::sleep(TICK);
                    }
                });
            })
        };
        assert_eq!(status.state(), WatchState::Starting);
        given.give(false);
        eventually("another node has it", || status.state() == WatchState::Elsewhere);
        given.give(true);
        eventually("it runs", || status.state() == WatchState::Watching);
        given.give(false);
        eventually("it ends", || status.state() == WatchState::Elsewhere);
        given.give(true);
        eventually("it runs again", || status.state() == WatchState::Watching);
        // Without another node, the status has the reason.
        let gone = WatchState::Vanished("gone".into());
        status.set(gone.clone());
        eventually("another node may try", || !given.is_held(""));
        thread::sleep(3 * TICK);
        assert_eq!(status.state(), gone);
        given.give(true);
        eventually("it runs again", || runs.load(Ordering::SeqCst) == 3);
        eventually("it works", || status.state() == WatchState::Watching);
        assert!(given.is_held(""), "the earlier failure does not count");
        stop.store(true, Ordering::SeqCst);
        worker.join().unwrap();
        assert_eq!(status.state(), WatchState::Stopped);
    }

    #[test]
    fn a_panic_of_the_work_ends_the_thread() {
        let given = Arc::new(Given::default());
        given.give(true);
        let lease = Lease::of(Arc::clone(&given) as _, "watch/papers");
        let worker = thread::spawn(move || {
            let (status, stop) = (WatchStatus::default(), Arc::new(AtomicBool::new(false)));
            run_while_held(&lease, &status, &stop, |_| panic!("a fault of the work"));
        });
        eventually("the thread ends", || worker.is_finished());
        assert!(worker.join().is_err());
    }

    #[test]
    fn work_of_one_process_runs_until_it_is_stopped() {
        let (status, stop) = (WatchStatus::default(), Arc::new(AtomicBool::new(false)));
        run_while_held(&Lease::always(), &status, &stop, |ending| {
            assert!(Arc::ptr_eq(ending, &stop));
        });
    }
}
