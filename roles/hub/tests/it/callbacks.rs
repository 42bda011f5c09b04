//! Subscriptions as ResourceSync 0.1 has them: another form, receivers that cannot confirm, and
//! what subscribers get that missed notifications.

use crate::bed::{Bed, HUB, Ranges, TOPIC, options};
use crate::delivery::signature;
use crate::server::{Delivery as _, Got, Reply, Server, encode};
use abreast_core::hub::{Ending, Target};
use abreast_core::{LogError, Offset, Position, TopicLog as _};
use abreast_hub::{Gap, HubOptions, Payloads};
use abreast_testkit::{eventually, eventually_some};
use abreast_websub::MAX_FORM_LENGTH;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

const FORM: &str = "application/x-www-form-urlencoded";

/// A hub that has the topic and takes no others.
fn bed(options: HubOptions) -> Bed {
    let bed = Bed::new(options);
    bed.hub.own_topic(TOPIC).unwrap();
    bed
}

fn subscribed(bed: &Bed, callback: &str, more: &str) -> Target {
    let answer = bed.call_back("", format!("callbackURI={callback}{more}"));
    assert_eq!(answer.status, 202, "{}", answer.body);
    eventually_some("a subscription", || bed.target(TOPIC, callback))
}

/// A receiver of 2012: it takes what is posted, and knows nothing else.
fn old() -> Server {
    Server::new(|got| Reply::Status(if got.is_delivery() { 200 } else { 405 }))
}

#[test]
fn a_callback_confirms_and_gets_notifications() {
    for content_type in ["", FORM, "application/x-www-form-urlencoded; charset=UTF-8"] {
        let (bed, server) = (bed(options()), Server::willing());
        let callback = server.url("/callback");
        let answer = bed.call_back(content_type, format!("callbackURI={callback}\r\n"));
        assert_eq!(answer.status, 202, "{content_type}: {}", answer.body);
        eventually_some("a subscription", || bed.target(TOPIC, &callback));
        let asked = server.questions().remove(0).query();
        assert_eq!((asked["hub.mode"].as_str(), asked["hub.topic"].as_str()), ("subscribe", TOPIC));
        assert_eq!(asked["hub.lease_seconds"], "3600", "the default");
        bed.say("one");
        let got = server.wait_deliveries(1).remove(0);
        assert_eq!((got.text().as_str(), got.header("x-hub-signature")), ("one", None));
    }
}

#[test]
fn secret_lease_and_end_are_as_asked_for() {
    let (bed, server) = (bed(options()), Server::willing());
    let callback = server.url("/callback");
    subscribed(&bed, &callback, "&secret=s&lease_seconds=60&topic=http://other.example/");
    assert_eq!(server.questions()[0].query()["hub.lease_seconds"], "60");
    bed.say("one");
    let got = server.wait_deliveries(1).remove(0);
    assert_eq!(got.header("x-hub-signature"), Some(signature(b"s", &got.body).as_str()));
    assert_eq!(
        bed.call_back(FORM, format!("callbackURI={}&mode=unsubscribe", encode(&callback))).status,
        202
    );
    eventually_some("the end", || bed.target(TOPIC, &callback).is_none().then_some(()));
    assert_eq!(server.questions()[1].query()["hub.mode"], "unsubscribe");
    assert_eq!(bed.hub.ended(i64::MAX, 1).unwrap()[0].why, Ending::Unsubscribed);
}

#[test]
fn gone_ends_a_callback() {
    let (bed, server) = (bed(options()), Server::confirming(|_| Reply::Status(410)));
    let callback = server.url("/callback");
    subscribed(&bed, &callback, "");
    bed.say("one");
    eventually_some("the end", || bed.target(TOPIC, &callback).is_none().then_some(()));
    assert_eq!(bed.hub.ended(i64::MAX, 1).unwrap()[0].why, Ending::Gone);
}

