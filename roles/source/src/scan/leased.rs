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
            status.set(WatchState::Elsewhere);
            thread::sleep(TICK);
            continue;
        }
        let (ending, ended) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::SeqCst) {
                    if matches!(status.state(), WatchState::Vanished(_)) {
                        lease.give_up();
                    }
                    if is_stopping() || !lease.is_held() {
                        ending.store(true, Ordering::SeqCst);
                    }
                    thread::sleep(TICK);
                }
            });
            run(&ending);
            ended.store(true, Ordering::SeqCst);
        });
        // The next attempt does not depend on this one.
        status.set(WatchState::Elsewhere);
    }
    status.set(WatchState::Stopped);
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::Leases;
    use abreast_testkit::eventually;

    /// A lease that a test gives and takes.
    #[derive(Default)]
    struct Given(AtomicBool);

    impl Leases for Given {
        fn want(&self, _: &str) {}

        fn release(&self, _: &str) {}

        fn is_held(&self, _: &str) -> bool {
            self.0.load(Ordering::SeqCst)
        }

        fn give_up(&self, _: &str) {
            self.0.store(false, Ordering::SeqCst);
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
        eventually("another node has it", || status.state() == WatchState::Elsewhere);
        given.0.store(true, Ordering::SeqCst);
        eventually("it runs", || status.state() == WatchState::Watching);
        given.0.store(false, Ordering::SeqCst);
        eventually("it ends", || status.state() == WatchState::Elsewhere);
        given.0.store(true, Ordering::SeqCst);
        eventually("it runs again", || status.state() == WatchState::Watching);
        status.set(WatchState::Vanished("gone".into()));
        eventually("another node may try", || status.state() == WatchState::Elsewhere);
        assert!(!given.0.load(Ordering::SeqCst));
        given.0.store(true, Ordering::SeqCst);
        eventually("it runs again", || runs.load(Ordering::SeqCst) == 3);
        stop.store(true, Ordering::SeqCst);
        worker.join().unwrap();
        assert_eq!(status.state(), WatchState::Stopped);
    }

    #[test]
    fn work_of_one_process_runs_until_it_is_stopped() {
        let (status, stop) = (WatchStatus::default(), Arc::new(AtomicBool::new(false)));
        run_while_held(&Lease::always(), &status, &stop, |ending| {
            assert!(Arc::ptr_eq(ending, &stop));
        });
    }
}
