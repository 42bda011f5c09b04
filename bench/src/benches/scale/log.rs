//! The change log of several nodes on PostgreSQL, beside plain `COPY` and the log on SQLite.

use super::rows::{BATCH, change, ready, state};
use crate::report::Report;
use crate::samples::Samples;
use crate::settings::Settings;
use abreast_core::{Change, ChangeLog, KeyRange, Position, SetId, SystemClock, append};
use abreast_store::{PostgresLog, SqliteLog};
use abreast_testkit::postgres::Postgres;
use anyhow::{Result, ensure};
use serde_json::json;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Writers that append one change at a time: of all nodes, or of each one.
const WRITERS: usize = 48;
/// Flushes of the disk that are timed.
const FLUSHES: usize = 200;
/// Most nodes.
const NODES: usize = 3;
/// Changes by one node until another one sees them.
const HOPS: usize = 200;

/// Rates a second, or milliseconds, one of each round.
#[derive(Default)]
struct Figures {
    sqlite: Samples,
    postgres: Samples,
    copy: Samples,
    nodes: [Samples; NODES],
    busy_nodes: Samples,
    flushes: Samples,
    hop_p50: Samples,
    hop_p99: Samples,
    scan_sqlite: Samples,
    scan: Samples,
    read_sqlite: Samples,
    read: Samples,
    sent: Samples,
}

/// The change log beside plain `COPY` and SQLite.
pub(super) fn run(settings: &Settings, server: &Postgres, report: &mut Report) -> Result<()> {
    let count = settings.size(100_000, 10_000);
    let mut figures = Figures::default();
    for round in 0..settings.rounds {
        let name = format!("scale{round}");
        let url = server.create(&name);
        let folder = settings.empty_folder("scale")?;
        let sqlite = SqliteLog::open(&folder.join("log.sqlite"), Arc::new(SystemClock))?;
        let set = ready(&sqlite)?;
        figures.sqlite.push(load(&sqlite, set, count)?);
        figures.scan_sqlite.push(scan(&sqlite, set)?);
        figures.read_sqlite.push(read(&sqlite, set)?);
        drop(sqlite);
        let node = PostgresLog::open(&url)?;
        let set = ready(&node)?;
        figures.postgres.push(load(&node, set, count)?);
        figures.copy.push(copied(server, &name, count)?);
        figures.scan.push(scan(&node, set)?);
        figures.sent.push(sent(server, &name, count));
        figures.read.push(read(&node, set)?);
        let nodes = [node, PostgresLog::open(&url)?, PostgresLog::open(&url)?];
        let seconds = if settings.quick { 1.0 } else { 5.0 };
        for (place, samples) in figures.nodes.iter_mut().enumerate() {
            samples.push(single(&nodes[..=place], WRITERS, set, seconds)?);
        }
        figures.busy_nodes.push(single(&nodes, NODES * WRITERS, set, seconds)?);
        figures.flushes.push(flushes(&server.file("flushed"))?);
        let hops = hops(&nodes, set)?;
        figures.hop_p50.push(hops.quantile(0.5));
        figures.hop_p99.push(hops.quantile(0.99));
        report.raw(&json!({ "round": round, "sqlite_per_s": figures.sqlite.last(), "postgres_per_s": figures.postgres.last(),
            "copy_per_s": figures.copy.last(), "nodes_per_s": figures.nodes.iter().map(Samples::last).collect::<Vec<_>>(),
            "hop_p50_ms": figures.hop_p50.last(), "hop_p99_ms": figures.hop_p99.last() }));
    }
    show(&figures, count, report);
    Ok(())
}

