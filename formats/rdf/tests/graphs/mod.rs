//! Graphs for comparison: blank nodes are named by the algorithm of oxrdf.
#![allow(dead_code, reason = "each test file uses some of it")]

use abreast_rdf::{ReadError, ReadOptions, Syntax, read};
use oxrdf::Dataset;
use oxrdf::dataset::CanonicalizationAlgorithm;
use std::ops::ControlFlow;

pub(crate) fn graph_of(syntax: Syntax, document: &[u8]) -> Result<Dataset, ReadError> {
    let mut dataset = Dataset::new();
    read(syntax, document, &ReadOptions::default(), &mut |quad| {
        dataset.insert(quad);
        ControlFlow::Continue(())
    })?;
    Ok(dataset)
}

/// The statements in their order, without graph.
pub(crate) fn statements(syntax: Syntax, document: &[u8]) -> Result<Vec<String>, ReadError> {
    let mut seen = Vec::new();
    read(syntax, document, &ReadOptions::default(), &mut |quad| {
        seen.push(format!("{} {} {}", quad.subject, quad.predicate, quad.object));
        ControlFlow::Continue(())
    })?;
    Ok(seen)
}

/// Equal for isomorphic graphs.
pub(crate) fn canonical(dataset: &Dataset) -> String {
    let mut dataset = dataset.clone();
    dataset.canonicalize(CanonicalizationAlgorithm::Unstable);
    let mut lines: Vec<String> = dataset.iter().map(|quad| quad.to_string()).collect();
    lines.sort();
    lines.join("\n")
}
