//! The description of one entity out of sorted statements.

use crate::{BlankNodes, Error, Group};
use abreast_rdf::{DescribeError, DescriptionLimits, Naming, Statement};
use oxrdf::Triple;

/// Gathers descriptions, one after the other.
pub struct Describer {
    /// Whether all lines are canonical, apart from labels of blank nodes.
    canonical_lines: bool,
    /// All lines of the current description, as they were read.
    lines: Vec<u8>,
    has_blanks: bool,
    unstable: u64,
}

impl Describer {
    /// For lines that were written canonically, or perhaps not.
    pub fn new(canonical_lines: bool) -> Self {
        Self { canonical_lines, lines: Vec::new(), has_blanks: false, unstable: 0 }
    }

    /// Gathers the statements of an entity, and those about the blank nodes in them, as they were
    /// read.
    ///
    /// # Errors
    /// They are too many, or the disk failed.
    pub fn gather(
        &mut self,
        group: &Group<'_>,
        blanks: &mut BlankNodes<'_>,
    ) -> Result<&[u8], Error> {
        self.has_blanks = memchr::memmem::find(group.lines, b" _:").is_some();
        if self.has_blanks {
            self.lines = describe(group, blanks)?;
        } else {
            self.lines.clear();
            self.lines.extend_from_slice(group.lines);
        }
        Ok(&self.lines)
    }

    /// Makes what was gathered canonical: sorted lines, each once.
    ///
    /// # Errors
    /// A line is not canonical.
    pub fn canonical(&mut self) -> Result<&[u8], Error> {
        if self.canonical_lines && !self.has_blanks {
            return Ok(&self.lines);
        }
        let not_canonical = Error::NotSorted { line: 0 };
        let canonical = if self.canonical_lines {
            abreast_rdf::canonical_lines(&self.lines).map_err(|_| not_canonical)?
        } else {
            let triple = |statement: Option<Statement<'_>>| statement?.to_triple();
            let triples: Option<Vec<Triple>> = abreast_rdf::statements(&self.lines)
                .map(|statement| triple(statement.ok()))
                .collect();
            abreast_rdf::canonical(triples.ok_or(not_canonical)?.iter().map(Triple::as_ref))
        };
        self.unstable += u64::from(canonical.naming == Naming::Arbitrary);
        self.lines = canonical.lines;
        Ok(&self.lines)
    }

    /// Descriptions whose blank nodes could not be named by their content.
    pub fn unstable(&self) -> u64 {
        self.unstable
    }
}

fn describe(group: &Group<'_>, blanks: &mut BlankNodes<'_>) -> Result<Vec<u8>, Error> {
    closure(&format!("<{}>", group.iri), group.lines, blanks)
}

/// The lines about a subject, and about the blank nodes that they lead to.
pub(crate) fn closure(
    root: &str,
    own: &[u8],
    blanks: &mut BlankNodes<'_>,
) -> Result<Vec<u8>, Error> {
    let limits = DescriptionLimits::default();
    abreast_rdf::describe(root, own, blanks, &limits).map_err(|error| match error {
        DescribeError::TooLarge(error) => Error::TooLarge(error),
        DescribeError::Read { source, .. } => Error::Io(source),
        error => Error::Io(std::io::Error::other(error)),
    })
}
