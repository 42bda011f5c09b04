//! The strict writer: one row a line, one space between tokens and before the dot.

use std::fmt::Write as _;
use std::io::{self, Write};

use oxrdf::vocab::xsd;
use oxrdf::{BlankNodeRef, GraphNameRef, LiteralRef, NamedOrBlankNodeRef, QuadRef, TermRef};

use crate::syntax::row::{Change, Row};
use crate::syntax::row_parser::is_word;

/// Writes rows, and refuses rows in a wrong place.
///
/// Blank nodes are written `<_:label>`: a label may have any characters there, and Apache Jena
/// reads back exactly the label.
///
/// ```
/// use rdf_patch::{ID, Row, Writer};
/// use oxrdf::{Literal, NamedNode, QuadRef, GraphNameRef};
///
/// let (ada, name) = (NamedNode::new("http://example.org/ada")?, NamedNode::new("http://example.org/name")?);
/// let (old, new) = (Literal::from("Ada"), Literal::from("Ada Lovelace"));
/// let mut writer = Writer::new(Vec::new());
/// writer.header(ID, NamedNode::new("uuid:0686c69d-8f89-4496-acb5-744f0157a8db")?.as_ref().into())?;
/// writer.begin()?;
/// writer.remove(QuadRef::new(&ada, &name, &old, GraphNameRef::DefaultGraph))?;
/// writer.add(QuadRef::new(&ada, &name, &new, GraphNameRef::DefaultGraph))?;
/// writer.commit()?;
/// assert_eq!(
///     String::from_utf8(writer.finish()?)?,
///     "H id <uuid:0686c69d-8f89-4496-acb5-744f0157a8db> .\n\
///      TX .\n\
///      D <http://example.org/ada> <http://example.org/name> \"Ada\" .\n\
///      A <http://example.org/ada> <http://example.org/name> \"Ada Lovelace\" .\n\
///      TC .\n",
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Writer<W> {
    out: W,
    row: String,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Header,
    Inside,
    Outside,
}

