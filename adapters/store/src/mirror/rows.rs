//! Rows of the resources in a copy and of the documents that were read.

use super::{BATCH, Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};

/// One resource that the folder of the copy contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// URI of the resource, without fragment.
    pub uri: String,
    /// Whether the file has the reserved leaf name.
    pub leaf: bool,
    /// Last modification as listed, in microseconds.
    pub modified: Option<i64>,
    /// Length of the stored bytes.
    pub length: u64,
    /// Digests of the stored bytes, in the compact form.
    pub digests: Vec<u8>,
    /// Time of the last applied change, in microseconds.
    pub changed: Option<i64>,
    /// Entity tag of the response with these bytes.
    pub etag: Option<String>,
    /// Modification time of the file after it was written, in nanoseconds.
    pub file_mtime: i64,
    /// Whether the bytes were verified against a listed digest.
    pub verified: bool,
    /// Number of the run that wrote the file.
    pub epoch: i64,
}

/// Metadata of a document, for conditional requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// The header `ETag` of the response [rfc9110 §8.8.3].
    pub etag: Option<String>,
    /// The header `Last-Modified` as it was sent [rfc9110 §8.8.2].
    pub last_modified: Option<String>,
    /// A fingerprint of the bytes.
    pub fingerprint: i64,
}

/// The columns of a row, in the order [`read_row`] expects.
pub(super) const COLUMNS: &str = "r.uri, r.form, r.modified, r.length, r.digests, r.changed, r.etag, r.file_mtime, r.verified, r.epoch";

