//! One of the two stores of a migration.

use crate::log::set_state::SetState;
use crate::maintenance::former_sets::FormerSet;
use crate::maintenance::migrate::state::State;
use crate::maintenance::migrate::table::{Part, Table};
use crate::maintenance::migrate::value::{Row, Value};
use abreast_core::{ChangeLog, ContentId, LogError, SetId};
use std::collections::HashMap;

/// Rows of a table, in the order of the store.
pub(crate) struct Rows {
    pub(crate) rows: Vec<Row>,
    /// The place after the last row; `None` after the last row of the table.
    pub(crate) next: Option<Vec<Value>>,
}

/// The last numbers that a hub gave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Numbers {
    pub(crate) topic: i64,
    pub(crate) target: i64,
    pub(crate) verification: i64,
    pub(crate) ended: i64,
}

/// A store that is read or written in parts.
pub(crate) trait Side: Send {
    /// Whether the store has tables of this part.
    fn has(&self, part: Part) -> bool;

    /// Reads rows after a place, at most `limit`, and about [`PART_BYTES`].
    fn read(
        &mut self,
        table: &Table,
        after: Option<&[Value]>,
        limit: usize,
    ) -> Result<Rows, LogError>;

    /// The state of an unfinished migration to this store.
    fn state(&mut self, part: Part) -> Result<Option<State>, LogError>;

    /// Writes rows, and the state of the migration in the same transaction.
    fn write(&mut self, table: &Table, rows: &[Row], state: &State) -> Result<(), LogError>;

    /// Writes the state of the migration alone.
    fn write_state(&mut self, part: Part, state: &State) -> Result<(), LogError>;

    /// The values of sets that PostgreSQL stores and SQLite computes; only SQLite returns them.
    fn set_states(&mut self) -> Result<HashMap<SetId, SetState>, LogError>;

    /// Stores the values of sets, if the store does not compute them.
    fn store_set_states(&mut self, states: HashMap<SetId, SetState>) -> Result<(), LogError>;

    /// The last numbers that the hub gave out.
    fn numbers(&mut self) -> Result<Numbers, LogError>;

    /// Sets the numbers after which the hub continues.
    fn store_numbers(&mut self, numbers: Numbers) -> Result<(), LogError>;

    /// The former names of sets.
    fn former_sets(&mut self) -> Result<Vec<FormerSet>, LogError>;

    /// Stores the former names of sets, after the sets.
    fn store_former_sets(&mut self, former: &[FormerSet]) -> Result<(), LogError>;

    /// Addresses and lengths of the contents that rows need, after an address.
    fn needed(&mut self, after: &[u8], limit: usize) -> Result<Vec<(ContentId, u64)>, LogError>;

    /// Calls a function with the change log of the store.
    fn with_log(
        &mut self,
        work: &mut dyn FnMut(&dyn ChangeLog) -> Result<(), LogError>,
    ) -> Result<(), LogError>;

    /// Deletes the state of the migration: the store is complete. A database records the identity of
    /// the source.
    fn finish(&mut self, from: &str) -> Result<(), LogError>;
}

/// Most bytes of rows in a part, except a single larger row.
pub(crate) const PART_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of a row in memory.
pub(crate) fn size_of(row: &[Value]) -> usize {
    row.iter().map(Value::size).sum()
}
