//! The command that is given the changes of a copy.

use abreast_store::mirror::WAITING_CHANGES_MAX;
use std::time::Duration;

/// Changes that one run of the command is given, by default.
const BATCH: usize = 1_000;
/// Duration after which the command is ended, by default.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Pause after the first failure, by default.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// A command that is given the changes of a copy as JSON lines on standard input, after they were
/// applied and their rows stored.
///
/// Each change is given at least once, and changes of a resource in their order. A change that the
/// command did not accept with exit code 0 waits in the database of the copy. From the first run
/// with a command on, all runs of the copy record changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnChange {
    /// The command, for `sh -c`.
    pub command: String,
    /// Longest duration of a run of the command; then its process group gets SIGTERM, and SIGKILL 10
    /// seconds later. Default 10 minutes.
    pub timeout: Duration,
    /// Most changes that one run of the command is given. Default 1,000.
    pub batch: usize,
    /// The name of the job, for the variable `ABREAST_JOB`.
    pub job: Option<String>,
    /// Pause after the first failure; each further pause is twice as long, up to 5 minutes. Default
    /// 1 second.
    pub first_pause: Duration,
    /// Most changes that wait. With one more, all are deleted, and the command is given one object
    /// with the type `overflow`. Default 1,000,000.
    pub waiting_max: u64,
}

impl OnChange {
    /// A command with the default limits.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            timeout: TIMEOUT,
            batch: BATCH,
            job: None,
            first_pause: FIRST_PAUSE,
            waiting_max: WAITING_CHANGES_MAX,
        }
    }
}
