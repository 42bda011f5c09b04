//! Change feeds of a long log: Entry Points and pages beside those of a short one.

use super::entities::{generated, serve};
use super::entity_patch::cpu;
use crate::http::Http;
use crate::report::Report;
use crate::run::{Server, settle};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_emm::{Activity, ActivityType, LinkTo, Object, Page, PageWriter, Profile};
use abreast_webtypes::Timestamp;
use anyhow::{Result, ensure};
use serde::Deserialize;
use serde_json::json;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Starts of the server a round.
const STARTS: u64 = 10;
/// Requests of Entry Points after each start.
const ENTRY_POINTS_EACH: usize = 40;
/// Pages of each kind after each start.
const PAGES_EACH: u64 = 9;
/// Activities of a page.
const PER_PAGE: u64 = 1_000;
const ENTRY_POINTS: [&str; 4] = ["emm/1.0", "emm/0.1", "iiif", "emm/1.0/latest"];
const PAGES: [&str; 5] = ["emm/1.0", "emm/0.1", "iiif", "emm/1.0/newest", "emm/0.1/newest"];

/// A log of one length.
struct Log {
    changes: u64,
    data: PathBuf,
    entry_points: Samples,
    pages: Samples,
    rate: Samples,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = crate::abreast::binary(settings)?;
    let lengths = [10_000, settings.size(10_000_000, 100_000) as u64];
    let mut logs = lengths.map(|changes| {
        let [entry_points, pages, rate] = [const { Samples::new() }; 3];
        let data = settings.folder.join(format!("entities-log-{changes}"));
        Log { changes, data, entry_points, pages, rate }
    });
    for log in &logs {
        std::fs::create_dir_all(&log.data)?;
        generated(&log.data.join("source.db"), log.changes)?;
    }
    for round in 0..settings.rounds {
        for log in &mut logs {
            settle();
            one_round(settings, &program, log)?;
            report.raw(&json!({ "round": round, "log": log.changes,
                "entry_point_p99_ms": log.entry_points.last(), "page_p99_ms": log.pages.last(),
                "activities_per_cpu_second": log.rate.last() }));
        }
    }
    let [short, long] = &logs;
    let [few, many] = lengths.map(|length| number(length as f64));
    for (what, of) in [
        ("Entry Points", (|log| &log.entry_points) as fn(&Log) -> &Samples),
        ("pages", |log| &log.pages),
    ] {
        report.at_most(
            &format!("{what}: p99 with a log of {many} changes, relative to {few}"),
            &of(long).over(of(short)),
            1.2,
            " ×",
        );
    }
    in_memory(settings, report)?;
    report.text(&format!(
        "`abreast serve --origin rdf`, started {STARTS} times: each time, when it is idle, {ENTRY_POINTS_EACH} requests of Entry Points \
         of {} kinds, and {} closed pages with {PER_PAGE} activities, scattered over the log, that are made and answered one \
         after the other, uncompressed. In memory: one thread, \
         a page of EMM 1.0 with {PER_PAGE} activities of entities, each with three links; serde_json reads it into structures \
         that have exactly its members.",
        ENTRY_POINTS.len(),
        PAGES.len() as u64 * PAGES_EACH,
    ));
    let row = |name: &str, of: fn(&Log) -> &Samples| {
        vec![name.to_owned(), of(short).text(), of(long).text()]
    };
    report.table(
        &["changes in the log", &few, &many],
        &[
            row("Entry Points, p99, ms", |log| &log.entry_points),
            row("pages, p99, ms", |log| &log.pages),
            row("activities a CPU second of the server, log and HTTP included", |log| &log.rate),
        ],
    );
    Ok(())
}

/// Each start of the server makes its documents again: the short log has no more pages than that.
fn one_round(settings: &Settings, program: &Path, log: &mut Log) -> Result<()> {
    let [mut entry_points, mut pages] = [Samples::default(), Samples::default()];
    let (closed, mut cpu) = (log.changes / PER_PAGE - 1, 0.0);
    for start in 0..STARTS {
        let source = serve(settings, program, &log.data)?;
        let mut http = Http::connect(&source.url())?;
        // The set is read, and a snapshot of it is asked for.
        http.get_ok("/data/emm/1.0")?;
        wait_idle(&source.server);
        let mut timed = |path: &str, times: &mut Samples| -> Result<Vec<u8>> {
            let begun = Instant::now();
            let document = http.get_ok(path)?;
            times.push(begun.elapsed().as_secs_f64() * 1_000.0);
            Ok(document)
        };
        for path in ENTRY_POINTS.into_iter().cycle().take(ENTRY_POINTS_EACH) {
            timed(&format!("/data/{path}"), &mut entry_points)?;
        }
        let before = source.server.cpu();
        for (family, path) in (0..).zip(PAGES) {
            for number in 0..PAGES_EACH {
                let page = ((start * PAGES.len() as u64 + family) * PAGES_EACH + number) * 7_919;
                let path = format!("/data/{path}/page/{}", page % closed + 1);
                let document = timed(&path, &mut pages)?;
                let found =
                    String::from_utf8_lossy(&document).matches("\"object\":").count() as u64;
                ensure!(found == PER_PAGE, "{path} has {found} activities");
            }
        }
        cpu += source.server.cpu() - before;
    }
    log.entry_points.push(entry_points.quantile(0.99));
    log.pages.push(pages.quantile(0.99));
    let activities = STARTS * PAGES.len() as u64 * PAGES_EACH * PER_PAGE;
    log.rate.push(activities as f64 / cpu);
    Ok(())
}