#[test]
fn odd_callback_forms_get_an_error_text() {
    let bed = bed(options());
    for (content_type, body, status, says) in [
        ("", "", 400, "callbackURI"),
        (FORM, "hub.mode=subscribe&hub.topic=a&hub.callback=b", 400, "callbackURI"),
        (FORM, "callbackUri=http://e/", 400, "`callbackUri` is unknown"),
        (FORM, "callbackURI=", 400, "missing or empty"),
        (FORM, "callbackURI=http://e/&lease_seconds=abc", 400, "number of seconds"),
        (FORM, "callbackURI=ftp%3A%2F%2Fe%2F", 400, "http"),
        (FORM, "callbackURI=http://e/&callbackURI=http://f/", 400, "more than once"),
        (FORM, "callbackURI=http://e/&secret=1&secret=2", 400, "more than once"),
        (FORM, "callbackURI=http://e/&mode=publish", 400, "publish"),
        (FORM, "callbackURI=http://e/%0aX", 400, "percent-encode"),
        ("application/json", "{\"callbackURI\":\"http://e/\"}", 415, "form"),
        ("text/xml", "<urlset/>", 415, "form"),
        (
            "application/x-www-form-urlencoded; charset=latin1",
            "callbackURI=http://e/",
            415,
            "UTF-8",
        ),
    ] {
        let answer = bed.call_back(content_type, body);
        assert_eq!(answer.status, status, "{body}: {}", answer.body);
        assert!(answer.body.contains(says), "{body}: {}", answer.body);
    }
    let long = format!("callbackURI=http://e/&x={}", "y".repeat(MAX_FORM_LENGTH));
    assert_eq!(bed.call_back(FORM, long).status, 413);
    assert_eq!(bed.call_back(FORM, vec![b'&'; 1 << 20]).status, 413);
    assert_eq!(bed.hub.metrics().refused, 15);
}

#[test]
fn private_addresses_get_no_notifications() {
    let mut public = options();
    public.private_callbacks = false;
    let server = Server::willing();
    let port = server.url("").rsplit(':').next().unwrap().to_owned();
    let hosts = [
        "127.0.0.1",
        "localhost",
        "x.localhost",
        "[::1]",
        "10.0.0.1",
        "192.168.0.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[2002:7f00:1::]",
        "2130706433",
        "0x7f.1",
        "0",
    ];
    // The operator's word opens no network.
    let url = |host: &str| format!("http://{host}:{port}/c");
    public.trusted_callbacks = hosts.map(url).to_vec();
    let bed = bed(public);
    for host in hosts {
        for more in ["", "&secret=s", "&mode=unsubscribe"] {
            let answer = bed.call_back("", format!("callbackURI={}{more}", url(host)));
            let found = (answer.status, answer.body.contains("private"));
            assert_eq!(found, (400, true), "{host}: {}", answer.body);
        }
    }
    // A name that leads to such an address: only connecting shows that.
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let names = hosts.lines().filter(|line| line.starts_with("127.") || line.starts_with("::1"));
    let names = names.flat_map(|line| line.split_whitespace().skip(1));
    for name in names.filter(|name| !name.ends_with("localhost")) {
        let unconfirmed = bed.hub.metrics().unconfirmed;
        assert_eq!(bed.call_back("", format!("callbackURI={}", url(name))).status, 202, "{name}");
        eventually_some("an end", || (bed.hub.metrics().unconfirmed > unconfirmed).then_some(()));
    }
    assert_eq!(bed.call_back("", format!("callbackURI={HUB}")).status, 400);
    assert_eq!((server.connections(), bed.hub.metrics().targets), (0, 0));
}

