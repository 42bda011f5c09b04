//! Detection of files at rest: files that did not change for some time and that no visible process
//! has open for writing.
//!
//! The clock of a file server may be ahead of the local clock, and the local clock can be set back.
//! For a file with a time in the future, the watch therefore measures how long the time of the file
//! remains the same.

use crate::scan::pending::UNCLOSED;
use abreast_folder::Stat;
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Granularity of file times: the time of a file may be earlier than the change by this duration.
const GRAIN: Duration = Duration::from_millis(20);
/// Access modes of open files that allow writing: `O_WRONLY` and `O_RDWR`.
const WRITABLE: u64 = 0b11;

/// Shortest time between two snapshots of open files, and the inverse of the highest share of time
/// that snapshots may take.
const SNAPSHOT: (Duration, u32) = (Duration::from_secs(1), 20);
/// Largest difference between two clocks. A file time further in the future is treated as a time
/// long ago.
const FUTURE: Duration = Duration::from_secs(3_600);
/// Most files with a time in the future that are observed. Further files are treated as unchanged
/// for a long time.
const MAX_OBSERVED: usize = 100_000;
/// Interval between two removals of deleted or settled files from the observed files.
const CLEARED: Duration = Duration::from_secs(60);

/// Information about files that a process may be writing.
#[derive(Debug, Default)]
pub struct Rest {
    writers: Mutex<Option<Snapshot>>,
    observed: Mutex<Observed>,
}

/// Files whose time is in the future.
#[derive(Debug, Default)]
struct Observed {
    /// Time of each file, by device and inode, and the first observation of that time.
    files: HashMap<(u64, u64), (i64, Instant)>,
    /// Last removal of files that were deleted or whose time is in the past.
    cleared: Option<Instant>,
}

/// Snapshot of the files that are open for writing.
#[derive(Debug)]
struct Snapshot {
    /// Time of the snapshot since 1970.
    taken: Duration,
    /// End of validity. A later question needs a new snapshot, even for a file that changed
    /// earlier.
    until: Instant,
    /// Files open for writing, by device and inode.
    open: HashSet<(u64, u64)>,
    /// Whether the open files of all processes are visible.
    complete: bool,
}

/// Answer to the question whether a process has a file open for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Open {
    /// A process has the file open for writing.
    Yes,
    /// All processes are visible, and none of them has the file open for writing.
    No,
    /// None of the visible processes has the file open for writing, but some processes are not
    /// visible.
    Unknown,
}

impl Rest {
    /// Returns the time since the last change of content or metadata of a file. `now` is the local
    /// time since 1970. If the file changed after `now`, returns zero.
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

    /// Whether a process may still be writing a file, for folders without events. `now` is the
    /// local time since 1970. `settle` is the time for which the file must be unchanged if some
    /// processes are not visible; zero treats every such file as complete.
    pub(crate) fn is_unsettled(&self, now: Duration, stat: &Stat, settle: Duration) -> bool {
        let age = self.age_at(now, stat);
        if settle.is_zero() || age < settle.min(GRAIN) {
            return age < settle;
        }
        // The same limit applies with events: a process that does not write for this time probably
        // failed to close the file.
        age < UNCLOSED
            && match self.writer_of(stat) {
                Open::Yes => true,
                Open::No => false,
                Open::Unknown => age < settle,
            }
    }

    /// Checks whether a process has this file open for writing. Call this method before reading the
    /// file.
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

    /// Reads the open files of all processes. Returns whether all processes are visible.
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
                // The process ended after the folder was listed.
                Err(_) => {}
            }
        }
        complete
    }
}

/// Returns device and inode of an open file if the process can write to the file.
fn writable(process: &Path, file: &Path) -> Option<(u64, u64)> {
    // Sockets, pipes and similar objects do not have an absolute path.
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
        // Takes a new snapshot for each question, as for a file that changed recently.
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
