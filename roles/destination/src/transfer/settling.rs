//! Tests of a sink that settles items later, each of which can fail individually.

use super::Transfer;
use crate::copy::partial::Partials;
use crate::copy::state_folder::StateFolder;
use crate::plan::planner::{PlanContext, Planner};
use crate::read::driver::Driver;
use crate::read::text::Text;
use crate::report::error::Error;
use crate::report::events::{Event, ItemAction};
use crate::report::failure::Failure;
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use crate::sink::outcome::Outcome;
use crate::sink::rdf_rules::RdfRules;
use crate::sink::{
    Body, Deleted, Deleting, Prepared, Sink, SinkWriter, Storing, is_right, spill_folder, with_time,
};
use crate::transfer::mirror_hosts::MirrorHosts;
use crate::transfer::repetitions::Repetitions;
use crate::transfer::rules::{PatchCounts, Rules};
use crate::transfer::warm_up::WarmUp;
use abreast_folder::Dir;
use abreast_net::Shared;
use abreast_store::mirror::{Mirror, Pending, PendingAction, Row, Task};
use abreast_testkit::digest::md5_hex;
use abreast_testkit::pages::Server;
use abreast_webtypes::Digests;
use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request to the other side.
enum Request {
    Store(String, Vec<u8>),
    Delete(String),
    /// All earlier requests are complete: returns the failures.
    Settle(Sender<Vec<(String, Failure)>>),
}

/// A sink that stores and deletes items in another thread.
#[derive(Debug)]
struct Remote {
    requests: Mutex<Sender<Request>>,
    store: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
    failing: Arc<Mutex<HashSet<String>>>,
    partials: Partials,
    spill: Dir,
    batch_items: u64,
}

impl Remote {
    fn open(state: &StateFolder, batch_items: u64) -> Arc<Self> {
        let (requests, work) = channel();
        let (partials, spill) = spill_folder(state).unwrap();
        let (store, failing) = (Arc::default(), Arc::default());
        let (their_store, their_failing) = (Arc::clone(&store), Arc::clone(&failing));
        std::thread::spawn(move || work_off(&work, &their_store, &their_failing));
        Arc::new(Self {
            requests: Mutex::new(requests),
            store,
            failing,
            partials,
            spill,
            batch_items,
        })
    }

    fn send(&self, request: Request) {
        self.requests.lock().unwrap().send(request).unwrap();
    }

    fn fail(&self, uris: &[&str]) {
        *self.failing.lock().unwrap() = uris.iter().map(|uri| (*uri).to_owned()).collect();
    }

    fn has(&self, uri: &str) -> bool {
        self.store.lock().unwrap().contains_key(uri)
    }
}

fn work_off(
    work: &Receiver<Request>,
    store: &Mutex<BTreeMap<String, Vec<u8>>>,
    failing: &Mutex<HashSet<String>>,
) {
    let mut failures = Vec::new();
    for request in work {
        std::thread::sleep(Duration::from_millis(1));
        let mut store = store.lock().unwrap();
        match request {
            Request::Store(uri, _) | Request::Delete(uri)
                if failing.lock().unwrap().contains(&uri) =>
            {
                failures.push((uri, Failure::new("remote.refused", "the other side refused it")));
            }
            Request::Store(uri, bytes) => drop(store.insert(uri, bytes)),
            Request::Delete(uri) => drop(store.remove(&uri)),
            Request::Settle(answer) => answer.send(std::mem::take(&mut failures)).unwrap(),
        }
    }
}

impl Sink for Remote {
    fn writer(self: Arc<Self>) -> Box<dyn SinkWriter> {
        Box::new(RemoteWriter(self))
    }

    fn partials(&self) -> &Partials {
        &self.partials
    }

    fn shown(&self, uri: &str, _: bool) -> String {
        uri.to_owned()
    }

    fn batch_items(&self) -> u64 {
        self.batch_items
    }

    fn settles_items(&self) -> bool {
        true
    }

    fn settle(&self, _: &Mirror) -> Result<Vec<(String, Failure)>, Error> {
        let (answer, answered) = channel();
        self.send(Request::Settle(answer));
        Ok(answered.recv().unwrap())
    }

