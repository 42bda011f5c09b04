//! A run, in its order: lock, plan, carry out the plan, report.

use crate::copy::common_base::authority_root;
use crate::copy::key;
use crate::copy::marker::Marker;
use crate::copy::path_map::{NameRules, PathMap};
use crate::copy::published::note_sources;
use crate::copy::state::State;
use crate::copy::state_folder::StateFolder;
use crate::plan::damage::{check_kept, distrust, plan_names, report_more_reserved};
use crate::plan::deprecation::message;
use crate::plan::planner::{PlanContext, Planner, Polling};
use crate::plan::skolem;
use crate::push::announcement::Announcement;
use crate::read::choice::Choice;
use crate::read::driver::Driver;
use crate::read::position::Position;
use crate::read::{self, Start, check_url};
use crate::report::error::{Error, ExitCode};
use crate::report::events::{Event, Observer, Summary};
use crate::report::last_run::LastRun;
use crate::report::lasting::Continued;
use crate::report::meters::with_meter;
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use crate::request::robots::Robots;
use crate::run::hand_over::{HandOver, note_paths};
use crate::run::moved;
use crate::run::parts::parts_of;
use crate::run::settle::{settle, written_text};
use crate::sink::kind::Opening;
use crate::sink::newest;
use crate::sink::outcome::Notice;
use crate::sink::rdf_rules::{self, RdfRules};
use crate::transfer::history::fetch_versions;
use crate::transfer::mirror_hosts::MirrorHosts;
use crate::transfer::recover::recover;
use crate::transfer::repetitions::Repetitions;
use crate::transfer::rules::{PatchCounts, Rules};
use crate::transfer::warm_up::WarmUp;
use crate::transfer::{Transfer, created, sweep_partials};
use abreast_folder::{Folder, Locked};
use abreast_net::{Shared, TRACE};
use abreast_store::mirror::{Mirror, Pending, PendingCounts, Task};
use abreast_webtypes::{Digests, without_login};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Makes a folder equal to a Source's set of resources, and stores the data that makes the next run
/// faster.
///
/// `cancel` stops the run at the next safe point; running again continues.
///
/// # Errors
/// The run was stopped; [`Error::exit_code`] is the kind of error. Failures of single resources are
/// not errors but part of the [`Summary`].
pub fn sync(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Error> {
    let shared = Shared::new(with_meter(options.net_options(), &observer.meter()));
    let mut choice = Choice::default();
    sync_with(options, observer, cancel, &shared, &Arc::default(), Wake::default(), &mut choice)
        .map(|ran| ran.summary)
}

/// The cause of a run.
#[derive(Debug, Default)]
pub(crate) struct Wake {
    /// Notifications to apply instead of requesting lists, if they continue from the cursor.
    pub(crate) notifications: Vec<Bytes>,
    /// If they do not, the lists are not requested before this instant, but by a later run.
    pub(crate) poll_from: Option<Instant>,
    /// Whether the address of announcements is determined again.
    pub(crate) looks_again: bool,
    /// Whether the caller holds the lock of the copy for all its runs.
    pub(crate) is_held: bool,
    /// Who gives the changes of the copy to the command.
    pub(crate) handing: Handing,
}

/// Who gives the changes of the copy to the command of the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Handing {
    /// The run, before it ends.
    #[default]
    Run,
    /// The caller, between the runs.
    Caller {
        /// Whether the command failed too often.
        has_failed: bool,
    },
}

/// The result of a run when following.
pub(crate) struct Ran {
    pub(crate) summary: Summary,
    /// The freshness lifetime of the polled list.
    pub(crate) fresh: Duration,
    /// The announcement of the Source, if there is one.
    pub(crate) announcement: Option<Announcement>,
    /// Changes were announced that the copy does not have.
    pub(crate) is_behind: bool,
    /// The time of the last request for the lists, and whether a request was too early.
    pub(crate) polling: Polling,
    /// The lock of the copy, which is released when this value is dropped.
    pub(crate) lock: Option<Locked>,
}

