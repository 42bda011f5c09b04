//! The stored contents that rows need.

use crate::log::postgres::rows::content;
use crate::postgres::client::Client;
use crate::postgres::failure::Failure;
use abreast_core::{ContentId, LogError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

impl Client {
    /// Addresses and lengths of the contents that rows need, in the order of the addresses after
    /// `after`.
    pub(crate) fn needed_contents(
        &self,
        after: &[u8],
        limit: usize,
    ) -> Result<Vec<(ContentId, u64)>, LogError> {
        const DOING: &str = "cannot read the needed contents";
        const SQL: &str = "SELECT id, max(length) FROM abreast.contents WHERE needed > 0 AND id > $1 \
                           GROUP BY id ORDER BY id LIMIT $2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows = self.query(DOING, SQL, &[(&after, Type::BYTEA), (&limit, Type::INT8)])?;
        let read = |row: &Row| -> Result<(ContentId, u64), Failure> {
            let id = content(row, 0)?.ok_or_else(|| Failure::Damaged("no address".to_owned()))?;
            Ok((id, row.try_get::<_, i64>(1)? as u64))
        };
        let needed: Result<Vec<_>, Failure> = rows.iter().map(read).collect();
        needed.map_err(|failure| failure.into_error(DOING))
    }

    /// Whether a row needs a content.
    pub(crate) fn needs_content(&self, id: &ContentId) -> Result<bool, LogError> {
        let rows = self.query(
            "cannot read who needs stored contents",
            "SELECT 1 FROM abreast.contents WHERE id = $1 AND needed > 0 LIMIT 1",
            &[(&id.as_bytes().as_slice(), Type::BYTEA)],
        )?;
        Ok(!rows.is_empty())
    }
}
