//! Memory use of a server while many clients send or request large documents.

use crate::rdf::Place;
use crate::world::Source;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;

/// Most memory that 64 requests at once take, in MiB.
const MOST: u64 = 256;
const CLIENTS: usize = 64;

/// The resident memory of a process at its highest, in MiB.
fn peak(source: &Source) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", source.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() >> 10
}

fn forget_peak(source: &Source) {
    fs::write(format!("/proc/{}/clear_refs", source.pid()), "5").unwrap();
}

fn send(source: &Source, method: &str, path: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&source.address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n",
        source.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses the body may close while it is sent.
    let _ = stream.write_all(body);
    stream
}

fn status(mut stream: TcpStream) -> u16 {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let head = String::from_utf8_lossy(&answer[..answer.len().min(20)]).into_owned();
    head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default()
}

/// Sends the same request from many clients at once: their statuses, and the memory that the server took.
fn at_once(
    source: &Source,
    method: &str,
    path: impl Fn(usize) -> String + Sync,
    headers: &str,
    body: &[u8],
) -> (Vec<u16>, u64) {
    forget_peak(source);
    let before = peak(source);
    let statuses = thread::scope(|scope| {
        let path = &path;
        let client = |number| {
            scope.spawn(move || status(send(source, method, &path(number), headers, body)))
        };
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    (statuses, peak(source).saturating_sub(before))
}

fn entity(number: usize) -> String {
    format!("/api/v1/sets/set/resource?uri=http://e/{number}")
}

#[test]
fn many_readers_of_a_large_description_take_little_memory() {
    let place = Place::new();
    let source = place.serve_given();
    let mut turtle = String::from("<http://e/1>");
    for number in 0..3_000 {
        let _ = write!(turtle, " <http://p/p{number}> \"{}\" ;", "x".repeat(980));
    }
    turtle.pop();
    turtle.push('.');
    let put = send(&source, "PUT", &entity(1), "Content-Type: text/turtle\r\n", turtle.as_bytes());
    assert_eq!(status(put), 200);
    for accept in [
        "application/n-triples",
        "text/turtle",
        "application/rdf+xml",
        "application/ld+json",
        "text/html",
    ] {
        let headers = format!("Accept: {accept}\r\n");
        let path = |_| "/set/r/!iri/http%3A/!/e/1".to_owned();
        let (statuses, memory) = at_once(&source, "GET", path, &headers, b"");
        println!("{accept}: {memory} MiB");
        assert!(statuses.iter().all(|status| *status == 200), "{accept}: {statuses:?}");
        assert!(memory < MOST, "{accept}: {memory} MiB");
    }
}

#[test]
fn many_writers_of_poisonous_bodies_take_little_memory() {
    let place = Place::new();
    let source = place.serve_given();
    let long = "x".repeat(100_000);
    let mut prefixes = format!("@prefix p: <http://e/{long}> .\n");
    for number in 0..20_000 {
        let _ = writeln!(prefixes, "<> p:p{number} p:o .");
    }
    let mut keys = format!("{{\"@context\":{{\"@vocab\":\"http://e/{long}\"}}");
    for number in 0..20_000 {
        let _ = write!(keys, ",\"k{number}\":1");
    }
    keys.push('}');
    let nodes = format!("{{\"http://p\":[{}{{}}]}}", "{},".repeat(300_000));
    let items = format!("<> <http://p> {} 1 .", "1,".repeat(200_000));
    for (name, content_type, body) in [
        ("prefixes", "text/turtle", prefixes),
        ("keys", "application/ld+json", keys),
        ("nodes", "application/ld+json", nodes),
        ("items", "text/turtle", items),
    ] {
        let headers = format!("Content-Type: {content_type}\r\n");
        let (statuses, memory) = at_once(&source, "PUT", entity, &headers, body.as_bytes());
        println!("{name}: {memory} MiB {:?}", &statuses[..4]);
        assert!(memory < MOST, "{name}: {memory} MiB");
        assert!(statuses.iter().all(|status| matches!(status, 200 | 422)), "{name}: {statuses:?}");
    }
}

#[test]
fn many_batches_of_nothing_take_little_memory() {
    let place = Place::new();
    let config = place.path("abreast.toml");
    let text = format!(
        "data = {:?}\n[api]\nwrite = true\n[[set]]\nname = \"records\"\nrecords = true\n",
        place.path("data")
    );
    fs::write(&config, text).unwrap();
    let source = Source::start_config(config.to_str().unwrap());
    let body = format!("[{}{{}}]", "{},".repeat(1_000_000));
    let path = |_| "/api/v1/sets/records/changes".to_owned();
    let headers = "Content-Type: application/json\r\n";
    let (statuses, memory) = at_once(&source, "POST", path, headers, body.as_bytes());
    println!("{memory} MiB {:?}", &statuses[..4]);
    assert!(memory < MOST, "{memory} MiB");
    assert!(statuses.iter().all(|status| *status != 200), "{statuses:?}");
}
