//! Looking into the hub: the API, what subscribers can read about themselves, and figures.

use crate::push::{Pushing, TOPIC};
use crate::world::Reply;
use abreast_hub::SubmissionKind;
use abreast_server::ServerOptions;
use abreast_server::api::{Readers, Scope};
use abreast_testkit::eventually;
use serde_json::Value;

const CALLBACK: &str = "http://127.0.0.1:9/c/0123456789";

fn json(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap_or_else(|error| panic!("{error}: {}", reply.text()))
}

#[test]
fn topics_and_targets_are_paged_without_secrets() {
    let pushing = Pushing::new();
    let token = pushing.token("reader", Scope::Read);
    let get = |path: &str| pushing.ask("GET", path, &[("Authorization", &token)], b"");
    for number in 0..5 {
        pushing.subscriber(&format!("{CALLBACK}{number}"));
        pushing.hub.own_topic(&format!("https://example.org/{number}")).unwrap();
    }
    pushing.say("one");
    let walk = |path: &str, name: &str, limit: u64| {
        let (mut after, mut all) = (0, Vec::new());
        loop {
            let page = json(&get(&format!("{path}?limit={limit}&after={after}")));
            let entries = page[name].as_array().unwrap().clone();
            assert!(entries.len() as u64 <= limit);
            all.extend(entries);
            match page["next"].as_i64() {
                Some(next) => after = next,
                None => return all,
            }
        }
    };
    let topics = walk("/api/v1/hub/topics", "topics", 1);
    assert_eq!(topics.len(), 6, "{topics:?}");
    let own = topics.iter().find(|topic| topic["url"] == TOPIC).unwrap();
    assert_eq!(own["head"], 1);
    let path = format!("/api/v1/hub/topics/{}/targets", own["id"]);
    for limit in [1, 2, 5, 100] {
        let targets = walk(&path, "targets", limit);
        assert_eq!(targets.len(), 5);
        assert!(
            targets
                .iter()
                .all(|target| target["signed"] == true && target["kind"] == "subscription")
        );
        assert!(!format!("{targets:?}").contains("hush"));
    }
    assert_eq!(json(&get("/api/v1/hub"))["topics"], 6);
    assert_eq!(get("/api/v1/hub/topics?limit=1001").status, 400);
    assert_eq!(get("/api/v1/hub/topics/999/targets").status, 404);
    assert_eq!(get("/api/v1/hub/targets/999").status, 404);
    // What is published is public; who listens is not.
    assert_eq!(pushing.served.get("/api/v1/hub/topics").status, 200);
    assert_eq!(pushing.served.get(&path).status, 401);
}

#[test]
fn a_token_for_one_set_sees_that_sets_topics_only() {
    let pushing = Pushing::with_readers(Readers::Tokens, ServerOptions::default(), |_| {});
    let framework = "https://example.org/set/notify/framework";
    for url in
        ["https://example.org/other/notify/change", framework, "https://elsewhere.example/topic"]
    {
        pushing.hub.own_topic(url).unwrap();
    }
    let topics = |token: &str, more: &str| -> Vec<String> {
        let page = json(&pushing.ask(
            "GET",
            &format!("/api/v1/hub/topics{more}"),
            &[("Authorization", token)],
            b"",
        ));
        let topics = page["topics"].as_array().unwrap();
        topics.iter().map(|topic| topic["url"].as_str().unwrap().to_owned()).collect()
    };
    let own = pushing.token_for("own", Scope::Read, &["set"]);
    assert_eq!(topics(&own, ""), [TOPIC, framework]);
    assert_eq!(topics(&own, "?limit=1"), [TOPIC]);
    assert_eq!(topics(&own, &format!("?after={}", pushing.topic.0)), [framework]);
    let foreign = pushing.token_for("foreign", Scope::Write, &["another"]);
    assert!(topics(&foreign, "").is_empty());
    assert_eq!(topics(&pushing.token("all", Scope::Read), "").len(), 4);
}

