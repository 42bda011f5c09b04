//! Nodes of a service that fails as a script wants: what arrives, in which order, and how often is tried.

use crate::nodes::{Service, node};
use abreast_core::hub::TargetId;
use abreast_testkit::xmpp::scripted::{
    POLICY_VIOLATION, Scripted, accept, attribute, error, result,
};
use abreast_testkit::{eventually, eventually_some};
use abreast_xmpp::Account;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// An item that the service has: its name, the positions in it, and its length.
type Taken = (u64, Vec<u64>, usize);

/// What it answers about a node that is ours.
const OWNED: [(&str, &str); 2] = [
    (
        "<configure node",
        "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><configure node='papers'><x xmlns='jabber:x:data' type='form'>\
         <field var='pubsub#publish_model'><value>publishers</value></field></x></configure></pubsub>",
    ),
    (
        "<affiliations",
        "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'><affiliations node='papers'>\
         <affiliation jid='source@xmpp.test' affiliation='owner'/></affiliations></pubsub>",
    ),
];

/// What the service was sent.
#[derive(Default)]
struct Record {
    items: Vec<Taken>,
    /// Attempts to publish, those that failed too.
    attempts: Vec<Instant>,
    created: usize,
    /// Whether the node is there.
    exists: bool,
    /// The connection ends before the answer to the next item that it takes.
    ends: bool,
}

/// A service of one node.
#[derive(Clone, Default)]
struct Fake(Arc<Mutex<Record>>);

impl Fake {
    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.lock().unwrap()
    }

    /// Starts it; `fails` returns the answer to attempts to publish that fail, by their number.
    fn start(
        &self,
        limit: usize,
        mut fails: impl FnMut(usize, &str) -> Option<String> + Send + 'static,
    ) -> Account {
        let fake = self.clone();
        let server = Scripted::with_limit(limit, move |stanza| {
            let mut record = fake.lock();
            if stanza.contains("<create") {
                let existed = std::mem::replace(&mut record.exists, true);
                record.created += 1;
                if existed {
                    return error(stanza, "cancel", "conflict");
                }
            }
            if let (true, Some((id, ..))) = (stanza.contains("<items"), record.items.last()) {
                return result(
                    stanza,
                    &format!(
                        "<pubsub xmlns='http://jabber.org/protocol/pubsub'><items node='papers'><item id='{id}'/></items></pubsub>"
                    ),
                );
            }
            if let Some(answer) = OWNED.iter().find(|(request, _)| stanza.contains(request)) {
                return result(stanza, answer.1);
            }
            if !stanza.contains("<publish") {
                return accept(stanza);
            }
            record.attempts.push(Instant::now());
            if !record.exists {
                return error(stanza, "cancel", "item-not-found");
            }
            if let Some(answer) = fails(record.attempts.len(), stanza) {
                return answer;
            }
            record.items.push(taken(stanza));
            if std::mem::take(&mut record.ends) {
                return "</stream:stream>".to_owned();
            }
            accept(stanza)
        });
        let mut account = Account::new("source@xmpp.test", "hush").unwrap();
        account.server = Some(server.address());
        account
    }

    /// The positions of all items, in the order of their arrival.
    fn positions(&self) -> Vec<u64> {
        self.lock().items.iter().flat_map(|(_, positions, _)| positions.clone()).collect()
    }

    fn ids(&self) -> Vec<u64> {
        self.lock().items.iter().map(|(id, ..)| *id).collect()
    }
}

fn taken(stanza: &str) -> Taken {
    let item = stanza.split_once("<item").unwrap().1;
    let positions = item.split("http://example.org/").skip(1);
    let positions = positions.map(|part| part.split('/').next().unwrap().parse().unwrap());
    (attribute(item, "id").parse().unwrap(), positions.collect(), stanza.len())
}

