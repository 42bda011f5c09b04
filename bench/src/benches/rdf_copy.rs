//! A copy of entities as N-Quads, end to end: from the server to the files.

use super::rdf::import;
use crate::abreast::{self, Source, sync};
use crate::http::Http;
use crate::report::Report;
use crate::run::{free_port, settle, wait_until};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::thesaurus::{self, STATEMENTS};
use anyhow::{Result, ensure};
use oxttl::NTriplesParser;
use serde_json::json;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Fragments that are applied.
const CHANGED: usize = 10_000;
/// A snapshot takes as long as it takes, within reason.
const SNAPSHOT: Duration = Duration::from_secs(600);

/// One size of the set.
#[derive(Default)]
struct Size {
    entities: usize,
    parse: Samples,
    baseline: Samples,
    cpu: Samples,
    memory: Samples,
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let sizes = [settings.size(100_000, 20_000), settings.size(1_000_000, 40_000)];
    let mut sizes = sizes.map(|entities| Size { entities, ..Size::default() });
    let mut fragments = Samples::default();
    for round in 0..settings.rounds {
        for (place, size) in sizes.iter_mut().enumerate() {
            let applied = one_round(settings, &program, size, place == 0)?;
            report.raw(&json!({ "round": round, "entities": size.entities, "parse_s": size.parse.last(),
                "baseline_s": size.baseline.last(), "cpu_s": size.cpu.last(), "memory_mib": size.memory.last(),
                "fragments_s": applied }));
            if let Some(applied) = applied {
                fragments.push(applied);
            }
        }
    }
    for size in &sizes {
        let statements = number((size.entities * STATEMENTS) as f64);
        report.at_least(
            &format!("baseline of {statements} statements: rate, relative to the parser alone"),
            &size.parse.over(&size.baseline),
            0.5,
            " ×",
        );
        report.at_most(
            &format!("memory of the copy of {statements} statements"),
            &size.memory,
            96.0,
            " MiB",
        );
    }
    report.at_most(
        &format!("{} fragments applied", number(CHANGED as f64)),
        &fragments,
        10.0,
        " s",
    );
    report.text(&format!(
        "`abreast sync http://…/data/sdshare nquads:DIR` from `abreast serve` of entities with {STATEMENTS} statements, its \
         snapshot made before. The parser alone: `oxttl` reads the same statements from a file and drops them. Fragments: \
         a second run, after {} of {} entities changed.",
        number(CHANGED as f64),
        number(sizes[0].entities as f64),
    ));
    let row = |name: &str, of: fn(&Size) -> &Samples| {
        vec![name.to_owned(), of(&sizes[0]).text(), of(&sizes[1]).text()]
    };
    let head = sizes.each_ref().map(|size| number((size.entities * STATEMENTS) as f64));
    report.table(
        &["statements", &head[0], &head[1]],
        &[
            row("the parser alone, s", |size| &size.parse),
            row("baseline, s", |size| &size.baseline),
            row("CPU of the copying program, s", |size| &size.cpu),
            row("memory of the copying program, MiB", |size| &size.memory),
        ],
    );
    Ok(())
}

/// Copies a set; with `change`, changes some of its entities and follows: the seconds of that.
fn one_round(
    settings: &Settings,
    program: &Path,
    size: &mut Size,
    change: bool,
) -> Result<Option<f64>> {
    let (data, copy) =
        (settings.empty_folder("rdf-copy-data")?, settings.empty_folder("rdf-copy")?);
    let state = thesaurus::file(settings, size.entities, None)?;
    import(settings, program, &data, &state)?;
    // A copy belongs to an address.
    let listen = format!("127.0.0.1:{}", free_port()?);
    let source = serve(settings, program, &data, &listen)?;
    settle();
    let begun = Instant::now();
    let mut statements = 0;
    for statement in NTriplesParser::new().for_reader(BufReader::new(File::open(&state)?)) {
        statement?;
        statements += 1;
    }
    size.parse.push(begun.elapsed().as_secs_f64());
    ensure!(statements == size.entities * STATEMENTS, "{} is incomplete", state.display());
    let sink = PathBuf::from(format!("nquads:{}", copy.display()));
    let filled = sync(settings, program, &format!("{}data/sdshare", source.url()), &sink, &[])?;
    size.baseline.push(filled.seconds);
    size.cpu.push(filled.cpu);
    size.memory.push(filled.memory_mib);
    drop(source);
    if !change {
        return Ok(None);
    }
    let changed = thesaurus::file(settings, size.entities, Some(size.entities / CHANGED))?;
    import(settings, program, &data, &changed)?;
    let source = serve(settings, program, &data, &listen)?;
    settle();
    let applied = sync(settings, program, &format!("{}data/sdshare", source.url()), &sink, &[])?;
    Ok(Some(applied.seconds))
}

/// Serves a set, and waits until its snapshot is made.
fn serve(settings: &Settings, program: &Path, data: &Path, listen: &str) -> Result<Source> {
    let folder = data.to_string_lossy();
    let arguments = ["--origin", "rdf", "--name", "data", "--data", &*folder, "--listen", listen];
    let source = Source::start(settings, program, "serve-rdf-copy", &arguments)?;
    source.wait_ready()?;
    let mut http = Http::connect(&source.url())?;
    wait_until("making a snapshot", SNAPSHOT, || {
        http.get_ok("/data/sdshare/snapshots")?;
        let files = std::fs::read_dir(data.join("snapshots/data"))?;
        let is_record = |path: PathBuf| path.extension().is_some_and(|ending| ending == "json");
        Ok(files.flatten().any(|file| is_record(file.path())))
    })?;
    Ok(source)
}
