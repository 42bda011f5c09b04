//! Prints the canonical description of each entity of an N-Triples file; with a second file, what
//! changed from the first to the second.
//!
//! `cargo run -p abreast-rdf --example describe -- OLD.nt [NEW.nt]`
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::BTreeMap;
use std::error::Error;

use abreast_rdf::{DescriptionLimits, Entities, difference};
use oxrdf::Triple;
use oxttl::NTriplesParser;

type Descriptions = BTreeMap<String, Vec<u8>>;

fn descriptions(path: &str) -> Result<Descriptions, Box<dyn Error>> {
    let text = std::fs::read(path)?;
    let triples: Vec<Triple> = NTriplesParser::new().for_slice(&text).collect::<Result<_, _>>()?;
    let entities = Entities::new(triples.iter().map(Triple::as_ref));
    let findings = entities.findings();
    eprintln!(
        "{path}: {} entities, {} shared blank nodes, {} statements in no description",
        entities.len(),
        findings.shared_count,
        findings.unreached_count
    );
    let mut descriptions = BTreeMap::new();
    for description in entities.descriptions(DescriptionLimits::default()) {
        let description = description?;
        descriptions.insert(description.entity, description.canonical.lines);
    }
    Ok(descriptions)
}

fn main() -> Result<(), Box<dyn Error>> {
    let paths: Vec<String> = std::env::args().skip(1).collect();
    let [old, new @ ..] = paths.as_slice() else { return Err("no file is given".into()) };
    let old = descriptions(old)?;
    let Some(new) = new.first() else {
        for lines in old.values() {
            println!("{}", String::from_utf8_lossy(lines));
        }
        return Ok(());
    };
    let new = descriptions(new)?;
    let empty = Vec::new();
    for entity in old.keys().chain(new.keys().filter(|entity| !old.contains_key(*entity))) {
        let before = old.get(entity).unwrap_or(&empty);
        let change = difference(before, new.get(entity).unwrap_or(&empty));
        for (sign, lines) in [('-', &change.removed), ('+', &change.added)] {
            for line in String::from_utf8_lossy(lines).lines() {
                println!("{sign} {line}");
            }
        }
    }
    Ok(())
}
