//! Endpoints, graph stores and receivers that fail in the ways of networks and servers.

use crate::copy::Copy;
use crate::rdf::{endpoint, in_endpoint, in_receiver};
use crate::source::Source;
use abreast_destination::{Graph, GraphStoreOptions, PushOptions, SinkOptions, SparqlOptions};
use abreast_testkit::http::{Server, answer, client_left, read_head, redirect};
use oxigraph::model::{Quad, Term};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What happens to a request that changes something.
#[derive(Clone, Debug)]
enum Failure {
    /// The request is not carried out; this is the response.
    Answer(String),
    /// The connection ends in the middle of the body.
    Cut,
    /// The request is carried out; this is the response.
    Applied(String),
    /// The request is carried out, and its response never ends.
    Endless,
    /// The request is not carried out, and the response with the reason never ends.
    EndlessRefusal,
    /// The request is carried out, and the response is slow.
    Slow,
}

/// Which requests fail.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    Once,
    Always,
}

/// A server before the endpoint, on which requests fail while there is a failure.
fn failing(failure: &Arc<Mutex<Option<Failure>>>, when: When) -> Server {
    let to = endpoint().url().trim_start_matches("http://").split('/').next().unwrap().to_owned();
    let failure = Arc::clone(failure);
    Server::raw(move |mut stream| {
        while let Some(head) = read_head(&mut stream) {
            let changes = !head.starts_with("GET ") && !head.starts_with("POST /query ");
            let failure = match when {
                _ if !changes => None,
                When::Once => failure.lock().unwrap().take(),
                When::Always => failure.lock().unwrap().clone(),
            };
            if let Some(Failure::Cut) = failure {
                return;
            }
            let mut body = vec![0; length_of(&head)];
            stream.read_exact(&mut body).unwrap();
            if !answered(failure, &[head.as_bytes(), &body].concat(), &to, &mut stream) {
                return;
            }
        }
    })
}

fn length_of(head: &str) -> usize {
    let head = head.to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    length.map_or(0, |length| length.trim().parse().unwrap())
}

/// Sends an answer; whether the connection is still good.
fn answered(failure: Option<Failure>, request: &[u8], to: &str, stream: &mut TcpStream) -> bool {
    let endless = |status: &str, stream: &mut TcpStream| {
        let head = format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n");
        let piece = format!("10000\r\n{}\r\n", "x".repeat(0x10000));
        let _ = stream.write_all(head.as_bytes());
        while stream.write_all(piece.as_bytes()).is_ok() {}
        false
    };
    match failure {
        Some(Failure::Answer(text)) => return stream.write_all(text.as_bytes()).is_ok(),
        Some(Failure::EndlessRefusal) => return endless("400 Bad Request", stream),
        _ => {}
    }
    let mut forwarded = TcpStream::connect(to).unwrap();
    forwarded.write_all(request).unwrap();
    let head = read_head(&mut forwarded).unwrap();
    let mut body = vec![0; length_of(&head)];
    forwarded.read_exact(&mut body).unwrap();
    match failure {
        Some(Failure::Endless) => endless("200 OK", stream),
        Some(Failure::Applied(text)) => stream.write_all(text.as_bytes()).is_ok(),
        Some(Failure::Slow) => {
            let is_over = client_left(stream, Duration::from_millis(200));
            let pieces = [head.as_bytes(), &body].concat();
            !is_over
                && pieces.chunks(40).all(|piece| {
                    stream.write_all(piece).is_ok()
                        && !client_left(stream, Duration::from_millis(10))
                })
                && stream.set_read_timeout(None).is_ok()
        }
        _ => stream.write_all(&[head.as_bytes(), &body].concat()).is_ok(),
    }
}

/// A copy by each service, behind such a server; whether the service is a receiver.
fn sinks(server: &Server) -> [(SinkOptions, bool); 3] {
    let (url, graph) = (server.url("/update"), Graph::Default);
    [
        (SinkOptions::Sparql(SparqlOptions { url, query_url: None, graph }), false),
        (SinkOptions::GraphStore(GraphStoreOptions { url: server.url("/data") }), false),
        (SinkOptions::Push(PushOptions { url: server.url("/push"), graph: None }), true),
    ]
}

