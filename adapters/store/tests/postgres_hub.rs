//! The store of a hub on PostgreSQL: the contracts of every store, and several nodes.
#![cfg(feature = "postgres")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod plans;

use abreast_core::hub::{
    Attempt, DeadLetter, Ending, HubNodes as _, HubRevision, HubShard, HubStore, NewTarget,
    NewVerification, Progress, Settled, Target, TargetId, TargetKind, VerificationId,
    VerificationMode,
};
use abreast_core::testing::{HubStores, TopicStores, hub_store_contract, topic_log_contract};
use abreast_core::{
    ErrorKind, FixedClock, NewNotification, NodeRoles, Offset, Payload, Records as _, TopicId,
    TopicLog, publish,
};
use abreast_store::PostgresOptions;
use abreast_store::hub::{NodeOptions, PostgresHub};
use abreast_testkit::postgres::Postgres;
use abreast_testkit::relay::Relay;
use abreast_testkit::{provided, seed};
use abreast_webtypes::Timestamp;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

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
        let database = self.options.clone().connect(&self.url).expect("the store opens");
        Arc::new(database.hub(node).expect("the store opens"))
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

/// A store of one of several nodes.
fn node(url: &str, name: &str, lease: Duration) -> PostgresHub {
    let database = PostgresOptions::default().connect(url).expect("the store opens");
    let options = NodeOptions { name: name.to_owned(), lease, ..NodeOptions::default() };
    database.hub(options).expect("the store opens")
}

fn bytes(body: &str) -> NewNotification {
    let payload = Payload::Bytes(Arc::from(body.as_bytes()));
    NewNotification { media_type: "text/plain".into(), links: String::new(), payload }
}

fn target(topic: TopicId, address: String) -> NewTarget {
    let kind = TargetKind::Subscription;
    NewTarget { topic, kind, address, secret: None, lease_until: None, cursor: Some(Offset(0)) }
}

fn progress(target: &Target, cursor: u64) -> Progress {
    Progress {
        id: target.id,
        generation: target.generation,
        cursor: Offset(cursor),
        attempts: 0,
        first_failed: None,
        next_at: None,
        last: None,
        dead: None,
    }
}

fn held(nodes: &[&PostgresHub]) -> Vec<usize> {
    nodes.iter().map(|node| node.renew().unwrap().shards.len()).collect()
}

/// Gives back what a node has too much of.
fn even_out(node: &PostgresHub) {
    let membership = node.renew().unwrap();
    let surplus = membership.shards.len() - membership.surplus;
    node.give_back(&membership.shards[surplus..]).unwrap();
}

#[test]
fn nodes_divide_the_shards_and_inherit_those_of_an_ended_node() {
    let name = "nodes_divide_the_shards_and_inherit_those_of_an_ended_node";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("shards");
    let (short, long) = (Duration::from_secs(2), Duration::from_secs(60));
    let one = node(&url, "one", long);
    assert_eq!(held(&[&one]), [1_024], "a node alone has all shards");
    let two = node(&url, "two", short);
    let membership = two.renew().unwrap();
    assert_eq!(
        (membership.shards.len(), membership.missing),
        (0, 512),
        "shards are not taken from a node"
    );
    even_out(&one);
    assert_eq!(held(&[&one, &two]), [512, 512]);
    // The second node stops without a word.
    std::thread::sleep(short + Duration::from_millis(200));
    let membership = one.renew().unwrap();
    assert_eq!((membership.shards.len(), membership.nodes, membership.surplus), (1_024, 1, 0));
    // It gets a new lease, and nothing of what it had.
    assert_eq!(held(&[&two]), [0]);
    even_out(&one);
    assert_eq!(held(&[&two, &one]), [512, 512]);
    one.leave().unwrap();
    assert_eq!(held(&[&two]), [1_024], "a node that leaves is not waited for");
}

