//! How fast N-Triples are read, beside the parser of oxttl alone: the same input, in turns.
//!
//! `cargo run --release -p abreast-rdf --example read_speed [STATEMENTS]`
#![allow(clippy::print_stdout)]

use abreast_rdf::{ReadOptions, Syntax, read};
use oxttl::NTriplesParser;
use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;

type Run = fn(&str) -> Result<usize, Box<dyn std::error::Error>>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let statements: usize = match std::env::args().nth(1) {
        Some(number) => number.parse()?,
        None => 1_000_000,
    };
    let mut document = String::new();
    for number in 0..statements / 4 {
        let entity = format!("<http://example.org/authority/names/n{number:08}>");
        let label = "http://www.w3.org/2004/02/skos/core#prefLabel";
        writeln!(document, "{entity} <{label}> \"Näme of number {number}, 1901-1980\"@en .")?;
        let kind = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";
        writeln!(document, "{entity} <{kind}> <http://www.w3.org/2004/02/skos/core#Concept> .")?;
        let date = "\"2026-01-31T10:00:00Z\"^^<http://www.w3.org/2001/XMLSchema#dateTime>";
        writeln!(document, "{entity} <http://purl.org/dc/terms/modified> {date} .")?;
        writeln!(document, "{entity} <http://example.org/terms/note> _:b{number} .")?;
    }
    let runs: [(&str, Run); 5] = [
        ("oxttl, for_reader", |document| {
            let mut count = 0;
            for triple in NTriplesParser::new().for_reader(document.as_bytes()) {
                count += usize::from(!triple?.predicate.as_str().is_empty());
            }
            Ok(count)
        }),
        ("oxttl, for_slice", |document| {
            let mut count = 0;
            for triple in NTriplesParser::new().for_slice(document) {
                count += usize::from(!triple?.predicate.as_str().is_empty());
            }
            Ok(count)
        }),
        ("read", |document| counted(document, &ReadOptions::default())),
        ("read, lenient", |document| counted(document, &ReadOptions::default().with_lenient(true))),
        ("read, numbered", |document| counted(document, &ReadOptions::default().with_document(1))),
    ];
    let mut best = [Duration::MAX; 5];
    for _ in 0..ROUNDS {
        for (best, (_, run)) in best.iter_mut().zip(&runs) {
            let start = Instant::now();
            let count = run(&document)?;
            *best = start.elapsed().min(*best);
            assert_eq!(count, statements / 4 * 4);
        }
    }
    println!("{} bytes, best of {ROUNDS}:", document.len());
    for (best_of, (name, _)) in best.iter().zip(&runs) {
        let seconds = best_of.as_secs_f64();
        println!(
            "{name:20} {:6.1} MB/s {:9.0} statements/s {:5.2} x oxttl for_reader",
            document.len() as f64 / seconds / 1e6,
            statements as f64 / seconds,
            best[0].as_secs_f64() / seconds,
        );
    }
    Ok(())
}

fn counted(document: &str, options: &ReadOptions) -> Result<usize, Box<dyn std::error::Error>> {
    let mut count = 0;
    read(Syntax::NTriples, document.as_bytes(), options, &mut |quad| {
        count += usize::from(!quad.predicate.as_str().is_empty());
        ControlFlow::Continue(())
    })?;
    Ok(count)
}
