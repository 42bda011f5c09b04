//! Connections that a server cannot accept, or refuses: both are counted at `/metrics`.

use crate::world::{Source, get};
use abreast_testkit::eventually;
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

/// The value of a counter; 0 if it is not there yet.
fn counter(source: &Source, name: &str) -> u64 {
    let metrics = source.get("/metrics").unwrap_or_default();
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map_or(0, |value| value.trim().parse().unwrap())
}

#[test]
fn connections_that_cannot_be_accepted_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let (folder, log) = (place.path().join("papers"), place.path().join("log"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("a.txt"), "a").unwrap();
    let source = Source::start_logged(&folder, &log, &[]);
    eventually("it answers", || source.get("/metrics").is_some());
    assert_eq!(counter(&source, "abreast_accept_errors_total"), 0);
    // Fewer files than are open already: the next connection has no descriptor. The soft limit only, to be raised again.
    let pid = Pid::from_child(&source.child.0);
    let before = limit_files_of(pid, 1);
    let waiting = TcpStream::connect(&source.address).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    prlimit(Some(pid), Resource::Nofile, before).unwrap();
    // Each attempt is counted, once in 100 ms; the message is there once.
    let mut counted = 0;
    eventually("the attempts are counted", || {
        counted = counter(&source, "abreast_accept_errors_total");
        counted >= 2
    });
    assert!(counted <= 50, "{counted}");
    let log = fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("cannot accept connections: ").count(), 1, "{log}");
    assert!(log.contains("they wait until others end"), "{log}");
    // The client that waited is served.
    assert_eq!(answer(waiting), "HTTP/1.1 200 OK");
    let after = counter(&source, "abreast_accept_errors_total");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(counter(&source, "abreast_accept_errors_total"), after);
}

/// Lowers the limit of open files of a process; the one before.
fn limit_files_of(pid: Pid, files: u64) -> Rlimit {
    let before = prlimit(
        Some(pid),
        Resource::Nofile,
        Rlimit {
            current: Some(files),
            maximum: rustix::process::getrlimit(Resource::Nofile).maximum,
        },
    );
    before.unwrap()
}

fn answer(mut client: TcpStream) -> String {
    client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn refused_connections_are_counted() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("papers");
    fs::create_dir(&folder).unwrap();
    // Large enough that an answer does not fit into the buffers of a connection whose client does not read.
    fs::write(folder.join("a.bin"), vec![b'a'; 32 << 20]).unwrap();
    // 200 files are enough for 64 to 68 connections, of which 8 may wait.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 200; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_abreast")]);
    command.args(["serve", "--listen", "127.0.0.1:0", "--name", "set"]).arg(&folder);
    let source = Source::run(command.env("ABREAST_LOG_FORMAT", "text"));
    let path = "/set/r/a.bin";
    assert_eq!(get(&source.address, "/metrics").unwrap().0, 200);
    assert_eq!(counter(&source, "abreast_connections_refused_total"), 0);
    assert_eq!(get(&source.address, path).unwrap().0, 200);
    // A connection whose request is not read yet would be closed to make room, which is not a refusal: each client
    // waits for the begin of its answer, for the end of its connection, or some time if the connection has to wait.
    let (mut busy, mut closed) = (Vec::new(), 0);
    for _ in 0..100 {
        let mut client = TcpStream::connect(&source.address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", source.address);
        let _ = client.write_all(request.as_bytes());
        client.set_read_timeout(Some(Duration::from_secs(2))).unwrap();
        let begin = client.peek(&mut [0]);
        let waits = matches!(&begin, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock);
        if matches!(begin, Ok(1)) || waits {
            busy.push(client);
        } else {
            closed += 1;
        }
    }
    assert!(closed > 0, "none was refused");
    drop(busy);
    // Until the server has noticed that the others ended, it refuses this connection too.
    let mut refused_readings = 0;
    eventually("the metrics are readable", || {
        let is_readable = source.get("/metrics").is_some();
        refused_readings += u64::from(!is_readable);
        is_readable
    });
    assert_eq!(counter(&source, "abreast_connections_refused_total"), closed + refused_readings);
}
