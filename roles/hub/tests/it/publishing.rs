//! Who may publish, and what becomes of what nobody may.

use crate::bed::{Bed, HUB, TOPIC, options};
use crate::server::{Reply, Server, encode};
use abreast_core::{Offset, TopicLog as _};
use abreast_hub::{Client, HubRequest, Publisher};
use abreast_testkit::eventually_some;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

fn open() -> Bed {
    let mut open = options();
    open.open = true;
    open.allow_topics.clear();
    Bed::new(open)
}

/// A topic at `/t` with that `Link` header; `{}` is its own URL.
fn topic(link: &'static str) -> Server {
    let own = Arc::new(Mutex::new(String::new()));
    let url = own.clone();
    let server = Server::new(move |_| {
        let link = link.replace("{}", &url.lock().unwrap());
        Reply::Full(
            200,
            vec![("Content-Type", "text/plain".to_owned()), ("Link", link)],
            b"content".to_vec(),
        )
    });
    *own.lock().unwrap() = server.url("/t");
    server
}

const GOOD: &str = "<{}>; rel=\"self\", <http://127.0.0.1:1/hub>; rel=\"hub\"";

#[test]
fn strangers_need_a_token_unless_the_hub_is_open() {
    let bed = Bed::new(options());
    let elsewhere = "http://elsewhere.example/t";
    let answer = bed.publish_as(Publisher::Anonymous, elsewhere, "text/plain", b"x");
    assert_eq!(answer.status, 401);
    assert!(answer.body.contains("token"), "{}", answer.body);
    assert_eq!(
        bed.publish_as(Publisher::Token, elsewhere, "text/plain", b"x").status,
        403,
        "not among the topics"
    );
    assert_eq!(bed.publish_as(Publisher::Token, TOPIC, "text/plain", b"x").status, 200);
    assert_eq!(bed.form(&format!("hub.mode=publish&hub.url={}", encode(elsewhere))).status, 403);
    bed.hub.own_topic("http://example.org/own").unwrap();
    assert_eq!(
        bed.publish_as(Publisher::Token, "http://example.org/own", "text/plain", b"x").status,
        403
    );
    assert_eq!(bed.hub.metrics().accepted, 1);
}

#[test]
fn open_hub_accepts_content_of_the_topics_host() {
    let (bed, topic, subscriber) = (open(), topic(GOOD), Server::willing());
    bed.subscribe(&topic.url("/t"), &subscriber.url("/c"), "");
    for number in 0..5_u8 {
        let answer = bed.publish_as(
            Publisher::Anonymous,
            &topic.url("/t"),
            "application/xml",
            &[b'0' + number],
        );
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    assert_eq!(subscriber.wait_deliveries(5)[4].text(), "4");
    assert_eq!(topic.seen().len(), 1, "looked at once");
}

#[test]
fn an_open_hub_takes_nothing_forged() {
    let (bed, good) = (open(), topic(GOOD));
    let from = |client: &str, topic: &Server, body: &'static str| {
        bed.post(HubRequest {
            content_type: "text/plain".to_owned(),
            links: vec![format!("<{}>; rel=\"self\", <{HUB}>; rel=\"hub\"", topic.url("/t"))],
            body: body.into(),
            client: Client::direct(client.parse().unwrap()).as_publisher(Publisher::Anonymous),
        })
    };
    let answer = from("203.0.113.9", &good, "forged");
    assert_eq!(answer.status, 403, "{}", answer.body);
    assert_eq!(from("203.0.113.9", &good, "content").status, 200, "the topic says the same");
    let elsewhere = topic("<{}>; rel=\"self\", <http://other.example/hub>; rel=\"hub\"");
    assert_eq!(from("127.0.0.1", &elsewhere, "x").status, 403);
    let nothing = Server::new(|_| Reply::Status(404));
    assert_eq!(from("127.0.0.1", &nothing, "x").status, 403);
    let moved =
        topic("<http://example.org/other>; rel=\"self\", <http://127.0.0.1:1/hub>; rel=\"hub\"");
    assert_eq!(from("127.0.0.1", &moved, "x").status, 403);
    assert_eq!(bed.hub.metrics().accepted, 1);
}

