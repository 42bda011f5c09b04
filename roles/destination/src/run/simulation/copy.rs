//! A copy of a simulated provider: runs of a reader, and a model of the transfer.

use super::keep::keep;
use super::world::{Simulated, ask_again, count_baseline, count_gap, note, provider};
use super::{BASE, packages};
use crate::copy::key;
use crate::copy::state_folder::StateFolder;
use crate::plan::planner::{PlanContext, Planner};
use crate::read::Reader;
use crate::read::driver::Driver;
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Event, Mode, Summary};
use crate::report::lasting::Continued;
use crate::report::options::{MaxDelete, SyncOptions};
use crate::report::reporter::Reporter;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use crate::transfer::guard::WAITS_MAX;
use crate::{PushOptions, SinkOptions};
use abreast_net::Shared;
use abreast_store::mirror::{Mirror, Pending, PendingAction, PendingState, Row, Task};
use abreast_testkit::providers::{Known, Provider};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How often changes are read again because resources changed while they were fetched.
const REPLANS_MAX: usize = 3;

/// Makes the reader of a run.
pub(super) type MakeReader = fn() -> Box<dyn Reader>;

/// Data that all copies of a thread share.
pub(super) struct Bench {
    options: SyncOptions,
    shared: Arc<Shared>,
    state: StateFolder,
    cancel: AtomicBool,
    _place: tempfile::TempDir,
}

impl Bench {
    pub(super) fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let mut options = SyncOptions::new(BASE, place.path());
        // A sink that a comparison does not read back.
        options.sink = SinkOptions::Push(PushOptions { url: BASE.to_owned(), graph: None });
        options.ignore_robots = true;
        options.max_delete = MaxDelete::Percent(100.0);
        let shared = Shared::new(options.net_options());
        let state = StateFolder::at(place.path()).unwrap();
        Self { options, shared, state, cancel: AtomicBool::new(false), _place: place }
    }
}

/// A copy: its database, and its stored resources.
pub(super) struct Copy<'b> {
    bench: &'b Bench,
    options: SyncOptions,
    make: MakeReader,
    mirror: Mirror,
    pub(super) kept: BTreeMap<String, String>,
    /// The stored resources at the start of the open transaction.
    committed: Option<BTreeMap<String, String>>,
    /// Entities that the last run could not fetch.
    pub(super) failed: Vec<String>,
    /// Entities that were deleted in the copy and not at the provider.
    pub(super) wrongly_deleted: Vec<String>,
}

impl<'b> Copy<'b> {
    /// A copy of the Source at an address.
    pub(super) fn new(bench: &'b Bench, url: String, make: MakeReader) -> Self {
        let options = SyncOptions { url, ..bench.options.clone() };
        Self {
            bench,
            options,
            make,
            mirror: Mirror::scratch().unwrap(),
            kept: BTreeMap::new(),
            committed: None,
            failed: Vec::new(),
            wrongly_deleted: Vec::new(),
        }
    }

    /// A run; with which code it ends.
    pub(super) fn run(&mut self) -> Result<ExitCode, Error> {
        self.options.dumps = provider(packages::choice);
        let lasting = Continued::begin(&self.mirror)?;
        let (result, mut summary, lasting) = self.try_run(lasting);
        if summary.mode == Mode::Baseline {
            count_baseline();
        }
        // Uncommitted changes are truncated when the database is opened again.
        self.mirror.rollback().unwrap();
        if let Some(committed) = self.committed.take() {
            self.kept = committed;
        }
        match result {
            Ok(()) => lasting.end(&self.mirror, &mut summary, true)?,
            Err(error) if error.exit_code() == ExitCode::Cancelled => return Err(error),
            Err(error) => {
                lasting.end_failed(&self.mirror, &self.options.url, &error)?;
                return Err(error);
            }
        }
        Ok(summary.outcome())
    }

    /// The order of `run/sync.rs`: the only place that knows how a run uses a reader.
    fn try_run(&mut self, lasting: Continued) -> (Result<(), Error>, Summary, Continued) {
        let Self { bench, options, make, mirror, kept, committed, failed: last, wrongly_deleted } =
            self;
        last.clear();
        let (options, mirror) = (&*options, &*mirror);
        let mut requests = Requests::new(options, &bench.cancel, &bench.shared).unwrap();
        requests.documents = Rc::new(Simulated);
        let requests = &requests;
        let mut planner = Planner::new(options, mirror, bench.state.clone()).unwrap();
        let mut report = Reporter::new(&observe, &bench.shared, false);
        report.lasting = lasting;
        let mut run = PlanContext { requests, planner: &mut planner, report: &mut report };
        let mut reader = Driver::of(make());
        let mut carry_out = || {
            let start = reader.find(&mut run)?;
            run.planner.admission = Some(Admission::new(&start.first, &[], false));
            run.planner.selection.prepare(mirror, options, (&mut reader, requests), &start)?;
            reader.plan(&mut run)?;
            provider(|provider| provider.note_kept(true));
            mirror.renew_pending()?;
            let epoch = run.planner.epoch;
            mirror.set_meta(key::EPOCH, Some(&epoch.to_string()))?;
            packages::supply(&mut reader, &mut run, kept)?;
            let mut failed = fetch_all(run.planner, kept, committed)?;
            if reader.has_rest() && reader.plan_rest(&mut run)? {
                provider(|provider| provider.note_kept(true));
                packages::supply(&mut reader, &mut run, kept)?;
                failed.extend(fetch_all(run.planner, kept, committed)?);
            }
            for _ in 0..REPLANS_MAX {
                if failed.is_empty() || !reader.plan_again(&mut run)? {
                    break;
                }
                provider(|provider| provider.note_kept(true));
                failed.extend(fetch_all(run.planner, kept, committed)?);
            }
            for (uri, is_new) in failed {
                if mirror.is_failed(&uri)? {
                    run.report.summary.failed += 1;
                    run.report.new_failures += u64::from(is_new);
                    note(|| format!("{uri} failed"));
                    last.push(uri);
                }
            }
            if run.report.new_failures + run.report.new_faults > 0 {
                let only_absent = run.report.new_failures == 0;
                run.report.summary.held = mirror.hold_waiting(WAITS_MAX, only_absent)?;
                note(|| format!("deletions that are held: {}", run.report.summary.held));
            }
            delete(mirror, kept, wrongly_deleted)?;
            run.planner.bodies.sweep(mirror)
        };
        let result = carry_out();
        let Reporter { summary, lasting, .. } = report;
        (result, summary, lasting)
    }
}