#[test]
fn a_node_without_the_role_gets_no_shards() {
    let Some(programs) = provided("a_node_without_the_role_gets_no_shards", PROGRAMS) else {
        return;
    };
    let server = Postgres::start(&programs);
    let url = server.create("roles");
    let database = PostgresOptions::default().connect(&url).expect("the store opens");
    let roles = NodeRoles::parse(&["publish", "watch"]).unwrap();
    let lease = Duration::from_secs(600);
    let other = NodeOptions { name: "other".to_owned(), lease, roles };
    let other = database.hub(other).expect("the store opens");
    let membership = other.renew().unwrap();
    assert_eq!((membership.shards.len(), membership.missing, membership.nodes), (0, 0, 1));
    let [one, two] = ["one", "two"].map(|name| node(&url, name, lease));
    assert_eq!(held(&[&one, &other]), [1_024, 0]);
    assert_eq!(two.renew().unwrap().missing, 512, "the part of the other node is not counted");
    even_out(&one);
    assert_eq!(held(&[&other, &two, &one]), [0, 512, 512]);
    let found = database.inspect(Timestamp::from_micros(0)).unwrap().nodes;
    let roles = found.iter().map(|node| (&*node.name, node.roles.join(","))).collect::<Vec<_>>();
    assert_eq!(
        roles,
        [
            ("one", "publish,api,hub,watch".to_owned()),
            ("other", "publish,watch".to_owned()),
            ("two", "publish,api,hub,watch".to_owned()),
        ]
    );
}

#[test]
fn nodes_with_unequal_parts_lack_nothing() {
    let name = "nodes_with_unequal_parts_lack_nothing";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("parts");
    let [one, two, three] =
        ["one", "two", "three"].map(|name| node(&url, name, Duration::from_secs(600)));
    assert_eq!(held(&[&one]), [1_024]);
    assert_eq!(two.renew().unwrap().missing, 512);
    assert_eq!(three.renew().unwrap().missing, 340);
    even_out(&one);
    assert_eq!(held(&[&two, &three, &one]), [342, 340, 342]);
    let nodes = [&one, &two, &three].map(|node| node.renew().unwrap());
    assert!(nodes.iter().all(|node| node.missing == 0 && node.surplus == 0), "{nodes:?}");
}

#[test]
fn a_node_whose_lease_is_over_moves_no_cursor() {
    let name = "a_node_whose_lease_is_over_moves_no_cursor";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("fence");
    let lease = Duration::from_millis(500);
    let (old, new) = (node(&url, "old", lease), node(&url, "new", Duration::from_secs(60)));
    let topic = old.open_topic("http://example.org/topic").unwrap();
    for number in 0..9 {
        publish(&old, topic, bytes(&number.to_string())).unwrap();
    }
    let found = old.put_target(target(topic, "http://example.org/callback".into())).unwrap();
    assert_eq!(held(&[&old]), [1_024]);
    assert_eq!(old.save_progress(vec![progress(&found, 3)]).unwrap(), []);
    assert_eq!(
        new.save_progress(vec![progress(&found, 4)]).unwrap(),
        [],
        "a node without a lease is an operator"
    );
    new.renew().unwrap();
    assert_eq!(
        new.save_progress(vec![progress(&found, 5)]).unwrap(),
        [found.id],
        "the shard is not its own"
    );
    std::thread::sleep(lease + Duration::from_millis(100));
    assert_eq!(
        old.save_progress(vec![progress(&found, 6)]).unwrap(),
        [found.id],
        "the lease is over"
    );
    assert_eq!(held(&[&new]), [1_024]);
    assert_eq!(old.save_progress(vec![progress(&found, 7)]).unwrap(), [found.id]);
    assert_eq!(new.save_progress(vec![progress(&found, 8)]).unwrap(), []);
    assert_eq!(new.target(found.id).unwrap().unwrap().cursor, Offset(8));
}

