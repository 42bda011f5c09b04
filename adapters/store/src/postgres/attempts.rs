//! Repeating a transaction while that may help, also if its commit was not answered.

use crate::postgres::failure::Failure;
use crate::postgres::problem::{DatabaseError, DatabaseProblem};
use crate::postgres::statements::Statements;
use abreast_core::{ErrorKind, LogError};
use std::time::{Duration, Instant};

/// How long a transaction is tried again while the database is out of reach.
const RETRY_LIMIT: Duration = Duration::from_secs(5);
/// How long it is tried again if its commit was not answered, because the answer decides whether
/// it is recorded.
const UNKNOWN_LIMIT: Duration = Duration::from_secs(30);
/// Pauses between two attempts.
const RETRY_PAUSES: [Duration; 2] = [Duration::from_millis(20), Duration::from_millis(500)];

/// How an attempt failed. `A` has its results, before it is known whether it was committed.
pub(crate) enum Failed<A> {
    /// Nothing is recorded.
    Undone(Failure),
    /// The commit was not answered.
    Unknown(Failure, Box<A>),
}

impl<A> From<Failure> for Failed<A> {
    fn from(failure: Failure) -> Self {
        Self::Undone(failure)
    }
}

/// A transaction before its commit, or the knowledge that an earlier one was committed.
pub(crate) enum Prepared<'c, A> {
    Write(Box<A>, Box<Statements<'c>>),
    Known,
}

/// Repeats the transactions of a writer.
#[derive(Default)]
pub(crate) struct Attempts {
    /// Whether the last attempt found the database out of reach: then a transaction is tried once.
    is_away: bool,
}

impl Attempts {
    /// Repeats a transaction while that may help. `attempt` gets the earlier attempt whose commit
    /// was not answered: it finds out whether that one is recorded, and returns it then.
    pub(crate) fn repeat<A>(
        &mut self,
        doing: &str,
        mut attempt: impl FnMut(&mut Option<Box<A>>) -> Result<Box<A>, Failed<A>>,
    ) -> Result<Box<A>, LogError> {
        const UNKNOWN: &str =
            "the changes may be recorded or not, the database did not answer their commit";
        let begun = Instant::now();
        let mut unknown: Option<Box<A>> = None;
        let mut lost: Option<Instant> = None;
        let mut pause = RETRY_PAUSES[0];
        loop {
            let failure = match attempt(&mut unknown) {
                Ok(attempt) => {
                    self.is_away = false;
                    return Ok(attempt);
                }
                Err(Failed::Undone(failure)) => failure,
                Err(Failed::Unknown(failure, attempt)) => {
                    unknown = Some(attempt);
                    lost.get_or_insert_with(Instant::now);
                    failure
                }
            };
            let (since, limit) = match lost {
                Some(lost) => (lost, UNKNOWN_LIMIT),
                None if self.is_away => (begun, Duration::ZERO),
                None => (begun, RETRY_LIMIT),
            };
            let is_passing = failure.is_passing();
            if !is_passing || since.elapsed() >= limit {
                self.is_away = is_passing;
                return Err(match unknown {
                    // Nobody may record the same again on the strength of the last failure.
                    Some(_) => {
                        LogError::new(ErrorKind::Unavailable, format!("{UNKNOWN}: {failure}"))
                            .with_cause(DatabaseError::new(
                                DatabaseProblem::Unreachable,
                                failure.to_string(),
                            ))
                    }
                    None => failure.into_error(doing),
                });
            }
            tracing::debug!("a transaction is tried again: {failure}");
            std::thread::sleep(pause);
            pause = (pause * 2).min(RETRY_PAUSES[1]);
        }
    }
}

/// Commits a prepared transaction.
pub(crate) fn commit<A>(
    prepared: Prepared<'_, A>,
    unknown: &mut Option<Box<A>>,
) -> Result<Box<A>, Failed<A>> {
    let (attempt, statements) = match prepared {
        Prepared::Write(attempt, statements) => (attempt, statements),
        Prepared::Known => return unknown.take().ok_or(Failed::Undone(Failure::Late)),
    };
    match statements.commit() {
        Ok(()) => Ok(attempt),
        // The server refused the commit, or no answer came.
        Err(failure) if failure.is_refusal() => Err(Failed::Undone(failure)),
        Err(failure) => Err(Failed::Unknown(failure, attempt)),
    }
}
