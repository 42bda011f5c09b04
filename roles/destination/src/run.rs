//! A run, in its order: lock, plan what the reader lists, fetch, look again, delete, report.

use crate::admit::Admission;
use crate::apply::Report;
use crate::error::{Error, ExitCode};
use crate::events::{Event, Observer, Summary};
use crate::options::SyncOptions;
use crate::partial::Partials;
use crate::path_map::PathMap;
use crate::place::{Backup, Ground, Made};
use crate::probe::FileSystem;
use crate::read::resourcesync::reader::ResourceSync;
use crate::read::resourcesync::sets::check_url;
use crate::read::{Reader, Start};
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

/// Makes a folder equal to a Source's set of resources, and keeps what is needed to do so faster the next time.
///
/// `cancel` stops the run at the next safe point; running again continues.
///
/// # Errors
/// What stopped the run; [`Error::exit_code`] says what kind it was. Failures of single resources are not errors but
/// part of the [`Summary`].
pub fn sync(options: &SyncOptions, observer: &dyn Observer, cancel: &AtomicBool) -> Result<Summary, Error> {
    let shared = Shared::new(options.net_options());
    let mut reader = ResourceSync::default();
    sync_with(options, observer, cancel, &shared, &Arc::default(), Woke::default(), &mut reader).map(|ran| ran.summary)
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
    reader: &mut dyn Reader,
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
        session.report.notice("state.missing", &options.url, &lost);
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
    let result = session.run(&folder, reader);
    // Whatever a transaction was left half-way does not count.
    session.mirror.rollback()?;
    if result.is_ok() || session.has_begun()? {
        made.keep_unless(options.dry_run);
    }
    result.map_err(|error| reader.explain(&session.requests, options, error))?;
    let capability_list = session.mirror.meta(key::CAPABILITY_LIST)?;
    let (looked, look_is_put_off) = (session.told.looked, session.told.look_is_put_off);
    let is_behind = reader.is_behind(&session)?;
    let counters = shared.counters();
    let mut summary = session.report.summary;
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
    let result = session.test_selection(&mut ResourceSync::default());
    session.mirror.rollback()?;
    result?;
    observer.event(&Event::Summary(&session.report.summary));
    Ok(session.report.summary)
}

impl Session<'_> {
    fn run(&mut self, folder: &Folder, reader: &mut dyn Reader) -> Result<(), Error> {
        self.open_packed_sink(folder)?;
        let start = reader.find(self)?;
        let admission = Admission::new(&start.first, &self.options.allow_hosts, self.options.allow_downgrade);
        let rules = Arc::get_mut(&mut self.rules).expect("no thread runs yet");
        rules.admission = Some(admission);
        if self.mirror.meta(key::BASE)?.is_some() || self.options.base.is_some() || start.uri_space.is_some() {
            self.ensure_sink(folder, &start)?;
            self.recover()?;
        }
        self.selection.prepare(&self.mirror, self.options, (&*reader, &self.requests), &start)?;
        reader.plan(self)?;
        self.selection.plan_excluded(&self.mirror, self.options, &mut self.report)?;
        self.plan_names()?;
        self.mirror.renew_pending()?;
        let counts = self.mirror.pending_counts()?;
        if counts.fetches + counts.deletes + counts.held > 0 {
            self.ensure_sink(folder, &start)?;
            self.carry_out(reader)?;
        } else if self.sink.is_some() && !self.options.dry_run {
            // Nothing is wanted, so nothing is that was begun.
            self.sweep_partials()?;
        }
        if let Some(sink) = &self.sink {
            sink.finish(&self.mirror)?;
        }
        self.report_more_reserved();
        self.keep_history()?;
        self.report.summary.cursor = reader.position(&self.mirror)?;
        Ok(())
    }

    /// Whether there is anything to keep: resources, or a plan that the next run continues.
    fn has_begun(&self) -> Result<bool, Error> {
        let planned = self.mirror.pending_counts()?;
        Ok(self.mirror.count_rows_up_to(1)? > 0 || planned != PendingCounts::default())
    }

    fn test_selection(&mut self, reader: &mut dyn Reader) -> Result<(), Error> {
        let start = reader.find(self)?;
        self.selection.prepare(&self.mirror, self.options, (&*reader, &self.requests), &start)?;
        self.selection.show(self.options, (&*reader, &self.requests), &mut self.report)
    }

    /// Whether the lists may be asked now; if so, they are.
    pub(crate) fn may_look(&mut self) -> bool {
        let now = Instant::now();
        if self.told.look_from.is_some_and(|from| now < from) {
            return false;
        }
        self.told.looked = Some(now);
        true
    }

    /// The map from URIs to paths, and the folder: fixed at the first run, the same ever after.
    fn ensure_sink(&mut self, folder: &Folder, start: &Start) -> Result<(), Error> {
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
                let candidates = [start.uri_space.clone(), common, authority_root(&start.first)];
                let mut maps = candidates.into_iter().flatten().filter_map(|base| map_of(&base).ok());
                maps.next().map_or_else(|| map_of(&start.first), Ok)
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
    fn carry_out(&mut self, reader: &mut dyn Reader) -> Result<(), Error> {
        let mut reports: Vec<Report> = Vec::new();
        self.mirror.set_meta(key::EPOCH, Some(&self.rules.epoch.to_string()))?;
        self.mirror.set_meta(key::WRITTEN, Some(&written_text()))?;
        if !self.options.dry_run {
            reader.supply(self, &mut reports)?;
        }
        self.apply_fetches(&mut reports)?;
        if !self.report.summary.budget_spent && reader.plan_rest(self)? {
            self.withdraw(&mut reports)?;
            reader.supply(self, &mut reports)?;
            self.apply_fetches(&mut reports)?;
        }
        for _ in 0..SECOND_LOOKS {
            // What a rule refuses stays refused; what failed may be another version, or gone, by now.
            if self.options.dry_run
                || self.report.summary.budget_spent
                || reports.iter().all(|report| report.failure.refused)
                || !reader.plan_again(self)?
            {
                break;
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
            let count =
                if report.failure.refused { &mut self.report.summary.skipped } else { &mut self.report.summary.failed };
            *count = count.saturating_sub(1);
            self.report.new_failures = self.report.new_failures.saturating_sub(u64::from(!report.again));
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
        self.report.begin_phase("comparing");
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
            self.report.status(checked, 0, 0);
        }
        if checked > 0 {
            let message =
                format!("files not known to be safe when the machine was restarted: {checked}; fetched again: {bad}");
            self.report.notice("settle.recheck", &self.options.url, &message);
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
