//! Making and removal of dumps. One thread makes the due dumps of all sets, one at a time, and
//! removes old dumps.

use super::changes::{self, Range, Which};
use super::dump_folder::{CHANGES, DumpFolder};
use super::permit::Permit;
use super::record::{Dump, DumpKind};
use super::since::{self, Since};
use super::{Cancel, DumpError, DumpOptions, Job, SinceError, manifest, now, resources};
use crate::Representations;
use crate::made::{Attempts, Making, Signal, Worker, discard};
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
/// Replaced dumps that remain until downloads end, besides those to be kept: each is as large as
/// the set.
const MOST_REPLACED: usize = 4;
/// A package made on demand is kept so long.
const SINCE_AGE: Duration = Duration::from_secs(3_600);
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
    set: DumpSet,
    resources: Mutex<DumpFolder>,
    changes: Mutex<DumpFolder>,
    since: Mutex<DumpFolder>,
    /// Manifests that were compared with their digests since the start.
    whole: Mutex<HashSet<PathBuf>>,
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
}

impl Dumps {
    /// Creates the dumps of a Source in this folder.
    pub fn new(log: Arc<dyn ChangeLog>, folder: impl Into<PathBuf>) -> Arc<Self> {
        Arc::new(Self {
            log,
            folder: folder.into(),
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
        let dump_folder = |name: &str, kind, prefix| {
            DumpFolder::open(root.join(name), kind, prefix, set.urls.clone())
        };
        let mut since = dump_folder("since", DumpKind::Changes, "since-")?;
        // Clients do not know the URLs of packages made on demand by an earlier process.
        since.remove_first(usize::MAX);
        let mut changes = dump_folder("changes", DumpKind::Changes, CHANGES)?;
        changes.set_aside_before_gap()?;
        let attempts = |kind: &str| {
            Attempts::new(format!("make the dump of {kind} of the set `{}`", set.slug))
        };
        Ok(Arc::new(SetDumps {
            shared: Arc::clone(self),
            resources: Mutex::new(dump_folder("resources", DumpKind::Resources, "resources-")?),
            changes: Mutex::new(changes),
            since: Mutex::new(since),
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
        }))
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
        lock(&self.resources).dumps.last().cloned()
    }

    /// Stored Resource Dumps of the set, oldest first.
    pub fn resources(&self) -> Vec<Arc<Dump>> {
        lock(&self.resources).dumps.clone()
    }

    /// Time span that all packages of changes cover, if there are any.
    pub fn changes_span(&self) -> Option<(Timestamp, Timestamp)> {
        let dump_folder = lock(&self.changes);
        Some((dump_folder.dumps.first()?.begin, dump_folder.dumps.last()?.end))
    }

    /// Packages of changes, oldest first, without a gap.
    pub fn changes(&self) -> Vec<Arc<Dump>> {
        lock(&self.changes).dumps.clone()
    }

    /// Whether a Resource Dump of the set is not possible, because resources are on another server;
    /// as of the last attempt.
    pub fn impossible(&self) -> bool {
        lock(&self.plan).impossible
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
        if (!self.set.options.scheduled || lock(&self.resources).dumps.is_empty())
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

    /// Path of a package (`NAME.zip`) or of its manifest (`NAME.xml`).
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.known_file(name).map(|(path, _)| path)
    }

    fn known_file(&self, name: &str) -> Option<(PathBuf, Option<[u8; 32]>)> {
        [&self.resources, &self.changes, &self.since]
            .into_iter()
            .find_map(|dump_folder| lock(dump_folder).known_file(name))
    }

    /// Path of a package or of its undamaged manifest; a damaged manifest is restored from the
    /// package.
    pub(super) fn whole_file(&self, name: &str) -> io::Result<Option<PathBuf>> {
        let Some((path, Some(digest))) = self.known_file(name) else { return Ok(self.file(name)) };
        if path.extension().is_some_and(|ending| ending == "xml")
            && !lock(&self.whole).contains(&path)
        {
            if !manifest::is_whole(&path, &digest)? {
                tracing::warn!("the manifest `{name}` is damaged, and is taken from its package");
                manifest::restore(&path, &digest)?;
            }
            let mut whole = lock(&self.whole);
            // Remove the paths of deleted dumps.
            whole.retain(|path| path.exists());
            whole.insert(path.clone());
        }
        Ok(Some(path))
    }

    /// Path of one package with all changes since a point. Blocks while the package is made.
    ///
    /// # Errors
    /// The package is not available; see [`SinceError`].
    pub fn since(&self, since: Since, which: Which) -> Result<PathBuf, SinceError> {
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
        let path = since::package(&self.job(&options), &self.since, &range, limit)?;
        metrics::counter!("abreast_dump_since_total", "set" => self.set.slug.clone()).increment(1);
        Ok(path)
    }

    fn log(&self) -> &dyn ChangeLog {
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
        if self.resource_dump_is_due(at_once) {
            let job = self.job(&self.set.options);
            let name = lock(&self.resources).name(now());
            let made = self.attempt(DumpKind::Resources, || {
                made(&self.resources, &name, |folder| resources::make(&job, folder, &name))
                    .map(Some)
            });
            job.meter.end();
            // The next request gets the new dump, or starts another attempt.
            self.wanted.store(false, Ordering::Relaxed);
            lock(&self.plan).impossible = matches!(made, Err(DumpError::Elsewhere(_)));
        }
    }

    fn resource_dump_is_due(&self, at_once: bool) -> bool {
        let Ok(head) = self.log().head(self.set.id) else { return false };
        if head.importing || self.of_resources.rests() {
            return false;
        }
        let asked = at_once || self.set.options.scheduled || self.wanted.load(Ordering::Relaxed);
        match lock(&self.resources).dumps.last() {
            None => asked,
            Some(newest) => {
                let is_over = || {
                    at_once || self.of_resources.is_over(self.set.options.every, newest.end, now())
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
            let Some(range) = self.next_changes(wanted)? else { return Ok(None) };
            let job = self.job(&self.set.options);
            let name = lock(&self.changes).name(range.until);
            let dump = made(&self.changes, &name, |folder| {
                changes::make_patiently(&job, &range, folder, &name)
            });
            job.meter.end();
            let dump = dump?;
            lock(&self.plan).covered = Some((range.last, range.until));
            Ok(Some(dump))
        };
        while !Cancel([&self.stopped, self.shared.signal.flag()]).is_wanted()
            && !self.of_changes.rests()
            && matches!(self.attempt(DumpKind::Changes, make), Ok(Some(_)))
        {}
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
            let due =
                covered < wanted || self.of_changes.is_over(self.set.options.every, from, now());
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
                lock(&self.changes).remove_all();
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
        let end = lock(&self.changes).dumps.last().map(|dump| dump.end);
        match end {
            Some(end) if end >= head.created => {
                return Ok(since::position_at(self.log(), set, end)?);
            }
            Some(_) => {
                tracing::warn!(
                    "the Change Dump begins again: its log was begun again after the last package, and changes between \
                     them are not known"
                );
                lock(&self.changes).remove_all();
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

    /// Removes dumps that are too old or too many.
    fn retire(&self) {
        let options = &self.set.options;
        let mut dump_folder = lock(&self.resources);
        let most = options.keep.max(1);
        while dump_folder.dumps.len() > most
            && (age(dump_folder.dumps[1].end) >= options.grace
                || dump_folder.dumps.len() > most + MOST_REPLACED)
        {
            dump_folder.remove_first(1);
        }
        drop(dump_folder);
        let mut dump_folder = lock(&self.changes);
        let mut bytes: u64 = dump_folder.dumps.iter().map(|dump| dump.bytes()).sum();
        // Dumps that were set aside are the oldest, and are removed first.
        let aside = dump_folder.aside().unwrap_or_default();
        bytes += aside.iter().map(|(_, bytes)| bytes).sum::<u64>();
        for (path, of_path) in aside {
            if bytes > options.changes_size {
                bytes = bytes.saturating_sub(of_path);
                discard([path]);
            }
        }
        while dump_folder.dumps.len() > 1 && bytes > options.changes_size {
            bytes -= dump_folder.dumps[0].bytes();
            dump_folder.remove_first(1);
        }
        drop(dump_folder);
        let mut dump_folder = lock(&self.since);
        let root = dump_folder.root().to_owned();
        let old = |dump: &Dump| {
            let made = root.join(&dump.name).metadata().and_then(|folder| folder.modified());
            made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SINCE_AGE))
        };
        while dump_folder.dumps.first().is_some_and(|dump| old(dump)) {
            dump_folder.remove_first(1);
        }
    }
}

/// Makes a dump in a temporary folder, and publishes the complete dump.
fn made(
    dump_folder: &Mutex<DumpFolder>,
    name: &str,
    make: impl FnOnce(&Path) -> Result<Dump, DumpError>,
) -> Result<Arc<Dump>, DumpError> {
    let root = lock(dump_folder).root().to_owned();
    let mut making = Making::begin(&root);
    let folder = making.folder(name).map_err(DumpError::Write)?;
    tracing::info!("making the dump `{name}`");
    let dump = make(&folder)?;
    lock(dump_folder).announce(making, dump).map_err(DumpError::Write)
}

/// Age of a time; zero if the clock is behind the time.
fn age(time: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now().as_micros() - time.as_micros()).unwrap_or(0))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
