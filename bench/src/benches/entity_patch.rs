//! Patches of entities: written from two descriptions, read and applied, beside the parsing of the
//! same descriptions.

use crate::report::Report;
use crate::samples::{Samples, number};
use crate::settings::Settings;
use abreast_rdf::{EntityPatch, PatchBlankNodes, apply_entity_patch, canonical_lines};
use anyhow::{Context, Result, ensure};
use oxttl::NTriplesParser;
use rdf_patch::Patch;
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use std::hint::black_box;

/// Statements of each description, as many as those of the Brick ontology have.
const STATEMENTS: usize = 12;

/// An entity before and after a change.
struct Versions {
    entity: String,
    old: Vec<u8>,
    new: Vec<u8>,
}

impl Versions {
    fn patch<'a>(&'a self, blank_nodes: PatchBlankNodes<'a>) -> EntityPatch<'a> {
        EntityPatch {
            entity: &self.entity,
            old: &self.old,
            new: &self.new,
            id: "uuid:0686c69d-8f89-8496-acb5-744f0157a8db",
            prev: Some("uuid:3ee0eca0-6d5f-8b4d-85db-f69ab1167eb1"),
            entity_prev: None,
            blank_nodes,
        }
    }
}

pub(crate) fn run(settings: &Settings, report: &mut Report) -> Result<()> {
    let count = settings.size(50_000, 2_000);
    let entities: Vec<Versions> = (0..count).map(versions).collect::<Result<_>>()?;
    let iris = PatchBlankNodes::Skolem("https://repository.example.org");
    let mut written: Vec<Vec<u8>> = Vec::with_capacity(count);
    for versions in &entities {
        let mut text = Vec::new();
        versions.patch(iris).write(&mut text)?;
        let applied =
            apply_entity_patch(&versions.entity, &versions.old, &Patch::from_slice(&text)?)?;
        ensure!(applied.description.lines == versions.new, "a patch leads to something else");
        written.push(text);
    }
    let mut runs: [Samples; 5] = Default::default();
    for round in 0..settings.rounds {
        let write = |blank_nodes| {
            cpu(|| {
                let mut text = Vec::new();
                for versions in &entities {
                    text.clear();
                    black_box(versions.patch(blank_nodes).write(&mut text)?);
                }
                Ok(())
            })
        };
        let seconds = [
            write(iris)?,
            write(PatchBlankNodes::Labels)?,
            cpu(|| {
                for versions in &entities {
                    for lines in [&versions.old, &versions.new] {
                        for triple in NTriplesParser::new().for_slice(lines) {
                            black_box(triple?);
                        }
                    }
                }
                Ok(())
            })?,
            cpu(|| {
                for text in &written {
                    black_box(Patch::from_slice(text)?);
                }
                Ok(())
            })?,
            cpu(|| {
                for (versions, text) in entities.iter().zip(&written) {
                    let patch = Patch::from_slice(text)?;
                    black_box(apply_entity_patch(&versions.entity, &versions.old, &patch)?);
                }
                Ok(())
            })?,
        ];
        report.raw(&json!({"round": round, "entities": count, "cpu_seconds": seconds}));
        for (samples, seconds) in runs.iter_mut().zip(seconds) {
            samples.push(seconds);
        }
    }
    let [skolem, labels, parse, read, apply] = &runs;
    let rate = |samples: &Samples| samples.map(|seconds| count as f64 / seconds);
    report.at_least("IRIs in place of blank nodes: entities a CPU second", &rate(skolem), 20e3, "");
    report.at_least("labels of blank nodes: entities a CPU second", &rate(labels), 20e3, "");
    report.text(&format!(
        "{count} entities of {STATEMENTS} statements in memory, one thread: eight statements have IRIs and literals, four a blank \
         node; one literal differs in each and, in every third, one statement of the blank node. A patch has the digests of both \
         descriptions. For comparison, oxttl reads the N-Triples of both."
    ));
    let rows: Vec<Vec<String>> = [
        ("patch written, IRIs in place of blank nodes", skolem),
        ("patch written, labels of blank nodes", labels),
        ("two descriptions read by oxttl", parse),
        ("patch read (strict)", read),
        ("patch read and applied, both digests compared", apply),
    ]
    .map(|(name, samples)| {
        let ratio = number(parse.over(samples).median());
        vec![name.to_owned(), number(rate(samples).median()), ratio]
    })
    .to_vec();
    report.table(&["", "entities a CPU second", "× oxttl"], &rows);
    Ok(())
}

fn versions(number: usize) -> Result<Versions> {
    let entity = format!("https://ontology.example.org/schema#Class_{number}");
    let text = |definition: &str, tag: usize| {
        let brick = "https://ontology.example.org/schema#";
        let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
        let shacl = "http://www.w3.org/ns/shacl#";
        let subject = format!("<{entity}>");
        format!(
            "{subject} <{rdf}> <http://www.w3.org/2002/07/owl#Class> .\n\
             {subject} <{rdf}> <{shacl}NodeShape> .\n\
             {subject} <http://www.w3.org/2000/01/rdf-schema#label> \"Class {number}\"@en .\n\
             {subject} <http://www.w3.org/2000/01/rdf-schema#subClassOf> <{brick}Class_{}> .\n\
             {subject} <http://www.w3.org/2004/02/skos/core#definition> \"{definition} of the class number {number}\"@en .\n\
             {subject} <{brick}hasAssociatedTag> <{brick}Tag_{}> .\n\
             {subject} <{brick}hasAssociatedTag> <{brick}Tag_{}> .\n\
             {subject} <{brick}aliasOf> <{brick}Class_{}> .\n\
             {subject} <{shacl}rule> _:rule .\n\
             _:rule <{rdf}> <{shacl}TripleRule> .\n\
             _:rule <{shacl}object> <{brick}Tag_{tag}> .\n\
             _:rule <{shacl}predicate> <{brick}hasTag> .\n",
            number / 10,
            number % 97,
            number % 89 + 100,
            number + 1,
        )
    };
    let lines = |text: String| -> Result<Vec<u8>> {
        let lines = canonical_lines(text.as_bytes()).context("a description")?.lines;
        ensure!(abreast_rdf::statements(&lines).count() == STATEMENTS);
        Ok(lines)
    };
    let (old, new) =
        (text("The definition", 1), text("Another one", 1 + usize::from(number.is_multiple_of(3))));
    Ok(Versions { old: lines(old)?, new: lines(new)?, entity })
}

/// CPU seconds of this thread that `work` takes.
pub(super) fn cpu(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let now = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let start = now();
    work()?;
    Ok(now() - start)
}
