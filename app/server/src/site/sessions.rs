//! Sessions of administrators, in memory or in a record that several nodes share.
//!
//! The record has the digests of the identifiers, so nobody who reads the database can continue a
//! session. A node reads the record again when a request needs it, at most twice a second, or for an
//! unknown session ten times a second.

use super::tokens::{digest_of, random_text};
use abreast_core::{Clock as _, Records, SystemClock};
use abreast_folder::{sealed, unsealed};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after which an administrator signs in again.
pub(crate) const SESSION_AGE: Duration = Duration::from_secs(12 * 3_600);
/// Most sessions of administrators; when there are more, the oldest ends.
const SESSIONS_MAX: usize = 1_000;
/// Pause between two lines of the log about refused attempts to sign in.
const REPORT_PAUSE: Duration = Duration::from_secs(60);
/// Name of the record with the sessions of all nodes.
const RECORD: &str = "sessions";
/// Age at which known sessions are read again.
const KNOWN_AGE: Duration = Duration::from_millis(500);
/// Age at which known sessions are read again if they lack the session of a request.
const UNKNOWN_AGE: Duration = Duration::from_millis(100);
/// Most attempts to change the record while other nodes change it as well.
const ATTEMPTS: usize = 20;

/// The record that all nodes share; `None` if there is one server.
pub(crate) type SharedRecords = Option<Arc<dyn Records>>;

/// The sessions of a server, the oldest first, and the refused attempts.
#[derive(Default)]
pub(crate) struct Sessions {
    known: Mutex<Known>,
    refused: Mutex<Refused>,
}

#[derive(Default)]
struct Known {
    open: VecDeque<Session>,
    /// Number of the record with these sessions, and the time of the last attempt to read it.
    revision: u64,
    looked: Option<Instant>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
struct Session {
    /// Digest of the identifier.
    id: String,
    /// Digest of the token, as in the file of tokens.
    token: String,
    /// Time of the sign-in, in microseconds since 1970.
    started: i64,
}

#[derive(Default)]
struct Refused {
    reported: Option<Instant>,
    since: u64,
}

impl Known {
    fn find(&self, digest: &str) -> Option<&Session> {
        let oldest = oldest_start();
        self.open.iter().find(|session| session.id == digest && session.started > oldest)
    }
}

impl Sessions {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a session for the token with this digest, and returns its identifier. Blocks if the
    /// sessions are shared.
    ///
    /// # Errors
    /// The system has no random numbers, or the shared record cannot be changed.
    pub(crate) fn start(&self, shared: &SharedRecords, token: &str) -> io::Result<String> {
        let id = random_text()?;
        let (digest, started) = (digest_of(&id), SystemClock.now().as_micros());
        self.change(shared, |open| {
            let oldest = oldest_start();
            open.retain(|session| session.started > oldest);
            while open.len() >= SESSIONS_MAX {
                open.pop_front();
            }
            open.push_back(Session { id: digest.clone(), token: token.to_owned(), started });
        })?;
        Ok(id)
    }

    /// The digest of the token of a session. Blocks if the sessions are shared.
    pub(crate) fn token(&self, shared: &SharedRecords, id: &str) -> Option<String> {
        let digest = digest_of(id);
        if let Some(records) = shared {
            let is_due = {
                let mut known = self.known();
                let age = if known.find(&digest).is_some() { KNOWN_AGE } else { UNKNOWN_AGE };
                let is_due = known.looked.is_none_or(|looked| looked.elapsed() >= age);
                if is_due {
                    // Other requests meanwhile use the known sessions.
                    known.looked = Some(Instant::now());
                }
                is_due
            };
            if is_due && let Err(error) = self.read(&**records) {
                tracing::warn!("cannot read the sessions of administrators again: {error}");
            }
        }
        self.known().find(&digest).map(|session| session.token.clone())
    }

    /// Ends a session. Blocks if the sessions are shared.
    ///
    /// # Errors
    /// The shared record cannot be changed: the session may be open on other nodes.
    pub(crate) fn end(&self, shared: &SharedRecords, id: &str) -> io::Result<()> {
        let digest = digest_of(id);
        self.change(shared, |open| open.retain(|session| session.id != digest))
    }

    /// Changes the sessions of all nodes.
    fn change(
        &self,
        shared: &SharedRecords,
        change: impl Fn(&mut VecDeque<Session>),
    ) -> io::Result<()> {
        change(&mut self.known().open);
        let Some(records) = shared else { return Ok(()) };
        for _ in 0..ATTEMPTS {
            let (revision, before) = stored(&**records)?;
            let mut open = before.clone();
            change(&mut open);
            if open == before {
                return Ok(());
            }
            let text = sealed(serde_json::to_vec(&open)?);
            if records.replace_record(RECORD, revision, &text).map_err(io::Error::other)? {
                // A request that read the former record meanwhile has replaced the known sessions.
                self.known().looked = None;
                return Ok(());
            }
        }
        Err(io::Error::other("other nodes change the sessions at the same time"))
    }

