//! The expected contents of a folder, in a temporary file, for audits of any size.

use super::{BATCH, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{Connection, OptionalExtension as _, params};

/// One resource as the Source lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExpectedRow {
    /// URI of the resource, without fragment.
    pub uri: String,
    /// The address to request, if it differs from the URI.
    pub href: Option<String>,
    /// Last modification, in microseconds since 1970.
    pub modified: Option<i64>,
    /// Length of the content in bytes.
    pub length: Option<u64>,
    /// Digests in the compact form.
    pub digests: Vec<u8>,
    /// Time to which the row applies, in microseconds: the start and end of a range that contains
    /// the time of the change, or of the list.
    pub at: Option<(i64, i64)>,
    /// Whether a change listed the resource; otherwise a complete list did.
    pub is_change: bool,
    /// Whether the content is a description, which may be empty.
    pub describes: bool,
}

/// The expected resources, in a temporary file that is deleted on drop.
#[derive(Debug)]
pub struct Expected {
    connection: Connection,
}

impl Expected {
    /// Creates an empty temporary database.
    ///
    /// # Errors
    /// No temporary file can be created.
    pub fn new() -> Result<Self, LogError> {
        let prepare = || -> rusqlite::Result<Connection> {
            // An empty path opens a private temporary database of SQLite.
            let connection = Connection::open("")?;
            connection.execute_batch(
                "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -8192;
                 CREATE TABLE expected (uri TEXT PRIMARY KEY, modified INTEGER, length INTEGER, digests BLOB NOT NULL,
                    time INTEGER NOT NULL, list INTEGER NOT NULL, gone INTEGER NOT NULL, href TEXT,
                    first INTEGER, last INTEGER, is_change INTEGER NOT NULL, describes INTEGER NOT NULL) STRICT, WITHOUT ROWID;
                 BEGIN",
            )?;
            Ok(connection)
        };
        Ok(Self { connection: prepare().map_err(failed("cannot make a temporary database"))? })
    }

    /// Notes a resource's properties since a time, or that it was deleted then. The newest row
    /// replaces others; at equal times the row from the later list, and within a list the row noted
    /// last.
    ///
    /// # Errors
    /// The system's own.
    pub fn put(
        &self,
        row: &ExpectedRow,
        (time, list): (i64, i64),
        gone: bool,
    ) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO expected VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
                 ON CONFLICT DO UPDATE SET modified = ?2, length = ?3, digests = ?4, time = ?5, list = ?6, gone = ?7,
                    href = ?8, first = ?9, last = ?10, is_change = ?11, describes = ?12
                 WHERE (?5, ?6) >= (time, list)",
            )
            .and_then(|mut statement| {
                let length = row.length.map(|length| length as i64);
                statement.execute(params![
                    row.uri,
                    row.modified,
                    length,
                    row.digests,
                    time,
                    list,
                    gone,
                    row.href,
                    row.at.map(|at| at.0),
                    row.at.map(|at| at.1),
                    row.is_change,
                    row.describes
                ])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Whether this resource is expected.
    ///
    /// # Errors
    /// The system's own.
    pub fn contains(&self, uri: &str) -> Result<bool, LogError> {
        self.connection
            .prepare_cached("SELECT 1 FROM expected WHERE uri = ?1 AND NOT gone")
            .and_then(|mut statement| statement.query_row([uri], |_| Ok(())).optional())
            .map(|found| found.is_some())
            .map_err(failed(READ))
    }

    /// Whether a deletion of this resource is the newest noted row.
    ///
    /// # Errors
    /// The system's own.
    pub fn is_gone(&self, uri: &str) -> Result<bool, LogError> {
        self.connection
            .prepare_cached("SELECT 1 FROM expected WHERE uri = ?1 AND gone")
            .and_then(|mut statement| statement.query_row([uri], |_| Ok(())).optional())
            .map(|found| found.is_some())
            .map_err(failed(READ))
    }

    /// The noted row of a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn row(&self, uri: &str) -> Result<Option<ExpectedRow>, LogError> {
        self.connection
            .prepare_cached(
                "SELECT uri, modified, length, digests, href, first, last, is_change, describes FROM expected
                 WHERE uri = ?1 AND NOT gone",
            )
            .and_then(|mut statement| statement.query_row([uri], read_row).optional())
            .map_err(failed(READ))
    }

    /// The noted length of a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn length(&self, uri: &str) -> Result<Option<u64>, LogError> {
        self.connection
            .prepare_cached("SELECT length FROM expected WHERE uri = ?1 AND NOT gone")
            .and_then(|mut statement| {
                statement.query_row([uri], |row| row.get::<_, Option<i64>>(0)).optional()
            })
            .map(|found| found.flatten().map(|length| length as u64))
            .map_err(failed(READ))
    }

    /// Appends the next expected resources after a URI, in order.
    ///
    /// # Errors
    /// The system's own.
    pub fn after(
        &self,
        uri: &str,
        limit: usize,
        out: &mut Vec<ExpectedRow>,
    ) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(
                "SELECT uri, modified, length, digests, href, first, last, is_change, describes FROM expected
                 WHERE uri > ?1 AND NOT gone ORDER BY uri LIMIT ?2",
            )?;
            let mut rows = statement.query(params![uri, limit as i64])?;
            while let Some(row) = rows.next()? {
                out.push(read_row(row)?);
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Number of expected resources.
    ///
    /// # Errors
    /// The system's own.
    pub fn count(&self) -> Result<u64, LogError> {
        let count = "SELECT count(*) FROM expected WHERE gone = 0";
        self.connection
            .query_row(count, [], |row| row.get::<_, i64>(0))
            .map(|count| count as u64)
            .map_err(failed("cannot count the expected resources"))
    }

    /// Hands over all expected resources in order, some at a time.
    ///
    /// # Errors
    /// The system's own, or an error of `visit`, which ends the loop.
    pub fn each_batch<E: From<LogError>>(
        &self,
        mut visit: impl FnMut(&[ExpectedRow]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut key, mut rows) = (String::new(), Vec::new());
        loop {
            rows.clear();
            self.after(&key, BATCH, &mut rows)?;
            let Some(last) = rows.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            visit(&rows)?;
        }
    }
}

fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<ExpectedRow> {
    let length: Option<i64> = row.get(2)?;
    Ok(ExpectedRow {
        uri: row.get(0)?,
        modified: row.get(1)?,
        length: length.map(|length| length as u64),
        digests: row.get(3)?,
        href: row.get(4)?,
        at: row.get::<_, Option<i64>>(5)?.zip(row.get(6)?),
        is_change: row.get(7)?,
        describes: row.get(8)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_state_of_each_resource_is_expected() {
        let expected = Expected::new().unwrap();
        let row = |uri: &str, length| ExpectedRow {
            uri: uri.to_owned(),
            length: Some(length),
            ..ExpectedRow::default()
        };
        expected.put(&row("http://h/a", 1), (10, 0), false).unwrap();
        let (at, is_change, describes) = (Some((12, 13)), true, true);
        let stated = ExpectedRow { at, is_change, describes, ..row("http://h/a", 2) };
        expected.put(&stated, (12, 0), false).unwrap();
        expected.put(&row("http://h/a", 3), (11, 0), false).unwrap();
        expected.put(&row("http://h/b", 1), (10, 0), false).unwrap();
        expected.put(&row("http://h/b", 1), (11, 0), true).unwrap();
        // Lists that are walked back.
        expected.put(&row("http://h/c", 1), (10, 0), true).unwrap();
        expected.put(&row("http://h/c", 1), (10, -1), false).unwrap();
        let mut rows = Vec::new();
        expected.after("", 10, &mut rows).unwrap();
        assert_eq!(rows, [stated]);
        assert!(expected.contains("http://h/a").unwrap());
        assert_eq!(
            (expected.length("http://h/a").unwrap(), expected.length("http://h/b").unwrap()),
            (Some(2), None)
        );
        assert!(!expected.contains("http://h/b").unwrap());
        assert_eq!(expected.row("http://h/a").unwrap().as_ref(), rows.first());
        let is_gone = |uri| expected.is_gone(uri).unwrap();
        assert!(is_gone("http://h/b") && !is_gone("http://h/a") && !is_gone("http://h/x"));
        assert!(!expected.contains("http://h/c").unwrap());
    }
}
