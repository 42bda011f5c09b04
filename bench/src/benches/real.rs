//! Following copies of real collections: equality, and delay after the last change.

use crate::abreast::{self, Source};
use crate::report::Report;
use crate::run::{Server, log_path};
use crate::same;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use anyhow::{Context, Result, bail};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Environment variable, where `cargo xtask testdata` puts it, and what it is.
const COLLECTIONS: [(&str, &str, &str); 3] = [
    ("ABREAST_TEST_ISO_CODES_DIR", "iso-codes/usr/share", "iso-codes"),
    ("ABREAST_TEST_RDFLIB_DIR", "rdflib-7.6.0/rdflib-7.6.0", "rdflib sources"),
    ("ABREAST_TEST_BRICK_DIR", "brickschema-0.8.0/brickschema/ontologies", "Brick releases"),
];
const BRICK_RELEASES: [&str; 5] = ["1.1", "1.2", "1.3", "1.4", "1.5"];
const LIMIT: Duration = Duration::from_secs(180);
const INTERVAL: &str = "1s";

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let program = abreast::binary(settings)?;
    let [iso_codes, rdflib, brick] =
        COLLECTIONS.map(|(variable, place, name)| find(settings, variable, place, name));
    let (iso_codes, rdflib, brick) = (iso_codes?, rdflib?, brick?);
    let mut rows = Vec::new();
    let mut times = Vec::new();
    for round in 0..settings.rounds {
        let source_folder = settings.empty_folder("real-source")?;
        let copy = settings.empty_folder("real-copy")?;
        let store = settings.empty_folder("real-store")?;
        let (folder, data) =
            (source_folder.to_string_lossy().into_owned(), store.to_string_lossy().into_owned());
        let source = Source::start(
            settings,
            &program,
            "serve-real",
            &[&folder, "--data", &data, "--name", "real"],
        )?;
        source.wait_ready()?;
        let mut command = Command::new(&program);
        command.args(["sync", &source.url()]).arg(&copy).args(["--follow", "--interval", INTERVAL]);
        let mut follower = Server::start(&mut command, &log_path(&settings.folder, "follow")?)?;
        let steps: Vec<(String, PathBuf)> = [
            ("iso-codes".to_owned(), iso_codes.clone()),
            ("rdflib sources".to_owned(), rdflib.clone()),
        ]
        .into_iter()
        .chain(BRICK_RELEASES.map(|release| (format!("Brick {release}"), brick.join(release))))
        .collect();
        for (step, (name, from)) in steps.iter().enumerate() {
            // Each Brick release goes over the one before.
            let to = source_folder.join(name.split(' ').next().unwrap_or(name));
            let copied = copy_tree(from, &to)?;
            let start = Instant::now();
            let files = loop {
                if follower.has_ended() {
                    bail!("abreast sync --follow ended");
                }
                match same::check(&source_folder, &copy, None) {
                    Ok(files) => break files,
                    Err(error) if start.elapsed() > LIMIT => {
                        return Err(error.context(format!("{name}: not equal in time")));
                    }
                    Err(_) => std::thread::sleep(Duration::from_millis(20)),
                }
            };
            let took = start.elapsed().as_secs_f64();
            report.raw(&json!({"round": round, "step": name, "copied": copied, "files": files, "seconds": took}));
            if round == 0 {
                rows.push(vec![name.clone(), number(copied as f64), number(files as f64)]);
                times.push(Samples::default());
            }
            times[step].push(took);
        }
    }
    report.text(&format!(
        "Real collections copied into a served folder, one after the other, the Brick releases over one another, while \
         `abreast sync --follow --interval {INTERVAL}` keeps a copy. Timed from the last byte copied until the copy equals \
         the folder byte for byte: debounce, next poll, transfer, and this comparison itself."
    ));
    rows.iter_mut().zip(&times).for_each(|(row, times)| row.push(times.text()));
    report.table(&["copied", "files copied", "files in all", "equal after, s"], &rows);
    let worst: Samples = times.iter().map(Samples::median).collect::<Samples>();
    report.at_most(
        "real collections: equal after, slowest step",
        &[worst.max()].into_iter().collect(),
        60.0,
        " s",
    );
    Ok(())
}

fn find(settings: &Settings, variable: &str, place: &str, name: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable)
        .map_or_else(|| settings.target.join("testdata").join(place), PathBuf::from);
    if path.is_dir() {
        return Ok(path);
    }
    bail!(
        "there is no {name} at {}\n  help: run `cargo xtask testdata`, or set `{variable}`",
        path.display()
    )
}

/// Copies regular files; returns how many.
fn copy_tree(from: &Path, to: &Path) -> Result<usize> {
    fs::create_dir_all(to)?;
    let mut count = 0;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            count += copy_tree(&entry.path(), &target)?;
        } else if kind.is_file() {
            fs::copy(entry.path(), &target)?;
            count += 1;
        }
    }
    Ok(count)
}
