//! The contracts of [`ChangeLog`], [`TopicLog`](crate::TopicLog),
//! [`HubStore`](crate::hub::HubStore), [`ContentStore`](crate::contents::ContentStore) and
//! [`MadeStore`](crate::contents::made::MadeStore) as code: every store runs them.
//!
//! A store's test states how one is made and opened again; [`change_log_contract`] does the rest,
//! and panics with the name of the promise that was broken.

mod actions;
mod appending;
mod contents;
mod held;
mod hubs;
mod imports;
mod latest;
mod leases;
mod made;
mod pages;
mod random;
mod records;
mod replay;
mod scans;
mod shards;
mod times;
mod topics;
mod versions;
mod waiting;

use crate::{
    Appended, Change, ChangeLog, ContentId, Description, FixedClock, KeyRange, NewSet, PageRule,
    Resource, SetId, State, append,
};
use abreast_webtypes::{Digests, Label, Link, Timestamp};
pub use contents::{ContentStores, content_store_contract};
pub use held::HeldLog;
pub use hubs::{HubStores, hub_store_contract};
pub use leases::{MemoryLeases, lease_notes_contract};
pub use made::{MadeStores, made_store_contract};
pub use random::Random;
pub use records::MemoryRecords;
pub use replay::check_consistency;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;
pub use topics::{TopicStores, topic_log_contract};

/// How a test makes stores.
pub trait Stores {
    /// A new and empty store with that clock, whose shards are split at these sizes instead of
    /// those of [`ShardRule::DEFAULT`](crate::ShardRule::DEFAULT).
    fn create(&mut self, clock: Arc<FixedClock>, resources: u64, bytes: u64) -> Arc<dyn ChangeLog>;

    /// Closes the newest store and opens it again, with the same clock and sizes. A store that
    /// keeps nothing returns it as it is.
    fn reopen(&mut self, log: Arc<dyn ChangeLog>) -> Arc<dyn ChangeLog>;
}

/// Checks every promise of [`ChangeLog`].
///
/// # Panics
/// When one is broken.
pub fn change_log_contract(stores: &mut dyn Stores) {
    change_log_contract_part(stores, 0, 1);
}

/// Checks every `parts`th promise, from the one with this index on: stores behind a network can
/// check the parts at the same time.
///
/// # Panics
/// When one is broken.
pub fn change_log_contract_part(stores: &mut dyn Stores, part: usize, parts: usize) {
    for (promise, check) in PROMISES.iter().skip(part).step_by(parts) {
        let guard = Named(promise);
        check(stores);
        std::mem::forget(guard);
    }
}

type Check = fn(&mut dyn Stores);

const PROMISES: &[(&str, Check)] = &[
    ("a set is opened by its name", appending::sets_are_opened_by_name),
    ("an unknown set is an error of its own kind", appending::unknown_sets_are_told_apart),
    ("a new set is imported first", imports::base_comes_before_the_log),
    ("an import continues after a restart", imports::interrupted_import_goes_on),
    ("an incomplete set takes changes", imports::an_incomplete_set_takes_changes),
    ("positions have no gaps", appending::positions_have_no_gaps),
    ("times strictly increase", times::times_increase_whatever_the_clock_does),
    ("a batch is recorded whole or not at all", appending::refused_batch_leaves_nothing),
    ("what is no change is not recorded", appending::equal_states_record_nothing),
    ("every part of a state is kept", appending::states_are_kept_whole),
    ("witnesses are not changes", appending::witnesses_are_not_changes),
    ("where bytes are kept is no change", appending::addresses_of_contents_are_not_changes),
    ("one idempotency key is one change", appending::idempotency_keys_name_one_change),
    ("pages close by count", pages::pages_close_by_count),
    ("pages close by age", pages::pages_close_by_age),
    ("closed pages stay under a new rule", pages::closed_pages_outlive_their_rule),
    ("keys in order fill shards one after another", shards::ordered_load_closes_shards),
    ("full shards are split", shards::full_shards_are_split),
    ("large entries fill shards too", shards::large_entries_fill_shards),
    ("a shard's version follows its range", shards::versions_follow_changes),
    ("scans follow the order of bytes", scans::scans_follow_byte_order),
    ("a scan sees one state", scans::a_scan_sees_one_state),
    (
        "readers see a batch no later than its answer, never a part",
        scans::readers_see_whole_batches,
    ),
    ("waiting ends with a change", waiting::waiting_ends_with_a_change),
    (
        "waiting for several sets ends with a change of any",
        waiting::waiting_is_for_any_of_several_sets,
    ),
    ("many appenders make one log", appending::many_appenders_make_one_log),
    ("each action is recorded as what it was", actions::actions_are_recorded_as_kinds),
    ("a deprecation lasts until another state", actions::deprecation_ends_with_another_state),
    ("what a writer adds is kept with the change", actions::notes_and_descriptions_are_kept),
    ("changes of types keep the former ones", actions::changes_of_types_keep_the_former_ones),
    ("a set that begins in its log has no base", actions::history_may_begin_in_the_log),
    ("sets are listed and found", actions::sets_are_listed_and_found),
    ("the latest change of each resource is found", latest::latest_changes_leave_out_superseded),
    (
        "a resource that changes while the latest changes are read is among them",
        latest::latest_changes_lack_none_that_changes_meanwhile,
    ),
    ("a base has no latest change", latest::base_has_no_latest_change),
    ("a time leads to a position", latest::times_lead_to_positions),
    ("the log implies the table", replay::log_implies_table),
    ("versions are kept only when asked", versions::versions_are_kept_only_when_asked),
    (
        "versions are complete while a resource changes",
        versions::versions_are_complete_while_a_resource_changes,
    ),
    ("versions are the history of a resource", versions::versions_tell_the_history_of_a_resource),
    ("bytes found later complete a version", versions::bytes_found_later_complete_a_version),
    ("the state at the beginning is a version", versions::the_state_at_the_beginning_is_a_version),
    ("versions beyond the count are dropped", versions::versions_beyond_the_count_are_dropped),
    (
        "versions superseded too long ago are dropped",
        versions::versions_superseded_too_long_ago_are_dropped,
    ),
    ("versions over the size are dropped", versions::versions_over_the_size_are_dropped),
    ("needed contents are listed", versions::what_is_needed_is_told),
];

