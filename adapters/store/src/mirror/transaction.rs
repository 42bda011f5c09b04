//! Transactions of a copy's database, and parts of a transaction.

use super::{Mirror, WRITE, failed};
use abreast_core::LogError;

impl Mirror {
    /// Starts a transaction, which [`Mirror::commit`] completes.
    ///
    /// # Errors
    /// The system's own.
    pub fn begin(&self) -> Result<(), LogError> {
        self.connection.execute_batch("BEGIN IMMEDIATE").map_err(failed(WRITE))
    }

    /// Commits all changes since [`Mirror::begin`].
    ///
    /// # Errors
    /// The system's own, for example no space.
    pub fn commit(&self) -> Result<(), LogError> {
        self.bound_waiting()?;
        self.connection.execute_batch("COMMIT").map_err(failed(WRITE))
    }

    /// Discards all changes since [`Mirror::begin`]; does nothing outside a transaction.
    ///
    /// # Errors
    /// The system's own.
    pub fn rollback(&self) -> Result<(), LogError> {
        if self.connection.is_autocommit() {
            return Ok(());
        }
        self.counted.take();
        self.connection.execute_batch("ROLLBACK").map_err(failed(WRITE))
    }

    /// Starts a part of a transaction that can be rolled back alone.
    ///
    /// # Errors
    /// The system's own.
    pub fn begin_part(&self) -> Result<(), LogError> {
        self.connection.execute_batch("SAVEPOINT part").map_err(failed(WRITE))
    }

    /// Merges a part into its transaction.
    ///
    /// # Errors
    /// The system's own.
    pub fn join_part(&self) -> Result<(), LogError> {
        self.connection.execute_batch("RELEASE part").map_err(failed(WRITE))
    }

    /// Discards all changes since [`Mirror::begin_part`]; the transaction continues.
    ///
    /// # Errors
    /// The system's own.
    pub fn give_up_part(&self) -> Result<(), LogError> {
        self.counted.take();
        self.connection.execute_batch("ROLLBACK TO part; RELEASE part").map_err(failed(WRITE))
    }
}
