//! The sets in a PostgreSQL database.

use crate::log::postgres::removal::{self, REMOVALS, all_removals, record_of};
use crate::maintenance::drop_set::{DroppedSet, DroppedTopics};
use crate::maintenance::former_sets::{
    FormerSet, NowAt, RECORD, Removal, RenamedSet, moved, of_record, to_record,
};
use crate::maintenance::shared_sets::SharedSets;
use crate::postgres::client::{Client, repeat};
use crate::postgres::database::PostgresDatabase;
use crate::postgres::failure::Failure;
use crate::postgres::leases::NodeOptions;
use crate::postgres::options::CLOCK_LIMIT;
use crate::postgres::running_nodes::{RUNNING, check_unused, read_nodes};
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::hub::HubStore as _;
use abreast_core::{Clock as _, LogError, Records};
use abreast_webtypes::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

const READING: &str = "cannot read the sets";
const REMOVING: &str = "cannot remove a set";
const RENAMING: &str = "cannot rename a set";
/// Versions that are counted by one statement.
const COUNTED: i64 = 50_000;

const SET: &str = "SELECT id FROM abreast.sets WHERE slug = $1 FOR UPDATE";

/// The record of a removed set, until its rows are deleted.
#[derive(Serialize, Deserialize)]
struct RemovedSet {
    slug: String,
    resources: u64,
    changes: u64,
    versions: u64,
}

impl RemovedSet {
    const fn counted(&self) -> DroppedSet {
        let Self { resources, changes, versions, .. } = *self;
        DroppedSet { resources, changes, versions }
    }
}

/// The result of a transaction that may be refused.
type Answer<T> = Result<Result<T, LogError>, Failure>;

impl SharedSets for PostgresDatabase {
    fn check_unused(&self) -> Result<(), LogError> {
        const DOING: &str = "cannot read the nodes of the database";
        let nodes = read_nodes(&self.client.query(DOING, RUNNING, &[])?);
        check_unused(&nodes.map_err(|failure| failure.into_error(DOING))?)
    }

    fn now(&self) -> Result<Timestamp, LogError> {
        self.client.read_clock(CLOCK_LIMIT)?;
        Ok(self.client.clock.now())
    }

    fn records(&self) -> Arc<dyn Records> {
        Arc::new(Self::records(self))
    }

    fn names(&self) -> Result<Vec<String>, LogError> {
        const SQL: &str = "SELECT slug FROM abreast.sets ORDER BY id";
        each(&self.client.query(READING, SQL, &[])?, |row| Ok(row.try_get(0)?))
    }

    fn former_sets(&self) -> Result<Vec<FormerSet>, LogError> {
        let Some(record) = Self::records(self).record(RECORD)? else { return Ok(Vec::new()) };
        let mut former = of_record(&record.bytes)?;
        // A new set has the name.
        let names: HashSet<String> = self.names()?.into_iter().collect();
        former.retain(|one| !names.contains(&one.slug));
        Ok(former)
    }

    fn count_set(&self, slug: &str) -> Result<Option<DroppedSet>, LogError> {
        // A log that was restarted after a restore has no changes before its first position.
        const SQL: &str = "SELECT id, resources, position - (SELECT position FROM abreast.changes WHERE set_id = sets.id \
             ORDER BY position LIMIT 1) + 1 FROM abreast.sets WHERE slug = $1";
        let rows = self.client.query(READING, SQL, &[(&slug, Type::TEXT)])?;
        let found = each(&rows, |row| {
            let changes: Option<i64> = row.try_get(2)?;
            Ok((row.try_get::<_, i64>(0)?, row.try_get::<_, i64>(1)?, changes.unwrap_or(0)))
        })?;
        let Some((id, resources, changes)) = found.into_iter().next() else {
            let removed = removed_sets(&self.client)?.into_iter().find(|one| one.slug == slug);
            return Ok(removed.map(|one| one.counted()));
        };
        Ok(Some(DroppedSet {
            resources: resources.unsigned_abs(),
            changes: changes.unsigned_abs(),
            versions: count_versions(&self.client, id)?,
        }))
    }