/// Prints the guarantee under test when a check panics.
struct Named(&'static str);

#[expect(clippy::print_stderr, reason = "a failing test must name the broken guarantee")]
impl Drop for Named {
    fn drop(&mut self) {
        eprintln!("broken promise: {}", self.0);
    }
}

/// 2026-01-01T00:00:00Z, when the checks begin.
const START: Timestamp = Timestamp::from_seconds(1_767_225_600);
const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// A store with one set, ready for changes.
struct Fixture {
    log: Arc<dyn ChangeLog>,
    clock: Arc<FixedClock>,
    set: SetId,
}

impl Fixture {
    fn new(
        stores: &mut dyn Stores,
        rule: PageRule,
        shard_resources: u64,
        shard_bytes: u64,
    ) -> Self {
        let clock = Arc::new(FixedClock::at(START));
        let log = stores.create(Arc::clone(&clock), shard_resources, shard_bytes);
        let set = log
            .open_set(&NewSet { slug: "checked".into(), page_rule: rule, ..NewSet::default() })
            .expect("a set can be opened")
            .id;
        log.complete_import(set).expect("an import can be completed");
        Self { log, clock, set }
    }

    fn plain(stores: &mut dyn Stores) -> Self {
        Self::new(stores, PageRule::default(), 1_000, 1_000_000)
    }

    fn append(&self, changes: Vec<Change>) -> Appended {
        append(&*self.log, self.set, changes).expect("a batch can be appended")
    }

    fn reopen(self, stores: &mut dyn Stores) -> Self {
        let Self { log, clock, set } = self;
        Self { log: stores.reopen(log), clock, set }
    }

    fn keys(&self, range: &KeyRange) -> Vec<String> {
        self.resources(range).into_iter().map(|resource| resource.key).collect()
    }

    fn resources(&self, range: &KeyRange) -> Vec<Resource> {
        let mut found = Vec::new();
        self.log
            .scan(self.set, range, &mut |resource| {
                found.push(resource.clone());
                ControlFlow::Continue(())
            })
            .expect("the resources can be scanned");
        found
    }

    fn check(&self) {
        check_consistency(&*self.log, self.set);
    }
}

fn everything() -> KeyRange {
    KeyRange::default()
}

fn rule(changes: u32, age: Duration) -> PageRule {
    PageRule { changes, age }
}

/// A state that differs from those of other numbers.
fn state(number: u64) -> State {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&number.to_le_bytes());
    State {
        modified: Timestamp::from_seconds(number as i64),
        length: Some(number),
        media_type: number.is_multiple_of(2).then(|| "text/html; charset=utf-8".to_owned()),
        encoding: number.is_multiple_of(3).then(|| "gzip".to_owned()),
        digests: if number.is_multiple_of(5) {
            Digests::default()
        } else {
            Digests { md5: Some(md5), ..Digests::default() }
        },
        links: if number.is_multiple_of(7) {
            vec![Link {
                target: format!("https://example.org/{number}"),
                rel: "describedby".into(),
                ..Link::default()
            }]
        } else {
            Vec::new()
        },
        description: number.is_multiple_of(13).then(|| {
            Box::new(Description {
                types: vec!["urn:type".into()],
                labels: vec![Label::plain(format!("Number {number}"))],
                media_type: None,
            })
        }),
        content: number.is_multiple_of(11).then_some(ContentId([number as u8; ContentId::BYTES])),
    }
}

fn put(key: impl Into<String>, number: u64) -> Change {
    Change::put(key, state(number))
}