#[test]
fn a_node_reads_what_the_others_change() {
    let name = "a_node_reads_what_the_others_change";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("changes");
    let long = Duration::from_secs(60);
    let (one, two) = (node(&url, "one", long), node(&url, "two", long));
    let shards = one.renew().unwrap().shards;
    let start = one.revision().unwrap();
    let topic = two.open_topic("http://example.org/topic").unwrap();
    publish(&two, topic, bytes("a")).unwrap();
    let first = two.put_target(target(topic, "http://example.org/1".into())).unwrap();
    let second = two.put_target(target(topic, "http://example.org/2".into())).unwrap();
    assert!(two.end_target(second.id, Ending::ByHand).unwrap());
    let asked = NewVerification {
        topic_url: "http://example.org/topic".into(),
        callback: "http://example.org/1".into(),
        mode: VerificationMode::Subscribe,
        secret: None,
        lease_seconds: None,
        challenge: "c".into(),
        reason: None,
        next_at: Timestamp::from_micros(0),
    };
    let (sender, receiver) = channel();
    two.put_verification_then(asked, Box::new(move |result| sender.send(result).unwrap()));
    let verification = receiver.recv().unwrap().unwrap();
    assert_eq!(
        HubShard::of_verification(verification),
        HubShard::of_target(first.id),
        "one node verifies a callback and delivers to it"
    );
    let changes = one.changes_after(start, &shards).unwrap().unwrap();
    assert_eq!(changes.revision, one.revision().unwrap());
    assert_eq!(changes.topics, [(topic, "http://example.org/topic".to_owned(), Offset(1))]);
    let targets: Vec<_> = changes.targets.iter().map(|one| (one.target.id, one.replayed)).collect();
    assert_eq!(targets, [(first.id, false)]);
    assert_eq!(changes.ended, [second.id]);
    let asked: Vec<_> = changes.verifications.iter().map(|one| one.id).collect();
    assert_eq!(asked, [verification]);
    // Progress is not a change, and other shards are not shown.
    let before = one.revision().unwrap();
    one.save_progress(vec![progress(&first, 1)]).unwrap();
    assert_eq!(one.revision().unwrap(), before);
    let others: Vec<_> =
        shards.iter().copied().filter(|shard| *shard != HubShard::of_target(first.id)).collect();
    let changes = one.changes_after(start, &others).unwrap().unwrap();
    assert_eq!((changes.targets.len(), changes.verifications.len()), (0, 0));
    two.replay(first.id, Offset(0)).unwrap().unwrap();
    let changes = one.changes_after(before, &shards).unwrap().unwrap();
    assert_eq!((changes.targets.len(), changes.targets[0].replayed), (1, true));
    // A failover lost the known change, and others used its number again.
    let lost = HubRevision { stamp: before.stamp ^ 1, ..before };
    assert_eq!(one.changes_after(lost, &shards).unwrap(), None);
    let future = HubRevision { number: u64::MAX >> 1, stamp: 1 };
    assert_eq!(one.changes_after(future, &shards).unwrap(), None);
    let shard = HubShard::of_target(first.id);
    assert_eq!(
        one.targets_in(shard, TargetId(0), 10).unwrap(),
        [two.target(first.id).unwrap().unwrap()]
    );
    assert_eq!(one.verifications_in(shard, VerificationId(0), 10).unwrap().len(), 1);
    assert_eq!(one.targets_in(shard, first.id, 10).unwrap(), []);
}

#[test]
fn nodes_publish_in_one_topic_without_gaps() {
    const EACH: u64 = 300;
    let name = "nodes_publish_in_one_topic_without_gaps";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("publishers");
    let nodes: Vec<PostgresHub> =
        (0..3).map(|number| node(&url, &number.to_string(), Duration::from_secs(60))).collect();
    let topic = nodes[0].open_topic("http://example.org/topic").unwrap();
    std::thread::scope(|scope| {
        for (number, node) in nodes.iter().enumerate() {
            scope.spawn(move || {
                for count in 0..EACH {
                    publish(node, topic, bytes(&format!("{number}/{count}"))).unwrap();
                }
            });
        }
        // A reader that follows the heads never finds a gap.
        scope.spawn(|| {
            let mut seen = Offset(0);
            while seen.0 < 3 * EACH {
                let page = nodes[1].read(topic, seen, 100).unwrap();
                for notification in page {
                    assert_eq!(notification.offset.0, seen.0 + 1);
                    seen = notification.offset;
                }
            }
        });
    });
    let mut bodies = Vec::new();
    let mut after = Offset(0);
    loop {
        let page = nodes[2].read(topic, after, 500).unwrap();
        let Some(last) = page.last() else { break };
        after = last.offset;
        for notification in page {
            let Payload::Bytes(body) = notification.content.payload else { panic!("bytes") };
            bodies.push(String::from_utf8(body.to_vec()).unwrap());
        }
    }
    for number in 0..3 {
        let prefix = format!("{number}/");
        let own: Vec<_> = bodies.iter().filter(|body| body.starts_with(&prefix)).collect();
        let expected: Vec<_> = (0..EACH).map(|count| format!("{number}/{count}")).collect();
        assert_eq!(own, expected.iter().collect::<Vec<_>>(), "in the order of the calls");
    }
}