/// Waits until the server has nothing more to do, 30 s at most.
fn wait_idle(server: &Server) {
    let mut before = server.cpu();
    for _ in 0..150 {
        std::thread::sleep(Duration::from_millis(200));
        let now = server.cpu();
        if now - before < 0.015 {
            return;
        }
        before = now;
    }
}

/// Activities in memory: written to pages, and read beside a reader that knows one form only.
fn in_memory(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(200, 5);
    let runs: [Samples; 3] = {
        let mut runs: [Samples; 3] = Default::default();
        for round in 0..settings.rounds {
            let page = page();
            let seconds = [
                cpu(|| {
                    for _ in 0..count {
                        black_box(self::page());
                    }
                    Ok(())
                })?,
                cpu(|| {
                    for _ in 0..count {
                        let document = abreast_emm::Document::from_slice(&page, BASE)?;
                        ensure!(document.items.len() as u64 == PER_PAGE);
                    }
                    Ok(())
                })?,
                cpu(|| {
                    for _ in 0..count {
                        let typed: TypedPage<'_> = serde_json::from_slice(&page)?;
                        ensure!(typed.ordered_items.len() as u64 == PER_PAGE);
                        black_box(&typed);
                    }
                    Ok(())
                })?,
            ];
            report.raw(
                &json!({ "round": round, "pages": count, "bytes": page.len(), "cpu_s": seconds }),
            );
            for (run, seconds) in runs.iter_mut().zip(seconds) {
                run.push(seconds);
            }
        }
        runs
    };
    let [written, read, typed] = &runs;
    let activities = (count as u64 * PER_PAGE) as f64;
    report.at_least(
        "activities written to pages in memory, a CPU second",
        &written.map(|seconds| activities / seconds),
        300e3,
        "",
    );
    report.at_least(
        "reading pages: rate, relative to serde_json with the types of one form",
        &typed.over(read),
        0.5,
        " ×",
    );
    Ok(())
}

const BASE: &str = "http://127.0.0.1:8080/data/emm/1.0/page/1";

/// A page of activities of entities.
fn page() -> Vec<u8> {
    let head = Page { id: BASE, part_of: "http://127.0.0.1:8080/data/emm/1.0", ..Page::default() };
    let mut writer = PageWriter::new(Profile::Emm10, &head);
    let types = ["http://www.w3.org/2004/02/skos/core#Concept"];
    for number in 0..PER_PAGE {
        let iri = crate::thesaurus::iri(number as usize);
        let link = |syntax: &str, media_type| LinkTo {
            href: format!("http://127.0.0.1:8080/data/r/!iri/{iri}?syntax={syntax}"),
            media_type,
            ..LinkTo::default()
        };
        let links = [
            link("nt", "application/n-triples"),
            link("ttl", "text/turtle"),
            link("jsonld", "application/ld+json"),
        ];
        let time = Timestamp::from_micros(1_700_000_000_000_000 + number as i64 * 1_001);
        writer.write(&Activity {
            id: &format!("http://127.0.0.1:8080/data/emm/1.0/activity/{number}"),
            kind: ActivityType::Update,
            summary: Some(&format!("Update Heading {number}")),
            time,
            object: Object {
                id: &iri,
                types: &types,
                updated: Some(time),
                media_type: None,
                links: &links,
            },
            ..Activity::default()
        });
    }
    writer.finish()
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is read counts")]
struct TypedPage<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    part_of: TypedReference<'a>,
    ordered_items: Vec<TypedActivity<'a>>,
    total_items: u64,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is read counts")]
struct TypedReference<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is read counts")]
struct TypedActivity<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: String,
    summary: String,
    published: String,
    end_time: String,
    #[serde(borrow)]
    object: TypedObject<'a>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "what is read counts")]
struct TypedObject<'a> {
    id: String,
    #[serde(rename = "type")]
    kind: &'a str,
    updated: String,
    url: Vec<TypedLink>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "what is read counts")]
struct TypedLink {
    href: String,
    media_type: String,
}
