//! Targets that a transaction reads once, for all its requests.

use super::rows::{read_target, shard_column, shard_of, target_columns, url_hash};
use crate::hub::numbers::kind_number;
use crate::postgres::failure::Failure;
use crate::postgres::statements::Statements;
use crate::postgres::values::params;
use abreast_core::TopicId;
use abreast_core::hub::{Target, TargetId, TargetKind};
use std::collections::{HashMap, HashSet};

/// The target that a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Id(TargetId),
    Address(TopicId, String, TargetKind),
}

/// Topic, hash of the address, and kind.
type Key = (TopicId, Vec<u8>, TargetKind);

fn key(topic: TopicId, address: &str, kind: TargetKind) -> Key {
    (topic, url_hash(address), kind)
}

/// The targets of a transaction, as it left them, with their progress locked. Requests of many
/// targets need one round trip together.
#[derive(Default)]
pub(crate) struct Loaded {
    targets: HashMap<TargetId, Target>,
    by_address: HashMap<Key, TargetId>,
    read_ids: HashSet<TargetId>,
    read_addresses: HashSet<Key>,
}

const BY_ID: &str = concat!(
    target_columns!(),
    " JOIN unnest($1::smallint[], $2::bigint[]) AS wanted (shard, id) USING (shard, id) \
     ORDER BY id FOR UPDATE OF targets, progress"
);
const BY_ADDRESS: &str = concat!(
    target_columns!(),
    " JOIN unnest($1::smallint[], $2::bytea[], $3::bigint[], $4::smallint[]) \
     AS wanted (shard, address_hash, topic_id, kind) USING (shard, address_hash, topic_id, kind) \
     ORDER BY id FOR UPDATE OF targets, progress"
);

impl Loaded {
    /// Reads the targets of requests.
    pub(crate) fn read(
        &mut self,
        statements: &mut Statements<'_>,
        wanted: &[&Wanted],
    ) -> Result<(), Failure> {
        let (mut ids, mut addresses) = (Vec::new(), Vec::new());
        for one in wanted {
            match one {
                Wanted::Id(id) if self.read_ids.insert(*id) => ids.push(*id),
                Wanted::Address(topic, address, kind)
                    if self.read_addresses.insert(key(*topic, address, *kind)) =>
                {
                    addresses.push((*topic, address, *kind));
                }
                Wanted::Id(_) | Wanted::Address(..) => {}
            }
        }
        if !ids.is_empty() {
            let rows = statements.query(
                BY_ID,
                &params![
                    ids.iter().map(|id| shard_column(*id)).collect::<Vec<_>>() => INT2_ARRAY,
                    ids.iter().map(|id| id.0).collect::<Vec<_>>() => INT8_ARRAY,
                ],
            )?;
            rows.iter().try_for_each(|row| read_target(row).map(|target| self.put(target)))?;
        }
        if !addresses.is_empty() {
            let shard = |address: &str| shard_of(address).0 as i16;
            let rows = statements.query(
                BY_ADDRESS,
                &params![
                    addresses.iter().map(|one| shard(one.1)).collect::<Vec<_>>() => INT2_ARRAY,
                    addresses.iter().map(|one| url_hash(one.1)).collect::<Vec<_>>() => BYTEA_ARRAY,
                    addresses.iter().map(|one| one.0.0).collect::<Vec<_>>() => INT8_ARRAY,
                    addresses.iter().map(|one| kind_number(one.2) as i16).collect::<Vec<_>>() => INT2_ARRAY,
                ],
            )?;
            rows.iter().try_for_each(|row| read_target(row).map(|target| self.put(target)))?;
        }
        Ok(())
    }

    /// Forgets all targets: their progress changes.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The target with this number, as the transaction sees it.
    pub(crate) fn target(
        &mut self,
        statements: &mut Statements<'_>,
        id: TargetId,
    ) -> Result<Option<Target>, Failure> {
        self.read(statements, &[&Wanted::Id(id)])?;
        Ok(self.targets.get(&id).cloned())
    }

    /// The target with this topic, address and kind, as the transaction sees it.
    pub(crate) fn find(
        &mut self,
        statements: &mut Statements<'_>,
        topic: TopicId,
        address: &str,
        kind: TargetKind,
    ) -> Result<Option<Target>, Failure> {
        self.read(statements, &[&Wanted::Address(topic, address.to_owned(), kind)])?;
        let id = self.by_address.get(&key(topic, address, kind));
        Ok(id.and_then(|id| self.targets.get(id)).cloned())
    }

    /// Notes a target that was read or changed.
    pub(crate) fn put(&mut self, target: Target) {
        let key = key(target.topic, &target.address, target.kind);
        self.read_ids.insert(target.id);
        self.read_addresses.insert(key.clone());
        self.by_address.insert(key, target.id);
        self.targets.insert(target.id, target);
    }

    /// Notes that a target ended.
    pub(crate) fn remove(&mut self, id: TargetId) {
        if let Some(target) = self.targets.remove(&id) {
            self.by_address.remove(&key(target.topic, &target.address, target.kind));
        }
    }
}
