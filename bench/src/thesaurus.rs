//! A thesaurus in sorted N-Triples.

use crate::settings::Settings;
use anyhow::{Context as _, Result};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::PathBuf;

/// Statements about each entity.
pub(crate) const STATEMENTS: usize = 10;

/// The IRI of an entity.
pub(crate) fn iri(number: usize) -> String {
    format!("http://id.example.org/authorities/sh{number:08}")
}

/// The file of that many entities, made once; every so-many-th has a statement of its own.
pub(crate) fn file(settings: &Settings, entities: usize, every: Option<usize>) -> Result<PathBuf> {
    let folder = settings.folder.join("rdf");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{entities}-{}.nt", every.unwrap_or(0)));
    if path.exists() {
        return Ok(path);
    }
    let part = path.with_extension("part");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    for number in 0..entities {
        let subject = format!("<{}>", iri(number));
        let is_changed = every.is_some_and(|every| number % every == every / 2);
        let note = if is_changed { "changed" } else { "note" };
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
             {subject} <{skos}broader> <{}> .\n\
             {subject} <{skos}inScheme> <http://id.example.org/authorities> .\n\
             {subject} <{skos}notation> \"sh{number:08}\" .\n\
             {subject} <{skos}note> \"A {note} about the heading number {number}, longer than the others\" .\n\
             {subject} <{skos}prefLabel> \"Heading {number}\"@en .\n\
             {subject} <{skos}related> <{}> .",
            iri(broader),
            iri(related),
        )?;
    }
    out.into_inner().context("cannot write a file of statements")?;
    std::fs::rename(part, &path)?;
    Ok(path)
}
