//! What is asked for: the form, its faults, and how long it lasts.

use crate::bed::{Bed, HUB, TOPIC, options, subscribed};
use crate::server::{Delivery as _, Reply, Server, encode};
use abreast_core::Offset;
use abreast_core::hub::Ending;
use abreast_hub::Redirect;
use abreast_testkit::eventually_some;

#[test]
fn faulty_requests_get_an_error_text() {
    let bed = Bed::new(options());
    let (topic, callback) = (encode(TOPIC), encode("http://127.0.0.1:9/c"));
    for (form, says) in [
        (String::new(), "hub.mode"),
        ("hub.mode=subscribe".to_owned(), "hub.topic"),
        (format!("hub.mode=subscribe&hub.topic={topic}"), "hub.callback"),
        (format!("hub.mode=own&hub.topic={topic}&hub.callback={callback}"), "own"),
        (
            format!("hub.mode=subscribe&hub.topic={topic}&hub.callback=file%3A%2F%2F%2Fetc"),
            "hub.callback",
        ),
        (
            format!("hub.mode=subscribe&hub.topic={topic}&hub.callback=http%3A%2F%2Fu%3Ap%40e%2F"),
            "hub.callback",
        ),
        (format!("hub.mode=subscribe&hub.topic={topic}&hub.callback=%FF"), "hub.callback"),
    ] {
        let answer = bed.form(&form);
        assert_eq!(answer.status, 400, "{form}");
        assert!(answer.body.contains(says), "{form}: {}", answer.body);
    }
    let mut request = abreast_hub::HubRequest {
        content_type: "application/x-www-form-urlencoded; charset=latin1".to_owned(),
        links: Vec::new(),
        body: "hub.mode=subscribe".into(),
        client: abreast_hub::Client::direct("127.0.0.1".parse().unwrap())
            .as_publisher(abreast_hub::Publisher::Anonymous),
    };
    assert_eq!(bed.post(request.clone()).status, 415);
    request.content_type = String::new();
    assert_eq!(bed.post(request).status, 415);
}

#[test]
fn a_secret_has_fewer_than_200_bytes() {
    let (bed, server) = (Bed::new(options()), Server::willing());
    let answer =
        bed.ask("subscribe", TOPIC, &server.url("/c"), &format!("&hub.secret={}", "s".repeat(200)));
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("200"), "{}", answer.body);
    let answer = bed.ask(
        "subscribe",
        TOPIC,
        &server.url("/c"),
        &format!("&hub.secret={}", "%C3%A9".repeat(100)),
    );
    assert_eq!(answer.status, 400, "200 bytes in 100 characters");
    bed.subscribe(TOPIC, &server.url("/c"), &format!("&hub.secret={}", "s".repeat(199)));
    bed.say("x");
    let got = server.wait_deliveries(1).remove(0);
    let signature = crate::delivery::signature("s".repeat(199).as_bytes(), &got.body);
    assert_eq!(got.header("x-hub-signature"), Some(signature.as_str()));
}

#[test]
fn private_callbacks_and_topics_of_others_are_refused() {
    let mut public = options();
    public.private_callbacks = false;
    let (bed, server) = (Bed::new(public), Server::willing());
    let port = server.url("").rsplit(':').next().unwrap().to_owned();
    for host in [
        "127.0.0.1",
        "localhost",
        "[::1]",
        "10.0.0.1",
        "169.254.169.254",
        "[::ffff:127.0.0.1]",
        "2130706433",
    ] {
        let answer = bed.ask("subscribe", TOPIC, &format!("http://{host}:{port}/c"), "");
        assert_eq!(
            (answer.status, answer.body.contains("private")),
            (400, true),
            "{host}: {}",
            answer.body
        );
    }
    let answer =
        bed.ask("subscribe", "http://elsewhere.example/topic", "http://93.184.216.34/c", "");
    assert_eq!(answer.status, 404);
    assert_eq!(bed.ask("subscribe", TOPIC, HUB, "").status, 400);
    assert!(server.seen().is_empty());
}

#[test]
fn subscribers_can_be_sent_to_another_hub() {
    for (permanent, status) in [(false, 307), (true, 308)] {
        let mut elsewhere = options();
        elsewhere.redirect =
            Some(Redirect { url: "https://hub.example.org/".to_owned(), permanent });
        let answer = Bed::new(elsewhere).ask("subscribe", TOPIC, "http://127.0.0.1:9/c", "");
        assert_eq!(answer.status, status);
        assert!(answer.headers.contains(&("Location", "https://hub.example.org/".to_owned())));
    }
}

