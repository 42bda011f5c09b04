//! One transaction, whose writes are sent together.

use crate::log::postgres::client::Client;
use crate::log::postgres::failure::Failure;
use deadpool_postgres::Object;
use futures_util::future::{try_join, try_join_all};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

/// Starts a transaction that changes rows. The server ends it if it waits 10 s for the next
/// statement, so that a stopped node does not hold the lock of a set, or 20 s for a lock.
const BEGIN: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = '10s'; \
                     SET LOCAL lock_timeout = '20s'; SET LOCAL enable_bitmapscan = off";
/// Starts a transaction that reads one snapshot in parts. Before a table was analyzed, the planner
/// would read and sort all rows for each part: the settings leave it the index.
pub(crate) const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                                         SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off";
/// Most statements that wait to be sent.
const PENDING_MAX: usize = 1_000;

/// A value of a statement that is sent later, with its type.
pub(crate) type Param = (Box<dyn ToSql + Sync>, Type);

/// Values of a statement, as pairs of value and type.
macro_rules! params {
    ($($value:expr => $kind:ident),* $(,)?) => {
        [$((Box::new($value) as Box<dyn tokio_postgres::types::ToSql + Sync>, tokio_postgres::types::Type::$kind)),*]
    };
}
pub(crate) use params;

/// A transaction. Statements are not prepared on the server, so that a proxy may give each
/// transaction another connection.
pub(crate) struct Statements<'c> {
    client: &'c Client,
    connection: Option<Object>,
    /// Writes that are sent before the next read, or before the commit.
    pending: Vec<(&'static str, Vec<Param>)>,
}

impl<'c> Statements<'c> {
    /// Begins a transaction that changes rows, and reads the row that `sql` locks.
    pub(crate) fn begin(
        client: &'c Client,
        sql: &str,
        params: &[Param],
    ) -> Result<(Self, Option<Row>), Failure> {
        Self::begin_with(client, BEGIN, sql, params)
    }

    /// As [`Self::begin`], with other words.
    pub(crate) fn begin_with(
        client: &'c Client,
        begin: &str,
        sql: &str,
        params: &[Param],
    ) -> Result<(Self, Option<Row>), Failure> {
        let connection = client.connection()?;
        let statements = Self { client, connection: Some(connection), pending: Vec::new() };
        let rows = client.wait(async {
            // Sent together, answered in order.
            let begin = async { Ok(statements.connection()?.batch_execute(begin).await?) };
            let ((), rows) = try_join(begin, statements.ask(sql, params)).await?;
            Ok(rows)
        })?;
        Ok((statements, rows.into_iter().next()))
    }

    /// Adds a write, which is sent together with others.
    pub(crate) fn write(
        &mut self,
        sql: &'static str,
        params: impl Into<Vec<Param>>,
    ) -> Result<(), Failure> {
        self.pending.push((sql, params.into()));
        if self.pending.len() < PENDING_MAX { Ok(()) } else { self.send() }
    }

    /// Sends the waiting writes, and reads rows after them.
    pub(crate) fn query(&mut self, sql: &str, params: &[Param]) -> Result<Vec<Row>, Failure> {
        let pending = std::mem::take(&mut self.pending);
        self.client.wait(async {
            let ((), rows) = try_join(self.tell(&pending), self.ask(sql, params)).await?;
            Ok(rows)
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
        let pending = std::mem::take(&mut self.pending);
        if pending.is_empty() { Ok(()) } else { self.client.wait(self.tell(&pending)) }
    }

    async fn tell(&self, pending: &[(&'static str, Vec<Param>)]) -> Result<(), Failure> {
        let connection = self.connection()?;
        try_join_all(pending.iter().map(|(sql, params)| async move {
            connection.execute_typed(sql, &borrowed(params)).await
        }))
        .await?;
        Ok(())
    }

    async fn ask(&self, sql: &str, params: &[Param]) -> Result<Vec<Row>, Failure> {
        Ok(self.connection()?.query_typed(sql, &borrowed(params)).await?)
    }

    fn connection(&self) -> Result<&Object, Failure> {
        self.connection.as_ref().ok_or(Failure::Late)
    }

    /// Makes the changes durable. If this fails without an answer of the server, it is unknown
    /// whether they are.
    pub(crate) fn commit(mut self) -> Result<(), Failure> {
        self.send()?;
        self.client.wait(async { Ok(self.connection()?.batch_execute("COMMIT").await?) })?;
        // Only a connection whose transaction ended goes back to the pool.
        drop(self.connection.take());
        Ok(())
    }
}

impl Drop for Statements<'_> {
    /// Closes the connection of a transaction that was not committed, which undoes the changes.
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(Object::take(connection));
        }
    }
}

fn borrowed(params: &[Param]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    params.iter().map(|(value, kind)| (&**value, kind.clone())).collect()
}