fn show(figures: &Figures, count: usize, report: &mut Report) {
    let [one, .., three] = &figures.nodes;
    let over_copy = figures.postgres.over(&figures.copy);
    report.at_least(
        "changes a second on PostgreSQL, over `COPY` of the same rows",
        &over_copy,
        0.5,
        " ×",
    );
    report.at_least(
        "single changes a second of 3 nodes with the writers of 1 node, over 1 node",
        &three.over(one),
        0.9,
        " ×",
    );
    report.at_least(
        "the same, with as many writers for each node",
        &figures.busy_nodes.over(one),
        0.9,
        " ×",
    );
    let scans = figures.scan_sqlite.over(&figures.scan);
    report.at_most("time of a scan of all resources, over SQLite", &scans, 1.5, " ×");
    let reads = figures.read_sqlite.over(&figures.read);
    report.at_most("time of reading the log, over SQLite", &reads, 1.5, " ×");
    report.at_most("a change until another node sees it, p50", &figures.hop_p50, 60.0, " ms");
    report.at_most("a change until another node sees it, p99", &figures.hop_p99, 250.0, " ms");
    report.text(&format!(
        "{count} new resources in batches of {BATCH}, recorded by one node in a PostgreSQL server on the same machine, each batch \
         durable. `COPY` writes the same rows into copies of the two tables with their indexes, in two statements. Single changes come \
         from {WRITERS} threads, spread over the nodes or for each node, all in one set; all nodes run in one process. Transactions of \
         a set follow each other, since positions have no gaps, and each waits until the disk has flushed: its flushes of 8 KiB a \
         second are the limit. A transaction has the changes that wait on one node, so that three nodes with the writers of one \
         record a third at a time. Changes until another node sees them: {HOPS}, one after another."
    ));
    let mut rows = vec![
        vec!["SQLite, changes a second".to_owned(), figures.sqlite.text()],
        vec!["PostgreSQL, changes a second".to_owned(), figures.postgres.text()],
        vec!["`COPY`, changes a second".to_owned(), figures.copy.text()],
    ];
    for (place, samples) in figures.nodes.iter().enumerate() {
        rows.push(vec![format!("single changes a second, nodes: {}", place + 1), samples.text()]);
    }
    let busy = format!("single changes a second, nodes: {NODES}, {WRITERS} writers each");
    rows.push(vec![busy, figures.busy_nodes.text()]);
    rows.push(vec!["flushes of the disk a second".to_owned(), figures.flushes.text()]);
    rows.push(vec!["another node sees a change, p50, ms".to_owned(), figures.hop_p50.text()]);
    rows.push(vec!["the same, p99, ms".to_owned(), figures.hop_p99.text()]);
    rows.push(vec!["scan, resources a second, SQLite".to_owned(), figures.scan_sqlite.text()]);
    rows.push(vec!["scan, resources a second, PostgreSQL".to_owned(), figures.scan.text()]);
    rows.push(vec![
        "the same rows sent by PostgreSQL to a program that ignores them, a second".to_owned(),
        figures.sent.text(),
    ]);
    rows.push(vec![
        "reading the log, changes a second, SQLite".to_owned(),
        figures.read_sqlite.text(),
    ]);
    rows.push(vec![
        "reading the log, changes a second, PostgreSQL".to_owned(),
        figures.read.text(),
    ]);
    report.table(&["", ""], &rows);
}

/// Changes a second of a load in batches.
fn load(log: &dyn ChangeLog, set: SetId, count: usize) -> Result<f64> {
    let begun = Instant::now();
    for first in (0..count).step_by(BATCH) {
        let numbers = first..count.min(first + BATCH);
        append(log, set, numbers.map(|number| change(number as u64)).collect())?;
    }
    Ok(count as f64 / begun.elapsed().as_secs_f64())
}

