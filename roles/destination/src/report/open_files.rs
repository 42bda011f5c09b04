//! The parallel requests of copies that are followed in parallel, by the limit of open files.

use abreast_webtypes::count_of;
use rustix::process::{Resource, getrlimit};

/// File descriptors of a process in addition to the descriptors of its copies: threads, logs, standard streams.
const OWN: u64 = 40;
/// File descriptors of a followed copy: database, locks, folders, and a connection that waits for changes.
const EACH_COPY: u64 = 15;
/// File descriptors of a request in parallel: the socket, the file that is written, and its thread's own.
const EACH_FETCH: u64 = 5;

/// Too few files may be open to follow all copies in parallel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct TooFewFiles {
    files: u64,
    copies: usize,
    shares: usize,
}

impl TooFewFiles {
    /// The number of open files that is enough for one connection of each copy.
    pub const fn needed(&self) -> u64 {
        OWN + (EACH_COPY + EACH_FETCH) * self.copies as u64 * self.shares as u64
    }
}

impl std::fmt::Display for TooFewFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { files, copies, shares } = *self;
        let what = match (copies, shares) {
            (_, 1) => count_of(copies, "set"),
            (1, _) => count_of(shares, "job"),
            _ => format!("{} in one of {}", count_of(copies, "set"), count_of(shares, "job")),
        };
        let fewer = match (copies, shares) {
            (_, 1) => "follow some sets alone, by `--set`",
            (1, _) => "name fewer jobs in one command",
            _ => "name fewer jobs in one command, or follow some sets alone, by `--set`",
        };
        let needed = self.needed();
        write!(
            f,
            "at most {files} files can be open: too few to follow {what} (help: allow {needed} files: \
             `ulimit -Hn`, or LimitNOFILE={needed} in a unit of systemd; or {fewer})"
        )
    }
}

/// The largest number of parallel requests of each of `copies` copies that are followed in parallel. The process
/// divides its limit of open files into `shares` equal parts, and all copies together use one of them.
///
/// # Errors
/// Too few files may be open for the copies.
pub fn requests_of_copies(copies: usize, shares: usize) -> Result<usize, TooFewFiles> {
    match getrlimit(Resource::Nofile).current {
        Some(files) => fitting(files, copies.max(1), shares.max(1)),
        None => Ok(usize::MAX),
    }
}

fn fitting(files: u64, copies: usize, shares: usize) -> Result<usize, TooFewFiles> {
    let each = (files.saturating_sub(OWN) / shares as u64) / copies as u64;
    match usize::try_from(each.saturating_sub(EACH_COPY) / EACH_FETCH).unwrap_or(usize::MAX) {
        0 => Err(TooFewFiles { files, copies, shares }),
        fitting => Ok(fitting),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_copies_leave() {
        assert_eq!(fitting(20_000, 200, 1), Ok(16));
        assert_eq!(fitting(5_040, 200, 1), Ok(2));
        assert_eq!(fitting(5_040, 10, 20), Ok(2));
        assert_eq!(fitting(4_040, 200, 1), Ok(1));
        let error = fitting(4_039, 200, 1).unwrap_err().to_string();
        assert!(error.contains("LimitNOFILE=4040"), "{error}");
        for (copies, shares, what, fewer) in [
            (200, 1, "to follow 200 sets (", "or follow some sets alone"),
            (1, 20, "to follow 20 jobs (", "or name fewer jobs in one command)"),
            (9, 20, "9 sets in one of 20 jobs (", "or name fewer jobs in one command, or follow"),
        ] {
            let error = fitting(100, copies, shares).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(fewer), "{error}");
        }
    }
}
