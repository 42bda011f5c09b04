//! What does it cost? Not a test: prints figures.
//!
//! `cargo test --release -p abreast-hub --test it -- --ignored --nocapture cost`, beside a server that answers GET with
//! the argument `hub.challenge` and POST with 204, at `ABREAST_HUB_RECEIVER` (such as `http://127.0.0.1:8080`).

use crate::bed::{Bed, TOPIC, eventually, options};
use crate::server::{Reply, Server, confirm, encode};
use abreast_core::{Offset, TopicLog as _};
use abreast_hub::{HubRequest, Publisher};
use abreast_store::hub::{NewTarget, Secret, TargetKind};
use std::time::{Duration, Instant};

/// CPU time of this process in user and system mode, in seconds.
fn cpu() -> (f64, f64) {
    let line = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> = line.rsplit(')').next().unwrap().split(' ').filter_map(|field| field.parse().ok()).collect();
    (fields[10] / 100.0, fields[11] / 100.0)
}

fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1_024
}

fn with_targets(bed: &Bed, count: usize, address: impl Fn(usize) -> String, secret: Option<&[u8]>) {
    let topic = bed.hub.own_topic(TOPIC).unwrap();
    for number in 0..count {
        bed.hub
            .store()
            .put_target(NewTarget {
                topic,
                kind: TargetKind::Subscription,
                address: address(number),
                secret: secret.map(|secret| Secret::from([secret, number.to_string().as_bytes()].concat())),
                lease_until: Some(abreast_webtypes::Timestamp::MAX),
                cursor: Some(Offset(0)),
            })
            .unwrap();
    }
}

#[test]
#[ignore = "measures"]
fn cost_of_a_delivery() {
    let Ok(receiver) = std::env::var("ABREAST_HUB_RECEIVER") else { return };
    for secret in [None, Some(&b"secret"[..])] {
        let mut options = options();
        options.save_every = Duration::from_millis(100);
        options.lanes.per_origin = 64;
        let bed = Bed::new(options);
        with_targets(&bed, 1_000, |number| format!("{receiver}/callback/{number}"), secret);
        let bed = bed.restart();
        let rounds = 50;
        let (before, begin) = (cpu(), Instant::now());
        for round in 1..=rounds {
            assert_eq!(bed.publish(TOPIC, "application/xml", &[b'x'; 10_240]).status, 200);
            eventually("a round", || (bed.hub.metrics().delivered >= round * 1_000).then_some(()));
        }
        let (after, took, all) = (cpu(), begin.elapsed().as_secs_f64(), (rounds * 1_000) as f64);
        println!(
            "signed: {}; {:.0} deliveries/s, {:.1} us of user and {:.1} us of system time each, failed {}",
            secret.is_some(),
            all / took,
            (after.0 - before.0) * 1e6 / all,
            (after.1 - before.1) * 1e6 / all,
            bed.hub.metrics().failed,
        );
    }
}

#[test]
#[ignore = "measures"]
fn cost_of_idle_subscriptions() {
    let mut options = options();
    options.subscriptions_per_host = u32::MAX;
    let bed = Bed::new(options);
    let count = 20_000;
    let address =
        |number: usize| format!("http://receiver{}.example.org/websub/callback/{:032x}", number % 100, number * 7);
    with_targets(&bed, count, address, Some(b"0123456789abcdef0123456789"));
    let before = resident();
    let begin = Instant::now();
    let bed = bed.restart();
    let after = resident();
    println!("{count} subscriptions loaded in {:?}", begin.elapsed());
    println!("{} bytes each ({before} to {after})", (after.saturating_sub(before)) / count as u64);
    assert_eq!(bed.hub.metrics().targets, count as u64);
}

#[test]
#[ignore = "measures"]
fn cost_of_accepting() {
    let bed = Bed::new(options());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    let (begin, before, count) = (Instant::now(), cpu(), 20_000);
    runtime.block_on(async {
        let mut tasks = Vec::new();
        for task in 0..64 {
            let hub = bed.hub.clone();
            tasks.push(tokio::spawn(async move {
                for number in 0..count / 64 {
                    let answer = hub
                        .handle(HubRequest {
                            content_type: "application/xml".to_owned(),
                            links: vec![format!("<http://example.org/{}>; rel=\"self\"", (task + number) % 100)],
                            body: vec![b'x'; 1_024].into(),
                            publisher: Publisher::Local,
                            client: "127.0.0.1".parse().unwrap(),
                        })
                        .await;
                    assert_eq!(answer.status, 200);
                }
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    let (after, took) = (cpu(), begin.elapsed().as_secs_f64());
    println!(
        "{:.0} accepted/s, {:.1} us of CPU time each",
        f64::from(count) / took,
        (after.0 + after.1 - before.0 - before.1) * 1e6 / f64::from(count)
    );
    assert!(bed.hub.store().head(bed.hub.topic("http://example.org/1").unwrap()).unwrap().0 > 100);
}

#[test]
#[ignore = "measures"]
fn cost_of_subscribing() {
    let (bed, server) = (Bed::new(options()), Server::willing());
    let begin = Instant::now();
    for number in 0..1_000 {
        let callback = encode(&server.url(&format!("/{number}")));
        let topic = encode(TOPIC);
        assert_eq!(bed.form(&format!("hub.mode=subscribe&hub.topic={topic}&hub.callback={callback}")).status, 202);
    }
    let asked = begin.elapsed();
    eventually("all", || (bed.hub.metrics().confirmed == 1_000).then_some(()));
    println!("1,000 requests taken in {asked:?}, confirmed after {:?}", begin.elapsed());
}

#[test]
#[ignore = "measures"]
fn cost_of_hanging() {
    let server = Server::new(|got| match (got.is_delivery(), got.path().starts_with("/hang")) {
        (false, _) => confirm(got),
        (true, true) => Reply::Hang,
        (true, false) => Reply::Status(204),
    });
    for hanging in [0, 10] {
        let bed = Bed::new(options());
        let kind = |number: usize| if number % 100 < hanging { "hang" } else { "fast" };
        with_targets(&bed, 500, |number| server.url(&format!("/{}{number}", kind(number))), None);
        let bed = bed.restart();
        let willing = (500 - 5 * hanging) as u64;
        let mut took: Vec<Duration> = Vec::new();
        for round in 1..=20 {
            let begin = Instant::now();
            assert_eq!(bed.publish(TOPIC, "text/plain", b"x").status, 200);
            eventually("a round", || (bed.hub.metrics().delivered >= round * willing).then_some(()));
            took.push(begin.elapsed());
        }
        let first = took.remove(0);
        took.sort_unstable();
        println!("{hanging} % hang: first round {first:?}, then median {:?}, longest {:?}", took[9], took[18]);
    }
}
