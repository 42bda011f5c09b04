//! IRIs for blank nodes that belong to no entity, or perhaps to several.
//!
//! A blank node that is the object of statements about exactly one other subject is part of its
//! description. All others get an IRI made of their content [rdf11-concepts §3.5], so that they are
//! entities too, and every other blank node belongs to one entity. The IRI of a node that is not a
//! subject is made of the entities that it is an object of.

use crate::nodes::description::closure;
use crate::{Error, LineSorter, SortOptions, SortedStatements};
use abreast_rdf::{DescriptionBudget, Statement, statements};
use memchr::memchr;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Seek as _};

/// Most blank nodes that get an IRI; their labels are in memory.
const MAX_NAMED: usize = 500_000;
/// Most bytes of the entities that a node is an object of, for distinguishing it from others.
const MAX_PARENTS: usize = 1 << 20;
/// Placeholder for a node in its own content.
const ROOT: &[u8] = b"<urn:x-abreast:node>";

/// The same statements with IRIs `BASE/.well-known/genid/…` for these blank nodes.
///
/// # Errors
/// The base is not the beginning of an IRI, there are too many nodes, one node or all together have
/// too many statements below them, or the disk failed.
pub fn skolemized(
    options: &SortOptions,
    sorted: SortedStatements,
    base: &str,
) -> Result<SortedStatements, Error> {
    let prefix =
        abreast_rdf::skolem_prefix(base).map_err(|error| Error::Skolem(error.to_string()))?;
    let found = found(options, &sorted)?;
    if found.is_empty() {
        return Ok(sorted);
    }
    let mut blanks = sorted.blank_nodes()?;
    let mut contents = Vec::with_capacity(found.len());
    let mut budget = DescriptionBudget::of_input(sorted.length());
    for Found { label, is_described, parents } in found {
        options.check_stop()?;
        let content = if is_described {
            let root = String::from_utf8_lossy(&label).into_owned();
            let mut own = Vec::new();
            blanks.lines_of(&label, &mut own)?;
            let lines = closure(&root, &own, &mut blanks, &mut budget)?;
            content(&label, &lines, &mut budget)?
        } else {
            digest(&[b"object of ", &parents])
        };
        contents.push((content, parents, label));
    }
    // Nodes with equal content get different IRIs, in the order of the entities that they are
    // objects of.
    contents.sort_unstable();
    let mut names: BTreeMap<Vec<u8>, ([u8; 16], u32)> = BTreeMap::new();
    let (mut last, mut copy) = (None, 0);
    for (content, _, label) in contents {
        copy = if last == Some(content) { copy + 1 } else { 0 };
        last = Some(content);
        names.insert(label, (content, copy));
    }
    let iri = |(content, copy): &([u8; 16], u32)| {
        let number = if *copy > 0 { format!("-{copy}") } else { String::new() };
        format!("<{prefix}{:032x}{number}>", u128::from_be_bytes(*content)).into_bytes()
    };
    let mut sorter = LineSorter::new(&options.temporary, options.memory);
    let mut renamed = Vec::new();
    each_line(&sorted, options, |line| {
        let found = Line::split(line)?;
        let [subject, object] = [found.subject, found.object].map(|term| names.get(term).map(iri));
        if subject.is_none() && object.is_none() {
            return Ok(sorter.push(line)?);
        }
        renamed.clear();
        renamed.extend_from_slice(subject.as_deref().unwrap_or(found.subject));
        renamed.extend_from_slice(found.predicate);
        renamed.extend_from_slice(object.as_deref().unwrap_or(found.object));
        renamed.extend_from_slice(b" .");
        Ok(sorter.push(&renamed)?)
    })?;
    Ok(SortedStatements::new(sorter.finish()?, true)?)
}

/// A blank node that gets an IRI.
struct Found {
    /// The node's label, with `_:`.
    label: Vec<u8>,
    /// Whether the node is the subject of a statement.
    is_described: bool,
    /// A digest of the entities that it is an object of.
    parents: [u8; 16],
}