    fn sweep(&self, _: &str) {}
}

struct RemoteWriter(Arc<Remote>);

impl SinkWriter for RemoteWriter {
    fn prepare(&mut self, task: &Task, listed: &Digests) -> Result<Prepared, Failure> {
        Ok(match &task.row {
            Some(row) if is_right(task, row, listed) => {
                Prepared::Done(Outcome::Right { row: with_time(task, row.clone()) })
            }
            _ => Prepared::Wanted { dir: self.0.spill.clone(), conditional: false },
        })
    }

    fn still_right(&mut self, task: &Task) -> Result<Row, Failure> {
        Ok(with_time(task, task.row.clone().unwrap_or_default()))
    }

    fn store<'a>(&'a mut self, task: &'a Task, body: Body<'a>) -> Storing<'a> {
        self.0.send(Request::Store(task.pending.uri.clone(), body.bytes.to_vec()));
        let (row, created) = (body.row(task, 1), task.row.is_none());
        Box::pin(std::future::ready(Ok(Outcome::Stored { row, created, notices: body.notices })))
    }

    fn delete<'a>(&'a mut self, tasks: &'a [Task]) -> Deleting<'a> {
        Box::pin(async move {
            let mut results = Vec::new();
            for task in tasks {
                tokio::time::sleep(Duration::from_millis(1)).await;
                self.0.send(Request::Delete(task.pending.uri.clone()));
                results.push(Ok(Deleted { gone: true, notices: Vec::new() }));
            }
            results
        })
    }
}

/// A copy in such a sink.
struct Pair {
    server: Server,
    mirror: Mirror,
    options: SyncOptions,
    state: StateFolder,
    sink: Arc<Remote>,
}

/// The counts of a plan that was carried out.
#[derive(Debug, PartialEq, Eq)]
struct Counts {
    created: u64,
    deleted: u64,
    failed: u64,
    held: u64,
}

impl Pair {
    fn new(place: &std::path::Path, batch_items: u64) -> Self {
        let server = Server::start();
        let mut options = SyncOptions::new(server.url("/"), place);
        options.ignore_robots = true;
        let state = StateFolder::at(place).unwrap();
        let sink = Remote::open(&state, batch_items);
        Self { server, mirror: Mirror::scratch().unwrap(), options, state, sink }
    }

    fn uri(&self, number: usize) -> String {
        self.server.url(&format!("/d/{number:03}"))
    }

    fn plan(&self, number: usize, action: PendingAction) {
        let body = format!("body {number}");
        self.server.body(&format!("/d/{number:03}"), body.as_str());
        let mut digests = Digests::default();
        digests.parse_into(format!("md5:{}", md5_hex(body.as_bytes())).as_bytes()).unwrap();
        let (uri, digests, length) =
            (self.uri(number), digests.to_bytes(), Some(body.len() as u64));
        let modified = Some(1_700_000_000_000_000);
        self.mirror
            .put_pending(&Pending { uri, action, modified, length, digests, ..Pending::default() })
            .unwrap();
    }

