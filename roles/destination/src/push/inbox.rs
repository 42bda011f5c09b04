//! How does what was told reach the runs? Bounded, and whoever waits is woken at once.

use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Notifications that wait for a run; with more, all are forgotten and the lists are asked.
const TOLD_MAX: usize = 256;
/// Their bytes together.
const TOLD_BYTES_MAX: usize = 32 << 20;
/// Remarks that wait to be told; more are dropped.
const NOTES_MAX: usize = 100;
/// How soon a stop is noticed.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// What waits for the next run.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    told: Vec<Bytes>,
    bytes: usize,
    pull: bool,
    live: bool,
    changed: bool,
    notes: Vec<Note>,
}

/// A remark for people.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) code: &'static str,
    pub(crate) uri: String,
    pub(crate) message: String,
}

/// Why somebody who waited goes on.
#[derive(Debug)]
pub(crate) enum Woken {
    Stopped,
    /// Something was told: notifications to read, none when the lists are to be asked.
    Told(Vec<Bytes>),
    /// Whether notifications come has changed, or there are remarks.
    Changed,
    Due,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A notification that can be believed.
    pub(crate) fn tell(&self, notification: Bytes) {
        let mut waiting = self.lock();
        if waiting.pull {
            return;
        }
        waiting.bytes += notification.len();
        waiting.told.push(notification);
        if waiting.told.len() > TOLD_MAX || waiting.bytes > TOLD_BYTES_MAX {
            (waiting.pull, waiting.bytes) = (true, 0);
            waiting.told = Vec::new();
        }
        self.wake.notify_all();
    }

    /// Something may have changed; the lists know what.
    pub(crate) fn pull(&self) {
        let mut waiting = self.lock();
        (waiting.pull, waiting.bytes) = (true, 0);
        waiting.told = Vec::new();
        self.wake.notify_all();
    }

    /// Whether notifications come: then the lists are asked less often.
    pub(crate) fn set_live(&self, live: bool) {
        let mut waiting = self.lock();
        waiting.changed |= waiting.live != live;
        waiting.live = live;
        self.wake.notify_all();
    }

    pub(crate) fn is_live(&self) -> bool {
        self.lock().live
    }

    pub(crate) fn note(&self, code: &'static str, uri: &str, message: &str) {
        let mut waiting = self.lock();
        if waiting.notes.len() < NOTES_MAX {
            waiting.notes.push(Note { code, uri: uri.to_owned(), message: message.to_owned() });
        }
        waiting.changed = true;
        self.wake.notify_all();
    }

    pub(crate) fn take_notes(&self) -> Vec<Note> {
        std::mem::take(&mut self.lock().notes)
    }

    /// Waits until there are notifications to apply, though not before `earliest`; or until the lists are to be asked
    /// for what was notified, though not before `look_from` either; or until they are due anyway.
    pub(crate) fn wait(&self, earliest: Instant, look_from: Instant, due: Instant, cancel: &AtomicBool) -> Woken {
        let mut waiting = self.lock();
        loop {
            let now = Instant::now();
            if cancel.load(Ordering::Relaxed) {
                return Woken::Stopped;
            }
            let begins = if waiting.pull { earliest.max(look_from) } else { earliest };
            let has_told = waiting.pull || !waiting.told.is_empty();
            if has_told && now >= begins {
                (waiting.pull, waiting.bytes) = (false, 0);
                return Woken::Told(std::mem::take(&mut waiting.told));
            }
            if std::mem::take(&mut waiting.changed) {
                return Woken::Changed;
            }
            if now >= due {
                return Woken::Due;
            }
            let until = if has_told { begins.min(due) } else { due };
            let pause = STOP_CHECK.min(until.saturating_duration_since(now));
            waiting = self.wake.wait_timeout(waiting, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const LONG: Duration = Duration::from_secs(60);

    fn wait(inbox: &Inbox) -> Woken {
        inbox.wait(Instant::now(), Instant::now(), Instant::now() + LONG, &AtomicBool::new(false))
    }

    #[test]
    fn who_waits_is_woken_by_what_is_told() {
        let inbox = Arc::new(Inbox::default());
        let teller = Arc::clone(&inbox);
        let told = std::thread::spawn(move || teller.tell(Bytes::from_static(b"a")));
        assert!(matches!(wait(&inbox), Woken::Told(told) if told == [&b"a"[..]]));
        told.join().unwrap();
        let now = Instant::now();
        assert!(matches!(inbox.wait(now, now, now, &AtomicBool::new(false)), Woken::Due));
        assert!(matches!(inbox.wait(now, now, now + LONG, &AtomicBool::new(true)), Woken::Stopped));
    }

    #[test]
    fn notifications_do_not_wait_for_the_next_look_at_the_lists() {
        let inbox = Inbox::default();
        let now = Instant::now();
        let wait = |due| inbox.wait(now, now + LONG, due, &AtomicBool::new(false));
        inbox.tell(Bytes::from_static(b"a"));
        assert!(matches!(wait(now + LONG), Woken::Told(told) if told.len() == 1));
        inbox.pull();
        assert!(matches!(wait(now), Woken::Due), "a look waits, unless it is due anyway");
    }

    #[test]
    fn too_much_is_forgotten_and_asked_for() {
        let inbox = Inbox::default();
        for _ in 0..=TOLD_MAX {
            inbox.tell(Bytes::from_static(b"a"));
        }
        inbox.tell(Bytes::from_static(b"b"));
        assert!(matches!(wait(&inbox), Woken::Told(told) if told.is_empty()));
        inbox.tell(Bytes::from(vec![0; TOLD_BYTES_MAX + 1]));
        assert!(matches!(wait(&inbox), Woken::Told(told) if told.is_empty()));
        inbox.note("a", "b", "c");
        assert!(matches!(wait(&inbox), Woken::Changed));
        assert_eq!(inbox.take_notes().len(), 1);
        inbox.set_live(true);
        assert!(matches!(wait(&inbox), Woken::Changed) && inbox.is_live());
    }
}
