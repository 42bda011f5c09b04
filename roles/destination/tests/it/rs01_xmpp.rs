//! Sources of ResourceSync 0.1 that push change sets over XMPP: one that continues is applied without
//! a request for the change set, also after documents had to be read.

use crate::push::{Follower, at_usual_pace};
use crate::rs01_callbacks::{follows, pushed};
use crate::rs01_source::OldSource;
use abreast_destination::{SyncOptions, XmppOptions};
use abreast_testkit::eventually;
use abreast_testkit::xmpp::scripted::{Scripted, accept, event};
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, SERVICE};
use abreast_xmpp::Account;
use std::time::{Duration, Instant};

/// A Source, its service of nodes, and a copy that follows its node.
struct World {
    source: OldSource,
    server: Scripted,
    copy: Follower,
    /// The last item.
    id: u64,
}

fn link_to(node: &str) -> String {
    format!(
        "<xhtml:link href=\"xmpp:{SERVICE}\" rs:protocol=\"http://xmpp.org/extensions/xep-0060.html\" \
         rs:pubsubnode=\"{node}\"/>\n"
    )
}

impl World {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut SyncOptions)) -> Self {
        let mut source = OldSource::new();
        source.links = link_to("papers");
        source.set("/d/first", "first");
        source.snapshot();
        let server = Scripted::start(accept);
        let mut account = Account::new(&format!("reader@{DOMAIN}"), PASSWORD).unwrap();
        account.server = Some(server.address());
        let copy = Follower::at(&source.server, "/s.xml", |options| {
            options.xmpp = Some(XmppOptions { account, node: None });
            change(options);
        });
        let world = Self { source, server, copy, id: 0 };
        world.is_joined(1);
        world
    }

    /// Waits until the copy has subscribed so many times, and has read the documents after that.
    fn is_joined(&self, times: usize) {
        eventually("the copy subscribes", || self.copy.count("push.xmpp") >= times);
        eventually("the documents are read", || self.copy.runs() > times);
        follows(&self.source, &self.copy);
    }

    /// Pushes the last change; `after` is the time of the previous change.
    fn push(&mut self, after: &str, path: &str) {
        self.id += 1;
        let document = pushed(&self.source, after, path);
        let payload = document.split_once("?>").unwrap().1;
        self.server.send(&event(SERVICE, "papers", &self.id.to_string(), payload));
        follows(&self.source, &self.copy);
    }

    /// Changes are pushed, and applied as they came.
    fn applies(&mut self) {
        self.source.server.take_log();
        for number in 0..3 {
            let after = self.source.now();
            self.source.set("/d/pushed", &format!("{number} of {}", self.id));
            self.push(&after, "/d/pushed");
            // Services that store a single item retract the previous one.
            let retracted = format!(
                "<message from='{SERVICE}'><event xmlns='http://jabber.org/protocol/pubsub#event'><items node='papers'>\
                 <retract id='{}'/></items></event></message>",
                self.id - 1
            );
            self.server.send(&retracted);
        }
        assert_eq!(self.requests(), 0, "the change set was requested");
    }

    /// Requests for the current change set since the last call.
    fn requests(&self) -> usize {
        self.source.server.take_log().iter().filter(|path| *path == "/c.xml").count()
    }
}

#[test]
fn change_sets_are_applied_as_they_come_again_after_each_gap() {
    let mut world = World::new();
    world.applies();
    // An item was lost: the documents are read once.
    world.source.set("/d/lost", "lost");
    let after = world.source.now();
    world.source.set("/d/next", "next");
    world.push(&after, "/d/next");
    assert_eq!(world.requests(), 1);
    world.applies();
    // A deletion is read in the documents.
    let after = world.source.now();
    world.source.delete("/d/lost");
    world.push(&after, "/d/lost");
    assert_eq!(world.requests(), 1);
    world.applies();
    // The connection was lost, with a change.
    world.server.disconnect();
    world.source.set("/d/meanwhile", "meanwhile");
    world.is_joined(2);
    world.applies();
    // The Source counts from the beginning again.
    world.id = 0;
    let after = world.source.now();
    world.source.set("/d/again", "again");
    world.push(&after, "/d/again");
    world.applies();
}

#[test]
fn a_node_that_brings_items_is_followed_again_soon() {
    let mut world = World::new();
    let begun = Instant::now();
    for round in 2..8 {
        let after = world.source.now();
        world.source.set("/d/pushed", &format!("in round {round}"));
        world.push(&after, "/d/pushed");
        world.server.disconnect();
        world.is_joined(round);
    }
    // Pauses that double would be 30 s at least.
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn a_node_that_was_renamed_or_removed_is_looked_up_again() {
    let mut world = World::with(|options| {
        options.interval = Duration::from_millis(100);
        // The requests that follow a subscription must not read later changes of this test.
        at_usual_pace(options);
    });
    assert!(!world.copy.has_told("push.silent"));
    world.source.links = link_to("renamed");
    world.source.snapshot();
    world.source.set("/d/unpushed", "found by a poll");
    world.is_joined(2);
    assert!(world.copy.has_told("push.silent"));
    let after = world.source.now();
    world.source.set("/d/pushed", "to the new node");
    let document = pushed(&world.source, &after, "/d/pushed");
    world.server.send(&event(SERVICE, "renamed", "1", document.split_once("?>").unwrap().1));
    follows(&world.source, &world.copy);

    world.source.links = String::new();
    world.source.snapshot();
    world.source.set("/d/unpushed", "found by a poll again");
    eventually("nothing is pushed any more", || world.copy.has_told("push.none"));
    follows(&world.source, &world.copy);
}
