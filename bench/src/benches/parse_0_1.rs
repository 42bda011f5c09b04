//! Reading and writing of documents of ResourceSync 0.1, beside their XML alone.

use super::parse::bare;
use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_resourcesync::v0_1::{
    Change, Entry, Head, Limits, Parser, Root, Step, write_end, write_entry, write_head,
};
use abreast_webtypes::{Algorithm, Precision, Timestamp, W3cDatetime};
use anyhow::{Result, ensure};
use serde_json::json;
use std::hint::black_box;
use std::time::Instant;

/// Passes a round, of which the median counts.
const PASSES: usize = 7;
const CHUNK: usize = 256 * 1024;

/// Each entry with a time, a digest, a size and a media type, as in the bench of Resource Lists.
fn entry(number: usize, change: Option<Change>) -> Entry {
    let instant = Timestamp::from_seconds(1_700_000_000 + number as i64);
    let mut entry = Entry {
        loc: format!("https://repository.example.org/collections/metadata/{number:08}.xml"),
        change,
        time: Some(W3cDatetime { instant, precision: Precision::Second }),
        size: Some(number as u64 * 7),
        media_type: Some("application/xml".to_owned()),
        ..Entry::default()
    };
    let scattered = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
    entry.digests.set(Algorithm::Md5, &[scattered, scattered].concat());
    entry
}

fn write(head: &Head, entries: &[Entry], out: &mut Vec<u8>) {
    out.clear();
    write_head(out, head);
    for entry in entries {
        write_entry(out, Root::UrlSet, entry);
    }
    write_end(out, Root::UrlSet);
}

fn read(document: &[u8]) -> Result<usize> {
    let mut parser = Parser::new(Limits::default());
    let (mut entry, mut count, mut pieces) = (Entry::default(), 0, document.chunks(CHUNK));
    loop {
        match parser.next(&mut entry)? {
            Step::NeedInput => match pieces.next() {
                Some(piece) => parser.feed(piece),
                None => parser.finish(),
            },
            Step::Entry => {
                ensure!(
                    entry.size.is_some() && !entry.digests.is_empty(),
                    "an entry without its values"
                );
                count += 1;
            }
            Step::End => return Ok(count),
            Step::Head => {}
        }
    }
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(50_000, 5_000);
    let mut rows = Vec::new();
    for change_set in [false, true] {
        let change = change_set.then_some(Change::Updated);
        let head = Head { change_set, ..Head::default() };
        let entries: Vec<_> = (0..count).map(|number| entry(number, change)).collect();
        let mut document = Vec::new();
        write(&head, &entries, &mut document);
        let mut out = Vec::with_capacity(document.len());
        let (mut reading, mut writing, mut bare_reading) =
            (Samples::default(), Samples::default(), Samples::default());
        for round in 0..settings.rounds {
            let mut passes: [Samples; 3] = Default::default();
            for _ in 0..PASSES {
                let start = Instant::now();
                ensure!(read(&document)? == count, "not all entries were read");
                passes[0].push(start.elapsed().as_secs_f64());
                let start = Instant::now();
                write(&head, &entries, black_box(&mut out));
                passes[1].push(start.elapsed().as_secs_f64());
                let start = Instant::now();
                ensure!(bare(&document)? == count, "not all events were read");
                passes[2].push(start.elapsed().as_secs_f64());
            }
            ensure!(out == document, "a document written twice differs");
            let [read, written, bare] = passes.each_ref().map(Samples::median);
            report.raw(&json!({"round": round, "change_set": change_set, "entries": count, "bytes": document.len(), "read_seconds": read, "write_seconds": written, "bare_seconds": bare}));
            reading.push(read);
            writing.push(written);
            bare_reading.push(bare);
        }
        let name = if change_set { "change set" } else { "Sitemap" };
        for (what, samples) in [("reading", &reading), ("writing", &writing)] {
            let ratio = bare_reading.over(samples);
            let title = format!("{what} a {name}: speed of the bare XML reader");
            report.at_least(&title, &ratio, 0.6, " ×");
        }
        for (what, samples) in
            [("read", &reading), ("written", &writing), ("bare reader", &bare_reading)]
        {
            rows.push(vec![
                format!("{name}, {what}"),
                samples.map(|seconds| seconds * 1_000.0).text(),
                number(document.len() as f64 / 1e6 / samples.median()),
                number(count as f64 / samples.median()),
            ]);
        }
    }
    report.text(&format!(
        "Documents of ResourceSync 0.1 with {count} entries with time, md5, size and media type, in memory, one thread; the median \
         of {PASSES} passes a round. Read in pieces of 256 KiB; the bare reader of quick-xml only walks the events of the same bytes."
    ));
    report.table(&["", "ms", "MB/s", "entries/s"], &rows);
    Ok(())
}
