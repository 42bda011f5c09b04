//! The properties of the folder's file system for names and times, probed once.

use crate::path_map::NameRules;
use abreast_folder::{Dir, Error, ErrorKind};

/// The properties of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSystem {
    pub(crate) rules: NameRules,
    /// Modification times closer than this cannot be distinguished, nanoseconds.
    pub(crate) time_step: i64,
}

const LOWER: &[u8] = b".%~probe-a";
const UPPER: &[u8] = b".%~PROBE-A";
const NOT_TEXT: &[u8] = b".%~probe-\xff";
const DECOMPOSED: &[u8] = ".%~probe-e\u{301}".as_bytes();
const COMPOSED: &[u8] = ".%~probe-\u{e9}".as_bytes();
/// An odd second and a fraction down to microseconds, which is as precise as lists are.
const INSTANT: i64 = 1_500_000_001_123_456_000;

impl FileSystem {
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
        let folds_case = root.stat(UPPER).is_ok();
        let ascii_only = !make(NOT_TEXT)? || !make(DECOMPOSED)? || root.stat(COMPOSED).is_ok();
        Ok(Self { rules: NameRules { folds_case, ascii_only, no_controls: false }, time_step })
    }

    /// The text kept in the state.
    pub(crate) fn to_text(self) -> String {
        format!(
            "{} {} {}",
            u8::from(self.rules.folds_case),
            u8::from(self.rules.ascii_only),
            self.time_step
        )
    }

    pub(crate) fn from_text(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let folds_case = words.next()? == "1";
        let ascii_only = words.next()? == "1";
        let time_step = words.next()?.parse().ok()?;
        Some(Self { rules: NameRules { folds_case, ascii_only, no_controls: false }, time_step })
    }

    /// Whether the time of a file is still the one that was set.
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
        assert!(found.same_time(INSTANT, INSTANT));
        assert_eq!(FileSystem::from_text(&found.to_text()), Some(found));
        assert_eq!(root.list().unwrap(), []);
    }

    #[test]
    fn coarse_times_are_compared_coarsely() {
        let fat = FileSystem { rules: NameRules::default(), time_step: 2_000_000_000 };
        assert!(fat.same_time(1_500_000_001_123_456_000, 1_500_000_000_000_000_000));
        assert!(!fat.same_time(1_500_000_001_123_456_000, 1_499_999_998_000_000_000));
    }
}
