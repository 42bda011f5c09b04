//! Following a Source: consecutive runs, when changes are announced and when the lists are due.

use crate::copy::names::DATABASE;
use crate::copy::state::state_of;
use crate::push::{Inbox, Pushing, Wakeup, listen};
use crate::read::choice::Choice;
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Event, Observer, Problem, Summary};
use crate::report::meters::with_meter;
use crate::report::options::SyncOptions;
use crate::request::robots::Robots;
use crate::run::hand_over::{HandOver, Progress};
use crate::run::sync::{Handing, Ran, Wake, sync_with};
use abreast_net::Shared;
use abreast_store::mirror::Mirror;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Longest pause between polls after failures.
const FOLLOW_PAUSE_MAX: Duration = Duration::from_secs(15 * 60);
/// While changes are announced, the lists are polled this many times less often.
const NOTIFIED_FACTOR: u32 = 10;
/// First pause before announced changes that could not be applied are tried again; it doubles up to
/// the usual pause.
const AGAIN_PAUSE: Duration = Duration::from_secs(1);

/// Reported when a poll found changes.
const SILENT: &str = "these changes were not pushed; where changes are announced is looked up again, and the lists are polled at the usual interval until something is pushed";

/// Synchronises, then applies changes as they are announced, and polls, until it is stopped.
/// Transient failures are reported and retried with growing pauses.
///
/// # Errors
/// The errors of the first run, and permanent errors of later runs; the errors of
/// [`CallbackOptions`](crate::CallbackOptions).
pub fn follow(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Error> {
    let mut options = options.clone();
    if let Some(heartbeat) = observer.heartbeat() {
        options.heartbeat = heartbeat;
    }
    let options = &options;
    let listener = listen(options)?;
    let shared = Shared::new(with_meter(options.net_options(), &observer.meter()));
    let mut robots = Arc::<Robots>::default();
    let mut choice = Choice::default();
    let first = Wake { handing: Handing::Caller { has_failed: false }, ..Wake::default() };
    let mut ran = sync_with(options, observer, cancel, &shared, &robots, first, &mut choice)?;
    observer.attempted(None);
    // The copy has the new address now.
    let options = &SyncOptions { moved: false, ..options.clone() };
    // The copy stays taken between the runs.
    let _lock = ran.lock.take();
    let inbox = Arc::<Inbox>::default();
    let mut pushing = Pushing::start(options, ran.announcement.take(), &inbox, listener)?;
    let mut looks_again = false;
    let report_notice = |code: &str, message: &str| {
        observer.event(&Event::Notice(Problem { code, uri: &options.url, message }));
    };
    let mut pace = Pace::new(options, &ran);
    let mut last = ran.summary;
    let mut hand_over = HandOver::new(options);
    let database = state_of(options).join(DATABASE);
    loop {
        let poll_due = pace.due(inbox.is_live());
        let mut due = poll_due;
        if let Some(hand_over) = &mut hand_over {
            let open = || Ok(Box::new(Mirror::open(&database)?));
            let waker = Arc::clone(&inbox);
            let had_failed = hand_over.has_failed();
            if let Progress::Pause(until) =
                hand_over.advance(open, observer, move || waker.stir())?
            {
                due = due.min(until);
            }
            if had_failed != hand_over.has_failed() {
                // A run reports and records this.
                inbox.pull();
            }
        }
        let beat = &options.heartbeat;
        let woken = inbox.wait(pace.earliest, pace.poll_from, due, cancel, beat);
        for note in inbox.take_notes() {
            let problem = Problem { code: note.code, uri: &note.uri, message: &note.message };
            observer.event(&Event::Notice(problem));
        }
        let notifications = match woken {
            Wakeup::Stopped => break,
            Wakeup::Changed => continue,
            Wakeup::Notified(notifications) => Some(notifications),
            // The next try of the command is due.
            Wakeup::Due if Instant::now() < poll_due => continue,
            Wakeup::Due => None,
        };
        if robots.is_stale() {
            robots = Arc::default();
        }
        let was_notified = notifications.is_some();
        let (is_live, notified) = (inbox.is_live(), inbox.count());
        pace.note_notified(notified);
        let wake = Wake {
            notifications: notifications.unwrap_or_default(),
            poll_from: was_notified.then_some(pace.poll_from),
            looks_again,
            is_held: true,
            handing: Handing::Caller {
                has_failed: hand_over.as_ref().is_some_and(HandOver::has_failed),
            },
        };
        if let Some(hand_over) = &mut hand_over {
            hand_over.note_run();
        }
        let begun = Instant::now();
        match sync_with(options, observer, cancel, &shared, &robots, wake, &mut choice) {
            Ok(mut ran) => {
                if ran.polling.is_postponed {
                    inbox.pull();
                }
                let was_behind = pace.is_behind;
                pace.ran(&ran, was_notified, begun);
                if looks_again {
                    // The old connection ends first, because it uses the port.
                    drop(pushing.take());
                    let listener = listen(options).unwrap_or_else(|error| {
                        report_notice(error.code(), &error.to_string());
                        None
                    });
                    pushing = Pushing::start(options, ran.announcement.take(), &inbox, listener)?;
                }
                let is_silent = is_live && !was_notified && inbox.count() == notified;
                looks_again = is_silent && !was_behind && ran.summary.has_changes();
                if looks_again {
                    report_notice("push.silent", SILENT);
                    pace.doubt(notified);
                }
                last = ran.summary;
                observer.attempted(None);
            }
            Err(error) if error.exit_code() == ExitCode::Cancelled => break,
            Err(error)
                if matches!(
                    error.exit_code(),
                    ExitCode::Retryable | ExitCode::SourceInvalid | ExitCode::Tls
                ) =>
            {
                let message = error.to_string();
                observer.event(&Event::Error(Problem {
                    code: error.code(),
                    uri: &options.url,
                    message: &message,
                }));
                observer.attempted(Some(&error));
                pace.failed(was_notified, begun);
            }
            Err(error) => return Err(error),
        }
    }
    drop(pushing);
    Ok(last)
}

/// The time of the next run.
struct Pace {
    interval: Duration,
    poll_pause: Duration,
    /// The end of the last run.
    ended: Instant,
    /// Notifications wait until this time, so that the pause after a run caused by a notification
    /// is as long as that run.
    earliest: Instant,
    /// Earliest time of a poll because of a notification.
    poll_from: Instant,
    /// Pause between polls.
    pause: Duration,
    /// A shorter pause, because changes are known to be missing.
    again: Option<Duration>,
    /// The last run did not complete its work.
    is_behind: bool,
    /// Set if changes were found without a notification: the number of notifications up to then.
    doubted_at: Option<u64>,
    share: u32,
}

impl Pace {
    fn new(options: &SyncOptions, ran: &Ran) -> Self {
        let now = Instant::now();
        let mut pace = Self {
            interval: options.interval,
            poll_pause: options.poll_pause,
            ended: now,
            earliest: now,
            poll_from: now,
            pause: options.interval,
            again: None,
            is_behind: false,
            doubted_at: None,
            share: 0,
        };
        pace.ran(ran, false, now);
        pace
    }

    /// When the lists are polled without a notification; spread by a tenth so that many copies do
    /// not poll at once.
    fn due(&self, is_live: bool) -> Instant {
        let usual = if is_live && !self.is_behind && self.doubted_at.is_none() {
            self.pause.saturating_mul(NOTIFIED_FACTOR)
        } else {
            self.pause
        };
        let pause = self.again.map_or(usual, |again| again.min(usual));
        self.ended + pause + pause / 10_000 * self.share
    }

    /// Notifications are missing although they were expected: the next run follows soon, and
    /// determines the address of announcements again.
    const fn doubt(&mut self, notified: u64) {
        (self.doubted_at, self.again) = (Some(notified), Some(AGAIN_PAUSE));
    }

    /// Ends the doubt about notifications if their number has increased.
    fn note_notified(&mut self, notified: u64) {
        self.doubted_at = self.doubted_at.filter(|before| *before == notified);
    }

    fn ended(&mut self, begun: Instant) {
        use std::hash::BuildHasher as _;
        self.ended = Instant::now();
        self.earliest = self.ended + (self.ended - begun);
        self.share = (std::hash::RandomState::new().hash_one(0) % 1_000) as u32;
    }

    fn ran(&mut self, ran: &Ran, was_notified: bool, begun: Instant) {
        if let Some(polled) = ran.polling.polled {
            self.poll_from = polled + self.poll_pause;
        }
        self.pause = self.interval.max(ran.fresh);
        self.is_behind = ran.is_behind || ran.summary.failed + ran.summary.held > 0;
        self.next_try(was_notified && self.is_behind);
        self.ended(begun);
    }

    fn failed(&mut self, was_notified: bool, begun: Instant) {
        self.poll_from = begun + self.poll_pause;
        self.pause = self.pause.saturating_mul(2).min(FOLLOW_PAUSE_MAX.max(self.interval));
        self.is_behind = true;
        self.next_try(was_notified);
        self.ended(begun);
    }

    /// `begins`: announced changes could not be applied.
    fn next_try(&mut self, begins: bool) {
        self.again = match self.again {
            _ if !self.is_behind => None,
            Some(again) => Some(again.saturating_mul(2)).filter(|again| *again < self.pause),
            None => begins.then_some(AGAIN_PAUSE),
        };
    }
}
