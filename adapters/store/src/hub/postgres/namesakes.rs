//! Other nodes with the name of this node.

use super::topics::each;
use crate::postgres::client::Client;
use abreast_core::LogError;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_postgres::types::{ToSql, Type};

/// Nodes with the name of this one that were there at its start, until it is known whether any of
/// them is alive.
#[derive(Default)]
pub(crate) struct Namesakes {
    /// Ends of their leases by their numbers; `None` before the first renewal.
    leases: Option<BTreeMap<i64, i64>>,
}

impl Namesakes {
    /// Warns once if a node with this name renews its lease too. The lease of a former process of this
    /// node ends without a renewal.
    pub(crate) fn check(
        &mut self,
        client: &Client,
        limit: Duration,
        (name, own): (&str, i64),
    ) -> Result<(), LogError> {
        const DOING: &str = "cannot read the names of the nodes";
        const SQL: &str = "SELECT id, until FROM abreast.nodes WHERE name = $1 AND id <> $2";
        if self.leases.as_ref().is_some_and(BTreeMap::is_empty) {
            return Ok(());
        }
        let params: [(&(dyn ToSql + Sync), Type); 2] = [(&name, Type::TEXT), (&own, Type::INT8)];
        let rows = client.query_lease(DOING, limit, SQL, &params)?;
        let now: BTreeMap<i64, i64> =
            each(DOING, &rows, |row| Ok((row.try_get(0)?, row.try_get(1)?)))?.into_iter().collect();
        let Some(before) = &self.leases else {
            self.leases = Some(now);
            return Ok(());
        };
        if is_any_renewed(before, &now) {
            let help = "give each node its own name: `node` in the configuration, or --node";
            tracing::warn!(node = name, help, "another running node has the name of this node");
            self.leases = Some(BTreeMap::new());
        } else {
            self.leases = Some(now.into_iter().filter(|(id, _)| before.contains_key(id)).collect());
        }
        Ok(())
    }
}

fn is_any_renewed(before: &BTreeMap<i64, i64>, now: &BTreeMap<i64, i64>) -> bool {
    before.iter().any(|(id, until)| now.get(id).is_some_and(|new| new > until))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_only_ends_is_of_a_former_process() {
        let before = BTreeMap::from([(1, 100), (2, 100)]);
        assert!(!is_any_renewed(&before, &before));
        assert!(!is_any_renewed(&before, &BTreeMap::from([(3, 900)])));
        assert!(is_any_renewed(&before, &BTreeMap::from([(1, 100), (2, 101)])));
    }
}
