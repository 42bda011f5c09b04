//! Properties of any patch.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, HashSet};

use oxrdf::{BlankNode, Dataset, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use proptest::prelude::*;
use rdf_patch::{Change, Header, Patch, QuadSet, ReadOptions, apply, between};

fn node() -> impl Strategy<Value = NamedNode> {
    prop::sample::select(vec!["http://e/a", "http://e/é", "uuid:1"])
        .prop_map(|iri| NamedNode::new(iri).unwrap())
}

fn blank() -> impl Strategy<Value = BlankNode> {
    prop_oneof![
        prop::sample::select(vec!["a", "b.c", "1"])
            .prop_map(|label| BlankNode::new(label).unwrap()),
        "[a-z:/\"'#.]{1,4}".prop_map(BlankNode::new_unchecked)
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    (any::<String>(), 0..3_u8).prop_map(|(value, kind)| match kind {
        0 => Literal::from(value),
        1 => Literal::new_language_tagged_literal(value, "en-gb").unwrap(),
        _ => Literal::new_typed_literal(value, NamedNode::new("http://e/type").unwrap()),
    })
}

fn quad() -> impl Strategy<Value = Quad> {
    let subject = prop_oneof![
        node().prop_map(NamedOrBlankNode::from),
        blank().prop_map(NamedOrBlankNode::from)
    ];
    let object = prop_oneof![
        node().prop_map(Term::from),
        blank().prop_map(Term::from),
        literal().prop_map(Term::from)
    ];
    let graph = prop_oneof![
        Just(GraphName::DefaultGraph),
        node().prop_map(GraphName::from),
        blank().prop_map(GraphName::from)
    ];
    (subject, node(), object, graph).prop_map(|(s, p, o, g)| Quad::new(s, p, o, g))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => quad().prop_map(Change::Add),
        4 => quad().prop_map(Change::Remove),
        1 => ("[a-c]?", node())
            .prop_map(|(prefix, iri)| Change::AddPrefix { prefix, iri: iri.into_string() }),
        1 => "[a-c]?".prop_map(|prefix| Change::RemovePrefix { prefix }),
    ]
}

fn patch() -> impl Strategy<Value = Patch> {
    let transactions = prop::collection::vec(prop::collection::vec(change(), 0..8), 0..4);
    let rows =
        prop::collection::vec(("[a-zA-Z]{1,5}|[^\"]{1,3}", literal().prop_map(Term::from)), 0..3);
    (transactions, rows, node(), prop::option::of(node())).prop_map(
        |(transactions, rows, id, prev)| {
            let mut header = Header::new(id, prev);
            for (word, value) in
                rows.into_iter().filter(|(word, _)| !["id", "prev"].contains(&word.as_str()))
            {
                header.push(word, value);
            }
            Patch { header, transactions }
        },
    )
}

/// Statements and prefixes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Store {
    quads: HashSet<Quad>,
    prefixes: BTreeMap<String, String>,
}

impl QuadSet for Store {
    fn insert(&mut self, quad: &Quad) -> bool {
        QuadSet::insert(&mut self.quads, quad)
    }

    fn remove(&mut self, quad: &Quad) -> bool {
        self.quads.remove(quad)
    }
}

proptest! {
    #[test]
    fn a_patch_that_is_written_reads_back_equal(patch in patch()) {
        let text = patch.to_text().unwrap();
        prop_assert_eq!(&Patch::from_slice(text.as_bytes()).unwrap(), &patch);
        let (lenient, findings) = Patch::read(text.as_bytes(), &ReadOptions::lenient()).unwrap();
        prop_assert_eq!(&lenient.transactions, &patch.transactions);
        prop_assert!(findings.iter().all(|finding| finding.code() == "patch.header"), "{:?}", findings);
    }

    #[test]
    fn a_patch_and_its_reverse_change_nothing(
        patch in patch(),
        quads in prop::collection::hash_set(quad(), 0..10),
    ) {
        let before = Store { quads, prefixes: BTreeMap::new() };
        let mut store = before.clone();
        let changed = patch.apply(&mut store);
        let after = store.clone();
        let back = changed.reversed().unwrap();
        back.apply(&mut store);
        prop_assert_eq!(&store, &before);
        back.reversed().unwrap().apply(&mut store);
        prop_assert_eq!(&store, &after);
        if patch.header.prev().is_some() {
            prop_assert_eq!((back.header.id(), back.header.prev()), (patch.header.prev(), patch.header.id()));
        }
        // The same patch again, and in another kind of set.
        patch.apply(&mut store);
        let mut other: Dataset = before.quads.iter().collect();
        patch.apply(&mut other);
        if patch.transactions.len() < 2 {
            prop_assert_eq!(&store.quads, &after.quads);
        }
        prop_assert_eq!(other.iter().map(oxrdf::QuadRef::into_owned).collect::<HashSet<_>>(), after.quads);
    }

    #[test]
    fn changes_lead_from_one_set_to_the_other(
        old in prop::collection::hash_set(quad(), 0..10),
        new in prop::collection::hash_set(quad(), 0..10),
    ) {
        let changes = between(&old, &new);
        let mut set = old.clone();
        let effective = apply(&changes, &mut set);
        prop_assert_eq!(&set, &new);
        prop_assert_eq!(effective.len(), changes.len());
        prop_assert_eq!(changes.len(), old.symmetric_difference(&new).count());
        let kinds: Vec<bool> = changes.iter().map(|change| matches!(change, Change::Add(_))).collect();
        prop_assert!(kinds.is_sorted());
    }

    #[test]
    fn any_text_holds_the_fuzzed_property(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "H ", "id ", "TX", "TC", "TA", "TB ", "A ", "D ", "PA ", "PD ", "Segment", "<a:>", "<_:b>", "_:c",
                "\"x\"", "'y'", "\"\"\"", "@en", "^^", "12", "true", "p:q", "p ", ".", " .", "\n", "#", "\\", "é", " ",
            ]),
            0..40,
        ),
    ) {
        rdf_patch::fuzz_property::patch(pieces.concat().as_bytes());
    }
}
