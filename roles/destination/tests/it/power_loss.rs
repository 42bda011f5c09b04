//! Copies in files or in a service, and their databases, after loss of power at any instant.
//!
//! A kill does not affect the system's cache; loss of power does, and commits of a copy's database
//! are not made durable individually. A child runs a copy repeatedly while its Source changes, and
//! `strace` records every write and every flush to disk. From this record the test reconstructs
//! possible contents of the copy and its database after loss of power at some instant: each write
//! that was not durable is complete, missing or torn, and each new name exists or not. In all
//! cases, the database does not refer to destroyed data, and after the next run the copy equals the
//! Source.
//!
//! `ABREAST_POWER_LOSSES` sets the number of instants for each sink instead of 40,
//! `ABREAST_CRASH_SEED` repeats a failing run.

use crate::contract::{SinkCase, seen, sinks};
use crate::copy::Copy;
use crate::rdf::endpoint;
use crate::source::Source;
use abreast_destination::{
    Graph, NQuadsOptions, Silent, SinkOptions, SparqlOptions, SyncOptions, sync,
};
use abreast_testkit::power::{self, Event};
use abreast_testkit::{Random, folder};
use oxigraph::model::Quad;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

/// The place of the child's copy. The name of the sink and the address of the Source are in a file
/// next to it.
const CHILD: &str = "ABREAST_COPY_POWER_CHILD";
const LOSSES: u64 = 40;
const RUNS: u64 = 12;
/// The path that the child requests to make the Source change.
const STEP: &str = "/step";

/// Small files, so that each is compacted.
fn sink_of(case: &SinkCase, place: &Path) -> SinkOptions {
    match case.name {
        "nquads" => SinkOptions::NQuads(NQuadsOptions { graph: Graph::Default, file_bytes: 3_000 }),
        _ => (case.sink)(place),
    }
}

/// The journal of an endpoint, in which changes were durable before they were sent.
const JOURNAL: &str = "/.abreast/sent";

/// The possible content of an endpoint after loss of power: all changes of a run if every line of
/// its journal was durable, otherwise none.
fn service_after_loss<'k>(events: &[Event], until: usize, kept: &'k [Vec<Quad>]) -> &'k [Quad] {
    let is_end = |event: &Event| matches!(event, Event::Acknowledged(_));
    let begin = events[..until].iter().rposition(is_end).map_or(0, |end| end + 1);
    let end = events[until..].iter().position(is_end).map_or(events.len(), |end| until + end);
    let is_journal =
        |event: &Event| matches!(event, Event::Durable { file } if file.ends_with(JOURNAL));
    let last = events[begin..end].iter().rposition(is_journal);
    let runs = events[..until].iter().filter(|event| is_end(event)).count();
    let is_sent = last.is_some_and(|last| begin + last < until);
    &kept[runs + usize::from(is_sent)]
}

fn case_of(name: &str) -> SinkCase {
    sinks().into_iter().find(|case| case.name == name).unwrap()
}

pub(crate) fn child() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let folder = Path::new(&folder);
    let place = folder.parent().unwrap();
    let text = std::fs::read_to_string(place.join("child")).unwrap();
    let [name, url, service] = text.split('\n').collect::<Vec<_>>()[..] else { unreachable!() };
    let mut options = SyncOptions::new(url, folder);
    (options.ignore_robots, options.threads) = (true, Some(1));
    options.sink = match name {
        "endpoint" => SinkOptions::Sparql(SparqlOptions {
            url: service.to_owned(),
            query_url: None,
            graph: Graph::Default,
        }),
        _ => sink_of(&case_of(name), place),
    };
    for run in 1..=RUNS {
        let step = url.replace("/caps.xml", STEP);
        let mut answer = String::new();
        let address = step.strip_prefix("http://").unwrap().split('/').next().unwrap();
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        write!(stream, "GET {STEP} HTTP/1.0\r\nConnection: close\r\n\r\n").unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(&stream), &mut answer).unwrap();
        sync(&options, &Silent, &AtomicBool::new(false)).unwrap();
        // As the system does by itself after a while: only the last run may be lost.
        for path in [".abreast/mirror.db-wal", ".abreast", ""] {
            std::fs::File::open(folder.join(path)).unwrap().sync_all().unwrap();
        }
        std::io::stderr().write_all(format!("ack {run}\n").as_bytes()).unwrap();
    }
}

