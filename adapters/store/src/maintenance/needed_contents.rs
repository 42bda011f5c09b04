//! The stored contents that rows need, in the order of their addresses.

use crate::database::connection::sqlite_error;
use crate::database::read_only::open_for_check;
use abreast_core::{ContentId, LogError};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::{Path, PathBuf};

/// Addresses read in one transaction: few, so that a server can write meanwhile.
const PAGE: i64 = 4_096;

/// Addresses and lengths of the contents that the rows of a store need, in order. If the store is
/// in use, each page has the rows at the time of its reading.
pub struct NeededContents {
    /// `None` if the store's schema is older than stored contents.
    connection: Option<Connection>,
    path: PathBuf,
    page: std::vec::IntoIter<(ContentId, u64)>,
    /// The last address of the page, as it is stored.
    last: Vec<u8>,
    ended: bool,
}

impl std::fmt::Debug for NeededContents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NeededContents").field("path", &self.path).finish_non_exhaustive()
    }
}

impl NeededContents {
    /// Opens a store to read all addresses from the first.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let connection = open_for_check(path)?;
        let has_contents = connection
            .query_row("SELECT 1 FROM sqlite_schema WHERE name = 'contents'", [], |_| Ok(()))
            .optional()
            .map_err(|cause| failed(path, cause))?
            .is_some();
        let (page, last, ended) = (Vec::new().into_iter(), Vec::new(), !has_contents);
        Ok(Self {
            connection: has_contents.then_some(connection),
            path: path.to_owned(),
            page,
            last,
            ended,
        })
    }

    /// Leaves out the addresses before those whose first byte is `first`; call it before the first address is read.
    #[must_use]
    pub fn starting_at(mut self, first: u8) -> Self {
        // A shorter key is before each address that begins with it.
        self.last = vec![first];
        self
    }

    /// Whether a row needs a content now.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn is_needed(&self, id: &ContentId) -> Result<bool, LogError> {
        let Some(connection) = &self.connection else { return Ok(false) };
        connection
            .prepare_cached("SELECT 1 FROM contents WHERE id = ?1 AND needed > 0")
            .and_then(|mut statement| statement.exists([id.as_bytes()]))
            .map_err(|cause| failed(&self.path, cause))
    }

    fn read_page(&mut self) -> rusqlite::Result<()> {
        let Some(connection) = &self.connection else { return Ok(()) };
        let mut statement = connection.prepare_cached(
            "SELECT id, max(length) FROM contents WHERE needed > 0 AND id > ?1 GROUP BY id ORDER BY id LIMIT ?2",
        )?;
        let (mut page, mut count) = (Vec::new(), 0);
        let mut rows = statement.query(params![self.last, PAGE])?;
        while let Some(row) = rows.next()? {
            count += 1;
            self.last = row.get(0)?;
            // The check of the rows reports invalid addresses.
            page.extend(
                ContentId::from_slice(&self.last).map(|id| Ok((id, row.get::<_, i64>(1)? as u64))),
            );
        }
        self.page = page.into_iter().collect::<rusqlite::Result<Vec<_>>>()?.into_iter();
        self.ended = count < PAGE;
        Ok(())
    }
}

impl Iterator for NeededContents {
    type Item = Result<(ContentId, u64), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(found) = self.page.next() {
                return Some(Ok(found));
            }
            if self.ended {
                return None;
            }
            if let Err(cause) = self.read_page() {
                self.ended = true;
                return Some(Err(failed(&self.path, cause)));
            }
        }
    }
}

fn failed(path: &Path, cause: rusqlite::Error) -> LogError {
    sqlite_error(
        &format!("cannot read the contents that the store {} needs", path.display()),
        cause,
    )
}
