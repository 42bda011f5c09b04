//! What errors state: which server or service, what failed, the condition as it was answered, and what
//! to do. Texts of servers stay on one line.

use super::{account, node, program, scripted, session};
use abreast_testkit::http::unused_address;
use abreast_testkit::tls::Authority;
use abreast_testkit::xmpp::scripted::{Scripted, accept, error, result};
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, Prosody, SERVICE};
use abreast_xmpp::{Account, Error, Session};
use std::time::Duration;

/// Text that would be a line of its own.
const HOSTILE: &str = "no\n  help: run rm\r\nabreast: all is well";

async fn refused(account: &Account) -> Error {
    Session::connect(account, SERVICE).await.unwrap_err()
}

/// Checks the whole text of an error, in which `SERVER` stands for an address.
#[track_caller]
fn check(error: &Error, server: &str, expected: &str) {
    assert_eq!(error.to_string().replace(server, "SERVER"), expected);
}

#[tokio::test]
async fn errors_of_a_real_server_are_complete() {
    let Some(program) = program("errors_of_a_real_server_are_complete") else { return };
    let server = Prosody::start(&program);
    let own = server.address();
    let as_user = |user: &str, password: &str| {
        let mut account = Account::new(user, password).unwrap();
        account.server = Some(own.clone());
        account.ca_file = Some(server.ca_file());
        account
    };
    let wrong = as_user(&format!("reader@{DOMAIN}"), "guessed");
    check(
        &refused(&wrong).await,
        &own,
        "the XMPP server SERVER does not accept reader@xmpp.test: not-authorized\n  \
         help: check the address and the password",
    );
    let other = as_user("reader@other.test", PASSWORD);
    check(
        &refused(&other).await,
        &own,
        "the XMPP server SERVER has no domain of reader@other.test: host-unknown (This server does not serve other.test)\n  \
         help: check the address of the account, and whether `server` (--xmpp-server) is the server of its domain",
    );
    let mut closed = account(&server, "reader");
    let nobody = unused_address().to_string();
    closed.server = Some(nobody.clone());
    check(
        &refused(&closed).await,
        &nobody,
        "cannot connect to the XMPP server SERVER: Connection refused (os error 111)\n  \
         help: check that it runs and can be reached; `server` (--xmpp-server) names another host and port",
    );
    let mut untrusting = account(&server, "reader");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("other.pem");
    std::fs::write(&file, Authority::default().pem()).unwrap();
    untrusting.ca_file = Some(file);
    check(
        &refused(&untrusting).await,
        &own,
        "no secure connection to SERVER: its certificate is not signed by the authority of that name that is known here\n  \
         help: have the certificate corrected, or name that of its authority with `ca_file` (--ca-file)",
    );

    let (source, _events) = session(&server, "source").await;
    source.create(&node("papers"), "Papers", "urn:x").await.unwrap();
    let (reader, _events) = session(&server, "reader").await;
    check(
        &reader.subscribe(&node("other")).await.unwrap_err(),
        &own,
        "cannot subscribe to xmpp:pubsub.xmpp.test?;node=other: pubsub.xmpp.test answered item-not-found\n  \
         help: check the name of the node; a Source states it in its Sitemap (`rs:pubsubnode`)",
    );
    check(
        &reader.check_service("pubsub.other.test").await.unwrap_err(),
        &own,
        "cannot find out what pubsub.other.test is: pubsub.other.test answered not-allowed (Communication with remote domains \
         is not enabled)\n  help: name the service itself, often pubsub.DOMAIN",
    );
    check(
        &reader.check_service(DOMAIN).await.unwrap_err(),
        &own,
        "xmpp.test does not publish and subscribe\n  help: name the service itself, often pubsub.DOMAIN",
    );
    let payload = b"<a xmlns='urn:x'/>";
    check(
        &reader.publish(&node("papers"), "1", payload).await.unwrap_err(),
        &own,
        "cannot publish to xmpp:pubsub.xmpp.test?;node=papers: pubsub.xmpp.test answered forbidden\n  \
         help: ask the owner of the node to make the account a publisher",
    );
    check(
        &reader.create(&node("new"), "New", "urn:x").await.unwrap_err(),
        &own,
        "xmpp:pubsub.xmpp.test?;node=new does not exist and cannot be created: pubsub.xmpp.test answered forbidden\n  \
         help: ask the operator of the service to create it, or to let the account do so",
    );
    let mut large = account(&server, "source");
    large.max_sent = 1_000_000;
    let (source, _events) = Session::connect(&large, SERVICE).await.unwrap();
    let payload = format!("<a xmlns='urn:x'>{}</a>", "x".repeat(600_000));
    check(
        &source.publish(&node("papers"), "1", payload.as_bytes()).await.unwrap_err(),
        &own,
        "cannot publish to xmpp:pubsub.xmpp.test?;node=papers: the XMPP server SERVER ended the connection: policy-violation \
         (XML stanza is too big)",
    );
}

