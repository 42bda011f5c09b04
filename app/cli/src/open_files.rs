//! The limit of open files, and the connections that fit into it.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// File descriptors of a server without sets and connections: its stores, threads and hub.
const OWN: u64 = 40;
/// File descriptors of a set: its folder, the watch, and documents that are rendered.
const EACH_SET: u64 = 6;
/// File descriptors of a connection: the socket, and the file that is sent.
const EACH_CONNECTION: u64 = 2;
/// Connections of a server, however few files it may open.
const CONNECTIONS_MIN: usize = 8;

/// Many connections and folders need many file descriptors: take all that the system allows.
pub(crate) fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// How many connections a server of so many sets has at a time, at most `most`: as the limit of open files allows.
pub(crate) fn connections(sets: usize, most: usize) -> usize {
    let Some(files) = getrlimit(Resource::Nofile).current else { return most };
    let fitting = fitting(files, sets as u64);
    if fitting < most {
        let needed = OWN + EACH_SET * sets as u64 + EACH_CONNECTION * most as u64;
        tracing::warn!(
            "at most {files} files can be open: at most {} connections at a time (help: allow {needed} files: \
             `ulimit -Hn`, or LimitNOFILE= in a unit of systemd)",
            fitting.max(CONNECTIONS_MIN)
        );
    }
    fitting.clamp(CONNECTIONS_MIN, most)
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
    }
}
