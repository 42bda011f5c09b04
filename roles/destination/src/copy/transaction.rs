//! Transactions of a run: a dry run is one transaction that is never kept, so what a run keeps is a
//! part of it there.

use crate::report::error::Error;
use abreast_store::mirror::Mirror;

/// Begins a transaction, or a part of the dry run's.
pub(crate) fn begin(mirror: &Mirror, is_dry_run: bool) -> Result<(), Error> {
    Ok(if is_dry_run { mirror.begin_part() } else { mirror.begin() }?)
}

/// Keeps everything since [`begin`].
pub(crate) fn commit(mirror: &Mirror, is_dry_run: bool) -> Result<(), Error> {
    Ok(if is_dry_run { mirror.join_part() } else { mirror.commit() }?)
}

/// Discards everything since [`begin`].
pub(crate) fn abandon(mirror: &Mirror, is_dry_run: bool) -> Result<(), Error> {
    Ok(if is_dry_run { mirror.give_up_part() } else { mirror.rollback() }?)
}
