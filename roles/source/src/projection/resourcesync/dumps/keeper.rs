//! Making and removal of dumps. One thread makes the due dumps of all sets, one at a time, and
//! removes old dumps.

use super::changes::{self, Range, Which};
use super::dump_folder::{CHANGES, DumpFolder, current, retire_first};
use super::permit::Permit;
use super::record::{Dump, DumpKind};
use super::shared_dumps::{self, SharedDumps};
use super::since::{self, Since};
use super::{Cancel, DumpError, DumpOptions, Job, SinceError, resources};
use crate::Representations;
use crate::made::shared::SharedFiles;
use crate::made::{Attempts, Making, Signal, Worker};
use crate::publish::SetUrls;
use abreast_core::{ChangeLog, Meter, Position, SetId};
use abreast_webtypes::{Timestamp, count_of};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use std::{fmt, io};

/// Least seconds until a dump that could not be made may be asked for again.
const RETRY: u32 = 10;
/// Longest wait of a request for a file that is being changed.
const SINCE_PATIENCE: Duration = Duration::from_secs(5);

/// A set for which dumps are made.
pub struct DumpSet {
    /// Number of the set in the log.
    pub id: SetId,
    /// Name of the set in URLs.
    pub slug: String,
    /// URLs of the set and its documents.
    pub urls: SetUrls,
    /// Bytes of the resources and of their earlier versions.
    pub representations: Representations,
    /// Kinds and limits of the dumps.
    pub options: DumpOptions,
}

/// Shared part of the dumps of all sets of a Source: the log, the folder and the thread.
pub struct Dumps {
    log: Arc<dyn ChangeLog>,
    folder: PathBuf,
    shared: Option<Arc<SharedFiles>>,
    signal: Arc<Signal>,
    pub(super) making_since: AtomicUsize,
}

/// The thread that makes the due dumps of sets.
#[derive(Debug)]
pub struct Dumper {
    worker: Worker,
    sets: Arc<Mutex<Vec<Arc<SetDumps>>>>,
}

impl Dumper {
    /// From now on, the thread makes the due dumps of these sets. A dump in progress is completed,
    /// unless its set is [stopped](SetDumps::stop).
    pub fn replace(&self, sets: impl IntoIterator<Item = Arc<SetDumps>>) {
        *lock(&self.sets) = sets.into_iter().collect();
    }

    /// Stops the thread, and waits for its end.
    pub fn stop(self) {
        drop(self.worker);
    }
}

/// Dumps of one set, and their making.
pub struct SetDumps {
    pub(super) shared: Arc<Dumps>,
    pub(super) set: DumpSet,
    pub(super) resources: Mutex<DumpFolder>,
    pub(super) changes: Mutex<DumpFolder>,
    pub(super) since: Mutex<DumpFolder>,
    /// The groups of the dumps, if several nodes share them.
    pub(super) groups: Option<SharedDumps>,
    /// Manifests that were compared with their digests since the start.
    pub(super) whole: Mutex<HashSet<PathBuf>>,
    /// Whether a Resource Dump was requested.
    wanted: AtomicBool,
    /// Whether an operator requested all dumps, of any age.
    at_once: AtomicBool,
    plan: Mutex<Plan>,
    of_resources: Attempts,
    of_changes: Attempts,
    stopped: AtomicBool,
    /// Held for reading while a dump is made.
    making: RwLock<()>,
    meter: OnceLock<Meter>,
}

impl fmt::Debug for SetDumps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetDumps").field("set", &self.set.slug).finish_non_exhaustive()
    }
}

/// State of the thread between two checks.
#[derive(Default)]
struct Plan {
    /// Position and time at which the next package of changes starts; `None` if not determined yet.
    covered: Option<(Position, Timestamp)>,
    /// Open page at the last check for closed pages.
    checked: u64,
    /// Whether the last attempt found that a Resource Dump is not possible.
    impossible: bool,
    /// Number of the shared record for which the plan was made.
    stamp: Option<u64>,
}

