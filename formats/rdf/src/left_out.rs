//! Statements that cannot be used: left out, and counted.

use crate::read_error::ReadError;
use abreast_webtypes::excerpt;
use oxiri::Iri;
use oxrdf::{GraphNameRef, Literal, NamedOrBlankNodeRef, QuadRef, TermRef};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Statements that are named.
const NAMED: usize = 10;

/// What readers leave out in place of refusing a document: lines of N-Triples and N-Quads that are no
/// statements, and in any syntax statements with an IRI or a language tag that is not one [rfc3987 §2.2].
/// Clones count together.
///
/// ```
/// use abreast_rdf::{LeftOut, ReadOptions, Syntax, read};
/// use std::ops::ControlFlow;
///
/// let left_out = LeftOut::default();
/// let options = ReadOptions::default().with_left_out(left_out.of("dump.nt"));
/// let lines = "<http://h/a b> <http://h/p> '1' .\n<http://h/a> <http://h/p> \"1\" .\n";
/// let mut seen = 0;
/// read(Syntax::NTriples, lines.as_bytes(), &options, &mut |_| {
///     seen += 1;
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!((seen, left_out.count()), (1, 1));
/// assert!(left_out.first()[0].starts_with("dump.nt: line 1"));
/// # Ok::<(), abreast_rdf::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct LeftOut {
    document: Arc<str>,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    count: u64,
    first: Vec<String>,
}

impl LeftOut {
    /// The same, for a document of that name.
    #[must_use]
    pub fn of(&self, document: &str) -> Self {
        Self { document: document.into(), found: Arc::clone(&self.found) }
    }

    /// How many statements were left out.
    pub fn count(&self) -> u64 {
        self.found().count
    }

    /// The first ten of them: document, place and fault.
    pub fn first(&self) -> Vec<String> {
        self.found().first.clone()
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, fault: &dyn std::fmt::Display) {
        let mut found = self.found();
        found.count += 1;
        if found.first.len() < NAMED {
            let text = fault.to_string();
            let line = text.lines().next().unwrap_or_default();
            let document = &self.document;
            let text =
                if document.is_empty() { line.to_owned() } else { format!("{document}: {line}") };
            found.first.push(text);
        }
    }

    /// Notes a fault of a line.
    ///
    /// # Errors
    /// It is not one of the document.
    pub(crate) fn line(&self, error: ReadError) -> Result<(), ReadError> {
        match error {
            ReadError::Syntax(fault) => {
                self.note(&fault);
                Ok(())
            }
            error @ ReadError::Io(_) => Err(error),
        }
    }

    /// Whether a statement that was read without checks can be used; else it is noted.
    pub(crate) fn passes(&self, quad: QuadRef<'_>) -> bool {
        let fault = fault_in(quad);
        if let Some(fault) = &fault {
            self.note(fault);
        }
        fault.is_none()
    }
}

/// Why a statement cannot be used.
fn fault_in(quad: QuadRef<'_>) -> Option<String> {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => Some(node),
        NamedOrBlankNodeRef::BlankNode(_) => None,
    };
    let object = match quad.object {
        TermRef::NamedNode(node) => Some(node),
        TermRef::Literal(literal) => {
            if let Some(tag) = literal.language()
                && Literal::new_language_tagged_literal("", tag).is_err()
            {
                return Some(format!("`{}` is not a language tag", excerpt(tag)));
            }
            Some(literal.datatype())
        }
        TermRef::BlankNode(_) => None,
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => Some(node),
        _ => None,
    };
    [subject, Some(quad.predicate), object, graph].into_iter().flatten().find_map(|node| {
        let error = Iri::parse(node.as_str()).err()?;
        Some(format!("`{}` is not an IRI: {error}", excerpt(node.as_str())))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, Syntax, read, read_lines};
    use std::ops::ControlFlow;

    /// How many statements are used and left out.
    fn counts(syntax: Syntax, text: &str) -> (usize, u64, Vec<String>) {
        let (left_out, mut used) = (LeftOut::default(), 0);
        let options =
            ReadOptions::default().with_base("http://h/base").with_left_out(left_out.of("d"));
        read(syntax, text.as_bytes(), &options, &mut |_| {
            used += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        (used, left_out.count(), left_out.first())
    }

    #[test]
    fn what_cannot_be_used_is_left_out_and_named() {
        let good = "<http://h/a> <http://h/p> <http://h/b> .\n";
        let lines = format!(
            "{good}<http://h/a b> <http://h/p> 1 .\n<http://h/a> <http://h/p>\n{good}\
             <http://h/a> <http://h/p> \"x\"@toolonglanguage .\r{good}\u{0}\n{good}"
        );
        let turtle = format!(
            "{good}<http://h/a> <http://h/p> <http://h/a|b>, 1 ; <http://h/q> \"x\"@toolonglanguage, <#c> .\n"
        );
        let xml = "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:p='http://h/'>\
             <r:Description r:about='http://h/a'><p:p r:resource='http://h/b c'/><p:p r:resource='b'/></r:Description>\
             <r:Description r:about='http://h/{x}'><p:p>1</p:p></r:Description></r:RDF>";
        for (syntax, text, used, left_out) in [
            (Syntax::NTriples, lines.as_str(), 4, 4),
            (Syntax::NQuads, &lines, 4, 4),
            (Syntax::Turtle, &turtle, 3, 2),
            (Syntax::TriG, &turtle, 3, 2),
            (Syntax::RdfXml, xml, 1, 2),
        ] {
            let found = counts(syntax, text);
            assert_eq!((found.0, found.1), (used, left_out), "{syntax:?} {:?}", found.2);
            assert!(found.2.iter().all(|named| named.starts_with("d: ")), "{:?}", found.2);
        }
        assert!(counts(Syntax::NTriples, &lines).2[1].starts_with("d: line 3"));
    }

    #[test]
    fn lines_that_are_not_parsed_are_left_out_too() {
        let good = "<http://h/a> <http://h/p> <http://h/b> .\n";
        let (left_out, mut used) = (LeftOut::default(), 0);
        let options = ReadOptions::default().with_document(1).with_left_out(left_out.of("d"));
        let text = format!("{good}broken\n_:x <http://h/p> <b> .\n{good}broken again");
        read_lines(text.as_bytes(), &options, &mut |_| {
            used += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
        let lines: Vec<_> = left_out.first().iter().map(|named| named[..9].to_owned()).collect();
        assert_eq!(
            (used, lines),
            (2, ["d: line 2", "d: line 3", "d: line 5"].map(str::to_owned).into())
        );
    }

    #[test]
    fn many_are_counted_and_few_are_named() {
        let (_, count, first) = counts(Syntax::NTriples, &"broken\n".repeat(20_000));
        assert_eq!((count, first.len()), (20_000, NAMED));
    }
}
