//! Canonical forms of graphs of many shapes, each relabelled and shuffled.

use super::label::Naming;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use oxrdf::graph::CanonicalizationAlgorithm;
use oxrdf::{BlankNode, Graph as OxrdfGraph, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
use oxttl::NTriplesParser;
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

/// The greatest time that a hostile graph may take here, in a build without optimisation.
const LONGEST: Duration = Duration::from_secs(60);

fn iri(name: impl std::fmt::Display) -> NamedNode {
    NamedNode::new(format!("http://e/{name}")).unwrap()
}

fn node(number: usize) -> BlankNode {
    BlankNode::new(format!("n{number}")).unwrap()
}

fn edge(from: usize, to: usize) -> Triple {
    Triple::new(node(from), iri("p"), node(to))
}

/// Statements in both directions.
fn undirected(edges: impl IntoIterator<Item = (usize, usize)>) -> Vec<Triple> {
    edges.into_iter().flat_map(|(a, b)| [edge(a, b), edge(b, a)]).collect()
}

/// The statements of an entity with each node as an object, and those between the nodes.
fn with_entity(nodes: usize, triples: Vec<Triple>) -> Vec<Triple> {
    let own = (0..nodes).map(|number| Triple::new(iri("root"), iri("has"), node(number)));
    own.chain(triples).collect()
}

fn form(triples: &[Triple]) -> Canonical {
    canonical(triples.iter().map(Triple::as_ref))
}

fn parsed(lines: &[u8]) -> Vec<Triple> {
    NTriplesParser::new().for_slice(lines).map(Result::unwrap).collect()
}

/// Blank nodes get other labels, and statements another order.
fn disguised(triples: &[Triple], seed: u64) -> Vec<Triple> {
    let mut state = seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let salt = random();
    let label = |node: &BlankNode| {
        let hash = blake3::hash(format!("{salt}{}", node.as_str()).as_bytes()).to_hex();
        BlankNode::new(format!("x{}", &hash[..12])).unwrap()
    };
    let mut others: Vec<(u64, Triple)> = triples
        .iter()
        .map(|triple| {
            let subject: NamedOrBlankNode = match &triple.subject {
                NamedOrBlankNode::BlankNode(node) => label(node).into(),
                NamedOrBlankNode::NamedNode(node) => node.clone().into(),
            };
            let object: Term = match &triple.object {
                Term::BlankNode(node) => label(node).into(),
                other => other.clone(),
            };
            (random(), Triple::new(subject, triple.predicate.clone(), object))
        })
        .collect();
    others.sort_by_key(|(place, _)| *place);
    others.into_iter().map(|(_, triple)| triple).collect()
}

/// By the algorithm of another library.
fn is_isomorphic(a: &[Triple], b: &[Triple]) -> bool {
    let [a, b] = [a, b].map(|triples| {
        let mut graph = OxrdfGraph::new();
        for triple in triples {
            graph.insert(triple);
        }
        graph.canonicalize(CanonicalizationAlgorithm::Unstable);
        graph
    });
    a == b
}

/// Edges between blank nodes, which are numbered.
fn edges_of(triples: &[Triple]) -> HashSet<(usize, usize)> {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let mut number = |term: String| {
        let next = numbers.len();
        *numbers.entry(term).or_insert(next)
    };
    let edges = triples.iter();
    edges.map(|edge| (number(edge.subject.to_string()), number(edge.object.to_string()))).collect()
}

/// Whether the next nodes of `a` can be assigned nodes of `b` with the same edges to those before.
/// For symmetric graphs of one predicate, which take the other library too long.
fn can_assign(
    a: &HashSet<(usize, usize)>,
    b: &HashSet<(usize, usize)>,
    nodes: usize,
    chosen: &mut Vec<usize>,
) -> bool {
    let node = chosen.len();
    for candidate in (0..nodes).filter(|_| node < nodes) {
        let fits = |(before, as_chosen): (usize, &usize)| {
            a.contains(&(node, before)) == b.contains(&(candidate, *as_chosen))
                && a.contains(&(before, node)) == b.contains(&(*as_chosen, candidate))
        };
        if chosen.contains(&candidate) || !chosen.iter().enumerate().all(fits) {
            continue;
        }
        chosen.push(candidate);
        if can_assign(a, b, nodes, chosen) {
            return true;
        }
        chosen.pop();
    }
    node == nodes
}

/// The form is the same for equal graphs.
fn assert_canonical(name: &str, triples: &[Triple], naming: Naming) -> Canonical {
    let start = Instant::now();
    let expected = form(triples);
    assert_eq!(expected.naming, naming, "{name}");
    for seed in 1..6 {
        assert_eq!(form(&disguised(triples, seed * 0x9E37_79B9)), expected, "{name}");
    }
    assert!(start.elapsed() < LONGEST, "{name}: {:?}", start.elapsed());
    assert_eq!(canonical_lines(&expected.lines).unwrap(), expected, "{name}");
    expected
}

#[test]
fn statements_without_blank_nodes_are_sorted_and_unique() {
    let a = Triple::new(iri("s"), iri("p"), Literal::from("a"));
    let ab = Triple::new(iri("s"), iri("p"), Literal::from("ab"));
    let tagged =
        Triple::new(iri("s"), iri("p"), Literal::new_language_tagged_literal("a", "en").unwrap());
    let canonical = form(&[ab.clone(), tagged, a.clone(), ab, a]);
    assert_eq!(
        String::from_utf8(canonical.lines).unwrap(),
        "<http://e/s> <http://e/p> \"a\" .\n<http://e/s> <http://e/p> \"a\"@en .\n\
         <http://e/s> <http://e/p> \"ab\" .\n"
    );
    assert_eq!(canonical.naming, Naming::NoBlankNodes);
}

#[test]
fn a_change_in_one_tree_renames_no_other() {
    let tree = |city: &str, other: &str| {
        let text = format!(
            "<http://e/a> <http://e/address> _:x .\n_:x <http://e/city> \"{city}\" .\n\
             _:x <http://e/geo> _:g .\n_:g <http://e/lat> \"1\" .\n\
             <http://e/a> <http://e/address> _:y .\n_:y <http://e/city> \"{other}\" .\n\
             _:y <http://e/geo> _:h .\n_:h <http://e/lat> \"1\" .\n"
        );
        form(&parsed(text.as_bytes())).lines
    };
    let change = crate::difference(&tree("Bern", "Genf"), &tree("Bern", "Basel"));
    // The statements of `y` and the one about it; `h` is in the position of `y`, so it is renamed.
    assert_eq!(change.counts().0, 4);
    assert!(!String::from_utf8_lossy(&change.removed).contains("Bern"));
}

#[test]
fn the_only_object_of_a_predicate_keeps_its_name() {
    let person = |city: &str| {
        let text = format!(
            "<http://e/a> <http://e/home> _:x .\n_:x <http://e/city> \"{city}\" .\n\
             _:x <http://e/zip> \"1\" .\n_:x <http://e/geo> _:g .\n_:g <http://e/lat> \"{city}\" .\n"
        );
        form(&parsed(text.as_bytes())).lines
    };
    assert_eq!(crate::difference(&person("Bern"), &person("Basel")).counts(), (2, 2));
}

#[test]
fn inserting_into_a_list_renames_no_other_item() {
    let list = |items: &[usize]| {
        let mut lines = String::new();
        for (place, item) in items.iter().enumerate() {
            let rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
            let rest = match place + 1 {
                next if next < items.len() => format!("_:c{next}"),
                _ => format!("<{rdf}nil>"),
            };
            let cell = format!(
                "_:c{place} <{rdf}first> <http://e/{item}> .\n_:c{place} <{rdf}rest> {rest} .\n"
            );
            lines.push_str(&cell);
        }
        lines.push_str("<http://e/a> <http://e/in> _:c0 .\n");
        form(&parsed(lines.as_bytes())).lines
    };
    let old: Vec<usize> = (0..1_000).collect();
    for place in [0, 500, 1_000] {
        let mut new = old.clone();
        new.insert(place, 1_000);
        assert_eq!(crate::difference(&list(&old), &list(&new)).counts(), (1, 3), "{place}");
    }
}

#[test]
fn interchangeable_trees_are_kept_apart() {
    let text = "<http://e/a> <http://e/p> _:x .\n<http://e/a> <http://e/p> _:y .\n\
                _:x <http://e/q> _:u .\n_:y <http://e/q> _:v .\n\
                _:u <http://e/r> \"1\" .\n_:v <http://e/r> \"1\" .\n";
    let canonical = assert_canonical("twins", &parsed(text.as_bytes()), Naming::ByContent);
    assert_eq!(parsed(&canonical.lines).len(), 6);
    assert!(is_isomorphic(&parsed(text.as_bytes()), &parsed(&canonical.lines)));
}

#[test]
fn shared_nodes_differ_from_copies() {
    let shared = "<http://e/a> <http://e/p> _:x .\n<http://e/a> <http://e/q> _:y .\n\
                  _:x <http://e/r> _:z .\n_:y <http://e/r> _:z .\n";
    let copied = "<http://e/a> <http://e/p> _:x .\n<http://e/a> <http://e/q> _:y .\n\
                  _:x <http://e/r> _:z .\n_:y <http://e/r> _:w .\n";
    let shared = assert_canonical("shared", &parsed(shared.as_bytes()), Naming::ByContent);
    let copied = assert_canonical("copied", &parsed(copied.as_bytes()), Naming::ByContent);
    assert_ne!(shared.lines, copied.lines);
    // A square below the entity: content does not distinguish the nodes that share another one.
    let square = [edge(0, 2), edge(1, 2), edge(0, 3), edge(1, 3)];
    assert_canonical("square", &with_entity(2, square.to_vec()), Naming::Searched);
}

#[test]
fn cycles_are_named_by_refinement_or_search() {
    let ring = |length: usize| (0..length).map(move |from| edge(from, (from + 1) % length));
    let mut marked: Vec<Triple> = ring(50).collect();
    marked.push(Triple::new(node(7), iri("name"), Literal::from("first")));
    assert_canonical("marked ring", &marked, Naming::ByContent);
    marked.extend([17, 32].map(|n| Triple::new(node(n), iri("name"), Literal::from("first"))));
    assert_canonical("ring with equal marks", &marked, Naming::Refined);
    assert_canonical("ring", &ring(50).collect::<Vec<_>>(), Naming::Searched);
    let mut leaves: Vec<Triple> = ring(3).collect();
    leaves.extend((10..40).map(|leaf| edge(1, leaf)));
    assert_canonical("ring with equal leaves", &leaves, Naming::ByContent);
    let rings = (0..20).flat_map(|ring| {
        let first = 3 * ring;
        [edge(first, first + 1), edge(first + 1, first + 2), edge(first + 2, first)]
    });
    let rings = assert_canonical("many rings", &rings.collect::<Vec<_>>(), Naming::Searched);
    assert_eq!(parsed(&rings.lines).len(), 60);
}

#[test]
fn symmetric_graphs_are_canonical() {
    let clique = |size: usize| (0..size).flat_map(move |a| (0..a).map(move |b| (a, b)));
    let petersen = (0..5).flat_map(|i| [(i, (i + 1) % 5), (i, i + 5), (i + 5, (i + 2) % 5 + 5)]);
    let grid = (0..100).flat_map(|i| {
        let right = (i % 10 < 9).then_some((i, i + 1));
        let down = (i < 90).then_some((i, i + 10));
        right.into_iter().chain(down)
    });
    let torus = (0..100).flat_map(|i| [(i, i / 10 * 10 + (i + 1) % 10), (i, (i + 10) % 100)]);
    let bipartite = (0..8).flat_map(|a| (8..16).map(move |b| (a, b)));
    let cube = (0..64_usize).flat_map(|a| (0..6).map(move |bit| (a, a ^ (1 << bit))));
    assert_canonical("clique", &with_entity(12, undirected(clique(12))), Naming::Searched);
    assert_canonical("petersen", &undirected(petersen), Naming::Searched);
    assert_canonical("grid", &undirected(grid), Naming::Searched);
    assert_canonical("torus", &undirected(torus), Naming::Searched);
    assert_canonical("bipartite", &undirected(bipartite), Naming::Searched);
    assert_canonical("cube", &undirected(cube), Naming::Searched);
}

#[test]
fn hostile_graphs_take_bounded_time() {
    let clique = |size: usize| (0..size).flat_map(move |a| (0..a).map(move |b| (a, b)));
    // Two squares of Latin type with the same parameters: refinement cannot distinguish them.
    let rook = (0..256).flat_map(|a| (0..a).map(move |b| (a, b)));
    let rook = rook.filter(|(a, b)| a / 16 == b / 16 || a % 16 == b % 16);
    for (name, triples) in [
        ("large clique", undirected(clique(150))),
        ("rook", undirected(rook)),
        ("long ring", (0..30_000).map(|from| edge(from, (from + 1) % 30_000)).collect()),
    ] {
        let start = Instant::now();
        let canonical = form(&triples);
        let took = start.elapsed();
        assert!(took < LONGEST, "{name}: {took:?}");
        assert_eq!(statements(&canonical.lines).count(), triples.len());
        // The same input has the same form.
        assert_eq!(form(&triples), canonical, "{name}");
    }
    // A long chain is neither a recursion nor quadratic.
    let chain: Vec<Triple> = (0..100_000).map(|from| edge(from, from + 1)).collect();
    assert_eq!(form(&chain).naming, Naming::ByContent);
}

#[test]
fn without_work_the_order_of_the_input_decides() {
    let ring: Vec<Triple> = (0..9).map(|from| edge(from, (from + 1) % 9)).collect();
    let arbitrary = canonical_within(ring.iter().map(Triple::as_ref), 10);
    assert_eq!(arbitrary.naming, Naming::Arbitrary);
    assert!(is_isomorphic(&parsed(&arbitrary.lines), &ring));
    assert_eq!(canonical_within(ring.iter().map(Triple::as_ref), 10), arbitrary);
}

/// Random graphs of few nodes and predicates, so that many nodes are alike.
fn small_graph(nodes: usize, most: usize) -> impl Strategy<Value = Vec<Triple>> {
    let term = move |number: usize| -> Result<BlankNode, NamedNode> {
        if number < nodes { Ok(node(number)) } else { Err(iri(number)) }
    };
    let triple = (0..nodes + 1, 0..2_usize, 0..nodes + 2).prop_map(move |(s, p, o)| {
        let subject: NamedOrBlankNode = term(s).map_or_else(Into::into, Into::into);
        let object: Term = term(o).map_or_else(Into::into, Into::into);
        Triple::new(subject, iri(format!("p{p}")), object)
    });
    proptest::collection::vec(triple, 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn equal_graphs_have_equal_bytes(triples in small_graph(7, 14), seed: u64) {
        let canonical = form(&triples);
        prop_assert_ne!(canonical.naming, Naming::Arbitrary);
        prop_assert_eq!(&form(&disguised(&triples, seed)), &canonical);
        prop_assert!(is_isomorphic(&parsed(&canonical.lines), &triples));
        prop_assert_eq!(canonical_lines(&canonical.lines).unwrap(), canonical);
    }

    #[test]
    fn unequal_graphs_have_unequal_bytes(
        triples in small_graph(5, 10),
        at: Index,
        other in small_graph(5, 2),
    ) {
        prop_assume!(!triples.is_empty());
        let mut changed = triples.clone();
        changed.remove(at.index(triples.len()));
        changed.extend(other);
        let is_equal = form(&triples).lines == form(&changed).lines;
        prop_assert_eq!(is_equal, is_isomorphic(&triples, &changed));
    }

    #[test]
    fn regular_graphs_have_equal_bytes(shift in 1..6_usize, size in 6..12_usize, seed: u64) {
        let edges = (0..size).flat_map(|i| [(i, (i + 1) % size), (i, (i + shift) % size)]);
        let triples = undirected(edges);
        let canonical = form(&triples);
        prop_assert_eq!(&form(&disguised(&triples, seed)), &canonical);
        let (original, read) = (edges_of(&triples), edges_of(&parsed(&canonical.lines)));
        prop_assert_eq!(original.len(), read.len());
        prop_assert!(can_assign(&original, &read, size, &mut Vec::new()));
    }

    #[test]
    fn any_graph_has_the_fuzzed_properties(bytes: Vec<u8>) {
        crate::patch::fuzz_property::canonical(&bytes);
    }
}
