//! The benchmarks. Run with `--help` for a list.
#![doc = include_str!("../README.md")]
#![expect(clippy::print_stdout, reason = "a bench talks to the person at the terminal")]

mod abreast;
mod benches;
mod delay;
mod http;
mod machine;
mod nginx;
mod peers;
mod receiver;
mod report;
mod run;
mod same;
mod samples;
mod settings;
mod static_site;
mod targets;
mod thesaurus;
mod tree;
mod wrk;

use crate::report::Report;
use crate::settings::Settings;
use anyhow::{Result, bail};
use std::process::ExitCode;

type Bench = fn(&Settings, &mut Report) -> Result<()>;

/// Every bench, in the order they run: those that need nothing else first.
const BENCHES: [(&str, &str, Bench); 26] = [
    ("parse", "Reading a Resource List", benches::parse::run),
    ("parse-0.1", "Reading and writing documents of 0.1", benches::parse_0_1::run),
    ("entity-patch", "Patches of entities", benches::entity_patch::run),
    ("build", "Publishing a folder from nothing", benches::build::run),
    ("mirror", "Mirroring small resources over HTTP", benches::mirror::run),
    ("latency", "Mirroring over a 50 ms round trip", benches::latency::run),
    ("http2", "Mirroring over long lines, and other programs", benches::http2::run),
    ("serve", "Answering requests", benches::serve::run),
    ("documents", "Small documents next to large documents", benches::documents::run),
    ("publish", "Publishing one change; memory; start", benches::publish::run),
    ("changes", "From a changed file to a copy that follows", benches::changes::run),
    ("xmpp", "From a changed file to a copy that follows by XMPP", benches::xmpp::run),
    ("dump", "Packages: copies through them, and making them", benches::dump::run),
    ("validate", "Validating a Source", benches::validate::run),
    ("hostile", "Documents made to need much time or memory", benches::hostile::run),
    ("hub", "Notifying a thousand subscribers", benches::hub::run),
    ("hub-store", "Durable notifications of a hub", benches::hub_store::run),
    ("scale", "A change log of several nodes on PostgreSQL", benches::scale::run),
    ("contents", "Storing a million small contents", benches::contents::run),
    ("index", "Documents of very large sets", benches::index::run),
    ("rdf", "Importing ten million statements", benches::rdf::run),
    ("entities", "Serving a million entities", benches::entities::run),
    ("feeds", "Change feeds of ten million changes", benches::feeds::run),
    ("rdf-copy", "Copies of entities", benches::rdf_copy::run),
    ("emm-catch-up", "Changed entities, caught up with by patches", benches::emm_catch_up::run),
    ("real", "Real collections, followed", benches::real::run),
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  {cause}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().is_some_and(|argument| argument == receiver::ARGUMENT) {
        return receiver::receive().map(|()| ExitCode::SUCCESS);
    }
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        println!(
            "usage: cargo xtask bench [--rounds N] [--quick] [--only PART]… [NAME…]\n\nbenches, all by default:"
        );
        for (name, title, _) in BENCHES {
            println!("  {name:9} {title}");
        }
        println!(
            "\n--quick measures small collections, --only one part of `hub` ({}) or `scale` ({});",
            benches::hub::part_names().join(", "),
            benches::scale::part_names().join(", ")
        );
        println!("neither writes docs/benchmarks.md or bench/results");
        return Ok(ExitCode::SUCCESS);
    }
    let (settings, names) = Settings::from_arguments(&arguments)?;
    if let Some(unknown) =
        names.iter().find(|name| BENCHES.iter().all(|(known, _, _)| known != name))
    {
        bail!("there is no bench `{unknown}`\n  help: --help lists them");
    }
    let parts = match names.as_slice() {
        [name] if name == "hub" => benches::hub::part_names(),
        [name] if name == "scale" => benches::scale::part_names(),
        _ => Vec::new(),
    };
    if settings.is_partial() && parts.is_empty() {
        bail!(
            "--only measures parts of `hub` or `scale`\n  help: use it as `hub --only {}`",
            benches::hub::part_names()[0]
        );
    }
    if let Some(unknown) = settings.unknown_part(&parts) {
        bail!("there is no part `{unknown}`\n  help: --help lists them");
    }
    let mut failed = Vec::new();
    for (name, title, bench) in BENCHES {
        if !names.is_empty() && !names.iter().any(|wanted| wanted == name) {
            continue;
        }
        eprintln!("== {name}: {title}");
        settings.wait_for_deletions();
        let mut report = Report::new(name, title, &settings)?;
        match bench(&settings, &mut report) {
            Ok(()) => report.write(&settings, &BENCHES.map(|(name, _, _)| name))?,
            // The others still count; what was written of this one before stays.
            Err(error) => {
                eprintln!("== {name} did not end: {error:#}");
                failed.push(name);
            }
        }
    }
    settings.clean_up()?;
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