    fn remove_set(&self, slug: &str, removal: &Removal) -> Result<(), LogError> {
        let Some(counted) = self.count_set(slug)? else { return Ok(()) };
        repeat(REMOVING, || remove(&self.client, slug, removal, counted))?
    }

    fn unfinished_removals(&self) -> Result<Vec<String>, LogError> {
        Ok(removed_sets(&self.client)?.into_iter().map(|one| one.slug).collect())
    }

    fn finish_removals(&self, is_stopped: &dyn Fn() -> bool) -> Result<(), LogError> {
        removal::finish(&self.client, is_stopped)
    }

    fn rename_set(
        &self,
        names: (&str, &str),
        now: Option<Timestamp>,
    ) -> Result<RenamedSet, LogError> {
        let Some(now) = now else {
            let sets = self.names()?;
            let has = |name: &str| sets.iter().any(|slug| slug == name);
            return Ok(match (has(names.0), has(names.1)) {
                (false, _) => RenamedSet::Missing,
                (true, true) => RenamedSet::Taken,
                (true, false) => RenamedSet::Renamed,
            });
        };
        let mut is_repeated = false;
        repeat(RENAMING, || {
            let is_repeated = std::mem::replace(&mut is_repeated, true);
            rename(&self.client, names, now, is_repeated)
        })?
    }

    fn drop_topics(&self, urls: &[String], dry_run: bool) -> Result<DroppedTopics, LogError> {
        let hub = self.hub(NodeOptions::default())?;
        let mut dropped = DroppedTopics::default();
        for url in urls {
            let Some(topic) = hub.find_topic(url)? else { continue };
            dropped.topics += 1;
            dropped.targets += hub.count_targets(topic)?;
            if !dry_run {
                hub.remove_topic(topic)?;
            }
        }
        if !dry_run && !urls.is_empty() {
            hub.remove_verifications(urls)?;
        }
        Ok(dropped)
    }

    fn rename_topics(&self, urls: &[(String, String)]) -> Result<u64, LogError> {
        let hub = self.hub(NodeOptions::default())?;
        let mut renamed = 0;
        for (old, new) in urls {
            renamed += u64::from(hub.rename_topic(old, new)?);
        }
        let old: Vec<String> = urls.iter().map(|(old, _)| old.clone()).collect();
        if !old.is_empty() {
            hub.remove_verifications(&old)?;
        }
        Ok(renamed)
    }
}

/// Reads each row.
fn each<T>(rows: &[Row], read: impl FnMut(&Row) -> Result<T, Failure>) -> Result<Vec<T>, LogError> {
    rows.iter().map(read).collect::<Result<_, _>>().map_err(|failure| failure.into_error(READING))
}

/// The removed sets whose rows are not all deleted.
fn removed_sets(client: &Client) -> Result<Vec<RemovedSet>, LogError> {
    let [prefix] = all_removals();
    let rows = client.query(READING, REMOVALS, &[(&*prefix.0, prefix.1)])?;
    each(&rows, |row| {
        let bytes: &[u8] = row.try_get(1)?;
        let damaged = |error| Failure::Damaged(format!("the record of a removed set: {error}"));
        serde_json::from_slice(bytes).map_err(damaged)
    })
}

/// Counts the versions of a set in parts, each from an index.
fn count_versions(client: &Client, set: i64) -> Result<u64, LogError> {
    const SQL: &str = "WITH part AS MATERIALIZED (SELECT key_hash, time FROM abreast.versions WHERE set_id = $1 \
         AND (key_hash, time) > ($2, $3) ORDER BY key_hash, time LIMIT $4) \
         SELECT key_hash, time, (SELECT count(*) FROM part) FROM part ORDER BY key_hash DESC, time DESC LIMIT 1";
    let (mut total, mut hash, mut time) = (0, Vec::<u8>::new(), i64::MIN);
    loop {
        let rows = client.query(
            READING,
            SQL,
            &[
                (&set, Type::INT8),
                (&hash, Type::BYTEA),
                (&time, Type::INT8),
                (&COUNTED, Type::INT8),
            ],
        )?;
        let last = each(&rows, |row| {
            Ok((row.try_get::<_, Vec<u8>>(0)?, row.try_get(1)?, row.try_get::<_, i64>(2)?))
        })?;
        let Some(last) = last.into_iter().next() else { return Ok(total) };
        let number;
        (hash, time, number) = last;
        total += number.unsigned_abs();
        if number < COUNTED {
            return Ok(total);
        }
    }
}

