//! Reading a complete state of a set of entities, and comparing it with the one before.

use crate::report::Report;
use crate::run::{Usage, log_path, settle, timed};
use crate::samples::{Samples, number};
use crate::settings::Settings;
use crate::thesaurus::{self, STATEMENTS};
use anyhow::Result;
use serde_json::json;
use std::path::{Path, PathBuf};

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let abreast = crate::abreast::binary(settings)?;
    let entities = settings.size(1_000_000, 20_000);
    let states = [
        thesaurus::file(settings, entities, None)?,
        thesaurus::file(settings, entities, Some(100))?,
    ];
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
        "1 % of entities changed: time, relative to `sort -c` and a reading of the file",
        &changed.over(&limit),
        3.0,
        " ×",
    );
    report.at_most("memory, the first state included", &memory, 256.0, " MiB");
    let length = std::fs::metadata(&states[0])?.len();
    report.text(&format!(
        "`abreast import SET FILE --data DIR` of {} statements about {} entities in sorted N-Triples ({:.2} GB), into a new \
         set and then with {} changed entities. The limit is `LC_ALL=C sort -c` and `cat` of the same file, one after the other.",
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

/// Makes the statements of a file the state of the set `data`.
pub(super) fn import(
    settings: &Settings,
    abreast: &Path,
    data: &Path,
    path: &Path,
) -> Result<Usage> {
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
