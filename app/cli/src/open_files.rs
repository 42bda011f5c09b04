//! The limit of open files, and the connections that fit into it.

use crate::errors::UsageError;
use abreast_webtypes::count_of;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors of a server without sets and connections: its stores, threads and hub.
const OWN: u64 = 40;
/// File descriptors of a set: its folder, the watch, and documents that are rendered.
const EACH_SET: u64 = 6;
/// File descriptors of a connection: the socket, and the file that is sent.
const EACH_CONNECTION: u64 = 2;
/// File descriptors of a followed copy: database, locks, folders, and a connection that waits for changes.
const EACH_COPY: u64 = 15;
/// File descriptors of a connection that fetches: the socket, the file that is written, and its thread's own.
const EACH_FETCH: u64 = 5;
/// Minimum number of connections for a server to start: half are for event streams, and some for uploads.
const CONNECTIONS_MIN: usize = 64;

/// Many connections and folders need many file descriptors: take all that the system allows.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// How many connections a server of so many sets has at a time, at most `most`: as the limit of open files allows.
///
/// # Errors
/// Too few files may be open for a server that stays reachable.
pub(crate) fn connections(sets: usize, most: usize) -> anyhow::Result<usize> {
    match getrlimit(Resource::Nofile).current {
        Some(files) => fit(files, sets as u64, most),
        None => Ok(most),
    }
}

/// The number of connections for each of `copies` copies that are followed in parallel, at most `most`. The process
/// divides its limit of open files into `parts` equal shares, and all copies together use one share.
///
/// # Errors
/// Too few files may be open for the copies.
pub(crate) fn fetches(copies: usize, parts: usize, most: usize) -> anyhow::Result<usize> {
    match getrlimit(Resource::Nofile).current {
        Some(files) => fetches_of(files, copies as u64, parts as u64, most),
        None => Ok(most),
    }
}

fn fetches_of(files: u64, copies: u64, parts: u64, most: usize) -> anyhow::Result<usize> {
    let (copies, parts) = (copies.max(1), parts.max(1));
    let each = (files.saturating_sub(OWN) / parts) / copies;
    let fitting = usize::try_from(each.saturating_sub(EACH_COPY) / EACH_FETCH).unwrap_or(most);
    if fitting == 0 {
        let needed = OWN + (EACH_COPY + EACH_FETCH) * copies * parts;
        let (copies, jobs) = (copies as usize, parts as usize);
        let what = match (copies, jobs) {
            (_, 1) => count_of(copies, "set"),
            (1, _) => count_of(jobs, "job"),
            _ => format!("{} in one of {}", count_of(copies, "set"), count_of(jobs, "job")),
        };
        let fewer = match (copies, jobs) {
            (_, 1) => "follow some sets alone, by `--set`",
            (1, _) => "name fewer jobs in one command",
            _ => "name fewer jobs in one command, or follow some sets alone, by `--set`",
        };
        return Err(UsageError(format!(
            "at most {files} files can be open: too few to follow {what} (help: allow {needed} files: \
             `ulimit -Hn`, or LimitNOFILE={needed} in a unit of systemd; or {fewer})"
        ))
        .into());
    }
    Ok(fitting.min(most))
}

fn fit(files: u64, sets: u64, most: usize) -> anyhow::Result<usize> {
    let needed = |connections: usize| OWN + EACH_SET * sets + EACH_CONNECTION * connections as u64;
    let allow = |connections: usize| {
        let files = needed(connections);
        format!("allow {files} files: `ulimit -Hn`, or LimitNOFILE={files} in a unit of systemd")
    };
    let fitting = fitting(files, sets);
    if fitting < CONNECTIONS_MIN {
        return Err(UsageError(format!(
            "at most {files} files can be open: too few for {sets} sets and {CONNECTIONS_MIN} connections (help: {})",
            allow(CONNECTIONS_MIN)
        ))
        .into());
    }
    if fitting < most {
        tracing::warn!(
            "at most {files} files can be open: at most {fitting} connections at a time (help: {})",
            allow(most)
        );
    }
    Ok(fitting.min(most))
}

fn fitting(files: u64, sets: u64) -> usize {
    let left = files.saturating_sub(OWN + EACH_SET * sets);
    usize::try_from(left / EACH_CONNECTION).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_what_sets_leave() {
        assert_eq!(fitting(100, 1), 27);
        assert_eq!(fitting(1_024, 1), 489);
        assert_eq!(fitting(1_024, 200), 0);
        assert!(fitting(20_000, 200) > 2_048);
        assert_eq!(fit(20_000, 200, 2_048).unwrap(), 2_048);
        assert_eq!(fit(1_024, 1, 2_048).unwrap(), 489);
        assert_eq!(fit(174, 1, 2_048).unwrap(), 64);
        assert_eq!(fetches_of(20_000, 200, 1, 8).unwrap(), 8);
        assert_eq!(fetches_of(5_040, 200, 1, 8).unwrap(), 2);
        assert_eq!(fetches_of(5_040, 10, 20, 8).unwrap(), 2);
        assert_eq!(fetches_of(4_040, 200, 1, 8).unwrap(), 1);
        let error = fetches_of(4_039, 200, 1, 8).unwrap_err().to_string();
        assert!(error.contains("LimitNOFILE=4040"), "{error}");
        for (copies, parts, what, fewer) in [
            (200, 1, "to follow 200 sets (", "or follow some sets alone"),
            (1, 20, "to follow 20 jobs (", "or name fewer jobs in one command)"),
            (9, 20, "9 sets in one of 20 jobs (", "or name fewer jobs in one command, or follow"),
        ] {
            let error = fetches_of(100, copies, parts, 8).unwrap_err().to_string();
            assert!(error.contains(what) && error.contains(fewer), "{error}");
        }
        let error = fit(173, 1, 2_048).unwrap_err().to_string();
        assert!(error.contains("LimitNOFILE=174"), "{error}");
    }
}