/// Deletes the row of a set, after which the set is a removed one. Does nothing if the row was deleted
/// already.
fn remove(client: &Client, slug: &str, removal: &Removal, counted: DroppedSet) -> Answer<()> {
    let (mut statements, set) = Statements::begin(client, SET, &params![slug.to_owned() => TEXT])?;
    let Some(set) = set else { return Ok(Ok(())) };
    let id: i64 = set.try_get(0)?;
    if let Err(refused) = check_unused(&read_nodes(&statements.query(RUNNING, &[])?)?) {
        return Ok(Err(refused));
    }
    let now = removal.moved_to.clone().map_or(NowAt::Removed, NowAt::Url);
    if let Err(refused) = write_former(&mut statements, slug, &now, removal.time)? {
        return Ok(Err(refused));
    }
    let DroppedSet { resources, changes, versions } = counted;
    let removed = RemovedSet { slug: slug.to_owned(), resources, changes, versions };
    // Texts and numbers can always be written.
    write_record(
        &mut statements,
        &record_of(id),
        serde_json::to_vec(&removed).unwrap_or_default(),
    )?;
    statements.write("DELETE FROM abreast.sets WHERE id = $1", params![id => INT8])?;
    statements.commit()?;
    Ok(Ok(()))
}

fn rename(
    client: &Client,
    (old, new): (&str, &str),
    now: Timestamp,
    is_repeated: bool,
) -> Answer<RenamedSet> {
    const TAKEN: &str = "SELECT id FROM abreast.sets WHERE slug = $1";
    let (mut statements, set) = Statements::begin(client, SET, &params![old.to_owned() => TEXT])?;
    let taken = statements.query_first(TAKEN, &params![new.to_owned() => TEXT])?;
    let id: i64 = match (set, taken) {
        (Some(set), None) => set.try_get(0)?,
        // The commit of the first attempt was not answered.
        (None, Some(_)) if is_repeated => return Ok(Ok(RenamedSet::Renamed)),
        (None, _) => return Ok(Ok(RenamedSet::Missing)),
        (Some(_), Some(_)) => return Ok(Ok(RenamedSet::Taken)),
    };
    if let Err(refused) = check_unused(&read_nodes(&statements.query(RUNNING, &[])?)?) {
        return Ok(Err(refused));
    }
    if let Err(refused) = write_former(&mut statements, old, &NowAt::Name(new.to_owned()), now)? {
        return Ok(Err(refused));
    }
    statements.write(
        "UPDATE abreast.sets SET slug = $2 WHERE id = $1",
        params![id => INT8, new.to_owned() => TEXT],
    )?;
    statements.commit()?;
    Ok(Ok(RenamedSet::Renamed))
}

/// Notes that a set lost its name, in the same transaction.
fn write_former(
    statements: &mut Statements<'_>,
    slug: &str,
    now: &NowAt,
    time: Timestamp,
) -> Answer<()> {
    const SQL: &str = "SELECT bytes FROM abreast.records WHERE name = $1 FOR UPDATE";
    let known = statements.query_first(SQL, &params![RECORD.to_owned() => TEXT])?;
    let former = match known {
        Some(row) => of_record(row.try_get(0)?),
        None => Ok(Vec::new()),
    };
    let former = match former {
        Ok(former) => moved(former, slug, now, time),
        Err(damaged) => return Ok(Err(damaged)),
    };
    write_record(statements, RECORD, to_record(&former)).map(Ok)
}

fn write_record(
    statements: &mut Statements<'_>,
    name: &str,
    bytes: Vec<u8>,
) -> Result<(), Failure> {
    statements.write(
        "INSERT INTO abreast.records AS old (name, revision, bytes) \
         VALUES ($1, 1 + floor(random() * 1000000)::bigint, $2) \
         ON CONFLICT (name) DO UPDATE SET revision = old.revision + excluded.revision, bytes = excluded.bytes",
        params![name.to_owned() => TEXT, bytes => BYTEA],
    )
}
