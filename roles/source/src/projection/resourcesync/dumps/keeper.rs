//! The keeper of dumps: one thread for all sets makes those that are due, one at a time, and removes old ones.

use super::changes::{self, Range, Which};
use super::record::{Dump, DumpKind};
use super::shelf::{Making, Shelf};
use super::since::{self, Since};
use super::{DumpError, DumpOptions, Job, SinceError, now, resources};
use crate::Representations;
use crate::publish::PublishedSet;
use abreast_core::{ChangeLog, Position};
use abreast_webtypes::Timestamp;
use abreast_webtypes::count_of;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often it is looked whether something is due.
const POLL: Duration = Duration::from_secs(1);
/// After a failure, before the next try.
const PAUSE: Duration = Duration::from_secs(60);
/// The same, after one that only somebody can mend.
const LONG_PAUSE: Duration = Duration::from_secs(3_600);
/// Replaced dumps that stay for downloads to end, besides those to be kept: each is as large as the set.
const MOST_REPLACED: usize = 4;
/// Packages made on demand at a time.
const MOST_SINCE: usize = 2;
/// A package made on demand is kept so long.
const SINCE_AGE: Duration = Duration::from_secs(3_600);
/// Longest wait of one who asks for a file that is just being changed.
const SINCE_PATIENCE: Duration = Duration::from_secs(5);

/// A set whose dumps are made.
pub struct DumpSet {
    /// The set, as it is published.
    pub set: PublishedSet,
    /// The bytes of its resources and of their earlier versions.
    pub representations: Representations,
    /// The dumps to make; none for `None`.
    pub options: Option<DumpOptions>,
}

/// The dumps of all sets, in the publisher's order.
pub struct Dumps {
    log: Arc<dyn ChangeLog>,
    sets: Vec<Option<Kept>>,
    cancel: AtomicBool,
    wake: (Mutex<bool>, Condvar),
    making_since: AtomicUsize,
}

/// The dumps of one set.
struct Kept {
    source: DumpSet,
    options: DumpOptions,
    resources: Mutex<Shelf>,
    changes: Mutex<Shelf>,
    since: Mutex<Shelf>,
    /// Somebody asked for a Resource Dump.
    wanted: AtomicBool,
    plan: Mutex<Plan>,
}

/// What the thread remembers between two looks.
struct Plan {
    /// Where the next package of changes begins, and the time there; `None` until it was looked for.
    covered: Option<(Position, Timestamp)>,
    /// The open page when it was last looked for closed ones.
    looked: u64,
    /// After a failure.
    not_before: [Option<Instant>; 2],
    /// The last try found that there can be no Resource Dump.
    impossible: bool,
}

impl Dumps {
    /// Opens the folder of dumps, and removes from it what a crash left half-made.
    ///
    /// # Errors
    /// When the folder cannot be made, read or cleared.
    pub fn open(log: Arc<dyn ChangeLog>, folder: &Path, sets: Vec<DumpSet>) -> io::Result<Self> {
        let open = |source: DumpSet| {
            let Some(options) = source.options.clone() else { return Ok(None) };
            let root = folder.join(&source.set.slug);
            let shelf = |name: &str, kind, prefix| -> io::Result<_> {
                Ok(Mutex::new(Shelf::open(root.join(name), kind, prefix, source.set.urls.clone())?))
            };
            let since = shelf("since", DumpKind::Changes, "since-")?;
            {
                // Nobody knows them any more.
                let mut since = lock(&since);
                let all = since.dumps.len();
                since.remove_first(all);
            }
            Ok(Some(Kept {
                resources: shelf("resources", DumpKind::Resources, "resources-")?,
                changes: shelf("changes", DumpKind::Changes, "changes-")?,
                since,
                options,
                wanted: AtomicBool::new(false),
                plan: Mutex::new(Plan { covered: None, looked: 0, not_before: [None; 2], impossible: false }),
                source,
            }))
        };
        let sets: io::Result<Vec<_>> = sets.into_iter().map(open).collect();
        Ok(Self {
            log,
            sets: sets?,
            cancel: AtomicBool::new(false),
            wake: (Mutex::new(false), Condvar::new()),
            making_since: AtomicUsize::new(0),
        })
    }

    /// Begins to make what is due, in a thread of its own.
    ///
    /// # Errors
    /// When the system has no thread to give.
    pub fn start(self: &Arc<Self>) -> io::Result<Dumper> {
        let dumps = Arc::clone(self);
        let thread = std::thread::Builder::new().name("dumps".into()).spawn(move || dumps.run())?;
        Ok(Dumper { dumps: Arc::clone(self), thread })
    }

