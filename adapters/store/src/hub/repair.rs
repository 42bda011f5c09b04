//! Repair of a hub's store without guessing, and a restart of its log after a restored backup.
//!
//! A subscriber may ignore a notification whose offset it already knows. Therefore a store that was
//! restored from a backup, or that lost notifications, gives the remaining notifications offsets
//! above all offsets that it may have used. Cursors are moved by the same distance, and no stored
//! notification is lost.

use super::hub_integrity::{HubFacts, STRANGERS, check_hub, check_rows};
use super::store::{MIGRATIONS, create_private};
use super::targets::{self, ProgressColumns};
use super::topic_states::TopicState;
use super::topics::{self, body_bytes, load, notifications, read_notification, store, sum};
use super::{TargetId, VerificationId, verifications};
use crate::backup::copy;
use crate::database;
use crate::integrity::Findings;
use crate::repair::{Repaired, repair};
use abreast_core::{ErrorKind, LogError, Offset, TopicId};
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

/// Renumbers the notifications of every topic.
///
/// # Errors
/// Another process has it open, or it cannot be written.
pub fn restart_hub_log(path: &Path) -> Result<(), LogError> {
    database::change(path, MIGRATIONS, "restart the topics in", |transaction| {
        restart_log(transaction, &HashMap::new())
    })
}

/// Copies the present content of a store, also while a hub writes it, to a file that only its owner
/// can read; then checks the copy.
///
/// # Errors
/// The store is damaged or cannot be read, or the copy cannot be written; `to` must not exist.
pub fn copy_hub(from: &Path, to: &Path) -> Result<HubFacts, LogError> {
    create_private(to)?;
    copy(from, to)?;
    check_hub_copy(to)
}

/// Checks a copy.
///
/// # Errors
/// It is damaged, or cannot be read.
pub fn check_hub_copy(path: &Path) -> Result<HubFacts, LogError> {
    let mut findings = Findings::default();
    let facts = check_hub(path, &mut findings)?;
    match findings.list().first() {
        Some(first) if !findings.is_consistent() => {
            let message = format!(
                "the store {} is damaged: {first}\n  help: `abreast repair` its original first",
                path.display()
            );
            Err(LogError::new(ErrorKind::Corrupt, message))
        }
        _ => Ok(facts),
    }
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
        restart_log(&transaction, &given)?;
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

/// Offsets of a restarted topic follow a multiple of this.
pub const OFFSETS_APART: u64 = 1_000_000_000;
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

/// Renumbers the notifications of every topic within a transaction. The new offsets are larger than
/// the topic's last offset and than all offsets in use.
fn restart_log(connection: &Connection, given: &HashMap<TopicId, u64>) -> rusqlite::Result<()> {
    for (topic, mut state) in load(connection)? {
        let given = given.get(&topic).map_or(state.head, |given| state.head.max(*given));
        let base = (given / OFFSETS_APART + 1) * OFFSETS_APART;
        let (head, trimmed) = (state.head, state.trimmed);
        let by = base - trimmed;
        renumber(connection, topic, by)?;
        for target in targets::ids_of(connection, topic)? {
            let Ok(Some(mut known)) = targets::one(connection, target) else { continue };
            known.cursor = Offset(known.cursor.0.min(head) + by);
            known.generation += 1;
            ProgressColumns::of(&known).put(connection, target)?;
            connection
                .prepare_cached(
                    "UPDATE progress SET sent_offset = sent_offset + ?2 WHERE target_id = ?1",
                )?
                .execute(params![target.0, by as i64])?;
            connection
                .prepare_cached("UPDATE attempts SET offset = offset + ?2 WHERE target_id = ?1")?
                .execute(params![target.0, by as i64])?;
            connection
                .prepare_cached(
                    "UPDATE dead SET first = first + ?2, last = last + ?2 WHERE target_id = ?1",
                )?
                .execute(params![target.0, by as i64])?;
        }
        state.head = head + by;
        state.trimmed = base;
        store(connection, topic, &state)?;
    }
    Ok(())
}

/// Adds `by` to the offset of each notification. Damaged rows remain damaged.
fn renumber(connection: &Connection, topic: TopicId, by: u64) -> rusqlite::Result<()> {
    let mut numbers: Vec<(i64, Option<i64>)> = Vec::new();
    {
        let mut statement = connection
            .prepare_cached(concat!(notifications!(), " WHERE topic_id = ?1 ORDER BY offset"))?;
        let mut rows = statement.query([topic.0])?;
        while let Some(row) = rows.next()? {
            let new = read_notification(topic, row)
                .ok()
                .map(|found| sum(topic, found.offset.0 + by, found.time, &found.content));
            numbers.push((row.get(0)?, new));
        }
    }
    let mut update = connection.prepare_cached(
        "UPDATE notifications SET offset = ?3, sum = ifnull(?4, sum) WHERE topic_id = ?1 AND offset = ?2",
    )?;
    for (offset, new) in numbers {
        update.execute(params![topic.0, offset, offset.saturating_add(by as i64), new])?;
    }
    Ok(())
}
