//! The reader in a simulation: providers of every known shape under adversity, read without sockets.
//!
//! Each seed is a provider with a history, and a copy that is killed and runs again at any time. What
//! the runs plan is carried out by a model of the transfer, which has failures and kills too.

mod literal;

use super::reader::Emm;
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::events::Event;
use crate::options::SyncOptions;
use crate::plan::planner::{PlanContext, Planner};
use crate::read::driver::Driver;
use crate::read::pieces::{Answered, Asked, Documents};
use crate::read::spool::Spool;
use crate::reporter::Reporter;
use crate::requests::Requests;
use crate::sink::row_as_planned;
use crate::state::key;
use crate::state_folder::StateFolder;
use crate::{NQuadsOptions, SinkOptions};
use abreast_net::Shared;
use abreast_store::mirror::{Mirror, PendingState};
use abreast_testkit::feeds::{Fault, Faults, Paging, Provider, Reply};
use abreast_testkit::{Random, number, seeds};
use abreast_webtypes::Timestamp;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Runs of a consumer before the provider is quiet.
const RUNS_MAX: u64 = 5;
/// Where providers are.
const BASE: &str = "http://feeds.example";
/// Most requests of one run: more are a walk without end.
const REQUESTS_MAX: usize = 20_000;

thread_local! {
    /// The provider that this thread asks.
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// A provider, and how many requests the consumer sends before it is killed.
struct World {
    provider: Provider,
    left: usize,
    asked: usize,
    /// How often the consumer compared with all that the provider has.
    gaps: usize,
}

/// Documents of the provider of this thread.
struct Simulated;

impl Documents for Simulated {
    fn receive(
        &self,
        _: &Requests<'_>,
        asked: &Asked<'_>,
        to: &mut Spool<'_>,
    ) -> Result<Option<Answered>, Error> {
        let url = asked.url;
        let reply = ask(url)?;
        let failed =
            |exit| Err(Error::new("http.status", exit, format!("{} for {url}", reply.status)));
        match reply.status {
            200 => {}
            404 | 410 => return failed(ExitCode::SourceInvalid),
            403 => return failed(ExitCode::Auth),
            _ => return failed(ExitCode::Retryable),
        }
        to.begin();
        to.add(reply.body.as_bytes())?;
        to.end();
        Ok(Some(Answered {
            url: url.to_owned(),
            date: Timestamp::from_micros(reply.date),
            ..Answered::default()
        }))
    }
}

fn ask(url: &str) -> Result<Reply, Error> {
    WORLD.with_borrow_mut(|world| {
        let world = world.as_mut().expect("a provider");
        world.left = world.left.checked_sub(1).ok_or_else(Error::cancelled)?;
        world.asked += 1;
        let reply = world.provider.answer(url);
        note(|| format!("{url} {} {}", reply.status, reply.body));
        Ok(reply)
    })
}

/// Shows what happens, if a single seed was chosen.
fn note(what: impl FnOnce() -> String) {
    if number("ABREAST_TEST_SEED").is_some() {
        eprintln!("{}", what());
    }
}

fn observe(event: &Event<'_>) {
    if matches!(event, Event::Notice(notice) if notice.code == "gap") {
        WORLD.with_borrow_mut(|world| world.as_mut().expect("a provider").gaps += 1);
    }
}

fn provider<T>(with: impl FnOnce(&mut Provider) -> T) -> T {
    WORLD.with_borrow_mut(|world| with(&mut world.as_mut().expect("a provider").provider))
}

/// What stays the same for all copies of a thread.
struct Bench {
    options: SyncOptions,
    shared: Arc<Shared>,
    state: StateFolder,
    cancel: AtomicBool,
    _place: tempfile::TempDir,
}

impl Bench {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(format!("{BASE}/feed"), place.path());
        options.sink = SinkOptions::NQuads(NQuadsOptions::default());
        let shared = Shared::new(options.net_options());
        let state = StateFolder::at(place.path()).unwrap();
        Self { options, shared, state, cancel: AtomicBool::new(false), _place: place }
    }

    fn requests(&self) -> Requests<'_> {
        let mut requests = Requests::new(&self.options, &self.cancel, &self.shared).unwrap();
        requests.documents = Rc::new(Simulated);
        requests
    }
}

/// A copy: its state, and what is kept.
struct Copy<'b> {
    bench: &'b Bench,
    requests: &'b Requests<'b>,
    mirror: Mirror,
    kept: BTreeMap<String, String>,
    /// What is kept as it was when the transaction that is open began.
    committed: Option<BTreeMap<String, String>>,
    /// Entities that were deleted here and never there.
    wrongly_deleted: Vec<String>,
}

