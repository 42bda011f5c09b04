//! What was accepted is not lost: stops in the middle, with the store opened again.

use crate::bed::{Bed, TOPIC, options, subscribed};
use crate::server::{Delivery as _, Got, Reply, Server, confirm, encode};
use abreast_core::Offset;
use abreast_testkit::eventually_some;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

#[test]
fn nothing_is_lost_and_the_order_is_kept_over_restarts() {
    let count = AtomicUsize::new(0);
    let server = Server::confirming(move |_| {
        Reply::Status(if count.fetch_add(1, SeqCst) % 5 == 1 { 500 } else { 204 })
    });
    let (mut bed, _) = subscribed(options(), &server, "&hub.secret=s");
    bed.subscribe(TOPIC, &server.url("/d"), "");
    for round in 0..4 {
        for number in 1..=15 {
            bed.say(&(round * 15 + number).to_string());
        }
        bed = bed.restart();
    }
    for path in ["/c", "/d"] {
        let of = |seen: &[Got]| -> Vec<u64> {
            seen.iter()
                .filter(|got| got.is_delivery() && got.path() == path)
                .map(Got::offset)
                .collect()
        };
        let mut got = of(&server.wait("all", |seen| of(seen).contains(&60)));
        got.retain({
            let mut furthest = 0;
            move |offset| {
                let new = *offset > furthest;
                furthest = furthest.max(*offset);
                new
            }
        });
        assert_eq!(got, (1..=60).collect::<Vec<_>>());
    }
}

#[test]
fn crashes_repeat_a_little_and_lose_nothing() {
    let count = AtomicUsize::new(0);
    let server = Server::confirming(move |_| match count.fetch_add(1, SeqCst) % 7 {
        1 => Reply::Status(500),
        4 => Reply::Raw(Vec::new()),
        _ => Reply::Status(204),
    });
    let mut lazy = options();
    lazy.save_every = std::time::Duration::from_millis(100);
    let (mut bed, _) = subscribed(lazy, &server, "");
    let topics: Vec<_> = (0..3).map(|number| format!("http://example.org/{number}")).collect();
    for (number, topic) in topics.iter().enumerate() {
        bed.subscribe(topic, &server.url(&format!("/{number}")), "");
    }
    for round in 0..6 {
        for number in 0..10 {
            for topic in &topics {
                let body = (round * 10 + number + 1).to_string();
                assert_eq!(bed.publish(topic, "text/plain", body.as_bytes()).status, 200);
            }
        }
        bed = bed.crash();
    }
    for number in 0..3 {
        let path = format!("/{number}");
        let of = |seen: &[Got]| -> Vec<(u64, String)> {
            let mine = seen.iter().filter(|got| got.is_delivery() && got.path() == path);
            mine.map(|got| (got.offset(), got.text())).collect()
        };
        let got = of(&server.wait("all", |seen| of(seen).iter().any(|(offset, _)| *offset == 60)));
        let mut furthest = 0;
        for (offset, text) in got {
            assert_eq!(text, offset.to_string());
            assert!(offset <= furthest + 1, "{offset} came after {furthest}");
            furthest = furthest.max(offset);
        }
    }
}

#[test]
fn a_request_that_was_accepted_is_asked_after_a_restart() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let server = Server::new(move |got| match (got.is_delivery(), is_up.load(SeqCst)) {
        (true, _) => Reply::Status(204),
        (false, true) => confirm(got),
        (false, false) => Reply::Status(503),
    });
    let mut patient = options();
    patient.verification.retry = std::time::Duration::from_secs(100);
    let bed = Bed::new(patient);
    assert_eq!(bed.ask("subscribe", TOPIC, &server.url("/c"), "&hub.secret=s").status, 202);
    server.wait_questions(1);
    let bed = bed.restart();
    up.store(true, SeqCst);
    // Another request for the same does not have to wait either.
    assert_eq!(bed.ask("subscribe", TOPIC, &server.url("/c"), "&hub.secret=s").status, 202);
    eventually_some("the subscription", || bed.target(TOPIC, &server.url("/c")));
    bed.say("x");
    assert_eq!(server.wait_deliveries(1)[0].text(), "x");
}

#[test]
fn topic_reported_as_changed_is_fetched_after_a_restart() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let topic = Server::new(move |_| {
        if is_up.load(SeqCst) {
            Reply::Full(200, vec![("Content-Type", "text/plain".to_owned())], b"changed".to_vec())
        } else {
            Reply::Hang
        }
    });
    let subscriber = Server::willing();
    let mut allowing = options();
    allowing.allow_topics = vec![topic.url("/")];
    let bed = Bed::new(allowing);
    bed.subscribe(&topic.url("/t"), &subscriber.url("/c"), "");
    let answer = bed.form(&format!("hub.mode=publish&hub.url={}", encode(&topic.url("/t"))));
    assert_eq!(answer.status, 202);
    topic.wait_questions(1);
    let bed = bed.restart();
    up.store(true, SeqCst);
    // The one that hangs belonged to the hub that was stopped.
    let got = subscriber.wait_deliveries(1).remove(0);
    assert_eq!((got.text().as_str(), got.offset()), ("changed", 1));
    eventually_some("done", || {
        (bed.hub.topics(abreast_core::TopicId(0), 10).unwrap().len() == 1).then_some(())
    });
}

#[test]
fn where_everybody_stands_is_recorded() {
    let server = Server::willing();
    let (bed, target) = subscribed(options(), &server, "");
    for number in 1..=10 {
        bed.say(&number.to_string());
    }
    server.wait_deliveries(10);
    eventually_some("all taken", || (bed.hub.metrics().delivered == 10).then_some(()));
    let bed = bed.restart();
    assert_eq!(bed.hub.target(target.id).unwrap().unwrap().cursor, Offset(10));
    bed.say("11");
    server.wait("the next", |seen| seen.iter().any(|got| got.is_delivery() && got.text() == "11"));
    assert_eq!(server.deliveries().len(), 11, "nothing twice");
}