#[test]
fn a_victim_gets_the_question_and_nothing_else() {
    let victims: [fn() -> Server; 4] = [
        old,
        || Server::new(|_| Reply::Full(200, vec![], b"welcome".to_vec())),
        || Server::new(|got| Reply::Full(200, vec![], got.target().into())),
        || Server::new(|_| Reply::Endless),
    ];
    for victim in victims {
        let (bed, server) = (bed(options()), victim());
        let callback = server.url("/victim");
        assert_eq!(bed.call_back("", format!("callbackURI={callback}")).status, 202);
        eventually_some("an end", || (bed.hub.metrics().unconfirmed == 1).then_some(()));
        bed.say("x");
        eventually_some("quiet", || (bed.hub.metrics().in_flight == 0).then_some(()));
        assert_eq!(server.questions().len(), 1);
        assert!(server.deliveries().is_empty() && bed.target(TOPIC, &callback).is_none());
    }
}

#[test]
fn redirects_of_a_callback_lead_nowhere() {
    let elsewhere = Server::willing();
    let there = elsewhere.url("/inside");
    let server =
        Server::new(move |_| Reply::Full(307, vec![("Location", there.clone())], Vec::new()));
    let mut trusting = options();
    trusting.trusted_callbacks = vec![server.url("/trusted")];
    let bed = bed(trusting);
    assert_eq!(bed.call_back("", format!("callbackURI={}", server.url("/c"))).status, 202);
    eventually_some("an end", || (bed.hub.metrics().unconfirmed == 1).then_some(()));
    subscribed(&bed, &server.url("/trusted"), "");
    bed.say("x");
    server.wait_deliveries(2);
    assert!(elsewhere.seen().is_empty());
}

#[test]
fn one_client_may_ask_so_often() {
    let server = Server::willing();
    let mut limited = options();
    limited.verification.client_burst = 3;
    limited.verification.client_rate = 0.001;
    limited.trusted_callbacks = (0..9).map(|n| server.url(&format!("/t{n}"))).collect();
    let flooded = bed(limited);
    let statuses: Vec<_> = (0..6)
        .map(|n| {
            let kind = if n % 2 == 0 { "t" } else { "c" };
            let callback = server.url(&format!("/{kind}{n}"));
            flooded.call_back("", format!("callbackURI={callback}")).status
        })
        .collect();
    assert_eq!(statuses, [202, 202, 202, 429, 429, 429]);
    let mut limited = options();
    limited.subscriptions_per_host = 2;
    let crowded = bed(limited);
    subscribed(&crowded, &server.url("/1"), "");
    subscribed(&crowded, &server.url("/2"), "");
    eventually_some("both count", || (crowded.hub.metrics().targets == 2).then_some(()));
    let answer = crowded.call_back("", format!("callbackURI={}", server.url("/3")));
    assert_eq!(answer.status, 429);
    assert!(answer.headers.iter().any(|(name, _)| *name == "Retry-After"));
}

#[test]
fn a_topic_that_is_not_there_has_no_callbacks() {
    let mut closed = options();
    closed.allow_topics = Vec::new();
    let bed = Bed::new(closed);
    let answer = bed.call_back("", "callbackURI=http://127.0.0.1:9/c");
    assert_eq!(answer.status, 404, "{}", answer.body);
}

#[test]
fn a_hub_that_redirects_subscribers_takes_callbacks_itself() {
    let mut elsewhere = options();
    elsewhere.redirect =
        Some(abreast_hub::Redirect { url: "https://hub.example.org/".into(), permanent: false });
    let (bed, server) = (bed(elsewhere), Server::willing());
    subscribed(&bed, &server.url("/c"), "");
}

#[test]
fn a_trusted_callback_is_not_asked() {
    let server = old();
    let (trusted, other) = (server.url("/in?a=1&b"), server.url("/in?a=1&b&c"));
    let mut trusting = options();
    trusting.trusted_callbacks = vec![trusted.clone()];
    let bed = bed(trusting);
    let answer = bed.call_back("", format!("callbackURI={}&lease_seconds=1", encode(&trusted)));
    assert_eq!(answer.status, 202);
    let target = eventually_some("a subscription", || bed.target(TOPIC, &trusted));
    assert_eq!((target.lease_until, target.secret), (None, None));
    // Exactly that one.
    assert_eq!(bed.call_back(FORM, format!("callbackURI={}", encode(&other))).status, 202);
    eventually_some("an end", || (bed.hub.metrics().unconfirmed == 1).then_some(()));
    bed.say("one");
    let bed = bed.restart();
    bed.say("two");
    let got: Vec<_> = server.wait_deliveries(2).iter().map(Got::text).collect();
    assert_eq!(got, ["one", "two"]);
    assert_eq!(server.questions().len(), 1, "of the other one");
    // It lasts as long as it is listed.
    let bed = bed.restart_as(|options| options.trusted_callbacks.clear(), |_| ());
    eventually_some("the end", || bed.target(TOPIC, &trusted).is_none().then_some(()));
    bed.say("three");
    eventually_some("quiet", || (bed.hub.metrics().in_flight == 0).then_some(()));
    assert_eq!(server.deliveries().len(), 2);
}

