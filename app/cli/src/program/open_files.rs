//! The limit of open files, and the connections of a server that fit into it.

use crate::program::errors::UsageError;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors of a server without sets and connections: its stores, threads, hub, and operators on a socket.
const OWN: u64 = 64;
/// File descriptors of a set: its folder, the watch, and documents that are rendered.
const EACH_SET: u64 = 6;
/// File descriptors of a connection: the socket, and the file that is sent.
const EACH_CONNECTION: u64 = 2;
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
        assert_eq!(fitting(100, 1), 15);
        assert_eq!(fitting(1_024, 1), 477);
        assert_eq!(fitting(1_024, 200), 0);
        assert!(fitting(20_000, 200) > 2_048);
        assert_eq!(fit(20_000, 200, 2_048).unwrap(), 2_048);
        assert_eq!(fit(1_024, 1, 2_048).unwrap(), 477);
        assert_eq!(fit(198, 1, 2_048).unwrap(), 64);
        let error = fit(197, 1, 2_048).unwrap_err().to_string();
        assert!(error.contains("LimitNOFILE=198"), "{error}");
    }
}