impl<'b> Copy<'b> {
    fn new(bench: &'b Bench, requests: &'b Requests<'b>) -> Self {
        let mirror = Mirror::scratch().unwrap();
        let (kept, wrongly_deleted) = (BTreeMap::new(), Vec::new());
        Self { bench, requests, mirror, kept, committed: None, wrongly_deleted }
    }

    /// A run, in the order of `run.rs`.
    fn run(&mut self) -> Result<(), Error> {
        let result = self.try_run();
        // What was not committed with the state is truncated when the state is opened again.
        self.mirror.rollback().unwrap();
        if let Some(committed) = self.committed.take() {
            self.kept = committed;
        }
        result
    }

    fn try_run(&mut self) -> Result<(), Error> {
        let Self { bench, requests, mirror, kept, committed, wrongly_deleted } = self;
        let (requests, mirror) = (*requests, &*mirror);
        let options = &bench.options;
        let mut planner = Planner::new(options, mirror, bench.state.clone())?;
        let mut report = Reporter::new(&observe, &bench.shared, false);
        let mut run = PlanContext { requests, planner: &mut planner, report: &mut report };
        let mut reader = Driver::of(Box::<Emm>::default());
        let start = reader.find(&mut run)?;
        run.planner.admission = Some(Admission::new(&start.first, &[], false));
        run.planner.selection.prepare(mirror, options, (&mut reader, requests), &start)?;
        reader.plan(&mut run)?;
        mirror.renew_pending()?;
        let epoch = run.planner.epoch;
        mirror.set_meta(key::EPOCH, Some(&epoch.to_string()))?;
        let mut standing = Vec::new();
        for _ in 0..4 {
            *committed = Some(kept.clone());
            let failed = fetch(mirror, kept, epoch)?;
            *committed = None;
            let is_done = failed.is_empty();
            standing.extend(failed);
            if is_done || !reader.plan_again(&mut run)? {
                break;
            }
        }
        for uri in standing {
            run.report.new_failures += u64::from(mirror.is_failed(&uri)?);
        }
        if run.report.new_failures > 0 {
            note(|| "deletions are held".to_owned());
            mirror.hold_deletes()?;
        }
        let mut tasks = Vec::new();
        mirror.deletes_after("", usize::MAX >> 1, &mut tasks)?;
        mirror.begin()?;
        for task in tasks {
            let uri = &task.pending.uri;
            note(|| format!("{uri} is deleted"));
            if kept.remove(uri).is_some() && !provider(|provider| provider.has_deleted(uri)) {
                wrongly_deleted.push(uri.clone());
            }
            mirror.delete_row(uri)?;
            mirror.forget_pending(uri)?;
        }
        mirror.commit()?;
        Ok(())
    }
}

/// Fetches what is planned; the URIs of those that failed for the first time.
fn fetch(
    mirror: &Mirror,
    kept: &mut BTreeMap<String, String>,
    epoch: i64,
) -> Result<Vec<String>, Error> {
    let (mut tasks, mut failed) = (Vec::new(), Vec::new());
    mirror.fetches_after("", usize::MAX >> 1, &mut tasks)?;
    mirror.begin()?;
    for task in tasks {
        let uri = &task.pending.uri;
        let reply = ask(task.pending.href())?;
        if reply.status == 200 {
            let version = reply.body.split('"').nth(1).expect("a version");
            kept.insert(uri.clone(), version.to_owned());
            mirror.put_row(&row_as_planned(&task, reply.body.len() as u64, epoch))?;
            mirror.forget_pending(uri)?;
        } else {
            mirror.set_pending_state(uri, PendingState::Failed, true)?;
            failed.extend((task.pending.attempts == 0).then(|| uri.clone()));
        }
    }
    mirror.commit()?;
    Ok(failed)
}

/// What is wrong with a copy at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wrong {
    /// Entities that are missing.
    lost: usize,
    /// Entities that are gone at the provider.
    revived: usize,
    /// Entities of an earlier version.
    stale: usize,
}

impl Wrong {
    fn of(kept: &BTreeMap<String, String>) -> Self {
        provider(|provider| {
            let there = provider.entities();
            let is_lost = |iri: &&String| !kept.contains_key(*iri) && !provider.has_forgotten(iri);
            let lost = there.keys().filter(is_lost).count();
            let is_revived =
                |iri: &&String| !there.contains_key(*iri) && !provider.has_forgotten(iri);
            let revived = kept.keys().filter(is_revived).count();
            let is_stale = |(iri, version): &(&String, &String)| {
                kept.get(*iri).is_some_and(|kept| kept != *version) && !provider.has_forgotten(iri)
            };
            Self { lost, revived, stale: there.iter().filter(is_stale).count() }
        })
    }
}