    fn run(&self) {
        while !self.cancel.load(Ordering::Relaxed) {
            for set in self.sets.iter().flatten() {
                self.tend(set);
            }
            let (woken, condvar) = &self.wake;
            let guard = woken.lock().unwrap_or_else(PoisonError::into_inner);
            let waited = condvar.wait_timeout_while(guard, POLL, |woken| !*woken);
            *waited.unwrap_or_else(PoisonError::into_inner).0 = false;
        }
    }

    fn wake(&self) {
        *self.wake.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.wake.1.notify_all();
    }

    /// The newest Resource Dump.
    pub fn resources(&self, set: usize) -> Option<Arc<Dump>> {
        lock(&self.kept(set)?.resources).dumps.last().cloned()
    }

    /// All Resource Dumps that are kept, oldest first.
    pub fn kept_resources(&self, set: usize) -> Vec<Arc<Dump>> {
        self.kept(set).map(|kept| lock(&kept.resources).dumps.clone()).unwrap_or_default()
    }

    /// What the packages of changes speak for together, if there are any.
    pub fn changes_span(&self, set: usize) -> Option<(Timestamp, Timestamp)> {
        let shelf = lock(&self.kept(set)?.changes);
        Some((shelf.dumps.first()?.begin, shelf.dumps.last()?.end))
    }

    /// All packages of changes, oldest first, without a gap.
    pub fn changes(&self, set: usize) -> Vec<Arc<Dump>> {
        self.kept(set).map(|kept| lock(&kept.changes).dumps.clone()).unwrap_or_default()
    }

    /// Does any set have dumps?
    pub fn any(&self) -> bool {
        self.sets.iter().any(Option::is_some)
    }

    /// Does the set have dumps at all?
    pub fn offered(&self, set: usize) -> bool {
        self.kept(set).is_some()
    }

    /// Can there be no Resource Dump of this set, since it has resources that live elsewhere? As of the last try.
    pub fn impossible(&self, set: usize) -> bool {
        self.kept(set).is_some_and(|kept| lock(&kept.plan).impossible)
    }

    /// Somebody asks for the Resource Dump: one is made, unless it is too soon for another.
    pub fn ask(&self, set: usize) {
        if let Some(kept) = self.kept(set)
            && (!kept.options.scheduled || lock(&kept.resources).dumps.is_empty())
            && !kept.wanted.swap(true, Ordering::Relaxed)
        {
            self.wake();
        }
    }

    /// The file of a package (`NAME.zip`) or of its manifest (`NAME.xml`).
    pub fn file(&self, set: usize, name: &str) -> Option<PathBuf> {
        let kept = self.kept(set)?;
        [&kept.resources, &kept.changes, &kept.since].into_iter().find_map(|shelf| lock(shelf).file(name))
    }

    /// One package with all that changed since then. Blocks while it is made.
    ///
    /// # Errors
    /// There is none, or not now; see [`SinceError`].
    pub fn since(&self, set: usize, since: Since, which: Which) -> Result<PathBuf, SinceError> {
        let kept = self.kept(set).ok_or(SinceError::Disabled)?;
        let range = since::range(&*self.log, kept.source.set.id, since, which)?;
        let _place = Place::take(&self.making_since).ok_or(SinceError::Busy)?;
        let options = DumpOptions {
            part_size: u64::MAX,
            patience: kept.options.patience.min(SINCE_PATIENCE),
            ..kept.options.clone()
        };
        let path = since::package(&self.job(kept, &options), &kept.since, &range, kept.options.part_size)?;
        metrics::counter!("abreast_dump_since_total", "set" => kept.source.set.slug.clone()).increment(1);
        Ok(path)
    }

    fn kept(&self, set: usize) -> Option<&Kept> {
        self.sets.get(set)?.as_ref()
    }

