//! The heads that were read last, for documents while the database cannot be reached.

use abreast_core::{ErrorKind, Head, LogError, SetId};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Time without further attempts after the database could not be reached. An attempt takes two
/// seconds.
const PAUSE: Duration = Duration::from_secs(1);

/// The heads that were read last.
#[derive(Default)]
pub(crate) struct LastHeads(Mutex<State>);

#[derive(Default)]
struct State {
    /// Heads, each with the number of its request.
    heads: HashMap<SetId, (u64, Head)>,
    /// Number of the last request.
    requests: u64,
    /// The database is not asked before this time.
    away_until: Option<Instant>,
}

impl LastHeads {
    /// The head that `read` returns; the last one, if the database cannot be reached.
    pub(crate) fn read(
        &self,
        set: SetId,
        read: impl FnOnce() -> Result<Head, LogError>,
    ) -> Result<Head, LogError> {
        let number = {
            let mut state = self.lock();
            state.requests += 1;
            state.requests
        };
        let answer = self.ask(read);
        let mut state = self.lock();
        match &answer {
            Ok(head) => {
                let last = state.heads.entry(set).or_insert((number, *head));
                // Answers to requests at the same time come in any order.
                if last.0 <= number {
                    *last = (number, *head);
                }
            }
            Err(error) if error.is_passing() => {
                if let Some((_, last)) = state.heads.get(&set) {
                    return Ok(*last);
                }
            }
            Err(_) => {}
        }
        answer
    }

    /// Asks the database, unless it could not be reached a moment ago.
    pub(crate) fn ask<T>(&self, ask: impl FnOnce() -> Result<T, LogError>) -> Result<T, LogError> {
        if self.lock().away_until.is_some_and(|until| Instant::now() < until) {
            return Err(LogError::new(ErrorKind::Unavailable, "the database cannot be reached"));
        }
        let answer = ask();
        let is_away = matches!(&answer, Err(error) if error.is_passing());
        self.lock().away_until = is_away.then(|| Instant::now() + PAUSE);
        answer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_answer_does_not_replace_a_later_one() {
        let heads = LastHeads::default();
        let set = SetId(1);
        let head = |resources| Head { resources, ..Head::default() };
        let slow = || {
            heads.read(set, || Ok(head(2))).unwrap();
            Ok(head(1))
        };
        assert_eq!(heads.read(set, slow).unwrap().resources, 1);
        let away = || Err(LogError::new(ErrorKind::Unavailable, "away"));
        assert_eq!(heads.read(set, away).unwrap().resources, 2);
        // After a failover, the last answer is valid, although it has fewer changes.
        std::thread::sleep(PAUSE);
        heads.read(set, || Ok(head(0))).unwrap();
        assert_eq!(heads.read(set, away).unwrap().resources, 0);
    }

    #[test]
    fn the_last_head_is_used_while_the_database_is_away() {
        let heads = LastHeads::default();
        let set = SetId(1);
        let away = || Err(LogError::new(ErrorKind::Unavailable, "away"));
        assert!(heads.read(set, away).is_err(), "there is no last one");
        std::thread::sleep(PAUSE);
        let head = Head { resources: 3, ..Head::default() };
        assert_eq!(heads.read(set, || Ok(head)).unwrap().resources, 3);
        assert_eq!(heads.read(set, away).unwrap().resources, 3);
        let asked = heads.read(set, || panic!("it is not asked so soon"));
        assert_eq!(asked.unwrap().resources, 3);
        assert!(heads.ask(|| Ok(())).is_err(), "nor for anything else");
        std::thread::sleep(PAUSE);
        let refused = || Err(LogError::new(ErrorKind::Refused, "there is no such set"));
        assert!(heads.read(set, refused).is_err());
        assert!(heads.ask(|| Ok(())).is_ok());
    }
}
