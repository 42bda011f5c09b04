//! The description of one entity out of sorted statements.

use super::RdfError;
use super::plan::Fingerprint;
use super::statements::{BlankNodes, Group};
use abreast_core::Description;
use abreast_rdf::{DescribeError, DescriptionLimits, Naming, Statement};
use oxrdf::Triple;

/// What is taken from descriptions for people.
#[derive(Clone, Debug, Default)]
pub struct DescriptionOptions {
    /// Languages of labels, the best first.
    pub languages: Vec<String>,
}

impl DescriptionOptions {
    /// Types and label of an entity.
    pub(super) fn summary(&self, iri: &str, lines: &[u8]) -> Description {
        let languages: Vec<&str> = self.languages.iter().map(String::as_str).collect();
        let summary = abreast_rdf::summary(lines, &format!("<{iri}>"), &languages);
        Description { types: summary.classes, label: summary.label }
    }
}

/// Gathers descriptions, one after the other.
pub(super) struct Describer {
    /// Whether all lines are canonical, apart from labels of blank nodes.
    canonical_lines: bool,
    /// All lines of the current description, as they were read.
    lines: Vec<u8>,
    has_blanks: bool,
    unstable: u64,
}

impl Describer {
    /// For lines that were written canonically, or perhaps not.
    pub(super) fn new(canonical_lines: bool) -> Self {
        Self { canonical_lines, lines: Vec::new(), has_blanks: false, unstable: 0 }
    }

    /// Gathers the statements of an entity, and those about the blank nodes in them. The
    /// fingerprint is that of all of them.
    ///
    /// # Errors
    /// They are too many, or the disk failed.
    pub(super) fn gather(
        &mut self,
        group: &Group<'_>,
        blanks: &mut BlankNodes<'_>,
    ) -> Result<Fingerprint, RdfError> {
        self.has_blanks = memchr::memmem::find(group.lines, b" _:").is_some();
        if self.has_blanks {
            self.lines = describe(group, blanks)?;
        } else {
            self.lines.clear();
            self.lines.extend_from_slice(group.lines);
        }
        let digest = abreast_contents::address_of(&self.lines);
        let mut fingerprint = Fingerprint::default();
        fingerprint.copy_from_slice(&digest.0[..16]);
        Ok(fingerprint)
    }

    /// Makes what was gathered canonical.
    ///
    /// # Errors
    /// A line is not canonical.
    pub(super) fn canonical(&mut self) -> Result<&[u8], RdfError> {
        if self.canonical_lines && !self.has_blanks {
            return Ok(&self.lines);
        }
        let not_canonical = RdfError::NotSorted { line: 0 };
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
    pub(super) fn unstable(&self) -> u64 {
        self.unstable
    }
}

fn describe(group: &Group<'_>, blanks: &mut BlankNodes<'_>) -> Result<Vec<u8>, RdfError> {
    let root = format!("<{}>", group.iri);
    let limits = DescriptionLimits::default();
    abreast_rdf::describe(&root, group.lines, blanks, &limits).map_err(|error| match error {
        DescribeError::TooLarge(error) => RdfError::TooLarge(error),
        DescribeError::Read { source, .. } => RdfError::Io(source),
        error => RdfError::Io(std::io::Error::other(error)),
    })
}