    fn job<'a>(&'a self, kept: &'a Kept, options: &'a DumpOptions) -> Job<'a> {
        Job {
            log: &*self.log,
            set: &kept.source.set,
            bytes: kept.source.representations.now(),
            options,
            cancel: &self.cancel,
        }
    }

    /// Makes what is due in one set, and removes what had its time.
    fn tend(&self, kept: &Kept) {
        self.resource_dump(kept);
        if kept.options.changes {
            self.change_dump(kept);
        }
        retire(kept);
    }

    fn resource_dump(&self, kept: &Kept) {
        if self.resource_dump_is_due(kept) {
            let job = self.job(kept, &kept.options);
            let name = lock(&kept.resources).name(now());
            let made = made(&job, &kept.resources, &name, |folder| resources::make(&job, folder, &name));
            // Who asks again gets the new one, or another try.
            kept.wanted.store(false, Ordering::Relaxed);
            lock(&kept.plan).impossible = matches!(made, Err(DumpError::Elsewhere(_)));
            tell(kept, DumpKind::Resources, made);
        }
    }

    fn resource_dump_is_due(&self, kept: &Kept) -> bool {
        let Ok(head) = self.log.head(kept.source.set.id) else { return false };
        if head.importing || lock(&kept.plan).not_before[0].is_some_and(|time| Instant::now() < time) {
            return false;
        }
        let asked = kept.options.scheduled || kept.wanted.load(Ordering::Relaxed);
        match lock(&kept.resources).dumps.last() {
            None => asked,
            Some(newest) => {
                let due = asked && newest.begin != head.time && age(newest.end) >= kept.options.every;
                if !due {
                    kept.wanted.store(false, Ordering::Relaxed);
                }
                due
            }
        }
    }

    fn change_dump(&self, kept: &Kept) {
        if lock(&kept.plan).not_before[1].is_some_and(|time| Instant::now() < time) {
            return;
        }
        while !self.cancel.load(Ordering::Relaxed) {
            match self.next_changes(kept) {
                Ok(Some(range)) => {
                    let job = self.job(kept, &kept.options);
                    let name = lock(&kept.changes).name(range.until);
                    let made =
                        made(&job, &kept.changes, &name, |folder| changes::make_patiently(&job, &range, folder, &name));
                    let done = made.is_ok();
                    tell(kept, DumpKind::Changes, made);
                    if !done {
                        return;
                    }
                    lock(&kept.plan).covered = Some((range.last, range.until));
                }
                Ok(None) => return,
                Err(error) => return tell(kept, DumpKind::Changes, Err(error)),
            }
        }
    }

    /// The changes that the next package should hold, if one is due.
    fn next_changes(&self, kept: &Kept) -> Result<Option<Range>, DumpError> {
        let set = kept.source.set.id;
        loop {
            let head = self.log.head(set)?;
            if head.importing {
                return Ok(None);
            }
            let known = lock(&kept.plan).covered;
            let (covered, from) = match known {
                Some(covered) => covered,
                None => self.begin_of_changes(kept)?,
            };
            let due = age(from) >= kept.options.every;
            {
                let mut plan = lock(&kept.plan);
                plan.covered = Some((covered, from));
                if covered == head.position || (plan.looked == head.open_page && !due) {
                    return Ok(None);
                }
            }
            let page = since::page_of(&*self.log, set, covered.next())?;
            let last = match page.and_then(|page| page.last) {
                Some(last) => last,
                None if due => head.position,
                None => {
                    lock(&kept.plan).looked = head.open_page;
                    return Ok(None);
                }
            };
            let until = since::time_of(&*self.log, set, last)?;
            let mut range = Range { after: covered, last, from, until, which: Which::Every };
            // Bytes that are gone leave a gap, behind which the Change Dump begins again.
            let job = self.job(kept, &kept.options);
            if let Some((position, key)) = changes::last_missing(&job, &range)? {
                tracing::warn!(
                    "set `{}`: the Change Dump begins again behind position {position}: the bytes of a change to `{key}` \
                 are not kept, or never were here (help: let the set keep versions, and put records of resources elsewhere \
                 in a set of their own)",
                    kept.source.set.slug
                );
                let mut shelf = lock(&kept.changes);
                let all = shelf.dumps.len();
                shelf.remove_first(all);
                drop(shelf);
                (range.after, range.from) = (position, since::time_of(&*self.log, set, position)?);
                lock(&kept.plan).covered = Some((position, range.from));
                if position == last {
                    continue;
                }
            }
            return Ok(Some(range));
        }
    }

    /// Behind the last package; without any, at the open page's beginning.
    fn begin_of_changes(&self, kept: &Kept) -> Result<(Position, Timestamp), DumpError> {
        let set = kept.source.set.id;
        let end = lock(&kept.changes).dumps.last().map(|dump| dump.end);
        if let Some(end) = end {
            return Ok(since::position_at(&*self.log, set, end)?);
        }
        let head = self.log.head(set)?;
        let page = self.log.pages(set, head.open_page, 1)?.pop();
        Ok(page.map_or((Position(0), head.created), |page| (page.after, page.from)))
    }
}

