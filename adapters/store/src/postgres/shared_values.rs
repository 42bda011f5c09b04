//! Values that statements of several stores need.

use abreast_core::{ErrorKind, LogError};
use tokio_postgres::types::{ToSql, Type};

/// The database's clock, in microseconds. Leases use no other clock.
macro_rules! database_now {
    () => {
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
    };
}
pub(crate) use database_now;

/// A value of a statement, with its type.
pub(crate) type Param<'p> = (&'p (dyn ToSql + Sync), Type);

/// A random number for a process, which a database that lost changes does not give out again.
pub(crate) fn random_number() -> Result<i64, LogError> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|cause| {
        LogError::new(ErrorKind::Io, format!("no random number for a node: {cause}"))
    })?;
    Ok(i64::from_le_bytes(bytes) & i64::MAX)
}
