//! SPARQL 1.1 Update for a store of descriptions: one request that removes exactly the old
//! description of each entity and inserts the new one [sparql-update §3.1].
//!
//! Removing `ENTITY ?p ?o` alone would leave the blank nodes of the old description behind, and a
//! property path would continue through IRIs into other entities. Here each operation follows blank
//! nodes only, to the depth of the old description. Small descriptions are matched by one
//! operation. In descriptions that are deep or have very many paths, the blank nodes are marked
//! step by step first, several items of a list in one step. A mark is a statement of the entity
//! itself, and is removed with it: if a store is interrupted between operations, the same request,
//! repeated, removes the marks too.
//!
//! Terms are written by the grammar of SPARQL [sparql-query §19.8]; IRIs that it does not permit
//! are an error, so that no description can end a term or a request.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use crate::notation::statement::{
    Statement, StatementError, TermText, is_blank, is_iri_byte, statements,
};

/// The deepest description that is matched by one operation.
const ONE_OPERATION_DEPTH: usize = 4;

/// Most paths through blank nodes that one operation matches.
const ONE_OPERATION_PATHS: u64 = 1_000;

/// Greatest depth of a description that is removed; the request has as many operations.
pub const MAX_DEPTH: usize = 10_000;

/// Items of a list that one step marks: stores limit the number of operations in a request.
const LIST_STEP: usize = 8;

const REST: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>";

/// Marks blank nodes of the description that is being removed.
const MARK: &str = "<urn:x-abreast:replaced>";

/// The distances of blank nodes from an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Distance in statements of the farthest blank node from the entity; 0 without blank nodes.
    pub depth: usize,
    /// Number of paths to blank nodes, each with at most `depth` statements.
    pub paths: u64,
    /// Steps that mark all blank nodes: fewer than `depth` if there are lists.
    pub steps: usize,
}

/// The replacement of a description in a store.
#[derive(Clone, Copy, Debug)]
pub struct Replacement<'a> {
    /// The IRI of the entity, without brackets.
    pub entity: &'a str,
    /// The blank nodes of the old description in the store: [`Reach::of`] its lines, or
    /// [`Reach::of_depth`] with the depth from [`ask_deeper`].
    pub old: Reach,
    /// The lines of the new description; if empty, the entity is deleted.
    pub new: &'a [u8],
}

/// The reason why a request cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SparqlError {
    /// SPARQL cannot express an IRI.
    #[error("SPARQL does not permit the IRI `{iri}`")]
    Iri {
        /// The IRI that cannot be expressed.
        iri: String,
    },
    /// A term is not well-formed.
    #[error("`{term}` is not a term of N-Triples")]
    Term {
        /// The term as it was given.
        term: String,
    },
    /// The old description is deeper than [`MAX_DEPTH`].
    #[error(
        "the description of {entity} is {depth} blank nodes deep, more than {MAX_DEPTH}\n  help: keep each entity in a graph of its own"
    )]
    TooDeep {
        /// The IRI of the entity, without brackets.
        entity: String,
        /// The depth of the old description.
        depth: usize,
    },
    /// A line is not a statement as this crate writes it.
    #[error(transparent)]
    Statement(#[from] StatementError),
}

