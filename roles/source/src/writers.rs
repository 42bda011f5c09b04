//! Files that a process has open for writing, as far as this one may see: where no event shows who
//! writes a file.

use abreast_folder::Stat;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file's times may lag this far behind what was done.
pub(crate) const GRAIN: Duration = Duration::from_millis(20);
/// The access modes of an open file that allow writing: `O_WRONLY` and `O_RDWR`.
const WRITABLE: u64 = 0b11;

/// The files open for writing, read again whenever a file is more recent than the last reading.
#[derive(Debug, Default)]
pub(crate) struct Writers(Mutex<Snapshot>);

#[derive(Debug, Default)]
struct Snapshot {
    /// Since 1970.
    taken: Duration,
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

impl Writers {
    /// Whether this file is open for writing; checked before it is read.
    pub(crate) fn of(&self, stat: &Stat) -> Open {
        let mut snapshot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = Duration::from_nanos(u64::try_from(stat.ctime_ns).unwrap_or_default());
        if snapshot.taken < changed + GRAIN {
            *snapshot = Snapshot::take();
        }
        match (snapshot.open.contains(&(stat.device, stat.inode)), snapshot.complete) {
            (true, _) => Open::Yes,
            (false, true) => Open::No,
            (false, false) => Open::Unknown,
        }
    }
}

impl Snapshot {
    fn take() -> Self {
        let taken = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let Ok(processes) = fs::read_dir("/proc") else { return Self { taken, ..Self::default() } };
        let (mut open, mut complete) = (HashSet::new(), true);
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
        Self { taken, open, complete }
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
        let asked = || Writers::default().of(&stat);
        assert_eq!(asked(), Open::Yes);
        drop(writer);
        assert_ne!(asked(), Open::Yes, "who reads it does not count");
    }
}