#[test]
fn a_crash_loses_no_notification_and_no_progress() {
    let name = "a_crash_loses_no_notification_and_no_progress";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let mut server = Postgres::start(&programs);
    let url = server.create("crash");
    let hub = node(&url, "one", Duration::from_secs(60));
    let topic = hub.open_topic("http://example.org/topic").unwrap();
    let found = hub.put_target(target(topic, "http://example.org/callback".into())).unwrap();
    hub.renew().unwrap();
    let (mut confirmed, mut cursor) = (0, 0);
    for round in 0..3 {
        let start = cursor;
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let (mut published, mut saved) = (Vec::new(), start);
                for number in 0..200 {
                    published
                        .extend(publish(&hub, topic, bytes(&format!("{round}/{number}"))).ok());
                    if let Some(Offset(last)) = published.last()
                        && hub
                            .save_progress(vec![progress(&found, *last)])
                            .is_ok_and(|stale| stale.is_empty())
                    {
                        saved = *last;
                    }
                }
                (published, saved)
            });
            std::thread::sleep(Duration::from_millis(150));
            server.crash();
            let (published, saved) = writer.join().unwrap();
            confirmed += published.len() as u64;
            cursor = saved;
        });
    }
    let head = hub.head(topic).unwrap().0;
    assert!(head >= confirmed && confirmed > 300, "{confirmed} of {head}");
    assert_eq!(hub.read(topic, Offset(0), 10_000).unwrap().len() as u64, head, "without gaps");
    assert!(hub.target(found.id).unwrap().unwrap().cursor >= Offset(cursor));
}

#[test]
fn records_are_replaced_by_one_node_at_a_time() {
    const NODES: usize = 3;
    const EACH: usize = 20;
    let name = "records_are_replaced_by_one_node_at_a_time";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("records");
    let database = PostgresOptions::default().connect(&url).unwrap();
    let records = database.records();
    assert_eq!(records.record("n").unwrap(), None);
    assert_eq!(records.record_revision("n").unwrap(), 0);
    assert!(!records.replace_record("n", 1, b"x").unwrap(), "there is no record with this number");
    std::thread::scope(|scope| {
        for _ in 0..NODES {
            let records = PostgresOptions::default().connect(&url).unwrap().records();
            scope.spawn(move || {
                for _ in 0..EACH {
                    loop {
                        let known = records.record("n").unwrap();
                        let revision = known.as_ref().map_or(0, |known| known.revision);
                        let bytes = vec![b'x'; known.map_or(0, |known| known.bytes.len()) + 1];
                        if records.replace_record("n", revision, &bytes).unwrap() {
                            break;
                        }
                    }
                }
            });
        }
    });
    let last = records.record("n").unwrap().unwrap();
    assert_eq!(last.bytes.len(), NODES * EACH, "no change is lost");
    let large = vec![0; abreast_core::RECORD_BYTES_MAX + 1];
    let refused = records.replace_record("n", last.revision, &large).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Refused);
}

#[test]
fn a_lost_answer_to_a_commit_doubles_no_notification() {
    const NOTIFICATIONS: u64 = 60;
    let name = "a_lost_answer_to_a_commit_doubles_no_notification";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("lossy");
    let topic = node(&url, "one", Duration::from_secs(60)).open_topic("http://a.example/").unwrap();
    // A commit takes longer than the pause before the next attempt, which then waits for its lock.
    server.sql(
        "lossy",
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN PERFORM pg_sleep(0.05); RETURN NULL; END'; \
         CREATE CONSTRAINT TRIGGER slow AFTER UPDATE ON abreast.hub DEFERRABLE INITIALLY DEFERRED \
         FOR EACH ROW EXECUTE FUNCTION slow()",
    );
    let relay = Relay::start(server.port(), 8, seed(3));
    let lossy = relay.url(&url);
    let hub = node(&lossy, "one", Duration::from_secs(60));
    for number in 1..=NOTIFICATIONS {
        assert_eq!(publish(&hub, topic, bytes(&number.to_string())).unwrap(), Offset(number));
    }
    assert!(relay.lost() > 2, "answers are lost");
    let direct = node(&url, "two", Duration::from_secs(60));
    assert_eq!(direct.read(topic, Offset(0), 1_000).unwrap().len() as u64, NOTIFICATIONS);
}

