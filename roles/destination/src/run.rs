//! In which order does a run go? Lock, plan from the lists, fetch, look again, delete, report.

use crate::admit::Admission;
use crate::apply::Report;
use crate::error::{Error, ExitCode};
use crate::events::{Event, Mode, Observer, Summary};
use crate::options::SyncOptions;
use crate::partial::Partials;
use crate::path_map::PathMap;
use crate::place::{Backup, Ground, Made};
use crate::plan::changes::Followed;
use crate::plan::comparison::Baseline;
use crate::probe::FileSystem;
use crate::push::LISTS_LATE;
use crate::read::resourcesync::discover::{Discovered, Entrance, discover, with_other_sets};
use crate::read::resourcesync::sets::check_url;
use crate::robots::Robots;
use crate::session::Session;
use crate::sink::folder::FolderKept;
use crate::sink::kept::{ReadBack as _, plan_again};
use crate::state::{State, key};
use abreast_folder::{Folder, Locked};
use abreast_net::Shared;
use abreast_store::mirror::PendingCounts;
use abreast_webtypes::Timestamp;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the Change Lists are read again because resources changed while they were fetched.
const SECOND_LOOKS: usize = 3;
/// After this long, files written by an earlier run are made durable by the next one.
const SETTLE_AFTER: Duration = Duration::from_secs(60);
/// How long lists may not know yet what a notification told before.
const LISTS_LATE_MAX: Duration = Duration::from_secs(15 * 60);

/// Makes a folder equal to a Source's set of resources, and keeps what is needed to do so faster the next time.
///
/// `cancel` stops the run at the next safe point; running again continues.
///
/// # Errors
/// What stopped the run; [`Error::exit_code`] says what kind it was. Failures of single resources are not errors but
/// part of the [`Summary`].
pub fn sync(options: &SyncOptions, observer: &dyn Observer, cancel: &AtomicBool) -> Result<Summary, Error> {
    let shared = Shared::new(options.net_options());
    sync_with(options, observer, cancel, &shared, &Arc::default(), Woke::default()).map(|ran| ran.summary)
}

/// Why a run begins.
#[derive(Debug, Default)]
pub(crate) struct Woke {
    /// Notifications to apply instead of asking, as far as they continue what is known.
    pub(crate) notifications: Vec<Bytes>,
    /// Where they do not, the lists are not asked before this instant, but by a later run.
    pub(crate) look_from: Option<Instant>,
    /// The caller has taken the copy for all its runs.
    pub(crate) is_held: bool,
}

/// What one run of several came to.
pub(crate) struct Ran {
    pub(crate) summary: Summary,
    /// For how long the list polled is fresh.
    pub(crate) fresh: Duration,
    pub(crate) capability_list: Option<String>,
    /// Changes were told that the copy does not have.
    pub(crate) is_behind: bool,
    /// When the lists were last asked, if they were.
    pub(crate) looked: Option<Instant>,
    /// It was too early to ask the lists.
    pub(crate) look_is_put_off: bool,
    /// The copy, taken for as long as this is kept.
    pub(crate) lock: Option<Locked>,
}

