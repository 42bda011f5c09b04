//! The cursor: up to which instant changes are in the state or in the plan. Only this reader knows
//! what it is.

use crate::error::Error;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// The instant, microseconds.
const CURSOR: &str = "rs01-cursor";

/// The instant that the cursor is at, if there is one.
pub(super) fn get(mirror: &Mirror) -> Result<Option<Timestamp>, Error> {
    time_of(mirror, CURSOR)
}

/// Moves it, in the transaction of the plan up to then.
pub(super) fn set(mirror: &Mirror, at: Option<Timestamp>) -> Result<(), Error> {
    keep_time(mirror, CURSOR, at)
}

/// A time that is kept, if it is.
pub(super) fn time_of(mirror: &Mirror, key: &str) -> Result<Option<Timestamp>, Error> {
    let text = mirror.meta(key)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros))
}

/// Keeps a time.
pub(super) fn keep_time(mirror: &Mirror, key: &str, time: Option<Timestamp>) -> Result<(), Error> {
    Ok(mirror.set_meta(key, time.map(|time| time.as_micros().to_string()).as_deref())?)
}
