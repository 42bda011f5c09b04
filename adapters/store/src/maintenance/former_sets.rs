//! Names that sets had: of renamed sets, and of removed ones.

use crate::database::locked;
use crate::database::read_only::read;
use crate::log::sqlite::log::MIGRATIONS;
#[cfg(feature = "postgres")]
use abreast_core::ErrorKind;
use abreast_core::{LogError, TopicId};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, params};
use std::path::Path;

/// Most former names that a store has; with more, the oldest are forgotten.
pub const FORMER_SETS_MAX: u64 = 10_000;

/// A name that a set of the store had, and that no set has now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormerSet {
    /// The name of the set in URLs, at that time.
    pub slug: String,
    /// Time at which the set was renamed or removed.
    pub time: Timestamp,
    /// Where the set is now.
    pub now: NowAt,
}

/// Where a set is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NowAt {
    /// The set was removed, and is not published.
    Removed,
    /// The set has this name in the same store.
    Name(String),
    /// The set is published at this address, which ends in `/`.
    Url(String),
}

/// The former names of a store, in their alphabetical order. Read-only, also while the store is in use.
///
/// # Errors
/// The store cannot be read.
pub fn former_sets(path: &Path) -> Result<Vec<FormerSet>, LogError> {
    let mut found = Vec::new();
    read(path, "read the former names of sets of", |connection| {
        let has = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'former_sets')";
        if !connection.query_row(has, [], |row| row.get::<_, bool>(0))? {
            return Ok(());
        }
        let sql = "SELECT former_sets.slug, former_sets.time, former_sets.url, sets.slug FROM former_sets \
                   LEFT JOIN sets ON sets.id = former_sets.set_id ORDER BY former_sets.slug";
        let mut statement = connection.prepare(sql)?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let now = match (row.get::<_, Option<String>>(2)?, row.get::<_, Option<String>>(3)?) {
                (Some(url), _) => NowAt::Url(url),
                (None, Some(name)) => NowAt::Name(name),
                (None, None) => NowAt::Removed,
            };
            let time = Timestamp::from_micros(row.get(1)?);
            found.push(FormerSet { slug: row.get(0)?, time, now });
        }
        Ok(())
    })?;
    Ok(found)
}

/// How a set is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The time from which its name is a former one.
    pub time: Timestamp,
    /// The address at which the set is published now, ending in `/`; `None` if it ended.
    pub moved_to: Option<String>,
}

/// Whether [`rename_set`] gave a set the new name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenamedSet {
    /// The set has the new name, or would have it.
    Renamed,
    /// The store does not have the set.
    Missing,
    /// The store has a set with the new name.
    Taken,
}

/// Gives a set another name; its log, positions and resources are not changed. The old name is then a former one.
/// Without `now`, nothing is changed.
///
/// # Errors
/// Another process has the store open, or it cannot be written.
pub fn rename_set(
    path: &Path,
    (old, new): (&str, &str),
    now: Option<Timestamp>,
) -> Result<RenamedSet, LogError> {
    let mut renamed = RenamedSet::Renamed;
    let mut work = |connection: &Connection| -> rusqlite::Result<()> {
        let find = |slug: &str| {
            let sql = "SELECT id FROM sets WHERE slug = ?1";
            connection.query_row(sql, [slug], |row| row.get::<_, i64>(0)).optional()
        };
        let id = match (find(old)?, find(new)?) {
            (None, _) => {
                renamed = RenamedSet::Missing;
                return Ok(());
            }
            (_, Some(_)) => {
                renamed = RenamedSet::Taken;
                return Ok(());
            }
            (Some(id), None) => id,
        };
        let Some(now) = now else { return Ok(()) };
        connection.execute("UPDATE sets SET slug = ?2 WHERE id = ?1", params![id, new])?;
        connection.execute("DELETE FROM former_sets WHERE slug = ?1", [new])?;
        put(connection, old, now, Some(id), None)
    };
    match now {
        None => read(path, "read the sets of", work)?,
        Some(_) => locked::change(path, MIGRATIONS, "rename a set of", |change| work(change))?,
    }
    Ok(renamed)
}

/// Notes the name of a dropped set; its earlier names lead to the same place.
pub(crate) fn note_removal(
    connection: &Connection,
    (id, slug): (i64, &str),
    removal: &Removal,
) -> rusqlite::Result<()> {
    connection.execute(
        "UPDATE former_sets SET set_id = NULL, url = ?2 WHERE set_id = ?1",
        params![id, removal.moved_to],
    )?;
    put(connection, slug, removal.time, None, removal.moved_to.as_deref())
}

fn put(
    connection: &Connection,
    slug: &str,
    time: Timestamp,
    set: Option<i64>,
    url: Option<&str>,
) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO former_sets (slug, time, set_id, url) VALUES (?1, ?2, ?3, ?4)",
        params![slug, time.as_micros(), set, url],
    )?;
    let sql = "DELETE FROM former_sets WHERE slug IN \
               (SELECT slug FROM former_sets ORDER BY time DESC, slug LIMIT -1 OFFSET ?1)";
    connection.execute(sql, [FORMER_SETS_MAX as i64]).map(drop)
}

