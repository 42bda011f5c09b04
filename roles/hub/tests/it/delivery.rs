//! What arrives, in which order, and who waits for whom.

use crate::bed::{Bed, HUB, Ranges, TOPIC, options, subscribed};
use crate::server::{Delivery as _, Reply, Server, confirm};
use abreast_core::{NewNotification, Offset, Payload, Position, publish};
use abreast_hub::SubmissionKind;
use abreast_testkit::eventually_some;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

pub(crate) fn signature(secret: &[u8], body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).unwrap();
    mac.update(body);
    let mut text = "sha256=".to_owned();
    for byte in mac.finalize().into_bytes() {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}

#[test]
fn delivery_has_content_type_links_and_offset() {
    let server = Server::willing();
    let (bed, _) = subscribed(options(), &server, "");
    let answer = bed.post(abreast_hub::HubRequest {
        content_type: "application/xml".to_owned(),
        links: vec![
            format!("<{TOPIC}>; rel=\"self\", <{HUB}>; rel=\"hub\""),
            "<http://example.org/caps.xml>; rel=\"resourcesync\"".to_owned(),
        ],
        body: "<urlset/>".into(),
        client: abreast_hub::Client::direct("127.0.0.1".parse().unwrap())
            .as_publisher(abreast_hub::Publisher::Local),
    });
    assert_eq!(answer.status, 200, "200 and no other 2xx");
    let got = server.wait_deliveries(1).remove(0);
    assert_eq!(
        (got.text().as_str(), got.header("content-type")),
        ("<urlset/>", Some("application/xml"))
    );
    let link = format!(
        "<{HUB}>; rel=\"hub\", <{TOPIC}>; rel=\"self\", <http://example.org/caps.xml>; rel=\"resourcesync\""
    );
    assert_eq!(got.header("link"), Some(link.as_str()));
    assert_eq!((got.offset(), got.header("x-hub-signature")), (1, None));
}

#[test]
fn everything_arrives_once_and_in_order() {
    let failing = AtomicUsize::new(0);
    let flaky = Server::confirming(move |_| {
        Reply::Status(if failing.fetch_add(1, SeqCst).is_multiple_of(3) { 500 } else { 204 })
    });
    let steady = Server::willing();
    let (bed, _) = subscribed(options(), &flaky, "");
    bed.subscribe(TOPIC, &steady.url("/s"), "");
    for number in 1..=40 {
        bed.say(&number.to_string());
    }
    let got: Vec<_> =
        steady.wait_deliveries(40).iter().map(|got| got.text().parse::<u64>().unwrap()).collect();
    assert_eq!(got, (1..=40).collect::<Vec<_>>());
    flaky.wait("all", |seen| seen.iter().any(|got| got.is_delivery() && got.offset() == 40));
    let mut got: Vec<_> = flaky.deliveries().iter().map(crate::server::Got::offset).collect();
    assert!(got.is_sorted(), "{got:?}");
    got.dedup();
    assert_eq!(got, (1..=40).collect::<Vec<_>>());
}

#[test]
fn hanging_subscribers_delay_nobody() {
    let server = Server::new(|got| match (got.is_delivery(), got.path().starts_with("/hang")) {
        (false, _) => confirm(got),
        (true, true) => Reply::Hang,
        (true, false) => Reply::Status(204),
    });
    let mut slow = options();
    slow.sending.total = Duration::from_secs(300);
    slow.lanes.all = 12;
    let bed = Bed::new(slow);
    for number in 0..40 {
        bed.subscribe(TOPIC, &server.url(&format!("/hang{number}")), "");
    }
    bed.subscribe(TOPIC, &server.url("/fast"), "");
    let fast = |count: usize| {
        server.wait("the fast one", |seen| {
            seen.iter().filter(|got| got.is_delivery() && got.path() == "/fast").count() >= count
        });
    };
    for number in 1..=5 {
        bed.say(&number.to_string());
        fast(number);
    }
    eventually_some("five taken", || (bed.hub.metrics().delivered == 5).then_some(()));
    assert_eq!(
        server.deliveries().iter().filter(|got| got.path() != "/fast").count(),
        40,
        "one at a time each"
    );
}

#[test]
fn redirects_are_failures_and_not_followed() {
    let elsewhere = Server::willing();
    let there = elsewhere.url("/c");
    let count = AtomicUsize::new(0);
    let server = Server::confirming(move |_| match count.fetch_add(1, SeqCst) {
        0 => Reply::Full(301, vec![("Location", there.clone())], Vec::new()),
        1 => Reply::Full(308, vec![("Location", there.clone())], Vec::new()),
        _ => Reply::Status(204),
    });
    let (bed, target) = subscribed(options(), &server, "");
    bed.say("x");
    server.wait_deliveries(3);
    assert!(elsewhere.seen().is_empty());
    eventually_some("the attempts", || {
        (bed.hub.attempts(target.id).unwrap().len() >= 2).then_some(())
    });
}

#[test]
fn gone_ends_the_subscription() {
    let server = Server::confirming(|_| Reply::Status(410));
    let (bed, target) = subscribed(options(), &server, "");
    bed.say("1");
    eventually_some("the end", || bed.target(TOPIC, &server.url("/c")).is_none().then_some(()));
    assert_eq!(bed.hub.ended(i64::MAX, 1).unwrap()[0].id, target.id);
    bed.say("2");
    eventually_some("quiet", || (bed.hub.metrics().in_flight == 0).then_some(()));
    assert_eq!(server.deliveries().len(), 1);
}