/// The blank nodes that are not the object of exactly one other subject, in the order of labels.
fn found(options: &SortOptions, sorted: &SortedStatements) -> Result<Vec<Found>, Error> {
    // Each pair of object and subject once, and each subject, in the order of labels.
    let mut sorter = LineSorter::new(&options.temporary, options.memory);
    let mut pair = Vec::new();
    each_line(sorted, options, |line| {
        let Line { subject, object, .. } = Line::split(line)?;
        if subject.starts_with(b"_:") {
            pair.clear();
            pair.extend_from_slice(subject);
            // Sorts before all subjects.
            pair.extend_from_slice(b" !");
            sorter.push(&pair)?;
        }
        if object.starts_with(b"_:") && object != subject {
            pair.clear();
            pair.extend_from_slice(object);
            pair.push(b' ');
            pair.extend_from_slice(subject);
            sorter.push(&pair)?;
        }
        Ok(())
    })?;
    let mut found: Vec<Found> = Vec::new();
    let mut node = Node::default();
    let mut take = |node: Node| {
        if node.subjects != 1 && !node.label.is_empty() {
            let Node { label, is_described, parents, .. } = node;
            found.push(Found { label, is_described, parents: digest(&[&parents]) });
        }
        if found.len() > MAX_NAMED {
            return Err(Error::Skolem(format!(
                "more than {MAX_NAMED} blank nodes belong to several entities or to none\n  help: give them IRIs"
            )));
        }
        Ok(())
    };
    for pair in BufReader::new(sorter.finish()?).split(b'\n') {
        let pair = pair?;
        let end = memchr(b' ', &pair).unwrap_or(pair.len());
        if pair[..end] != *node.label {
            take(std::mem::take(&mut node))?;
            node.label.extend_from_slice(&pair[..end]);
        }
        match &pair[end..] {
            b" !" => node.is_described = true,
            subject => {
                node.subjects += 1;
                // Ignore labels of other blank nodes, and subjects above the limit.
                if subject.starts_with(b" <") && node.parents.len() < MAX_PARENTS {
                    node.parents.extend_from_slice(subject);
                }
            }
        }
    }
    take(node)?;
    Ok(found)
}

/// A blank node while its pairs are read.
#[derive(Default)]
struct Node {
    label: Vec<u8>,
    is_described: bool,
    subjects: u64,
    parents: Vec<u8>,
}

fn digest(parts: &[&[u8]]) -> [u8; 16] {
    let mut digest = [0; 16];
    digest.copy_from_slice(&blake3::hash(&parts.concat()).as_bytes()[..16]);
    digest
}

/// A digest of all statements about a blank node, independent of its label.
fn content(label: &[u8], lines: &[u8], budget: &mut DescriptionBudget) -> Result<[u8; 16], Error> {
    let malformed = |_| Error::NotSorted { line: 0 };
    let mut own = Vec::with_capacity(lines.len());
    for statement in statements(lines) {
        let Statement { subject, predicate, object } = statement.map_err(malformed)?;
        let term = |term| if term == label { ROOT } else { term };
        for part in [term(subject), b" ", predicate, b" ", term(object), b" .\n"] {
            own.extend_from_slice(part);
        }
    }
    let canonical = budget.canonical_lines(&own).map_err(malformed)?;
    Ok(digest(&[&canonical.lines]))
}

/// A line without its newline.
pub(crate) struct Line<'l> {
    pub(crate) subject: &'l [u8],
    /// Predicate with the spaces around it.
    pub(crate) predicate: &'l [u8],
    pub(crate) object: &'l [u8],
}

impl<'l> Line<'l> {
    pub(crate) fn split(line: &'l [u8]) -> Result<Self, Error> {
        let wrong = || Error::NotSorted { line: 0 };
        let first = memchr(b' ', line).ok_or_else(wrong)?;
        let second = first + 2 + memchr(b' ', &line[first + 1..]).ok_or_else(wrong)?;
        let end = line.len().checked_sub(2).filter(|end| *end >= second).ok_or_else(wrong)?;
        Ok(Self {
            subject: &line[..first],
            predicate: &line[first..second],
            object: &line[second..end],
        })
    }
}

