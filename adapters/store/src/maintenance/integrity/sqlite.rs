//! The rows of a log in SQLite.

use crate::log::set_rows::empty_change;
use crate::log::shards::entry_bytes;
use crate::log::sqlite::rows::{
    change_columns, read_change, read_resource, read_version, resource_columns, version_columns,
};
use crate::maintenance::integrity::set::{
    ChangeRow, ContentRow, LogRows, PageRow, ResourceRow, SET_TABLES, SetRow, ShardRow, VersionRow,
};
use abreast_core::Resource;
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, Result, Row};

/// The table of former names, whose rows can belong to a set, and remain without it.
pub(crate) const FORMER_SETS: &str = "former_sets";

/// The rows of a log, read in one transaction.
pub(crate) struct SqliteRows<'c>(pub(crate) &'c Connection);

fn bytes<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r [u8]>> {
    Ok(row.get_ref(column)?.as_bytes_or_null().ok().flatten())
}

impl LogRows for SqliteRows<'_> {
    type Error = rusqlite::Error;

    fn sets(&mut self) -> Result<Vec<SetRow>> {
        let mut statement = self.0.prepare(
            "SELECT id, slug, ifnull(anew, created), anew IS NOT NULL, importing AND NOT begins, kept_bytes \
             FROM sets ORDER BY id",
        )?;
        let row = |row: &Row<'_>| {
            Ok(SetRow {
                id: row.get(0)?,
                slug: row.get(1)?,
                begins: Timestamp::from_micros(row.get(2)?),
                restarted: row.get(3)?,
                importing: row.get(4)?,
                kept_bytes: row.get(5)?,
                head: None,
            })
        };
        statement.query_map([], row)?.collect()
    }

    fn pages(&mut self, set: i64, visit: &mut dyn FnMut(PageRow)) -> Result<()> {
        let mut statement = self.0.prepare(
            "SELECT number, after, last, from_time, until_time, \
             (SELECT time FROM changes WHERE changes.set_id = pages.set_id AND position = last) \
             FROM pages WHERE set_id = ?1 ORDER BY number",
        )?;
        let mut rows = statement.query([set])?;
        while let Some(row) = rows.next()? {
            visit(PageRow {
                number: row.get(0)?,
                after: row.get(1)?,
                last: row.get(2)?,
                from: row.get(3)?,
                until: row.get(4)?,
                time_of_last: row.get(5)?,
            });
        }
        Ok(())
    }

    fn shards(&mut self, set: i64) -> Result<Vec<ShardRow>> {
        let mut statement = self.0.prepare(
            "SELECT id, start_key, end_key, resources, bytes, version, time, retired, \
             (SELECT time FROM changes WHERE changes.set_id = shards.set_id AND position = version) \
             FROM shards WHERE set_id = ?1",
        )?;
        let row = |row: &Row<'_>| {
            Ok(ShardRow {
                id: row.get(0)?,
                start: row.get(1)?,
                end: row.get(2)?,
                resources: row.get(3)?,
                bytes: row.get(4)?,
                version: row.get(5)?,
                time: row.get(6)?,
                retired: row.get(7)?,
                time_of_version: row.get(8)?,
            })
        };
        statement.query_map([set], row)?.collect()
    }

    fn changes(&mut self, set: i64, visit: &mut dyn FnMut(ChangeRow<'_>)) -> Result<()> {
        const SQL: &str = concat!(
            "SELECT ",
            change_columns!(),
            ", kind IN (5, 6) AND NOT EXISTS (SELECT 1 FROM resources r WHERE r.set_id = changes.set_id AND r.key = changes.key) \
             AND NOT EXISTS (SELECT 1 FROM tombstones t WHERE t.set_id = changes.set_id AND t.key = changes.key \
             AND t.position >= changes.position) FROM changes WHERE set_id = ?1 ORDER BY position"
        );
        let mut statement = self.0.prepare(SQL)?;
        let mut rows = statement.query([set])?;
        let mut change = empty_change();
        while let Some(row) = rows.next()? {
            let fault = read_change(row, &mut change).err().map(|cause| cause.to_string());
            visit(ChangeRow {
                position: row.get(10)?,
                time: change.time,
                key: &change.key,
                fault,
                lacks_tombstone: row.get(14)?,
            });
        }
        Ok(())
    }

    fn resources(&mut self, set: i64, visit: &mut dyn FnMut(ResourceRow<'_>)) -> Result<()> {
        const SQL: &str = concat!(
            "SELECT ",
            resource_columns!(),
            ", position > 0 AND NOT EXISTS (SELECT 1 FROM changes c WHERE c.set_id = resources.set_id \
             AND c.position = resources.position AND c.key = resources.key AND c.kind < 5 \
             AND c.modified IS resources.modified AND c.length IS resources.length \
             AND c.media_type IS resources.media_type AND c.encoding IS resources.encoding \
             AND c.digests IS resources.digests AND c.links IS resources.links \
             AND c.description IS resources.description) FROM resources WHERE set_id = ?1 ORDER BY key"
        );
        let mut statement = self.0.prepare(SQL)?;
        let mut rows = statement.query([set])?;
        let mut resource = Resource::default();
        while let Some(row) = rows.next()? {
            let key: String = row.get(7)?;
            let fault = read_resource(row, &mut resource).err().map(|cause| cause.to_string());
            let length =
                |column| Ok::<_, rusqlite::Error>(bytes(row, column)?.map_or(0, <[u8]>::len));
            visit(ResourceRow {
                key: &key,
                bytes: entry_bytes(&key, length(2)?, length(3)?, length(4)?, length(5)?),
                content: bytes(row, 6)?,
                differs: row.get(13)?,
                fault,
            });
        }
        Ok(())
    }

    fn wrong_tombstones(&mut self, set: i64, visit: &mut dyn FnMut(&str)) -> Result<()> {
        let mut statement = self.0.prepare(
            "SELECT t.key FROM tombstones t LEFT JOIN changes c ON c.set_id = t.set_id AND c.position = t.position \
             WHERE t.set_id = ?1 AND (c.key IS NOT t.key OR c.kind NOT IN (5, 6) OR EXISTS \
             (SELECT 1 FROM resources r WHERE r.set_id = t.set_id AND r.key = t.key))",
        )?;
        let mut rows = statement.query([set])?;
        while let Some(row) = rows.next()? {
            visit(&row.get::<_, String>(0)?);
        }
        Ok(())
    }

    fn versions(&mut self, set: &SetRow, visit: &mut dyn FnMut(VersionRow<'_>)) -> Result<()> {
        const SQL: &str =
            concat!("SELECT ", version_columns!(), " FROM versions WHERE set_id = ?1");
        let mut statement = self.0.prepare(SQL)?;
        let mut rows = statement.query([set.id])?;
        while let Some(row) = rows.next()? {
            let key: String = row.get(9).unwrap_or_default();
            let fault = read_version(row, set.begins).err().map(|cause| cause.to_string());
            visit(VersionRow { key: &key, content: bytes(row, 6)?, fault });
        }
        Ok(())
    }

    fn contents(&mut self, set: i64, visit: &mut dyn FnMut(ContentRow<'_>)) -> Result<()> {
        let mut statement =
            self.0.prepare("SELECT id, needed, length FROM contents WHERE set_id = ?1")?;
        let mut rows = statement.query([set])?;
        while let Some(row) = rows.next()? {
            visit(ContentRow {
                id: bytes(row, 0)?.unwrap_or_default(),
                needed: row.get(1)?,
                length: row.get(2)?,
            });
        }
        Ok(())
    }

    fn strangers(&mut self) -> Result<Vec<(&'static str, u64)>> {
        let mut found = Vec::new();
        for table in SET_TABLES.into_iter().chain([FORMER_SETS]) {
            let sql =
                format!("SELECT count(*) FROM {table} WHERE set_id NOT IN (SELECT id FROM sets)");
            let number: i64 = self.0.query_row(&sql, [], |row| row.get(0))?;
            if number > 0 {
                found.push((table, number.unsigned_abs()));
            }
        }
        Ok(found)
    }
}
