//! One transaction, whose writes are sent together.

use crate::postgres::client::{Client, Use};

use crate::postgres::failure::Failure;
use crate::postgres::values::{Column, Param};
use deadpool_postgres::Object;
use futures_util::future::try_join;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;
use tokio_postgres::Row;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

/// Starts a transaction that changes rows. The server ends it if it waits 10 s for the next
/// statement, or 20 s for a node to take its answer, so that a stopped node does not hold the lock of
/// a set. A transaction waits 5 s for a lock.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; \
                     SET LOCAL idle_in_transaction_session_timeout = '10s'; \
                     SET LOCAL tcp_user_timeout = '20s'; \
                     SET LOCAL lock_timeout = '5s'; SET LOCAL enable_bitmapscan = off";
/// Starts a transaction that reads one snapshot in parts. Before a table was analyzed, the planner
/// would read and sort all rows for each part: the settings leave it the index.
const BEGIN_SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; \
                              SET LOCAL enable_bitmapscan = off; SET LOCAL enable_sort = off";
/// Most statements that wait to be sent.
const PENDING_MAX: usize = 1_000;

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
        let connection = client.connection(Use::Write)?;
        let statements = Self { client, connection: Some(connection), pending: Vec::new() };
        let rows = client.wait(async {
            // Sent together, answered in order.
            let begin = async { Ok(statements.connection()?.batch_execute(BEGIN).await?) };
            let ((), rows) = try_join(begin, statements.ask(sql, params)).await?;
            Ok(rows)
        })?;
        Ok((statements, rows.into_iter().next()))
    }

    /// Begins a transaction that reads one snapshot.
    pub(crate) fn snapshot(client: &'c Client) -> Result<Self, Failure> {
        let connection = client.connection(Use::Scan)?;
        let statements = Self { client, connection: Some(connection), pending: Vec::new() };
        client.wait(async { Ok(statements.connection()?.batch_execute(BEGIN_SNAPSHOT).await?) })?;
        Ok(statements)
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

    /// Sends the waiting writes, then inserts new rows by `COPY`. The first column of each row is the
    /// set. For many rows this is faster than a statement with arrays, but it needs more round trips.
    pub(crate) fn copy(
        &mut self,
        sql: &'static str,
        set: i64,
        columns: &[Column],
        rows: usize,
    ) -> Result<(), Failure> {
        self.send()?;
        let types: Vec<Type> =
            [Type::INT8].into_iter().chain(columns.iter().map(Column::kind)).collect();
        self.client.wait(async {
            // The client names a statement for this, and closes it when the copy begins: a proxy may
            // give the connection to another client after the commit.
            let mut writer =
                pin!(BinaryCopyInWriter::new(self.connection()?.copy_in(sql).await?, &types));
            let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(types.len());
            for row in 0..rows {
                values.clear();
                values.push(&set);
                values.extend(columns.iter().map(|column| column.value(row)));
                writer.as_mut().write(&values).await?;
            }
            writer.finish().await?;
            Ok(())
        })
    }

    /// Sends the waiting writes, and reads rows after them.
    pub(crate) fn query(&mut self, sql: &str, params: &[Param]) -> Result<Vec<Row>, Failure> {
        let pending = std::mem::take(&mut self.pending);
        self.client.wait(async {
            let sent = self.tell(&pending).await?;
            let mut rows = Box::pin(self.ask(sql, params));
            let first = poll_once(rows.as_mut()).await;
            answers(sent).await?;
            match first {
                Poll::Ready(rows) => rows,
                Poll::Pending => rows.await,
            }
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
        if pending.is_empty() {
            return Ok(());
        }
        self.client.wait(async { answers(self.tell(&pending).await?).await })
    }

    /// Sends writes in their order; their answers follow.
    async fn tell<'p>(
        &'p self,
        pending: &'p [(&'static str, Vec<Param>)],
    ) -> Result<Vec<Answer<'p>>, Failure> {
        let connection = self.connection()?;
        let mut sent = Vec::with_capacity(pending.len());
        for (sql, params) in pending {
            let mut answer: Answer<'_> =
                Box::pin(async move { connection.execute_typed(sql, &borrowed(params)).await });
            // A statement is sent when it is polled for the first time.
            match poll_once(answer.as_mut()).await {
                Poll::Ready(done) => drop(done?),
                Poll::Pending => sent.push(answer),
            }
        }
        Ok(sent)
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

/// The answer to a write.
type Answer<'p> = Pin<Box<dyn Future<Output = Result<u64, tokio_postgres::Error>> + 'p>>;

async fn answers(sent: Vec<Answer<'_>>) -> Result<(), Failure> {
    for answer in sent {
        answer.await?;
    }
    Ok(())
}

async fn poll_once<F: Future + ?Sized>(mut future: Pin<&mut F>) -> Poll<F::Output> {
    poll_fn(|context| Poll::Ready(future.as_mut().poll(context))).await
}

fn borrowed(params: &[Param]) -> Vec<(&(dyn ToSql + Sync), Type)> {
    params.iter().map(|(value, kind)| (&**value as &(dyn ToSql + Sync), kind.clone())).collect()
}
