//! Copies of a Source by HTTP/1.1, with requests that are sent before earlier ones are answered.

use crate::copy::Copy;
use abreast_destination::Dumps;
use abreast_testkit::documents::{self, BEGIN, document};
use abreast_testkit::http::{Request, Server};
use std::collections::HashMap;
use std::io::{BufReader, Write as _};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const RESOURCES: usize = 600;

/// The order of the answers to requests that came together.
#[derive(Clone, Copy, PartialEq)]
enum Order {
    Regular,
    /// The first time, the other way round.
    OnceReversed,
}

struct Source {
    server: Server,
    /// The most requests that came together, and the number of requests of resources.
    most: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Source {
    fn start(order: Order) -> Self {
        let answers: Arc<OnceLock<HashMap<String, String>>> = Arc::default();
        let (most, requests) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (known, most_seen, count) =
            (Arc::clone(&answers), Arc::clone(&most), Arc::clone(&requests));
        let was_reversed = AtomicBool::new(false);
        let server = Server::raw(move |stream| {
            let mut input = BufReader::new(stream);
            while let Some(first) = Request::read(&mut input) {
                let mut together = vec![first];
                // Time in which other requests come.
                std::thread::sleep(Duration::from_millis(5));
                while !input.buffer().is_empty() {
                    let Some(next) = Request::read(&mut input) else { return };
                    together.push(next);
                }
                most_seen.fetch_max(together.len(), SeqCst);
                if order == Order::OnceReversed
                    && together.len() > 1
                    && !was_reversed.swap(true, SeqCst)
                {
                    together.reverse();
                }
                for request in &together {
                    count.fetch_add(usize::from(request.path().starts_with("/d/")), SeqCst);
                    let answer = known.get().unwrap().get(request.path()).cloned();
                    let answer = answer.unwrap_or_else(|| {
                        "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned()
                    });
                    if input.get_mut().write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            }
        });
        let ok =
            |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        let mut all = HashMap::new();
        let mut entries = String::new();
        for (path, body) in resources() {
            entries += &documents::entry(&server.url(&path), body.as_bytes(), "");
            all.insert(path, ok(&body));
        }
        let list =
            document("urlset", &format!("capability=\"resourcelist\" at=\"{BEGIN}\""), &entries);
        all.insert("/list.xml".to_owned(), ok(&list));
        answers.set(all).unwrap();
        Self { server, most, requests }
    }

    fn copy(&self) -> Copy {
        let mut copy = Copy::of(self.server.url("/list.xml"));
        (copy.options.dumps, copy.options.threads) = (Dumps::Never, Some(2));
        copy
    }
}

/// Resources of one length, so that a digest alone shows which one a body is.
fn resources() -> impl Iterator<Item = (String, String)> {
    (0..RESOURCES).map(|number| (format!("/d/{number:04}"), format!("body {number:04}")))
}

/// Checks that the copy has each resource.
fn check(copy: &Copy) {
    let texts = copy.texts();
    let wanted: Vec<String> = resources().map(|(_, body)| body).collect();
    assert_eq!(
        texts.into_values().filter(|text| text.starts_with("body")).collect::<Vec<_>>(),
        wanted
    );
}

#[test]
fn more_requests_are_in_flight_in_a_row() {
    for (connections, streams, pipelining, retries, is_in_row) in [
        (4, 64, true, 5, true),
        // As `--connections 4`, `--no-pipelining` and `--retries 0` request.
        (4, 4, true, 5, false),
        (4, 64, false, 5, false),
        (4, 64, true, 0, false),
    ] {
        let source = Source::start(Order::Regular);
        let mut copy = source.copy();
        (copy.options.connections, copy.options.streams) = (connections, streams);
        (copy.options.net.pipelining, copy.options.net.retries) = (pipelining, retries);
        let ran = copy.try_run();
        assert_eq!(
            (ran.exit(), ran.summary().created),
            (0, RESOURCES as u64),
            "{:?}",
            ran.reported
        );
        check(&copy);
        let most = source.most.load(SeqCst);
        assert_eq!(most > 1, is_in_row, "{most} requests together");
        assert!(most <= 8, "{most} requests together");
        assert_eq!(source.requests.load(SeqCst), RESOURCES);
        // The connection that reads the list, and those of both threads, of which 4 are in use.
        assert!(source.server.connections() <= 9, "{} connections", source.server.connections());
    }
}

#[test]
fn answers_in_another_order_are_noticed() {
    let source = Source::start(Order::OnceReversed);
    let copy = source.copy();
    let ran = copy.try_run();
    assert_eq!((ran.exit(), ran.summary().created), (0, RESOURCES as u64), "{:?}", ran.reported);
    check(&copy);
    let again = ran.count("fixity.again");
    assert!((1..=8).contains(&again), "{again} resources were asked for again");
    assert_eq!(source.requests.load(SeqCst), RESOURCES + again);
}
