//! Five releases of the Brick ontology as descriptions: complete, and compared with few changes.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::Write as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use abreast_rdf::{
    DescriptionLimits, Difference, Entities, Naming, ReadOptions, Syntax, difference, read,
    statements,
};
use oxrdf::graph::CanonicalizationAlgorithm;
use oxrdf::{Graph, NamedOrBlankNode, Term, Triple, TripleRef};

/// What separates a release from the one before it: most statements removed and added, over all
/// entities. Of the last, 1,862 are those of entities that are new or gone, and 640 are lists in
/// another order. The best known pairing of old and new blank nodes, which names that come of one
/// version cannot have, leaves 3,657; which blank node is which left aside, 2,915 remain.
///
/// The second number is the most distinct lines removed and added, where a statement about equal
/// blank nodes of several entities counts once: as blank nodes are counted that are named by their
/// content alone, over the whole ontology.
const RELEASES: [(&str, usize, usize); 5] = [
    ("1.1", usize::MAX, usize::MAX),
    ("1.2", usize::MAX, usize::MAX),
    ("1.3", usize::MAX, usize::MAX),
    ("1.4", 9_300, 9_300),
    ("1.5", 3_950, 3_400),
];

fn provided(test: &str) -> Option<PathBuf> {
    let name = "ABREAST_TEST_BRICK_DIR";
    let value = std::env::var_os(name).map(PathBuf::from);
    if value.is_none() {
        let line = format!("{test}: {name} is not set; run `cargo xtask test`\n");
        if let Some(log) = std::env::var_os("ABREAST_TEST_SKIP_LOG") {
            let mut log = std::fs::File::options().append(true).create(true).open(log).unwrap();
            log.write_all(line.as_bytes()).unwrap();
        }
        eprint!("skipped: {line}");
    }
    value
}

fn release(file: &Path) -> Vec<Triple> {
    let text = std::fs::read(file).unwrap();
    let mut triples = BTreeMap::new();
    let options = ReadOptions::default().with_base("https://brickschema.org/schema/Brick");
    read(Syntax::Turtle, text.as_slice(), &options, &mut |quad| {
        let triple = Triple::from(TripleRef::from(quad));
        triples.insert(triple.to_string(), triple);
        ControlFlow::Continue(())
    })
    .unwrap();
    triples.into_values().collect()
}

/// The descriptions as another library finds and compares them.
struct Judge<'a>(HashMap<NamedOrBlankNode, Vec<&'a Triple>>);

impl<'a> Judge<'a> {
    fn new(triples: &'a [Triple]) -> Self {
        let mut of: HashMap<NamedOrBlankNode, Vec<&'a Triple>> = HashMap::new();
        for triple in triples {
            of.entry(triple.subject.clone()).or_default().push(triple);
        }
        Self(of)
    }

    fn description(&self, entity: &NamedOrBlankNode) -> Graph {
        let mut graph = Graph::new();
        let mut found = BTreeSet::new();
        let mut pending = vec![entity.clone()];
        while let Some(subject) = pending.pop() {
            if !found.insert(subject.to_string()) {
                continue;
            }
            for triple in self.0.get(&subject).into_iter().flatten() {
                graph.insert(*triple);
                if let Term::BlankNode(node) = &triple.object {
                    pending.push(node.clone().into());
                }
            }
        }
        graph
    }
}

fn lines_of(descriptions: &BTreeMap<String, Vec<u8>>) -> BTreeSet<&[u8]> {
    descriptions.values().flat_map(|lines| lines.split_inclusive(|byte| *byte == b'\n')).collect()
}

#[test]
fn brick_releases_differ_by_few_statements() {
    let Some(folder) = provided("brick_releases_differ_by_few_statements") else { return };
    let mut before: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for (name, most, most_distinct) in RELEASES {
        let triples = release(&folder.join(name).join("Brick.ttl"));
        let entities = Entities::new(triples.iter().map(Triple::as_ref));
        assert_eq!(entities.findings().unreached_count, 0, "{name}");
        if name >= "1.3" {
            assert_eq!(entities.findings().shared_count, 0, "a statement counts once: {name}");
        }
        let judge = Judge::new(&triples);
        let mut now = BTreeMap::new();
        for description in entities.descriptions(DescriptionLimits::default()) {
            let description = description.unwrap();
            let (entity, canonical) = (description.entity, description.canonical);
            assert!(canonical.naming <= Naming::ByContent, "{name}: {entity}");
            let mut graph = Graph::new();
            for statement in statements(&canonical.lines) {
                assert!(graph.insert(&statement.unwrap().to_triple().unwrap()));
            }
            let root = oxrdf::NamedNode::new(&entity).unwrap().into();
            let mut expected = judge.description(&root);
            if canonical.naming != Naming::NoBlankNodes {
                graph.canonicalize(CanonicalizationAlgorithm::Unstable);
                expected.canonicalize(CanonicalizationAlgorithm::Unstable);
            }
            assert_eq!(graph, expected, "{name}: {entity}");
            now.insert(entity, canonical.lines);
        }

        let empty = Vec::new();
        let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        let sum: usize = names
            .into_iter()
            .map(|entity| {
                let old = before.get(entity).unwrap_or(&empty);
                let new = now.get(entity).unwrap_or(&empty);
                let change: Difference = difference(old, new);
                assert_eq!(&change.apply(old).unwrap(), new, "{name}: {entity}");
                let (removed, added) = change.counts();
                removed + added
            })
            .sum();
        let distinct = lines_of(&before).symmetric_difference(&lines_of(&now)).count();
        println!(
            "{name}: {} entities, {sum} statements removed and added, {distinct} distinct lines",
            now.len()
        );
        assert!(sum <= most, "{name}: {sum}");
        assert!(distinct <= most_distinct, "{name}: {distinct}");
        before = now;
    }
}
