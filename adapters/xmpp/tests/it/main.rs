//! Against a real server: connections that fail and how soon, nodes, items, limits.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod connecting;
mod messages;
mod nodes;
mod owners;
mod refusals;

use abreast_testkit::xmpp::scripted::Scripted;
use abreast_testkit::xmpp::{DOMAIN, PASSWORD, Prosody, SERVICE};
use abreast_xmpp::{Account, Events, Node, Session};
use std::path::PathBuf;
use std::time::Duration;

/// The server's program; without it the test is skipped.
fn program(test: &str) -> Option<PathBuf> {
    abreast_testkit::provided(test, "ABREAST_TEST_PROSODY")
}

/// An account of the server.
fn account(server: &Prosody, user: &str) -> Account {
    let mut account = Account::new(&format!("{user}@{DOMAIN}"), PASSWORD).unwrap();
    account.server = Some(server.address());
    account.ca_file = Some(server.ca_file());
    account
}

async fn session(server: &Prosody, user: &str) -> (Session, Events) {
    Session::connect(&account(server, user), SERVICE).await.unwrap()
}

fn node(name: &str) -> Node {
    Node::new(SERVICE, name).unwrap()
}

/// An account of a server that follows a script.
fn scripted(server: &Scripted) -> Account {
    let mut account = Account::new(&format!("source@{DOMAIN}"), PASSWORD).unwrap();
    account.server = Some(server.address());
    account
}

/// The next event, soon.
async fn next(events: &mut Events) -> abreast_xmpp::Event {
    tokio::time::timeout(Duration::from_secs(10), events.next()).await.expect("an event").unwrap()
}