impl Reach {
    /// The distances of a description's blank nodes from the entity.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::sparql::Reach;
    ///
    /// let lines = b"<http://h/7> <http://h/maker> _:b1 .\n_:b1 <http://h/born> _:b2 .\n\
    ///     _:b2 <http://h/place> \"Rupelmonde\" .\n";
    /// let reach = Reach::of(lines, "http://h/7")?;
    /// assert_eq!(reach.depth, 2);
    /// # Ok::<(), abreast_rdf::StatementError>(())
    /// ```
    ///
    /// # Errors
    /// A line that is not a statement as this crate writes it.
    pub fn of(lines: &[u8], entity: &str) -> Result<Self, StatementError> {
        let mut objects: HashMap<&[u8], Vec<&[u8]>> = HashMap::new();
        let mut rests: HashMap<&[u8], &[u8]> = HashMap::new();
        let mut has_lists = true;
        for statement in statements(lines) {
            let Statement { subject, predicate, object } = statement?;
            if is_blank(object) {
                objects.entry(subject).or_default().push(object);
                if predicate == REST.as_bytes() && is_blank(subject) {
                    has_lists &= rests.insert(subject, object).is_none();
                }
            }
        }
        let root = format!("<{entity}>");
        let levels = |list_step: usize| {
            let mut found: HashSet<&[u8]> = HashSet::new();
            let mut level: Vec<&[u8]> = vec![root.as_bytes()];
            let mut count = 0;
            loop {
                let mut next: Vec<&[u8]> = Vec::new();
                for node in level {
                    let rest = |cell: &&[u8]| rests.get(cell).copied();
                    let cells = std::iter::successors(rest(&node), rest).take(list_step);
                    let objects = objects.get(node).into_iter().flatten().copied();
                    next.extend(objects.chain(cells).filter(|node| found.insert(node)));
                }
                if next.is_empty() {
                    return count;
                }
                count += 1;
                level = next;
            }
        };
        let depth = levels(1);
        let steps = if has_lists { levels(LIST_STEP) } else { depth };
        let mut reach = Self { depth, paths: 0, steps };
        // Paths are counted for a single operation only, which is not used for deeper descriptions.
        let mut counts: HashMap<&[u8], u64> = HashMap::from([(root.as_bytes(), 1)]);
        for _ in 0..reach.depth.min(ONE_OPERATION_DEPTH) {
            let mut next: HashMap<&[u8], u64> = HashMap::new();
            for (node, count) in counts {
                for object in objects.get(node).into_iter().flatten() {
                    let paths = next.entry(object).or_default();
                    *paths = paths.saturating_add(count);
                    reach.paths = reach.paths.saturating_add(count);
                }
            }
            counts = next;
        }
        Ok(reach)
    }

    /// For a description with a known depth only.
    pub fn of_depth(depth: usize) -> Self {
        Self { depth, paths: if depth < 2 { 0 } else { u64::MAX }, steps: depth }
    }
}

/// The request that replaces descriptions in `graph`, or in the default graph.
///
/// All removals come before the insertion, and blank nodes have other labels for each entity.
///
/// ```
/// use abreast_rdf::sparql::{Reach, Replacement, replace};
///
/// let new = b"<http://example.org/ada> <http://example.org/name> \"Ada\" .\n";
/// let change = Replacement {
///     entity: "http://example.org/ada",
///     old: Reach::of_depth(1),
///     new,
/// };
/// assert_eq!(
///     replace(None, &[change])?,
///     "DELETE { <http://example.org/ada> ?p ?o . ?b1 ?p1 ?o1 . } WHERE { \
///      { <http://example.org/ada> ?p ?o . } UNION \
///      { <http://example.org/ada> ?b1xp1 ?b1 . FILTER(isBlank(?b1)) ?b1 ?p1 ?o1 . } } ;\n\
///      INSERT DATA {\n\
///      <http://example.org/ada> <http://example.org/name> \"Ada\" .\n\
///      }\n",
/// );
/// # Ok::<(), abreast_rdf::sparql::SparqlError>(())
/// ```
///
/// # Errors
/// - The graph, an entity or a term is an IRI that SPARQL does not permit.
/// - An old description is deeper than [`MAX_DEPTH`].
/// - A line is not a statement as this crate writes it.
pub fn replace(graph: Option<&str>, changes: &[Replacement<'_>]) -> Result<String, SparqlError> {
    let graph = graph.map(iri).transpose()?;
    let mut update = String::new();
    for change in changes {
        write_removal(&mut update, graph.as_deref(), change)?;
    }
    let insertion = insertion(graph.as_deref(), changes.iter().map(|change| change.new))?;
    update.push_str(&insertion);
    Ok(update)
}

/// The request that inserts descriptions into `graph`, or into the default graph. Equal labels in
/// two descriptions are two blank nodes.
///
/// # Examples
/// ```
/// use abreast_rdf::sparql::insert;
///
/// let atlas = b"<http://h/7> <http://h/title> \"Atlas\" .\n";
/// let request = insert(Some("http://h/graphs/maps"), [&atlas[..]])?;
/// assert!(request.starts_with("INSERT DATA"));
/// assert!(request.contains("GRAPH <http://h/graphs/maps>"));
/// # Ok::<(), abreast_rdf::sparql::SparqlError>(())
/// ```
///
/// # Errors
/// - A term or the graph is an IRI that SPARQL does not permit.
/// - A line is not a statement as this crate writes it.
pub fn insert<'a>(
    graph: Option<&str>,
    descriptions: impl IntoIterator<Item = &'a [u8]>,
) -> Result<String, SparqlError> {
    let graph = graph.map(iri).transpose()?;
    insertion(graph.as_deref(), descriptions.into_iter())
}