/// Why a row cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The row cannot be here.
    #[error("{0}")]
    Order(&'static str),
    /// A word or a label that no row can carry.
    #[error("`{0}` cannot be written in RDF Patch")]
    Text(String),
    /// The output cannot be written.
    #[error("cannot write the patch")]
    Io(#[from] io::Error),
}

impl<W: Write> Writer<W> {
    /// Starts a patch. Rows are written one by one: give a buffered output.
    pub fn new(out: W) -> Self {
        Self { out, row: String::new(), state: State::Header }
    }

    /// Writes any row.
    ///
    /// # Errors
    /// The row cannot be here or cannot be written, or the output fails.
    pub fn row(&mut self, row: &Row) -> Result<(), WriteError> {
        match row {
            Row::Header { word, value } => self.header(word, value.as_ref()),
            Row::Begin => self.begin(),
            Row::Commit => self.commit(),
            Row::Abort => self.abort(),
            Row::Change(change) => self.change(change),
        }
    }

    /// Writes `H`.
    ///
    /// # Errors
    /// A transaction came before, the word is empty or not on one line, or the output fails.
    pub fn header(&mut self, word: &str, value: TermRef<'_>) -> Result<(), WriteError> {
        if self.state != State::Header {
            return Err(WriteError::Order("headers are before the first transaction"));
        }
        if word.is_empty() {
            return Err(WriteError::Text(word.to_owned()));
        }
        self.row.push_str("H ");
        push_word(word, &mut self.row);
        self.row.push(' ');
        self.term(value)?;
        self.end()
    }

    /// Writes `TX`.
    ///
    /// # Errors
    /// A transaction is open, or the output fails.
    pub fn begin(&mut self) -> Result<(), WriteError> {
        if self.state == State::Inside {
            return Err(WriteError::Order("a transaction cannot begin within another one"));
        }
        self.state = State::Inside;
        self.row.push_str("TX");
        self.end()
    }

    /// Writes `TC`.
    ///
    /// # Errors
    /// No transaction is open, or the output fails.
    pub fn commit(&mut self) -> Result<(), WriteError> {
        self.close("TC")
    }

    /// Writes `TA`.
    ///
    /// # Errors
    /// No transaction is open, or the output fails.
    pub fn abort(&mut self) -> Result<(), WriteError> {
        self.close("TA")
    }

    /// Writes `A`.
    ///
    /// # Errors
    /// No transaction is open, a label cannot be written, or the output fails.
    pub fn add(&mut self, quad: QuadRef<'_>) -> Result<(), WriteError> {
        self.statement("A ", quad)
    }

    /// Writes `D`.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub fn remove(&mut self, quad: QuadRef<'_>) -> Result<(), WriteError> {
        self.statement("D ", quad)
    }

    /// Writes `A` with a statement that is written already: a line of canonical N-Triples with its
    /// dot, without a line feed and without blank nodes. It is not checked.
    ///
    /// # Errors
    /// No transaction is open, or the output fails.
    pub fn add_line(&mut self, line: &[u8]) -> Result<(), WriteError> {
        self.line(b"A ", line)
    }

    /// Writes `D`, as [`Writer::add_line`] writes `A`.
    ///
    /// # Errors
    /// As [`Writer::add_line`].
    pub fn remove_line(&mut self, line: &[u8]) -> Result<(), WriteError> {
        self.line(b"D ", line)
    }

    fn line(&mut self, code: &[u8], line: &[u8]) -> Result<(), WriteError> {
        self.inside()?;
        for part in [code, line, b"\n"] {
            self.out.write_all(part)?;
        }
        Ok(())
    }

    /// Writes `A`, `D`, `PA` or `PD`.
    ///
    /// # Errors
    /// As [`Writer::add`].
    pub fn change(&mut self, change: &Change) -> Result<(), WriteError> {
        match change {
            Change::Add(quad) => self.add(quad.as_ref()),
            Change::Remove(quad) => self.remove(quad.as_ref()),
            Change::AddPrefix { prefix, iri } => {
                self.inside()?;
                self.row.push_str("PA ");
                push_string(prefix, &mut self.row);
                self.row.push(' ');
                push_iri(iri, &mut self.row);
                self.end()
            }
            Change::RemovePrefix { prefix } => {
                self.inside()?;
                self.row.push_str("PD ");
                push_string(prefix, &mut self.row);
                self.end()
            }
        }
    }

    /// Ends the patch, and returns the output.
    ///
    /// # Errors
    /// A transaction is open, or the output fails.
    pub fn finish(mut self) -> Result<W, WriteError> {
        if self.state == State::Inside {
            return Err(WriteError::Order("a transaction is neither committed nor aborted"));
        }
        self.out.flush()?;
        Ok(self.out)
    }

    fn inside(&mut self) -> Result<(), WriteError> {
        if self.state == State::Inside {
            return Ok(());
        }
        Err(WriteError::Order("changes are within a transaction"))
    }

    fn close(&mut self, code: &str) -> Result<(), WriteError> {
        if self.state != State::Inside {
            return Err(WriteError::Order("no transaction is open"));
        }
        self.state = State::Outside;
        self.row.push_str(code);
        self.end()
    }

    fn statement(&mut self, code: &str, quad: QuadRef<'_>) -> Result<(), WriteError> {
        self.inside()?;
        self.row.push_str(code);
        match quad.subject {
            NamedOrBlankNodeRef::NamedNode(node) => push_iri(node.as_str(), &mut self.row),
            NamedOrBlankNodeRef::BlankNode(node) => self.blank(node)?,
        }
        self.row.push(' ');
        push_iri(quad.predicate.as_str(), &mut self.row);
        self.row.push(' ');
        self.term(quad.object)?;
        match quad.graph_name {
            GraphNameRef::DefaultGraph => {}
            GraphNameRef::NamedNode(node) => {
                self.row.push(' ');
                push_iri(node.as_str(), &mut self.row);
            }
            GraphNameRef::BlankNode(node) => {
                self.row.push(' ');
                self.blank(node)?;
            }
        }
        self.end()
    }

    fn term(&mut self, term: TermRef<'_>) -> Result<(), WriteError> {
        match term {
            TermRef::NamedNode(node) => push_iri(node.as_str(), &mut self.row),
            TermRef::BlankNode(node) => self.blank(node)?,
            TermRef::Literal(literal) => {
                push_string(literal.value(), &mut self.row);
                if let Some(language) = literal.language() {
                    self.row.push('@');
                    self.row.push_str(language);
                } else if literal.datatype() != xsd::STRING {
                    self.row.push_str("^^");
                    push_iri(literal.datatype().as_str(), &mut self.row);
                }
            }
        }
        Ok(())
    }

    fn blank(&mut self, node: BlankNodeRef<'_>) -> Result<(), WriteError> {
        let label = node.as_str();
        if label.is_empty() || label.chars().any(|c| c <= ' ' || matches!(c, '<' | '>' | '\\')) {
            self.row.clear();
            return Err(WriteError::Text(format!("_:{label}")));
        }
        for part in ["<_:", label, ">"] {
            self.row.push_str(part);
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), WriteError> {
        self.row.push_str(" .\n");
        let written = self.out.write_all(self.row.as_bytes());
        self.row.clear();
        Ok(written?)
    }
}

fn push_word(word: &str, row: &mut String) {
    if is_word(word) { row.push_str(word) } else { push_string(word, row) }
}

/// Characters that an IRI cannot contain are escaped, so that no IRI ends the row or the term.
fn push_iri(iri: &str, row: &mut String) {
    row.push('<');
    let mut from = 0;
    let is_wrong = |byte: u8| {
        matches!(byte, 0..=0x20 | b'<' | b'>' | b'"' | b'{' | b'}' | b'|' | b'^' | b'`' | b'\\')
    };
    for (at, byte) in iri.bytes().enumerate().filter(|(_, byte)| is_wrong(*byte)) {
        row.push_str(&iri[from..at]);
        let _ = write!(row, "\\u{byte:04X}");
        from = at + 1;
    }
    row.push_str(&iri[from..]);
    row.push('>');
}

fn push_string(value: &str, row: &mut String) {
    let _ = write!(row, "{}", LiteralRef::new_simple_literal(value));
}
