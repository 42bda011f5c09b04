//! Properties of RDF's readers and writers for any input. Each function panics when one does not
//! hold; fuzz targets call nothing else.

use abreast_rdf::{
    ReadError, ReadLimits, ReadOptions, Syntax, WriteOptions, can_write, choose, read, write,
};
use std::collections::BTreeSet;
use std::io::Read;
use std::ops::ControlFlow;

/// A document gives the same statements however it comes, and those can be written in every syntax
/// that can carry them and read back. The first byte chooses the syntax.
pub fn syntaxes(bytes: &[u8]) {
    let Some((first, document)) = bytes.split_first() else { return };
    let syntax = Syntax::ALL[usize::from(*first) % Syntax::ALL.len()];
    let (whole, error) = statements(syntax, document);
    let (pieces, other) = statements(syntax, Pieces(document));
    assert_eq!((erased(&whole), error.clone()), (erased(&pieces), other));
    if error.is_some() {
        return;
    }
    let mut lines: Vec<String> = whole.iter().map(|statement| format!("{statement} .\n")).collect();
    lines.sort();
    lines.dedup();
    let lines = lines.concat();
    for syntax in Syntax::ALL {
        let mut written = Vec::new();
        let result = write(syntax, lines.as_bytes(), &WriteOptions::default(), &mut written);
        assert_eq!(result.is_ok(), can_write(syntax, lines.as_bytes()).is_ok(), "{result:?}");
        if result.is_ok() {
            let (again, error) = statements(syntax, &written[..]);
            assert_eq!(error, None, "{syntax}: {}", String::from_utf8_lossy(&written));
            assert_eq!(erased(&again), erased(&whole), "{syntax}");
        }
    }
}

/// The chosen media type is one that was offered, and one without parameters is chosen when it is
/// the only one named.
pub fn accept(bytes: &[u8]) {
    let field = String::from_utf8_lossy(bytes);
    let offered: Vec<&str> = Syntax::ALL.iter().map(|syntax| syntax.media_type()).collect();
    if let Some(chosen) = choose(Some(&field), &offered) {
        assert!(chosen < offered.len());
        assert_eq!(choose(Some(&field), &offered[chosen..=chosen]), Some(0));
    } else {
        for one in &offered {
            assert_eq!(choose(Some(&field), &[one]), None);
        }
    }
    let found = Syntax::of_media_type(&field);
    assert!(found.is_none() || Syntax::of_sdshare_media_type(&field) == found);
}

struct Pieces<'a>(&'a [u8]);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.len().min(buffer.len()).min(7);
        buffer[..length].copy_from_slice(&self.0[..length]);
        self.0 = &self.0[length..];
        Ok(length)
    }
}

/// Statements as text, and the fault with its place.
fn statements(syntax: Syntax, input: impl Read) -> (Vec<String>, Option<String>) {
    let mut limits = ReadLimits::default();
    limits.depth = 40;
    let options = ReadOptions::default().with_base("http://example.org/dir/").with_limits(limits);
    let mut seen = Vec::new();
    let result = read(syntax, input, &options, &mut |quad| {
        seen.push(format!("{} {} {}", quad.subject, quad.predicate, quad.object));
        ControlFlow::Continue(())
    });
    let error = result.err().map(|error| match error {
        ReadError::Syntax(error) => {
            assert!(error.message().len() < 2_000);
            format!("{} {} {}", error.code(), error.line(), error.column())
        }
        other => unreachable!("{other}"),
    });
    (seen, error)
}

/// Statements without the labels of blank nodes, which may differ from one reading to another.
fn erased(statements: &[String]) -> BTreeSet<String> {
    let erase = |statement: &String| {
        let (subject, rest) = statement.split_once(' ').unwrap_or_default();
        let (predicate, object) = rest.split_once(' ').unwrap_or_default();
        let erased = |term: &str| {
            if term.starts_with("_:") { "_:".to_owned() } else { term.to_owned() }
        };
        format!("{} {predicate} {}", erased(subject), erased(object))
    };
    statements.iter().map(erase).collect()
}