/// A run, and another one if the first notices that the set was renamed at the Source.
pub(crate) fn sync_with(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
    shared: &Arc<Shared>,
    robots: &Arc<Robots>,
    wake: Wake,
    choice: &mut Choice,
) -> Result<Ran, Error> {
    let span = tracing::debug_span!(target: TRACE, "sync", url = %without_login(&options.url));
    let _entered = span.enter();
    let again = Wake { looks_again: wake.looks_again, is_held: wake.is_held, ..Wake::default() };
    let mut renamed = None;
    let ran =
        sync_once(options, observer, cancel, shared, robots, (wake, Some(&mut renamed)), choice);
    let Some(options) = renamed else { return ran };
    *choice = Choice::default();
    let ran = sync_once(&options, observer, cancel, shared, robots, (again, None), choice);
    // The reader has the address of this run.
    *choice = Choice::default();
    ran
}

/// If `renamed` is present, a permanent redirect of the set's addresses ends the run, with the options for the next one.
fn sync_once(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
    shared: &Arc<Shared>,
    robots: &Arc<Robots>,
    (wake, renamed): (Wake, Option<&mut Option<SyncOptions>>),
    choice: &mut Choice,
) -> Result<Ran, Error> {
    let began = Instant::now();
    let before = shared.counters();
    check_url(&options.url)?;
    options.sink.kind().check_target()?;
    let State { mirror, folder, own_folder, lock, lost, marker, is_restored, mut made } =
        State::open(options, wake.is_held)?;
    let mut requests = Requests::new(options, cancel, shared)?;
    requests.robots = (!options.ignore_robots).then(|| Arc::clone(robots));
    let current = match read::renamed::current_address((&requests, options), &mirror)? {
        Some(url) if !options.moved => Some(SyncOptions { url, ..options.clone() }),
        _ => None,
    };
    let options = current.as_ref().unwrap_or(options);
    if renamed.is_some() && !options.moved {
        requests.moves.borrow_mut().known = read::renamed::known_addresses(&mirror)?;
    }
    let mut planner = Planner::new(options, &mirror, own_folder.clone())?;
    planner.notifications = wake.notifications;
    planner.polling.earliest = wake.poll_from;
    planner.polling.looks_again = wake.looks_again;
    let mut report = Reporter::new(observer, shared, options.dry_run);
    report.lasting = Continued::begin(&mirror)?;
    if let Some(on_change) = options.on_change.as_ref().filter(|_| !options.dry_run) {
        mirror.record_changes(on_change.waiting_max)?;
    }
    let mut run = Run {
        options,
        state: &own_folder,
        folder: &folder,
        shared,
        requests: &requests,
        planner,
        report,
        marker: marker.as_ref(),
    };
    if let Some(lost) = lost {
        run.report.notice("state.missing", &options.url, &lost);
    }
    if is_restored {
        let message = format!(
            "{} and the state in {} were not left by the same run: one of them was restored or replaced",
            options.folder.display(),
            own_folder.path().display()
        );
        distrust(&mut run.context(), &message);
    }
    if options.dry_run {
        mirror.begin()?;
    }
    if options.sink.facts().is_folder() {
        settle(&mut run.context(), &folder)?;
    }
    let reader = match choice.reader_of_run(&requests, options, &mirror) {
        Ok(reader) => reader,
        Err(error) => {
            let found = requests.moves.take().found;
            if let (Some(found), Some(renamed)) = (found, renamed) {
                *renamed = Some(read::renamed::follow_move((&requests, options), &found, &mirror)?);
                return Err(error);
            }
            let error = or_removed((&requests, options), &mirror, error)?;
            if error.exit_code() != ExitCode::Cancelled {
                run.hand_over(wake.handing)?;
            }
            if !options.dry_run && has_begun(&mirror)? {
                let problems = run.report.problems.take();
                let failure = Some((options.url.as_str(), &error));
                LastRun::keep(&mirror, &run.report.summary, problems, failure)?;
            }
            return Err(error);
        }
    };
    if let Some(message) =
        moved::prepare(reader, (&requests, options), &run.planner.downloads, (&mirror, observer))?
    {
        run.report.notice("source.moved", &options.url, &message);
    }
    let result = run.run(reader);
    let found = requests.moves.take().found;
    if let (Err(_), Some(found), Some(renamed)) = (&result, found, renamed) {
        mirror.rollback()?;
        *renamed = Some(read::renamed::follow_move((&requests, options), &found, &mirror)?);
        return Err(result.err().unwrap_or_else(Error::cancelled));
    }
    let result = match result {
        Ok(done) => Ok(done),
        Err(error) => Err(or_removed((&requests, options), &mirror, error)?),
    };
    // Discards an unfinished transaction.
    mirror.rollback()?;
    let is_stopped = result.as_ref().is_err_and(|error| error.exit_code() == ExitCode::Cancelled);
    let result = if is_stopped { result } else { run.hand_over(wake.handing).and(result) };
    let Run { planner: Planner { polling, .. }, report, .. } = run;
    let Reporter { mut summary, lasting, problems, .. } = report;
    let is_kept = result.is_ok() || has_begun(&mirror)?;
    if is_kept {
        made.keep_unless(options.dry_run);
    }
    let counters = shared.counters();
    summary.requests = counters.requests - before.requests;
    summary.retries = counters.retries - before.retries;
    summary.bytes = counters.bytes_received - before.bytes_received;
    summary.seconds = began.elapsed().as_secs_f64();
    match &result {
        Ok(()) => lasting.end(&mirror, &mut summary, !polling.is_postponed)?,
        Err(error) if is_kept && !options.dry_run => {
            lasting.end_failed(&mirror, &options.url, error)?;
        }
        Err(_) => {}
    }
    summary.exit_code = summary.outcome().number();
    let is_postponed = polling.is_postponed && summary.is_idle();
    if is_kept && !options.dry_run && !is_postponed {
        let failure = result.as_ref().err().map(|error| (options.url.as_str(), error));
        LastRun::keep(&mirror, &summary, problems.into_inner(), failure)?;
    }
    result.map_err(|error| reader.explain(&requests, options, error))?;
    let announcement = reader.announcement();
    let is_behind = reader.is_behind(&mirror)?;
    // If nothing was requested, there is no outcome to report: a later run does the work.
    if !is_postponed {
        observer.event(&Event::Summary(&summary));
    }
    Ok(Ran { summary, fresh: requests.fresh.get(), announcement, is_behind, polling, lock })
}