#[test]
fn order_is_kept_whatever_fails() {
    let fake = Fake::default();
    let account = fake.start(usize::MAX, |number, stanza| match number {
        // The connection ends, as does the one after it.
        4 | 5 => Some("</stream:stream>".to_owned()),
        9 => Some(error(stanza, "cancel", "internal-server-error")),
        _ if number % 3 == 0 => Some(error(stanza, "wait", "resource-constraint")),
        _ => None,
    });
    let service = Service::start(account, 10);
    for position in 0..20 {
        service.publish(position, position + 1);
    }
    service.wait_until_delivered();
    assert_eq!(fake.positions(), (1..=20).collect::<Vec<_>>());
    // Items are named by their last changes.
    let last = |(id, positions, _): &Taken| positions.last() == Some(id);
    assert!(fake.lock().items.iter().all(last), "{:?}", fake.ids());
    assert!(service.hub.failing_hubs().is_empty());
}

#[test]
fn notifications_that_wait_are_published_together() {
    let (fake, accepts) = (Fake::default(), Arc::new(AtomicBool::new(false)));
    let own = Arc::clone(&accepts);
    let account = fake.start(usize::MAX, move |_, stanza| {
        let refuses = !own.load(Ordering::Relaxed);
        refuses.then(|| error(stanza, "wait", "resource-constraint"))
    });
    let service = Service::start(account, 10);
    for position in 0..900 {
        service.publish(position, position + 1);
    }
    accepts.store(true, Ordering::Relaxed);
    service.wait_until_delivered();
    assert!(fake.positions().into_iter().eq(1..=900), "{:?}", fake.positions());
    assert!(fake.ids().len() < 5, "{:?}", fake.ids());
}

#[test]
fn what_a_node_has_does_not_come_again_with_what_follows() {
    let fake = Fake::default();
    let service = Service::start(fake.start(usize::MAX, |_, _| None), 10);
    let mut done = 0;
    for last in [4, 9, 16] {
        fake.lock().ends = true;
        service.publish(done, done + 1);
        eventually("an item is taken", || !fake.lock().ends);
        // Meanwhile others wait.
        service.publish(done + 1, last);
        service.wait_until_delivered();
        done = last;
    }
    assert_eq!(fake.positions(), (1..=16).collect::<Vec<_>>());
    assert_eq!(fake.ids(), [1, 4, 5, 9, 10, 16]);
}

#[test]
fn a_node_gets_only_what_follows_its_cursor() {
    let fake = Fake::default();
    let account = fake.start(usize::MAX, |_, _| None);
    let mut service = Service::start(account.clone(), 10);
    for last in [5, 7, 12] {
        let before = fake.ids().last().copied().unwrap_or_default();
        service.publish(before, last);
        service.wait_until_delivered();
        service = service.restart(account.clone(), 10);
    }
    // Items are named by the position of their last change.
    assert_eq!(fake.ids(), [5, 7, 12]);
    assert_eq!(fake.positions(), (1..=12).collect::<Vec<_>>());
}

#[test]
fn a_node_exists_before_its_first_item_and_is_made_again() {
    let fake = Fake::default();
    let service = Service::start(fake.start(usize::MAX, |_, _| None), 10);
    eventually("the node is there", || fake.lock().exists);
    assert!(fake.lock().attempts.is_empty());
    service.publish(0, 1);
    service.wait_until_delivered();
    // Somebody deletes it.
    fake.lock().exists = false;
    service.publish(1, 2);
    service.wait_until_delivered();
    assert_eq!((fake.ids(), fake.lock().created), (vec![1, 2], 2));
}

#[test]
fn a_change_above_every_limit_is_announced_by_its_link() {
    let fake = Fake::default();
    let service = Service::start(fake.start(60_000, |_, _| None), 100);
    // Of these, the last one alone is too large.
    service.publish(999, 1_001);
    service.wait_until_delivered();
    let items = fake.lock().items.clone();
    let found: Vec<_> = items.iter().map(|(id, positions, _)| (*id, positions.clone())).collect();
    assert_eq!(found, [(1_000, vec![]), (1_001, vec![1_001])]);
}

