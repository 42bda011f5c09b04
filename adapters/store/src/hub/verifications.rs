//! Pending verifications of subscribers: tables.

use super::numbers::{mode_number, mode_of};
use super::transaction::{Answer, HubTransaction};
use super::{targets, topics};
use crate::database::sum::Sum;
use abreast_core::hub::{
    Ending, NewVerification, Secret, Settled, Target, TargetKind, VERIFICATIONS_MAX, Verification,
    VerificationId, check_verification,
};
use abreast_core::{ErrorKind, LogError};
use abreast_webtypes::Timestamp;
use rusqlite::{Connection, OptionalExtension as _, Row, params};

pub(crate) fn put(run: &mut HubTransaction<'_>, new: &NewVerification) -> Answer<VerificationId> {
    if let Err(refused) = check_verification(new) {
        return Ok(Err(refused));
    }
    if run.known.verifications >= VERIFICATIONS_MAX {
        return Ok(Err(LogError::new(
            ErrorKind::Busy,
            format!("{VERIFICATIONS_MAX} requests wait to be verified\n  help: try again later"),
        )));
    }
    run.known.verifications += 1;
    run.connection
        .prepare_cached(
            "INSERT INTO verifications (topic_url, callback, mode, secret, lease_seconds, challenge, reason, attempts, \
             next_at, created, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, ?8, ?9, ?10)",
        )?
        .execute(params![
            new.topic_url,
            new.callback,
            mode_number(new.mode),
            new.secret.as_ref().map(|secret| &*secret.0),
            new.lease_seconds.map(|seconds| seconds as i64),
            new.challenge,
            new.reason,
            new.next_at.as_micros(),
            run.now.as_micros(),
            sum(new)
        ])?;
    Ok(Ok(VerificationId(run.connection.last_insert_rowid())))
}

/// The checksum of a requested verification, over all its values.
pub(crate) fn sum(asked: &NewVerification) -> i64 {
    let mut sum = Sum::default();
    sum.bytes(Some(asked.topic_url.as_bytes()));
    sum.bytes(Some(asked.callback.as_bytes()));
    sum.number(Some(mode_number(asked.mode)));
    sum.bytes(asked.secret.as_ref().map(|secret| &*secret.0));
    sum.number(asked.lease_seconds.map(|seconds| seconds as i64));
    sum.bytes(Some(asked.challenge.as_bytes()));
    sum.bytes(asked.reason.as_deref().map(str::as_bytes));
    sum.finish()
}

const VERIFICATION: &str = "SELECT id, topic_url, callback, mode, secret, lease_seconds, challenge, reason, attempts, \
                            next_at, created, sum FROM verifications";

fn read_verification(row: &Row<'_>) -> rusqlite::Result<Verification> {
    let secret: Option<Vec<u8>> = row.get(4)?;
    let mode: i64 = row.get(3)?;
    let request = NewVerification {
        topic_url: row.get(1)?,
        callback: row.get(2)?,
        mode: mode_of(mode).ok_or_else(|| crate::database::sum::damaged(3))?,
        secret: secret.map(Secret::from),
        lease_seconds: row.get::<_, Option<i64>>(5)?.map(|seconds| seconds as u64),
        challenge: row.get(6)?,
        reason: row.get(7)?,
        next_at: Timestamp::from_micros(row.get(9)?),
    };
    if sum(&request) != row.get::<_, i64>(11)? {
        return Err(crate::database::sum::damaged(11));
    }
    Ok(Verification {
        id: VerificationId(row.get(0)?),
        request,
        attempts: row.get(8)?,
        created: Timestamp::from_micros(row.get(10)?),
    })
}

pub(crate) fn one(
    connection: &Connection,
    id: VerificationId,
) -> rusqlite::Result<Option<Verification>> {
    connection
        .prepare_cached(&format!("{VERIFICATION} WHERE id = ?1"))?
        .query_row([id.0], read_verification)
        .optional()
}

pub(crate) fn page(
    connection: &Connection,
    after: VerificationId,
    limit: usize,
) -> rusqlite::Result<Vec<Verification>> {
    let mut statement =
        connection.prepare_cached(&format!("{VERIFICATION} WHERE id > ?1 ORDER BY id LIMIT ?2"))?;
    statement.query_map(params![after.0, limit as i64], read_verification)?.collect()
}

pub(crate) fn retry(
    connection: &Connection,
    id: VerificationId,
    attempts: u32,
    next_at: Timestamp,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached("UPDATE verifications SET attempts = ?2, next_at = ?3 WHERE id = ?1")?
        .execute(params![id.0, attempts, next_at.as_micros()])?;
    Ok(())
}

/// Ends a verification, and creates, renews or ends its target. Returns `None` if the verification
/// was ended earlier.
pub(crate) fn finish(
    run: &mut HubTransaction<'_>,
    id: VerificationId,
    settled: &Settled,
) -> Answer<Option<Target>> {
    let connection = run.connection;
    let Some(known) = one(connection, id)? else { return Ok(Ok(None)) };
    let target = match settled {
        Settled::Dropped => None,
        Settled::Subscribed(new) => match targets::put(run, new)? {
            Ok(target) => Some(target),
            Err(refused) => return Ok(Err(refused)),
        },
        Settled::Unsubscribed => {
            let topic = topics::find(connection, &known.request.topic_url)?;
            let target = match topic {
                Some(topic) => targets::find(
                    connection,
                    topic,
                    &known.request.callback,
                    TargetKind::Subscription,
                )?,
                None => None,
            };
            if let Some(target) = &target {
                targets::end(run, target.id, Ending::Unsubscribed)?;
            }
            target
        }
    };
    run.known.verifications -= 1;
    connection.prepare_cached("DELETE FROM verifications WHERE id = ?1")?.execute([id.0])?;
    Ok(Ok(target))
}

pub(crate) fn count(connection: &Connection) -> rusqlite::Result<i64> {
    connection.prepare_cached("SELECT count(*) FROM verifications")?.query_row([], |row| row.get(0))
}