/// Makes a dump aside, and shows it when it is complete.
fn made(
    job: &Job<'_>,
    shelf: &Mutex<Shelf>,
    name: &str,
    make: impl FnOnce(&Path) -> Result<Dump, DumpError>,
) -> Result<Arc<Dump>, DumpError> {
    let root = lock(shelf).root().to_owned();
    let making = Making::begin(&root, name).map_err(DumpError::Write)?;
    tracing::info!("set `{}`: making the dump `{name}`", job.set.slug);
    let dump = make(making.path())?;
    lock(shelf).announce(making, dump).map_err(DumpError::Write)
}

/// Log and metrics; after a failure, a pause.
fn tell(kept: &Kept, kind: DumpKind, made: Result<Arc<Dump>, DumpError>) {
    let slug = &kept.source.set.slug;
    let (place, kind) = match kind {
        DumpKind::Resources => (0, "resources"),
        DumpKind::Changes => (1, "changes"),
    };
    let count = |result: &'static str| {
        metrics::counter!("abreast_dumps_total", "set" => slug.clone(), "kind" => kind, "result" => result)
            .increment(1);
    };
    match made {
        Ok(dump) => {
            count("made");
            metrics::gauge!("abreast_dump_time_seconds", "set" => slug.clone(), "kind" => kind)
                .set(dump.end.as_micros() as f64 / 1e6);
            let (packages, bytes) = (dump.packages.len(), dump.bytes());
            tracing::info!(
                "set `{slug}`: the dump `{}` is complete: {}, {bytes} bytes",
                dump.name,
                count_of(packages, "package")
            );
        }
        Err(DumpError::Cancelled) => {}
        Err(error) => {
            count("failed");
            let pause = if matches!(error, DumpError::Elsewhere(_)) { LONG_PAUSE } else { PAUSE };
            lock(&kept.plan).not_before[place] = Some(Instant::now() + pause);
            let cause = std::error::Error::source(&error).map_or(String::new(), |cause| format!(": {cause}"));
            tracing::error!("set `{slug}`: no dump of {kind} could be made: {error}{cause}");
        }
    }
}

/// Removes what had its time.
fn retire(kept: &Kept) {
    let options = &kept.options;
    let mut shelf = lock(&kept.resources);
    let most = options.keep.max(1);
    while shelf.dumps.len() > most
        && (age(shelf.dumps[1].end) >= options.grace || shelf.dumps.len() > most + MOST_REPLACED)
    {
        shelf.remove_first(1);
    }
    drop(shelf);
    let mut shelf = lock(&kept.changes);
    let mut bytes: u64 = shelf.dumps.iter().map(|dump| dump.bytes()).sum();
    while shelf.dumps.len() > 1 && bytes > options.changes_size {
        bytes -= shelf.dumps[0].bytes();
        shelf.remove_first(1);
    }
    drop(shelf);
    let mut shelf = lock(&kept.since);
    let root = shelf.root().to_owned();
    let old = |dump: &Dump| {
        let made = root.join(&dump.name).metadata().and_then(|folder| folder.modified());
        made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > SINCE_AGE))
    };
    while shelf.dumps.first().is_some_and(|dump| old(dump)) {
        shelf.remove_first(1);
    }
}

/// Time since then; none while the clock is behind it.
fn age(time: Timestamp) -> Duration {
    Duration::from_micros(u64::try_from(now().as_micros() - time.as_micros()).unwrap_or(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One of the few who may make a package on demand.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(places: &'a AtomicUsize) -> Option<Self> {
        let free = |taken| (taken < MOST_SINCE).then_some(taken + 1);
        places.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok().map(|_| Self(places))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The thread that makes dumps.
pub struct Dumper {
    dumps: Arc<Dumps>,
    thread: JoinHandle<()>,
}

impl Dumper {
    /// Stops; a dump in the making is given up, and nothing of it stays.
    pub fn stop(self) {
        self.dumps.cancel.store(true, Ordering::Relaxed);
        self.dumps.wake();
        let _ = self.thread.join();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_few_may_make_packages_at_a_time() {
        let places = AtomicUsize::new(0);
        let (one, two) = (Place::take(&places), Place::take(&places));
        assert!(one.is_some() && two.is_some() && Place::take(&places).is_none());
        drop(one);
        assert!(Place::take(&places).is_some());
    }
}
