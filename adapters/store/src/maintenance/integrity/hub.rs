//! Integrity check of a hub's store; read-only. Redundant values are compared with each other.

use crate::database::read_only::open_for_check;
use crate::hub::store::MIGRATIONS;
use crate::hub::topics::{self, body_bytes, notifications, read_notification};
use crate::hub::{targets, verifications};
use crate::maintenance::integrity::{Findings, integrity, schema};
use abreast_core::{LogError, Offset, TopicId};
use rusqlite::{Connection, params};
use std::path::Path;

/// Numbers of rows in a hub's store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HubFacts {
    /// Number of topics in the store.
    pub topics: u64,
    /// Notifications that are not trimmed yet.
    pub notifications: u64,
    /// Number of targets of all topics.
    pub targets: u64,
    /// Verifications that are not settled.
    pub verifications: u64,
}

/// Checks a hub's store; every notification is read.
///
/// # Errors
/// The file cannot be opened at all.
pub fn check_hub(path: &Path, findings: &mut Findings) -> Result<HubFacts, LogError> {
    let connection = open_for_check(path)?;
    let place = path.display().to_string();
    if !integrity(&connection, &place, findings)?
        || !schema(&connection, &place, MIGRATIONS, findings)
    {
        return Ok(HubFacts::default());
    }
    Ok(check_rows(&connection, &place, findings))
}

/// Checks the rows of a store that SQLite can read.
pub(crate) fn check_rows(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> HubFacts {
    let mut facts = HubFacts::default();
    let mut check = || -> rusqlite::Result<()> {
        let transaction = connection.unchecked_transaction()?;
        let mut statement =
            transaction.prepare("SELECT id, url, head, trimmed, bytes FROM topics ORDER BY id")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let id = TopicId(row.get(0)?);
            let place =
                format!("{place}: topic {}", String::from_utf8_lossy(row.get_ref(1)?.as_bytes()?));
            facts.topics += 1;
            if topics::one(&transaction, id).is_err() {
                findings.add("hub.topic-url", place.clone(), "its URL is not as it was written");
            }
            facts.notifications +=
                topic(&transaction, id, (row.get(2)?, row.get(3)?, row.get(4)?), &place, findings)?;
        }
        strangers(&transaction, place, findings)?;
        facts.targets = targets(&transaction, place, findings)?;
        facts.verifications = verifications(&transaction, place, findings)?;
        Ok(())
    };
    if let Err(cause) = check() {
        findings.add("hub.damaged", place, cause.to_string());
    }
    facts
}

/// Checks that a topic's notifications have consecutive offsets, from the first after `trimmed` to
/// `head`.
fn topic(
    connection: &Connection,
    id: TopicId,
    (head, trimmed, bytes): (i64, i64, i64),
    place: &str,
    findings: &mut Findings,
) -> rusqlite::Result<u64> {
    if trimmed < 0 || head < trimmed {
        findings.add(
            "hub.topic",
            place,
            format!("its last notification is {head}, those up to {trimmed} are gone"),
        );
    }
    let mut statement = connection
        .prepare_cached(concat!(notifications!(), " WHERE topic_id = ?1 ORDER BY offset"))?;
    let mut rows = statement.query([id.0])?;
    let (mut before, mut time, mut kept, mut found) = (trimmed, i64::MIN, 0, 0);
    while let Some(row) = rows.next()? {
        let offset: i64 = row.get(0)?;
        if offset != before + 1 {
            findings.add(
                "hub.notification",
                place,
                format!("notification {offset} follows {before}"),
            );
        }
        let then: i64 = row.get(1)?;
        if then < time {
            findings.add(
                "hub.notification",
                place,
                format!("notification {offset} is older than the one before"),
            );
        }
        (before, time) = (offset, then);
        found += 1;
        kept += body_bytes(row)?;
        if read_notification(id, row).is_err() {
            findings.add(
                "hub.notification",
                place,
                format!("notification {offset} is not as it was written"),
            );
        }
    }
    if before != head {
        findings.add(
            "hub.topic",
            place,
            format!("its last notification should be {head}, it is {before}"),
        );
    }
    if kept != bytes {
        findings.add(
            "hub.topic",
            place,
            format!("the bytes of its bodies are {kept}, {bytes} are counted"),
        );
    }
    Ok(found)
}

/// Reports rows whose parent row is missing.
fn strangers(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> rusqlite::Result<()> {
    for (what, sql) in STRANGERS {
        let count: i64 =
            connection.query_row(&format!("SELECT count(*) FROM {sql}"), [], |row| row.get(0))?;
        if count > 0 {
            findings.add("hub.row", place, format!("{count} {what}"));
        }
    }
    Ok(())
}

/// Rows whose parent is missing: a description, and the table with its condition.
pub(crate) const STRANGERS: [(&str, &str); 8] = [
    ("notifications of no topic", "notifications WHERE topic_id NOT IN (SELECT id FROM topics)"),
    (
        "bodies of no notification",
        "bodies WHERE id NOT IN (SELECT body_id FROM notifications WHERE body_id IS NOT NULL)",
    ),
    ("targets of no topic", "targets WHERE topic_id NOT IN (SELECT id FROM topics)"),
    ("targets that stand nowhere", "targets WHERE id NOT IN (SELECT target_id FROM progress)"),
    ("places of no target", "progress WHERE target_id NOT IN (SELECT id FROM targets)"),
    ("attempts for no target", "attempts WHERE target_id NOT IN (SELECT id FROM targets)"),
    ("dead letters of no target", "dead WHERE target_id NOT IN (SELECT id FROM targets)"),
    (
        "dead letters without an order",
        "dead WHERE first > last OR letters < 1 OR letters > last - first + 1",
    ),
];

fn targets(connection: &Connection, place: &str, findings: &mut Findings) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare(
        "SELECT targets.id, head FROM targets JOIN progress ON target_id = targets.id \
         JOIN topics ON topics.id = topic_id ORDER BY targets.id",
    )?;
    let mut rows = statement.query(params![])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        let (id, head): (i64, i64) = (row.get(0)?, row.get(1)?);
        found += 1;
        let place = || format!("{place}: target {id}");
        match targets::one(connection, abreast_core::hub::TargetId(id)) {
            Ok(Some(target)) if target.cursor > Offset(head as u64) => {
                findings.add(
                    "hub.target",
                    place(),
                    format!("it has {}, the last is {head}", target.cursor.0),
                );
            }
            Ok(_) => {}
            Err(cause) => findings.add("hub.target", place(), cause.to_string()),
        }
    }
    Ok(found)
}

fn verifications(
    connection: &Connection,
    place: &str,
    findings: &mut Findings,
) -> rusqlite::Result<u64> {
    let mut statement = connection.prepare("SELECT id FROM verifications ORDER BY id")?;
    let mut rows = statement.query([])?;
    let mut found = 0;
    while let Some(row) = rows.next()? {
        let id: i64 = row.get(0)?;
        found += 1;
        if let Err(cause) = verifications::one(connection, abreast_core::hub::VerificationId(id)) {
            findings.add(
                "hub.verification",
                format!("{place}: verification {id}"),
                cause.to_string(),
            );
        }
    }
    Ok(found)
}
