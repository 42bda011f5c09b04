//! Parsing of a Resource List, beside its XML alone and beside another implementation.

use crate::peers::python_program;
use crate::report::Report;
use crate::run::{log_path, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::static_site::StaticSite;
use crate::tree::Tree;
use abreast_resourcesync::v1_1::{Entry, Limits, Parser, Step};
use anyhow::{Context, Result, ensure};
use quick_xml::events::Event;
use quick_xml::reader::NsReader;
use serde_json::json;
use std::fs;
use std::time::Instant;

/// Passes a round, of which the median counts.
const PASSES: usize = 7;
const CHUNK: usize = 256 * 1024;

/// Reads a list, and counts its entries.
type Parse = fn(&[u8]) -> Result<usize>;

const PYTHON: &str = "\
import sys, time
from resync.sitemap import Sitemap
from resync.resource_list import ResourceList
with open(sys.argv[1], 'rb') as file:
    data = file.read()
import io
start = time.process_time()
found = Sitemap().parse_xml(fh=io.BytesIO(data), resources=ResourceList())
print('FOUND', len(found), time.process_time() - start)
";

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(50_000, 5_000);
    // A collection whose files are never written: only what a list states of them is needed.
    let tree = Tree::imagined(count);
    let site = StaticSite::imagined("https://repository.example.org/collections/metadata/", &tree);
    let list = site.resource_list(0, count, 1_700_000_000_000_000);
    let list = list.as_bytes();
    let file = settings.folder.join("parse.xml");
    fs::write(&file, list)?;
    let mut runs: [(&str, Parse, Samples); 3] = [
        ("abreast, one slice", |list| ours(list, list.len()), Samples::default()),
        ("abreast, pieces of 256 KiB", |list| ours(list, CHUNK), Samples::default()),
        ("quick-xml, namespaces resolved, nothing kept", bare, Samples::default()),
    ];
    let python =
        python_program(settings, "python").map_err(|error| eprintln!("   left out: {error}")).ok();
    let script = settings.folder.join("parse.py");
    fs::write(&script, PYTHON)?;
    let mut peer = Samples::default();
    for round in 0..settings.rounds {
        let mut passes = vec![Samples::default(); runs.len()];
        for _ in 0..PASSES {
            for (place, (name, parse, _)) in runs.iter().enumerate() {
                let start = Instant::now();
                let found = parse(list).with_context(|| (*name).to_owned())?;
                passes[place].push(start.elapsed().as_secs_f64());
                ensure!(found == count, "{name}: {found} entries of {count}");
            }
        }
        for ((name, _, samples), passes) in runs.iter_mut().zip(&passes) {
            report.raw(&json!({"round": round, "run": name, "entries": count, "bytes": list.len(), "seconds": passes.median()}));
            samples.push(passes.median());
        }
        if let Some(python) = &python {
            let log = log_path(&settings.folder, "parse-python")?;
            let arguments = [script.as_os_str(), file.as_os_str()];
            let (_, text) = timed(python, &arguments, &settings.folder, &log)?;
            let words: Vec<&str> =
                text.split_whitespace().skip_while(|word| *word != "FOUND").collect();
            let [_, found, seconds, ..] = words[..] else {
                anyhow::bail!("the Python program printed `{text}`")
            };
            ensure!(found.parse() == Ok(count), "resync found {found} entries of {count}");
            peer.push(seconds.parse()?);
            report.raw(
                &json!({"round": round, "run": "resync", "entries": count, "seconds": seconds}),
            );
        }
    }
    let [(_, _, slice), (_, _, pieces), (_, _, bare)] = &runs;
    report.at_least("one slice: speed of the bare XML reader", &bare.over(slice), 0.6, " ×");
    report.at_least(
        "pieces of 256 KiB: speed of the bare XML reader",
        &bare.over(pieces),
        0.6,
        " ×",
    );
    report.at_least("one slice: speed of resync (Python)", &peer.over(slice), 20.0, " ×");
    report.text(&format!(
        "A Resource List of {count} entries with time, md5, length and type, {} MB, in memory, one thread; the median of \
         {PASSES} passes a round. abreast reads every entry's values; the bare reader only walks the events.",
        number(list.len() as f64 / 1e6)
    ));
    let rows: Vec<Vec<String>> = runs
        .iter()
        .map(|(name, _, samples)| ((*name).to_owned(), samples))
        .chain([("resync 2.0.1 (Python), CPU time".to_owned(), &peer)])
        .map(|(name, samples)| {
            vec![
                name,
                samples.map(|seconds| seconds * 1_000.0).text(),
                number(list.len() as f64 / 1e6 / samples.median()),
                number(count as f64 / samples.median()),
            ]
        })
        .collect();
    report.table(&["", "ms", "MB/s", "entries/s"], &rows);
    Ok(())
}

pub(super) fn ours(list: &[u8], piece: usize) -> Result<usize> {
    let mut parser = Parser::new(Limits::default());
    let (mut entry, mut count, mut pieces) = (Entry::default(), 0, list.chunks(piece));
    loop {
        match parser.next(&mut entry)? {
            Step::NeedInput => match pieces.next() {
                Some(piece) => parser.feed(piece),
                None => parser.finish(),
            },
            Step::Entry => {
                ensure!(
                    entry.length.is_some() && !entry.digests.is_empty(),
                    "an entry without its values"
                );
                count += 1;
            }
            Step::End => return Ok(count),
            Step::Head => {}
        }
    }
}

/// The minimal work of a reader with namespaces.
pub(super) fn bare(list: &[u8]) -> Result<usize> {
    let mut reader = NsReader::from_reader(list);
    let mut count = 0;
    loop {
        match reader.read_resolved_event()? {
            (namespace, Event::Start(element)) => {
                count += usize::from(element.local_name().as_ref() == "loc");
                std::hint::black_box(namespace);
            }
            (_, Event::Eof) => return Ok(count),
            event => {
                std::hint::black_box(event);
            }
        }
    }
}