/// Changes a second of `COPY`, for the rows of the log and of the resources.
fn copied(server: &Postgres, database: &str, count: usize) -> Result<f64> {
    server.sql(
        database,
        "CREATE TABLE changes_of_copy (LIKE abreast.changes INCLUDING INDEXES); \
         CREATE TABLE resources_of_copy (LIKE abreast.resources INCLUDING INDEXES)",
    );
    let files = ["changes", "resources"].map(|table| {
        let file = server.file(&format!("{database}-{table}"));
        server.sql(database, &format!("COPY abreast.{table} TO '{}'", file.display()));
        (table, file)
    });
    let begun = Instant::now();
    for (table, file) in &files {
        server.sql(database, &format!("COPY {table}_of_copy FROM '{}'", file.display()));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let rows = server.sql(database, "SELECT count(*) FROM changes_of_copy");
    ensure!(rows == count.to_string(), "{rows} rows were copied");
    Ok(count as f64 / seconds)
}

/// Rows a second that the server sends in the order and form of a scan.
fn sent(server: &Postgres, database: &str, count: usize) -> f64 {
    const COPY: &str = "COPY (SELECT modified, length, media_type, encoding, digests, links, content, key, witness, position, \
                        description, deprecated FROM abreast.resources ORDER BY set_id, left(key, 500)) \
                        TO PROGRAM 'cat > /dev/null' (FORMAT binary);";
    // Several, as each needs a new process.
    const TIMES: usize = 5;
    let begun = Instant::now();
    server.sql(database, &COPY.repeat(TIMES));
    (TIMES * count) as f64 / begun.elapsed().as_secs_f64()
}

/// Single changes a second by all writers together.
fn single(nodes: &[PostgresLog], writers: usize, set: SetId, seconds: f64) -> Result<f64> {
    let done = AtomicU64::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..writers)
            .map(|writer| {
                let (log, done) = (&nodes[writer % nodes.len()], &done);
                scope.spawn(move || -> Result<()> {
                    let mut number = 0;
                    while begun.elapsed().as_secs_f64() < seconds {
                        let nodes = nodes.len();
                        let key = format!("single/{nodes}/{writers}/{writer}/{number}");
                        append(log, set, vec![Change::put(key, state(number))])?;
                        number += 1;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(())
                })
            })
            .collect();
        for writer in writers {
            writer.join().map_err(|_| anyhow::anyhow!("a writer panicked"))??;
        }
        Ok::<_, anyhow::Error>(())
    })?;
    Ok(done.load(Ordering::Relaxed) as f64 / begun.elapsed().as_secs_f64())
}

/// Flushes a second of a block that is written again each time.
fn flushes(path: &Path) -> Result<f64> {
    let file = File::create(path)?;
    let begun = Instant::now();
    for _ in 0..FLUSHES {
        file.write_all_at(&[7; 8 << 10], 0)?;
        file.sync_data()?;
    }
    Ok(FLUSHES as f64 / begun.elapsed().as_secs_f64())
}

/// Milliseconds from a change of one node until another one sees it.
fn hops(nodes: &[PostgresLog], set: SetId) -> Result<Samples> {
    let mut samples = Samples::default();
    for number in 0..HOPS {
        let (from, to) = (&nodes[number % NODES], &nodes[(number + 1) % NODES]);
        let head = to.head(set)?.position;
        let begun = std::thread::scope(|scope| -> Result<Instant> {
            let waiting = scope.spawn(|| to.wait_for(&[(set, head)], Duration::from_secs(10)));
            std::thread::sleep(Duration::from_millis(number as u64 % 50));
            append(from, set, vec![Change::put(format!("hop/{number}"), state(number as u64))])?;
            let begun = Instant::now();
            let seen = waiting.join().map_err(|_| anyhow::anyhow!("the reader panicked"))??;
            ensure!(seen, "the change was not seen");
            Ok(begun)
        })?;
        samples.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    Ok(samples)
}

fn scan(log: &dyn ChangeLog, set: SetId) -> Result<f64> {
    let (begun, mut seen) = (Instant::now(), 0);
    log.scan(set, &KeyRange::default(), &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })?;
    Ok(f64::from(seen) / begun.elapsed().as_secs_f64())
}

fn read(log: &dyn ChangeLog, set: SetId) -> Result<f64> {
    let (begun, mut seen) = (Instant::now(), 0);
    log.read(set, Position(0), &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })?;
    Ok(f64::from(seen) / begun.elapsed().as_secs_f64())
}
