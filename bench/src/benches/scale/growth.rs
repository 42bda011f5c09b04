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
    let begin = Instant::now();
    let logs = [Filled::new(server, "few", FEW)?, Filled::new(server, "many", many)?];
    let rate = (many + FEW) as f64 / begin.elapsed().as_secs_f64();
    let bytes = |table: &str| -> Result<f64> {
        let sql = format!("SELECT pg_total_relation_size('abreast.{table}')");
        Ok(server.sql("many", &sql).parse::<f64>().context("no size")? / many as f64)
    };
    let (resources, changes) = (bytes("resources")?, bytes("changes")?);
    // Planning takes longer with statistics, which a table in use has. The checkpoint ends the work
    // that follows a load.
    for name in ["few", "many"] {
        server.sql(name, "VACUUM ANALYZE abreast.resources, abreast.changes, abreast.shards");
        server.sql(name, "CHECKPOINT");
    }
    let [few, found] = measure(&logs)?;
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
         database and a change {} bytes. Each request {TIMES} times, in turn in both sets.",
        number(rate.round()),
        number(resources.round()),
        number(changes.round()),
    ));
    let (few, many) = (format!("{FEW}, p50 ms"), format!("{many}, p50 ms"));
    report.table(&["", &few, "p99 ms", &many, "p99 ms"], &rows);
    Ok(())
}

/// A set with this many resources, in a database of its own.
struct Filled {
    log: PostgresLog,
    set: SetId,
    count: usize,
}

impl Filled {
    fn new(server: &Postgres, name: &str, count: usize) -> Result<Self> {
        let log = PostgresLog::open(&server.create(name))?;
        let set = ready(&log)?;
        for first in (0..count).step_by(BATCH) {
            let batch = first..count.min(first + BATCH);
            append(&log, set, batch.map(|number| change(number as u64)).collect())?;
        }
        Ok(Self { log, set, count })
    }
}

/// Milliseconds of each request in each set, in turn.
fn measure(sets: &[Filled; 2]) -> Result<[Vec<Samples>; 2]> {
    let mut randoms = [Random::new(1), Random::new(1)];
    let mut measured = [Vec::new(), Vec::new()];
    for (_, request) in REQUESTS {
        let mut samples = [Samples::default(), Samples::default()];
        for time in 0..TIMES + TIMES / 10 {
            for (place, Filled { log, set, count }) in sets.iter().enumerate() {
                let begin = Instant::now();
                request(log, *set, &mut randoms[place], *count)?;
                if time >= TIMES / 10 {
                    samples[place].push(begin.elapsed().as_secs_f64() * 1e3);
                }
            }
        }
        for (measured, samples) in measured.iter_mut().zip(samples) {
            measured.push(samples);
        }
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
