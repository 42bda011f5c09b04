//! Every store runs the contracts of the change log, of topics and of a hub's store.

use abreast_core::hub::HubStore;
use abreast_core::testing::{
    HubStores, Stores, TopicStores, change_log_contract, hub_store_contract, topic_log_contract,
};
use abreast_core::{ChangeLog, FixedClock, ShardRule, TopicLog};
use abreast_store::SqliteOptions;
use abreast_store::hub::SqliteHub;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;

/// Files in a temporary folder.
struct SqliteStores {
    folder: TempDir,
    made: usize,
    options: SqliteOptions,
    clock: Arc<FixedClock>,
}

impl SqliteStores {
    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("{}.sqlite", self.made))
    }

    fn open(&self) -> Arc<dyn ChangeLog> {
        Arc::new(
            self.options.open(&self.path(), Arc::clone(&self.clock) as _).expect("the store opens"),
        )
    }
}

impl Stores for SqliteStores {
    fn create(&mut self, clock: Arc<FixedClock>, resources: u64, bytes: u64) -> Arc<dyn ChangeLog> {
        self.made += 1;
        self.clock = clock;
        self.options = SqliteOptions::default().with_shard_rule(ShardRule { resources, bytes });
        self.open()
    }

    fn reopen(&mut self, log: Arc<dyn ChangeLog>) -> Arc<dyn ChangeLog> {
        drop(log);
        self.open()
    }
}

#[test]
fn sqlite_keeps_the_promises_of_a_change_log() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(FixedClock::default());
    change_log_contract(&mut SqliteStores {
        folder,
        made: 0,
        options: SqliteOptions::default(),
        clock,
    });
}

struct TemporaryStores;

impl Stores for TemporaryStores {
    fn create(&mut self, clock: Arc<FixedClock>, resources: u64, bytes: u64) -> Arc<dyn ChangeLog> {
        let options = SqliteOptions::default().with_shard_rule(ShardRule { resources, bytes });
        Arc::new(options.open_temporary(clock).expect("the store opens"))
    }

    fn reopen(&mut self, log: Arc<dyn ChangeLog>) -> Arc<dyn ChangeLog> {
        log
    }
}

#[test]
fn a_temporary_store_keeps_the_promises_of_a_change_log() {
    change_log_contract(&mut TemporaryStores);
}

struct SqliteHubs {
    folder: TempDir,
    made: usize,
    clock: Arc<FixedClock>,
}

impl SqliteHubs {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("made");
        Self { folder, made: 0, clock: Arc::new(FixedClock::default()) }
    }

    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<SqliteHub> {
        self.made += 1;
        self.clock = clock;
        self.open()
    }

    fn open(&self) -> Arc<SqliteHub> {
        let path = self.folder.path().join(format!("{}.db", self.made));
        Arc::new(SqliteHub::open(&path, Arc::clone(&self.clock) as _).expect("the store opens"))
    }
}

impl TopicStores for SqliteHubs {
    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<dyn TopicLog> {
        self.create(clock)
    }

    fn reopen(&mut self, log: Arc<dyn TopicLog>) -> Arc<dyn TopicLog> {
        drop(log);
        self.open()
    }
}

impl HubStores for SqliteHubs {
    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<dyn HubStore> {
        self.create(clock)
    }

    fn reopen(&mut self, store: Arc<dyn HubStore>) -> Arc<dyn HubStore> {
        drop(store);
        self.open()
    }
}

#[test]
fn sqlite_keeps_the_promises_of_topics() {
    topic_log_contract(&mut SqliteHubs::new());
}

#[test]
fn sqlite_keeps_the_promises_of_a_hub_store() {
    hub_store_contract(&mut SqliteHubs::new());
}