#[test]
fn progress_beyond_lost_notifications_is_refused() {
    let name = "progress_beyond_lost_notifications_is_refused";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("beyond");
    let hub = node(&url, "one", Duration::from_secs(60));
    let topic = hub.open_topic("http://example.org/topic").unwrap();
    for number in 0..3 {
        publish(&hub, topic, bytes(&number.to_string())).unwrap();
    }
    let found = hub.put_target(target(topic, "http://example.org/callback".into())).unwrap();
    hub.renew().unwrap();
    assert_eq!(hub.save_progress(vec![progress(&found, 4)]).unwrap(), [found.id]);
    assert_eq!(hub.save_progress(vec![progress(&found, 3)]).unwrap(), []);
}

#[test]
fn a_node_notices_that_its_own_notification_was_lost() {
    type Meanwhile = fn(&PostgresHub, TopicId);
    let name = "a_node_notices_that_its_own_notification_was_lost";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let lease = Duration::from_secs(600);
    // How many notifications others record, and what the node does before it asks for changes.
    let cases: [(&str, u64, Meanwhile); 5] = [
        ("nothing", 1, |_, _| {}),
        ("polls the same number", 1, |hub, _| {
            hub.revision().unwrap();
        }),
        ("polls", 5, |hub, _| {
            hub.revision().unwrap();
        }),
        ("reads", 5, |hub, topic| {
            hub.head(topic).unwrap();
            hub.topics(TopicId(0), 10).unwrap();
            (0..1_024).for_each(|shard| drop(hub.targets_in(HubShard(shard), TargetId(0), 10)));
        }),
        ("publishes", 5, |hub, topic| {
            publish(hub, topic, bytes("own")).unwrap();
        }),
    ];
    let disconnect =
        "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = 'own'";
    for (case, others, meanwhile) in cases {
        let url = server.create("own");
        let hub = node(&url, "one", lease);
        let topic = hub.open_topic("http://example.org/topic").unwrap();
        let found = hub.put_target(target(topic, "http://example.org/callback".into())).unwrap();
        let shards = hub.renew().unwrap().shards;
        let known = hub.revision().unwrap();
        server.sql("postgres", disconnect);
        server.sql("postgres", "CREATE DATABASE kept TEMPLATE own");
        // The node reads no changes between its notification and the failover.
        assert_eq!(publish(&hub, topic, bytes("lost")).unwrap(), Offset(1));
        server.sql("postgres", "ALTER DATABASE own ALLOW_CONNECTIONS false");
        server.sql("postgres", disconnect);
        server.sql("postgres", "DROP DATABASE own");
        server.sql("postgres", "ALTER DATABASE kept RENAME TO own");
        let other = node(&url, "two", lease);
        for number in 1..=others {
            assert_eq!(publish(&other, topic, bytes("new")).unwrap(), Offset(number));
        }
        meanwhile(&hub, topic);
        let refused = hub.save_progress(vec![progress(&found, 1)]).unwrap();
        assert_eq!(refused, [found.id], "{case}");
        assert_eq!(hub.changes_after(known, &shards).unwrap(), None, "{case}");
        hub.start_again();
        assert_eq!(hub.changes_after(known, &shards).unwrap().unwrap().topics.len(), 1, "{case}");
        assert_eq!(hub.save_progress(vec![progress(&found, 1)]).unwrap(), [], "{case}");
        drop((hub, other));
        server.sql("postgres", "DROP DATABASE own WITH (FORCE)");
    }
}

