//! The description of an entity from sorted statements.

use crate::{BlankNodes, Error, Group, MAX_GROUP, SortedStatements};
use abreast_rdf::{
    DescribeError, DescriptionBudget, DescriptionLimits, Naming, Statement, TooLarge,
};
use memchr::memmem::Finder;
use oxrdf::Triple;
use std::borrow::Cow;

/// Gathers descriptions, one after the other.
pub struct Describer {
    /// Whether all lines are canonical, except for labels of blank nodes.
    canonical_lines: bool,
    /// Finds possible blank nodes after the subject.
    blank: Finder<'static>,
    budget: DescriptionBudget,
    unstable: u64,
}

impl Describer {
    /// Creates a describer for the descriptions in these statements.
    pub fn new(sorted: &SortedStatements) -> Self {
        Self {
            canonical_lines: sorted.canonical_lines(),
            blank: Finder::new(b" _:"),
            budget: DescriptionBudget::of_input(sorted.length()),
            unstable: 0,
        }
    }

    /// The statements of an entity, and the statements about blank nodes in them, as they were
    /// read. Returns borrowed lines only if there are no blank nodes.
    ///
    /// # Errors
    /// They are too many, all entities together have too many ([`Error::Together`]), or the disk
    /// failed.
    pub fn gather<'g>(
        &mut self,
        group: &Group<'g>,
        blanks: &mut BlankNodes<'_>,
    ) -> Result<Cow<'g, [u8]>, Error> {
        if group.is_too_large {
            let root = format!("<{}>", group.iri);
            return Err(TooLarge { root, limit: format!("{MAX_GROUP} bytes") }.into());
        }
        if self.blank.find(group.lines).is_none() {
            return Ok(Cow::Borrowed(group.lines));
        }
        let root = format!("<{}>", group.iri);
        closure(&root, group.lines, blanks, &mut self.budget).map(Cow::Owned)
    }

    /// Makes gathered lines canonical: sorted, each once.
    ///
    /// # Errors
    /// A line is not canonical.
    pub fn canonical<'g>(&mut self, gathered: Cow<'g, [u8]>) -> Result<Cow<'g, [u8]>, Error> {
        if let Cow::Borrowed(lines) = gathered
            && (self.canonical_lines || abreast_rdf::are_canonical(lines))
        {
            return Ok(gathered);
        }
        let not_canonical = Error::NotSorted { line: 0 };
        let canonical = if self.canonical_lines {
            self.budget.canonical_lines(&gathered).map_err(|_| not_canonical)?
        } else {
            let triple = |statement: Option<Statement<'_>>| statement?.to_triple();
            let triples: Option<Vec<Triple>> = abreast_rdf::statements(&gathered)
                .map(|statement| triple(statement.ok()))
                .collect();
            self.budget.canonical(triples.ok_or(not_canonical)?.iter().map(Triple::as_ref))
        };
        self.unstable += u64::from(canonical.naming == Naming::Arbitrary);
        Ok(Cow::Owned(canonical.lines))
    }

    /// Number of descriptions with blank nodes whose labels do not follow from their content.
    pub fn unstable(&self) -> u64 {
        self.unstable
    }
}

/// The lines about a subject, and about the blank nodes in them.
pub(crate) fn closure(
    root: &str,
    own: &[u8],
    blanks: &mut BlankNodes<'_>,
    budget: &mut DescriptionBudget,
) -> Result<Vec<u8>, Error> {
    budget.check(root).map_err(Error::Together)?;
    let before = blanks.searches();
    let described = abreast_rdf::describe(root, own, blanks, &DescriptionLimits::default());
    budget.take_searches(blanks.searches() - before);
    let described = described.map_err(|error| match error {
        DescribeError::TooLarge(error) => Error::TooLarge(error),
        DescribeError::Read { source, .. } => Error::Io(source),
        error => Error::Io(std::io::Error::other(error)),
    })?;
    budget.take(root, described.len()).map_err(Error::Together)?;
    Ok(described)
}