pub(crate) fn sync_with(
    options: &SyncOptions,
    observer: &dyn Observer,
    cancel: &AtomicBool,
    shared: &Arc<Shared>,
    robots: &Arc<Robots>,
    woke: Woke,
) -> Result<Ran, Error> {
    let began = Instant::now();
    let before = shared.counters();
    check_url(&options.url)?;
    let State { mirror, folder, own_folder, lock, lost, mut made } = State::open(options, woke.is_held)?;
    let epoch = mirror.meta(key::EPOCH)?.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0) + 1;
    let mut session = Session::new(options, observer, cancel, mirror, own_folder, Arc::clone(shared), epoch)?;
    session.told.notifications = woke.notifications;
    session.told.look_from = woke.look_from;
    if let Some(lost) = lost {
        session.notice("state.missing", &options.url, &lost);
    }
    if let Some(asked) = Arc::get_mut(&mut session.rules).and_then(|rules| rules.robots.as_mut()) {
        asked.clone_from(robots);
    }
    if options.dry_run {
        session.mirror.begin()?;
    }
    if options.sink.is_folder() {
        session.settle(&folder)?;
    }
    let result = session.run(&folder);
    // Whatever a transaction was left half-way does not count.
    session.mirror.rollback()?;
    if result.is_ok() || session.has_begun()? {
        made.keep_unless(options.dry_run);
    }
    result.map_err(|error| with_other_sets(&session.requests, options, error))?;
    let cursor = session.cursor()?;
    let capability_list = session.mirror.meta(key::CAPABILITY_LIST)?;
    let (looked, look_is_put_off) = (session.told.looked, session.told.look_is_put_off);
    let is_behind = session.told.wanted.is_some_and(|wanted| cursor.is_some_and(|cursor| cursor < wanted));
    let counters = shared.counters();
    let mut summary = session.summary;
    summary.requests = counters.requests - before.requests;
    summary.bytes = counters.bytes_received - before.bytes_received;
    summary.seconds = began.elapsed().as_secs_f64();
    summary.exit_code = summary.outcome().number();
    observer.event(&Event::Summary(&summary));
    let fresh = session.requests.fresh.get();
    Ok(Ran { summary, fresh, capability_list, is_behind, looked, look_is_put_off, lock })
}

/// Tells of each resource in the Source's Resource List what the filters say about it, and does nothing.
///
/// # Errors
/// The lists cannot be found or read.
pub fn test_filter(options: &SyncOptions, observer: &dyn Observer, cancel: &AtomicBool) -> Result<Summary, Error> {
    let options = SyncOptions { dry_run: true, ..options.clone() };
    let shared = Shared::new(options.net_options());
    let State { mirror, own_folder, .. } = State::open(&options, false)?;
    let mut session = Session::new(&options, observer, cancel, mirror, own_folder, shared, 0)?;
    session.mirror.begin()?;
    let result = session.test_selection();
    session.mirror.rollback()?;
    result?;
    observer.event(&Event::Summary(&session.summary));
    Ok(session.summary)
}