#[test]
fn numbers_that_a_database_lost_are_not_used_again() {
    let name = "numbers_that_a_database_lost_are_not_used_again";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start(&programs);
    let url = server.create("numbers");
    let make = |url: &str| {
        let hub = node(url, "one", Duration::from_secs(60));
        let topic = hub.open_topic("http://example.org/lost").unwrap();
        let found = hub.put_target(target(topic, "http://example.org/callback".into())).unwrap();
        hub.renew().unwrap();
        let owner = server.sql(url.rsplit('/').next().unwrap(), "SELECT id FROM abreast.nodes");
        (topic, found.id, owner)
    };
    drop(node(&url, "one", Duration::from_secs(60)));
    server.sql("postgres", "CREATE DATABASE restored TEMPLATE numbers");
    let (lost, restored) = (make(&url), make(&server.url("restored")));
    // The steps are random: all three are the same once in 256 × 256 × 2^63 runs.
    assert!(lost.0 != restored.0 || lost.1 != restored.1, "{lost:?}");
    assert_ne!(lost.2, restored.2, "a node is not mistaken for another one");
}

#[test]
fn every_statement_of_a_hub_finds_its_rows_by_an_index() {
    const TARGETS: u64 = 5_000;
    let name = "every_statement_of_a_hub_finds_its_rows_by_an_index";
    let Some(programs) = provided(name, PROGRAMS) else { return };
    let server = Postgres::start_with(&programs, &plans::SETTINGS);
    let url = server.create("plans");
    let hub = node(&url, "one", Duration::from_secs(60));
    let topic = hub.open_topic("http://example.org/topic").unwrap();
    let (sender, receiver) = channel();
    let ask = |number: u64| {
        let sender = sender.clone();
        let new = target(topic, format!("http://example.org/{number}"));
        hub.put_target_then(new, Box::new(move |made| sender.send(made.unwrap()).unwrap()));
    };
    (0..TARGETS).for_each(ask);
    let targets: Vec<Target> = receiver.iter().take(TARGETS as usize).collect();
    for number in 0..2_000 {
        publish(&hub, topic, bytes(&number.to_string())).unwrap();
    }
    let failed = |target: &Target, cursor| Progress {
        last: Some(attempt(cursor, Some("refused"))),
        dead: Some(DeadLetter::one(Offset(cursor), "gave up", Timestamp::from_micros(1))),
        attempts: 1,
        ..progress(target, cursor)
    };
    for part in targets.chunks(500) {
        hub.save_progress(part.iter().map(|one| failed(one, 1)).collect()).unwrap();
    }
    for number in 0..500 {
        ask_verification(&hub, &format!("http://example.org/{number}"));
    }
    let before = server.log().len();
    for analyzed in [false, true] {
        if analyzed {
            server.sql("plans", "ANALYZE");
            // Before, the planner expects six targets of a topic, and sorts them.
            assert_eq!(hub.targets_of(topic, TargetId(0), 10).unwrap().len(), 10);
        }
        use_all(&hub, topic, &targets[if analyzed { 0..10 } else { 10..20 }]);
    }
    // One row for each node, and for each shard.
    plans::check(&server.log()[before..], 60, &["hub", "nodes", "hub_shards"]);
}

fn attempt(offset: u64, error: Option<&str>) -> Attempt {
    Attempt {
        offset: Offset(offset),
        number: 1,
        time: Timestamp::from_micros(offset as i64),
        status: Some(503),
        error: error.map(str::to_owned),
        took: Duration::from_millis(1),
    }
}

fn ask_verification(hub: &PostgresHub, callback: &str) -> VerificationId {
    let new = NewVerification {
        topic_url: "http://example.org/topic".into(),
        callback: callback.into(),
        mode: VerificationMode::Unsubscribe,
        secret: None,
        lease_seconds: None,
        challenge: "c".into(),
        reason: None,
        next_at: Timestamp::from_micros(0),
    };
    let (sender, receiver) = channel();
    hub.put_verification_then(new, Box::new(move |result| sender.send(result).unwrap()));
    receiver.recv().unwrap().unwrap()
}

