//! Transactions of a run. A dry run is a single transaction that is never committed; its inner
//! transactions are parts of the outer one.

use crate::report::error::Error;
use abreast_store::mirror::Mirror;

/// Starts a transaction; in a dry run, a part of the transaction.
pub(crate) fn begin(mirror: &Mirror, is_dry_run: bool) -> Result<(), Error> {
    Ok(if is_dry_run { mirror.begin_part() } else { mirror.begin() }?)
}

/// Commits all changes since [`begin`].
pub(crate) fn commit(mirror: &Mirror, is_dry_run: bool) -> Result<(), Error> {
    Ok(if is_dry_run { mirror.join_part() } else { mirror.commit() }?)
}

/// Discards all changes since [`begin`].
pub(crate) fn abandon(mirror: &Mirror, is_dry_run: bool) -> Result<(), Error> {
    Ok(if is_dry_run { mirror.give_up_part() } else { mirror.rollback() }?)
}
