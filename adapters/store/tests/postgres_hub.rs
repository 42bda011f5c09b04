//! The store of a hub on PostgreSQL: the contracts of every store, and several nodes.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use abreast_core::hub::HubStore;
use abreast_core::testing::{HubStores, TopicStores, hub_store_contract, topic_log_contract};
use abreast_core::{FixedClock, TopicLog};
use abreast_store::PostgresOptions;
use abreast_store::hub::{NodeOptions, PostgresHub};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::provided;
use std::sync::Arc;

const PROGRAMS: &str = "ABREAST_TEST_POSTGRES";

/// Databases of one server.
struct Hubs<'s> {
    server: &'s Postgres,
    name: &'static str,
    made: usize,
    options: PostgresOptions,
    url: String,
}

impl<'s> Hubs<'s> {
    fn of(server: &'s Postgres, name: &'static str) -> Self {
        Self { server, name, made: 0, options: PostgresOptions::default(), url: String::new() }
    }

    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<PostgresHub> {
        self.made += 1;
        self.url = self.server.create(&format!("{}{}", self.name, self.made));
        self.options = PostgresOptions::default().with_clock(clock);
        self.open()
    }

    fn open(&self) -> Arc<PostgresHub> {
        let node = NodeOptions::default();
        Arc::new(self.options.clone().open_hub(&self.url, node).expect("the store opens"))
    }
}

impl HubStores for Hubs<'_> {
    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<dyn HubStore> {
        Hubs::create(self, clock)
    }

    fn reopen(&mut self, store: Arc<dyn HubStore>) -> Arc<dyn HubStore> {
        drop(store);
        self.open()
    }
}

impl TopicStores for Hubs<'_> {
    fn create(&mut self, clock: Arc<FixedClock>) -> Arc<dyn TopicLog> {
        Hubs::create(self, clock)
    }

    fn reopen(&mut self, store: Arc<dyn TopicLog>) -> Arc<dyn TopicLog> {
        drop(store);
        self.open()
    }
}

#[test]
fn postgres_keeps_the_promises_of_a_hub_store() {
    let Some(programs) = provided("postgres_keeps_the_promises_of_a_hub_store", PROGRAMS) else {
        return;
    };
    let server = &Postgres::start(&programs);
    std::thread::scope(|scope| {
        scope.spawn(|| hub_store_contract(&mut Hubs::of(server, "hub")));
        scope.spawn(|| topic_log_contract(&mut Hubs::of(server, "topics")));
    });
}
