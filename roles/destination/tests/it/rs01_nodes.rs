//! Sources of ResourceSync 0.1 that publish to nodes of XMPP services.

use crate::push::{Follower, files};
use crate::rs01_source::OldSource;
use abreast_destination::XmppOptions;
use abreast_testkit::eventually;
use abreast_testkit::xmpp::scripted::{Scripted, accept, error};
use abreast_xmpp::{Account, Node};

const SERVICE: &str = "pubsub.xmpp.test";

/// An event without payload, as a service sends it.
fn event(id: &str) -> String {
    format!(
        "<message from='{SERVICE}'><event xmlns='http://jabber.org/protocol/pubsub#event'>\
         <items node='n'><item id='{id}'/></items></event></message>"
    )
}

#[test]
fn a_node_is_followed_whose_items_cannot_be_read() {
    for condition in ["feature-not-implemented", "forbidden", "service-unavailable"] {
        let mut source = OldSource::new();
        source.set("/d/first", "first");
        source.snapshot();
        let service = Scripted::start(move |stanza| {
            if stanza.contains("<items ") {
                error(stanza, "cancel", condition) + &event("7")
            } else {
                accept(stanza)
            }
        });
        let mut account = Account::new("source@xmpp.test", "secret").unwrap();
        account.server = Some(service.address());
        let node = Some(Node::new(SERVICE, "n").unwrap());
        let copy = Follower::at(&source.server, "/s.xml", |options| {
            options.xmpp = Some(XmppOptions { account, node });
        });
        eventually("the node is followed", || copy.has_told("push.xmpp"));
        eventually("the copy follows", || files(&copy.folder) == source.kept);
        assert!(!copy.has_told("push.broken"));
    }
}
