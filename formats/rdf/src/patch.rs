//! RDF Patch: statements that are added and removed, one a line, in the order in which they apply.

use crate::lines::syntax_error;
use crate::read::ReadOptions;
use crate::read_error::ReadError;
use oxrdf::QuadRef;
use oxttl::NQuadsParser;
use std::io::{BufRead, Read as _};
use std::ops::ControlFlow;

/// What a row does with its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatchRow {
    /// `A`: adds it.
    Add,
    /// `D`: removes it.
    Remove,
}

/// Visits the statements of a patch in order. Headers and prefixes are skipped; a transaction must
/// not be aborted. Of the options only the limits count.
///
/// # Errors
/// A row is not one of RDF Patch, or the input cannot be read.
pub fn read_patch(
    mut input: impl BufRead,
    options: &ReadOptions,
    visit: &mut dyn FnMut(PatchRow, QuadRef<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let limit = options.limits.token_length as u64;
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        if input.by_ref().take(limit + 1).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        number += 1;
        if line.len() as u64 > limit {
            let message = format!("a line is longer than {limit} bytes");
            return Err(ReadError::new("rdf.size", (number, 1), message, None));
        }
        let text = line.trim_ascii();
        let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
        let row = match &text[..end] {
            b"A" => PatchRow::Add,
            b"D" => PatchRow::Remove,
            b"H" | b"TX" | b"TC" | b"PA" | b"PD" | b"" | b"." => continue,
            word if word.starts_with(b"#") => continue,
            b"TA" => {
                let help = "leave the rows of the aborted transaction out";
                let message = "a transaction is aborted";
                return Err(ReadError::new("rdf.syntax", (number, 1), message, Some(help)));
            }
            _ => {
                let help = "rows begin with A, D, H, PA, PD, TX or TC";
                let message = "this is no row of RDF Patch";
                return Err(ReadError::new("rdf.syntax", (number, 1), message, Some(help)));
            }
        };
        let mut seen = false;
        for quad in NQuadsParser::new().for_slice(&text[end..]) {
            let quad = quad.map_err(|error| syntax_error(&error, number - 1))?;
            seen = true;
            if visit(row, quad.as_ref()).is_break() {
                return Ok(());
            }
        }
        if !seen {
            let message = "a row without a statement";
            return Err(ReadError::new("rdf.syntax", (number, 1), message, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Result<Vec<(PatchRow, String)>, ReadError> {
        let mut rows = Vec::new();
        read_patch(text.as_bytes(), &ReadOptions::default(), &mut |row, quad| {
            rows.push((row, quad.to_string()));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }

    #[test]
    fn rows_are_visited_in_order() {
        let text = "# a comment\nH id <urn:uuid:1> .\r\nTX .\nPA \"p\" <http://p/> .\n\n\
                    A <http://a> <http://p> \"x \\\" .\" .\n  D <http://a> <http://p> _:b <http://g> . # end\n\
                    TC .\n";
        let found = rows(text).unwrap();
        assert_eq!(
            found,
            [
                (PatchRow::Add, "<http://a> <http://p> \"x \\\" .\"".to_owned()),
                (PatchRow::Remove, "<http://a> <http://p> _:b <http://g>".to_owned())
            ]
        );
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        for wrong in [
            "X <http://a> .",
            "A <http://a> <p> \"x\" .",
            "A",
            "TA .",
            "D <http://a> <http://p> 'x' .",
        ] {
            let error = rows(&format!("TX .\n{wrong}\n")).unwrap_err();
            assert_eq!(error.syntax().unwrap().line(), 2, "{wrong}");
        }
    }
}
