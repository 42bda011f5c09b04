//! A set of very many entities while it is served: its start, one changed entity, what changed since
//! a time, memory.

use super::rdf::import;
use crate::abreast::{self, Source};
use crate::http::Http;
use crate::report::Report;
use crate::run::{log_path, settle, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::thesaurus::{self, STATEMENTS};
use abreast_core::{
    Beginning, Change, ChangeLog, Description, NewSet, Position, SetId, State, SystemClock, append,
};
use abreast_store::SqliteLog;
use abreast_webtypes::{Digests, Label, Timestamp};
use anyhow::{Context as _, Result, ensure};
use serde_json::json;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Entities changed a round, one after the other.
const CHANGES: usize = 200;
/// Questions a round: fewer than there are entities in the shortest log, so that an answer has as many
/// entries in each.
const QUESTIONS: u64 = 80;
/// Changes of each resource in a generated log.
const EACH: u64 = 100;
/// Changes recorded together.
const BATCH: u64 = 10_000;

/// A set of one size.
struct Size {
    entities: usize,
    data: PathBuf,
    token: String,
    start: Samples,
    put: Samples,
    memory: Samples,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let sizes = [10_000, settings.size(1_000_000, 20_000)];
    let mut sizes = sizes.map(|entities| filled(settings, &program, entities)).into_iter();
    let (Some(few), Some(many)) = (sizes.next(), sizes.next()) else { unreachable!("two sizes") };
    let mut sizes = [few?, many?];
    let lengths = [10_000, settings.size(10_000_000, 100_000) as u64];
    let mut asked: [Samples; 2] = Default::default();
    for round in 0..settings.rounds {
        for size in &mut sizes {
            settle();
            one_round(settings, &program, size, round)?;
            report.raw(
                &json!({ "round": round, "entities": size.entities, "start_s": size.start.last(),
                "put_ms": size.put.last(), "memory_mib": size.memory.last() }),
            );
        }
        for (length, asked) in lengths.iter().zip(&mut asked) {
            asked.push(since(settings, &program, *length)?);
            report.raw(&json!({ "round": round, "log": length, "since_ms": asked.last() }));
        }
    }
    let [few, many] = &sizes;
    let (size, before) = (number(many.entities as f64), number(few.entities as f64));
    report.at_most(&format!("start with {size} entities"), &many.start, 2.0, " s");
    report.at_most(
        &format!("one changed entity: time with {size}, relative to {before}"),
        &many.put.over(&few.put),
        1.2,
        " ×",
    );
    report.at_most(&format!("memory with {size} entities"), &many.memory, 64.0, " MiB");
    let [short, long] = lengths.map(|length| number(length as f64));
    report.at_most(
        &format!("changes since a time: time with a log of {long} changes, relative to {short}"),
        &asked[1].over(&asked[0]),
        1.2,
        " ×",
    );
    report.text(&format!(
        "`abreast serve --origin rdf` with entities of {STATEMENTS} statements. Start: from the start of the process until \
         `/readyz` is answered 200. One changed entity: {CHANGES} `PUT`s of a description, one after the other, each until it \
         is answered, durable; the median. Memory: peak of resident memory after that. What changed since a time: \
         {QUESTIONS} requests of `/data/sdshare/fragments?since=…`, each for another time and 10 to {} entries; logs with \
         {EACH} changes of each resource; the median.",
        QUESTIONS + 9,
    ));
    let row = |name: &str, of: fn(&Size) -> &Samples| {
        vec![name.to_owned(), of(few).text(), of(many).text()]
    };
    report.table(
        &["", &before, &size],
        &[
            row("start, s", |size| &size.start),
            row("one changed entity, ms", |size| &size.put),
            row("memory, MiB", |size| &size.memory),
        ],
    );
    report.table(
        &["changes in the log", &short, &long],
        &[vec!["what changed since a time, ms".to_owned(), asked[0].text(), asked[1].text()]],
    );
    Ok(())
}

/// A store with that many entities, made once.
fn filled(settings: &Settings, program: &Path, entities: usize) -> Result<Size> {
    let data = settings.folder.join(format!("entities-{entities}"));
    let token = data.join("bench.token");
    if !token.exists() {
        std::fs::create_dir_all(&data)?;
        eprintln!("   importing {entities} entities");
        import(settings, program, &data, &thesaurus::file(settings, entities, None)?)?;
        let arguments = ["token", "create", "--name", "bench", "--scope", "write", "--data"];
        let mut arguments: Vec<_> = arguments.map(PathBuf::from).into();
        arguments.push(data.clone());
        let log = log_path(&settings.folder, "token")?;
        let (_, printed) = timed(program, &arguments, &settings.folder, &log)?;
        let created = printed.lines().find(|line| line.starts_with("abreast_"));
        std::fs::write(&token, created.context("no token was printed")?)?;
    }
    let token = std::fs::read_to_string(token)?;
    let [start, put, memory] = [const { Samples::new() }; 3];
    Ok(Size { entities, data, token, start, put, memory })
}

pub(super) fn serve(settings: &Settings, program: &Path, data: &Path) -> Result<Source> {
    let data = data.to_string_lossy();
    let arguments = ["--origin", "rdf", "--name", "data", "--api-write", "--data", &*data];
    let source = Source::start(settings, program, "serve-entities", &arguments)?;
    source.wait_ready()?;
    Ok(source)
}

fn one_round(settings: &Settings, program: &Path, size: &mut Size, round: usize) -> Result<()> {
    let begun = Instant::now();
    let source = serve(settings, program, &size.data)?;
    size.start.push(begun.elapsed().as_secs_f64());
    let header =
        format!("Authorization: Bearer {}\r\nContent-Type: application/n-triples\r\n", size.token);
    let mut http = Http::connect(&source.url())?;
    let mut times = Samples::default();
    let stamp = abreast_core::Clock::now(&SystemClock).as_micros();
    for change in 0..CHANGES {
        let iri = thesaurus::iri((change * 7_919 + round * 104_729) % size.entities);
        let line = |place| {
            format!("<{iri}> <http://id.example.org/terms/{place}> \"{stamp} {place}\" .\n")
        };
        let lines = (0..STATEMENTS).map(line).collect::<Vec<_>>().concat();
        let path = format!(
            "/api/v1/sets/data/resource?uri={}",
            iri.replace(':', "%3A").replace('/', "%2F")
        );
        let begun = Instant::now();
        let answer = http.put(&path, &header, lines.as_bytes())?;
        times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        let text = String::from_utf8_lossy(&answer.body);
        ensure!((200..300).contains(&answer.status), "PUT {path}: {} {text}", answer.status);
    }
    size.put.push(times.median());
    size.memory.push(source.server.peak_memory_mib()?);
    Ok(())
}

/// Milliseconds of one request for what changed since a time.
fn since(settings: &Settings, program: &Path, length: u64) -> Result<f64> {
    let data = settings.folder.join(format!("entities-log-{length}"));
    std::fs::create_dir_all(&data)?;
    let times = {
        let (log, set) = generated(&data.join("source.db"), length)?;
        let mut times: Vec<Timestamp> = Vec::new();
        log.read(set, Position(length - QUESTIONS - 10), &mut |change| {
            times.push(change.time);
            ControlFlow::Continue(())
        })?;
        times
    };
    let source = serve(settings, program, &data)?;
    let mut http = Http::connect(&source.url())?;
    let mut found = Samples::default();
    for time in &times[..QUESTIONS as usize] {
        let path = format!("/data/sdshare/fragments?since={time}");
        let begun = Instant::now();
        let page = http.get_ok(&path)?;
        found.push(begun.elapsed().as_secs_f64() * 1_000.0);
        let entries = String::from_utf8_lossy(&page).matches("<entry>").count();
        ensure!(entries >= 10, "{path} has {entries} entries");
    }
    Ok(found.median())
}

/// A log with that many changes, without the contents: made once.
pub(super) fn generated(path: &Path, length: u64) -> Result<(SqliteLog, SetId)> {
    let log = SqliteLog::open(path, Arc::new(SystemClock))?;
    let new = NewSet { slug: "data".into(), beginning: Beginning::Log, ..NewSet::default() };
    let set = log.open_set(&new)?.id;
    let mut next = log.head(set)?.position.0;
    if next == 0 {
        eprintln!("   generating a log of {length} changes");
    }
    while next < length {
        let numbers = next..(next + BATCH).min(length);
        next = numbers.end;
        append(&log, set, numbers.map(|number| change(number, length)).collect())?;
    }
    let found = log.head(set)?.position.0;
    ensure!(found == length, "{} has {found} changes, not {length}; remove it", path.display());
    Ok((log, set))
}

fn change(number: u64, length: u64) -> Change {
    let entities = length / EACH;
    // Those that are asked for are scattered. If all were, each batch would write every page of the
    // table, which takes many times as long.
    let is_asked_for = number + BATCH >= length;
    let entity = if is_asked_for { number * 7_919 % entities } else { number % entities };
    let state = State {
        modified: Timestamp::from_seconds(1_700_000_000 + number as i64),
        length: Some(1_300),
        media_type: Some("application/n-triples".into()),
        digests: Digests::default(),
        description: Some(Box::new(Description {
            types: vec!["http://www.w3.org/2004/02/skos/core#Concept".into()],
            labels: vec![Label::plain(format!("Heading {number}"))],
            media_type: None,
        })),
        ..State::default()
    };
    Change::put(thesaurus::iri(entity as usize), state)
}