impl Dumps {
    /// Creates the dumps of a Source in this folder. With `shared`, one node makes the dumps and all
    /// nodes serve them; the folder has local copies.
    pub fn new(
        log: Arc<dyn ChangeLog>,
        folder: impl Into<PathBuf>,
        shared: Option<Arc<SharedFiles>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            log,
            folder: folder.into(),
            shared,
            signal: Arc::default(),
            making_since: AtomicUsize::new(0),
        })
    }

    /// Opens the dumps of a set, and removes incomplete dumps of a crash.
    ///
    /// # Errors
    /// The folder cannot be created, read or cleared.
    pub fn open_set(self: &Arc<Self>, set: DumpSet) -> io::Result<Arc<SetDumps>> {
        let root = self.folder.join(&set.slug);
        let of_set = self.shared.as_ref().map(|shared| shared.of_set(&set.slug));
        let groups = of_set.map(|of_set| SharedDumps::open(&of_set, &root)).transpose()?;
        let dump_folder = |name: &str, kind, prefix: &'static str| match &groups {
            None => DumpFolder::open(root.join(name), kind, prefix, set.urls.clone()),
            Some(groups) => {
                let (group, urls) = (Arc::clone(groups.group(prefix)), set.urls.clone());
                Ok(DumpFolder::of_nodes(root.join(name), kind, prefix, urls, group))
            }
        };
        let mut since = dump_folder("since", DumpKind::Changes, "since-")?;
        // Clients do not know the URLs of packages made on demand by an earlier process.
        since.remove_first(usize::MAX);
        let mut changes = dump_folder("changes", DumpKind::Changes, CHANGES)?;
        changes.set_aside_before_gap()?;
        let attempts = |kind: &str| {
            Attempts::new(format!("make the dump of {kind} of the set `{}`", set.slug))
        };
        let resources = dump_folder("resources", DumpKind::Resources, "resources-")?;
        let dumps = Arc::new(SetDumps {
            shared: Arc::clone(self),
            resources: Mutex::new(resources),
            changes: Mutex::new(changes),
            since: Mutex::new(since),
            groups,
            whole: Mutex::default(),
            wanted: AtomicBool::new(false),
            at_once: AtomicBool::new(false),
            plan: Mutex::default(),
            of_resources: attempts("resources"),
            of_changes: attempts("changes"),
            stopped: AtomicBool::new(false),
            making: RwLock::default(),
            meter: OnceLock::new(),
            set,
        });
        if let Some(groups) = &dumps.groups {
            let weak = Arc::downgrade(&dumps);
            groups.on_request(move |at_once| {
                if let Some(dumps) = weak.upgrade() {
                    let flag = if at_once { &dumps.at_once } else { &dumps.wanted };
                    flag.store(true, Ordering::Relaxed);
                    dumps.shared.signal.wake();
                }
            });
        }
        Ok(dumps)
    }

    /// Starts a thread that makes the due dumps of these sets.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(
        self: &Arc<Self>,
        sets: impl IntoIterator<Item = Arc<SetDumps>>,
    ) -> io::Result<Dumper> {
        let sets = Arc::new(Mutex::new(sets.into_iter().collect::<Vec<_>>()));
        let tended = Arc::clone(&sets);
        let worker = Worker::start("dumps", Arc::clone(&self.signal), move |_| {
            let now = lock(&tended).clone();
            for set in now {
                set.tend();
            }
        })?;
        Ok(Dumper { worker, sets })
    }
}

