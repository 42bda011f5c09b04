//! Which files are at rest: not changed for a while, and not open for writing in any process that this one may see.
//!
//! Clocks of file servers may be ahead of ours, and ours may be set back: a time that is still to come means nothing, and it is
//! measured how long the file stays the same.

use crate::scan::pending::UNCLOSED;
use abreast_folder::Stat;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A file's times may lag this far behind what was done.
const GRAIN: Duration = Duration::from_millis(20);
/// The access modes of an open file that allow writing: `O_WRONLY` and `O_RDWR`.
const WRITABLE: u64 = 0b11;

/// How long a snapshot counts at least; one takes at most this part of the time: one of so many.
const SNAPSHOT: (Duration, u32) = (Duration::from_secs(1), 20);
/// A clock is at most this far wrong; a time later than that counts as long ago.
const FUTURE: Duration = Duration::from_secs(3_600);
/// Files with a time to come that are observed; more count as those of long ago.
const MAX_OBSERVED: usize = 100_000;
/// Time between two searches for those that are observed no more.
const CLEARED: Duration = Duration::from_secs(60);

/// What is known of files that may be written.
#[derive(Debug, Default)]
pub struct Rest {
    writers: Mutex<Option<Snapshot>>,
    observed: Mutex<Observed>,
}

/// Files with a time to come.
#[derive(Debug, Default)]
struct Observed {
    /// By device and inode: that time, and since when it is the same.
    files: HashMap<(u64, u64), (i64, Instant)>,
    /// When those that are there no more, or whose time has come, were last forgotten.
    cleared: Option<Instant>,
}

/// The files open for writing.
#[derive(Debug)]
struct Snapshot {
    /// Since 1970.
    taken: Duration,
    /// When it is taken again, whatever the times of files.
    until: Instant,
    /// Device and inode.
    open: HashSet<(u64, u64)>,
    /// Whether all processes were seen.
    complete: bool,
}

/// The knowledge about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// A process has it open for writing.
    Yes,
    /// No process has.
    No,
    /// No process that this one may see.
    Unknown,
}

impl Rest {
    /// Time since the file's last change of content or metadata, seen at the time `now` of our clock, since 1970: a file changed later is
    /// of age zero.
    pub(crate) fn age_at(&self, now: Duration, stat: &Stat) -> Duration {
        let age = (now.as_nanos() as i64).saturating_sub(stat.ctime_ns);
        if let Ok(age) = u64::try_from(age) {
            return Duration::from_nanos(age);
        }
        if age < -(FUTURE.as_nanos() as i64) {
            return Duration::MAX;
        }
        let mut observed = lock(&self.observed);
        let observed = &mut *observed;
        let is_full = observed.files.len() >= MAX_OBSERVED;
        if is_full && observed.cleared.is_none_or(|cleared| cleared.elapsed() >= CLEARED) {
            observed.files.retain(|_, (_, since)| since.elapsed() < FUTURE);
            observed.cleared = Some(Instant::now());
        }
        let is_full = observed.files.len() >= MAX_OBSERVED;
        match observed.files.get_mut(&(stat.device, stat.inode)) {
            Some((time, since)) if *time == stat.ctime_ns => since.elapsed(),
            Some(known) => {
                *known = (stat.ctime_ns, Instant::now());
                Duration::ZERO
            }
            None if is_full => Duration::MAX,
            None => {
                observed.files.insert((stat.device, stat.inode), (stat.ctime_ns, Instant::now()));
                Duration::ZERO
            }
        }
    }

    /// Whether a file may still be written, as seen at the time `now`: where no event shows who writes it. `settle` is how long it must
    /// be the same when that cannot be known; zero takes it as it is.
    pub(crate) fn is_unsettled(&self, now: Duration, stat: &Stat, settle: Duration) -> bool {
        let age = self.age_at(now, stat);
        if settle.is_zero() || age < settle.min(GRAIN) {
            return age < settle;
        }
        // As events are believed: who writes nothing for so long has forgotten to close it.
        age < UNCLOSED
            && match self.writer_of(stat) {
                Open::Yes => true,
                Open::No => false,
                Open::Unknown => age < settle,
            }
    }

