//! One transaction, whose writes are sent together.

use crate::log::postgres::client::Client;
use crate::log::postgres::failure::Failure;
use deadpool_postgres::{Object, Transaction};
use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// How long the server waits for the next statement of a transaction before it ends the
/// transaction: a stopped node then does not hold the lock of a set.
const IDLE_LIMIT: &str = "SET LOCAL idle_in_transaction_session_timeout = '10s'";
/// How long a transaction waits for the lock of a set.
const LOCK_LIMIT: &str = "SET LOCAL lock_timeout = '20s'";
/// Most statements that wait to be sent.
const PENDING_MAX: usize = 1_000;

/// A value of a statement that is sent later, with its type.
pub(crate) type Param = (Box<dyn ToSql + Sync>, Type);

/// Values of a statement, as pairs of value and type.
macro_rules! params {
    ($($value:expr => $kind:ident),* $(,)?) => {
        vec![$((Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Sync>, tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use params;

/// A transaction. Statements are not prepared on the server, so that a proxy may give each
/// transaction another connection.
pub(crate) struct Statements<'c> {
    client: &'c Client,
    transaction: Transaction<'c>,
    /// Writes that are sent before the next read, or before the commit.
    pending: Vec<(&'static str, Vec<Param>)>,
}

impl<'c> Statements<'c> {
    /// Begins a transaction that changes rows.
    pub(crate) fn begin(client: &'c Client, connection: &'c mut Object) -> Result<Self, Failure> {
        let transaction = client.wait(async {
            let transaction = connection.transaction().await?;
            transaction.batch_execute(&format!("{IDLE_LIMIT}; {LOCK_LIMIT}")).await?;
            Ok(transaction)
        })?;
        Ok(Self { client, transaction, pending: Vec::new() })
    }

    /// Adds a write, which is sent together with others.
    pub(crate) fn write(
        &mut self,
        sql: &'static str,
        params: Vec<Param>,
    ) -> Result<(), Failure> {
        self.pending.push((sql, params));
        if self.pending.len() < PENDING_MAX { Ok(()) } else { self.send() }
    }

    /// Sends the waiting writes, and reads rows after them.
    pub(crate) fn query(&mut self, sql: &str, params: &[Param]) -> Result<Vec<Row>, Failure> {
        self.send()?;
        self.client.wait(async {
            let params: Vec<_> =
                params.iter().map(|(value, kind)| (&**value, kind.clone())).collect();
            Ok(self.transaction.query_typed(sql, &params).await?)
        })
    }

    /// As [`Self::query`], for one row at most.
    pub(crate) fn query_first(
        &mut self,
        sql: &str,
        params: &[Param],
    ) -> Result<Option<Row>, Failure> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Sends the waiting writes in one round trip, in their order.
    pub(crate) fn send(&mut self) -> Result<(), Failure> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let pending = std::mem::take(&mut self.pending);
        self.client.wait(async {
            let transaction = &self.transaction;
            try_join_all(pending.iter().map(|(sql, params)| async move {
                let params: Vec<_> =
                    params.iter().map(|(value, kind)| (&**value, kind.clone())).collect();
                transaction.execute_typed(sql, &params).await
            }))
            .await?;
            Ok(())
        })
    }

    /// Makes the changes durable. If this fails without an answer of the server, it is unknown
    /// whether they are.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        self.client.wait(async { Ok(self.transaction.commit().await?) })
    }
}
