//! What nodes of a real service do: each statement here is one that a decision rests on.

use super::{account, next, node, program, session};
use abreast_testkit::xmpp::{Prosody, SERVICE};
use abreast_xmpp::{ErrorKind, Event, Item, Session};

const SITEMAP: &str = "http://www.sitemaps.org/schemas/sitemap/0.9";

/// A change set of about that many bytes.
fn change_set(bytes: usize) -> String {
    let filler = "x".repeat(bytes);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<urlset xmlns=\"{SITEMAP}\" \
         xmlns:rs=\"http://www.openarchives.org/rs/terms/\" rs:type=\"changeset\"><url><loc>http://x/{filler}</loc>\
         <lastmod rs:type=\"created\">2026-01-01T00:00:00Z</lastmod></url></urlset>\n"
    )
}

fn item(event: Event) -> Item {
    let Event::Item(item) = event else { panic!("{event:?}") };
    item
}

#[tokio::test]
async fn items_are_delivered_with_their_namespaces() {
    let Some(program) = program("items_are_delivered_with_their_namespaces") else { return };
    let server = Prosody::start(&program);
    let mut keeping = account(&server, "source");
    keeping.kept_items = 10;
    let (source, _events) = Session::connect(&keeping, SERVICE).await.unwrap();
    let (reader, mut events) = session(&server, "reader").await;
    let node = node("a node; with & odd \"name\"");
    assert!(source.create(&node, "Papers <1>", SITEMAP).await.unwrap());
    assert!(!source.create(&node, "again", SITEMAP).await.unwrap(), "it exists");
    reader.check_service(SERVICE).await.unwrap();
    reader.subscribe(&node).await.unwrap();
    reader.be_present().await.unwrap();
    source.publish(&node, "1200", change_set(10).as_bytes()).await.unwrap();
    let found = item(next(&mut events).await);
    assert_eq!((found.node.as_str(), found.id.as_str()), (node.name(), "1200"));
    let payload = found.payload.unwrap();
    for part in [
        SITEMAP,
        "changeset",
        "http://www.openarchives.org/rs/terms/",
        ":type=",
        "http://x/xxxxxxxxxx",
    ] {
        assert!(payload.contains(part), "{part} in {payload}");
    }
    // A bare-JID subscriber that is not present gets nothing, now or later.
    drop((reader, events));
    let (reader, mut events) = session(&server, "reader").await;
    source.publish(&node, "1201", change_set(1).as_bytes()).await.unwrap();
    reader.be_present().await.unwrap();
    source.publish(&node, "1202", change_set(2).as_bytes()).await.unwrap();
    assert_eq!(
        item(next(&mut events).await).id,
        "1202",
        "the subscription lasts, the event before is lost"
    );
    let kept: Vec<String> =
        reader.items(&node, 10).await.unwrap().unwrap().into_iter().map(|item| item.id).collect();
    assert_eq!(kept.len(), 3);
    assert!(["1200", "1201", "1202"].iter().all(|id| kept.contains(&(*id).to_owned())), "{kept:?}");
    let newest = reader.items(&node, 1).await.unwrap().unwrap();
    assert_eq!(newest[0].id, "1202");
    assert_eq!(reader.item_ids(&node).await.unwrap(), ["1200", "1201", "1202"]);
    assert!(reader.item(&node, "1201").await.unwrap().unwrap().payload.is_some());
    assert_eq!(reader.item(&node, "1").await.unwrap(), None);
}

/// Services may write all kept items for each new one: a burst of large items would make all that
/// follow slow.
#[tokio::test]
async fn a_node_keeps_its_newest_item() {
    let Some(program) = program("a_node_keeps_its_newest_item") else { return };
    let server = Prosody::start(&program);
    let (source, _events) = session(&server, "source").await;
    let node = node("n");
    source.create(&node, "", SITEMAP).await.unwrap();
    for id in ["1", "2", "3"] {
        source.publish(&node, id, change_set(1).as_bytes()).await.unwrap();
    }
    assert_eq!(source.item_ids(&node).await.unwrap(), ["3"]);
}

#[tokio::test]
async fn an_item_of_the_same_name_is_replaced() {
    let Some(program) = program("an_item_of_the_same_name_is_replaced") else { return };
    let server = Prosody::start(&program);
    let (source, _events) = session(&server, "source").await;
    let node = node("n");
    source.create(&node, "", SITEMAP).await.unwrap();
    for size in [1, 2] {
        source.publish(&node, "7", change_set(size).as_bytes()).await.unwrap();
    }
    let items = source.items(&node, 10).await.unwrap().unwrap();
    assert_eq!(items.len(), 1);
    assert!(items[0].payload.as_ref().unwrap().contains("http://x/xx<"));
}

