//! The properties of the folder's file system for file names and times, determined by one test.

use crate::copy::path_map::NameRules;
use abreast_folder::{Dir, Error, ErrorKind};

/// The properties of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    pub(crate) rules: NameRules,
    /// Modification times that are closer than this number of nanoseconds are considered equal.
    pub(crate) time_step: i64,
    /// The first and the last modification time that a file can have, nanoseconds since 1970.
    pub(crate) times: (i64, i64),
}

const LOWER: &[u8] = b".%~probe-a";
const UPPER: &[u8] = b".%~PROBE-A";
const NOT_TEXT: &[u8] = b".%~probe-\xff";
const DECOMPOSED: &[u8] = ".%~probe-e\u{301}".as_bytes();
const COMPOSED: &[u8] = ".%~probe-\u{e9}".as_bytes();
/// A time with an odd second and microseconds, the precision of times in lists.
const INSTANT: i64 = 1_500_000_001_123_456_000;
/// The range of times of common file systems, which starts in 1901.
const USUAL_TIMES: (i64, i64) = (i32::MIN as i64 * 1_000_000_000, i64::MAX);
/// Times that every file system has: from 1980 to 2038.
const COMMON_TIMES: (i64, i64) = (315_532_800_000_000_000, i32::MAX as i64 * 1_000_000_000);

impl FileSystem {
    /// A file system about which nothing else is known.
    pub(crate) const fn with_rules(rules: NameRules) -> Self {
        Self { rules, time_step: 1, times: USUAL_TIMES }
    }

    pub(crate) fn probe(root: &Dir) -> Result<Self, Error> {
        let result = Self::try_names(root);
        for name in [LOWER, NOT_TEXT, DECOMPOSED] {
            let _ = root.unlink(name);
        }
        result
    }

    fn try_names(root: &Dir) -> Result<Self, Error> {
        let make = |name: &[u8]| match root.create_new(name) {
            Err(error) if error.kind() == ErrorKind::Exists => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::Full | ErrorKind::Denied) => Err(error),
            result => Ok(result.is_ok()),
        };
        if !make(LOWER)? {
            return Err(root.create_new(LOWER).err().unwrap_or_else(|| unreachable_error(root)));
        }
        root.set_modified(LOWER, INSTANT)?;
        let kept = root.stat(LOWER)?.mtime_ns;
        let time_step = match (kept - INSTANT).abs() {
            0 => 1,
            1..1_000_000 => 1_000_000,
            1_000_000..1_000_000_000 => 1_000_000_000,
            _ => 2_000_000_000,
        };
        let times = Self::probe_times(root)?;
        let folds_case = root.stat(UPPER).is_ok();
        let ascii_only = !make(NOT_TEXT)? || !make(DECOMPOSED)? || root.stat(COMPOSED).is_ok();
        let rules = NameRules { folds_case, ascii_only, no_controls: false };
        Ok(Self { rules, time_step, times })
    }

    /// Sets times that are too early and too late: a file gets the nearest that it can have.
    fn probe_times(root: &Dir) -> Result<(i64, i64), Error> {
        let set = |time: i64| {
            root.set_modified(LOWER, time)?;
            root.stat(LOWER).map(|found| found.mtime_ns)
        };
        // Not the least number of all, which stands for another thing in rows.
        let (first, last) = (set(i64::MIN + 1)?, set(i64::MAX)?);
        // Some systems wrap around.
        let (common_first, common_last) = COMMON_TIMES;
        let first = if first > common_first { common_first } else { first };
        Ok((first, if last < common_last { common_last } else { last }))
    }

    /// Adds the range of file times to properties that an earlier version stored without the range.
    /// Returns `None` if the range is known.
    pub(crate) fn with_times(self, text: &str, root: &Dir) -> Result<Option<Self>, Error> {
        if text.split(' ').count() > 3 {
            return Ok(None);
        }
        root.create_new(LOWER)?;
        let times = Self::probe_times(root);
        let _ = root.unlink(LOWER);
        Ok(Some(Self { times: times?, ..self }))
    }

    /// The properties as text, for the database of the copy.
    pub(crate) fn to_text(self) -> String {
        format!(
            "{} {} {} {} {}",
            u8::from(self.rules.folds_case),
            u8::from(self.rules.ascii_only),
            self.time_step,
            self.times.0,
            self.times.1
        )
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let folds_case = words.next()? == "1";
        let ascii_only = words.next()? == "1";
        let time_step = words.next()?.parse().ok()?;
        let rules = NameRules { folds_case, ascii_only, no_controls: false };
        let mut time = || words.next()?.parse().ok();
        let times = time().zip(time()).unwrap_or(USUAL_TIMES);
        Some(Self { rules, time_step, times })
    }

    /// The time that a file can have which is nearest to this one, in nanoseconds since 1970.
    pub(crate) fn nearest_time(self, nanoseconds: i64) -> i64 {
        nanoseconds.clamp(self.times.0, self.times.1)
    }

    /// The time of the file of a resource that was modified then, microseconds.
    pub(crate) fn time_of(self, modified: i64) -> i64 {
        self.nearest_time(modified.saturating_mul(1_000))
    }

    /// Whether a file has the time of a resource that was modified then, microseconds.
    pub(crate) fn has_time(self, modified: i64, found: i64) -> bool {
        self.same_time(self.time_of(modified), found)
    }

    /// Whether a file time is equal to the time that was set, within the precision of the file
    /// system.
    pub(crate) const fn same_time(self, set: i64, found: i64) -> bool {
        set.abs_diff(found) < self.time_step.unsigned_abs()
    }
}

fn unreachable_error(root: &Dir) -> Error {
    root.stat(b"..").expect_err("`..` is never a name")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_file_system_keeps_names_and_times() {
        let place = tempfile::tempdir().unwrap();
        let root = abreast_folder::Folder::open(place.path()).unwrap().root();
        let found = FileSystem::probe(&root).unwrap();
        assert_eq!(found.rules, NameRules::default());
        let (first, last) = found.times;
        assert!(first <= USUAL_TIMES.0 && first > i64::MIN && last > COMMON_TIMES.1, "{found:?}");
        // The text of an earlier version.
        let known = FileSystem::from_text("0 0 1").unwrap();
        assert_eq!(known.times, USUAL_TIMES);
        assert_eq!(known.with_times("0 0 1", &root).unwrap(), Some(found));
        assert_eq!(found.with_times(&found.to_text(), &root).unwrap(), None);
        assert!(found.same_time(INSTANT, INSTANT));
        assert_eq!(FileSystem::from_text(&found.to_text()), Some(found));
        assert_eq!(root.list().unwrap(), []);
    }

    #[test]
    fn coarse_times_are_compared_coarsely() {
        let fat = FileSystem {
            time_step: 2_000_000_000,
            times: COMMON_TIMES,
            ..FileSystem::with_rules(NameRules::default())
        };
        assert!(fat.has_time(0, COMMON_TIMES.0) && fat.has_time(i64::MIN, COMMON_TIMES.0));
        assert!(fat.has_time(i64::MAX, COMMON_TIMES.1) && !fat.has_time(0, 0));
        assert!(fat.same_time(1_500_000_001_123_456_000, 1_500_000_000_000_000_000));
        assert!(!fat.same_time(1_500_000_001_123_456_000, 1_499_999_998_000_000_000));
    }
}