    /// Carries the plan out; each item that is reported must have been settled by then.
    fn carry_out(&self) -> Counts {
        self.mirror.renew_pending().unwrap();
        let (cancel, shared) = (AtomicBool::new(false), Shared::new(self.options.net_options()));
        let observer = |event: &Event<'_>| {
            if let Event::Item(item) = event {
                let is_there = self.sink.has(item.uri);
                assert_eq!(
                    is_there,
                    item.action != ItemAction::Deleted,
                    "{} is reported too early",
                    item.uri
                );
            }
        };
        let requests = Requests::new(&self.options, &cancel, &shared).unwrap();
        let mut planner = Planner::new(&self.options, &self.mirror, self.state.clone()).unwrap();
        let mut report = Reporter::new(&observer, &shared, false);
        let rules = Arc::new(Rules {
            rdf: RdfRules::default(),
            require_fixity: false,
            authorization: None,
            authorized_url: String::new(),
            robots: None,
            admission: Admission::new(&self.options.url, &[], false),
            alternates: Arc::clone(&planner.alternates),
            bodies: Arc::clone(&planner.bodies),
            patches: PatchCounts::default(),
            mirror_hosts: MirrorHosts::new(1),
            again: Repetitions::default(),
            deprecations: Arc::clone(&planner.deprecations),
            skolems: crate::plan::skolem::Evidence::default(),
            epoch: 1,
            is_gone_if_empty: true,
        });
        let sink: Arc<dyn Sink> = Arc::clone(&self.sink) as _;
        let mut transfer = Transfer::new(
            (&self.options, &self.mirror),
            &requests,
            &shared,
            &rules,
            sink,
            WarmUp::default(),
        );
        let mut context =
            PlanContext { requests: &requests, planner: &mut planner, report: &mut report };
        transfer.carry_out(&mut Driver::of(Box::<Text>::default()), &mut context).unwrap();
        let summary = report.summary;
        Counts {
            created: summary.created,
            deleted: summary.deleted,
            failed: summary.failed,
            held: summary.held,
        }
    }

    fn kept(&self) -> u64 {
        self.mirror.count_rows().unwrap()
    }
}

#[test]
fn items_that_fail_when_they_are_settled_are_not_kept() {
    for batch_items in [1, 7, 1_000] {
        let place = tempfile::tempdir().unwrap();
        let pair = Pair::new(place.path(), batch_items);
        (0..200).for_each(|number| pair.plan(number, PendingAction::Fetch));
        let bad = [pair.uri(3), pair.uri(77), pair.uri(199)];
        pair.sink.fail(&bad.each_ref().map(String::as_str));
        assert_eq!(
            pair.carry_out(),
            Counts { created: 197, deleted: 0, failed: 3, held: 0 },
            "{batch_items}"
        );
        assert_eq!(pair.kept(), 197);
        for uri in &bad {
            assert!(
                pair.mirror.row(uri).unwrap().is_none() && pair.mirror.is_failed(uri).unwrap(),
                "{uri}"
            );
        }
        // The next run tries only the failed items.
        pair.sink.fail(&[]);
        assert_eq!(
            pair.carry_out(),
            Counts { created: 3, deleted: 0, failed: 0, held: 0 },
            "{batch_items}"
        );
        assert_eq!((pair.kept(), pair.sink.store.lock().unwrap().len()), (200, 200));
        assert_eq!(pair.sink.store.lock().unwrap()[&pair.uri(77)], b"body 77");
    }
}

#[test]
fn deletions_that_fail_when_they_are_settled_are_tried_again() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), 10);
    (0..400).for_each(|number| pair.plan(number, PendingAction::Fetch));
    assert_eq!(pair.carry_out().created, 400);
    (0..150).for_each(|number| pair.plan(number, PendingAction::Delete));
    let bad = [pair.uri(0), pair.uri(127), pair.uri(128)];
    pair.sink.fail(&bad.each_ref().map(String::as_str));
    assert_eq!(pair.carry_out(), Counts { created: 0, deleted: 147, failed: 3, held: 0 });
    assert_eq!(pair.kept(), 253, "what is still there is still known");
    assert!(bad.iter().all(|uri| pair.sink.has(uri) && pair.mirror.row(uri).unwrap().is_some()));
    pair.sink.fail(&[]);
    assert_eq!(pair.carry_out(), Counts { created: 0, deleted: 3, failed: 0, held: 0 });
    assert_eq!((pair.kept(), pair.sink.store.lock().unwrap().len()), (250, 250));
}

#[test]
fn no_deletion_follows_an_item_that_failed_when_it_was_settled() {
    let place = tempfile::tempdir().unwrap();
    let pair = Pair::new(place.path(), 1_000);
    (0..20).for_each(|number| pair.plan(number, PendingAction::Fetch));
    pair.carry_out();
    pair.plan(0, PendingAction::Delete);
    pair.plan(50, PendingAction::Fetch);
    let bad = pair.uri(50);
    pair.sink.fail(&[&bad]);
    assert_eq!(pair.carry_out(), Counts { created: 0, deleted: 0, failed: 1, held: 1 });
}
