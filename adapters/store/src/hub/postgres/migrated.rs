//! The row of the hub after its tables were copied from another store.

use super::loaded::Loaded;
use super::transaction::{HubState, HubTransaction, LOCK_HUB};
use crate::hub::topic_states::TopicStates;
use crate::postgres::client::{Client, repeat};
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::LogError;
use abreast_webtypes::Timestamp;
use std::collections::BTreeSet;

/// Counts the rows of topics, targets and verifications, and sets the last numbers of topics,
/// targets, verifications and ended targets, unless the hub has given out larger numbers.
pub(crate) fn store_migrated(client: &Client, last: [i64; 4]) -> Result<(), LogError> {
    const COUNT: &str = "SELECT (SELECT count(*) FROM abreast.topics), (SELECT count(*) FROM abreast.targets), \
         (SELECT count(*) FROM abreast.verifications)";
    repeat("cannot write the last numbers of the hub", || {
        let (mut statements, row) =
            Statements::begin(client, LOCK_HUB, &params![String::new() => TEXT])?;
        let missing = || Failure::Damaged("the row of the hub is not in the database".to_owned());
        let row = row.ok_or_else(missing)?;
        let mut known = HubState::read(&row, TopicStates::new())?;
        let counts = statements.query_first(COUNT, &[])?.ok_or_else(missing)?;
        (known.topic_count, known.targets) = (counts.try_get(0)?, counts.try_get(1)?);
        known.verifications = counts.try_get(2)?;
        let [topic, target, verification, ended] = last;
        known.last_topic = known.last_topic.max(topic);
        known.last_target = known.last_target.max(target);
        known.last_verification = known.last_verification.max(verification);
        known.last_ended = known.last_ended.max(ended);
        known.revision += 1;
        let now = Timestamp::from_micros(row.try_get(0)?);
        let mut run = HubTransaction {
            statements,
            known,
            now,
            node: None,
            loaded: Loaded::default(),
            touched: BTreeSet::new(),
            published: Vec::new(),
        };
        run.store_hub()?;
        run.statements.commit()
    })
}