#[test]
fn a_subscription_ends_with_its_lease() {
    let server = Server::willing();
    let (bed, target) = subscribed(options(), &server, "&hub.lease_seconds=1");
    let other = Server::willing();
    bed.subscribe(TOPIC, &other.url("/c"), "");
    eventually_some("the end", || bed.target(TOPIC, &server.url("/c")).is_none().then_some(()));
    let ended = bed.hub.ended(i64::MAX, 10).unwrap();
    assert_eq!((ended[0].id, ended[0].why), (target.id, Ending::LeaseOver));
    bed.say("too late");
    other.wait_deliveries(1);
    assert!(server.deliveries().is_empty());
}

#[test]
fn a_renewed_lease_lasts() {
    let server = Server::willing();
    let (bed, first) = subscribed(options(), &server, "&hub.lease_seconds=2");
    let second = bed.subscribe(TOPIC, &server.url("/c"), "&hub.lease_seconds=3600");
    assert_eq!(first.id, second.id);
    assert!(
        second.lease_until.unwrap().as_seconds() > first.lease_until.unwrap().as_seconds() + 3_000
    );
    bed.say("x");
    server.wait_deliveries(1);
}

#[test]
fn an_unknown_subscription_can_be_ended() {
    let (bed, server) = (Bed::new(options()), Server::willing());
    assert_eq!(bed.ask("unsubscribe", TOPIC, &server.url("/c"), "").status, 202);
    server.wait_questions(1);
    eventually_some("an end", || (bed.hub.metrics().unverified == 0).then_some(()));
}

#[test]
fn manually_ended_subscription_gets_a_denial() {
    let server = Server::willing();
    let (bed, target) = subscribed(options(), &server, "");
    assert!(bed.hub.end(target.id, Some("moved away & closed")).unwrap());
    let told = server.wait_questions(2)[1].query();
    assert_eq!((told["hub.mode"].as_str(), told["hub.topic"].as_str()), ("denied", TOPIC));
    assert_eq!(told["hub.reason"], "moved away & closed");
    assert!(!bed.hub.end(target.id, None).unwrap());
    bed.say("x");
    eventually_some("quiet", || (bed.hub.metrics().in_flight == 0).then_some(()));
    assert!(server.deliveries().is_empty());
}

#[test]
fn a_new_subscriber_gets_what_comes_from_then_on() {
    let (bed, server) = (Bed::new(options()), Server::willing());
    bed.say("before");
    let target = bed.subscribe(TOPIC, &server.url("/c"), "");
    assert_eq!(target.cursor, Offset(1));
    bed.say("after");
    assert_eq!(server.wait_deliveries(1)[0].text(), "after");
}

#[test]
fn topics_do_not_mix() {
    let server = Server::confirming(|_| Reply::Status(200));
    let bed = Bed::new(options());
    for topic in ["a", "b", "a%2F", "a/"] {
        bed.subscribe(
            &format!("http://example.org/{topic}"),
            &server.url(&format!("/{}", encode(topic))),
            "",
        );
    }
    for topic in ["a", "b", "a%2F", "a/"] {
        bed.publish(&format!("http://example.org/{topic}"), "text/plain", topic.as_bytes());
    }
    let got = server.wait_deliveries(4);
    assert_eq!(got.len(), 4);
    assert!(got.iter().all(|got| crate::server::decode(&got.path()[1..]) == got.text()));
}

#[test]
fn subscriptions_at_the_limit_are_renewed() {
    let server = Server::willing();
    let (mut total, mut of_host) = (options(), options());
    total.subscriptions = 2;
    of_host.subscriptions_per_host = 2;
    for (limited, status) in [(total, 503), (of_host, 429)] {
        let bed = Bed::new(limited);
        let first = bed.subscribe(TOPIC, &server.url("/1"), "");
        bed.subscribe(TOPIC, &server.url("/2"), "");
        eventually_some("both count", || (bed.hub.metrics().targets == 2).then_some(()));
        assert_eq!(bed.ask("subscribe", TOPIC, &server.url("/3"), "").status, status);
        let other = format!("{TOPIC}/other");
        assert_eq!(bed.ask("subscribe", &other, &server.url("/1"), "").status, status);
        let renewed = bed.subscribe(TOPIC, &server.url("/1"), "&hub.lease_seconds=7200");
        assert_eq!(renewed.id, first.id);
        assert!(renewed.lease_until > first.lease_until, "{status}");
    }
}
