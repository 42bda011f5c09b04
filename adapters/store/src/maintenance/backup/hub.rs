//! Copies of a hub's store while the hub writes, and a restart of its log after a restore.
//!
//! A subscriber may ignore a notification whose offset it already knows. Therefore a store that was
//! restored from a backup, or that lost notifications, gives the remaining notifications offsets
//! above all offsets that it may have used. Cursors are moved by the same distance, and no stored
//! notification is lost.

use crate::database::locked;
use crate::hub::store::{MIGRATIONS, create_private};
use crate::hub::targets::{self, ProgressColumns};
use crate::hub::topics::{load, notifications, read_notification, store, sum};
use crate::maintenance::backup::copy;
use crate::maintenance::integrity::Findings;
use crate::maintenance::integrity::hub::{HubFacts, check_hub};
use abreast_core::{ErrorKind, LogError, Offset, TopicId};
use rusqlite::{Connection, params};
use std::collections::HashMap;
use std::path::Path;

/// Offsets of a restarted topic follow a multiple of this.
pub const OFFSETS_APART: u64 = 1_000_000_000;
/// Renumbers the notifications of every topic.
///
/// # Errors
/// Another process has it open, or it cannot be written.
pub fn restart_hub_log(path: &Path) -> Result<(), LogError> {
    locked::change(path, MIGRATIONS, "restart the topics in", |transaction| {
        restart_hub_log_in(transaction, &HashMap::new())
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

/// Renumbers the notifications of every topic within a transaction. The new offsets are larger than
/// the topic's last offset and than all offsets in use.
pub(crate) fn restart_hub_log_in(
    connection: &Connection,
    given: &HashMap<TopicId, u64>,
) -> rusqlite::Result<()> {
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
