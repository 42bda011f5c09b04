//! Descriptions of entities: their statements, and the statements of blank nodes in them,
//! recursively [sdshare §Fragments Feed].

use crate::canonical::budget::{DescriptionBudget, TooLarge};
use std::collections::{BTreeMap, HashMap, HashSet};

use memchr::memchr;
use oxrdf::{NamedOrBlankNodeRef, TermRef, TripleRef};

use crate::canonical::Canonical;
use crate::notation::statement::{Statement, TermText, write_terms};

/// Limits for the description of an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptionLimits {
    /// Bytes of its lines, 10 MiB by default.
    pub bytes: usize,
    /// Number of its statements, 100,000 by default.
    pub statements: usize,
}

impl Default for DescriptionLimits {
    fn default() -> Self {
        Self { bytes: 10 << 20, statements: 100_000 }
    }
}

/// The reason why [`describe`] failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DescribeError {
    /// The description is larger than the limits.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// The statements of a blank node cannot be read.
    #[error("cannot read the statements of a blank node in the description of {root}")]
    Read {
        /// The entity as it is written: `<iri>`.
        root: String,
        /// The error of the input.
        source: std::io::Error,
    },
}

/// Finds the statements of a blank node among many.
pub trait BlankStatements {
    /// Appends the lines whose subject is this blank node, each with its line feed. The label is as
    /// it is written, without `_:`.
    ///
    /// # Errors
    /// When they cannot be read.
    fn append(&mut self, label: &[u8], lines: &mut Vec<u8>) -> std::io::Result<()>;
}

/// The lines of a description: first the lines of the entity, then the lines of each blank node
/// that they lead to, once.
///
/// `own_lines` are the lines whose subject is the entity. Lines are N-Triples; the result is made
/// canonical by [`canonical_lines`](crate::canonical_lines).
///
/// # Errors
/// - The description is larger than `limits`.
/// - `blank` failed.
pub fn describe(
    root: &str,
    own_lines: &[u8],
    blank: &mut dyn BlankStatements,
    limits: &DescriptionLimits,
) -> Result<Vec<u8>, DescribeError> {
    let mut lines = own_lines.to_vec();
    if !ends_with_line_feed(&lines) {
        lines.push(b'\n');
    }
    let mut found: HashSet<Vec<u8>> = HashSet::new();
    let (mut next, mut statements) = (0, 0);
    while next < lines.len() {
        if lines.len() > limits.bytes {
            return Err(too_large(root, format!("{} bytes", limits.bytes)).into());
        }
        statements += 1;
        if statements > limits.statements {
            return Err(too_large(root, format!("{} statements", limits.statements)).into());
        }
        let end = memchr(b'\n', &lines[next..]).map_or(lines.len(), |length| next + length);
        let label = object_blank(&lines[next..end]).map(<[u8]>::to_vec);
        next = end + 1;
        if let Some(label) = label.filter(|label| !found.contains(label)) {
            blank
                .append(&label, &mut lines)
                .map_err(|source| DescribeError::Read { root: root.to_owned(), source })?;
            if !ends_with_line_feed(&lines) {
                lines.push(b'\n');
            }
            found.insert(label);
        }
    }
    Ok(lines)
}

fn ends_with_line_feed(lines: &[u8]) -> bool {
    lines.last().is_none_or(|byte| *byte == b'\n')
}

fn too_large(root: &str, limit: String) -> TooLarge {
    TooLarge { root: root.to_owned(), limit }
}

/// The subject of a line of N-Triples, as it is written; `None` if the line is not a statement.
///
/// # Examples
/// ```
/// use abreast_rdf::subject_of;
///
/// let line = b"<http://h/7> <http://h/title> \"Atlas\" .";
/// assert_eq!(subject_of(line), Some(&b"<http://h/7>"[..]));
/// assert_eq!(subject_of(b"# a comment"), None);
/// ```
pub fn subject_of(line: &[u8]) -> Option<&[u8]> {
    split_subject(line.trim_ascii_start()).map(|(subject, _)| subject)
}

/// The label of the object of a line of N-Triples, without `_:`, when it is a blank node. Any
/// spacing that the syntax permits is accepted.
///
/// # Examples
/// ```
/// use abreast_rdf::object_blank;
///
/// assert_eq!(object_blank(b"<http://h/7> <http://h/maker> _:b1 ."), Some(&b"b1"[..]));
/// assert_eq!(object_blank(b"<http://h/7> <http://h/title> \"_:b1\" ."), None);
/// ```
pub fn object_blank(line: &[u8]) -> Option<&[u8]> {
    let (_, rest) = split_subject(line.trim_ascii_start())?;
    let predicate = rest.trim_ascii_start().strip_prefix(b"<")?;
    let object = predicate[memchr(b'>', predicate)? + 1..].trim_ascii_start();
    let (label, _) = split_label(object)?;
    Some(&label[2..])
}