    /// Whether this file is open for writing; checked before it is read.
    pub(crate) fn writer_of(&self, stat: &Stat) -> Open {
        let mut known = lock(&self.writers);
        let changed = Duration::from_nanos(u64::try_from(stat.ctime_ns).unwrap_or_default());
        let counts = |snapshot: &Snapshot| {
            snapshot.taken >= changed + GRAIN && Instant::now() < snapshot.until
        };
        let snapshot = match known.take().filter(counts) {
            Some(snapshot) => known.insert(snapshot),
            None => known.insert(Snapshot::take()),
        };
        match (snapshot.open.contains(&(stat.device, stat.inode)), snapshot.complete) {
            (true, _) => Open::Yes,
            (false, true) => Open::No,
            (false, false) => Open::Unknown,
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Snapshot {
    fn take() -> Self {
        let begun = Instant::now();
        let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (mut open, mut complete) = (HashSet::new(), false);
        if let Ok(processes) = fs::read_dir("/proc") {
            complete = Self::read(processes, &mut open);
        }
        let until = Instant::now() + SNAPSHOT.0.max(begun.elapsed() * SNAPSHOT.1);
        Self { taken, until, open, complete }
    }

    /// Reads what processes have open; whether all were seen.
    fn read(processes: fs::ReadDir, open: &mut HashSet<(u64, u64)>) -> bool {
        let mut complete = true;
        let numbered =
            |name: &std::ffi::OsStr| name.to_str().is_some_and(|name| name.parse::<u32>().is_ok());
        for process in processes.flatten().filter(|process| numbered(&process.file_name())) {
            match fs::read_dir(process.path().join("fd")) {
                Ok(files) => {
                    for file in files.flatten() {
                        open.extend(writable(&process.path(), &file.path()));
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                    complete = false;
                }
                // It ended meanwhile.
                Err(_) => {}
            }
        }
        complete
    }
}

/// The device and inode of an open file that can be written.
fn writable(process: &Path, file: &Path) -> Option<(u64, u64)> {
    // Sockets, pipes and the like have no path.
    if !fs::read_link(file).ok()?.is_absolute() {
        return None;
    }
    let info = fs::read_to_string(process.join("fdinfo").join(file.file_name()?)).ok()?;
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    let flags = u64::from_str_radix(flags.trim(), 8).ok()?;
    let found = fs::metadata(file).ok()?;
    (flags & WRITABLE != 0).then(|| (found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_open_until_its_last_writer_closes_it() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("a");
        let writer = fs::File::create(&path).unwrap();
        let reader = fs::File::open(&path).unwrap();
        let stat = Stat::of(&reader).unwrap();
        // Read again for each question, as for a file changed just now.
        let asked = || Rest::default().writer_of(&stat);
        assert_eq!(asked(), Open::Yes);
        drop(writer);
        assert_ne!(asked(), Open::Yes, "who reads it does not count");
    }

    #[test]
    fn a_file_with_a_time_to_come_rests_while_it_is_the_same() {
        let place = tempfile::tempdir().unwrap();
        let mut stat = Stat::of(&fs::File::create(place.path().join("a")).unwrap()).unwrap();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let rest = Rest::default();
        assert!(rest.age_at(now + Duration::from_secs(5), &stat) >= Duration::from_secs(4));
        for ahead in [15, 3_599] {
            stat.ctime_ns = (now + Duration::from_secs(ahead)).as_nanos() as i64;
            assert_eq!(rest.age_at(now, &stat), Duration::ZERO);
            std::thread::sleep(Duration::from_millis(5));
            assert!(rest.age_at(now, &stat) >= Duration::from_millis(5), "{ahead} s ahead");
        }
        stat.ctime_ns = (now + FUTURE * 2).as_nanos() as i64;
        assert_eq!(rest.age_at(now, &stat), Duration::MAX);
    }
}