    /// Reads the sessions of all nodes, if they have changed.
    fn read(&self, records: &dyn Records) -> io::Result<()> {
        let newest = records.record_revision(RECORD).map_err(io::Error::other)?;
        if newest == self.known().revision {
            return Ok(());
        }
        let (revision, open) = stored(records)?;
        let mut known = self.known();
        (known.revision, known.open) = (revision, open);
        Ok(())
    }

    /// Counts a refused attempt. Returns the number of attempts to report, at most once a minute.
    pub(crate) fn refuse(&self) -> Option<u64> {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.since += 1;
        if refused.reported.is_some_and(|time| time.elapsed() < REPORT_PAUSE) {
            return None;
        }
        refused.reported = Some(Instant::now());
        Some(std::mem::take(&mut refused.since))
    }
}

/// Sessions that started before this time are over.
fn oldest_start() -> i64 {
    SystemClock.now().as_micros() - SESSION_AGE.as_micros() as i64
}

/// The stored sessions, and the number of their record. Damaged ones are replaced by the next sign-in.
fn stored(records: &dyn Records) -> io::Result<(u64, VecDeque<Session>)> {
    let Some(record) = records.record(RECORD).map_err(io::Error::other)? else {
        return Ok((0, VecDeque::new()));
    };
    let open = unsealed(&record.bytes).and_then(|text| Ok(serde_json::from_slice(text)?));
    let open = open.unwrap_or_else(|error| {
        tracing::error!(
            "administrators sign in again, since the record of sessions is damaged: {error}"
        );
        VecDeque::new()
    });
    Ok((record.revision, open))
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_core::testing::MemoryRecords;

    #[test]
    fn sessions_end_and_are_limited() {
        let sessions = Sessions::default();
        let start = |token: &str| sessions.start(&None, token).unwrap();
        let first = start("a");
        let second = start("b");
        assert_eq!(sessions.token(&None, &second).as_deref(), Some("b"));
        sessions.end(&None, &second).unwrap();
        assert_eq!((sessions.token(&None, &second), sessions.token(&None, "")), (None, None));
        for _ in 1..SESSIONS_MAX {
            start("c");
        }
        assert!(sessions.token(&None, &first).is_some());
        start("c");
        assert!(sessions.token(&None, &first).is_none());
    }

    #[test]
    fn sessions_end_after_their_time() {
        let sessions = Sessions::default();
        let id = sessions.start(&None, "a").unwrap();
        sessions.known().open[0].started = oldest_start();
        assert!(sessions.token(&None, &id).is_none());
        sessions.start(&None, "b").unwrap();
        assert_eq!(sessions.known().open.len(), 1);
    }

    #[test]
    fn sessions_are_valid_on_all_nodes() {
        let records = Arc::new(MemoryRecords::default());
        let shared: SharedRecords = Some(Arc::clone(&records) as _);
        let (one, two) = (Sessions::default(), Sessions::default());
        let first = one.start(&shared, "a").unwrap();
        assert_eq!(two.token(&shared, &first).as_deref(), Some("a"));
        let second = two.start(&shared, "b").unwrap();
        std::thread::sleep(UNKNOWN_AGE);
        assert_eq!(one.token(&shared, &second).as_deref(), Some("b"));
        let text = records.record(RECORD).unwrap().unwrap().bytes;
        assert!(!String::from_utf8(text).unwrap().contains(&first), "the record has no secret");
        one.end(&shared, &second).unwrap();
        assert_eq!(one.token(&shared, &second), None);
        std::thread::sleep(KNOWN_AGE);
        assert_eq!(two.token(&shared, &second), None);
        assert_eq!(two.token(&shared, &first).as_deref(), Some("a"));

        // While the record cannot be read, the known sessions are valid.
        records.fail(true);
        std::thread::sleep(KNOWN_AGE);
        assert_eq!(two.token(&shared, &first).as_deref(), Some("a"));
        assert!(two.start(&shared, "c").is_err() && two.end(&shared, &first).is_err());
        records.fail(false);
        std::thread::sleep(KNOWN_AGE);
        assert_eq!(one.token(&shared, &first).as_deref(), Some("a"));
        let revision = records.record_revision(RECORD).unwrap();
        assert!(records.replace_record(RECORD, revision, b"damaged").unwrap());
        std::thread::sleep(KNOWN_AGE);
        assert_eq!(one.token(&shared, &first), None);
        let third = one.start(&shared, "d").unwrap();
        std::thread::sleep(UNKNOWN_AGE);
        assert_eq!(two.token(&shared, &third).as_deref(), Some("d"));
    }

    #[test]
    fn refused_attempts_are_reported_once_a_minute() {
        let sessions = Sessions::default();
        assert_eq!(sessions.refuse(), Some(1));
        assert_eq!([sessions.refuse(), sessions.refuse()], [None, None]);
    }
}
