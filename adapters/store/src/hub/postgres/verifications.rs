//! Pending verifications of subscribers.

use super::rows::{numbered, read_verification, shard_of, url_hash, verification_columns};
use super::targets;
use super::topics::{each, limit_column};
use super::transaction::{Answer, HubTransaction, check_texts, next_number};
use crate::hub::numbers::mode_number;
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use crate::postgres::values::params;
use abreast_core::hub::{
    Ending, HubShard, NewVerification, Settled, Target, TargetKind, VERIFICATIONS_MAX,
    Verification, VerificationId, check_verification,
};
use abreast_core::{ErrorKind, LogError, TopicId};
use abreast_webtypes::Timestamp;
use tokio_postgres::types::Type;

pub(crate) fn put(run: &mut HubTransaction<'_>, new: &NewVerification) -> Answer<VerificationId> {
    let texts = [&*new.topic_url, &*new.callback, &*new.challenge];
    let checked = check_verification(new)
        .and_then(|()| check_texts(texts.into_iter().chain(new.reason.as_deref())));
    if let Err(refused) = checked {
        return Ok(Err(refused));
    }
    if run.known.verifications >= VERIFICATIONS_MAX {
        return Ok(Err(LogError::new(
            ErrorKind::Busy,
            format!("{VERIFICATIONS_MAX} requests wait to be verified\n  help: try again later"),
        )));
    }
    run.known.verifications += 1;
    run.known.last_verification = next_number(run.known.last_verification);
    let shard = shard_of(&new.callback);
    let id = numbered(run.known.last_verification, shard);
    run.statements.write(
        "INSERT INTO abreast.verifications (shard, id, topic_url, callback, mode, secret, lease_seconds, challenge, \
         reason, attempts, next_at, created, revision) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12)",
        params![
            shard.0 as i16 => INT2, id => INT8, new.topic_url.clone() => TEXT, new.callback.clone() => TEXT,
            mode_number(new.mode) as i16 => INT2,
            new.secret.as_ref().map(|secret| secret.0.to_vec()) => BYTEA,
            new.lease_seconds.map(|seconds| seconds as i64) => INT8,
            new.challenge.clone() => TEXT, new.reason.clone() => TEXT, new.next_at.as_micros() => INT8,
            run.now.as_micros() => INT8, run.known.revision => INT8,
        ],
    )?;
    Ok(Ok(VerificationId(id)))
}

pub(crate) fn retry(
    run: &mut HubTransaction<'_>,
    id: VerificationId,
    attempts: u32,
    next_at: Timestamp,
) -> Result<(), Failure> {
    run.statements.write(
        "UPDATE abreast.verifications SET attempts = $3, next_at = $4 WHERE shard = $1 AND id = $2",
        params![
            column(id) => INT2, id.0 => INT8, i64::from(attempts) => INT8, next_at.as_micros() => INT8,
        ],
    )
}

/// Ends a verification, and creates, renews or ends its target. Returns `None` if the verification
/// was ended earlier.
pub(crate) fn finish(
    run: &mut HubTransaction<'_>,
    id: VerificationId,
    settled: &Settled,
) -> Answer<Option<Target>> {
    const SQL: &str = concat!(verification_columns!(), " WHERE shard = $1 AND id = $2 FOR UPDATE");
    let row = run.statements.query_first(SQL, &params![column(id) => INT2, id.0 => INT8])?;
    let Some(known) = row.as_ref().map(read_verification).transpose()? else {
        return Ok(Ok(None));
    };
    let target = match settled {
        Settled::Dropped => None,
        Settled::Subscribed(new) => match targets::put(run, new)? {
            Ok(target) => Some(target),
            Err(refused) => return Ok(Err(refused)),
        },
        Settled::Unsubscribed => {
            let target = find_subscription(run, &known.request)?;
            if let Some(target) = &target {
                targets::end(run, target.id, Ending::Unsubscribed)?;
            }
            target
        }
    };
    run.known.verifications -= 1;
    run.statements.write(
        "DELETE FROM abreast.verifications WHERE shard = $1 AND id = $2",
        params![column(id) => INT2, id.0 => INT8],
    )?;
    Ok(Ok(target))
}

fn find_subscription(
    run: &mut HubTransaction<'_>,
    request: &NewVerification,
) -> Result<Option<Target>, Failure> {
    let topic = run.statements.query_first(
        "SELECT id FROM abreast.topics WHERE url_hash = $1",
        &params![url_hash(&request.topic_url) => BYTEA],
    )?;
    let Some(topic) = topic else { return Ok(None) };
    let topic = TopicId(topic.try_get(0)?);
    let kind = TargetKind::Subscription;
    let HubTransaction { statements, loaded, .. } = run;
    loaded.find(statements, topic, &request.callback, kind)
}

fn column(id: VerificationId) -> i16 {
    HubShard::of_verification(id).0 as i16
}

pub(crate) fn one(client: &Client, id: VerificationId) -> Result<Option<Verification>, LogError> {
    const SQL: &str = concat!(verification_columns!(), " WHERE shard = $1 AND id = $2");
    const DOING: &str = "cannot read a verification";
    let rows = client.query(DOING, SQL, &[(&column(id), Type::INT2), (&id.0, Type::INT8)])?;
    each(DOING, &rows, read_verification).map(|mut found| found.pop())
}

pub(crate) fn page(
    client: &Client,
    after: VerificationId,
    limit: usize,
) -> Result<Vec<Verification>, LogError> {
    const SQL: &str = concat!(verification_columns!(), " WHERE id > $1 ORDER BY id LIMIT $2");
    const DOING: &str = "cannot read the verifications";
    let rows =
        client.query(DOING, SQL, &[(&after.0, Type::INT8), (&limit_column(limit), Type::INT8)])?;
    each(DOING, &rows, read_verification)
}