#[test]
fn a_learned_limit_is_kept() {
    let fake = Fake::default();
    let service = Service::start(fake.start(60_000, |_, _| None), 100);
    service.publish(0, 999);
    service.wait_until_delivered();
    let connections = fake.lock().created;
    assert!(connections > 1, "the server ended at least one connection");
    service.publish(1_000, 1_999);
    service.wait_until_delivered();
    let record = fake.lock();
    assert_eq!(record.created, connections, "no other one was ended");
    let positions: Vec<u64> = record.items.iter().flat_map(|(_, list, _)| list.clone()).collect();
    assert!(positions.is_sorted() && positions.len() == 1_998, "{}", positions.len());
    assert!(record.items.iter().all(|(.., length)| *length <= 60_000));
}

#[test]
fn small_items_do_not_lower_the_limit() {
    let fake = Fake::default();
    let account =
        fake.start(usize::MAX, |number, _| (number <= 2).then(|| POLICY_VIOLATION.to_owned()));
    let service = Service::start(account, 100);
    service.publish(0, 1);
    service.wait_until_delivered();
    service.publish(1, 900);
    service.wait_until_delivered();
    let items = fake.lock().items.clone();
    assert_eq!(items.iter().map(|(id, ..)| *id).collect::<Vec<_>>(), [1, 900]);
}

#[test]
fn only_a_published_item_ends_a_pause() {
    let fake = Fake::default();
    // Everybody may log in, and the node is created; then the connection ends.
    let account =
        fake.start(usize::MAX, |number, _| (number <= 3).then(|| "</stream:stream>".to_owned()));
    let service = Service::start(account, 10);
    service.publish(0, 1);
    service.wait_until_delivered();
    let attempts = fake.lock().attempts.clone();
    let pauses: Vec<Duration> = attempts.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (pause, least) in pauses.iter().zip([1, 2, 4]) {
        assert!(*pause >= Duration::from_secs(least), "{pauses:?}");
    }
    assert_eq!(fake.ids(), [1]);
}

#[test]
fn a_node_of_others_is_shown_and_gets_nothing() {
    let published = Arc::new(Mutex::new(0));
    let count = Arc::clone(&published);
    let server = Scripted::start(move |stanza| {
        let owner = "http://jabber.org/protocol/pubsub#owner";
        let form = "<x xmlns='jabber:x:data' type='form'><field var='pubsub#publish_model'><value>open</value></field></x>";
        if stanza.contains("<create") {
            error(stanza, "cancel", "conflict")
        } else if stanza.contains("<configure") {
            result(
                stanza,
                &format!(
                    "<pubsub xmlns='{owner}'><configure node='papers'>{form}</configure></pubsub>"
                ),
            )
        } else {
            *count.lock().unwrap() += usize::from(stanza.contains("<publish"));
            accept(stanza)
        }
    });
    let mut account = Account::new("source@xmpp.test", "hush").unwrap();
    account.server = Some(server.address());
    let service = Service::start(account, 10);
    // Before the first change.
    let failing = || service.hub.failing_hubs().pop().filter(|failing| failing.status == Some(409));
    let shown = eventually_some("it is shown", failing);
    assert!(shown.refuses() && shown.to_string().contains(&node().to_string()), "{shown}");
    service.publish(0, 1);
    let why = eventually_some("an attempt", || {
        let attempts = service.hub.store().attempts(shown.target).unwrap();
        attempts.into_iter().find_map(|attempt| attempt.error)
    });
    assert!(why.contains("others may publish there"), "{why}");
    let target = service.hub.targets(None, TargetId(0), 1).unwrap().remove(0);
    assert_eq!((target.cursor.0, *published.lock().unwrap()), (0, 0));
}