impl Session<'_> {
    fn run(&mut self, folder: &Folder) -> Result<(), Error> {
        self.open_packed_sink(folder)?;
        let entrance = self.entrance()?;
        let list = entrance.first().unwrap_or(&self.options.url);
        let admission = Admission::new(list, &self.options.allow_hosts, self.options.allow_downgrade);
        let rules = Arc::get_mut(&mut self.rules).expect("no thread runs yet");
        rules.admission = Some(admission);
        if self.mirror.meta(key::BASE)?.is_some() || self.options.base.is_some() || entrance.uri_space.is_some() {
            self.ensure_sink(folder, &entrance, list)?;
            self.recover()?;
        }
        self.prepare_selection(entrance.resource_list.as_deref(), list, entrance.uri_space.as_deref())?;
        self.plan(&entrance)?;
        self.plan_excluded()?;
        self.plan_names()?;
        self.mirror.renew_pending()?;
        let counts = self.mirror.pending_counts()?;
        if counts.fetches + counts.deletes + counts.held > 0 {
            self.ensure_sink(folder, &entrance, list)?;
            self.carry_out(&entrance)?;
        } else if self.sink.is_some() && !self.options.dry_run {
            // Nothing is wanted, so nothing is that was begun.
            self.sweep_partials()?;
        }
        if let Some(sink) = &self.sink {
            sink.finish(&self.mirror)?;
        }
        self.report_more_reserved();
        self.keep_history()?;
        self.summary.cursor = self.cursor()?.map(|cursor| cursor.to_string());
        Ok(())
    }

    /// Whether there is anything to keep: resources, or a plan that the next run continues.
    fn has_begun(&self) -> Result<bool, Error> {
        let planned = self.mirror.pending_counts()?;
        Ok(self.mirror.count_rows_up_to(1)? > 0 || planned != PendingCounts::default())
    }

    pub(crate) fn cursor(&self) -> Result<Option<Timestamp>, Error> {
        let text = self.mirror.meta(key::CURSOR)?;
        Ok(text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros))
    }

    fn test_selection(&mut self) -> Result<(), Error> {
        let entrance = self.entrance()?;
        let list = entrance.resource_list.clone().ok_or_else(|| {
            Error::new("gap", ExitCode::Gap, "the Source has no Resource List to test the filters with")
        })?;
        self.prepare_selection(Some(&list), &list, entrance.uri_space.as_deref())?;
        self.show_selection(&list)
    }

    /// Where the lists are: as found before, or discovered now.
    fn entrance(&mut self) -> Result<Entrance, Error> {
        let known = Entrance::known(&self.mirror)?;
        let source = self.mirror.meta(key::SOURCE_URL)?;
        let named =
            source.as_deref() == Some(&self.options.url) || known.capability_list.as_deref() == Some(&self.options.url);
        let same_set = self.options.set.is_none() || self.options.set == self.mirror.meta(key::SET)?;
        let has_any = known.has_any();
        if named && has_any && same_set {
            return Ok(known);
        }
        let Discovered { entrance: found, route } = discover(&self.requests, self.options)?;
        found.check_same(&known, &self.options.url)?;
        if let Some(route) = route {
            self.notice("discover.found", &self.options.url, &route);
        }
        self.begin()?;
        self.mirror.set_meta(key::SOURCE_URL, Some(&self.options.url))?;
        self.mirror.set_meta(key::SET, self.options.set.as_deref())?;
        found.keep(&self.mirror)?;
        self.commit()?;
        Ok(found)
    }

    /// Decides between following changes and comparing with the whole list.
    fn plan(&mut self, entrance: &Entrance) -> Result<(), Error> {
        let changes = entrance.change_list.as_deref();
        let has_all = entrance.resource_list.is_some() || entrance.resource_dump.is_some();
        let is_compared = self.options.baseline || self.filter_changed() && has_all;
        if self.filter_changed() && !has_all {
            self.keep_filter()?;
        }
        if !is_compared
            && let (Some(changes), Some(cursor)) = (changes, self.cursor()?)
            && self.plan_told(changes, cursor)?
        {
            return Ok(());
        }
        if !self.may_look() {
            self.told.look_is_put_off = true;
            return Ok(());
        }
        if !is_compared && let (Some(changes), Some(cursor)) = (changes, self.cursor()?) {
            let followed = self.plan_changes(changes, cursor, true)?;
            if self.is_followed(followed, changes, entrance)? {
                return Ok(());
            }
        } else if !is_compared
            && let (None, Some(dump), Some(cursor)) = (changes, entrance.change_dump.as_deref(), self.cursor()?)
        {
            let followed = self.plan_change_dump(dump, cursor, false)?;
            if self.is_followed(followed, dump, entrance)? {
                return Ok(());
            }
        }
        let Some(list) = entrance.resource_list.as_deref() else {
            if let Some(dump) = entrance.resource_dump.as_deref() {
                let baseline = self.plan_resource_dump(dump, changes.is_some() || entrance.change_dump.is_some())?;
                if changes.is_none() && baseline.whole && baseline.at.is_some() {
                    self.packages.changes_next.clone_from(&entrance.change_dump);
                    if self.mirror.pending_counts()?.fetches == 0 {
                        self.plan_changes_next()?;
                    }
                }
                return self.plan_since(&baseline, changes);
            }
            if let (Some(changes), None) = (changes, self.cursor()?) {
                let told = "there is no Resource List to begin from; only what this Change List tells is copied";
                self.notice("gap", changes, told);
                self.summary.mode = Mode::Incremental;
                return self.skip_gap(changes);
            }
            return Err(Error::new("gap", ExitCode::Gap, "the Source has no Resource List, so a copy cannot begin")
                .with_help("ask for a Capability List that names one"));
        };
        let baseline = self.plan_baseline(list, changes.is_some())?;
        self.plan_since(&baseline, changes)
    }

    /// Whether the lists may be asked now; if so, they are.
    fn may_look(&mut self) -> bool {
        let now = Instant::now();
        if self.told.look_from.is_some_and(|from| now < from) {
            return false;
        }
        self.told.looked = Some(now);
        true
    }

    /// Do the changes tell all there is to do? If not, and all can be compared, that is told.
    fn is_followed(&mut self, followed: Followed, changes: &str, entrance: &Entrance) -> Result<bool, Error> {
        let followed = match followed {
            Followed::Late(why) => self.wait_for_lists(why)?,
            other => other,
        };
        match followed {
            Followed::Unchanged | Followed::Late(_) => Ok(true),
            Followed::Planned => {
                self.summary.mode = Mode::Incremental;
                Ok(true)
            }
            Followed::Gap(why) if entrance.resource_list.is_none() && entrance.resource_dump.is_none() => {
                Err(Error::new("gap", ExitCode::Gap, why)
                    .with_help("there is neither a Resource List nor a Resource Dump to begin again from"))
            }
            Followed::Gap(why) => {
                self.notice("gap", changes, &format!("{why}; comparing with all that the Source has now"));
                Ok(false)
            }
        }
    }

    /// Lists may come later than notifications, through caches for example. When they take too long, the Source went back.
    fn wait_for_lists(&mut self, why: String) -> Result<Followed, Error> {
        let now = now_seconds();
        let since =
            self.mirror.meta(LISTS_LATE)?.and_then(|text| text.parse::<u64>().ok()).filter(|since| *since <= now);
        let Some(since) = since else {
            self.mirror.set_meta(LISTS_LATE, Some(&now.to_string()))?;
            return Ok(Followed::Unchanged);
        };
        if now - since < LISTS_LATE_MAX.as_secs() {
            return Ok(Followed::Unchanged);
        }
        self.mirror.set_meta(LISTS_LATE, None)?;
        Ok(Followed::Gap(why))
    }

    /// Plans what changed since a snapshot, or while it was made.
    fn plan_since(&mut self, baseline: &Baseline, changes: Option<&str>) -> Result<(), Error> {
        if baseline.unchanged {
            return Ok(());
        }
        if let (true, Some(changes), Some(at)) = (baseline.whole, changes, baseline.at) {
            match self.plan_changes(changes, at, false) {
                Ok(Followed::Gap(why)) => {
                    self.notice(
                        "gap",
                        changes,
                        &format!("{why}; changes in between are known from the next Resource List only"),
                    );
                    self.skip_gap(changes)?;
                }
                Ok(_) => {}
                Err(error) if matches!(error.exit_code(), ExitCode::SourceInvalid) => {
                    self.summary.failed += 1;
                    self.new_failures += 1;
                    self.problem(error.code(), changes, &error.to_string());
                    self.mirror.set_meta(key::CURSOR, None)?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Plans what changed since a Resource Dump, out of the Change Dump, where there is no Change List; `true` when
    /// something may be planned. The packages of the Resource Dump have been used by then, since a plan is made from one
    /// dump at a time.
    fn plan_changes_next(&mut self) -> Result<bool, Error> {
        let (Some(dump), Some(cursor)) = (self.packages.changes_next.take(), self.cursor()?) else { return Ok(false) };
        match self.plan_change_dump(&dump, cursor, true) {
            Ok(followed) => Ok(followed == Followed::Planned),
            Err(error) if error.exit_code() == ExitCode::SourceInvalid => {
                // The cursor stays, so the next run reads the Change Dump again.
                self.list_failed(error.code(), &dump, &error.to_string());
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// The map from URIs to paths, and the folder: fixed at the first run, the same ever after.
    fn ensure_sink(&mut self, folder: &Folder, entrance: &Entrance, list: &str) -> Result<(), Error> {
        let key_rules = self.options.sink.key_rules();
        if self.sink.is_some() || !self.options.sink.is_folder() && key_rules.is_none() {
            return Ok(());
        }
        let stored = self.mirror.meta(key::BASE)?;
        if let (Some(stored), Some(asked)) = (&stored, &self.options.base)
            && stored != asked
        {
            return Err(Error::new(
                "folder.base",
                ExitCode::Usage,
                format!("this folder was begun with the base {stored}, not {asked}"),
            )
            .with_help("leave `--base` away, or use another folder"));
        }
        let system = match key_rules {
            Some(rules) => FileSystem { rules, time_step: 1 },
            None => State::file_system(&self.mirror, folder, self.options.dry_run)?,
        };
        let map_of = |base: &str| PathMap::new(base, system.rules);
        let map = match (stored, &self.options.base) {
            (Some(base), _) => map_of(&base),
            (None, Some(base)) => map_of(base),
            (None, None) => {
                let common = self.mirror.meta("common")?;
                let candidates = [entrance.uri_space.clone(), common, authority_root(list)];
                let mut maps = candidates.into_iter().flatten().filter_map(|base| map_of(&base).ok());
                maps.next().map_or_else(|| map_of(list), Ok)
            }
        };
        let map = map.map_err(|cause| Error::new("folder.base", ExitCode::Usage, cause.to_string()))?;
        self.mirror.set_meta(key::BASE, Some(map.base()))?;
        #[cfg(feature = "s3")]
        if key_rules.is_some() {
            return self.open_object_sink(&map, folder);
        }
        let run = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        // A run that was broken off may have left files under temporary names: writing under the same ones removes them.
        let finished = self.mirror.meta(key::FINISHED)? == self.mirror.meta(key::EPOCH)?;
        let name = Timestamp::from_seconds(run).to_string().replace(':', "");
        self.open_folder_sink(Ground {
            folder: folder.clone(),
            map,
            system,
            backup: Backup::new(self.options.backup_dir.clone(), self.state.clone(), name),
            partials: Partials::new(self.state.clone()),
            made: Made::default(),
            unnamed: AtomicBool::new(finished),
        });
        Ok(())
    }

    /// Fetches, looks again at what changed meanwhile, then deletes. A dry run takes the same way, and changes nothing.
    fn carry_out(&mut self, entrance: &Entrance) -> Result<(), Error> {
        let mut reports: Vec<Report> = Vec::new();
        self.mirror.set_meta(key::EPOCH, Some(&self.rules.epoch.to_string()))?;
        self.mirror.set_meta(key::WRITTEN, Some(&written_text()))?;
        if !self.options.dry_run {
            self.apply_packages(entrance, &mut reports)?;
        }
        self.apply_fetches(&mut reports)?;
        if !self.summary.budget_spent && self.plan_changes_next()? {
            self.withdraw(&mut reports)?;
            self.apply_packages(entrance, &mut reports)?;
            self.apply_fetches(&mut reports)?;
        }
        let changes = entrance.change_list.as_deref();
        for _ in 0..SECOND_LOOKS {
            let (Some(changes), Some(cursor)) = (changes, self.cursor()?) else { break };
            // What a rule refuses stays refused; what failed may be another version, or gone, by now.
            if self.options.dry_run
                || self.summary.budget_spent
                || reports.iter().all(|report| report.failure.refused)
                || !self.may_look()
            {
                break;
            }
            match self.plan_changes(changes, cursor, true) {
                Ok(Followed::Planned) => {}
                // Told by the next run, if it lasts.
                Ok(Followed::Unchanged | Followed::Late(_) | Followed::Gap(_)) | Err(_) => break,
            }
            self.withdraw(&mut reports)?;
            self.apply_fetches(&mut reports)?;
        }
        if self.may_delete()? {
            self.apply_deletes(&mut reports)?;
        }
        self.mirror.set_meta(key::WRITTEN, Some(&written_text()))?;
        self.mirror.set_meta(key::FINISHED, Some(&self.rules.epoch.to_string()))?;
        if !self.options.dry_run {
            self.sweep_partials()?;
        }
        self.tell(reports);
        Ok(())
    }

    /// Removes what was begun and is wanted no longer.
    fn sweep_partials(&mut self) -> Result<(), Error> {
        let sink = Arc::clone(self.sink());
        for note in sink.partials().all() {
            if !self.mirror.is_failed(&note.uri)? {
                sink.sweep(&note.uri);
                sink.partials().forget(&note.uri);
            }
        }
        Ok(())
    }

    /// Takes back failures that a second look at the Change Lists made void.
    fn withdraw(&mut self, reports: &mut Vec<Report>) -> Result<(), Error> {
        let mut standing = Vec::with_capacity(reports.len());
        for report in reports.drain(..) {
            if self.mirror.is_failed(&report.uri)? {
                standing.push(report);
                continue;
            }
            let count = if report.failure.refused { &mut self.summary.skipped } else { &mut self.summary.failed };
            *count = count.saturating_sub(1);
            self.new_failures = self.new_failures.saturating_sub(u64::from(!report.again));
        }
        *reports = standing;
        Ok(())
    }

    /// Makes what the last run wrote durable, or, when the machine has started anew since, looks whether it is there.
    fn settle(&mut self, folder: &Folder) -> Result<(), Error> {
        let Some(written) = self.mirror.meta(key::WRITTEN)? else { return Ok(()) };
        let epoch = self.mirror.meta(key::EPOCH)?.unwrap_or_default();
        if self.mirror.meta(key::SETTLED)?.as_deref() == Some(&epoch) {
            return Ok(());
        }
        let (seconds, life) = written.split_once(' ').unwrap_or(("0", ""));
        let now = now_seconds();
        let age = now.abs_diff(seconds.parse().unwrap_or(0));
        if life == boot_id() {
            if age >= SETTLE_AFTER.as_secs() && !self.options.dry_run {
                folder.root().sync_filesystem()?;
                self.mirror.set_meta(key::SETTLED, Some(&epoch))?;
            }
            return Ok(());
        }
        self.recheck(folder, &epoch)
    }

    /// After a crash of the machine: files not known to be durable are read again; bad ones are fetched again.
    fn recheck(&mut self, folder: &Folder, epoch: &str) -> Result<(), Error> {
        let settled = self.mirror.meta(key::SETTLED)?.and_then(|text| text.parse::<i64>().ok()).unwrap_or(0);
        let Some(mut kept) = FolderKept::open(&self.options.folder, &self.mirror)? else { return Ok(()) };
        self.begin_phase("comparing");
        let (mut key, mut rows) = (String::new(), Vec::new());
        let (mut checked, mut bad) = (0_u64, 0_u64);
        loop {
            rows.clear();
            self.mirror.rows_after(&key, 512, &mut rows)?;
            let Some(last) = rows.last() else { break };
            key.clone_from(&last.uri);
            self.begin()?;
            for row in rows.iter().filter(|row| row.epoch > settled) {
                checked += 1;
                if kept.damage(&self.mirror, row, true)?.is_some_and(|damage| damage.kind.is_loss()) {
                    bad += 1;
                    plan_again(&self.mirror, row)?;
                }
            }
            self.commit()?;
            self.check_cancelled()?;
            self.status(checked, 0, 0);
        }
        if checked > 0 {
            let message =
                format!("files not known to be safe when the machine was restarted: {checked}; fetched again: {bad}");
            self.notice("settle.recheck", &self.options.url, &message);
        }
        if !self.options.dry_run {
            folder.root().sync_filesystem()?;
        }
        self.mirror.set_meta(key::SETTLED, Some(epoch))?;
        Ok(())
    }
}

pub(crate) fn authority_root(url: &str) -> Option<String> {
    let parsed = url::Url::parse(url).ok()?;
    let at = url.find("://")? + 3;
    parsed.host_str()?;
    let end = url[at..].find(['/', '?', '#']).map_or(url.len(), |end| at + end);
    Some(format!("{}/", &url[..end]))
}

fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// Changes with each start of the machine; empty where the system does not say.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn written_text() -> String {
    format!("{} {}", now_seconds(), boot_id())
}