/// The request that inserts descriptions, each into its graph or the default graph. Equal labels in
/// two descriptions are two blank nodes. The request is empty if the descriptions are.
///
/// # Errors
/// - A term or a graph is an IRI that SPARQL does not permit.
/// - A line is not a statement as this crate writes it.
pub fn insert_into<'a>(
    descriptions: impl IntoIterator<Item = (Option<&'a str>, &'a [u8])>,
) -> Result<String, SparqlError> {
    let (mut data, mut blanks) = (String::new(), 0);
    for (graph, lines) in descriptions {
        let graph = graph.map(iri).transpose()?;
        if lines.is_empty() {
            continue;
        }
        if let Some(graph) = &graph {
            let _ = writeln!(data, "GRAPH {graph} {{");
        }
        write_data(&mut data, lines, &mut blanks)?;
        data.push_str(if graph.is_some() { "}\n" } else { "" });
    }
    Ok(if data.is_empty() { data } else { format!("INSERT DATA {{\n{data}}}\n") })
}

/// The query that asks whether the store has a blank node that is farther from the entity than
/// `depth` statements.
///
/// # Examples
/// ```
/// use abreast_rdf::sparql::ask_deeper;
///
/// let query = ask_deeper(None, "http://h/7", 0)?;
/// assert!(query.starts_with("ASK {") && query.contains("<http://h/7>"));
/// # Ok::<(), abreast_rdf::sparql::SparqlError>(())
/// ```
///
/// # Errors
/// The graph or the entity is an IRI that SPARQL does not permit.
pub fn ask_deeper(graph: Option<&str>, entity: &str, depth: usize) -> Result<String, SparqlError> {
    let graph = graph.map(iri).transpose()?;
    let entity = iri(entity)?;
    // A cycle has paths of any length, so nodes that a shorter path reaches are excluded.
    let mut pattern = format!("{} ", path_to(&entity, "q", depth + 1, "?b"));
    for shorter in 1..=depth {
        let _ = write!(
            pattern,
            "FILTER NOT EXISTS {{ {} }} ",
            path_to(&entity, &format!("s{shorter}x"), shorter, "?b")
        );
    }
    Ok(format!("ASK {{ {}}}\n", in_graph(graph.as_deref(), &pattern)))
}

/// The request that removes a graph, whether or not it exists.
///
/// # Errors
/// SPARQL does not permit the IRI.
pub fn clear(graph: &str) -> Result<String, SparqlError> {
    Ok(format!("CLEAR SILENT GRAPH {}\n", iri(graph)?))
}

