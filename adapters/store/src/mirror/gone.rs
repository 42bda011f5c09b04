//! Resources that changes deleted, or that changed at an unknown time. An older list does not apply
//! to these resources.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};

/// Deleted resources that are remembered; then the oldest are forgotten.
const GONE_MAX: i64 = 100_000;

impl Mirror {
    /// Notes that a change at this time, in microseconds, deleted a resource, or changed it at an
    /// unknown time up to this one.
    ///
    /// # Errors
    /// The system's own.
    pub fn note_gone(&self, uri: &str, changed: i64) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO gone VALUES (?1, ?2) ON CONFLICT DO UPDATE SET changed = max(changed, ?2)",
            )
            .and_then(|mut statement| statement.execute(params![uri, changed]))
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// The noted time of a resource, in microseconds.
    ///
    /// # Errors
    /// The system's own.
    pub fn gone(&self, uri: &str) -> Result<Option<i64>, LogError> {
        self.connection
            .prepare_cached("SELECT changed FROM gone WHERE uri = ?1")
            .and_then(|mut statement| statement.query_row([uri], |row| row.get(0)).optional())
            .map_err(failed(READ))
    }

    /// Whether any resource is noted.
    ///
    /// # Errors
    /// The system's own.
    pub fn has_gone(&self) -> Result<bool, LogError> {
        self.connection
            .query_row("SELECT EXISTS (SELECT 1 FROM gone)", [], |row| row.get(0))
            .map_err(failed(READ))
    }

    /// Deletes rows with an earlier time, in microseconds, or all rows.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_gone(&self, before: Option<i64>) -> Result<(), LogError> {
        self.connection
            .execute("DELETE FROM gone WHERE changed < ?1", [before.unwrap_or(i64::MAX)])
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// Deletes the oldest rows above the limit.
    ///
    /// # Errors
    /// The system's own.
    pub fn limit_gone(&self) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "DELETE FROM gone WHERE uri IN (SELECT uri FROM gone ORDER BY changed DESC, uri LIMIT -1 OFFSET ?1)",
            )
            .and_then(|mut statement| statement.execute([GONE_MAX]))
            .map(drop)
            .map_err(failed(WRITE))
    }

    /// Deletes the row of a resource that exists again since a change of a known time.
    ///
    /// # Errors
    /// The system's own.
    pub fn is_back(&self, uri: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached("DELETE FROM gone WHERE uri = ?1")
            .and_then(|mut statement| statement.execute([uri]))
            .map(drop)
            .map_err(failed(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deletions_are_kept_until_a_later_list() {
        let mirror = Mirror::scratch().unwrap();
        assert!(!mirror.has_gone().unwrap());
        mirror.note_gone("a", 5).unwrap();
        mirror.note_gone("a", 3).unwrap();
        mirror.note_gone("b", 9).unwrap();
        assert_eq!((mirror.gone("a").unwrap(), mirror.gone("c").unwrap()), (Some(5), None));
        mirror.forget_gone(Some(6)).unwrap();
        assert_eq!((mirror.gone("a").unwrap(), mirror.gone("b").unwrap()), (None, Some(9)));
        mirror.is_back("b").unwrap();
        assert!(!mirror.has_gone().unwrap());
        mirror.note_gone("a", 5).unwrap();
        mirror.forget_gone(None).unwrap();
        assert!(!mirror.has_gone().unwrap());
    }

    #[test]
    fn no_more_than_a_limit_are_kept() {
        let mirror = Mirror::scratch().unwrap();
        mirror.begin().unwrap();
        for changed in 0..GONE_MAX + 2 {
            mirror.note_gone(&changed.to_string(), changed).unwrap();
        }
        mirror.limit_gone().unwrap();
        mirror.commit().unwrap();
        let gone = |changed: i64| mirror.gone(&changed.to_string()).unwrap();
        assert_eq!((gone(1), gone(2), gone(GONE_MAX + 1)), (None, Some(2), Some(GONE_MAX + 1)));
        // Of one time no more than needed are forgotten.
        mirror.connection.execute("UPDATE gone SET changed = 7", []).unwrap();
        mirror.note_gone("z", 7).unwrap();
        mirror.limit_gone().unwrap();
        assert_eq!((mirror.gone("z").unwrap(), gone(2)), (None, Some(7)));
    }
}
