//! Sessions of administrators, in memory.

use super::tokens::random_text;
use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time after which an administrator signs in again.
pub(crate) const SESSION_AGE: Duration = Duration::from_secs(12 * 3_600);
/// Most sessions of administrators; when there are more, the oldest ends.
const SESSIONS_MAX: usize = 1_000;
/// Pause between two lines of the log about refused attempts to sign in.
const REPORT_PAUSE: Duration = Duration::from_secs(60);

/// The sessions of a server, the oldest first, and the refused attempts.
#[derive(Default)]
pub(crate) struct Sessions {
    open: Mutex<VecDeque<Session>>,
    refused: Mutex<Refused>,
}

struct Session {
    id: String,
    /// Digest of the token, as in the file of tokens.
    token: String,
    started: Instant,
}

#[derive(Default)]
struct Refused {
    reported: Option<Instant>,
    since: u64,
}

impl Sessions {
    fn open(&self) -> MutexGuard<'_, VecDeque<Session>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while open.front().is_some_and(|session| session.started.elapsed() >= SESSION_AGE) {
            open.pop_front();
        }
        open
    }

    /// Starts a session for the token with this digest, and returns its identifier.
    pub(crate) fn start(&self, token: &str) -> io::Result<String> {
        let id = random_text()?;
        let mut open = self.open();
        if open.len() >= SESSIONS_MAX {
            open.pop_front();
        }
        open.push_back(Session {
            id: id.clone(),
            token: token.to_owned(),
            started: Instant::now(),
        });
        Ok(id)
    }

    /// The digest of the token of a session.
    pub(crate) fn token(&self, id: &str) -> Option<String> {
        self.open().iter().find(|session| session.id == id).map(|session| session.token.clone())
    }

    pub(crate) fn end(&self, id: &str) {
        self.open().retain(|session| session.id != id);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_end_and_are_limited() {
        let sessions = Sessions::default();
        let first = sessions.start("a").unwrap();
        let second = sessions.start("b").unwrap();
        assert_eq!(sessions.token(&second).as_deref(), Some("b"));
        sessions.end(&second);
        assert_eq!((sessions.token(&second), sessions.token("")), (None, None));
        for _ in 1..SESSIONS_MAX {
            sessions.start("c").unwrap();
        }
        assert!(sessions.token(&first).is_some());
        sessions.start("c").unwrap();
        assert!(sessions.token(&first).is_none());
    }

    #[test]
    fn refused_attempts_are_reported_once_a_minute() {
        let sessions = Sessions::default();
        assert_eq!(sessions.refuse(), Some(1));
        assert_eq!([sessions.refuse(), sessions.refuse()], [None, None]);
    }
}