fn write_removal(
    update: &mut String,
    graph: Option<&str>,
    change: &Replacement<'_>,
) -> Result<(), SparqlError> {
    let Reach { depth, paths, steps } = change.old;
    if depth > MAX_DEPTH {
        return Err(SparqlError::TooDeep { entity: change.entity.to_owned(), depth });
    }
    let entity = iri(change.entity)?;
    if depth <= ONE_OPERATION_DEPTH && paths <= ONE_OPERATION_PATHS {
        let mut removed = format!("{entity} ?p ?o . ");
        let mut matched = format!("{{ {entity} ?p ?o . }} ");
        for length in 1..=depth {
            let (node, last) = (format!("?b{length}"), format!("?p{length} ?o{length}"));
            let path = path_to(&entity, &format!("b{length}x"), length, &node);
            let _ = write!(removed, "{node} {last} . ");
            let _ = write!(matched, "UNION {{ {path} {node} {last} . }} ");
        }
        write_modify(update, graph, "DELETE", &removed, &matched);
        return Ok(());
    }
    let first = format!("{entity} ?p ?b . FILTER(isBlank(?b)) ");
    write_modify(update, graph, "INSERT", &format!("{entity} {MARK} ?b . "), &first);
    // Each branch starts at the marks, so that a store does not evaluate all of its statements
    // first.
    let mut step = format!("{{ {entity} {MARK} ?a . ?a ?p ?b . FILTER(isBlank(?b)) }} ");
    for length in (2..=LIST_STEP).filter(|_| steps < depth) {
        let _ = write!(step, "UNION {{ {entity} {MARK} ?a . ?a {REST} ?c1 . ");
        for cell in 1..length - 1 {
            let _ = write!(step, "?c{cell} {REST} ?c{} . ", cell + 1);
        }
        let _ = write!(step, "?c{} {REST} ?b . FILTER(isBlank(?b)) ", length - 1);
        for cell in 1..length {
            let _ = write!(step, "FILTER(isBlank(?c{cell})) ");
        }
        step.push_str("} ");
    }
    for _ in 1..steps {
        write_modify(update, graph, "INSERT", &format!("{entity} {MARK} ?b . "), &step);
    }
    let marked = format!("{entity} {MARK} ?a . ?a ?p ?o . ");
    write_modify(update, graph, "DELETE", "?a ?p ?o . ", &marked);
    let own = format!("{entity} ?p ?o . ");
    write_modify(update, graph, "DELETE", &own, &own);
    Ok(())
}

/// The pattern of a path with this length through blank nodes to the blank node `last`.
fn path_to(entity: &str, prefix: &str, length: usize, last: &str) -> String {
    let mut pattern = String::new();
    let mut filters = String::new();
    for step in 1..=length {
        let from = match step {
            1 => entity.to_owned(),
            _ => format!("?{prefix}{}", step - 1),
        };
        let to = if step == length { last.to_owned() } else { format!("?{prefix}{step}") };
        let _ = write!(pattern, "{from} ?{prefix}p{step} {to} . ");
        let _ = write!(filters, "FILTER(isBlank({to})) ");
    }
    pattern + filters.trim_end()
}

fn write_modify(update: &mut String, graph: Option<&str>, what: &str, of: &str, matched: &str) {
    let (of, matched) = (in_graph(graph, of), in_graph(graph, matched));
    let _ = writeln!(update, "{what} {{ {of}}} WHERE {{ {matched}}} ;");
}

fn in_graph(graph: Option<&str>, pattern: &str) -> String {
    match graph {
        Some(graph) => format!("GRAPH {graph} {{ {pattern}}} "),
        None => pattern.to_owned(),
    }
}

fn insertion<'a>(
    graph: Option<&str>,
    descriptions: impl Iterator<Item = &'a [u8]>,
) -> Result<String, SparqlError> {
    let mut data = String::new();
    let mut blanks = 0;
    for lines in descriptions {
        write_data(&mut data, lines, &mut blanks)?;
    }
    if data.is_empty() {
        return Ok(data);
    }
    Ok(match graph {
        Some(graph) => format!("INSERT DATA {{ GRAPH {graph} {{\n{data}}} }}\n"),
        None => format!("INSERT DATA {{\n{data}}}\n"),
    })
}

/// Writes the statements of a description; `blanks` is the number of blank nodes written before.
fn write_data(data: &mut String, lines: &[u8], blanks: &mut usize) -> Result<(), SparqlError> {
    let mut labels: HashMap<&[u8], usize> = HashMap::new();
    for statement in statements(lines) {
        let Statement { subject, predicate, object } = statement?;
        for term in [subject, predicate, object] {
            if is_blank(term) {
                let number = *labels.entry(term).or_insert_with(|| {
                    *blanks += 1;
                    *blanks
                });
                let _ = write!(data, "_:b{number}");
            } else {
                write_term(data, term)?;
            }
            data.push(' ');
        }
        data.push_str(".\n");
    }
    Ok(())
}

