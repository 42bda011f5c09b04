//! A watch of which one node at a time is responsible, if several nodes share the store.

use super::status::{WatchState, WatchStatus};
use super::watch_note::{WatchNote, WatchRequest};
use abreast_core::{ChangeLog, HolderNote, Lease, SetId, spawn_scoped};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Interval at which the lease is checked.
const TICK: Duration = Duration::from_millis(100);

/// Calls `run` as long as this node holds the lease, until `stop` is set. The flag that `run` gets is
/// set when the lease ends or the folder cannot be read, which another node may be able to. Through
/// the log that `run` gets, it cannot record after another node took over.
///
/// Meanwhile, other nodes show the status, and their requests are carried out; while another node
/// holds the lease, its status is shown here.
pub(crate) fn run_while_held(
    lease: &Lease,
    (log, set): (&Arc<dyn ChangeLog>, SetId),
    status: &WatchStatus,
    stop: &Arc<AtomicBool>,
    mut run: impl FnMut(&Arc<AtomicBool>, Arc<dyn ChangeLog>),
) {
    if !lease.is_shared() {
        run(stop, Arc::clone(log));
        return;
    }
    let is_stopping = || stop.load(Ordering::SeqCst);
    status.share(Some(lease.clone()));
    let _end = EndSharing(status);
    let mut shown: Option<Arc<HolderNote>> = None;
    while !is_stopping() {
        if !lease.is_held() {
            // Otherwise the reason remains for which this node gave up, such as a missing folder.
            if lease.is_elsewhere() {
                status.set(WatchState::Elsewhere);
            }
            show(status, lease.note_of_holder(), &mut shown);
            thread::sleep(TICK);
            continue;
        }
        show(status, None, &mut shown);
        let Ok(own_log) = lease.take_over(log, set) else {
            // The database is away, or another node took the lease at this moment.
            thread::sleep(TICK);
            continue;
        };
        let (ending, ended) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
        // A folder that was missing is tried again.
        status.set(WatchState::Starting);
        let last = thread::scope(|scope| {
            let monitor = spawn_scoped(scope, || {
                let mut last = WatchState::Elsewhere;
                while !ended.load(Ordering::SeqCst) {
                    let note = status.note();
                    if matches!(note.state, WatchState::Vanished(_)) {
                        lease.give_up();
                        last = note.state;
                    } else {
                        lease.publish(note.text());
                        for request in lease.take_requests() {
                            carry_out(status, &request);
                        }
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
                run(&ending, own_log);
            }
            monitor.join()
        });
        status.set(last.unwrap_or(WatchState::Elsewhere));
        status.forget_judgements();
    }
    status.set(WatchState::Stopped);
}

/// Shows the note of the node that holds the lease, unless it is shown already.
fn show(status: &WatchStatus, note: Option<Arc<HolderNote>>, shown: &mut Option<Arc<HolderNote>>) {
    let is_shown = match (&note, &*shown) {
        (Some(note), Some(shown)) => Arc::ptr_eq(note, shown),
        (None, None) => true,
        _ => false,
    };
    if !is_shown {
        let read = |note: &Arc<HolderNote>| Some((note.holder, WatchNote::parse(&note.text)?));
        status.show(note.as_ref().and_then(read));
        *shown = note;
    }
}

fn carry_out(status: &WatchStatus, request: &str) {
    if let Some(request) = WatchRequest::parse(request) {
        status.carry_out(request);
    } else {
        tracing::warn!("a request of another node for the watch is not known: {request}");
    }
}

/// Ends the exchange with other nodes, also after a panic: the lease is given back.
struct EndSharing<'s>(&'s WatchStatus);

impl Drop for EndSharing<'_> {
    fn drop(&mut self) {
        self.0.share(None);
    }
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
    use crate::scan::guard::Held;
    use abreast_core::testing::MemoryLeases;
    use abreast_core::{Leases as _, SystemClock};
    use abreast_testkit::eventually;
    use abreast_webtypes::Timestamp;
    use std::sync::atomic::AtomicUsize;

    const PART: &str = "watch/papers";

    const SET: SetId = SetId(1);

    /// A log of one process, which no worker has to take over.
    fn log() -> (tempfile::TempDir, Arc<dyn ChangeLog>) {
        let place = tempfile::tempdir().unwrap();
        let log = abreast_store::SqliteLog::open(&place.path().join("db"), Arc::new(SystemClock));
        (place, Arc::new(log.unwrap()))
    }

    /// A thread with a watch that another node can take over.
    struct Node {
        lease: Lease,
        status: Arc<WatchStatus>,
        stop: Arc<AtomicBool>,
        runs: Arc<AtomicUsize>,
        thread: thread::JoinHandle<()>,
    }

    impl Node {
        fn start(leases: &Arc<MemoryLeases>) -> Self {
            let lease = Lease::of(Arc::clone(leases) as _, PART);
            let (status, stop) = (Arc::new(WatchStatus::default()), Arc::default());
            let runs = Arc::new(AtomicUsize::new(0));
            let (of_thread, own_status, own_stop, own_runs) =
                (lease.clone(), Arc::clone(&status), Arc::clone(&stop), Arc::clone(&runs));
            let thread = thread::spawn(move || {
                let (_place, log) = log();
                run_while_held(&of_thread, (&log, SET), &own_status, &own_stop, |ending, _| {
                    own_runs.fetch_add(1, Ordering::SeqCst);
                    own_status.set(WatchState::Watching);
                    while !ending.load(Ordering::SeqCst) {
                        if own_status.take_confirmed() {
                            own_status.set_held(None, Vec::new());
                        }
                        thread::sleep(TICK);
                    }
                });
            });
            Self { lease, status, stop, runs, thread }
        }

        fn is(&self, state: &WatchState) -> bool {
            self.status.state() == *state
        }
    }

    #[test]
    fn work_runs_while_its_lease_is_held() {
        let nodes = MemoryLeases::nodes(2);
        nodes[1].take_over(PART);
        let node = Node::start(&nodes[0]);
        eventually("another node has it", || node.is(&WatchState::Elsewhere));
        nodes[1].release(PART);
        eventually("it runs", || node.is(&WatchState::Watching));
        nodes[1].take_over(PART);
        eventually("it ends", || node.is(&WatchState::Elsewhere));
        nodes[1].release(PART);
        eventually("it runs again", || node.is(&WatchState::Watching));
        // Without another node, the status has the reason.
        let gone = WatchState::Vanished("gone".into());
        node.status.set(gone.clone());
        eventually("another node may try", || !node.lease.is_held());
        thread::sleep(3 * TICK);
        assert!(node.is(&gone));
        nodes[0].take_over(PART);
        eventually("it runs again", || node.runs.load(Ordering::SeqCst) == 3);
        eventually("it works", || node.is(&WatchState::Watching));
        assert!(node.lease.is_held(), "the earlier failure does not count");
        node.stop.store(true, Ordering::SeqCst);
        node.thread.join().unwrap();
        assert!(node.status.state() == WatchState::Stopped);
        drop(node.lease);
        drop(node.status);
        assert!(!nodes[0].is_held(PART), "the lease is given back");
    }

    #[test]
    fn all_nodes_show_and_confirm_held_deletions() {
        let held = |missing| Held { missing, left_out: 0, of: 30, before: 0 };
        let nodes = MemoryLeases::nodes(2);
        let [one, two] = [Node::start(&nodes[0]), Node::start(&nodes[1])];
        let runs = |node: &Node| node.runs.load(Ordering::SeqCst) > 0;
        eventually("a node watches", || runs(&one) || runs(&two));
        let (holder, other) = if runs(&one) { (one, two) } else { (two, one) };
        eventually("the state is shown", || other.is(&WatchState::Watching));
        assert!(!other.status.confirm_held().unwrap(), "nothing is held");
        holder.status.scanned(Timestamp::from_micros(7), 1, vec!["unreadable".to_owned()]);
        holder.status.set_held(Some(held(28)), vec!["a".to_owned()]);
        eventually("the held deletions are shown", || other.status.held() == Some(held(28)));
        assert_eq!(other.status.held_names(), ["a"]);
        assert_eq!(other.status.last_scan(), Some(Timestamp::from_micros(7)));
        assert_eq!((other.status.problems(), other.status.problem_texts().len()), (1, 1));
        assert!(!other.status.is_confirming());
        assert!(other.status.confirm_held().unwrap());
        assert!(other.status.is_confirming());
        eventually("they are recorded", || {
            holder.status.held().is_none() && other.status.held().is_none()
        });
        assert!(!other.status.is_confirming());
        assert!(other.status.request_scan().unwrap());
        eventually("the scan is requested", || holder.status.take_scan_wanted());
        assert!(!other.status.is_scan_wanted());

        // A confirmation of an earlier judgement does not count.
        holder.status.set_held(Some(held(28)), vec!["a".to_owned()]);
        let note = || nodes.iter().find_map(|node| node.note_of_holder(PART));
        eventually("the held deletions are shown", || other.status.held().is_some());
        let asked = WatchRequest::Confirm(other.status.judgement()).to_string();
        holder.status.set_held(Some(held(29)), vec!["a".to_owned()]);
        assert!(other.lease.ask(note().unwrap().holder, &asked).unwrap());
        eventually("the other deletions are shown", || other.status.held() == Some(held(29)));
        thread::sleep(3 * TICK);
        assert_eq!(holder.status.held(), Some(held(29)));
        // Nor does it count at a later holder.
        holder.stop.store(true, Ordering::SeqCst);
        holder.thread.join().unwrap();
        drop((holder.lease, holder.status));
        eventually("the other node watches", || other.runs.load(Ordering::SeqCst) > 0);
        assert_eq!(other.status.held(), None);
        assert!(nodes[0].is_held(PART) != nodes[1].is_held(PART));
        other.stop.store(true, Ordering::SeqCst);
        other.thread.join().unwrap();
    }

    #[test]
    fn a_panic_of_the_work_ends_the_thread() {
        let nodes = MemoryLeases::nodes(1);
        let lease = Lease::of(Arc::clone(&nodes[0]) as _, PART);
        let worker = thread::spawn(move || {
            let (status, stop) = (WatchStatus::default(), Arc::new(AtomicBool::new(false)));
            let (_place, log) = log();
            run_while_held(&lease, (&log, SET), &status, &stop, |_, _| {
                panic!("a fault of the work")
            });
        });
        eventually("the thread ends", || worker.is_finished());
        assert!(worker.join().is_err());
        assert!(!nodes[0].is_held(PART));
    }

    #[test]
    fn work_of_one_process_runs_until_it_is_stopped() {
        let (status, stop) = (WatchStatus::default(), Arc::new(AtomicBool::new(false)));
        let (_place, log) = log();
        run_while_held(&Lease::always(), (&log, SET), &status, &stop, |ending, own_log| {
            assert!(Arc::ptr_eq(ending, &stop) && Arc::ptr_eq(&own_log, &log));
        });
    }
}