#[tokio::test]
async fn strangers_publish_and_create_nothing() {
    let Some(program) = program("strangers_publish_and_create_nothing") else { return };
    let server = Prosody::start(&program);
    let (source, _events) = session(&server, "source").await;
    let (stranger, mut events) = session(&server, "stranger").await;
    let (known, other) = (node("n"), node("other"));
    source.create(&known, "", SITEMAP).await.unwrap();
    let error = stranger.create(&other, "", SITEMAP).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(error.to_string().contains("cannot be created"), "{error}");
    assert!(!stranger.create(&known, "", SITEMAP).await.unwrap(), "it exists");
    let error = stranger.publish(&known, "1", change_set(1).as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden, "{error}");
    assert!(error.to_string().contains("forbidden"), "{error}");
    let error = stranger.subscribe(&other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let error = stranger.check_service("xmpp.test").await;
    // The server has a service of nodes for people at most.
    assert!(error.is_err() || stranger.check_service("nowhere.test").await.is_err());
    // A refusal does not end the session.
    stranger.subscribe(&known).await.unwrap();
    stranger.be_present().await.unwrap();
    source.publish(&known, "2", change_set(1).as_bytes()).await.unwrap();
    assert_eq!(item(next(&mut events).await).id, "2");
}

#[tokio::test]
async fn one_stanza_below_the_servers_limit_is_delivered() {
    let Some(program) = program("one_stanza_below_the_servers_limit_is_delivered") else { return };
    let server = Prosody::start(&program);
    let (source, _events) = session(&server, "source").await;
    let (reader, mut events) = session(&server, "reader").await;
    let node = node("n");
    source.create(&node, "", SITEMAP).await.unwrap();
    reader.subscribe(&node).await.unwrap();
    reader.be_present().await.unwrap();
    // Our own limit, before anything is sent.
    let error = source.publish(&node, "1", change_set(200_000).as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(!source.is_closed());
    source.publish(&node, "2", change_set(199_000).as_bytes()).await.unwrap();
    assert_eq!(item(next(&mut events).await).payload.unwrap().len() / 1_000, 199);
    // The server's: the connection ends, and the next one works.
    let mut large = account(&server, "source");
    large.max_sent = 1 << 20;
    let (source, _events) = Session::connect(&large, SERVICE).await.unwrap();
    source.publish(&node, "3", change_set(250_000).as_bytes()).await.unwrap();
    let error = source.publish(&node, "4", change_set(300_000).as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert!(error.to_string().contains("policy-violation"), "{error}");
    assert!(source.is_closed());
    let (source, _events) = Session::connect(&large, SERVICE).await.unwrap();
    source.publish(&node, "5", change_set(1).as_bytes()).await.unwrap();
    assert_eq!(item(next(&mut events).await).id, "3");
    assert_eq!(item(next(&mut events).await).id, "5");
}

#[tokio::test]
async fn a_lost_connection_is_an_error_for_all_who_wait() {
    let Some(program) = program("a_lost_connection_is_an_error_for_all_who_wait") else { return };
    let mut server = Prosody::start(&program);
    let (source, mut events) = session(&server, "source").await;
    server.kill();
    let error = events.next().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    let error = source.publish(&node("n"), "1", change_set(1).as_bytes()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Connection, "{error}");
    assert!(source.is_closed());
}

#[tokio::test]
async fn events_that_nobody_reads_are_reported_as_missed() {
    let Some(program) = program("events_that_nobody_reads_are_reported_as_missed") else { return };
    let server = Prosody::start(&program);
    let (source, _events) = session(&server, "source").await;
    let (reader, mut events) = session(&server, "reader").await;
    let node = node("n");
    source.create(&node, "", SITEMAP).await.unwrap();
    reader.subscribe(&node).await.unwrap();
    reader.be_present().await.unwrap();
    for number in 1..=100 {
        source.publish(&node, &number.to_string(), change_set(1).as_bytes()).await.unwrap();
    }
    // Its answer comes after the events.
    reader.items(&node, 1).await.unwrap();
    for number in 1..=32 {
        assert_eq!(item(next(&mut events).await).id, number.to_string());
    }
    assert_eq!(next(&mut events).await, Event::Missed);
}
