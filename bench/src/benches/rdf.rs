//! Reading a complete state of a set of entities, and comparing it with the one before.

use crate::report::Report;
use crate::run::{Usage, log_path, settle, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Context as _, Result};
use serde_json::json;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

/// Statements about each entity.
const STATEMENTS: usize = 10;

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let abreast = crate::abreast::binary(settings)?;
    let entities = settings.size(1_000_000, 20_000);
    let folder = settings.folder.join("rdf");
    std::fs::create_dir_all(&folder)?;
    let states = [0, 1].map(|version| folder.join(format!("{entities}-{version}.nt")));
    for (version, path) in states.iter().enumerate() {
        if !path.exists() {
            generate(path, entities, version)?;
        }
    }
    let (mut limit, mut first, mut changed, mut same) =
        <(Samples, Samples, Samples, Samples)>::default();
    let mut memory = Samples::default();
    for round in 0..settings.rounds {
        let data = settings.empty_folder("rdf-data")?;
        let import = |path: &Path| import(settings, &abreast, &data, path);
        let filled = import(&states[0])?;
        settle();
        let checked = sort_and_read(settings, &states[1])?;
        let compared = import(&states[1])?;
        settle();
        let repeated = import(&states[1])?;
        limit.push(checked);
        first.push(filled.seconds);
        changed.push(compared.seconds);
        same.push(repeated.seconds);
        memory.push(compared.memory_mib.max(filled.memory_mib));
        report.raw(&json!({ "round": round, "entities": entities, "sort_and_read_s": checked,
            "first": filled.json(), "changed": compared.json(), "same": repeated.json() }));
    }
    report.at_most(
        "1 % of entities changed: time, of that of `sort -c` and one reading of the file",
        &changed.over(&limit),
        3.0,
        " ×",
    );
    report.at_most("memory, the first state included", &memory, 256.0, " MiB");
    let length = std::fs::metadata(&states[0])?.len();
    report.text(&format!(
        "`abreast import SET FILE --data DIR` of {} statements about {} entities in sorted N-Triples ({:.2} GB), into a new \
         set and then with {} of them changed. The limit is `LC_ALL=C sort -c` and `cat` of the same file, one after the other.",
        number((entities * STATEMENTS) as f64),
        number(entities as f64),
        length as f64 / 1e9,
        number(entities as f64 / 100.0),
    ));
    report.table(
        &["", "s"],
        &[
            vec!["the first state".to_owned(), first.text()],
            vec!["1 % of entities changed".to_owned(), changed.text()],
            vec!["nothing changed".to_owned(), same.text()],
            vec!["`sort -c` and `cat`".to_owned(), limit.text()],
        ],
    );
    Ok(())
}

fn import(settings: &Settings, abreast: &Path, data: &Path, path: &Path) -> Result<Usage> {
    let (data, path) = (data.to_string_lossy(), path.to_string_lossy());
    let arguments = ["import", "data", &*path, "--data", &*data];
    Ok(timed(abreast, &arguments, &settings.folder, &log_path(&settings.folder, "import")?)?.0)
}

/// Seconds.
fn sort_and_read(settings: &Settings, path: &Path) -> Result<f64> {
    let command = format!("LC_ALL=C sort -c '{0}' && cat '{0}' > /dev/null", path.display());
    let log = log_path(&settings.folder, "sort")?;
    let shell = PathBuf::from("/bin/sh");
    Ok(timed(&shell, &["-c", &command], &settings.folder, &log)?.0.seconds)
}

/// A thesaurus in sorted N-Triples.
fn generate(path: &Path, entities: usize, version: usize) -> Result<()> {
    let part = path.with_extension("part");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    for number in 0..entities {
        let subject = format!("<http://id.example.org/authorities/sh{number:08}>");
        let note = if version > 0 && number % 100 == 7 { "changed" } else { "note" };
        let (day, broader, related) = (number % 28 + 1, number / 10, number * 7_919 % entities);
        let agent = number % 5_000;
        let terms = "http://purl.org/dc/terms/";
        let skos = "http://www.w3.org/2004/02/skos/core#";
        writeln!(
            out,
            "{subject} <{terms}created> \"2026-01-{day:02}\"^^<http://www.w3.org/2001/XMLSchema#date> .\n\
             {subject} <{terms}creator> <http://id.example.org/agents/{agent}> .\n\
             {subject} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{skos}Concept> .\n\
             {subject} <{skos}altLabel> \"Alternative {number} of a heading\"@en .\n\
             {subject} <{skos}broader> <http://id.example.org/authorities/sh{broader:08}> .\n\
             {subject} <{skos}inScheme> <http://id.example.org/authorities> .\n\
             {subject} <{skos}notation> \"sh{number:08}\" .\n\
             {subject} <{skos}note> \"A {note} about the heading number {number}, longer than the others\" .\n\
             {subject} <{skos}prefLabel> \"Heading {number}\"@en .\n\
             {subject} <{skos}related> <http://id.example.org/authorities/sh{related:08}> ."
        )?;
    }
    out.into_inner().context("cannot write a file of statements")?;
    Ok(std::fs::rename(part, path)?)
}