#[test]
fn a_target_is_replayed_and_ended_by_administrators_only() {
    let pushing = Pushing::new();
    let writer = pushing.token("writer", Scope::Write);
    let admin = pushing.token("admin", Scope::Admin);
    pushing.say("one");
    pushing.say("two");
    let target = pushing.hub.submit_to(TOPIC, CALLBACK, SubmissionKind::Fat).unwrap();
    let path = format!("/api/v1/hub/targets/{}", target.0);
    let ask = |method: &str, more: &str, token: &str| {
        let headers = [("Authorization", token), ("Content-Length", "0")];
        pushing.ask(
            method,
            &format!("{path}{more}"),
            &headers[..if method == "GET" { 1 } else { 2 }],
            b"",
        )
    };
    assert_eq!(ask("POST", "/replay?after=0", &writer).status, 403);
    assert_eq!(ask("POST", "/end", &writer).status, 403);
    assert_eq!(ask("POST", "/replay?after=x", &admin).status, 400);
    // Nothing waits: no delivery is repeated.
    let current = json(&ask("POST", "/replay", &admin));
    assert_eq!((&current["state"], &current["attempts"]), (&"current".into(), &0.into()));
    let replayed = json(&ask("POST", "/replay?after=0", &admin));
    assert_eq!(
        (&replayed["cursor"], &replayed["head"], &replayed["state"]),
        (&0.into(), &2.into(), &"behind".into())
    );
    eventually("it is tried, in vain", || {
        let told = json(&ask("GET", "", &admin));
        told["state"] == "failing" && told["last_attempts"][0]["offset"] == 1
    });
    let ended = ask("POST", "/end?reason=moved", &admin);
    assert_eq!((ended.status, &json(&ended)["address"]), (200, &CALLBACK.into()));
    assert_eq!(ask("GET", "", &admin).status, 404);
    assert_eq!(ask("POST", "/end", &admin).status, 404);
}

#[test]
fn client_with_the_callback_url_sees_the_subscription() {
    let pushing = Pushing::new();
    let target = pushing.subscriber(CALLBACK);
    let encoded = CALLBACK.replace(':', "%3A").replace('/', "%2F");
    let path = format!("/hub?callback={encoded}");
    let page = pushing.served.get(&path);
    assert_eq!(page.status, 200);
    let told = page.text();
    for part in [TOPIC, "current: 0 of 0 notifications taken", "lease until 2096-10-02", "signed"] {
        assert!(told.contains(part), "{part} in {told}");
    }
    assert!(!told.contains("hush"));
    let as_json = json(&pushing.served.ask("GET", &path, &[("Accept", "application/json")]));
    assert_eq!(as_json["subscriptions"][0]["topic"], TOPIC);
    let topic = TOPIC.replace(':', "%3A").replace('/', "%2F");
    assert_eq!(pushing.served.get(&format!("{path}&topic={topic}")).text(), told);
    assert_eq!(pushing.served.get(&format!("{path}&topic=x")).status, 404);
    assert_eq!(pushing.served.get(&path[..path.len() - 1]).status, 404);
    pushing.hub.end(target.id, None).unwrap();
    assert!(
        pushing.served.get(&path).text().contains(": by hand"),
        "{}",
        pushing.served.get(&path).text()
    );
}

#[test]
fn figures_of_the_hub_are_read_when_asked_for() {
    let pushing = Pushing::new();
    pushing.subscriber(CALLBACK);
    pushing.served.get("/metrics");
    let figures = pushing.served.get("/metrics").text();
    // Other tests of this process write into the same.
    for name in
        ["abreast_hub_targets ", "abreast_hub_delivered_total ", "abreast_hub_event_streams "]
    {
        assert!(figures.lines().any(|line| line.starts_with(name)), "{name} in {figures}");
    }
}