#[test]
fn a_stranger_changes_nothing_of_a_trusted_callback() {
    let willing = Arc::new(AtomicBool::new(true));
    let asked = Arc::clone(&willing);
    let server = Server::new(move |got| {
        let status = if asked.load(SeqCst) { 200 } else { 404 };
        let challenge = got.query().get("hub.challenge").cloned().unwrap_or_default();
        Reply::Full(if got.is_delivery() { 200 } else { status }, vec![], challenge.into_bytes())
    });
    let callback = server.url("/c");
    let mut trusting = options();
    trusting.trusted_callbacks = vec![callback.clone()];
    let bed = bed(trusting);
    subscribed(&bed, &callback, "&secret=agreed");
    willing.store(false, SeqCst);
    // None of these is confirmed by the callback.
    for more in ["&secret=forged", "&mode=unsubscribe"] {
        let unconfirmed = bed.hub.metrics().unconfirmed;
        assert_eq!(bed.call_back("", format!("callbackURI={callback}{more}")).status, 202);
        eventually_some("an end", || (bed.hub.metrics().unconfirmed > unconfirmed).then_some(()));
    }
    let confirmed = bed.hub.metrics().confirmed;
    assert_eq!(bed.call_back("", format!("callbackURI={callback}")).status, 202);
    eventually_some("a renewal", || (bed.hub.metrics().confirmed > confirmed).then_some(()));
    bed.say("one");
    let got = server.wait_deliveries(1).remove(0);
    assert_eq!(got.header("x-hub-signature"), Some(signature(b"agreed", &got.body).as_str()));
    // By WebSub a trusted callback is asked like any other.
    let unconfirmed = bed.hub.metrics().unconfirmed;
    assert_eq!(bed.ask("subscribe", TOPIC, &callback, "").status, 202);
    eventually_some("an end", || (bed.hub.metrics().unconfirmed > unconfirmed).then_some(()));
}

#[test]
fn a_request_that_was_accepted_is_settled_after_a_crash() {
    let server = old();
    let mut trusting = options();
    trusting.trusted_callbacks = vec![server.url("/c")];
    let mut bed = bed(trusting);
    for round in 0..10 {
        assert_eq!(bed.call_back("", format!("callbackURI={}", server.url("/c"))).status, 202);
        bed = bed.crash();
        eventually_some("a subscription", || bed.target(TOPIC, &server.url("/c")));
        bed.say(&round.to_string());
    }
    let seen = server.wait("all", |seen| seen.iter().any(|got| got.text() == "9"));
    // A crash repeats the last ones.
    let mut texts: Vec<_> = seen.iter().filter(|got| got.is_delivery()).map(Got::text).collect();
    texts.sort();
    texts.dedup();
    assert_eq!(texts, (0..10).map(|round| round.to_string()).collect::<Vec<_>>());
}

/// Notifications of a topic that do not show that others are missing before them.
struct WithGaps;

impl Payloads for WithGaps {
    fn render(&self, topic_url: &str, after: Position, last: Position) -> Result<Bytes, LogError> {
        Ranges.render(topic_url, after, last)
    }