/// Reports the decision of the filters about each resource in the Source's Resource List, without
/// changes.
///
/// # Errors
/// The lists cannot be found or read.
pub fn test_filter(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
) -> Result<Summary, Error> {
    let options = SyncOptions { dry_run: true, ..options.clone() };
    let shared = Shared::new(with_meter(options.net_options(), &observer.meter()));
    let State { mirror, own_folder, .. } = State::open(&options, false)?;
    let requests = Requests::new(&options, cancel, &shared)?;
    let mut planner = Planner::new(&options, &mirror, own_folder)?;
    let mut report = Reporter::new(observer, &shared, true);
    mirror.begin()?;
    let mut choice = Choice::default();
    let reader = choice.reader(&requests, &options, Some(&mirror))?;
    let mut context =
        PlanContext { requests: &requests, planner: &mut planner, report: &mut report };
    let result = reader.find(&mut context).and_then(|start| {
        planner.selection.prepare(&mirror, &options, (reader, &requests), &start)?;
        planner.selection.show(&options, (reader, &requests), &mut report)
    });
    mirror.rollback()?;
    result?;
    observer.event(&Event::Summary(&report.summary));
    Ok(report.summary)
}

/// The error for a set that the Source has removed, if there is a copy of the set.
fn or_removed(
    run: (&Requests<'_>, &SyncOptions),
    mirror: &Mirror,
    error: Error,
) -> Result<Error, Error> {
    if has_begun(mirror)? {
        Ok(read::renamed::or_removed(run, Some(mirror), error))
    } else {
        Ok(error)
    }
}

/// Whether the copy has resources, or a plan that the next run continues.
fn has_begun(mirror: &Mirror) -> Result<bool, Error> {
    let planned = mirror.pending_counts()?;
    Ok(mirror.count_rows_up_to(1)? > 0 || planned != PendingCounts::default())
}

/// A run of a synchronisation.
struct Run<'a> {
    options: &'a SyncOptions,
    state: &'a StateFolder,
    folder: &'a Folder,
    shared: &'a Arc<Shared>,
    requests: &'a Requests<'a>,
    planner: Planner<'a>,
    report: Reporter<'a>,
    /// The marker in the folder, if the state is elsewhere.
    marker: Option<&'a Marker>,
}

