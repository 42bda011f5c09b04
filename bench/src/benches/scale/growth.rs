//! The cost of requests with many resources, beside their cost with few, and the size of rows.

use super::rows::{BATCH, change, ready, state};
use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_core::{Change, ChangeLog, Position, SetId, append};
use abreast_store::PostgresLog;
use abreast_testkit::Random;
use abreast_testkit::postgres::Postgres;
use anyhow::{Context as _, Result};
use std::ops::ControlFlow;
use std::time::Instant;

const FEW: usize = 10_000;
/// Repetitions of each request.
const TIMES: usize = 300;
/// Changes and resources in an answer.
const ANSWER: u64 = 1_000;

type Request = fn(&PostgresLog, SetId, &mut Random, usize) -> Result<()>;

const REQUESTS: [(&str, Request); 5] = [
    ("the head of the log", head),
    ("the last 1,000 changes", last),
    ("1,000 changes at any position", since),
    ("a resource by its key", resource),
    ("a change of a resource, durable", replace),
];

pub(super) fn run(settings: &Settings, server: &Postgres, report: &mut Report) -> Result<()> {
    let many = settings.size(10_000_000, 100_000);
    let node = PostgresLog::open(&server.create("growth"))?;
    let set = ready(&node)?;
    let analyze = "VACUUM ANALYZE abreast.resources, abreast.changes, abreast.shards";
    fill(&node, set, 0..FEW)?;
    // Planning takes longer with statistics, which a table in use has.
    server.sql("growth", analyze);
    let few = measure(&node, set, FEW)?;
    let begin = Instant::now();
    fill(&node, set, FEW..many)?;
    let rate = (many - FEW) as f64 / begin.elapsed().as_secs_f64();
    let bytes = |table: &str| -> Result<f64> {
        let sql = format!("SELECT pg_total_relation_size('abreast.{table}')");
        Ok(server.sql("growth", &sql).parse::<f64>().context("no size")? / many as f64)
    };
    let (resources, changes) = (bytes("resources")?, bytes("changes")?);
    server.sql("growth", analyze);
    let found = measure(&node, set, many)?;
    let mut rows = Vec::new();
    for (((name, _), few), many_times) in REQUESTS.iter().zip(&few).zip(&found) {
        let ratio = Samples::from_iter([many_times.median() / few.median()]);
        report.at_most(&format!("{name}, with {many} resources over {FEW}"), &ratio, 1.2, " ×");
        let cells =
            [few.median(), few.quantile(0.99), many_times.median(), many_times.quantile(0.99)];
        rows.push([(*name).to_owned()].into_iter().chain(cells.map(number)).collect());
    }
    report.text(&format!(
        "{many} resources loaded by one node in batches of {BATCH}, {} a second. With its indexes, a resource needs {} bytes in the \
         database and a change {} bytes. Each request {TIMES} times.",
        number(rate.round()),
        number(resources.round()),
        number(changes.round()),
    ));
    let (few, many) = (format!("{FEW}, p50 ms"), format!("{many}, p50 ms"));
    report.table(&["", &few, "p99 ms", &many, "p99 ms"], &rows);
    Ok(())
}

fn fill(log: &PostgresLog, set: SetId, numbers: std::ops::Range<usize>) -> Result<()> {
    for first in numbers.clone().step_by(BATCH) {
        let batch = first..numbers.end.min(first + BATCH);
        append(log, set, batch.map(|number| change(number as u64)).collect())?;
    }
    Ok(())
}

/// Milliseconds of each request, with this many resources.
fn measure(log: &PostgresLog, set: SetId, count: usize) -> Result<Vec<Samples>> {
    let mut random = Random::new(1);
    let mut measured = Vec::new();
    for (_, request) in REQUESTS {
        for _ in 0..TIMES / 10 {
            request(log, set, &mut random, count)?;
        }
        let mut samples = Samples::default();
        for _ in 0..TIMES {
            let begin = Instant::now();
            request(log, set, &mut random, count)?;
            samples.push(begin.elapsed().as_secs_f64() * 1e3);
        }
        measured.push(samples);
    }
    Ok(measured)
}

fn head(log: &PostgresLog, set: SetId, _: &mut Random, _: usize) -> Result<()> {
    log.head(set)?;
    Ok(())
}

fn last(log: &PostgresLog, set: SetId, _: &mut Random, _: usize) -> Result<()> {
    read(log, set, log.head(set)?.position.0 - ANSWER)
}

fn since(log: &PostgresLog, set: SetId, random: &mut Random, count: usize) -> Result<()> {
    read(log, set, random.below(count as u64 - ANSWER))
}

fn read(log: &PostgresLog, set: SetId, after: u64) -> Result<()> {
    let mut left = ANSWER;
    log.read(set, Position(after), &mut |_| {
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(())
}

fn resource(log: &PostgresLog, set: SetId, random: &mut Random, count: usize) -> Result<()> {
    log.resource(set, &change(random.below(count as u64)).key)?.context("no resource")?;
    Ok(())
}

fn replace(log: &PostgresLog, set: SetId, random: &mut Random, count: usize) -> Result<()> {
    let number = random.below(count as u64);
    let state = state(number + random.below(1_000_000) + 1);
    append(log, set, vec![Change::put(change(number).key, state)])?;
    Ok(())
}