pub(crate) fn each_line(
    sorted: &SortedStatements,
    options: &SortOptions,
    mut visit: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut file: File = sorted.file()?;
    file.rewind()?;
    let (mut input, mut line) = (BufReader::with_capacity(1 << 20, file), Vec::new());
    let mut number = 0_u64;
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        visit(&line)?;
        number += 1;
        if number.is_multiple_of(1 << 16) {
            options.check_stop()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};

    fn named(lines: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let mut lines: Vec<String> = lines.iter().map(|line| format!("{line} .\n")).collect();
        lines.sort();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(lines.concat().as_bytes()).unwrap();
        let sorted = SortedStatements::new(file, true).unwrap();
        let result = skolemized(&SortOptions::new(folder.path()), sorted, "http://h/").unwrap();
        let mut text = String::new();
        let mut file = result.file().unwrap();
        file.rewind().unwrap();
        file.read_to_string(&mut text).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    fn iris(lines: &[String]) -> std::collections::BTreeSet<&str> {
        let terms = lines.iter().flat_map(|line| line.split(' '));
        terms.filter(|term| term.starts_with("<http://h/.well-known/genid/")).collect()
    }

    #[test]
    fn blank_nodes_of_several_subjects_and_of_none_get_iris() {
        let lines = [
            "<http://a/1> <http://p> _:own",
            "_:own <http://p> \"own\"",
            "<http://a/1> <http://p> _:shared",
            "<http://a/2> <http://p> _:shared",
            "_:shared <http://p> _:below",
            "_:below <http://p> \"_:shared\"",
            "_:root <http://p> _:leaf",
            "_:root <http://p> _:root",
            "_:leaf <http://p> <http://a/1>",
            "<http://a/1> <http://p> _:nothing",
            "<http://a/1> <http://p> _:empty",
            "<http://a/2> <http://p> _:empty",
        ];
        let found = named(&lines);
        assert_eq!(iris(&found).len(), 3, "{found:#?}");
        for kept in ["_:own", "_:below", "_:leaf", "_:nothing", "\"_:shared\""] {
            assert!(found.iter().any(|line| line.contains(kept)), "{kept} in {found:#?}");
        }
        assert!(found.iter().all(|line| !line.contains(" _:shared") && !line.contains("_:root")));
        assert!(found.is_sorted());
        // Other labels, the same IRIs.
        let other = lines.map(|line| {
            line.replace("_:shared <", "_:a <")
                .replace("> _:shared", "> _:a")
                .replace("_:root", "_:z")
        });
        let other = named(&other.each_ref().map(String::as_str));
        assert_eq!(iris(&found), iris(&other));
        let plain = ["<http://a/1> <http://p> _:own", "_:own <http://p> \"own\""];
        assert_eq!(named(&plain), plain.map(|line| format!("{line} .")));
    }

    #[test]
    fn a_long_chain_of_shared_nodes_is_refused_early() {
        let mut lines = Vec::new();
        for n in 0..3_000 {
            lines.push(format!("_:n{n:05} <http://p> _:n{:05} .\n", n + 1));
            lines.push(format!("<http://a/{n:05}> <http://p> _:n{n:05} .\n"));
        }
        lines.sort();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(lines.concat().as_bytes()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let sorted = SortedStatements::new(file, true).unwrap();
        let mut blanks = sorted.blank_nodes().unwrap();
        let mut describer = crate::Describer::new(&sorted);
        let mut groups = sorted.entities().unwrap();
        let mut refused = 0;
        while groups.advance().unwrap() {
            refused +=
                u32::from(describer.gather(&groups.current().unwrap(), &mut blanks).is_err());
        }
        assert!(refused > 2_800 && blanks.searches() < 1_000_000, "{refused}");
        let result = skolemized(&SortOptions::new(folder.path()), sorted, "http://h/");
        let error = result.err().expect("it is too large");
        assert!(error.to_string().contains("together"), "{error}");
    }

    #[test]
    fn nodes_of_equal_content_remain_different() {
        let found =
            named(&["_:a <http://p> \"x\"", "_:b <http://p> \"x\"", "_:c <http://p> \"y\""]);
        assert_eq!((found.len(), iris(&found).len()), (3, 3));
        let circle = [
            "_:a <http://p> _:b",
            "_:b <http://p> _:a",
            "<http://a/1> <http://p> _:a",
            "<http://a/1> <http://p> _:b",
        ];
        let found = named(&circle);
        assert_eq!((found.len(), iris(&found).len()), (4, 2), "{found:#?}");
    }
}
