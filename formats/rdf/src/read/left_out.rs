//! Invalid statements: left out, and counted.

use crate::notation::statement::is_language_tag;
use crate::read::error::ReadError;
use abreast_webtypes::excerpt;
use oxiri::Iri;
use oxrdf::{GraphNameRef, NamedOrBlankNodeRef, QuadRef, TermRef};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most statements that are listed.
const NAMED: usize = 10;

/// Datatypes of literals with a language tag, and of no others [rdf11-concepts §3.3].
const LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";
const DIR_LANG_STRING: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#dirLangString";

/// Counts statements that readers leave out while the rest is used: invalid lines of N-Triples and
/// N-Quads, and in any syntax statements with an invalid IRI or language tag [rfc3987 §2.2]. A
/// truncated last line, and more invalid lines than statements, are still errors. Clones share
/// their count.
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
    pub(crate) are_lines_statements: bool,
    found: Arc<Mutex<Found>>,
}

#[derive(Debug, Default)]
struct Found {
    count: u64,
    first: Vec<String>,
}

impl LeftOut {
    /// The same counter, for a document with this name.
    #[must_use]
    pub fn of(&self, document: &str) -> Self {
        Self { document: document.into(), ..self.clone() }
    }

    /// The same counter, for documents that may be truncated, such as responses of endpoints:
    /// invalid lines are errors.
    #[must_use]
    pub fn of_statements(self) -> Self {
        Self { are_lines_statements: true, ..self }
    }

    /// Number of statements that were left out.
    pub fn count(&self) -> u64 {
        self.found().count
    }

    /// The first ten left-out statements: document, place and fault.
    pub fn first(&self) -> Vec<String> {
        self.found().first.clone()
    }

    fn found(&self) -> MutexGuard<'_, Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn note(&self, fault: &dyn std::fmt::Display) {
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

    /// Counts a line with a fault.
    pub(crate) fn line(&self, error: &ReadError) {
        self.note(error);
    }

    /// Whether a statement that was read without checks is valid; otherwise counts it.
    pub(crate) fn passes(&self, quad: QuadRef<'_>) -> bool {
        let fault = fault_in(quad);
        if let Some((_, fault)) = &fault {
            self.note(fault);
        }
        fault.is_none()
    }
}

/// The fault of an invalid statement: the code of the error, and the message.
pub(crate) fn fault_in(quad: QuadRef<'_>) -> Option<(&'static str, String)> {
    let subject = match quad.subject {
        NamedOrBlankNodeRef::NamedNode(node) => Some(node),
        NamedOrBlankNodeRef::BlankNode(_) => None,
    };
    let object = match quad.object {
        TermRef::NamedNode(node) => Some(node),
        TermRef::Literal(literal) => {
            if let Some(tag) = literal.language()
                && !is_language_tag(tag)
            {
                let fault = format!("`{}` is not a language tag", excerpt(tag));
                return Some(("rdf.language", fault));
            }
            let datatype = literal.datatype();
            if literal.language().is_none()
                && matches!(datatype.as_str(), LANG_STRING | DIR_LANG_STRING)
            {
                let fault = format!("a literal of `{}` has no language tag", datatype.as_str());
                return Some(("rdf.language", fault));
            }
            Some(datatype)
        }
        TermRef::BlankNode(_) => None,
    };
    let graph = match quad.graph_name {
        GraphNameRef::NamedNode(node) => Some(node),
        _ => None,
    };
    [subject, Some(quad.predicate), object, graph].into_iter().flatten().find_map(|node| {
        let error = Iri::parse(node.as_str()).err()?;
        Some(("rdf.iri", format!("`{}` is not an IRI: {error}", excerpt(node.as_str()))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::any::read;
    use crate::{ReadOptions, Syntax, read_lines};
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
             <http://h/a> <http://h/p> \"x\"@toolonglanguage .\r{good}\u{0}\n{good}\
             <http://h/a> <http://h/p> \"x\"^^<{LANG_STRING}> ."
        );
        let turtle = format!(
            "{good}<http://h/a> <http://h/p> <http://h/a|b>, 1 ; <http://h/q> \"x\"@toolonglanguage, <#c>, \
             \"x\"^^<{LANG_STRING}>, \"x\"^^<{DIR_LANG_STRING}> .\n"
        );
        let xml = "<r:RDF xmlns:r='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:p='http://h/'>\
             <r:Description r:about='http://h/a'><p:p r:resource='http://h/b c'/><p:p r:resource='b'/></r:Description>\
             <r:Description r:about='http://h/{x}'><p:p>1</p:p></r:Description></r:RDF>";
        for (syntax, text, used, left_out) in [
            (Syntax::NTriples, lines.as_str(), 4, 5),
            (Syntax::NQuads, &lines, 4, 5),
            (Syntax::Turtle, &turtle, 3, 4),
            (Syntax::TriG, &turtle, 3, 4),
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
        let text = format!("{good}broken\n_:x <http://h/p> <b> .\n{good}broken again\n");
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
        let line = "<http://h/a> <http://h/p> <http://h/b> .\nbroken\n";
        let (_, count, first) = counts(Syntax::NTriples, &line.repeat(20_000));
        assert_eq!((count, first.len()), (20_000, NAMED));
    }

    #[test]
    fn documents_that_break_off_or_are_others_are_errors() {
        let good = "<http://h/a> <http://h/p> <http://h/b> .\n";
        let wrong = "<http://h/a|b> <http://h/p> <http://h/b> .\n";
        let page = "<!DOCTYPE html>\n<html>\n<body>404</body>\n</html>\n";
        // Whether they can be read, and whether they can where each line is a statement.
        for (text, is_read, is_read_strictly) in [
            (good.to_owned(), true, true),
            (good.trim_end().to_owned(), true, true),
            (format!("{good}{}", wrong.trim_end()), true, true),
            (wrong.repeat(9), true, true),
            (format!("{good}broken\n"), true, false),
            (format!("{good}{good}broken\n# comment\n\n"), true, false),
            (format!("{good}broken\nbroken\n"), false, false),
            (format!("{good}<http://h/a> <http://h/p"), false, false),
            (format!("{good}<http://h/a> <http://h/p> \"x"), false, false),
            (page.to_owned(), false, false),
            (format!("{good}{page}"), false, false),
        ] {
            let options = ReadOptions::default();
            for (left_out, expected) in [
                (LeftOut::default(), is_read),
                (LeftOut::default().of_statements(), is_read_strictly),
            ] {
                let options = options.clone().with_left_out(left_out.of("d"));
                let done = |_: &[u8]| ControlFlow::Continue(());
                let lines = read_lines(text.as_bytes(), &options, &mut { done });
                assert_eq!(lines.is_ok(), expected, "{text} {lines:?}");
                for syntax in [Syntax::NTriples, Syntax::NQuads] {
                    let done =
                        read(syntax, text.as_bytes(), &options, &mut |_| ControlFlow::Continue(()));
                    assert_eq!(done.is_ok(), expected, "{text} {done:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_left_out_counts_for_the_limits() {
        let base = format!("http://h/{}", "x".repeat(30_000));
        let items = "[] <http://h/p> <#a|b> .\n".repeat(1_000);
        let text = format!("@base <{base}> .\n{items}");
        let options = ReadOptions::default().with_left_out(LeftOut::default());
        let done =
            read(Syntax::Turtle, text.as_bytes(), &options, &mut |_| ControlFlow::Continue(()));
        assert_eq!(
            done.unwrap_err().syntax().map(abreast_webtypes::SyntaxError::code),
            Some("rdf.size")
        );
    }
}
