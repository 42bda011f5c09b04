//! How to request resources, if not by their URI alone. Other resources do not have a row.

use super::{Mirror, READ, WRITE, failed};
use abreast_core::LogError;
use rusqlite::{OptionalExtension as _, params};

/// How to request a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access {
    /// The address to request, if it differs from the URI.
    pub href: Option<String>,
    /// The media types to ask for, as in an `Accept` header.
    pub accept: Option<String>,
    /// Whether the response is a description of the resource. The description is stored as the
    /// copy's content, and an empty description means that the resource does not exist.
    pub describes: bool,
}

/// Reads the access of a resource from three columns; `None` if it is requested at its URI.
pub(super) fn read_access(
    row: &rusqlite::Row<'_>,
    at: usize,
) -> rusqlite::Result<Option<Box<Access>>> {
    let access = Access {
        href: row.get(at)?,
        accept: row.get(at + 1)?,
        describes: row.get::<_, Option<bool>>(at + 2)?.unwrap_or_default(),
    };
    Ok((access != Access::default()).then(|| Box::new(access)))
}

impl Mirror {
    /// How to request a resource; `None` if by its URI alone.
    ///
    /// # Errors
    /// The system's own.
    pub fn access(&self, uri: &str) -> Result<Option<Box<Access>>, LogError> {
        if !self.may_have_access.get() {
            return Ok(None);
        }
        self.connection
            .prepare_cached("SELECT href, accept, describes FROM access WHERE uri = ?1")
            .and_then(|mut statement| {
                statement.query_row([uri], |row| read_access(row, 0)).optional()
            })
            .map(Option::flatten)
            .map_err(failed(READ))
    }

    /// Records how to request a resource from now on. Removes the stored entity tag: it belongs to
    /// the earlier address.
    ///
    /// # Errors
    /// The system's own.
    pub fn set_access(&self, uri: &str, access: Option<&Access>) -> Result<(), LogError> {
        if self.access(uri)?.as_deref() == access {
            return Ok(());
        }
        self.connection
            .prepare_cached("UPDATE resource SET etag = NULL WHERE uri = ?1")
            .and_then(|mut statement| statement.execute([uri]))
            .map_err(failed(WRITE))?;
        let Some(access) = access else {
            return self.forget_access("DELETE FROM access WHERE uri = ?1", uri);
        };
        // Set before the row is written, and not reset if the transaction is rolled back.
        self.may_have_access.set(true);
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO access VALUES (?1, ?2, ?3, ?4)")
            .and_then(|mut statement| {
                statement.execute(params![uri, access.href, access.accept, access.describes])
            })
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Deletes the access of a resource that left the plan, unless the copy has it.
    pub(super) fn forget_access_unless_kept(&self, uri: &str) -> Result<(), LogError> {
        let sql = "DELETE FROM access WHERE uri = ?1 AND NOT EXISTS (SELECT 1 FROM resource WHERE uri = ?1)";
        self.forget_access(sql, uri)
    }

    /// Deletes the access of a resource that left the copy, unless it is planned.
    pub(super) fn forget_access_unless_planned(&self, uri: &str) -> Result<(), LogError> {
        let sql = "DELETE FROM access WHERE uri = ?1 AND NOT EXISTS (SELECT 1 FROM pending WHERE uri = ?1)";
        self.forget_access(sql, uri)
    }

    fn forget_access(&self, sql: &str, uri: &str) -> Result<(), LogError> {
        if !self.may_have_access.get() {
            return Ok(());
        }
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute([uri]))
            .map(|_| ())
            .map_err(failed(WRITE))
    }

    /// Deletes the rows of resources that are neither planned nor in the copy.
    pub(super) fn forget_unused_access(&self) -> Result<(), LogError> {
        if !self.may_have_access.get() {
            return Ok(());
        }
        let sql = "DELETE FROM access WHERE NOT EXISTS (SELECT 1 FROM resource r WHERE r.uri = access.uri)
                   AND NOT EXISTS (SELECT 1 FROM pending p WHERE p.uri = access.uri)";
        self.connection.execute(sql, []).map(|_| ()).map_err(failed(WRITE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirror::{Pending, Row, Task};

    fn planned(uri: &str, href: Option<&str>) -> Pending {
        let access =
            href.map(|href| Box::new(Access { href: Some(href.to_owned()), ..Access::default() }));
        Pending { uri: uri.to_owned(), access, ..Pending::default() }
    }

    fn rows(mirror: &Mirror) -> i64 {
        mirror.connection.query_row("SELECT count(*) FROM access", [], |row| row.get(0)).unwrap()
    }

    #[test]
    fn an_address_is_kept_as_long_as_its_resource() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mirror.db");
        let mirror = Mirror::open(&path).unwrap();
        let uri = "http://h/a";
        mirror.put_pending(&planned(uri, Some("http://h/a.nt"))).unwrap();
        let etag = Some("\"1\"".to_owned());
        mirror.put_row(&Row { uri: uri.to_owned(), etag: etag.clone(), ..Row::default() }).unwrap();
        mirror.forget_fetches_between(uri, uri).unwrap();
        drop(mirror);
        let mirror = Mirror::open(&path).unwrap();
        let access = mirror.access(uri).unwrap().unwrap();
        assert_eq!(
            (access.href.as_deref(), access.accept.as_deref()),
            (Some("http://h/a.nt"), None)
        );
        mirror.put_pending(&planned(uri, Some("http://h/a.nt"))).unwrap();
        assert_eq!(mirror.row(uri).unwrap().unwrap().etag, etag);
        // A newer plan has another address, and is read with it.
        mirror.put_pending(&planned(uri, Some("http://h/a.ttl"))).unwrap();
        let mut tasks: Vec<Task> = Vec::new();
        mirror.fetches_after("", 10, &mut tasks).unwrap();
        assert_eq!((tasks[0].pending.href(), tasks[0].pending.accept()), ("http://h/a.ttl", None));
        assert_eq!(tasks[0].row.as_ref().unwrap().etag, None, "it was of the other address");
        // It stays with the row, and leaves with it.
        mirror.forget_pending(uri).unwrap();
        assert_eq!(rows(&mirror), 1);
        mirror.delete_row(uri).unwrap();
        assert_eq!(rows(&mirror), 0);
    }

    #[test]
    fn nothing_is_kept_of_resources_without_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let mirror = Mirror::open(&folder.path().join("mirror.db")).unwrap();
        mirror.put_pending(&planned("http://h/a", None)).unwrap();
        assert_eq!((rows(&mirror), mirror.access("http://h/a").unwrap()), (0, None));
        let task = mirror.task("http://h/a").unwrap().unwrap();
        assert_eq!((task.pending.href(), task.pending.accept()), ("http://h/a", None));
        // An address that is listed no longer is forgotten, and so is one whose plan is.
        mirror.put_pending(&planned("http://h/a", Some("http://h/x"))).unwrap();
        mirror.put_pending(&planned("http://h/a", None)).unwrap();
        assert_eq!(rows(&mirror), 0);
        mirror.put_pending(&planned("http://h/b", Some("http://h/x"))).unwrap();
        mirror.mark_stale().unwrap();
        mirror.forget_stale().unwrap();
        assert_eq!(rows(&mirror), 0);
        mirror.put_pending(&planned("http://h/c", Some("http://h/x"))).unwrap();
        mirror.clear_scratch().unwrap();
        mirror.forget_unnamed().unwrap();
        assert_eq!(rows(&mirror), 0);
    }
}