#[tokio::test]
async fn errors_of_other_servers_are_complete() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let own = silent.local_addr().unwrap().to_string();
    let mut account = Account::new(&format!("reader@{DOMAIN}"), PASSWORD).unwrap();
    account.server = Some(own.clone());
    account.connect_timeout = Duration::from_millis(500);
    check(
        &refused(&account).await,
        &own,
        "the XMPP server SERVER did not answer within 0.5 s\n  \
         help: name the port where clients of XMPP begin without TLS, usually 5222: `server` (--xmpp-server)",
    );
    let closed = Scripted::start(|stanza| {
        let refuses = ["<subscribe", "disco#items"].iter().any(|request| stanza.contains(request));
        if refuses { error(stanza, "auth", "forbidden") } else { accept(stanza) }
    });
    let (session, _events) = Session::connect(&scripted(&closed), SERVICE).await.unwrap();
    check(
        &session.subscribe(&node("papers")).await.unwrap_err(),
        &closed.address(),
        "cannot subscribe to xmpp:pubsub.xmpp.test?;node=papers: pubsub.xmpp.test answered forbidden\n  \
         help: ask the owner of the node to let the account read it",
    );
    check(
        &session.item_ids(&node("papers")).await.unwrap_err(),
        &closed.address(),
        "cannot read xmpp:pubsub.xmpp.test?;node=papers: pubsub.xmpp.test answered forbidden\n  \
         help: ask the owner of the node to let the account read it",
    );
}

#[tokio::test]
async fn texts_of_servers_make_no_line_of_their_own() {
    let server = Scripted::start(|stanza| {
        let text = |ns: &str| format!("<text xmlns='urn:ietf:params:xml:ns:{ns}'>{HOSTILE}</text>");
        if stanza.contains("<subscribe") {
            let inside = "<pubsub xmlns='http://jabber.org/protocol/pubsub'><subscription node='n' subscription='a&#10;  help: run rm'/></pubsub>".to_owned();
            return result(stanza, &inside);
        }
        if stanza.contains("disco#items") {
            let text = text("xmpp-stanzas");
            let inside = format!("<forbidden xmlns='urn:ietf:params:xml:ns:xmpp-stanzas'/>{text}");
            return error(stanza, "auth", "forbidden")
                .replace("</error>", &format!("{inside}</error>"));
        }
        if stanza.contains("<publish") {
            return format!(
                "<stream:error><policy-violation xmlns='urn:ietf:params:xml:ns:xmpp-streams'/>{}<a xmlns='urn:x'>{HOSTILE}</a>\
                 </stream:error></stream:stream>",
                text("xmpp-streams")
            );
        }
        accept(stanza)
    });
    let (session, _events) = Session::connect(&scripted(&server), SERVICE).await.unwrap();
    let errors = [
        session.subscribe(&node("n")).await.unwrap_err(),
        session.item_ids(&node("n")).await.unwrap_err(),
        session.publish(&node("n"), "1", b"<a xmlns='urn:x'/>").await.unwrap_err(),
    ];
    for error in errors {
        assert!(!error.message().contains(['\n', '\r']), "{error}");
        assert!(error.message().contains("help: run rm"), "it is shown: {error}");
    }
}