#[test]
fn faulty_notifications_get_an_error_text() {
    let bed = Bed::new(options());
    let send = |links: &[&str], body: Vec<u8>| {
        bed.post(HubRequest {
            content_type: "application/xml".to_owned(),
            links: links.iter().map(|&link| link.to_owned()).collect(),
            body: body.into(),
            client: Client::direct("127.0.0.1".parse().unwrap()).as_publisher(Publisher::Local),
        })
    };
    let answer = send(&["<http://h/>; rel=hub"], b"<urlset/>".to_vec());
    assert_eq!((answer.status, answer.body.contains("rel=\"self\"")), (400, true));
    let answer = send(&["<http://e/a>; rel=self, <http://e/b>; rel=self"], b"<urlset/>".to_vec());
    assert_eq!(answer.status, 400);
    assert_eq!(send(&["</relative>; rel=self"], b"<urlset/>".to_vec()).status, 400);
    assert_eq!(send(&["<http://e/a>; rel=self"], vec![b'x'; (1 << 20) + 1]).status, 413);
    let many = (0..101).fold(String::new(), |form, n| {
        form + "&hub.url=http%3A%2F%2Fexample.org%2F" + &n.to_string()
    });
    assert_eq!(bed.form(&format!("hub.mode=publish{many}")).status, 400);
    assert_eq!(bed.form("hub.mode=publish").status, 400);
}

#[test]
fn a_topic_that_did_not_change_is_not_delivered_again() {
    let count = Arc::new(AtomicUsize::new(0));
    let (shown, own) = (count.clone(), Arc::new(Mutex::new(String::new())));
    let url = own.clone();
    let topic = Server::new(move |_| {
        let link = GOOD.replace("{}", &url.lock().unwrap());
        let body = format!("state {}", shown.load(SeqCst) / 3);
        Reply::Full(
            200,
            vec![("Content-Type", "text/plain".to_owned()), ("Link", link)],
            body.into_bytes(),
        )
    });
    *own.lock().unwrap() = topic.url("/t");
    let (bed, subscriber) = (open(), Server::willing());
    bed.subscribe(&topic.url("/t"), &subscriber.url("/c"), "");
    for round in 1..=9 {
        let answer = bed.form(&format!("hub.mode=publish&hub.url={}", encode(&topic.url("/t"))));
        assert_eq!(answer.status, 202, "{}", answer.body);
        eventually_some("the fetch", || (bed.hub.metrics().fetched >= round).then_some(()));
        count.fetch_add(1, SeqCst);
    }
    let got: Vec<_> = subscriber.wait_deliveries(3).iter().map(crate::server::Got::text).collect();
    assert_eq!(got, ["state 0", "state 1", "state 2"]);
}

#[test]
fn a_topic_that_names_another_hub_is_not_delivered() {
    let topic = topic("<{}>; rel=\"self\", <http://other.example/hub>; rel=\"hub\"");
    let (bed, subscriber) = (open(), Server::willing());
    bed.subscribe(&topic.url("/t"), &subscriber.url("/c"), "");
    assert_eq!(
        bed.form(&format!("hub.mode=publish&hub.url={}", encode(&topic.url("/t")))).status,
        202
    );
    eventually_some("the fetch", || (bed.hub.metrics().fetched == 1).then_some(()));
    eventually_some("its end", || {
        (bed.hub.metrics().accepted == 0 && topic.seen().len() == 1).then_some(())
    });
    assert!(subscriber.deliveries().is_empty());
}

#[test]
fn private_topics_are_not_fetched_unless_allowed() {
    let topic = topic(GOOD);
    let mut public = options();
    public.open = true;
    public.private_topics = false;
    let bed = Bed::new(public);
    let answer = bed.publish_as(Publisher::Anonymous, &topic.url("/t"), "text/plain", b"x");
    assert_eq!((answer.status, answer.body.contains("private")), (403, true), "{}", answer.body);
    assert!(topic.seen().is_empty());
}