/// An IRI as SPARQL writes it: in brackets.
///
/// # Examples
/// ```
/// use abreast_rdf::sparql::iri;
///
/// assert_eq!(iri("http://h/7")?, "<http://h/7>");
/// // Such a text would end the term and begin another one.
/// assert!(iri("http://h/7> ?p ?o . <http://h/8").is_err());
/// # Ok::<(), abreast_rdf::sparql::SparqlError>(())
/// ```
///
/// # Errors
/// SPARQL does not permit the IRI.
pub fn iri(text: &str) -> Result<String, SparqlError> {
    if text.is_empty() || !text.bytes().all(is_iri_byte) {
        return Err(SparqlError::Iri { iri: text.to_owned() });
    }
    Ok(format!("<{text}>"))
}

fn write_term(out: &mut String, term: &[u8]) -> Result<(), SparqlError> {
    let malformed = || SparqlError::Term { term: String::from_utf8_lossy(term).into_owned() };
    match TermText::parse(term).ok_or_else(malformed)? {
        TermText::Iri(text) => out.push_str(&iri(&text)?),
        TermText::Blank(_) => return Err(malformed()),
        TermText::Literal { value, language, datatype } => {
            write_string(out, &value);
            if let Some(language) = language {
                let _ = write!(out, "@{language}");
            } else if let Some(datatype) = datatype {
                let _ = write!(out, "^^{}", iri(&datatype)?);
            }
        }
    }
    Ok(())
}

/// A string in quotes. A store may resolve `\u` in the whole request before it reads the strings:
/// `\\u0022` would then become `\"`. So a `u` after a backslash is written as a separate escape,
/// which has the same meaning in either order.
fn write_string(out: &mut String, value: &str) {
    out.push('"');
    let mut previous = ' ';
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            'u' | 'U' if previous == '\\' => write_code(out, character),
            '\0'..='\u{1F}' | '\u{7F}' | '\u{FFFE}' | '\u{FFFF}' => write_code(out, character),
            _ => out.push(character),
        }
        previous = character;
    }
    out.push('"');
}

