//! The rows that all parts record.

use abreast_core::{Change, ChangeLog, NewSet, SetId, State};
use abreast_webtypes::{Digests, Timestamp};
use anyhow::Result;

/// Changes of a batch.
pub(super) const BATCH: usize = 1_000;

/// A set that is ready for changes.
pub(super) fn ready(log: &dyn ChangeLog) -> Result<SetId> {
    let set = log.open_set(&NewSet { slug: "scale".to_owned(), ..NewSet::default() })?.id;
    log.complete_import(set)?;
    Ok(set)
}

/// A new resource.
pub(super) fn change(number: u64) -> Change {
    let key = format!("collection/{:04}/item-{number:09}.xml", number / 10_000);
    Change::put(key, state(number)).with_witness(vec![7; 40])
}

/// The state of a resource.
pub(super) fn state(number: u64) -> State {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    State {
        modified: Timestamp::from_seconds(1_700_000_000 + number as i64),
        length: Some(number % 100_000),
        media_type: Some("application/xml".into()),
        digests: Digests { md5: Some(md5), ..Digests::default() },
        ..State::default()
    }
}
