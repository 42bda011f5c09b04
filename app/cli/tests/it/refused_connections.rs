//! Connections that a server refuses or cannot accept are counted in its metrics.

use crate::world::Source;
use abreast_testkit::eventually;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::process::Command;

/// The connections of a server with so many open files.
const CONNECTIONS: usize = 64;
const FILES: &str = "ulimit -n 174; exec \"$0\" \"$@\"";

/// The value of a counter; 0 without it.
fn counted(source: &Source, name: &str) -> Option<u64> {
    let text = String::from_utf8(source.get("/metrics")?).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    Some(value.map_or(0, |value| value.parse().unwrap()))
}

#[test]
fn refused_and_failed_connections_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("large"), vec![b'x'; 16 << 20]).unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", FILES, env!("CARGO_BIN_EXE_abreast")]);
    command.args(["serve", folder.to_str().unwrap(), "--listen", "127.0.0.1:0", "--name", "set"]);
    let source = Source::run(&mut command);
    let (refused, failed) = ("abreast_connections_refused_total", "abreast_accept_errors_total");
    assert_eq!((counted(&source, refused), counted(&source, failed)), (Some(0), Some(0)));

    // One address takes all places with requests in flight, and more come than may wait.
    let held: Vec<_> = (0..CONNECTIONS * 2)
        .map(|_| {
            let mut stream = TcpStream::connect(&source.address).unwrap();
            let _ = stream.write_all(b"GET /set/r/large HTTP/1.1\r\nHost: x\r\n\r\n");
            stream
        })
        .collect();
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(held);
    eventually("refused connections are counted", || {
        counted(&source, refused).is_some_and(|count| count > 0)
    });
    assert_eq!(counted(&source, failed), Some(0), "all of them were accepted");

    // No file can be opened: the connection waits until one can.
    let pid = Pid::from_raw(source.pid().try_into().unwrap());
    let limit = |files| Rlimit { current: Some(files), maximum: Some(174) };
    let waiting = {
        prlimit(pid, Resource::Nofile, limit(3)).unwrap();
        let waiting = TcpStream::connect(&source.address).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        prlimit(pid, Resource::Nofile, limit(174)).unwrap();
        waiting
    };
    eventually("errors of accepting are counted", || {
        counted(&source, failed).is_some_and(|count| count > 0)
    });
    drop(waiting);
}