fn split_subject(line: &[u8]) -> Option<(&[u8], &[u8])> {
    match line.first()? {
        b'<' => Some(line.split_at(memchr(b'>', line)? + 1)),
        _ => split_label(line),
    }
}

/// Splits off a label, which ends before a space, a comment or the next term; a final `.` ends the
/// statement.
fn split_label(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let label = text.strip_prefix(b"_:")?;
    let ends = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'<' | b'"' | b'#');
    let mut length = label.iter().position(ends).unwrap_or(label.len());
    while length > 0 && label[length - 1] == b'.' {
        length -= 1;
    }
    (length > 0).then(|| text.split_at(length + 2))
}

/// A graph in memory, by its entities: the IRIs that are subjects. A statement that is added twice
/// is stored once.
#[derive(Default)]
pub struct Entities {
    text: Vec<u8>,
    statements: Vec<Written>,
    /// Digests of the statements.
    unique: HashSet<[u8; 16]>,
    /// Statements of each IRI, as it is written.
    own: BTreeMap<Vec<u8>, Vec<usize>>,
    /// Label and statements of each blank node.
    blank: Vec<(String, Vec<usize>)>,
    /// Numbers of blank nodes by their labels.
    numbers: HashMap<String, usize>,
}

/// The range of a statement in the text.
struct Written {
    start: usize,
    subject_end: usize,
    predicate_end: usize,
    end: usize,
    /// Number of the blank node that is the object.
    object_blank: Option<usize>,
}

/// An entity with its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The IRI of the entity, without brackets.
    pub entity: String,
    /// The statements of the description, in canonical form.
    pub canonical: Canonical,
}

/// Losses if a graph is split into separate descriptions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Blank nodes in several descriptions, each of which has its own copy; at most
    /// [`MAX_FINDINGS`].
    pub shared: Vec<SharedBlank>,
    /// Number of blank nodes in several descriptions.
    pub shared_count: usize,
    /// Statements in no description, as no entity reaches their subject; at most [`MAX_FINDINGS`].
    pub unreached: Vec<String>,
    /// Number of statements in no description.
    pub unreached_count: usize,
}

/// A blank node that several entities reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedBlank {
    /// Label of the node in the input, without `_:`.
    pub label: String,
    /// Two of the entities as they are written: `<iri>`.
    pub entities: [String; 2],
}

/// Most findings of each kind that are listed.
pub const MAX_FINDINGS: usize = 100;