#[test]
fn internal_topics_cannot_be_published() {
    let bed = open();
    let own = "abreast:to-be-fetched";
    assert!(bed.hub.topic(own).is_none());
    assert!(bed.hub.latest(own).unwrap().is_none() && bed.hub.events(own, None).unwrap().is_none());
    assert_eq!(bed.publish(own, "text/plain", b"http://127.0.0.1/").status, 400);
    assert_eq!(bed.ask("subscribe", own, "http://127.0.0.1:9/", "").status, 400);
}

#[test]
fn too_many_requests_get_retry_after() {
    let mut small = options();
    small.accepting_bytes = 1;
    let bed = Bed::new(small);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).build().unwrap();
    let statuses = runtime.block_on(async {
        let tasks: Vec<_> = (0..200)
            .map(|_| {
                let hub = bed.hub.clone();
                tokio::spawn(async move {
                    hub.handle(HubRequest {
                        content_type: "text/plain".to_owned(),
                        links: vec![format!("<{TOPIC}>; rel=\"self\"")],
                        body: "x".into(),
                        client: Client::direct("127.0.0.1".parse().unwrap())
                            .as_publisher(Publisher::Local),
                    })
                    .await
                    .status
                })
            })
            .collect();
        let mut statuses = Vec::new();
        for task in tasks {
            statuses.push(task.await.unwrap());
        }
        statuses
    });
    let taken = statuses.iter().filter(|status| **status == 200).count();
    assert!(taken > 0 && statuses.iter().all(|status| matches!(status, 200 | 503)), "{statuses:?}");
    assert_eq!(bed.hub.latest(TOPIC).unwrap().unwrap().0.offset.0, taken as u64);
}

#[test]
fn full_store_is_reported() {
    let mut small = options();
    small.store_bytes = 1_000;
    small.retention_sweep = std::time::Duration::from_millis(10);
    let bed = Bed::new(small);
    // The last notification of a topic is always kept.
    assert_eq!(bed.publish(TOPIC, "text/plain", &[b'x'; 2_000]).status, 200);
    let answer = eventually_some("refusal", || {
        let answer = bed.publish(TOPIC, "text/plain", &[b'x'; 2_000]);
        (answer.status == 503).then_some(answer)
    });
    assert!(answer.headers.iter().any(|(name, _)| *name == "Retry-After"));
}

#[test]
fn a_report_during_the_retries_of_another_has_its_own() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let topic = Server::new(move |_| {
        if counted.fetch_add(1, SeqCst) < 5 {
            return Reply::Status(500);
        }
        Reply::Full(200, vec![("Content-Type", "text/plain".to_owned())], b"changed".to_vec())
    });
    let mut allowing = options();
    allowing.allow_topics = vec![topic.url("/")];
    let (bed, subscriber) = (Bed::new(allowing), Server::willing());
    bed.subscribe(&topic.url("/t"), &subscriber.url("/c"), "");
    let report = format!("hub.mode=publish&hub.url={}", encode(&topic.url("/t")));
    assert_eq!(bed.form(&report).status, 202);
    eventually_some("three attempts", || (asked.load(SeqCst) == 3).then_some(()));
    assert_eq!(bed.form(&report).status, 202);
    assert_eq!(subscriber.wait_deliveries(1)[0].text(), "changed");
}

#[test]
fn reports_of_a_topic_that_fails_do_not_accumulate() {
    let topic = Server::new(|_| Reply::Status(500));
    let mut allowing = options();
    allowing.allow_topics = vec![topic.url("/")];
    let bed = Bed::new(allowing);
    let report = format!("hub.mode=publish&hub.url={}", encode(&topic.url("/t")));
    for _ in 0..250 {
        assert_eq!(bed.form(&report).status, 202);
    }
    let attempts = topic.seen().len();
    eventually_some("another attempt", || (topic.seen().len() > attempts).then_some(()));
    std::thread::sleep(std::time::Duration::from_millis(200));
    assert!(topic.seen().len() < attempts + 4, "it is not given up yet");
    bed.restart_with(|store| {
        let own = store.open_topic("abreast:to-be-fetched").unwrap();
        let kept = store.read(own, Offset(0), 1_000).unwrap();
        assert!((1..=101).contains(&kept.len()), "{}", kept.len());
    });
}
