//! The comparison of both stores: all tables, and the logs as other programs read them.

use crate::maintenance::migrate::options::{
    MigratedSet, MigratedTable, MigrationOptions, changed, stopped,
};
use crate::maintenance::migrate::side::Side;
use crate::maintenance::migrate::table::Table;
use crate::maintenance::migrate::value::RowsDigest;
use abreast_core::contents::ContentHasher;
use abreast_core::{ChangeLog, KeyRange, LogError, Order, Position, ResourceSet, SetId};
use abreast_webtypes::Timestamp;
use std::fmt::{self, Debug, Write as _};
use std::ops::ControlFlow;

/// Keys whose versions are read through the change log, in each set. All rows of versions are
/// compared as a table.
const VERSIONED_KEYS: u64 = 1_000;
/// Versions that are read of a key.
const VERSIONS: usize = 1_000;

/// Pages that are read at once.
const PAGES: usize = 1_000;

/// The digests of a set, each with the name of the compared part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LogDigest {
    set: MigratedSet,
    parts: Vec<(&'static str, String)>,
}

/// Reads all rows of a table.
pub(super) fn digest_table(
    side: &mut dyn Side,
    table: &Table,
    options: &MigrationOptions<'_>,
) -> Result<RowsDigest, LogError> {
    let (mut digest, mut after) = (RowsDigest::default(), None);
    loop {
        if (options.is_stopped)() {
            return Err(stopped());
        }
        let read = side.read(table, after.as_deref(), options.rows)?;
        read.rows.iter().for_each(|row| digest.add(table.compared(row)));
        options.meter.add(read.rows.len() as u64, 0);
        after = read.next;
        if after.is_none() {
            return Ok(digest);
        }
    }
}

/// Compares tables of both stores, which are read at the same time.
pub(super) fn compare_tables(
    from: &mut dyn Side,
    to: &mut dyn Side,
    tables: &[&Table],
    options: &MigrationOptions<'_>,
) -> Result<Vec<MigratedTable>, LogError> {
    let digest_all = |side: &mut dyn Side| -> Result<Vec<RowsDigest>, LogError> {
        tables.iter().map(|table| digest_table(side, table, options)).collect()
    };
    let (expected, found) = std::thread::scope(|scope| {
        let expected = scope.spawn(|| digest_all(from));
        let found = digest_all(to);
        (expected.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), found)
    });
    let (expected, found) = (expected?, found?);
    let mut compared = Vec::new();
    for ((table, expected), found) in tables.iter().zip(expected).zip(found) {
        if expected != found {
            let rows = format!("{} rows for {}", found.rows, expected.rows);
            return Err(changed(&format!("the table `{}` ({rows})", table.name)));
        }
        compared.push(MigratedTable { name: table.name, rows: found.rows });
    }
    Ok(compared)
}

/// Digests what a change log returns, by the text of each record.
#[derive(Default)]
struct Texts(ContentHasher);

impl fmt::Write for Texts {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text.as_bytes());
        Ok(())
    }
}

impl Texts {
    fn add(&mut self, record: &dyn Debug) {
        // Writing to a digest cannot fail.
        let _ = writeln!(self, "{record:?}");
    }

    fn text(&self) -> String {
        self.0.finish().0.to_string()
    }
}

/// Reads the logs of all sets.
pub(super) fn digest_log(
    side: &mut dyn Side,
    options: &MigrationOptions<'_>,
) -> Result<Vec<LogDigest>, LogError> {
    let mut digests = Vec::new();
    side.with_log(&mut |log| {
        for ResourceSet { id, slug } in log.sets()? {
            let (head, parts) = (log.head(id)?, digest_set(log, id, options)?);
            let (position, resources) = (head.position.0, head.resources);
            digests.push(LogDigest { set: MigratedSet { slug, position, resources }, parts });
        }
        Ok(())
    })?;
    Ok(digests)
}

/// The parts of a set, each as a digest of its records in order.
fn digest_set(
    log: &dyn ChangeLog,
    set: SetId,
    options: &MigrationOptions<'_>,
) -> Result<Vec<(&'static str, String)>, LogError> {
    let head = log.head(set)?;
    let mut parts = vec![("the head", format!("{head:?}"))];
    let mut pages = Texts::default();
    let mut first = 1;
    loop {
        let read = log.pages(set, first, PAGES)?;
        for page in &read {
            pages.add(page);
        }
        let Some(last) = read.last().filter(|_| read.len() == PAGES) else { break };
        first = last.number + 1;
    }
    parts.push(("the pages", pages.text()));
    let mut shards = Texts::default();
    for shard in log.shards(set)? {
        shards.add(&shard);
    }
    parts.push(("the shards", shards.text()));
    let mut changes = Texts::default();
    log.read(set, Position(0), &mut |change| {
        changes.add(change);
        options.meter.add(1, 0);
        next(options)
    })?;
    parts.push(("the changes", changes.text()));
    let mut latest = Texts::default();
    log.latest(set, Position(0), &mut |change| {
        latest.add(&(change.position, &change.key));
        next(options)
    })?;
    parts.push(("the latest changes", latest.text()));
    let (mut resources, mut keys) = (Texts::default(), Vec::new());
    let every = (head.resources / VERSIONED_KEYS).max(1);
    let mut count = 0;
    log.scan(set, &KeyRange::default(), &mut |resource| {
        resources.add(resource);
        if head.versions_since.is_some() && count % every == 0 {
            keys.push(resource.key.clone());
        }
        count += 1;
        options.meter.add(1, 0);
        next(options)
    })?;
    parts.push(("the resources", resources.text()));
    let mut versions = Texts::default();
    for key in keys {
        let first = Timestamp::from_micros(i64::MIN);
        log.versions(set, &key, first, Order::OldestFirst, VERSIONS)?
            .iter()
            .for_each(|version| versions.add(version));
    }
    parts.push(("the versions", versions.text()));
    if (options.is_stopped)() { Err(stopped()) } else { Ok(parts) }
}

fn next(options: &MigrationOptions<'_>) -> ControlFlow<()> {
    if (options.is_stopped)() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Compares the logs of both stores, and returns their sets.
pub(super) fn compare_logs(
    [expected, found]: [Vec<LogDigest>; 2],
) -> Result<Vec<MigratedSet>, LogError> {
    let slugs = |digests: &[LogDigest]| -> Vec<String> {
        digests.iter().map(|digest| digest.set.slug.clone()).collect()
    };
    if slugs(&expected) != slugs(&found) {
        return Err(changed("the list of sets"));
    }
    for (expected, found) in expected.iter().zip(&found) {
        for ((part, expected_part), (_, found_part)) in expected.parts.iter().zip(&found.parts) {
            if expected_part != found_part {
                return Err(changed(&format!("{part} of the set `{}`", expected.set.slug)));
            }
        }
    }
    Ok(found.into_iter().map(|digest| digest.set).collect())
}
