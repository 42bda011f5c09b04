//! Repair of a hub's store without guessing.

use crate::hub::store::MIGRATIONS;
use crate::hub::targets::{self, ProgressColumns};
use crate::hub::topic_states::TopicState;
use crate::hub::topics::{self, body_bytes, load, notifications, read_notification, store};
use crate::hub::verifications;
use crate::maintenance::backup::hub::restart_hub_log_in;
use crate::maintenance::integrity::Findings;
use crate::maintenance::integrity::hub::{STRANGERS, check_rows};
use crate::maintenance::repair::{Repaired, repair};
use abreast_core::hub::{TargetId, VerificationId};
use abreast_core::{LogError, Offset, TopicId};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};
use std::collections::HashMap;
use std::path::Path;

const TABLES: [&str; 9] = [
    "topics",
    "notifications",
    "bodies",
    "targets",
    "progress",
    "attempts",
    "dead",
    "verifications",
    "ended",
];

/// Repairs a hub's store. With `dry_run` nothing is changed, and the result lists the steps that a
/// repair would take.
///
/// # Errors
/// Another process has it open, or no part of the database can be read.
pub fn repair_hub(path: &Path, dry_run: bool) -> Result<Repaired, LogError> {
    repair(path, dry_run, MIGRATIONS, &TABLES, &mut repair_rows)
}

/// Repairs a database that SQLite can read.
fn repair_rows(
    connection: &mut Connection,
    dry_run: bool,
    repaired: &mut Repaired,
) -> rusqlite::Result<()> {
    let mut findings = Findings::default();
    check_rows(connection, "hub", &mut findings);
    if findings.is_consistent() && !repaired.lost {
        return Ok(());
    }
    let lost = repaired.lost || findings.has(&["hub.damaged", "hub.notification", "hub.topic"]);
    if lost {
        repaired.lost = true;
        let step = "keep of each topic what follows the last notification that is damaged or missing, under new numbers";
        repaired.steps.push(step.to_owned());
    }
    for (codes, step) in [
        (&["hub.topic-url"], "drop topics whose URL is damaged, with all that belongs to them"),
        (
            &["hub.row"],
            "drop rows that belong to nothing; targets that stand nowhere begin with what is kept",
        ),
        (
            &["hub.target"],
            "targets whose place is damaged begin with what is kept; drop those that are damaged themselves",
        ),
        (&["hub.verification"], "drop damaged verifications: the subscribers ask again"),
    ] {
        if findings.has(codes) {
            repaired.steps.push(step.to_owned());
        }
    }
    if dry_run {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in ids(&transaction, "topics")? {
        if topics::one(&transaction, TopicId(id)).is_err() {
            transaction.execute("DELETE FROM topics WHERE id = ?1", [id])?;
        }
    }
    let mut given = HashMap::new();
    if lost {
        for (topic, state) in load(&transaction)? {
            given.insert(topic, keep_consistent_end(&transaction, topic, state)?);
        }
    }
    repair_targets(&transaction)?;
    for id in ids(&transaction, "verifications")? {
        if verifications::one(&transaction, VerificationId(id)).is_err() {
            transaction.execute("DELETE FROM verifications WHERE id = ?1", [id])?;
        }
    }
    for (_, rows) in STRANGERS {
        transaction.execute(&format!("DELETE FROM {rows}"), [])?;
    }
    if lost {
        restart_hub_log_in(&transaction, &given)?;
    }
    transaction.commit()
}

fn ids(connection: &Connection, table: &str) -> rusqlite::Result<Vec<i64>> {
    connection
        .prepare(&format!("SELECT id FROM {table} ORDER BY id"))?
        .query_map([], |row| row.get(0))?
        .collect()
}

/// Retains the intact notifications with consecutive offsets up to the last one, and deletes the
/// others. Returns the highest offset that was used.
fn keep_consistent_end(
    connection: &Connection,
    topic: TopicId,
    mut state: TopicState,
) -> rusqlite::Result<u64> {
    let (mut trimmed, mut last, mut bytes) = (0, 0, 0);
    {
        let mut statement = connection.prepare_cached(concat!(
            notifications!(),
            " WHERE topic_id = ?1 AND offset > 0 AND offset < ?2 ORDER BY offset"
        ))?;
        let mut rows = statement.query(params![topic.0, OFFSETS_MAX])?;
        while let Some(row) = rows.next()? {
            let offset = row.get::<_, i64>(0)? as u64;
            if offset != last + 1 {
                (trimmed, bytes) = (offset - 1, 0);
            }
            last = offset;
            bytes += body_bytes(row)?;
            if read_notification(topic, row).is_err() {
                (trimmed, bytes) = (offset, 0);
            }
        }
    }
    // Ignore a value that is too large: it is damaged.
    let head = if state.head < OFFSETS_MAX as u64 { state.head.max(last) } else { last };
    connection.execute(
        "DELETE FROM notifications WHERE topic_id = ?1 AND (offset <= ?2 OR offset >= ?3)",
        params![topic.0, trimmed as i64, OFFSETS_MAX],
    )?;
    // Notifications at the end may be missing: move larger cursors to the last remaining
    // notification.
    if trimmed == last {
        (trimmed, last) = (head, head);
    }
    state.trimmed = trimmed;
    state.head = last;
    state.bytes = bytes;
    store(connection, topic, &state)?;
    Ok(head)
}

/// Larger offsets are damaged.
const OFFSETS_MAX: i64 = 1 << 53;

/// A target with a damaged cursor gets all remaining notifications; a damaged target is removed.
fn repair_targets(connection: &Connection) -> rusqlite::Result<()> {
    for id in ids(connection, "targets")? {
        let ends: Option<(i64, i64)> = connection
            .query_row(
                "SELECT trimmed, head FROM targets JOIN topics ON topics.id = topic_id WHERE targets.id = ?1",
                [id],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()?;
        let (trimmed, head) = ends.unwrap_or_default();
        if targets::one(connection, TargetId(id))
            .is_ok_and(|found| found.is_some_and(|found| found.cursor <= Offset(head as u64)))
        {
            continue;
        }
        ProgressColumns::at(Offset(trimmed as u64)).put(connection, TargetId(id))?;
        if targets::one(connection, TargetId(id)).is_err() {
            connection.execute("DELETE FROM targets WHERE id = ?1", [id])?;
        }
    }
    Ok(())
}