/// Runs a consumer with a provider: at any time, killed at times, and twice when the provider is
/// quiet.
///
/// # Errors
/// A run has no end, or a quiet run fails.
fn live(
    made: Provider,
    seed: u64,
    run: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<(), String> {
    let (faults, mut random) = (made.faults, Random::new(seed));
    WORLD.set(Some(World { provider: made, left: 0, asked: 0, gaps: 0 }));
    let mut run = |requests: usize| {
        WORLD.with_borrow_mut(|world| world.as_mut().expect("a provider").left = requests);
        note(|| "a run begins".to_owned());
        run().inspect_err(|error| note(|| error.to_string()))
    };
    for _ in 0..=random.below(RUNS_MAX) {
        let is_killed = faults.has(Fault::Kills) && random.below(2) == 0;
        let ended = run(if is_killed { random.index(25) } else { REQUESTS_MAX });
        if !is_killed && ended.is_err_and(|error| error.exit_code() == ExitCode::Cancelled) {
            return Err("a run has no end".to_owned());
        }
        provider(Provider::live);
    }
    provider(Provider::quieten);
    for _ in 0..2 {
        run(REQUESTS_MAX).map_err(|error| format!("a quiet run fails: {error}"))?;
        provider(Provider::wait);
    }
    Ok(())
}

/// The life of one copy; what is wrong at the end.
fn simulate(bench: &Bench, seed: u64, made: Provider) -> Result<(), String> {
    let requests = bench.requests();
    let mut copy = Copy::new(bench, &requests);
    let lived = live(made, seed, &mut || copy.run());
    let wrong = Wrong::of(&copy.kept);
    let what = match lived {
        Err(what) => what,
        Ok(()) if wrong != Wrong::default() => format!("{wrong:?}"),
        Ok(()) if !copy.wrongly_deleted.is_empty() => {
            format!("{:?} were never deleted", copy.wrongly_deleted)
        }
        Ok(()) => return Ok(()),
    };
    provider(|provider| {
        Err(format!(
            "{what}: ABREAST_TEST_SEED={seed}, {}, {:?}\n  there {:?}\n  here  {:?}",
            provider.shape.name,
            provider.faults,
            provider.entities(),
            copy.kept
        ))
    })
}

/// Does something for each seed, on two threads.
fn each_seed<T: Send>(seeds: &[u64], each: impl Fn(&Bench, u64) -> T + Sync) -> Vec<T> {
    let each = &each;
    std::thread::scope(|scope| {
        let half = |offset: usize| {
            move || {
                let bench = Bench::new();
                let own = seeds.iter().skip(offset).step_by(2);
                own.map(|seed| each(&bench, *seed)).collect::<Vec<_>>()
            }
        };
        let threads = [scope.spawn(half(0)), scope.spawn(half(1))];
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_right(count: u64, is_calm: bool) {
    let made = |seed| Some(Provider::new(seed, BASE, is_calm));
    assert_each(count, made, simulate);
}

/// Something holds for each of so many seeds that have a provider.
fn assert_each(
    count: u64,
    made: impl Fn(u64) -> Option<Provider> + Sync,
    holds: impl Fn(&Bench, u64, Provider) -> Result<(), String> + Sync,
) {
    let seeds = seeds(count);
    let results =
        each_seed(&seeds, |bench, seed| made(seed).map_or(Ok(()), |made| holds(bench, seed, made)));
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    let shown = failed.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    assert!(failed.is_empty(), "{} of {} seeds fail\n{shown}", failed.len(), seeds.len());
}

#[test]
fn copies_of_quiet_providers_are_right() {
    assert_right(1_000, true);
}

#[test]
fn copies_are_right_after_any_adversity() {
    assert_right(10_000, false);
}

#[test]
fn an_entry_point_older_than_its_pages_needs_no_comparison() {
    let made = |seed| {
        let mut made = Provider::new(seed, BASE, true);
        made.faults = Faults::only(Fault::OldEntry);
        let leads_on = made.shape.has_prev && made.shape.paging != Paging::Until;
        leads_on.then_some(made)
    };
    assert_each(2_000, made, |bench, seed, made| {
        simulate(bench, seed, made)?;
        match WORLD.with_borrow(|world| world.as_ref().map_or(0, |world| world.gaps)) {
            0 => Ok(()),
            gaps => Err(format!("{gaps} comparisons: ABREAST_TEST_SEED={seed}")),
        }
    });
}