impl<'a> Run<'a> {
    fn context(&mut self) -> PlanContext<'_, 'a> {
        PlanContext {
            requests: self.requests,
            planner: &mut self.planner,
            report: &mut self.report,
        }
    }

    fn opening(&self) -> Opening<'a> {
        let (options, mirror) = (self.options, self.planner.mirror);
        Opening {
            options,
            mirror,
            state: self.state,
            folder: self.folder,
            epoch: self.planner.epoch,
        }
    }

    fn run(&mut self, reader: &mut Driver) -> Result<(), Error> {
        let (options, mirror) = (self.options, self.planner.mirror);
        created::begin(mirror)?;
        self.planner.sink = self.opening().packed(&mut self.report)?;
        let start = reader.find(&mut self.context())?;
        // A copy that has resources already may need nothing more.
        let mut warm_up = WarmUp::default();
        if !options.dry_run && !has_begun(mirror)? {
            let robots = self.requests.robots.as_ref();
            warm_up = WarmUp::start(options, self.shared, robots, &start.first);
        }
        let admission = Admission::new(&start.first, &options.allow_hosts, options.allow_downgrade);
        self.planner.admission = Some(admission.clone());
        let rules = Arc::new(Rules {
            rdf: RdfRules::new(options, mirror)?,
            require_fixity: options.require_fixity,
            authorization: options.authorization.clone(),
            authorized_url: options.url.clone(),
            robots: self.requests.robots.clone(),
            admission,
            alternates: Arc::clone(&self.planner.alternates),
            is_gone_if_empty: reader.is_gone_if_empty(),
            bodies: Arc::clone(&self.planner.bodies),
            patches: PatchCounts::default(),
            mirror_hosts: MirrorHosts::new(options.parallel_by_protocol()[0]),
            again: Repetitions::default(),
            deprecations: Arc::clone(&self.planner.deprecations),
            skolems: skolem::Evidence::new(mirror)?,
            epoch: self.planner.epoch,
        });
        let is_known = mirror.meta(key::BASE)?.is_some() || self.planner.sink.is_some();
        if is_known || options.base.is_some() || start.uri_space.is_some() {
            self.ensure_sink(&start)?;
            recover(&mut self.context())?;
        }
        if let Some(sink) = self.planner.sink.clone()
            && let Some(why) = sink.restored(mirror)?
        {
            distrust(&mut self.context(), &why);
        }
        self.planner.selection.prepare(mirror, options, (reader, self.requests), &start)?;
        if options.baseline || self.planner.copy.is_distrusted {
            // If the Source has no list of all resources, no comparison with a list checks the
            // copy.
            check_kept(&mut self.context())?;
            // Missing and changed resources are planned at this point.
            newest::forget(mirror)?;
            self.stamp()?;
        }
        reader.plan(&mut self.context())?;
        self.planner.selection.plan_excluded(mirror, options, &mut self.report)?;
        plan_names(&mut self.planner)?;
        mirror.renew_pending()?;
        let counts = mirror.pending_counts()?;
        if counts.fetches == 0 && !options.dry_run {
            self.planner.downloads.sweep();
        }
        let mut carried_out = Ok(());
        let is_needed = counts.fetches + counts.deletes + counts.held > 0;
        if is_needed {
            self.ensure_sink(&start)?;
        }
        if options.sink.is_local() && !options.dry_run {
            self.note_sources(&start.first)?;
        }
        if is_needed {
            carried_out = self.carry_out(reader, &rules, warm_up);
        } else if let Some(sink) = self.planner.sink.as_deref().filter(|_| !options.dry_run) {
            // Nothing is planned, so incomplete bodies are not needed.
            sweep_partials(mirror, sink)?;
        }
        rules.skolems.conclude(&mut self.context())?;
        rdf_rules::conclude(mirror, &mut self.report)?;
        // Also after a run that ended early, since the next run does not read these changes again.
        self.report_deprecated()?;
        carried_out?;
        if let Some(sink) = &self.planner.sink {
            sink.finish(mirror)?;
            if let Some(Notice { code, message }) = sink.remark()? {
                self.report.notice(code, &options.url, &message);
            }
        }
        if !options.dry_run {
            self.planner.bodies.sweep(mirror)?;
        }
        report_more_reserved(&mut self.report, &options.url);
        let state = self.state;
        fetch_versions(&mut self.context(), state, &rules)?;
        self.report.summary.cursor = Position::load(mirror)?.text();
        Ok(())
    }

    /// Gives the changes of this run, and changes that wait since earlier runs, to the command of the
    /// user.
    fn hand_over(&mut self, handing: Handing) -> Result<(), Error> {
        let (options, mirror) = (self.options, self.planner.mirror);
        let Some(mut hand_over) = HandOver::new(options) else { return Ok(()) };
        if let Some(sink) = &self.planner.sink {
            note_paths(mirror, &**sink)?;
        }
        let has_failed = match handing {
            Handing::Caller { has_failed } => has_failed,
            Handing::Run => {
                let accepted = hand_over.finish(mirror, self.report.observer, self.requests.cancel);
                self.report.summary.notices += hand_over.notices();
                !accepted?
            }
        };
        let waiting = if has_failed { mirror.count_waiting(u64::MAX)? } else { 0 };
        if waiting > 0 {
            self.report.summary.not_handed_over = waiting;
            self.report.problem("on-change.given-up", &options.url, &HandOver::failure(waiting));
        }
        Ok(())
    }

    /// Records the origins of the copy's resources in its folder.
    fn note_sources(&mut self, first: &str) -> Result<(), Error> {
        let (options, folder) = (self.options, self.folder);
        let named = self.requests.origins.all();
        let parts = match &self.planner.sink {
            Some(sink) => parts_of(folder, &**sink, self.planner.mirror, named)?,
            None => Vec::new(),
        };
        if !note_sources(folder, [&options.url, first], parts, options.baseline)? {
            let message = "the record of the Sources of the copy was damaged; it is written again";
            self.report.notice("state.record", &options.url, message);
        }
        Ok(())
    }

    /// Gives a new stamp to the state and to its folder, if the state is elsewhere.
    fn stamp(&self) -> Result<(), Error> {
        let marker = self.marker.filter(|_| !self.options.dry_run);
        marker.map_or(Ok(()), |marker| marker.stamp(self.planner.mirror))
    }

    /// Carries out the plan, and records the progress in the database.
    fn carry_out(
        &mut self,
        reader: &mut Driver,
        rules: &Arc<Rules>,
        warm_up: WarmUp,
    ) -> Result<(), Error> {
        let (mirror, epoch) = (self.planner.mirror, self.planner.epoch.to_string());
        let sink =
            self.planner.sink.clone().expect("the base is known before anything is carried out");
        let mut transfer = Transfer::new(
            (self.options, mirror),
            self.requests,
            self.shared,
            rules,
            Arc::clone(&sink),
            warm_up,
        );
        self.stamp()?;
        mirror.set_meta(key::EPOCH, Some(&epoch))?;
        mirror.set_meta(key::WRITTEN, Some(&written_text()))?;
        transfer.carry_out(reader, &mut self.context())?;
        mirror.set_meta(key::WRITTEN, Some(&written_text()))?;
        mirror.set_meta(key::FINISHED, Some(&epoch))?;
        self.stamp()?;
        if !self.options.dry_run {
            sweep_partials(mirror, &*sink)?;
        }
        transfer.report_failures(&self.report);
        self.report.summary.patched = rules.patches.lock().patched;
        if sink.reads_descriptions() {
            self.report_patches(rules);
        }
        Ok(())
    }

    /// Reports the deprecated resources that waited for their descriptions, in this run or in a
    /// killed run.
    fn report_deprecated(&mut self) -> Result<(), Error> {
        let waited = self.planner.deprecations.take();
        if waited.is_empty() {
            return Ok(());
        }
        for (uri, replaced_by) in &waited {
            let replaced_by = match replaced_by {
                Some(replaced_by) => replaced_by.clone(),
                None => self.kept_replacements(uri)?,
            };
            self.report.notice("resource.deprecated", uri, &message(&replaced_by));
        }
        Ok(self.planner.mirror.forget_deprecations()?)
    }

    /// The replacements of a resource, according to its stored and current description.
    fn kept_replacements(&self, uri: &str) -> Result<Vec<String>, Error> {
        let mirror = self.planner.mirror;
        let Some(sink) = self.planner.sink.clone().filter(|_| !self.options.dry_run) else {
            return Ok(Vec::new());
        };
        let (row, is_planned) = (mirror.row(uri)?, mirror.task(uri)?.is_some());
        let Some(row) = row.filter(|_| !is_planned) else { return Ok(Vec::new()) };
        let pending = Pending { uri: uri.to_owned(), ..Pending::default() };
        let (task, mut writer) = (Task { pending, row: Some(row) }, sink.writer());
        let kept = match writer.prepare(&task, &Digests::default()) {
            Ok(_) => writer.kept_description(&task),
            Err(_) => None,
        };
        let of = |lines: Vec<u8>| self.planner.deprecations.replacements(uri, &lines);
        Ok(kept.map(of).unwrap_or_default())
    }

    /// Reports patches of changes that could not be applied.
    fn report_patches(&mut self, rules: &Rules) {
        let counts = rules.patches.lock();
        if let Some((uri, why)) = &counts.first {
            let message = format!(
                "resources whose patches do not apply, and which were fetched: {}; the first is {uri}: {why}",
                counts.fetched
            );
            self.report.notice("rdf.patch", &self.options.url, &message);
        }
    }

    /// The map from URIs to paths, and the folder: fixed at the first run, the same ever after.
    fn ensure_sink(&mut self, start: &Start) -> Result<(), Error> {
        let (options, mirror) = (self.options, self.planner.mirror);
        let paths = options.sink.kind().paths().filter(|_| self.planner.sink.is_none());
        let Some(paths) = paths else { return Ok(()) };
        let stored = mirror.meta(key::BASE)?;
        if let (Some(stored), Some(asked)) = (&stored, &options.base)
            && stored != asked
        {
            return Err(Error::new(
                "folder.base",
                ExitCode::Usage,
                format!("this folder was begun with the base {stored}, not {asked}"),
            )
            .with_help(
                "leave `--base` away; or, if the Source has moved, add `--moved`; or use another folder",
            ));
        }
        let system = paths.system(self.opening())?;
        let fixed = stored.or_else(|| options.base.clone());
        let map = base_map(fixed, start, mirror.meta(key::COMMON)?, system.rules)?;
        mirror.set_meta(key::BASE, Some(map.base()))?;
        self.planner.sink = Some(paths.open(self.opening(), map, system)?);
        Ok(())
    }
}

/// The map from URIs to paths with the fixed base, or else with the most likely usable base;
/// `common` is the common start of all listed URIs.
pub(crate) fn base_map(
    fixed: Option<String>,
    start: &Start,
    common: Option<String>,
    rules: NameRules,
) -> Result<PathMap, Error> {
    let guesses =
        [start.uri_space.clone(), common, authority_root(&start.first)].into_iter().flatten();
    let map = if let Some(base) = fixed {
        PathMap::new(&base, rules)
    } else {
        let mut maps = guesses.filter_map(|base| PathMap::new(&base, rules).ok());
        maps.next().map_or_else(|| PathMap::new(&start.first, rules), Ok)
    };
    map.map_err(|cause| Error::new("folder.base", ExitCode::Usage, cause.to_string()))
}
