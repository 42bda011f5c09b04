//! The texts of targets for services.

use crate::report::sinks::{Graph, GraphStoreOptions, OxigraphOptions, PushOptions, SparqlOptions};
use crate::sink::target::{GRAPH, QUERY_URL, Target, TargetError, TargetKind};

impl TargetKind for OxigraphOptions {
    const FORMS: &'static [&'static str] = &["oxigraph:DIR"];
    const OPTIONS: &'static [&'static str] = &[GRAPH];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        if cfg!(not(feature = "rocksdb")) {
            let help = "cargo install --locked abreast --features oxigraph";
            return Err(TargetError::NotBuilt(target.text.to_owned(), "Oxigraph", help));
        }
        target.use_folder(Self::FORMS[0])?;
        Ok(Self { graph: target.graph(), store: None })
    }
}

impl TargetKind for SparqlOptions {
    const FORMS: &'static [&'static str] = &["sparql:URL"];
    const OPTIONS: &'static [&'static str] = &[GRAPH, QUERY_URL];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        target.use_state("a SPARQL endpoint")?;
        let query_url = target.given.query_url.clone();
        Ok(Self { url: target.place.to_owned(), query_url, graph: target.graph() })
    }
}

impl TargetKind for GraphStoreOptions {
    const FORMS: &'static [&'static str] = &["graphstore:URL"];
    const OPTIONS: &'static [&'static str] = &[GRAPH];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        if matches!(target.graph(), Graph::Named(_)) {
            return Err(TargetError::Unsuitable(
                "in a graph store each resource has a graph of its own (help: leave `--graph` out, or use sparql:URL)",
            ));
        }
        target.use_state("a graph store")?;
        Ok(Self { url: target.place.to_owned() })
    }
}

impl TargetKind for PushOptions {
    const FORMS: &'static [&'static str] = &["push:URL"];
    const OPTIONS: &'static [&'static str] = &[GRAPH];

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        if target.graph() == Graph::OfResource {
            return Err(TargetError::Unsuitable(
                "what is pushed has no graph for each resource (help: name one graph, or leave `--graph` out)",
            ));
        }
        target.use_state("a receiver")?;
        Ok(Self { url: target.place.to_owned(), graph: target.given.graph.clone() })
    }
}
