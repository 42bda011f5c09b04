//! Notifications that wait for a run: a bounded queue, which wakes its reader at once.

use crate::report::heartbeat::Heartbeat;
use bytes::Bytes;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of waiting notifications. If there are more, all are discarded and the lists are
/// polled.
const NOTIFICATIONS_MAX: usize = 256;
/// Maximum total length of waiting notifications, in bytes.
const NOTIFICATIONS_BYTES_MAX: usize = 32 << 20;
/// Maximum number of remarks that wait to be reported; further remarks are discarded.
const NOTES_MAX: usize = 100;
/// Interval of the checks for a request to stop.
const STOP_CHECK: Duration = Duration::from_millis(100);

/// The contents that wait for the next run.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    notifications: Vec<Bytes>,
    bytes: usize,
    pull: bool,
    live: bool,
    /// Whether notifications arrived since the last call of [`Inbox::take_arrived`].
    arrived: bool,
    /// How often anything was notified.
    count: u64,
    changed: bool,
    notes: Vec<Note>,
}

impl Waiting {
    const fn note_arrival(&mut self) {
        (self.arrived, self.count) = (true, self.count.wrapping_add(1));
    }
}

/// A remark for people.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) code: &'static str,
    pub(crate) uri: String,
    pub(crate) message: String,
}

/// Why a wait ended.
#[derive(Debug)]
pub(crate) enum Wakeup {
    Stopped,
    /// Notifications to read; none when the lists are to be polled.
    Notified(Vec<Bytes>),
    /// Whether notifications come has changed, or there are remarks.
    Changed,
    Due,
}

impl Inbox {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a notification that is accepted.
    pub(crate) fn notify(&self, notification: Bytes) {
        let mut waiting = self.lock();
        waiting.note_arrival();
        if waiting.pull {
            return;
        }
        waiting.bytes += notification.len();
        waiting.notifications.push(notification);
        if waiting.notifications.len() > NOTIFICATIONS_MAX
            || waiting.bytes > NOTIFICATIONS_BYTES_MAX
        {
            (waiting.pull, waiting.bytes) = (true, 0);
            waiting.notifications = Vec::new();
        }
        self.wake.notify_all();
    }

    /// Called for a notification that is not applied: the lists contain the change.
    pub(crate) fn hint(&self) {
        self.lock().note_arrival();
        self.pull();
    }

    /// How often anything was notified so far.
    pub(crate) fn count(&self) -> u64 {
        self.lock().count
    }

    /// Whether notifications arrived since the last call.
    pub(crate) fn take_arrived(&self) -> bool {
        std::mem::take(&mut self.lock().arrived)
    }

    /// Something may have changed; the lists know what.
    pub(crate) fn pull(&self) {
        let mut waiting = self.lock();
        (waiting.pull, waiting.bytes) = (true, 0);
        waiting.notifications = Vec::new();
        self.wake.notify_all();
    }

    /// The reader has something else to do.
    pub(crate) fn stir(&self) {
        self.lock().changed = true;
        self.wake.notify_all();
    }

    /// Whether notifications come: then the lists are polled less often.
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

    /// Waits until a run is due: when notifications can be applied, but not before `earliest`; when
    /// the lists must be polled because of a notification, but not before `look_from`; at the
    /// latest at `due`.
    pub(crate) fn wait(
        &self,
        earliest: Instant,
        look_from: Instant,
        due: Instant,
        cancel: &AtomicBool,
        heartbeat: &Heartbeat,
    ) -> Wakeup {
        let mut waiting = self.lock();
        loop {
            heartbeat.beat();
            let now = Instant::now();
            if cancel.load(Ordering::Relaxed) {
                return Wakeup::Stopped;
            }
            let begins = if waiting.pull { earliest.max(look_from) } else { earliest };
            let has_any = waiting.pull || !waiting.notifications.is_empty();
            if has_any && now >= begins {
                (waiting.pull, waiting.bytes) = (false, 0);
                return Wakeup::Notified(std::mem::take(&mut waiting.notifications));
            }
            if std::mem::take(&mut waiting.changed) {
                return Wakeup::Changed;
            }
            if now >= due {
                return Wakeup::Due;
            }
            let until = if has_any { begins.min(due) } else { due };
            let pause = STOP_CHECK.min(until.saturating_duration_since(now));
            waiting =
                self.wake.wait_timeout(waiting, pause).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const LONG: Duration = Duration::from_secs(60);

    fn wait(inbox: &Inbox) -> Wakeup {
        inbox.wait(
            Instant::now(),
            Instant::now(),
            Instant::now() + LONG,
            &AtomicBool::new(false),
            &Heartbeat::default(),
        )
    }

    #[test]
    fn who_waits_is_woken_by_what_is_told() {
        let inbox = Arc::new(Inbox::default());
        let subscriber = Arc::clone(&inbox);
        let notified = std::thread::spawn(move || subscriber.notify(Bytes::from_static(b"a")));
        assert!(matches!(wait(&inbox), Wakeup::Notified(all) if all == [&b"a"[..]]));
        notified.join().unwrap();
        let now = Instant::now();
        assert!(matches!(
            inbox.wait(now, now, now, &AtomicBool::new(false), &Heartbeat::default()),
            Wakeup::Due
        ));
        assert!(matches!(
            inbox.wait(now, now, now + LONG, &AtomicBool::new(true), &Heartbeat::default()),
            Wakeup::Stopped
        ));
    }

    #[test]
    fn notifications_do_not_wait_for_the_next_look_at_the_lists() {
        let inbox = Inbox::default();
        let now = Instant::now();
        let wait =
            |due| inbox.wait(now, now + LONG, due, &AtomicBool::new(false), &Heartbeat::default());
        inbox.notify(Bytes::from_static(b"a"));
        assert!(matches!(wait(now + LONG), Wakeup::Notified(all) if all.len() == 1));
        inbox.pull();
        assert!(matches!(wait(now), Wakeup::Due), "a poll waits, unless it is due anyway");
    }

    #[test]
    fn too_much_is_forgotten_and_asked_for() {
        let inbox = Inbox::default();
        for _ in 0..=NOTIFICATIONS_MAX {
            inbox.notify(Bytes::from_static(b"a"));
        }
        inbox.notify(Bytes::from_static(b"b"));
        assert!(matches!(wait(&inbox), Wakeup::Notified(all) if all.is_empty()));
        inbox.notify(Bytes::from(vec![0; NOTIFICATIONS_BYTES_MAX + 1]));
        assert!(matches!(wait(&inbox), Wakeup::Notified(all) if all.is_empty()));
        inbox.note("a", "b", "c");
        assert!(matches!(wait(&inbox), Wakeup::Changed));
        assert_eq!(inbox.take_notes().len(), 1);
        inbox.set_live(true);
        assert!(matches!(wait(&inbox), Wakeup::Changed) && inbox.is_live());
    }
}
