//! Steps of a start that need a store.

use crate::LogError;
use std::time::{Duration, Instant};

/// How long a step of a start is repeated.
const START_LIMIT: Duration = Duration::from_secs(5);
/// Pause between two attempts of a step.
const START_PAUSE: Duration = Duration::from_millis(100);

/// Repeats a step of a start, for five seconds, while the store is busy or out of reach. A lost
/// connection to a database that other nodes use does not end the start then.
///
/// # Errors
/// The last error of the step.
pub fn retry_at_start<T>(mut step: impl FnMut() -> Result<T, LogError>) -> Result<T, LogError> {
    let begin = Instant::now();
    loop {
        match step() {
            Err(error) if error.is_passing() && begin.elapsed() < START_LIMIT => {
                std::thread::sleep(START_PAUSE);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ErrorKind;

    #[test]
    fn a_step_is_repeated_while_its_failure_may_pass() {
        let mut attempts = 0;
        let mut fail = |kind| {
            attempts += 1;
            if attempts < 3 { Err(LogError::new(kind, "no")) } else { Ok(attempts) }
        };
        assert_eq!(retry_at_start(|| fail(ErrorKind::Unavailable)).unwrap(), 3);
        attempts = 0;
        let refused = retry_at_start(|| -> Result<(), LogError> {
            attempts += 1;
            Err(LogError::new(ErrorKind::Refused, "no"))
        });
        assert_eq!((refused.unwrap_err().kind(), attempts), (ErrorKind::Refused, 1));
    }
}
