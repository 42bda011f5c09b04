//! A million subscriptions of which nobody hears: the claim of shards, and the cost of a notification.

use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_core::hub::HubNodes as _;
use abreast_core::{NewNotification, Payload, TopicId, TopicLog as _};
use abreast_store::PostgresOptions;
use abreast_store::hub::{NodeOptions, PostgresHub};
use abreast_testkit::postgres::Postgres;
use anyhow::{Context as _, Result, ensure};
use std::time::Instant;

const TIMES: usize = 100;

pub(super) fn run(settings: &Settings, server: &Postgres, report: &mut Report) -> Result<()> {
    let many = settings.size(1_000_000, 20_000);
    let few = many / 10;
    let url = server.create("idle");
    let hub = PostgresOptions::default().connect(&url)?.hub(NodeOptions::default())?;
    let busy = hub.open_topic("http://example.org/busy")?;
    let mut costs = Vec::new();
    let mut claims = Samples::default();
    for count in [few, many] {
        let known: usize = server.sql("idle", "SELECT count(*) FROM abreast.targets").parse()?;
        add(server, known, count);
        server.sql("idle", "VACUUM ANALYZE");
        let (mut claim, mut publish, mut poll) =
            (Samples::default(), Samples::default(), Samples::default());
        for _ in 0..TIMES {
            hub.leave()?;
            let begin = Instant::now();
            let membership = hub.renew()?;
            claim.push(begin.elapsed().as_secs_f64() * 1e3);
            ensure!(membership.shards.len() == 1_024, "the only node has all shards");
            let begin = Instant::now();
            notify(&hub, busy)?;
            publish.push(begin.elapsed().as_secs_f64() * 1e3);
            let begin = Instant::now();
            hub.revision()?;
            poll.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        claims = claim.clone();
        costs.push((count, claim, publish, poll));
    }
    let bytes = |table: &str| -> Result<f64> {
        let sql = format!("SELECT pg_total_relation_size('abreast.{table}')");
        Ok(server.sql("idle", &sql).parse::<f64>().context("no size")? / many as f64)
    };
    let (targets, progress) = (bytes("targets")?, bytes("progress")?);
    let [(_, _, few_publish, _), (_, _, many_publish, many_poll)] = &costs[..] else {
        return Ok(());
    };
    let p99 = Samples::from_iter([claims.quantile(0.99)]);
    report.at_most(&format!("claim of all shards, {many} subscriptions, p99"), &p99, 50.0, " ms");
    let p99 = Samples::from_iter([many_poll.quantile(0.99)]);
    report.at_most("poll of the revision, p99", &p99, 5.0, " ms");
    let ratio = Samples::from_iter([many_publish.median() / few_publish.median()]);
    report.at_most("a notification, with ten times the subscriptions", &ratio, 1.2, " ×");
    report.text(&format!(
        "A subscription needs {} bytes in `targets` and {} in `progress`, with indexes. Each {TIMES} times, durable.",
        number(targets.round()),
        number(progress.round())
    ));
    let row = |(count, claim, publish, poll): &(usize, Samples, Samples, Samples)| {
        let cells = [claim.median(), claim.quantile(0.99), publish.median(), poll.median()];
        [count.to_string()].into_iter().chain(cells.map(number)).collect()
    };
    let rows: Vec<Vec<String>> = costs.iter().map(row).collect();
    let head = ["subscriptions", "claim p50 ms", "p99 ms", "notification p50 ms", "poll p50 ms"];
    report.table(&head, &rows);
    Ok(())
}

/// Subscriptions to topics of their own, up to this number in all.
fn add(server: &Postgres, known: usize, count: usize) {
    server.sql(
        "idle",
        &format!(
            "INSERT INTO abreast.targets (shard, id, topic_id, kind, address_hash, address, lease_until, created, revision, replayed) \
             SELECT number % 1024, number, 900000 + number % 1000, 1, \
             substr(sha256(('http://callback.example.org/' || number)::bytea), 1, 16), 'http://callback.example.org/' || number, \
             9000000000000000, 1, 0, 0 FROM generate_series({known} + 1, {count}) AS number; \
             INSERT INTO abreast.progress (shard, id, generation, cursor, attempts) \
             SELECT number % 1024, number, 1, 0, 0 FROM generate_series({known} + 1, {count}) AS number; \
             UPDATE abreast.hub SET targets = {count}, last_target = {count}"
        ),
    );
}

fn notify(hub: &PostgresHub, topic: TopicId) -> Result<()> {
    let payload = Payload::Bytes(vec![b'x'; 200].into());
    let new = NewNotification { media_type: "text/plain".into(), links: String::new(), payload };
    abreast_core::publish(hub, topic, new)?;
    Ok(())
}
