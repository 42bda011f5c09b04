//! Subscribers are asked back, and what they say is held to the letter.

use crate::bed::{Bed, TOPIC, options, subscribed};
use crate::server::{Delivery as _, Reply, Server, confirm};
use abreast_testkit::eventually_some;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Asks for a subscription that is not confirmed, and waits until that is settled.
fn not_subscribed(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Server {
    let server = Server::new(move |got| answer(&got.query()["hub.challenge"]));
    let bed = Bed::new(options());
    assert_eq!(
        bed.ask("subscribe", TOPIC, &server.url("/c"), "").status,
        202,
        "whatever comes of it"
    );
    eventually_some("an end", || (bed.hub.metrics().unconfirmed == 1).then_some(()));
    assert!(bed.target(TOPIC, &server.url("/c")).is_none());
    assert_eq!(bed.hub.metrics().targets, 0);
    server
}

#[test]
fn whatever_is_not_the_challenge_is_no_confirmation() {
    for answer in ["", "wrong", "{c} ", "{c}{c}", "{C}"] {
        not_subscribed(move |c| {
            Reply::Full(
                200,
                vec![],
                answer
                    .replace("{c}", c)
                    .replace("{C}", &c.to_uppercase().replace(|c: char| c.is_ascii_digit(), "x"))
                    .into_bytes(),
            )
        });
    }
    not_subscribed(|c| Reply::Full(404, vec![], c.into()));
    not_subscribed(|c| Reply::Full(200, vec![], [c.as_bytes(), &vec![b'x'; 8 << 20]].concat()));
    not_subscribed(|_| Reply::Endless);
}

#[test]
fn redirects_are_not_followed_when_asking() {
    let elsewhere = Server::willing();
    let there = elsewhere.url("/c");
    let server =
        not_subscribed(move |c| Reply::Full(302, vec![("Location", there.clone())], c.into()));
    assert_eq!((server.questions().len(), elsewhere.seen().len()), (1, 0));
}

#[test]
fn any_status_of_success_confirms() {
    let server = Server::new(|got| match confirm(got) {
        Reply::Full(_, headers, body) => Reply::Full(201, headers, body),
        other => other,
    });
    subscribed(options(), &server, "");
}

#[test]
fn failed_verifications_are_retried_a_limited_time() {
    let count = AtomicUsize::new(0);
    let server = Server::new(move |got| match count.fetch_add(1, SeqCst) {
        0 => Reply::Status(503),
        1 => Reply::Raw(Vec::new()),
        _ => confirm(got),
    });
    subscribed(options(), &server, "");
    assert_eq!(server.questions().len(), 3);
    let server = not_subscribed(|_| Reply::Status(500));
    assert_eq!(server.questions().len(), 3);
}

#[test]
fn verification_keeps_the_callbacks_query_and_exact_topic() {
    let topic = "http://example.org/t?a=1&b=%26%2F%20c+d";
    let server = Server::willing();
    let bed = Bed::new(options());
    let callback = server.url("/c?hub.topic=mine&x=%2F&hub.mode=own");
    bed.subscribe(topic, &callback, "&hub.lease_seconds=7200");
    let asked = server.questions().remove(0);
    let own = "/c?hub.topic=mine&x=%2F&hub.mode=own&";
    assert!(asked.target().starts_with(own), "{}", asked.target());
    let said = asked.query();
    assert_eq!((said["hub.topic"].as_str(), said["hub.mode"].as_str()), (topic, "subscribe"));
    assert_eq!(said["hub.lease_seconds"], "7200");
    assert!(said["hub.challenge"].len() >= 32);
    assert_eq!(bed.publish(topic, "text/plain", b"x").status, 200);
    let got = server.wait_deliveries(1).remove(0);
    assert_eq!(format!("{}&", got.target()), own);
    assert!(got.header("link").unwrap().contains(&format!("<{topic}>; rel=\"self\"")));
}

#[test]
fn challenges_are_random_and_leases_are_moved_into_the_span() {
    let server = Server::willing();
    let bed = Bed::new(options());
    let mut challenges = std::collections::HashSet::new();
    for (asked, granted) in
        [("", "3600"), ("0", "1"), ("-1", "1"), ("1000000000000", "86400"), ("soon", "3600")]
    {
        let target =
            bed.subscribe(TOPIC, &server.url("/c"), &format!("&hub.lease_seconds={asked}"));
        let question = server.questions().pop().unwrap().query();
        assert_eq!(question["hub.lease_seconds"], granted, "{asked}");
        assert!(challenges.insert(question["hub.challenge"].clone()));
        assert!(target.lease_until.is_some());
    }
}

#[test]
fn a_renewal_that_is_not_confirmed_changes_nothing() {
    let willing = AtomicUsize::new(1);
    let server = Server::new(move |got| {
        if got.is_delivery() {
            return Reply::Status(204);
        }
        if willing.swap(0, SeqCst) == 1 { confirm(got) } else { Reply::Status(404) }
    });
    let (bed, before) = subscribed(options(), &server, "&hub.secret=old");
    for (mode, more) in [
        ("subscribe", "&hub.secret=new&hub.lease_seconds=5"),
        ("subscribe", ""),
        ("unsubscribe", ""),
    ] {
        let failed = bed.hub.metrics().unconfirmed;
        assert_eq!(bed.ask(mode, TOPIC, &server.url("/c"), more).status, 202);
        eventually_some("an end", || (bed.hub.metrics().unconfirmed > failed).then_some(()));
    }
    assert_eq!(bed.target(TOPIC, &server.url("/c")).unwrap(), before);
    bed.say("signed with the old one");
    let got = server.wait_deliveries(1).remove(0);
    assert_eq!(
        got.header("x-hub-signature"),
        Some(crate::delivery::signature(b"old", &got.body).as_str())
    );
}

#[test]
fn a_renewal_takes_the_new_secret_or_none() {
    let server = Server::willing();
    let (bed, _) = subscribed(options(), &server, "&hub.secret=one");
    bed.say("1");
    server.wait_deliveries(1);
    bed.subscribe(TOPIC, &server.url("/c"), "&hub.secret=two");
    bed.say("2");
    server.wait_deliveries(2);
    bed.subscribe(TOPIC, &server.url("/c"), "");
    bed.say("3");
    let got = server.wait_deliveries(3);
    let signed = |secret: &[u8], at: usize| crate::delivery::signature(secret, &got[at].body);
    assert_eq!(got[0].header("x-hub-signature"), Some(signed(b"one", 0).as_str()));
    assert_eq!(got[1].header("x-hub-signature"), Some(signed(b"two", 1).as_str()));
    assert_eq!(got[2].header("x-hub-signature"), None);
}

#[test]
fn requests_for_one_callback_count_in_their_order() {
    let first = AtomicUsize::new(1);
    let server = Server::confirming(|_| Reply::Status(204));
    let slow = Server::new(move |got| {
        if !got.is_delivery() && first.swap(0, SeqCst) == 1 {
            std::thread::sleep(Duration::from_millis(150));
        }
        if got.is_delivery() { Reply::Status(204) } else { confirm(got) }
    });
    let bed = Bed::new(options());
    for more in ["&hub.secret=first", "&hub.secret=second"] {
        assert_eq!(bed.ask("subscribe", TOPIC, &slow.url("/c"), more).status, 202);
    }
    eventually_some("both", || (bed.hub.metrics().confirmed == 2).then_some(()));
    bed.say("x");
    let got = slow.wait_deliveries(1).remove(0);
    assert_eq!(
        got.header("x-hub-signature"),
        Some(crate::delivery::signature(b"second", &got.body).as_str())
    );
    drop(server);
}

#[test]
fn unconfirmed_callbacks_are_not_verified_endlessly() {
    let mut options = options();
    options.verification.refused_burst = 2;
    let server = Server::new(|_| Reply::Status(404));
    let bed = Bed::new(options);
    for count in 1..=2 {
        assert_eq!(bed.ask("subscribe", TOPIC, &server.url("/victim"), "").status, 202);
        eventually_some("an end", || (bed.hub.metrics().unconfirmed == count).then_some(()));
    }
    let answer = bed.ask("subscribe", TOPIC, &server.url("/victim"), "");
    assert_eq!(answer.status, 429);
    assert!(answer.headers.iter().any(|(name, _)| *name == "Retry-After"));
    assert_eq!(server.seen().len(), 2);
}

#[test]
fn one_client_and_one_host_may_ask_so_often() {
    let mut limited = options();
    limited.verification.client_burst = 3;
    limited.verification.client_rate = 0.001;
    let (server, bed) = (Server::willing(), Bed::new(limited));
    let statuses: Vec<_> = (0..5)
        .map(|n| bed.ask("subscribe", TOPIC, &server.url(&format!("/{n}")), "").status)
        .collect();
    assert_eq!(statuses, [202, 202, 202, 429, 429]);
    let mut limited = options();
    limited.subscriptions_per_host = 2;
    let bed = Bed::new(limited);
    bed.subscribe(TOPIC, &server.url("/1"), "");
    bed.subscribe(TOPIC, &server.url("/2"), "");
    eventually_some("both count", || (bed.hub.metrics().targets == 2).then_some(()));
    assert_eq!(bed.ask("subscribe", TOPIC, &server.url("/3"), "").status, 429);
}
