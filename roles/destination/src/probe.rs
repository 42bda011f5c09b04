//! The properties of the folder's file system for names and times, probed once.

use crate::path_map::NameRules;
use abreast_folder::{Dir, Error, ErrorKind};

/// The properties of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    pub(crate) rules: NameRules,
    /// Modification times closer than this cannot be distinguished, nanoseconds.
    pub(crate) time_step: i64,
    /// The first and the last modification time that a file can have, nanoseconds since 1970: a time
    /// beyond is stored as that.
    pub(crate) times: (i64, i64),
}

const LOWER: &[u8] = b".%~probe-a";
const UPPER: &[u8] = b".%~PROBE-A";
const NOT_TEXT: &[u8] = b".%~probe-\xff";
const DECOMPOSED: &[u8] = ".%~probe-e\u{301}".as_bytes();
const COMPOSED: &[u8] = ".%~probe-\u{e9}".as_bytes();
/// An odd second and a fraction down to microseconds, which is as precise as lists are.
const INSTANT: i64 = 1_500_000_001_123_456_000;

impl FileSystem {
    /// One that stores every time as it is set.
    pub(crate) const fn with_all_times(rules: NameRules) -> Self {
        Self { rules, time_step: 1, times: (i64::MIN, i64::MAX) }
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
        let stored = |time| root.set_modified(LOWER, time).and_then(|()| root.stat(LOWER));
        let limit = |time| stored(time).map_or(time, |stat| stat.mtime_ns);
        // A file system that counts in a circle has no limits.
        let first = Some(limit(i64::MIN)).filter(|first| *first <= 0).unwrap_or(i64::MIN);
        let last = Some(limit(i64::MAX)).filter(|last| *last > INSTANT).unwrap_or(i64::MAX);
        let time_step = match (stored(INSTANT)?.mtime_ns - INSTANT).abs() {
            0 => 1,
            1..1_000_000 => 1_000_000,
            1_000_000..1_000_000_000 => 1_000_000_000,
            _ => 2_000_000_000,
        };
        let folds_case = root.stat(UPPER).is_ok();
        let ascii_only = !make(NOT_TEXT)? || !make(DECOMPOSED)? || root.stat(COMPOSED).is_ok();
        let rules = NameRules { folds_case, ascii_only, no_controls: false };
        Ok(Self { rules, time_step, times: (first, last) })
    }

    /// The text kept in the state.
    pub(crate) fn to_text(self) -> String {
        let Self { rules, time_step, times: (first, last) } = self;
        let [folds_case, ascii_only] = [rules.folds_case, rules.ascii_only].map(u8::from);
        format!("{folds_case} {ascii_only} {time_step} {first} {last}")
    }

    /// Reads the text kept in the state; one of an earlier version has no limits of times.
    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let folds_case = words.next()? == "1";
        let ascii_only = words.next()? == "1";
        let time_step = words.next()?.parse().ok()?;
        let mut limit = |none| words.next().map_or(Some(none), |word| word.parse().ok());
        let times = (limit(i64::MIN)?, limit(i64::MAX)?);
        let rules = NameRules { folds_case, ascii_only, no_controls: false };
        (times.0 < times.1).then_some(Self { rules, time_step, times })
    }

    /// Whether the time of a file is still the one that was set.
    pub(crate) fn same_time(self, set: i64, found: i64) -> bool {
        let stored = |time: i64| time.clamp(self.times.0, self.times.1);
        stored(set).abs_diff(stored(found)) < self.time_step.unsigned_abs()
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
        assert!(found.same_time(INSTANT, INSTANT));
        assert_eq!(FileSystem::from_text(&found.to_text()), Some(found));
        let by_earlier_version = FileSystem::from_text("1 0 1000").unwrap();
        assert_eq!(by_earlier_version.times, (i64::MIN, i64::MAX));
        assert_eq!(root.list().unwrap(), []);
    }

    #[test]
    fn coarse_times_are_compared_coarsely() {
        let fat = FileSystem {
            time_step: 2_000_000_000,
            ..FileSystem::with_all_times(NameRules::default())
        };
        assert!(fat.same_time(1_500_000_001_123_456_000, 1_500_000_000_000_000_000));
        assert!(!fat.same_time(1_500_000_001_123_456_000, 1_499_999_998_000_000_000));
    }

    #[test]
    fn times_beyond_a_limit_are_stored_as_the_limit() {
        let all = FileSystem::with_all_times(NameRules::default());
        let since_1970 = FileSystem { times: (0, INSTANT), ..all };
        assert!(since_1970.same_time(i64::MIN, 0) && since_1970.same_time(i64::MAX, INSTANT));
        assert!(!since_1970.same_time(i64::MIN, 1) && !all.same_time(-1, 0));
    }
}