impl Entities {
    /// Groups the statements of a graph by subject.
    pub fn new<'a>(triples: impl IntoIterator<Item = TripleRef<'a>>) -> Self {
        let mut entities = Self::default();
        for triple in triples {
            entities.add(triple);
        }
        entities
    }

    /// Adds a statement to the graph.
    pub fn add(&mut self, triple: TripleRef<'_>) {
        let start = self.text.len();
        let (subject_end, predicate_end) = write_terms(triple, &mut self.text);
        let end = self.text.len();
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(&self.text[start..]).as_bytes()[..16]);
        if !self.unique.insert(digest) {
            return self.text.truncate(start);
        }
        let statement = self.statements.len();
        match triple.subject {
            NamedOrBlankNodeRef::BlankNode(node) => {
                let node = self.number(node.as_str());
                self.blank[node].1.push(statement);
            }
            NamedOrBlankNodeRef::NamedNode(_) => {
                let entity = &self.text[start..subject_end];
                match self.own.get_mut(entity) {
                    Some(own) => own.push(statement),
                    None => drop(self.own.insert(entity.to_vec(), vec![statement])),
                }
            }
        }
        let object_blank = match triple.object {
            TermRef::BlankNode(node) => Some(self.number(node.as_str())),
            _ => None,
        };
        self.statements.push(Written { start, subject_end, predicate_end, end, object_blank });
    }

    /// The number of a blank node.
    fn number(&mut self, label: &str) -> usize {
        if let Some(number) = self.numbers.get(label) {
            return *number;
        }
        let number = self.blank.len();
        self.numbers.insert(label.to_owned(), number);
        self.blank.push((label.to_owned(), Vec::new()));
        number
    }

    /// The number of statements in the graph.
    pub fn statements(&self) -> usize {
        self.statements.len()
    }

    /// The number of entities in the graph.
    pub fn len(&self) -> usize {
        self.own.len()
    }

    /// Whether the graph does not have entities.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty()
    }

    /// The description of each entity, in the order of their IRIs.
    ///
    /// # Errors
    /// For each entity whose description is larger than `limits`, and for every entity after 32 MiB
    /// of descriptions.
    pub fn descriptions(
        &self,
        limits: DescriptionLimits,
    ) -> impl Iterator<Item = Result<Description, TooLarge>> {
        let mut budget = DescriptionBudget::in_memory();
        self.own
            .iter()
            .map(move |(entity, own)| self.description(entity, own, &limits, &mut budget))
    }

    fn description(
        &self,
        entity: &[u8],
        own: &[usize],
        limits: &DescriptionLimits,
        budget: &mut DescriptionBudget,
    ) -> Result<Description, TooLarge> {
        let root = String::from_utf8_lossy(entity);
        budget.check(&root)?;
        let mut statements = own.to_vec();
        let mut found: HashSet<usize> = HashSet::new();
        let (mut next, mut bytes) = (0, 0);
        while let Some(&statement) = statements.get(next) {
            let written = &self.statements[statement];
            bytes += written.end - written.start;
            next += 1;
            let limit = if bytes > limits.bytes {
                Some(format!("{} bytes", limits.bytes))
            } else {
                (next > limits.statements).then(|| format!("{} statements", limits.statements))
            };
            if let Some(limit) = limit {
                budget.take(&root, bytes)?;
                return Err(too_large(&root, limit));
            }
            if let Some(node) = written.object_blank.filter(|node| found.insert(*node)) {
                statements.extend_from_slice(&self.blank[node].1);
            }
        }
        budget.take(&root, bytes)?;
        let statements = statements.into_iter().map(|statement| self.terms(statement)).collect();
        let iri = match TermText::parse(entity) {
            Some(TermText::Iri(iri)) => iri.into_owned(),
            _ => root.into_owned(),
        };
        Ok(Description { entity: iri, canonical: budget.canonical_statements(statements) })
    }

    fn terms(&self, statement: usize) -> Statement<'_> {
        let written = &self.statements[statement];
        Statement {
            subject: &self.text[written.start..written.subject_end],
            predicate: &self.text[written.subject_end + 1..written.predicate_end],
            object: &self.text[written.predicate_end + 1..written.end - " .\n".len()],
        }
    }

    /// Blank nodes in several descriptions, and statements in none.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::Entities;
    /// use oxttl::TurtleParser;
    ///
    /// let turtle = r#"PREFIX : <http://h/>
    ///     :7 :maker _:m . :8 :maker _:m . _:m :name "Mercator" . _:x :name "Ortelius" ."#;
    /// let triples = TurtleParser::new().for_slice(turtle).collect::<Result<Vec<_>, _>>()?;
    /// let findings = Entities::new(triples.iter().map(|triple| triple.as_ref())).findings();
    /// assert_eq!(findings.shared[0].entities, ["<http://h/7>", "<http://h/8>"]);
    /// assert_eq!(findings.unreached_count, 1);
    /// # Ok::<(), oxttl::TurtleSyntaxError>(())
    /// ```
    pub fn findings(&self) -> Findings {
        let mut findings = Findings::default();
        // The entity that reached a node first, and whether another one did.
        let mut reached: Vec<Option<&[u8]>> = vec![None; self.blank.len()];
        let mut is_shared = vec![false; self.blank.len()];
        for (entity, own) in &self.own {
            let objects = |statements: &[usize]| -> Vec<usize> {
                let objects = statements.iter().map(|number| self.statements[*number].object_blank);
                objects.flatten().collect()
            };
            let mut pending = objects(own);
            while let Some(node) = pending.pop() {
                match reached[node] {
                    // Nodes below a shared one are shared too, and were found then.
                    Some(_) if is_shared[node] => continue,
                    Some(first) if first == entity.as_slice() => continue,
                    Some(first) => {
                        is_shared[node] = true;
                        findings.shared_count += 1;
                        if findings.shared.len() < MAX_FINDINGS {
                            findings.shared.push(SharedBlank {
                                label: self.blank[node].0.clone(),
                                entities: [first, entity]
                                    .map(|entity| String::from_utf8_lossy(entity).into_owned()),
                            });
                        }
                    }
                    None => reached[node] = Some(entity),
                }
                pending.extend(objects(&self.blank[node].1));
            }
        }
        let unreached = self.blank.iter().zip(&reached).filter(|(_, reached)| reached.is_none());
        for &statement in unreached.flat_map(|((_, statements), _)| statements) {
            findings.unreached_count += 1;
            if findings.unreached.len() < MAX_FINDINGS {
                let Written { start, end, .. } = self.statements[statement];
                let line = String::from_utf8_lossy(&self.text[start..end]);
                findings.unreached.push(line.trim_end().to_owned());
            }
        }
        findings
    }
}

#[cfg(test)]
mod tests {
    use oxttl::NTriplesParser;

    use super::*;
    use crate::{canonical_lines, statements};

    fn entities(text: &str) -> Entities {
        let triples: Vec<oxrdf::Triple> =
            NTriplesParser::new().for_slice(text).map(Result::unwrap).collect();
        Entities::new(triples.iter().map(oxrdf::Triple::as_ref))
    }

