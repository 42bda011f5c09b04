//! Turns of renderings, so that a large document never delays a small one.
//!
//! A few small documents are rendered at a time, in milliseconds each. At the same time, one large
//! document may be rendered: it needs memory, a core and a reading connection of the store for
//! longer. Each rendering starts with the turn of a small document, and changes its turn before it
//! reads the store if it expects a large document.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Documents of at least this many bytes are large: about 2 ms of rendering.
pub(crate) const LARGE: u64 = 256 * 1024;
/// Large documents at a time.
const LARGE_AT_A_TIME: usize = 1;
/// Small documents at a time: as many as there are cores, within these bounds. The store has eight
/// reading connections.
const SMALL_AT_A_TIME: (usize, usize) = (2, 4);

/// The turns of small and of large documents.
#[derive(Debug)]
pub(super) struct Lanes {
    small: Lane,
    large: Lane,
}

impl Default for Lanes {
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let small = cores.clamp(SMALL_AT_A_TIME.0, SMALL_AT_A_TIME.1);
        Self { small: Lane::new(small), large: Lane::new(LARGE_AT_A_TIME) }
    }
}

impl Lanes {
    /// Waits for the turn of a small document.
    pub(super) fn small(&self) -> Turn<'_> {
        self.small.turn()
    }

    /// Waits for the turn of a document of this length.
    pub(super) fn of_length(&self, bytes: u64) -> Turn<'_> {
        if bytes < LARGE { self.small.turn() } else { self.large.turn() }
    }

    /// Changes to the turn for the length that is expected now. The earlier turn is released before
    /// this waits, so that two renderings cannot block each other.
    pub(super) fn change<'l>(&'l self, turn: Turn<'l>, bytes: u64) -> Turn<'l> {
        if bytes < LARGE || std::ptr::eq(turn.0, &raw const self.large) {
            return turn;
        }
        drop(turn);
        self.large.turn()
    }
}

#[derive(Debug)]
struct Lane {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Lane {
    const fn new(turns: usize) -> Self {
        Self { free: Mutex::new(turns), freed: Condvar::new() }
    }

    fn turn(&self) -> Turn<'_> {
        let mut free = self
            .freed
            .wait_while(self.lock(), |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Turn(self)
    }

    fn lock(&self) -> MutexGuard<'_, usize> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Right to render one document, released on drop.
#[derive(Debug)]
pub(super) struct Turn<'l>(&'l Lane);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.lock() += 1;
        self.0.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn small_documents_do_not_wait_for_large_ones() {
        let lanes = Lanes::default();
        let large = lanes.of_length(LARGE);
        let mut small: Vec<_> = (0..SMALL_AT_A_TIME.0).map(|_| lanes.small()).collect();
        std::thread::scope(|scope| {
            let (sender, begun) = mpsc::channel();
            let waiting = small.pop().unwrap();
            let lanes = &lanes;
            scope.spawn(move || {
                let _turn = lanes.change(waiting, LARGE);
                sender.send(()).unwrap();
            });
            // The reader waits for the other large document, and has left its place among the small
            // documents.
            small.push(lanes.small());
            assert_eq!(
                begun.recv_timeout(Duration::from_millis(50)),
                Err(mpsc::RecvTimeoutError::Timeout)
            );
            drop(large);
            begun.recv().unwrap();
        });
    }
}