impl SetDumps {
    /// Ends the making of dumps of this set, and waits for the end. Complete dumps can still be read.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        drop(self.making.write().unwrap_or_else(PoisonError::into_inner));
    }

    /// Newest complete Resource Dump, if there is one.
    pub fn newest_resources(&self) -> Option<Arc<Dump>> {
        current(&self.resources).dumps.last().cloned()
    }

    /// Stored Resource Dumps of the set, oldest first.
    pub fn resources(&self) -> Vec<Arc<Dump>> {
        current(&self.resources).dumps.clone()
    }

    /// Time span that all packages of changes cover, if there are any.
    pub fn changes_span(&self) -> Option<(Timestamp, Timestamp)> {
        let dump_folder = current(&self.changes);
        Some((dump_folder.dumps.first()?.begin, dump_folder.dumps.last()?.end))
    }

    /// Packages of changes, oldest first, without a gap.
    pub fn changes(&self) -> Vec<Arc<Dump>> {
        current(&self.changes).dumps.clone()
    }

    /// Whether a Resource Dump of the set is not possible, because resources are on another server;
    /// as of the last attempt.
    pub fn impossible(&self) -> bool {
        match &self.groups {
            Some(groups) => groups.resources.known().1.impossible,
            None => lock(&self.plan).impossible,
        }
    }

    /// Error of the last attempt at a Resource Dump, and seconds until the next attempt on request.
    pub fn failure(&self) -> Option<(String, u32)> {
        Self::failure_of(&self.of_resources)
    }

    /// Error of the last attempt at a package of changes, and seconds until the next attempt.
    pub fn failure_of_changes(&self) -> Option<(String, u32)> {
        Self::failure_of(&self.of_changes)
    }

    fn failure_of(attempts: &Attempts) -> Option<(String, u32)> {
        let (why, wait) = attempts.failure()?;
        let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).max(RETRY);
        // The help is for the operator only.
        let why = why.split(" (help: ").next().unwrap_or_default();
        Some((format!("the dump cannot be made: {why}"), seconds))
    }

    /// Requests a Resource Dump, which is made unless the newest one is too recent.
    pub fn ask(&self) {
        if (!self.set.options.scheduled || current(&self.resources).dumps.is_empty())
            && !self.wanted.swap(true, Ordering::Relaxed)
        {
            self.shared.signal.wake();
        }
    }

    /// Makes the dumps of all changes until now at once, also if the newest ones are recent or the
    /// last attempt failed. Does not wait for the end.
    pub fn make_now(&self) {
        self.at_once.store(true, Ordering::Relaxed);
        self.shared.signal.wake();
    }

    /// Path of one package with all changes since a point. Blocks while the package is made.
    ///
    /// # Errors
    /// The package is not available; see [`SinceError`].
    pub fn since(&self, since: Since, which: Which) -> Result<PathBuf, SinceError> {
        self.file(&self.since_name(since, which)?).ok_or(SinceError::Busy)
    }

    /// File name of the package with all changes since a point. Blocks while the package is made.
    pub(super) fn since_name(&self, since: Since, which: Which) -> Result<String, SinceError> {
        let range = since::range(self.log(), self.set.id, since, which)?;
        let _making = self.making.read().unwrap_or_else(PoisonError::into_inner);
        if self.stopped.load(Ordering::SeqCst) {
            return Err(SinceError::Busy);
        }
        let _place = Permit::take(&self.shared.making_since).ok_or(SinceError::Busy)?;
        let limit = self.set.options.part_size;
        let options = DumpOptions {
            part_size: u64::MAX,
            patience: self.set.options.patience.min(SINCE_PATIENCE),
            ..self.set.options.clone()
        };
        let name = since::package(&self.job(&options), &self.since, &range, limit)?;
        metrics::counter!("abreast_dump_since_total", "set" => self.set.slug.clone()).increment(1);
        Ok(name)
    }

    pub(super) fn log(&self) -> &dyn ChangeLog {
        &*self.shared.log
    }

    fn job<'a>(&'a self, options: &'a DumpOptions) -> Job<'a> {
        Job {
            log: self.log(),
            set: &self.set,
            bytes: self.set.representations.now(),
            options,
            cancel: Cancel([&self.stopped, self.shared.signal.flag()]),
            meter: self.meter.get_or_init(Meter::default),
        }
    }

    /// Shows the making of dumps with a meter. Only the first call has an effect, before the first dump.
    pub fn show(&self, meter: Meter) {
        let _ = self.meter.set(meter);
    }

    /// Makes due dumps, and removes dumps that are too old.
    pub(in crate::projection) fn tend(&self) {
        let _work = tracing::error_span!("work", set = self.set.slug).entered();
        let _making = self.making.read().unwrap_or_else(PoisonError::into_inner);
        if self.stopped.load(Ordering::SeqCst) {
            return;
        }
        if let Some(groups) = self.groups.as_ref().filter(|groups| !groups.is_mine()) {
            let take = |flag: &AtomicBool| flag.swap(false, Ordering::Relaxed);
            return groups.request(take(&self.wanted), take(&self.at_once));
        }
        // A request during an import is carried out after the import.
        let is_importing = self.log().head(self.set.id).is_ok_and(|head| head.importing);
        let at_once = !is_importing && self.at_once.swap(false, Ordering::Relaxed);
        if at_once {
            self.of_resources.end_pause();
            self.of_changes.end_pause();
        }
        self.make_resource_dump(at_once);
        if self.set.options.changes {
            self.make_change_dumps(at_once);
        }
        self.retire();
    }

    fn make_resource_dump(&self, at_once: bool) {
        let stamp = current(&self.resources).stamp;
        if self.resource_dump_is_due(at_once) {
            let job = self.job(&self.set.options);
            let name = current(&self.resources).name(self.log().now());
            let made = self.attempt(DumpKind::Resources, || {
                let make = |folder: &Path| resources::make(&job, folder, &name);
                made(&self.resources, &name, stamp, job.cancel, make)
            });
            job.meter.end();
            match made {
                // The node with the turn, which may be another one now, still has to make the dump.
                Ok(None) if at_once => self.at_once.store(true, Ordering::Relaxed),
                Ok(None) => {}
                // The next request gets the new dump, or starts another attempt.
                _ => self.wanted.store(false, Ordering::Relaxed),
            }
            let impossible = matches!(made, Err(DumpError::Elsewhere(_)));
            lock(&self.plan).impossible = impossible;
            if let Some(groups) = &self.groups
                && let Err(error) = groups.resources.note_impossible(impossible)
            {
                tracing::warn!("cannot note for other nodes whether dumps are possible: {error}");
            }
        }
    }

    fn resource_dump_is_due(&self, at_once: bool) -> bool {
        let Ok(head) = self.log().head(self.set.id) else { return false };
        if head.importing || self.of_resources.rests() {
            return false;
        }
        let asked = at_once || self.set.options.scheduled || self.wanted.load(Ordering::Relaxed);
        let dump_folder = current(&self.resources);
        match dump_folder.dumps.last() {
            None => asked,
            Some(newest) => {
                let every = self.set.options.every;
                let is_over = || {
                    at_once
                        || match dump_folder.published {
                            Some(last) => Attempts::is_over_of_nodes(every, last, self.log().now()),
                            None => self.of_resources.is_over(every, newest.end, self.log().now()),
                        }
                };
                // A dump of an earlier log may have resources that the set does not have.
                let due = asked
                    && (newest.begin < head.created || newest.begin != head.time && is_over());
                if !due {
                    self.wanted.store(false, Ordering::Relaxed);
                }
                due
            }
        }
    }

    fn make_change_dumps(&self, at_once: bool) {
        // Changes that follow during the making are not part of a request.
        let head = self.log().head(self.set.id).ok().filter(|_| at_once);
        let wanted = head.map_or(Position(0), |head| head.position);
        let make = || {
            self.follow_changes();
            let range = match self.next_changes(wanted) {
                Err(DumpError::Shared(error)) if error.is_of_another() => None,
                range => range?,
            };
            let Some(range) = range else { return Ok(None) };
            let stamp = lock(&self.plan).stamp;
            let job = self.job(&self.set.options);
            let name = current(&self.changes).name(range.until);
            let dump = made(&self.changes, &name, stamp, job.cancel, |folder| {
                changes::make_patiently(&job, &range, folder, &name)
            });
            job.meter.end();
            let Some(dump) = dump? else { return Ok(None) };
            lock(&self.plan).covered = Some((range.last, range.until));
            Ok(Some(dump))
        };
        while !Cancel([&self.stopped, self.shared.signal.flag()]).is_wanted()
            && !self.of_changes.rests()
            && matches!(self.attempt(DumpKind::Changes, make), Ok(Some(_)))
        {}
    }

    /// Forgets the plan if another node has changed the packages.
    fn follow_changes(&self) {
        let stamp = current(&self.changes).stamp;
        let mut plan = lock(&self.plan);
        if plan.stamp != stamp {
            (plan.covered, plan.checked, plan.stamp) = (None, 0, stamp);
        }
    }

    /// Removes all packages of changes, because the next one does not continue them. The plan remains
    /// valid for the record without them.
    fn restart_changes(&self) -> Result<(), DumpError> {
        retire_first(&self.changes, |folder| folder.dumps.len())?;
        let changes = current(&self.changes);
        if changes.dumps.is_empty() {
            lock(&self.plan).stamp = changes.stamp;
        }
        Ok(())
    }

    /// Changes for the next package, if one is due, or if changes up to `wanted` are not covered.
    fn next_changes(&self, wanted: Position) -> Result<Option<Range>, DumpError> {
        let set = self.set.id;
        loop {
            let head = self.log().head(set)?;
            if head.importing {
                return Ok(None);
            }
            let known = lock(&self.plan).covered;
            let (covered, from) = match known {
                Some(covered) => covered,
                None => self.begin_of_changes()?,
            };
            let every = self.set.options.every;
            let is_over = match current(&self.changes).published {
                Some(last) => Attempts::is_over_of_nodes(every, last.max(from), self.log().now()),
                None => self.of_changes.is_over(every, from, self.log().now()),
            };
            let due = covered < wanted || is_over;
            {
                let mut plan = lock(&self.plan);
                plan.covered = Some((covered, from));
                if covered == head.position || (plan.checked == head.open_page && !due) {
                    return Ok(None);
                }
            }
            let page = since::page_of(self.log(), set, covered.next())?;
            let last = match page.and_then(|page| page.last) {
                Some(last) => last,
                None if due => head.position,
                None => {
                    lock(&self.plan).checked = head.open_page;
                    return Ok(None);
                }
            };
            let until = since::time_of(self.log(), set, last)?;
            let mut range = Range { after: covered, last, from, until, which: Which::Every };
            // Missing bytes leave a gap, after which the Change Dump starts again.
            let job = self.job(&self.set.options);
            if let Some((position, key)) = changes::last_missing(&job, &range)? {
                tracing::warn!(
                    "the Change Dump restarts after position {position}: the bytes of a change to `{key}` \
                 are not kept, or are on another server (help: let the set keep versions, and put records of resources elsewhere \
                 in a set of their own)"
                );
                self.restart_changes()?;
                (range.after, range.from) = (position, since::time_of(self.log(), set, position)?);
                lock(&self.plan).covered = Some((position, range.from));
                if position == last {
                    continue;
                }
            }
            return Ok(Some(range));
        }
    }

    /// Position after the last package; without packages, the beginning of the open page.
    fn begin_of_changes(&self) -> Result<(Position, Timestamp), DumpError> {
        let set = self.set.id;
        let head = self.log().head(set)?;
        let end = current(&self.changes).dumps.last().map(|dump| dump.end);
        match end {
            Some(end) if end >= head.created => {
                return Ok(since::position_at(self.log(), set, end)?);
            }
            Some(_) => {
                tracing::warn!(
                    "the Change Dump begins again: its log was begun again after the last package, and changes between \
                     them are not known"
                );
                self.restart_changes()?;
            }
            None => {}
        }
        let page = self.log().pages(set, head.open_page, 1)?.pop();
        Ok(page.map_or((Position(0), head.created), |page| (page.after, page.from)))
    }

    /// Attempts to make a dump, with log messages and metrics.
    fn attempt(
        &self,
        kind: DumpKind,
        make: impl FnOnce() -> Result<Option<Arc<Dump>>, DumpError>,
    ) -> Result<Option<Arc<Dump>>, DumpError> {
        let slug = &self.set.slug;
        let (attempts, kind) = match kind {
            DumpKind::Resources => (&self.of_resources, "resources"),
            DumpKind::Changes => (&self.of_changes, "changes"),
        };
        let count = |result: &'static str| {
            metrics::counter!("abreast_dumps_total", "set" => slug.clone(), "kind" => kind, "result" => result)
                .increment(1);
        };
        let made = attempts.attempt(make);
        match &made {
            Ok(Some(dump)) => {
                count("made");
                metrics::gauge!("abreast_dump_time_seconds", "set" => slug.clone(), "kind" => kind)
                    .set(dump.end.as_micros() as f64 / 1e6);
                let (packages, bytes) = (dump.packages.len(), dump.bytes());
                tracing::info!(
                    "the dump `{}` is complete: {}, {bytes} bytes",
                    dump.name,
                    count_of(packages, "package")
                );
            }
            Ok(None) | Err(DumpError::Cancelled) => {}
            Err(_) => count("failed"),
        }
        made
    }
}

/// Makes a dump in a temporary folder, and publishes the complete dump. `stamp` is the number of the
/// shared record for which the dump is due.
fn made(
    dump_folder: &Mutex<DumpFolder>,
    name: &str,
    stamp: Option<u64>,
    cancel: Cancel<'_>,
    make: impl FnOnce(&Path) -> Result<Dump, DumpError>,
) -> Result<Option<Arc<Dump>>, DumpError> {
    let (root, shared) = {
        let dump_folder = lock(dump_folder);
        (dump_folder.root().to_owned(), dump_folder.shared.clone())
    };
    if let Some(shared) = shared {
        tracing::info!("making the dump `{name}`");
        return shared_dumps::made(dump_folder, &shared, stamp, cancel, make);
    }
    let mut making = Making::begin(&root);
    let folder = making.folder(name).map_err(DumpError::Write)?;
    tracing::info!("making the dump `{name}`");
    let dump = make(&folder)?;
    lock(dump_folder).announce(making, dump).map(Some).map_err(DumpError::Write)
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
