//! The checksums of rows in SQLite, by the functions of the stores. The indexes are of the columns in
//! [`tables`](super::tables).

use crate::hub::numbers::{kind_of, mode_of};
use crate::hub::targets::{ProgressColumns, target_sum};
use crate::hub::{topics, verifications};
use crate::log::set_rows::Encoded;
use crate::log::sqlite::row_sum::{RowKind, of_row};
use crate::maintenance::migrate::value::Value;
use abreast_core::hub::{NewVerification, Secret, Target, TargetId, TargetKind};
use abreast_core::{ContentId, NewNotification, Offset, Payload, Position, State, TopicId};
use abreast_webtypes::Timestamp;
use std::sync::Arc;

/// The state in the columns of a row, from `modified` at index 3 to `digests` at index 7.
fn state(row: &[Value]) -> Option<State> {
    Some(State {
        modified: time(&row[3])?,
        length: row[4].int().map(|length| length as u64),
        media_type: owned(&row[5]),
        encoding: owned(&row[6]),
        ..State::default()
    })
}

/// The encoded columns of a state.
fn encoded<'s>(
    row: &[Value],
    state: &'s State,
    links: Option<&Value>,
    content: &Value,
) -> Encoded<'s> {
    Encoded {
        state,
        content: content.bytes().and_then(ContentId::from_slice),
        digests: row[7].bytes().unwrap_or_default().to_vec(),
        links: links.and_then(owned),
        description: None,
        deprecated: None,
    }
}

pub(crate) fn resource(row: &[Value]) -> Option<i64> {
    let state = state(row)?;
    let encoded = encoded(row, &state, Some(&row[8]), &row[9]);
    let texts = [row[10].text(), row[11].text()];
    Some(of_row(row[1].text()?, &[], Some(&encoded), RowKind::Resource, &texts))
}

pub(crate) fn change(row: &[Value]) -> Option<i64> {
    let state = state(row);
    let encoded = state.as_ref().map(|state| encoded(row, state, Some(&row[8]), &row[9]));
    let numbers = [row[13].int()?, row[12].int()?, row[2].int()?];
    let texts = [row[10].text(), row[11].text()];
    Some(of_row(row[1].text()?, &numbers, encoded.as_ref(), RowKind::Change, &texts))
}

pub(crate) fn version(row: &[Value]) -> Option<i64> {
    let state = state(row);
    let encoded = state.as_ref().map(|state| encoded(row, state, None, &row[8]));
    let numbers = [row[9].int()?, row[2].int()?];
    Some(of_row(row[1].text()?, &numbers, encoded.as_ref(), RowKind::Version, &[]))
}

pub(crate) fn topic(row: &[Value]) -> Option<i64> {
    Some(topics::url_sum(TopicId(row[0].int()?), row[1].text()?))
}

pub(crate) fn notification(row: &[Value]) -> Option<i64> {
    let payload = match (row[5].int(), row[6].int()) {
        (Some(after), Some(last)) => {
            Payload::Changes { after: Position(after as u64), last: Position(last as u64) }
        }
        _ => Payload::Bytes(Arc::from(row[7].bytes()?)),
    };
    let content = NewNotification { media_type: owned(&row[3])?, links: owned(&row[4])?, payload };
    Some(topics::sum(TopicId(row[0].int()?), row[1].int()? as u64, time(&row[2])?, &content))
}

/// A target with this number, and nothing else.
fn empty_target(id: i64) -> Target {
    Target {
        id: TargetId(id),
        topic: TopicId(0),
        kind: TargetKind::Subscription,
        address: String::new(),
        secret: None,
        lease_until: None,
        cursor: Offset(0),
        generation: 0,
        created: Timestamp::default(),
        attempts: 0,
        first_failed: None,
        next_at: None,
    }
}

pub(crate) fn target(row: &[Value]) -> Option<i64> {
    Some(target_sum(&Target {
        address: owned(&row[1])?,
        topic: TopicId(row[2].int()?),
        kind: kind_of(row[3].int()?)?,
        secret: secret(&row[4]),
        lease_until: time(&row[5]),
        created: time(&row[6])?,
        ..empty_target(row[0].int()?)
    }))
}

pub(crate) fn progress(row: &[Value]) -> Option<i64> {
    let target = Target {
        generation: row[2].int()? as u64,
        cursor: Offset(row[3].int()? as u64),
        attempts: u32::try_from(row[4].int()?).unwrap_or(u32::MAX),
        first_failed: time(&row[5]),
        next_at: time(&row[6]),
        ..empty_target(row[0].int()?)
    };
    Some(ProgressColumns::of(&target).sum(target.id))
}

pub(crate) fn verification(row: &[Value]) -> Option<i64> {
    Some(verifications::sum(&NewVerification {
        callback: owned(&row[1])?,
        topic_url: owned(&row[2])?,
        mode: mode_of(row[3].int()?)?,
        secret: secret(&row[4]),
        lease_seconds: row[5].int().map(|seconds| seconds as u64),
        challenge: owned(&row[6])?,
        reason: owned(&row[7]),
        next_at: time(&row[9])?,
    }))
}

fn owned(value: &Value) -> Option<String> {
    value.text().map(str::to_owned)
}

fn time(value: &Value) -> Option<Timestamp> {
    value.int().map(Timestamp::from_micros)
}

fn secret(value: &Value) -> Option<Secret> {
    value.bytes().map(|bytes| Secret::from(bytes.to_vec()))
}
