//! The cursor: up to which instant changes are in the state or in the plan. Only this reader knows
//! what it is.

use crate::error::Error;
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// The instant, microseconds.
const CURSOR: &str = "cursor";
/// Whether it is the time of a change that was read, not of a snapshot.
const IS_CHANGE: &str = "cursor-is-change";

/// The instant that the cursor is at, if there is one.
pub(super) fn get(mirror: &Mirror) -> Result<Option<Timestamp>, Error> {
    let text = mirror.meta(CURSOR)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros))
}

/// Whether it is the time of a change that was read.
pub(super) fn is_change(mirror: &Mirror) -> Result<bool, Error> {
    Ok(mirror.meta(IS_CHANGE)?.is_some())
}

/// Moves it; what it is the time of stays.
pub(super) fn set(mirror: &Mirror, at: Option<Timestamp>) -> Result<(), Error> {
    Ok(mirror.set_meta(CURSOR, at.map(|at| at.as_micros().to_string()).as_deref())?)
}

/// Moves it to a change that was read.
pub(super) fn set_to_change(mirror: &Mirror, at: Timestamp) -> Result<(), Error> {
    set(mirror, Some(at))?;
    Ok(mirror.set_meta(IS_CHANGE, Some("1"))?)
}

/// Moves it to a snapshot, or away when the instant of that is not known.
pub(super) fn set_to_snapshot(mirror: &Mirror, at: Option<Timestamp>) -> Result<(), Error> {
    set(mirror, at)?;
    Ok(mirror.set_meta(IS_CHANGE, None)?)
}