fn observe(event: &Event<'_>) {
    if let Event::Notice(problem) | Event::Error(problem) = event {
        note(|| format!("{}: {} {}", problem.code, problem.uri, problem.message));
        if problem.code == "gap" {
            count_gap();
            if problem.message.ends_with("compared again when it changes") {
                // The problem is only a notice, and not a fault of the copy.
                provider(Provider::note_missed);
            }
        }
    }
}

/// Fetches planned resources; discards them if the run is killed.
fn fetch_all(
    planner: &Planner<'_>,
    kept: &mut BTreeMap<String, String>,
    committed: &mut Option<BTreeMap<String, String>>,
) -> Result<Vec<(String, bool)>, Error> {
    *committed = Some(kept.clone());
    let failed = fetch(planner, kept)?;
    *committed = None;
    Ok(failed)
}

/// The URIs of failed resources, and whether the failure is new.
fn fetch(
    planner: &Planner<'_>,
    kept: &mut BTreeMap<String, String>,
) -> Result<Vec<(String, bool)>, Error> {
    let (mirror, mut tasks, mut failed) = (planner.mirror, Vec::new(), Vec::new());
    mirror.fetches_after("", usize::MAX >> 1, &mut tasks)?;
    mirror.begin()?;
    for task in tasks {
        let item = &task.pending;
        if let (PendingAction::Touch, Some(row)) = (item.action, &task.row) {
            mirror.put_row(&Row { modified: item.modified, ..row.clone() })?;
            mirror.forget_pending(&item.uri)?;
            continue;
        }
        match bytes_of(planner, &task)? {
            Some(bytes) if bytes.is_empty() && item.describes() => {
                // The document no longer contains statements about the entity.
                if task.row.is_some() {
                    let action = PendingAction::Delete;
                    mirror.put_pending(&Pending { action, ..item.clone() })?;
                } else {
                    mirror.forget_pending(&item.uri)?;
                }
            }
            Some(bytes) if keep(planner, &task, bytes.clone(), kept)? => {}
            _ => {
                mirror.set_pending_state(&item.uri, PendingState::Failed, true)?;
                failed.push((item.uri.clone(), item.attempts == 0));
            }
        }
    }
    mirror.commit()?;
    Ok(failed)
}

/// The bytes of a resource, if they can be received.
fn bytes_of(planner: &Planner<'_>, task: &Task) -> Result<Option<Vec<u8>>, Error> {
    let item = &task.pending;
    if let Some(at) = item.body {
        let mut bytes = Vec::new();
        return Ok(planner.bodies.read(item, at, &mut bytes).is_ok().then_some(bytes));
    }
    let reply = ask_again(item.href(), Known::default(), &mut |_| Ok(()))?;
    let reply = reply.filter(|reply| reply.status == 200);
    Ok(reply.map(|reply| reply.body))
}

/// Deletes planned resources, except copies of resources that are still to be fetched at their new
/// URI.
fn delete(
    mirror: &Mirror,
    kept: &mut BTreeMap<String, String>,
    wrongly_deleted: &mut Vec<String>,
) -> Result<(), Error> {
    let mut tasks = Vec::new();
    mirror.deletes_after("", usize::MAX >> 1, &mut tasks)?;
    mirror.begin()?;
    for task in tasks {
        let uri = &task.pending.uri;
        if let Some(target) = task.pending.moved_to()
            && mirror.task(target)?.is_some_and(|task| !task.pending.action.is_deletion())
        {
            continue;
        }
        note(|| format!("{uri} is deleted"));
        let is_gone =
            |provider: &mut Provider| provider.has_deleted(uri) || provider.may_be_restored(uri);
        if kept.remove(uri).is_some() && !provider(is_gone) {
            wrongly_deleted.push(uri.clone());
        }
        mirror.delete_row(uri)?;
        mirror.forget_pending(uri)?;
    }
    Ok(mirror.commit()?)
}
