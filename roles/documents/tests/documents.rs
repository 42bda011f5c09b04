//! Documents over HTTP and in memory: indexes, limits, faults and cancelling.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use abreast_documents::{Entry, Error, Head, Item, Limits, Link, ListWriter, Place, Reading, read};
use abreast_testkit::http::{Server, answer};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

fn list(uris: &[&str], is_index: bool) -> Vec<u8> {
    let capability = Some("resourcelist".to_owned());
    let at = Some("2026-01-01T00:00:00Z".to_owned());
    let mut writer =
        ListWriter::new(&Head { is_index, capability, at, ..Head::default() }).unwrap();
    for uri in uris {
        writer.entry(&Entry { uri: (*uri).to_owned(), ..Entry::default() }).unwrap();
    }
    writer.finish()
}

/// A server whose `/index` lists these paths, and whose other documents list one resource.
fn site(paths: &'static [&'static str]) -> Server {
    Server::new(move |request, stream| {
        let host = format!("http://{}", request.header("host").unwrap_or_default());
        let body = match request.path() {
            "/index" => {
                let uris: Vec<String> = paths.iter().map(|path| format!("{host}{path}")).collect();
                list(&uris.iter().map(String::as_str).collect::<Vec<_>>(), true)
            }
            path => list(&[&format!("http://h{path}")], false),
        };
        let body = String::from_utf8(body).unwrap();
        std::io::Write::write_all(stream, answer("200 OK", "", &body).as_bytes()).is_ok()
    })
}

fn reading(url: String, limits: Limits) -> Reading {
    let mut reading = Reading::new(Place::Url(url), limits);
    reading.follow_indexes = true;
    reading
}

fn uris_of(reading: &Reading) -> Result<Vec<String>, Error> {
    let (mut uris, mut is_index) = (Vec::new(), false);
    read(reading, &AtomicBool::new(false), &mut |item| {
        match item {
            Item::Document(head) => is_index = head.is_index,
            Item::Entry(entry) if !is_index => uris.push(entry.uri),
            _ => {}
        }
        ControlFlow::Continue(())
    })?;
    Ok(uris)
}

#[test]
fn the_documents_of_an_index_are_read_in_order() {
    let server = site(&["/b", "/a"]);
    let uris = uris_of(&reading(server.url("/index"), Limits::default())).unwrap();
    assert_eq!(uris, ["http://h/b", "http://h/a"]);
}

#[test]
fn circles_and_limits_end_a_reading() {
    let server = site(&["/index"]);
    let code = |limits: Limits, server: &Server| {
        uris_of(&reading(server.url("/index"), limits)).unwrap_err().code()
    };
    assert_eq!(code(Limits::default(), &server), "documents.circle");
    let server = site(&["/a", "/b"]);
    assert_eq!(code(Limits { documents: 2, ..Limits::default() }, &server), "documents.number");
    assert_eq!(code(Limits { bytes: 200, ..Limits::default() }, &server), "documents.size");
    let none = Limits { time: std::time::Duration::ZERO, ..Limits::default() };
    assert_eq!(code(none, &server), "documents.time");
}

#[test]
fn other_hosts_are_not_requested_unless_allowed() {
    let (server, other) = (site(&[]), site(&[]));
    let index = list(&[&other.url("/a")], true);
    let place = Place::Bytes { bytes: index, url: server.url("/index") };
    let mut reading = Reading::new(place, Limits::default());
    reading.follow_indexes = true;
    assert_eq!(uris_of(&reading).unwrap_err().code(), "documents.host");
    assert!(other.seen().is_empty());
    // An allowed host at a private address is still refused: a document gives the address.
    reading.allow_hosts = vec!["127.0.0.1".to_owned()];
    assert!(matches!(uris_of(&reading).unwrap_err(), Error::Net(_)));
    assert!(other.seen().is_empty());
}

#[test]
fn a_visitor_or_another_thread_cancels() {
    let uris: Vec<String> = (0..1_000).map(|number| format!("http://h/{number}")).collect();
    let bytes = list(&uris.iter().map(String::as_str).collect::<Vec<_>>(), false);
    let reading = Reading::new(Place::Bytes { bytes, url: String::new() }, Limits::default());
    let mut count = 0;
    let done = read(&reading, &AtomicBool::new(false), &mut |_| {
        count += 1;
        if count == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert!(matches!(done, Err(Error::Cancelled)) && count == 3);
    let silent = Server::raw(|stream| drop(std::io::Read::read(&mut &stream, &mut [0; 1])));
    let cancel = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| cancel.store(true, Ordering::Relaxed));
        let reading = Reading::new(Place::Url(silent.url("/")), Limits::default());
        let done = read(&reading, &cancel, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(done, Err(Error::Cancelled)));
    });
}

#[test]
fn a_written_entry_is_read_again() {
    let entry = Entry {
        uri: "https://h/a?b=1&c=2".to_owned(),
        change: Some("updated".to_owned()),
        datetime: Some("2026-01-02T00:00:00.5Z".to_owned()),
        lastmod: Some("2026-01-01T00:00:00Z".to_owned()),
        length: Some(5),
        hash: Some(format!("md5:{}", "0".repeat(32))),
        media_type: Some("text/plain".to_owned()),
        links: vec![Link { pri: Some(2), ..Link::new("duplicate", "https://h/b") }],
        ..Entry::default()
    };
    let head = Head {
        capability: Some("changelist".to_owned()),
        from: Some("2026-01-01T00:00:00Z".to_owned()),
        ..Head::default()
    };
    let mut writer = ListWriter::new(&head).unwrap();
    writer.entry(&entry).unwrap();
    let place = Place::Bytes { bytes: writer.finish(), url: String::new() };
    let mut found = Vec::new();
    read(&Reading::new(place, Limits::default()), &AtomicBool::new(false), &mut |item| {
        found.push(item);
        ControlFlow::Continue(())
    })
    .unwrap();
    let Item::Entry(again) = &found[1] else { panic!("{found:?}") };
    assert_eq!(again.datetime.as_deref(), Some("2026-01-02T00:00:00.500000Z"));
    assert_eq!(Entry { datetime: entry.datetime.clone(), ..(**again).clone() }, entry);
}
