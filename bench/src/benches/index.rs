//! Cost of the documents of a very large set, compared with a small one.

use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_core::{
    Change, ChangeLog, Imported, NewSet, SetId, Shard, ShardId, State, SystemClock, append,
};
use abreast_source::publish::{PublishedSet, Publisher, SourceUrls};
use abreast_store::SqliteLog;
use abreast_webtypes::{Algorithm, Digests, Timestamp};
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Resources imported together.
const BATCH: u64 = 10_000;
/// Changes a round, of which the median counts.
const CHANGES: usize = 15;

struct Set {
    count: u64,
    log: Arc<SqliteLog>,
    id: SetId,
    figures: [Samples; 4],
    dirtied: Samples,
}

const DOCUMENTS: [&str; 4] = [
    "the open Change List",
    "the index of the Resource List",
    "the list with the change",
    "a list without the change",
];

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let sizes = [settings.size(100_000, 50_000) as u64, settings.size(10_000_000, 200_000) as u64];
    let mut sets = Vec::new();
    for count in sizes {
        let folder = settings.folder.join(format!("index-{count}"));
        std::fs::create_dir_all(&folder)?;
        let (log, id) = generated(&folder.join("source.db"), count)?;
        sets.push(Set {
            count,
            log: Arc::new(log),
            id,
            figures: Default::default(),
            dirtied: Samples::default(),
        });
    }
    for round in 0..settings.rounds {
        for set in &mut sets {
            one_round(settings, set, round)?;
            report.raw(&json!({ "round": round, "resources": set.count, "shards_dirtied": set.dirtied.max(),
                "ms": set.figures.iter().map(Samples::median).collect::<Vec<_>>() }));
        }
    }
    let [few, many] = &sets[..] else { unreachable!("two sizes") };
    let size = |set: &Set| number(set.count as f64);
    report.at_most(
        &format!("lists of {} resources that one change invalidates", size(many)),
        &many.dirtied,
        1.0,
        "",
    );
    for (place, name) in DOCUMENTS.iter().enumerate() {
        let ratio = many.figures[place].over(&few.figures[place]);
        report.at_most(
            &format!("{name}: time at {}, relative to {}", size(many), size(few)),
            &ratio,
            1.2,
            " ×",
        );
    }
    report.text(&format!(
        "Generated stores. A change is recorded, then each document is asked for until its first byte could be sent: made \
         rendered again if necessary, else from the cache. Median of {CHANGES} changes a round.",
    ));
    let rows: Vec<Vec<String>> = DOCUMENTS
        .iter()
        .enumerate()
        .map(|(place, name)| {
            vec![(*name).to_owned(), few.figures[place].text(), many.figures[place].text()]
        })
        .collect();
    report.table(&["ms", &format!("of {}", size(few)), &format!("of {}", size(many))], &rows);
    Ok(())
}

fn key(number: u64) -> String {
    format!("collection-{:04}/record-{number:08}.xml", number / 1_000)
}

fn state(number: u64, version: u64) -> State {
    let mut digests = Digests::default();
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes[8..].copy_from_slice(&version.to_le_bytes());
    digests.set(Algorithm::Md5, &bytes);
    State {
        modified: Timestamp::from_seconds(1_700_000_000 + version as i64),
        length: Some(3_000 + number % 1_000),
        media_type: Some("application/xml".into()),
        digests,
        ..State::default()
    }
}

/// A store with that many resources; made once.
fn generated(path: &Path, count: u64) -> Result<(SqliteLog, SetId)> {
    let log = SqliteLog::open(path, Arc::new(SystemClock))?;
    let id = log.open_set(&NewSet { slug: "data".into(), ..NewSet::default() })?.id;
    if log.head(id)?.importing {
        eprintln!("   generating a store of {count} resources");
        let mut next = log.head(id)?.resources;
        while next < count {
            let batch = (next..(next + BATCH).min(count))
                .map(|number| Imported {
                    key: key(number),
                    state: state(number, 0),
                    witness: Vec::new(),
                })
                .collect();
            log.import(id, batch)?;
            next += BATCH;
        }
        log.complete_import(id)?;
    }
    let found = log.head(id)?.resources;
    ensure!(found == count, "{} holds {found} resources, not {count}; remove it", path.display());
    Ok((log, id))
}

/// The path of one list of the index.
fn list(shard: ShardId) -> String {
    format!("data/resourcelist/{}.xml", shard.0)
}

fn one_round(settings: &Settings, set: &mut Set, round: usize) -> Result<()> {
    let log: Arc<dyn ChangeLog> = Arc::clone(&set.log) as _;
    let urls = SourceUrls::new("http://127.0.0.1/");
    let published = PublishedSet::new(set.id, "data", urls.set("data"));
    let documents = settings.empty_folder("index-documents")?;
    let publisher = Publisher::new(Arc::clone(&log), urls, vec![published], documents)?;
    let mut times: [Samples; 4] = Default::default();
    let version = Timestamp::as_micros;
    for change in 0..CHANGES {
        let number = (change as u64 * 7_919 + round as u64 * 104_729) % set.count;
        let before = log.shards(set.id)?;
        let of = |shards: &[Shard], key: &str| -> Result<Shard> {
            let holds = |shard: &&Shard| shard.range.end.as_deref().is_none_or(|end| key < end);
            shards.iter().find(holds).cloned().context("no shard holds the key")
        };
        let with = of(&before, &key(number))?;
        let without = before.iter().find(|shard| shard.id != with.id).context("only one shard")?.id;
        // Documents that readers have requested before.
        publisher.document(&list(without))?;
        let stamp = version(abreast_core::Clock::now(&SystemClock)) as u64;
        append(&*log, set.id, vec![Change::put(key(number), state(number, stamp))])?;
        let after = log.shards(set.id)?;
        let dirtied =
            before.iter().zip(&after).filter(|(old, new)| old.version != new.version).count();
        set.dirtied.push(dirtied as f64);
        let paths = [
            "data/changelist.xml".to_owned(),
            "data/resourcelist.xml".to_owned(),
            list(with.id),
            list(without),
        ];
        for (path, times) in paths.iter().zip(&mut times) {
            let begun = Instant::now();
            publisher.document(path)?;
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
        }
    }
    for (found, times) in set.figures.iter_mut().zip(&times) {
        found.push(times.median());
    }
    Ok(())
}
