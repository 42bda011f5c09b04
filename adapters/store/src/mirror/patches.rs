//! Patches of changes, while a plan is made: their offsets in the file of planned bytes.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::params;

impl Mirror {
    /// Notes the offset of a change's patch. Changes are ordered as by [`Mirror::put_coming`]; with
    /// the same list and time, by their offsets.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_patch(
        &self,
        uri: &str,
        (time, list): (i64, i64),
        begin: u64,
    ) -> Result<(), LogError> {
        self.connection
            .prepare_cached("INSERT OR IGNORE INTO temp.patch VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut statement| statement.execute(params![uri, time, list, begin as i64]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Offsets of the newest patches of a resource, at most `most`, in the order of their changes.
    ///
    /// # Errors
    /// The system's own.
    pub fn patches(&self, uri: &str, most: usize) -> Result<Vec<u64>, LogError> {
        let sql = "SELECT begin FROM temp.patch WHERE uri = ?1 ORDER BY time DESC, list DESC, begin DESC LIMIT ?2";
        let read = || -> rusqlite::Result<Vec<u64>> {
            let mut statement = self.connection.prepare_cached(sql)?;
            let rows = statement
                .query_map(params![uri, most as i64], |row| row.get(0).map(|at: i64| at as u64))?;
            rows.collect()
        };
        let mut found = read().map_err(failed(READ))?;
        found.reverse();
        Ok(found)
    }

    /// Discards the patches of failed items, so that their descriptions are fetched instead.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_failed_patches(&self) -> Result<(), LogError> {
        self.connection
            .execute(
                "UPDATE pending SET body = NULL WHERE body IS NOT NULL AND length IS NULL AND state = 1",
                [],
            )
            .map(|_| ())
            .map_err(failed(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::{Pending, PendingState};

    #[test]
    fn patches_are_found_in_the_order_of_their_changes() {
        let mirror = Mirror::scratch().unwrap();
        for (begin, order) in [(0, (5, -1)), (10, (7, -1)), (20, (5, -2)), (30, (5, -2))] {
            mirror.put_patch("http://h/a", order, begin).unwrap();
            mirror.put_patch("http://h/b", order, begin + 100).unwrap();
        }
        assert_eq!(mirror.patches("http://h/a", 10).unwrap(), [20, 30, 0, 10]);
        assert_eq!(mirror.patches("http://h/a", 2).unwrap(), [0, 10]);
        mirror.clear_scratch().unwrap();
        assert_eq!(mirror.patches("http://h/a", 2).unwrap(), [0_u64; 0]);
    }

    #[test]
    fn what_failed_is_fetched_without_its_patches() {
        let mirror = Mirror::scratch().unwrap();
        for (uri, length) in [("http://h/patched", None), ("http://h/whole", Some(5))] {
            let item = Pending { uri: uri.to_owned(), length, body: Some(0), ..Pending::default() };
            mirror.put_pending(&item).unwrap();
        }
        mirror.forget_failed_patches().unwrap();
        let body = |uri| mirror.task(uri).unwrap().unwrap().pending.body;
        assert_eq!(body("http://h/patched"), Some(0), "it has not failed");
        for uri in ["http://h/patched", "http://h/whole"] {
            mirror.set_pending_state(uri, PendingState::Failed, true).unwrap();
        }
        mirror.forget_failed_patches().unwrap();
        assert_eq!((body("http://h/patched"), body("http://h/whole")), (None, Some(0)));
    }
}