pub(super) fn read_row(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Row> {
    Ok(Row {
        uri: row.get(at)?,
        leaf: row.get(at + 1)?,
        modified: row.get(at + 2)?,
        length: row.get::<_, i64>(at + 3)? as u64,
        digests: row.get(at + 4)?,
        changed: row.get(at + 5)?,
        etag: row.get(at + 6)?,
        file_mtime: row.get(at + 7)?,
        verified: row.get(at + 8)?,
        epoch: row.get(at + 9)?,
    })
}

impl Mirror {
    /// Whether the URI of any resource contains this text; otherwise every row is read.
    ///
    /// # Errors
    /// The system's own.
    pub fn has_uri_with(&self, text: &str) -> Result<bool, LogError> {
        self.connection
            .prepare_cached("SELECT EXISTS (SELECT 1 FROM resource WHERE instr(uri, ?1) > 0)")
            .and_then(|mut statement| statement.query_row([text], |row| row.get(0)))
            .map_err(failed(READ))
    }

    /// Metadata of a document.
    ///
    /// # Errors
    /// The system's own.
    pub fn document(&self, url: &str) -> Result<Option<Document>, LogError> {
        self.connection
            .prepare_cached("SELECT etag, last_modified, fingerprint FROM document WHERE url = ?1")
            .and_then(|mut statement| {
                statement
                    .query_row([url], |row| {
                        Ok(Document {
                            etag: row.get(0)?,
                            last_modified: row.get(1)?,
                            fingerprint: row.get(2)?,
                        })
                    })
                    .optional()
            })
            .map_err(failed(READ))
    }

    /// Stores the metadata of a document.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_document(&self, url: &str, document: &Document) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT INTO document (url, etag, last_modified, fingerprint) VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT DO UPDATE SET etag = ?2, last_modified = ?3, fingerprint = ?4",
            )
            .and_then(|mut statement| {
                statement.execute(params![url, document.etag, document.last_modified, document.fingerprint])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Deletes the metadata of all documents, so that all are read again.
    ///
    /// # Errors
    /// The system's own.
    pub fn forget_documents(&self) -> Result<(), LogError> {
        self.connection.execute("DELETE FROM document", []).map(|_| ()).map_err(failed(WRITE))
    }

    /// Replaces the prefix `old` of URIs by `new` in rows and in the plan, within a transaction.
    ///
    /// # Errors
    /// Another row has one of the new URIs already, or the system's own.
    pub fn rebase(&self, old: &str, new: &str) -> Result<(), LogError> {
        let tables =
            ["resource", "pending", "excluded", "access", "packed", "description", "deprecation"];
        for table in tables {
            // Via a prefix that URIs cannot have: a new URI may equal the old URI of another row.
            self.replace_begin((table, "uri"), old, "\u{1}")?;
            self.replace_begin((table, "uri"), "\u{1}", new)?;
        }
        self.rebase_addresses(old, new)?;
        // The URIs of all resources are others now.
        self.overflow()
    }

    /// Replaces the prefix `old` by `new` in the addresses of resources that are not requested at
    /// their URIs.
    ///
    /// # Errors
    /// The system's own.
    pub fn rebase_addresses(&self, old: &str, new: &str) -> Result<(), LogError> {
        self.replace_begin(("access", "href"), old, new)
    }

    fn replace_begin(
        &self,
        (table, column): (&str, &str),
        old: &str,
        new: &str,
    ) -> Result<(), LogError> {
        let sql = format!(
            "UPDATE {table} SET {column} = ?2 || substr({column}, length(?1) + 1)
             WHERE substr({column}, 1, length(?1)) = ?1"
        );
        self.connection.execute(&sql, [old, new]).map(drop).map_err(failed(WRITE))
    }

    /// The row of a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn row(&self, uri: &str) -> Result<Option<Row>, LogError> {
        self.connection
            .prepare_cached(&format!("SELECT {COLUMNS} FROM resource r WHERE uri = ?1"))
            .and_then(|mut statement| statement.query_row([uri], |row| read_row(row, 0)).optional())
            .map_err(failed(READ))
    }

    /// Appends the next rows after a URI, in the order of their URIs' bytes.
    ///
    /// # Errors
    /// The system's own.
    pub fn rows_after(&self, uri: &str, limit: usize, out: &mut Vec<Row>) -> Result<(), LogError> {
        let mut read = || -> rusqlite::Result<()> {
            let mut statement = self.connection.prepare_cached(&format!(
                "SELECT {COLUMNS} FROM resource r WHERE uri > ?1 ORDER BY uri LIMIT ?2"
            ))?;
            let mut rows = statement.query(params![uri, limit as i64])?;
            while let Some(row) = rows.next()? {
                out.push(read_row(row, 0)?);
            }
            Ok(())
        };
        read().map_err(failed(READ))
    }

    /// Hands over all rows in the order of their URIs' bytes, some at a time; meanwhile they may be
    /// changed.
    ///
    /// # Errors
    /// The system's own, or an error of `visit`, which ends the loop.
    pub fn each_batch<E: From<LogError>>(
        &self,
        mut visit: impl FnMut(&[Row]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut key, mut rows) = (String::new(), Vec::new());
        loop {
            rows.clear();
            self.rows_after(&key, BATCH, &mut rows)?;
            let Some(last) = rows.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            visit(&rows)?;
        }
    }

    /// Stores the row of a resource, replacing an earlier one.
    ///
    /// # Errors
    /// The system's own.
    pub fn put_row(&self, row: &Row) -> Result<(), LogError> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO resource VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )
            .and_then(|mut statement| {
                statement.execute(params![
                    row.uri,
                    row.leaf,
                    row.modified,
                    row.length as i64,
                    row.digests,
                    row.changed,
                    row.etag,
                    row.file_mtime,
                    row.verified,
                    row.epoch
                ])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Stores rows for all due fetches from one URI to another, both included, with the planned
    /// properties: plain paths, verified, without an entity tag. With `has_times`, the files have
    /// the listed time. Returns the number of rows.
    ///
    /// # Errors
    /// The system's own, also if an item does not have a length.
    pub fn put_rows_as_planned(
        &self,
        first: &str,
        last: &str,
        epoch: i64,
        has_times: bool,
    ) -> Result<u64, LogError> {
        self.connection
            .prepare_cached(
                "INSERT OR REPLACE INTO resource
                 SELECT uri, 0, modified, length, digests, changed, NULL, iif(?4, modified * 1000, 0), 1, ?3 FROM pending
                 WHERE uri >= ?1 AND uri <= ?2 AND action = 0 AND state = 0",
            )
            .and_then(|mut statement| statement.execute(params![first, last, epoch, has_times]))
            .map(|count| count as u64)
            .map_err(failed(WRITE))
    }

    /// Deletes the row of a resource.
    ///
    /// # Errors
    /// The system's own.
    pub fn delete_row(&self, uri: &str) -> Result<(), LogError> {
        self.connection
            .prepare_cached("DELETE FROM resource WHERE uri = ?1")
            .and_then(|mut statement| statement.execute([uri]))
            .map_err(failed(WRITE))?;
        self.forget_access_unless_planned(uri)
    }

    /// Number of resources in the copy, counted up to `most`.
    ///
    /// # Errors
    /// The system's own.
    pub fn count_rows_up_to(&self, most: u64) -> Result<u64, LogError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.connection
            .query_row("SELECT count(*) FROM (SELECT 1 FROM resource LIMIT ?1)", [most], |row| {
                row.get::<_, i64>(0)
            })
            .map(|count| count as u64)
            .map_err(failed(READ))
    }

    /// Number of resources in the copy. Reads all rows: too slow for runs that change nothing.
    ///
    /// # Errors
    /// The system's own.
    pub fn count_rows(&self) -> Result<u64, LogError> {
        self.connection
            .query_row("SELECT count(*) FROM resource", [], |row| row.get::<_, i64>(0))
            .map(|count| count as u64)
            .map_err(failed(READ))
    }
}