#[test]
fn services_that_fail_get_everything_in_the_end() {
    use When::{Always, Once};
    let status = |status: &str, headers: &str| Failure::Answer(answer(status, headers, "no"));
    let moved = Failure::Answer(redirect("308 Permanent Redirect", "http://h.example/other"));
    // The code and the exit code of the first run, for an endpoint, a graph store and a receiver.
    let fine = [("", 0); 3];
    let failed = [("sparql.failed", 5), ("sparql.failed", 5), ("receiver.failed", 5)];
    let denied = [("sparql.denied", 12), ("sparql.denied", 12), ("receiver.denied", 12)];
    let address = [("sparql.url", 2), ("sparql.url", 2), ("receiver.url", 2)];
    let cases = [
        (status("503 Service Unavailable", "Retry-After: 1\r\n"), Once, fine),
        (status("500 Internal Server Error", ""), Once, fine),
        (Failure::Cut, Once, fine),
        (Failure::Slow, Always, fine),
        (Failure::Cut, Always, failed),
        (status("503 Service Unavailable", ""), Always, failed),
        (status("507 Insufficient Storage", ""), Always, failed),
        (status("401 Unauthorized", ""), Always, denied),
        (moved, Always, address),
        // An update is known to be done when its answer is complete.
        (Failure::Endless, Once, [failed[0], fine[1], fine[2]]),
        // An update of several resources is sent again in parts.
        (Failure::EndlessRefusal, Once, [fine[0], ("", 3), ("", 3)]),
    ];
    for (failure, when, expected) in cases {
        for (number, first) in expected.into_iter().enumerate() {
            let next = Arc::new(Mutex::new(Some(failure.clone())));
            let server = failing(&next, when);
            let (sink, is_receiver) = sinks(&server)[number].clone();
            endpoint().store.clear().unwrap();
            endpoint().pushed.lock().unwrap().clear();
            let mut source = Source::of_statements();
            for number in 0..3 {
                source.set(&format!("/{number}"), "text");
            }
            source.snapshot();
            let copy = Copy::kept_in(&source, |_| sink);
            let what = format!("{failure:?} {when:?} {:?}", copy.options.sink);
            let ran = copy.try_run();
            assert_eq!((ran.code(), ran.exit()), first, "{what}: {:?}", ran.reported);
            *next.lock().unwrap() = None;
            let ran = copy.try_run();
            assert_eq!(ran.exit(), 0, "{what}: {} {:?}", ran.code(), ran.reported);
            let read = if is_receiver { in_receiver } else { in_endpoint };
            assert_eq!(read(&copy, &source), source.kept, "{what}");
        }
    }
}

/// A statement about a blank node of each entity, so that both have to be removed.
fn with_blank_node(uri: &str, text: &str) -> String {
    format!("<{uri}> <http://ns.example/has> _:b .\n_:b <http://ns.example/text> \"{text}\" .\n")
}

/// The literals that are stored, and how many statements there are.
fn literals() -> (Vec<String>, usize) {
    let quads: Vec<_> = endpoint().store.iter().map(Result::unwrap).collect();
    let literal = |quad: &Quad| match &quad.object {
        Term::Literal(literal) => Some(literal.value().to_owned()),
        _ => None,
    };
    let mut literals: Vec<_> = quads.iter().filter_map(literal).collect();
    literals.sort();
    (literals, quads.len())
}

/// What happens at the Source.
type Step = fn(&mut Source);

#[test]
fn updates_that_are_carried_out_and_refused_are_unsure() {
    let status = |status: &str| Failure::Applied(answer(status, "", "no"));
    let failures = [
        status("500 Internal Server Error"),
        status("408 Request Timeout"),
        status("409 Conflict"),
        status("400 Bad Request"),
        status("413 Content Too Large"),
        status("422 Unprocessable Content"),
    ];
    let steps: [(&str, Step, Step); 4] = [
        ("back", |source| source.set("/0", "new"), |source| source.set("/0", "old")),
        ("on", |source| source.set("/0", "new"), |source| source.set("/0", "newer")),
        ("created", |source| source.set("/new", "new"), |source| source.delete("/new")),
        ("deleted", |source| source.delete("/0"), |source| source.set("/0", "old")),
    ];
    for failure in failures {
        for (number, when) in [(0, When::Always), (0, When::Once), (1, When::Always)] {
            for (name, first, then) in steps {
                let next = Arc::new(Mutex::new(None));
                let server = failing(&next, when);
                let (sink, _) = sinks(&server)[number].clone();
                endpoint().store.clear().unwrap();
                let mut source = Source { form: with_blank_node, ..Source::of_statements() };
                for number in 0..4 {
                    source.set(&format!("/{number}"), "old");
                }
                source.snapshot();
                let copy = Copy::kept_in(&source, |_| sink);
                let what = format!("{name}, {failure:?} {when:?} {:?}", copy.options.sink);
                assert_eq!(copy.run().exit_code, 0, "{what}");
                first(&mut source);
                source.set("/3", "other");
                *next.lock().unwrap() = Some(failure.clone());
                copy.try_run();
                *next.lock().unwrap() = None;
                then(&mut source);
                let ran = copy.try_run();
                assert_eq!(ran.exit(), 0, "{what}: {} {:?}", ran.code(), ran.reported);
                let mut texts: Vec<String> = source
                    .kept
                    .values()
                    .map(|text| {
                        let text = String::from_utf8(text.clone()).unwrap();
                        text.rsplit('"').nth(1).unwrap().to_owned()
                    })
                    .collect();
                texts.sort();
                let count = texts.len();
                assert_eq!(literals(), (texts, 2 * count), "{what}");
                assert_eq!(copy.audit(true).exit_code, 0, "{what}");
            }
        }
    }
}