    fn described(text: &str) -> Vec<(String, usize)> {
        entities(text)
            .descriptions(DescriptionLimits::default())
            .map(|description| {
                let Description { entity, canonical } = description.unwrap();
                (entity, statements(&canonical.lines).count())
            })
            .collect()
    }

    struct InMemory<'a>(&'a str);

    impl BlankStatements for InMemory<'_> {
        fn append(&mut self, label: &[u8], lines: &mut Vec<u8>) -> std::io::Result<()> {
            for line in self.0.lines().map(str::as_bytes) {
                if subject_of(line).and_then(|subject| subject.strip_prefix(b"_:")) == Some(label) {
                    lines.extend_from_slice(line);
                    lines.push(b'\n');
                }
            }
            Ok(())
        }
    }

    #[test]
    fn a_description_reaches_through_blank_nodes_only() {
        let text = "<http://e/a> <http://e/p> _:x .\n\
                    _:x <http://e/p> _:y .\n\
                    _:y <http://e/p> <http://e/b> .\n\
                    _:y <http://e/p> _:x .\n\
                    <http://e/b> <http://e/p> \"b\" .\n";
        let expected = [("http://e/a".to_owned(), 4), ("http://e/b".to_owned(), 1)];
        assert_eq!(described(text), expected);

        let own = &text[..=text.find('\n').unwrap()];
        let limits = DescriptionLimits::default();
        let lines = describe("<http://e/a>", own.as_bytes(), &mut InMemory(text), &limits).unwrap();
        assert_eq!(statements(&lines).count(), 4);
        let in_memory = entities(text).descriptions(limits).next().unwrap().unwrap().canonical;
        assert_eq!(canonical_lines(&lines).unwrap(), in_memory);
    }

    #[test]
    fn shared_and_unreached_blank_nodes_are_found() {
        let text = "<http://e/a> <http://e/p> _:x .\n\
                    <http://e/b> <http://e/p> _:x .\n\
                    <http://e/b> <http://e/p> _:own .\n\
                    <http://e/c> <http://e/p> _:y .\n\
                    _:x <http://e/p> _:y .\n\
                    _:root <http://e/p> _:y .\n";
        let findings = entities(text).findings();
        let entities = |second: &str| ["<http://e/a>".to_owned(), second.to_owned()];
        assert_eq!(
            findings.shared,
            [
                SharedBlank { label: "x".to_owned(), entities: entities("<http://e/b>") },
                SharedBlank { label: "y".to_owned(), entities: entities("<http://e/b>") },
            ]
        );
        assert_eq!(findings.shared_count, 2);
        assert_eq!(findings.unreached, ["_:root <http://e/p> _:y ."]);
        assert_eq!(findings.unreached_count, 1);
    }

    #[test]
    fn a_description_above_a_limit_is_an_error() {
        let text = "<http://e/a> <http://e/p> _:x .\n\
                    _:x <http://e/p> \"1\" .\n\
                    _:x <http://e/p> \"2\" .\n";
        let own = &text[..text.find('\n').unwrap()];
        let root = "<http://e/a>";
        for (limits, limit) in [
            (DescriptionLimits { statements: 2, ..DescriptionLimits::default() }, "2 statements"),
            (DescriptionLimits { bytes: 60, ..DescriptionLimits::default() }, "60 bytes"),
        ] {
            let error = entities(text).descriptions(limits).next().unwrap().unwrap_err();
            assert_eq!((error.root.as_str(), error.limit.as_str()), (root, limit));
            let lines = describe(root, own.as_bytes(), &mut InMemory(text), &limits).unwrap_err();
            assert!(matches!(lines, DescribeError::TooLarge(same) if same == error));
        }
    }

    #[test]
    fn labels_are_found_in_any_legal_spacing() {
        for (line, subject, object) in [
            ("_:a <p> _:b .", "_:a", Some("b")),
            ("_:a.b<p>_:c.d.", "_:a.b", Some("c.d")),
            ("  _:a\t<p>\t_:b.# _:c", "_:a", Some("b")),
            ("<s><p>_:b#c", "<s>", Some("b")),
            ("<s> <p> \"_:b\" .", "<s>", None),
            ("<s> <p> <_:b> .", "<s>", None),
            ("<_:s> <_:p> \"a\" . # _:b", "<_:s>", None),
        ] {
            assert_eq!(subject_of(line.as_bytes()), Some(subject.as_bytes()), "{line}");
            assert_eq!(object_blank(line.as_bytes()), object.map(str::as_bytes), "{line}");
        }
        for line in ["", "# comment", "<s", "_: <p> <o> ."] {
            assert_eq!(subject_of(line.as_bytes()), None, "{line}");
        }
    }
}