#[test]
fn content_of_a_response_is_ignored() {
    let server = Server::confirming(|got| match got.path() {
        "/large" => Reply::Full(200, vec![], vec![b'x'; 8 << 20]),
        "/endless" => Reply::Endless,
        "/cut" => Reply::Raw(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nx".to_vec()),
        "/odd" => Reply::Full(299, vec![("Content-Type", "x".to_owned())], b"no".to_vec()),
        _ => Reply::Status(202),
    });
    let bed = Bed::new(options());
    for path in ["/large", "/endless", "/cut", "/odd", "/c"] {
        bed.subscribe(TOPIC, &server.url(path), "");
    }
    bed.say("1");
    bed.say("2");
    server.wait_deliveries(10);
    eventually_some("all taken", || (bed.hub.metrics().delivered == 10).then_some(()));
    assert_eq!(bed.hub.metrics().failed, 0);
}

#[test]
fn connections_are_kept() {
    let server = Server::willing();
    let (bed, _) = subscribed(options(), &server, "");
    for number in 1..=20 {
        bed.say(&number.to_string());
        server.wait_deliveries(number);
    }
    assert!(server.connections() <= 2, "{}", server.connections());
}

#[test]
fn a_large_notification_is_signed_right() {
    let server = Server::willing();
    let mut large = options();
    large.max_body = 4 << 20;
    let (bed, _) = subscribed(large, &server, "&hub.secret=s");
    let body = vec![b'y'; 3 << 20];
    assert_eq!(bed.publish(TOPIC, "application/octet-stream", &body).status, 200);
    let got = server.wait_deliveries(1).remove(0);
    assert!(got.body == body);
    assert_eq!(got.header("x-hub-signature"), Some(signature(b"s", &body).as_str()));
}

#[test]
fn notifications_of_a_source_are_made_when_they_are_sent() {
    let bed = Bed::with_payloads(options(), Arc::new(Ranges));
    let server = Server::willing();
    let topic = bed.hub.own_topic("http://example.org/set/notify").unwrap();
    bed.subscribe("http://example.org/set/notify", &server.url("/c"), "");
    for last in 1..=3 {
        let payload = Payload::Changes { after: Position(last - 1), last: Position(last) };
        let new = NewNotification {
            media_type: "application/xml".to_owned(),
            links: String::new(),
            payload,
        };
        publish(&**bed.hub.store(), topic, new).unwrap();
        bed.hub.published(topic);
    }
    let got: Vec<_> = server.wait_deliveries(3).iter().map(crate::server::Got::text).collect();
    let said = |after: u64| format!("http://example.org/set/notify {after}..{}", after + 1);
    assert_eq!(got, [said(0), said(1), said(2)]);
    let (last, body) = bed.hub.latest("http://example.org/set/notify").unwrap().unwrap();
    assert_eq!((last.offset, body), (Offset(3), said(2).into()));
}

#[test]
fn other_hubs_are_notified() {
    let bed = Bed::new(options());
    let (fat, form) = (Server::willing(), Server::willing());
    let first = bed.hub.submit_to(TOPIC, &fat.url("/hub"), SubmissionKind::Fat).unwrap();
    assert_eq!(
        bed.hub.submit_to(TOPIC, &fat.url("/hub"), SubmissionKind::Fat).unwrap(),
        first,
        "once"
    );
    bed.hub.submit_to(TOPIC, &form.url("/hub"), SubmissionKind::Form).unwrap();
    bed.say("hello");
    let got = fat.wait_deliveries(1).remove(0);
    assert_eq!((got.text().as_str(), got.header("content-type")), ("hello", Some("text/plain")));
    let link = format!("<{}>; rel=\"hub\", <{TOPIC}>; rel=\"self\"", fat.url("/hub"));
    assert_eq!(got.header("link"), Some(link.as_str()));
    let got = form.wait_deliveries(1).remove(0);
    let body = got.text();
    assert!(
        body.starts_with("hub.mode=publish&hub.url=http%3A%2F%2Fexample.org%2Ftopic"),
        "{body}"
    );
}

#[test]
fn readers_follow_without_a_callback() {
    let bed = Bed::new(options());
    bed.say("1");
    bed.say("2");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut events = bed.hub.events(TOPIC, Some(Offset(1))).unwrap().unwrap();
    let mut fresh = bed.hub.events(TOPIC, None).unwrap().unwrap();
    let next = |events: &mut abreast_hub::Events| {
        let event = runtime.block_on(events.next()).unwrap().unwrap();
        (event.offset.0, String::from_utf8(event.body.to_vec()).unwrap())
    };
    assert_eq!(next(&mut events), (2, "2".to_owned()));
    let hub = bed.hub.clone();
    let later = std::thread::spawn(move || hub);
    bed.say("3");
    assert_eq!(next(&mut events), (3, "3".to_owned()));
    assert_eq!(next(&mut fresh), (3, "3".to_owned()));
    assert!(bed.hub.events("http://example.org/unknown", None).unwrap().is_none());
    drop(later.join().unwrap());
    bed.hub.stop();
    assert!(runtime.block_on(events.next()).unwrap().is_none());
}

#[test]
fn old_notifications_go_when_nobody_waits_for_them() {
    let mut short = options();
    short.keep = Duration::from_millis(50);
    short.retention_sweep = Duration::from_millis(20);
    let server = Server::willing();
    let (bed, _) = subscribed(short, &server, "");
    for number in 1..=5 {
        bed.say(&number.to_string());
    }
    server.wait_deliveries(5);
    let topic = bed.hub.topic(TOPIC).unwrap();
    eventually_some("room", || {
        (bed.hub.store().read(topic, Offset(0), 10).unwrap().len() == 1).then_some(())
    });
    assert_eq!(bed.hub.latest(TOPIC).unwrap().unwrap().1, "5");
}