/// Changes most resources, so that files consist mostly of superseded parts.
fn step(source: &mut Source, number: u64) {
    for place in 0..9 {
        source.set(&format!("/{place}"), &format!("{number} {}", "x".repeat(90 * place)));
    }
    source.set(&format!("/new/{number}"), "1");
    if number > 2 {
        source.delete(&format!("/new/{}", number - 2));
    }
}

fn loses_power(name: &str) {
    let case = case_of(name);
    let mut source = (case.source)();
    source.set("/stays", &"never changed ".repeat(20));
    source.snapshot();
    let (url, server) = (source.url(), source.server.clone());
    let (source, steps) = (Arc::new(Mutex::new(source)), Mutex::new(0));
    let changed = Arc::clone(&source);
    // The content of the endpoint before each run, and after the last one.
    let (service, kept) = (endpoint(), Arc::new(Mutex::new(Vec::new())));
    let (of_service, noted_kept) = (service.clone(), Arc::clone(&kept));
    let keep = move || {
        let quads: Vec<Quad> = of_service.store.iter().map(|quad| quad.unwrap()).collect();
        noted_kept.lock().unwrap().push(quads);
    };
    let keep_before = keep.clone();
    server.handler(move |path, _| {
        if path == STEP {
            keep_before();
            let mut steps = steps.lock().unwrap();
            *steps += 1;
            step(&mut changed.lock().unwrap(), *steps);
        }
        None
    });
    let place = tempfile::tempdir().unwrap();
    let noted = place.path().join("copy");
    std::fs::write(place.path().join("child"), format!("{name}\n{url}\n{}", service.url()))
        .unwrap();
    let Some(events) = power::folder_events(CHILD, &noted) else { return };
    server.handler(|_, _| None);
    keep();
    let kept = kept.lock().unwrap();
    let source = source.lock().unwrap();
    let runs = events.iter().filter(|event| matches!(event, Event::Acknowledged(_))).count();
    assert_eq!(runs as u64, RUNS, "{name}: every run was noted");
    let first =
        events.iter().position(|event| matches!(event, Event::Acknowledged(_))).unwrap() + 1;
    let seed = power::seed();
    let mut random = Random::new(seed);
    for loss in 0..power::losses(LOSSES) {
        let until = first + random.below((events.len() - first) as u64) as usize;
        let files = power::folder_after_loss(&events[..until], &mut random);
        let what = format!(
            "{name}: loss {loss} after {until} of {} calls, ABREAST_CRASH_SEED={seed}",
            events.len()
        );
        let place = folder::in_memory();
        let mut copy = Copy::kept_in(&source, |_| SinkOptions::Folder);
        copy.options.folder = place.path().join("copy");
        copy.options.sink = sink_of(&case, place.path());
        copy.options.ignore_robots = true;
        let shared = |path: &String| path.ends_with("-shm");
        let files = files.into_iter().filter(|(path, _)| !shared(path)).collect();
        power::lay_down(&files, &noted, copy.folder());
        if name == "endpoint" {
            service
                .store
                .extend(service_after_loss(&events, until, &kept).iter().cloned())
                .unwrap();
        }
        let ran = copy.try_run();
        assert_eq!(ran.exit(), 0, "{what}: {} {:?}", ran.code(), ran.reported);
        let destroyed = ran.reported.iter().find(|reported| {
            reported.code == "local.restored"
                && !reported.message.contains("and are fetched again: 0;")
        });
        assert!(destroyed.is_none(), "{what}: {destroyed:?}");
        assert_eq!(seen(&(case.read)(&copy, &source)), seen(&source.kept), "{what}");
        assert_eq!(copy.audit(true).exit_code, 0, "{what}");
    }
}

#[test]
fn files_of_statements_that_lost_power_are_brought_up_to_date() {
    loses_power("nquads");
}

#[test]
fn an_endpoint_whose_copy_lost_power_is_brought_up_to_date() {
    loses_power("endpoint");
}

#[test]
fn a_packed_copy_that_lost_power_is_brought_up_to_date() {
    loses_power("warc");
}
