//! Cost of recording changes: `cargo run --release -p abreast-store --example bulk -- [CHANGES]
//! [BATCH] [import|append] [postgres://USER@HOST/DATABASE]`. The database needs `--features postgres`.

use abreast_core::{
    Change, ChangeLog, Imported, KeyRange, NewSet, Position, State, SystemClock, append,
};
use abreast_store::SqliteLog;
use abreast_webtypes::{Digests, Timestamp};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let changes: u64 = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let batch: u64 = arguments.next().map_or(Ok(1_000), |text| text.parse())?;
    let import = arguments.next().is_some_and(|word| word == "import");
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("store.sqlite");
    let place = arguments.next().unwrap_or_else(|| path.display().to_string());
    let mut out = std::io::stdout().lock();

    let log = open(&place)?;
    let log = &*log;
    let set = log.open_set(&NewSet { slug: "bulk".into(), ..NewSet::default() })?.id;
    if !import {
        log.complete_import(set)?;
    }
    let (cpu, wall) = (cpu_time(), Instant::now());
    let mut written = 0;
    while written < changes {
        let numbers = written..changes.min(written + batch);
        written = numbers.end;
        if import {
            let resources =
                numbers.map(|n| Imported { key: key(n), state: state(n), witness: vec![7; 40] });
            log.import(set, resources.collect())?;
        } else {
            let batch = numbers.map(|n| Change::put(key(n), state(n)).with_witness(vec![7; 40]));
            append(log, set, batch.collect())?;
        }
    }
    log.complete_import(set)?;
    report(&mut out, "create", changes, cpu, wall)?;

    let (cpu, wall) = (cpu_time(), Instant::now());
    for round in 0..changes / 10 / batch {
        let numbers = (0..batch).map(|n| (round * batch + n) * 7_919 % changes);
        append(log, set, numbers.map(|n| Change::put(key(n), state(n + 1))).collect())?;
    }
    report(&mut out, "update, keys in no order", changes / 10 / batch * batch, cpu, wall)?;

    let (cpu, wall) = (cpu_time(), Instant::now());
    let mut seen = 0;
    log.scan(set, &KeyRange::default(), &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })?;
    report(&mut out, "scan", seen, cpu, wall)?;

    let (cpu, wall) = (cpu_time(), Instant::now());
    let mut seen = 0;
    log.read(set, Position(0), &mut |_| {
        seen += 1;
        ControlFlow::Continue(())
    })?;
    report(&mut out, "read", seen, cpu, wall)?;

    let (cpu, wall) = (cpu_time(), Instant::now());
    for n in 0..10_000 {
        log.resource(set, &key(n * 7_919 % changes))?;
    }
    report(&mut out, "look up", 10_000, cpu, wall)?;

    let (cpu, wall) = (cpu_time(), Instant::now());
    for n in 0..500 {
        append(log, set, vec![Change::put(key(n * 7_919 % changes), state(n + 2))])?;
    }
    report(&mut out, "update alone", 500, cpu, wall)?;

    writeln!(out, "{:?}, {} shards", log.head(set)?, log.shards(set)?.len())?;
    let status = std::fs::read_to_string("/proc/self/status")?;
    for line in status.lines().filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"))
    {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn open(place: &str) -> Result<Box<dyn ChangeLog>, Box<dyn std::error::Error>> {
    #[cfg(feature = "postgres")]
    if place.starts_with("postgres") {
        return Ok(Box::new(abreast_store::PostgresLog::open(place)?));
    }
    Ok(Box::new(SqliteLog::open(Path::new(place), Arc::new(SystemClock))?))
}

fn key(number: u64) -> String {
    format!("collection/{:04}/item-{number:09}.xml", number / 10_000)
}

fn state(number: u64) -> State {
    let mut md5 = [0; 16];
    md5[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    State {
        modified: Timestamp::from_seconds(1_700_000_000 + number as i64),
        length: Some(number % 100_000),
        media_type: Some("application/xml".into()),
        digests: Digests { md5: Some(md5), ..Digests::default() },
        ..State::default()
    }
}

/// User and system time of this process.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 10)
}

fn report(
    out: &mut impl std::io::Write,
    what: &str,
    count: u64,
    cpu: Duration,
    wall: Instant,
) -> std::io::Result<()> {
    let (cpu, wall) = (cpu_time().saturating_sub(cpu), wall.elapsed());
    let each = |time: Duration| time.as_secs_f64() * 1e6 / count.max(1) as f64;
    writeln!(
        out,
        "{what}: {count} in {wall:.2?} wall, {cpu:.2?} CPU; {:.2} µs wall, {:.2} µs CPU each",
        each(wall),
        each(cpu)
    )
}
