//! Properties of descriptions of any graph: for fuzzing and for the tests of its seeds.

use crate::entity::sparql::{Reach, Replacement, replace};
use crate::entity::summary::summary;
use crate::notation::statement::split_lines;
use crate::{
    EntityPatch, Naming, PatchBlankNodes, Statement, apply_entity_patch, canonical_lines,
    difference, skolemize, statements, unskolemize,
};

/// Statements that are made of one input.
const MAX_STATEMENTS: usize = 200;

/// A graph of few nodes, made of three bytes for each statement. Its canonical form does not depend
/// on the order of statements nor on labels, has as many statements, and is its own canonical form.
/// A difference leads from one half to the other.
///
/// # Panics
/// When that is not so.
pub fn canonical(bytes: &[u8]) {
    let edges: Vec<[u8; 3]> = bytes
        .chunks_exact(3)
        .take(MAX_STATEMENTS)
        .map(|edge| [edge[0], edge[1], edge[2]])
        .collect();
    let graph = |edges: &[[u8; 3]], labels: u8| -> Vec<u8> {
        edges.iter().flat_map(|edge| line(*edge, labels).into_bytes()).collect()
    };
    let lines = graph(&edges, 0);
    let form = canonical_lines(&lines).expect("statements");
    let mut reversed = edges.clone();
    reversed.reverse();
    let other = canonical_lines(&graph(&reversed, 0x55)).expect("statements");
    if form.naming != Naming::Arbitrary {
        assert_eq!(form, other);
        assert_eq!(form, canonical_lines(&form.lines).expect("canonical lines"));
    }
    let mut unique: Vec<Statement<'_>> =
        statements(&lines).map(|line| line.expect("one")).collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(statements(&form.lines).count(), unique.len());
    assert!(split_lines(&form.lines).is_sorted_by(|a, b| a < b));

    let (old, new) = edges.split_at(edges.len() / 2);
    let [old, new] =
        [old, new].map(|half| canonical_lines(&graph(half, 0)).expect("statements").lines);
    assert_eq!(difference(&old, &new).apply(&old).as_ref(), Ok(&new));
}

/// Two descriptions of few nodes, made of three bytes for each statement; those with an even first
/// byte are in the earlier one, all others and every fourth in the later one. A patch, with each form of
/// blank nodes, leads from one to the other, and its reverse back.
///
/// # Panics
/// When that is not so.
pub fn entity_patch(bytes: &[u8]) {
    let edges =
        || bytes.chunks_exact(3).take(MAX_STATEMENTS).map(|edge| [edge[0], edge[1], edge[2]]);
    let version = |is_part: fn(u8) -> bool| {
        let edges = edges().filter(|edge| is_part(edge[1] >> 4));
        // The subject is the entity or a blank node.
        let lines: Vec<u8> = edges
            .flat_map(|[subject, predicate, object]| {
                let subject = if subject % 16 == 1 { 0 } else { subject };
                line([subject, predicate, object], 0).into_bytes()
            })
            .collect();
        canonical_lines(&lines).expect("statements")
    };
    let (old, new) =
        (version(|part| part % 2 == 0), version(|part| part % 2 == 1 || part % 4 == 0));
    if old.naming == Naming::Arbitrary || new.naming == Naming::Arbitrary {
        return;
    }
    let entity = "http://e/0";
    for blank_nodes in [
        PatchBlankNodes::Skolem("https://example.org"),
        PatchBlankNodes::Labels,
        PatchBlankNodes::Subtrees,
    ] {
        let change = EntityPatch {
            entity,
            old: &old.lines,
            new: &new.lines,
            id: "uuid:2",
            prev: Some("uuid:1"),
            entity_prev: None,
            blank_nodes,
        };
        let mut text = Vec::new();
        change.write(&mut text).expect("statements");
        let patch = rdf_patch::Patch::from_slice(&text).expect("a strict patch");
        let applied = apply_entity_patch(entity, &old.lines, &patch).expect("the same version");
        assert_eq!(applied.description.lines, new.lines);
        let back = patch.reversed().expect("no prefixes");
        let applied = apply_entity_patch(entity, &new.lines, &back).expect("the same version");
        assert_eq!(applied.description.lines, old.lines);
    }
}

/// Subjects are IRIs for the least numbers, objects are literals for the greatest.
fn line([subject, predicate, object]: [u8; 3], labels: u8) -> String {
    let node = |number: u8| match number % 16 {
        0 | 1 => format!("<http://e/{}>", number % 16),
        number => format!("_:n{}", number ^ labels),
    };
    let object = if object < 0xE0 { node(object) } else { format!("\"{object}\"") };
    format!("{} <http://e/p{}> {object} .\n", node(subject), predicate % 3)
}

/// Any text as lines: lines that are statements can be made canonical, skolemised and back, and
/// written as an update whose strings and IRIs end where they should.
///
/// # Panics
/// When that is not so.
pub fn description(bytes: &[u8]) {
    let lines: Vec<u8> = statements(bytes)
        .flatten()
        .take(MAX_STATEMENTS)
        .flat_map(|statement| {
            let mut line = Vec::new();
            statement.write(&mut line);
            line
        })
        .collect();
    let form = canonical_lines(&lines).expect("statements");
    let Some(Ok(first)) = statements(&form.lines).next() else { return };
    let root = String::from_utf8_lossy(first.subject).into_owned();
    let summary = summary(&form.lines, root.trim_matches(['<', '>']), &[], &[]);
    let mut lengths = summary.labels.iter().map(|label| label.text.chars().count());
    assert!(lengths.all(|length| length <= crate::MAX_LABEL_LENGTH));
    let iris = skolemize(&form.lines, "https://example.org", Some(&root)).expect("a base");
    assert!(statements(&iris).all(|statement| !statement.expect("a statement").has_blank()));
    let back = unskolemize(&iris, "https://example.org").expect("a base");
    if form.naming != Naming::Arbitrary && !contains(&lines, b"/.well-known/genid/") {
        assert_eq!(back, form);
    }

    let entity = root.trim_start_matches('<').trim_end_matches('>');
    let reach = Reach::of(&form.lines, entity).expect("statements");
    let change = Replacement { entity, old: reach, new: &form.lines };
    if let Ok(update) = replace(Some("http://example.org/graph"), &[change]) {
        let written = tokens(&update);
        assert!(written.is_some_and(|words| !words.contains("DROP ALL")), "{update}");
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// The text outside of strings and IRIs, read as SPARQL reads it; `None` when one does not end.
fn tokens(update: &str) -> Option<String> {
    let mut outside = String::new();
    let mut characters = update.chars();
    while let Some(character) = characters.next() {
        match character {
            '"' => loop {
                match characters.next()? {
                    '"' => break,
                    '\\' => drop(characters.next()?),
                    '\n' | '\r' => return None,
                    _ => {}
                }
            },
            '<' => loop {
                match characters.next()? {
                    '>' => break,
                    '\0'..=' ' | '<' | '"' | '{' | '}' | '|' | '^' | '`' | '\\' => return None,
                    _ => {}
                }
            },
            _ => outside.push(character),
        }
    }
    Some(outside)
}