/// Always with eight digits: some stores read up to eight digits after `\u`.
fn write_code(out: &mut String, character: char) {
    let _ = write!(out, "\\U{:08X}", u32::from(character));
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTITY: &str = "http://e/a";

    fn update(new: &str) -> Result<String, SparqlError> {
        let change = Replacement { entity: ENTITY, old: Reach::default(), new: new.as_bytes() };
        replace(Some("http://e/g"), &[change])
    }

    #[test]
    fn labels_are_separate_for_each_description() {
        let lines = b"<http://e/a> <http://e/p> _:x .\n_:x <http://e/p> _:y .\n";
        assert_eq!(
            insert(None, [lines.as_slice(), lines]).unwrap(),
            "INSERT DATA {\n\
             <http://e/a> <http://e/p> _:b1 .\n_:b1 <http://e/p> _:b2 .\n\
             <http://e/a> <http://e/p> _:b3 .\n_:b3 <http://e/p> _:b4 .\n}\n"
        );
    }

    #[test]
    fn descriptions_are_inserted_into_graphs_of_their_own() {
        let lines = b"<http://e/a> <http://e/p> _:x .\n";
        let descriptions =
            [(Some("http://e/g"), &lines[..]), (None, lines), (Some("http://e/h"), b"")];
        assert_eq!(
            insert_into(descriptions).unwrap(),
            "INSERT DATA {\nGRAPH <http://e/g> {\n<http://e/a> <http://e/p> _:b1 .\n}\n\
             <http://e/a> <http://e/p> _:b2 .\n}\n"
        );
        assert_eq!(insert_into([]).unwrap(), "");
        assert!(insert_into([(Some("http://e/>"), &lines[..])]).is_err());
    }

    #[test]
    fn no_literal_ends_its_string() {
        for (value, expected) in [
            (r"> } ; DROP ALL #", r#""> } ; DROP ALL #""#),
            (r#"\" } ; DROP ALL #"#, r#""\" } ; DROP ALL #""#),
            (r"\\u0022 } ; DROP ALL", r#""\\\U00000075""#),
            (r"\\\\u0022", r#""\\\\\U000000750022""#),
            (r"\u0000\u000B", "\"\\U00000000\\U0000000B\""),
            (r"\\Useless", r#""\\\U00000055seless""#),
        ] {
            let text = update(&format!("<http://e/a> <http://e/p> \"{value}\" .\n")).unwrap();
            let expected = expected.strip_suffix('"').unwrap();
            assert!(text.contains(&format!("<http://e/p> {expected}")), "{text}");
        }
    }

    #[test]
    fn an_iri_that_sparql_does_not_permit_is_refused() {
        let hostile = "http://e/> } ; DROP ALL #";
        let change = |entity| Replacement { entity, old: Reach::default(), new: b"" };
        let expected = SparqlError::Iri { iri: hostile.to_owned() };
        assert_eq!(replace(None, &[change(hostile)]), Err(expected.clone()));
        assert_eq!(replace(Some(hostile), &[change(ENTITY)]), Err(expected.clone()));
        assert_eq!(ask_deeper(None, hostile, 1), Err(expected.clone()));
        assert_eq!(clear(hostile), Err(expected));
        for line in [
            r"<http://e/a> <http://e/p> <http://e/\u003E> .",
            r#"<http://e/a> <http://e/p> "a"^^<http://e/\u003E> ."#,
            r"<http://e/a> <http://e/\u003E> <http://e/o> .",
        ] {
            assert_eq!(update(line), Err(SparqlError::Iri { iri: "http://e/>".to_owned() }));
        }
    }

    #[test]
    fn the_depth_is_that_of_the_farthest_blank_node() {
        let lines = b"<http://e/a> <http://e/p> _:x .\n<http://e/a> <http://e/p> _:z .\n\
            <http://e/b> <http://e/p> _:other .\n\
            _:x <http://e/p> _:y .\n_:y <http://e/p> _:z .\n_:z <http://e/p> _:x .\n\
            _:y <http://e/p> <http://e/b> .\n";
        assert_eq!(Reach::of(lines, ENTITY).unwrap(), Reach { depth: 2, paths: 4, steps: 2 });
        assert_eq!(Reach::of(lines, "http://e/c").unwrap(), Reach::default());
    }

    #[test]
    fn lists_take_one_step_for_several_items() {
        let cell = |number: usize| format!("_:c{number} {REST} _:c{} .\n", number + 1);
        let lines: String = (0..80).map(cell).collect();
        let lines = format!("<http://e/a> <http://e/in> _:c0 .\n{lines}");
        let old = Reach::of(lines.as_bytes(), ENTITY).unwrap();
        assert_eq!(old, Reach { depth: 81, paths: 4, steps: 11 });
        let text = replace(None, &[Replacement { entity: ENTITY, old, new: b"" }]).unwrap();
        assert_eq!(text.matches("INSERT").count(), 11);
        // A cell with two rests is no list.
        let forked = format!("{lines}_:c0 {REST} _:c7 .\n");
        assert_eq!(Reach::of(forked.as_bytes(), ENTITY).unwrap().steps, 75);
    }

    #[test]
    fn deep_or_branching_descriptions_are_marked_step_by_step() {
        let deep = Replacement { entity: ENTITY, old: Reach::of_depth(3), new: b"" };
        let text = replace(None, &[deep]).unwrap();
        assert_eq!(text.matches("INSERT").count(), 3, "{text}");
        assert_eq!(text.matches("DELETE").count(), 2, "{text}");
        let shallow = Replacement { old: Reach { depth: 3, paths: 3, steps: 3 }, ..deep };
        let text = replace(None, &[shallow]).unwrap();
        assert_eq!((text.matches("INSERT").count(), text.matches("DELETE").count()), (0, 1));
        let too_deep = Replacement { old: Reach::of_depth(MAX_DEPTH + 1), ..deep };
        assert!(matches!(replace(None, &[too_deep]), Err(SparqlError::TooDeep { .. })));
    }
}