    fn gap(&self, _: &str) -> Result<Option<Gap>, LogError> {
        Ok(Some(Gap {
            media_type: "application/xml".into(),
            links: "<http://example.org/current>; rel=\"current\"".into(),
            body: "look there".into(),
        }))
    }
}

fn texts(server: &Server) -> Vec<(u64, String)> {
    server.deliveries().iter().map(|got| (got.offset(), got.text())).collect()
}

#[test]
fn what_is_no_longer_kept_is_reported_once() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let server =
        Server::confirming(move |_| Reply::Status(if is_up.load(SeqCst) { 204 } else { 500 }));
    let bed = Bed::with_payloads(options(), Arc::new(WithGaps));
    bed.hub.own_topic(TOPIC).unwrap();
    let target = subscribed(&bed, &server.url("/c"), "&secret=s");
    for text in ["1", "2", "3", "4"] {
        bed.say(text);
    }
    server.wait_deliveries(1);
    let topic = bed.hub.topic(TOPIC).unwrap();
    let bed = bed.restart_with(|store| store.trim(topic, Offset(3)).unwrap());
    server.wait("the report", |seen| seen.iter().any(|got| got.text() == "look there"));
    assert_eq!(bed.hub.target(target.id).unwrap().unwrap().cursor, Offset(0), "until it is taken");
    up.store(true, SeqCst);
    server.wait("the rest", |seen| seen.iter().any(|got| got.is_delivery() && got.text() == "4"));
    let got = server.deliveries();
    let report = got.iter().rfind(|got| got.text() == "look there").unwrap();
    assert_eq!(report.header("content-type"), Some("application/xml"));
    assert!(report.header("link").unwrap().contains("rel=\"current\""));
    assert_eq!(report.header("x-hub-signature"), Some(signature(b"s", b"look there").as_str()));
    let mut texts = texts(&server);
    texts.dedup();
    let expected = [(1, "1"), (3, "look there"), (4, "4")];
    assert_eq!(texts, expected.map(|(offset, text)| (offset, text.to_owned())));
    let dead = eventually_some("the dead letter", || {
        bed.hub.dead_letters(target.id, Offset(0), 10).unwrap().pop()
    });
    assert_eq!((dead.first, dead.last), (Offset(1), Offset(3)));
}

#[test]
fn what_is_given_up_is_reported_when_the_subscriber_is_back() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = Arc::clone(&up);
    let server =
        Server::confirming(move |_| Reply::Status(if is_up.load(SeqCst) { 204 } else { 500 }));
    let mut impatient = options();
    impatient.retries.give_up = Duration::from_millis(150);
    let bed = Bed::with_payloads(impatient, Arc::new(WithGaps));
    bed.hub.own_topic(TOPIC).unwrap();
    let target = subscribed(&bed, &server.url("/c"), "");
    bed.say("1");
    bed.say("2");
    server.wait("a report", |seen| seen.iter().any(|got| got.text() == "look there"));
    let cursor = bed.hub.target(target.id).unwrap().unwrap().cursor;
    assert_eq!(cursor, Offset(0), "nothing is skipped before the subscriber knows");
    up.store(true, SeqCst);
    bed.say("3");
    server.wait("the third", |seen| seen.iter().any(|got| got.text() == "3"));
    eventually("the third is taken", || {
        bed.hub.target(target.id).unwrap().unwrap().cursor == Offset(3)
    });
    let mut texts = texts(&server);
    texts.dedup();
    assert_eq!(texts.first(), Some(&(1, "1".to_owned())));
    assert_eq!(texts.last(), Some(&(3, "3".to_owned())));
    assert!(texts.iter().any(|(_, text)| text == "look there"), "{texts:?}");
    // Not with a crash either.
    up.store(false, SeqCst);
    bed.say("4");
    server
        .wait("a report", |seen| seen.iter().filter(|got| got.text() == "look there").count() > 1);
    eventually_some("the failure recorded", || {
        let target = bed.hub.store().target(target.id).unwrap().unwrap();
        (target.first_failed.is_some() && target.cursor == Offset(3)).then_some(())
    });
}