/// Uses every method of the store once, except those that count or describe all rows.
fn use_all(hub: &PostgresHub, topic: TopicId, targets: &[Target]) {
    let membership = hub.renew().unwrap();
    hub.give_back(&membership.shards[..1]).unwrap();
    let shards = hub.renew().unwrap().shards;
    let start = hub.revision().unwrap();
    assert_eq!(hub.open_topic("http://example.org/topic").unwrap(), topic);
    hub.open_topic(&format!("http://example.org/{}", start.number)).unwrap();
    let head = publish(hub, topic, bytes("more")).unwrap();
    assert_eq!(hub.head(topic).unwrap(), head);
    assert_eq!(hub.read(topic, Offset(1_500), 10).unwrap().len(), 10);
    hub.last(topic).unwrap().unwrap();
    hub.accepted_before(topic, Timestamp::from_micros(1)).unwrap();
    hub.trim(topic, Offset(start.number % 100)).unwrap();
    hub.find_topic("http://example.org/topic").unwrap().unwrap();
    hub.topic(topic).unwrap().unwrap();
    hub.topics(TopicId(0), 10).unwrap();
    let [first, second, third, ..] = targets else { panic!("enough targets") };
    let renewed = hub.put_target(target(topic, first.address.clone())).unwrap();
    assert_eq!(renewed.id, first.id);
    let success = Progress { last: Some(attempt(5, None)), ..progress(&renewed, 5) };
    let failure = Progress { last: Some(attempt(6, Some("no"))), ..progress(second, 6) };
    assert_eq!(hub.save_progress(vec![success, failure]).unwrap(), []);
    hub.replay(second.id, Offset(3)).unwrap().unwrap();
    assert!(hub.end_target(third.id, Ending::Gone).unwrap());
    hub.target(second.id).unwrap().unwrap();
    hub.find_target(topic, &second.address, TargetKind::Subscription).unwrap().unwrap();
    assert_eq!(hub.all_targets(first.id, 10).unwrap().len(), 10);
    hub.leases_over(Timestamp::from_micros(1), 10).unwrap();
    assert!(!hub.attempts(second.id).unwrap().is_empty());
    assert!(!hub.dead_letters(second.id, Offset(0), 10).unwrap().is_empty());
    hub.ended_targets(i64::MAX, 10).unwrap();
    let asked = ask_verification(hub, &second.address);
    let (sender, receiver) = channel();
    let done = Box::new(move |result| sender.send(result).unwrap());
    hub.retry_verification_then(asked, 1, Timestamp::from_micros(1), done);
    receiver.recv().unwrap().unwrap();
    hub.verification(asked).unwrap().unwrap();
    hub.verifications(asked, 10).unwrap();
    assert!(hub.finish_verification(asked, Settled::Unsubscribed).unwrap().is_some());
    let changes = hub.changes_after(start, &shards).unwrap().unwrap();
    assert!(!changes.topics.is_empty() && !changes.ended.is_empty());
    let shard = HubShard::of_target(first.id);
    hub.targets_in(shard, TargetId(0), 10).unwrap();
    hub.verifications_in(shard, VerificationId(0), 10).unwrap();
}

/// Some services distribute the tables of a database over servers: they need keys that start with
/// the shard or the topic, and have no locks of a session, no signals, and costly sequences.
#[test]
fn tables_of_a_hub_can_be_distributed_by_shard() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let tables = fs::read_to_string(folder.join("migrations/postgres_hub_0001.sql")).unwrap();
    let mut texts = vec![tables.clone()];
    for part in ["hub/postgres", "postgres"] {
        let files = fs::read_dir(folder.join(part)).unwrap();
        texts.extend(files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()));
    }
    assert!(texts.len() > 15);
    for text in texts {
        for word in ["pg_advisory", "NOTIFY", "pg_notify", "LISTEN", "nextval", "SERIAL"] {
            assert!(!text.contains(word), "{word}");
        }
    }
    let key_of = |table: &str| {
        let (_, text) = tables.split_once(&format!("CREATE TABLE abreast.{table} (")).unwrap();
        let text = text.split("\n)").next().unwrap();
        let (_, key) = text.rsplit_once("PRIMARY KEY (").unwrap();
        key.split([',', ')']).next().unwrap().to_owned()
    };
    for table in ["targets", "progress", "attempts", "dead", "verifications"] {
        assert_eq!(key_of(table), "shard", "{table}");
    }
    assert_eq!(key_of("notifications"), "topic_id");
}
