//! Nodes that exist already: they are used only where nobody else publishes to them.

use super::{account, node, program, scripted, session};
use abreast_testkit::xmpp::scripted::{Scripted, accept, error, result};
use abreast_testkit::xmpp::{DOMAIN, Prosody};
use abreast_xmpp::{ErrorKind, Session};

/// A service at which the node exists: with this publish model and affiliations of its owner's view, or
/// for those who are not its owner.
fn existing(model: &'static str, affiliations: Option<&'static str>) -> Scripted {
    Scripted::start(move |stanza| {
        let form = format!(
            "<x xmlns='jabber:x:data' type='form'><field var='pubsub#publish_model'><value>{model}</value></field></x>"
        );
        let owner = "http://jabber.org/protocol/pubsub#owner";
        if stanza.contains("<create") {
            error(stanza, "cancel", "conflict")
        } else if stanza.contains("<configure") && affiliations.is_some() {
            result(
                stanza,
                &format!("<pubsub xmlns='{owner}'><configure node='n'>{form}</configure></pubsub>"),
            )
        } else if stanza.contains("disco#info") && stanza.contains("node=") {
            result(
                stanza,
                &format!("<query xmlns='http://jabber.org/protocol/disco#info'>{form}</query>"),
            )
        } else if stanza.contains("<affiliations") {
            match affiliations {
                Some(list) if stanza.contains(owner) => result(
                    stanza,
                    &format!(
                        "<pubsub xmlns='{owner}'><affiliations node='n'>{list}</affiliations></pubsub>"
                    ),
                ),
                _ => error(stanza, "cancel", "service-unavailable"),
            }
        } else if stanza.contains("<configure") {
            error(stanza, "auth", "forbidden")
        } else {
            accept(stanza)
        }
    })
}

#[tokio::test]
async fn a_node_that_exists_is_checked() {
    let own = "<affiliation jid='source@xmpp.test' affiliation='owner'/>";
    let publisher = "<affiliation jid='a@xmpp.test' affiliation='owner'/>\
                     <affiliation jid='source@xmpp.test' affiliation='publisher'/>";
    let others = "<affiliation jid='a@xmpp.test' affiliation='owner'/>";
    for (model, affiliations, refused) in [
        ("publishers", Some(own), None),
        ("whitelist", Some(publisher), None),
        ("publishers", None, None),
        ("open", Some(own), Some("publish model `open`")),
        ("subscribers", None, Some("publish model `subscribers`")),
        ("publishers", Some(others), Some("belongs to others")),
        ("", None, Some("does not state who may publish")),
        ("", Some(own), None),
    ] {
        let server = existing(model, affiliations);
        let (session, _events) = Session::connect(&scripted(&server), "s").await.unwrap();
        let node = abreast_xmpp::Node::new("s", "n").unwrap();
        match (session.create(&node, "", "").await, refused) {
            (Ok(false), None) => {}
            (Err(error), Some(part)) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(error.to_string().contains(part) && error.help().is_some(), "{error}");
            }
            (found, _) => panic!("{model} {affiliations:?}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn a_node_of_others_is_not_used() {
    let Some(program) = program("a_node_of_others_is_not_used") else { return };
    let authority = abreast_testkit::tls::Authority::default();
    // Administrators may publish to each other's nodes.
    let admins = format!("admins = {{ \"source@{DOMAIN}\", \"stranger@{DOMAIN}\" }}");
    let certificate = authority.server(&[DOMAIN], false);
    let server = Prosody::start_with(&program, &certificate, authority.pem(), &admins);
    let (stranger, _events) = session(&server, "stranger").await;
    let theirs = node("theirs");
    assert!(stranger.create(&theirs, "", "").await.unwrap());
    let (source, _events) = session(&server, "source").await;
    let error = source.create(&theirs, "", "").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.to_string().contains("source@xmpp.test is not a publisher"), "{error}");
    // Our own one, over connections.
    assert!(source.create(&node("ours"), "", "").await.unwrap());
    let (again, _events) =
        Session::connect(&account(&server, "source"), "pubsub.xmpp.test").await.unwrap();
    assert!(!again.create(&node("ours"), "", "").await.unwrap());
}