/// Stores a former name that another store has. The set with the present name must exist.
#[cfg(feature = "postgres")]
pub(crate) fn put_former(connection: &Connection, former: &FormerSet) -> rusqlite::Result<()> {
    let (name, url) = match &former.now {
        NowAt::Removed => (None, None),
        NowAt::Name(name) => (Some(name.as_str()), None),
        NowAt::Url(url) => (None, Some(url.as_str())),
    };
    let find = "SELECT id FROM sets WHERE slug = ?1";
    let set = connection.query_row(find, [name], |row| row.get(0)).optional()?;
    put(connection, &former.slug, former.time, set, url)
}

/// Name of the record with the former names of the sets in a database.
#[cfg(feature = "postgres")]
pub(crate) const RECORD: &str = "former_sets";

/// A former name in the record of a database. The set has the name `now`, or is at `url`.
#[cfg(feature = "postgres")]
#[derive(serde::Serialize, serde::Deserialize)]
struct FormerRow {
    slug: String,
    time: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    now: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
}

/// The former names as the bytes of a record.
#[cfg(feature = "postgres")]
pub(crate) fn to_record(former: &[FormerSet]) -> Vec<u8> {
    let row = |former: &FormerSet| {
        let (now, url) = match &former.now {
            NowAt::Removed => (None, None),
            NowAt::Name(name) => (Some(name.clone()), None),
            NowAt::Url(url) => (None, Some(url.clone())),
        };
        FormerRow { slug: former.slug.clone(), time: former.time.as_micros(), now, url }
    };
    let rows: Vec<FormerRow> = former.iter().map(row).collect();
    // Texts and numbers can always be written.
    serde_json::to_vec(&rows).unwrap_or_default()
}

/// The former names in the bytes of a record, in their alphabetical order. A set may have such a name again.
///
/// # Errors
/// The record is damaged.
#[cfg(feature = "postgres")]
pub(crate) fn of_record(record: &[u8]) -> Result<Vec<FormerSet>, LogError> {
    let rows: Vec<FormerRow> = serde_json::from_slice(record).map_err(|cause| {
        let message = "the record of the former names of sets is damaged\n  help: delete it: \
                       DELETE FROM abreast.records WHERE name = 'former_sets'";
        LogError::new(ErrorKind::Corrupt, message).with_cause(cause)
    })?;
    let former = |row: FormerRow| FormerSet {
        slug: row.slug,
        time: Timestamp::from_micros(row.time),
        now: match (row.url, row.now) {
            (Some(url), _) => NowAt::Url(url),
            (None, Some(name)) => NowAt::Name(name),
            (None, None) => NowAt::Removed,
        },
    };
    Ok(rows.into_iter().map(former).collect())
}

/// The former names after a set lost its name `slug`, and is at `now`. Its earlier names lead to the same place.
#[cfg(feature = "postgres")]
pub(crate) fn moved(
    former: Vec<FormerSet>,
    slug: &str,
    now: &NowAt,
    time: Timestamp,
) -> Vec<FormerSet> {
    let is_taken = |name: &str| matches!(now, NowAt::Name(taken) if taken == name);
    let others = former.into_iter().filter(|one| one.slug != slug && !is_taken(&one.slug));
    let followed = others.map(|one| match &one.now {
        NowAt::Name(name) if name == slug => FormerSet { now: now.clone(), ..one },
        _ => one,
    });
    let own = FormerSet { slug: slug.to_owned(), time, now: now.clone() };
    let mut moved: Vec<FormerSet> = followed.chain([own]).collect();
    moved.sort_by(|one, other| other.time.cmp(&one.time).then_with(|| one.slug.cmp(&other.slug)));
    moved.truncate(FORMER_SETS_MAX as usize);
    moved.sort_by(|one, other| one.slug.cmp(&other.slug));
    moved
}

/// Gives topics of a hub's store other URLs; their notifications, subscriptions and leases are not changed. A topic
/// whose new URL is in use ends. Pending requests for subscriptions to the old URLs are dropped: subscribers repeat
/// them. Returns the number of topics.
///
/// # Errors
/// Another process has the store open, or it cannot be written.
pub fn rename_topics(path: &Path, urls: &[(String, String)]) -> Result<u64, LogError> {
    let mut renamed = 0;
    let mut work = |connection: &Connection| -> rusqlite::Result<()> {
        for (old, new) in urls {
            connection.execute("DELETE FROM verifications WHERE topic_url = ?1", [old])?;
            let find = |url: &str| {
                let sql = "SELECT id FROM topics WHERE url = ?1";
                connection.query_row(sql, [url], |row| row.get::<_, i64>(0)).optional()
            };
            let (Some(id), None) = (find(old)?, find(new)?) else { continue };
            let sum = crate::hub::topics::url_sum(TopicId(id), new);
            connection.execute(
                "UPDATE topics SET url = ?2, sum = ?3 WHERE id = ?1",
                params![id, new, sum],
            )?;
            renamed += 1;
        }
        Ok(())
    };
    locked::change(path, crate::hub::MIGRATIONS, "rename the topics of a set in", |change| {
        work(change)
    })?;
    Ok(renamed)
}
