//! The last lines of a server's log, in memory, for its administrators.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most lines of the log in memory.
const LINES_MAX: usize = 1_000;
/// Most bytes of the lines of the log in memory.
const BYTES_MAX: usize = 512 << 10;

static IS_KEPT: AtomicBool = AtomicBool::new(false);
static RECENT: Mutex<Recent> = Mutex::new(Recent { lines: VecDeque::new(), bytes: 0 });

struct Recent {
    lines: VecDeque<String>,
    bytes: usize,
}

impl Recent {
    fn add(&mut self, line: &str) {
        self.bytes += line.len();
        self.lines.push_back(line.to_owned());
        while self.lines.len() > LINES_MAX || self.bytes > BYTES_MAX {
            let Some(oldest) = self.lines.pop_front() else { return };
            self.bytes -= oldest.len();
        }
    }
}

/// From now on, lines are kept.
pub(super) fn keep() {
    IS_KEPT.store(true, Ordering::Relaxed);
}

/// Whether lines are kept: the program is a server.
pub(super) fn is_kept() -> bool {
    IS_KEPT.load(Ordering::Relaxed)
}

/// Adds a line of the log.
pub(super) fn add(line: &str) {
    if is_kept() {
        RECENT.lock().unwrap_or_else(PoisonError::into_inner).add(line);
    }
}

/// The lines, the oldest first.
pub(crate) fn lines() -> Vec<String> {
    RECENT.lock().unwrap_or_else(PoisonError::into_inner).lines.iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_kept_within_limits() {
        let mut recent = Recent { lines: VecDeque::new(), bytes: 0 };
        (0..LINES_MAX + 5).for_each(|number| recent.add(&number.to_string()));
        assert_eq!((recent.lines.len(), recent.lines[0].as_str()), (LINES_MAX, "5"));
        let long = "x".repeat(BYTES_MAX / 2);
        (0..3).for_each(|_| recent.add(&long));
        assert_eq!((recent.lines.len(), recent.bytes), (2, 2 * long.len()));
        recent.add(&"x".repeat(BYTES_MAX + 1));
        assert_eq!((recent.lines.len(), recent.bytes), (0, 0));
    }
}
