//! Writing descriptions in any syntax, from their canonical N-Triples.

mod error;
mod graph;
mod json_ld;
mod n_triples;
mod prefixes;
mod rdf_xml;
mod turtle;

pub use error::{CannotWrite, WriteError};
pub use prefixes::{InvalidPrefix, Prefixes};

use crate::notation::syntax::Syntax;
use graph::triples;
use memchr::memmem;
use std::collections::BTreeSet;
use std::io::Write;

/// Options for the writers of descriptions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Prefixes for Turtle, TriG and RDF/XML. Only used prefixes are declared.
    pub prefixes: Prefixes,
}

impl WriteOptions {
    /// Sets the prefixes for Turtle, TriG and RDF/XML.
    #[must_use]
    pub fn with_prefixes(mut self, prefixes: Prefixes) -> Self {
        self.prefixes = prefixes;
        self
    }
}

/// Writes one description, from its lines of canonical N-Triples; equal lines give equal bytes.
///
/// ```
/// use abreast_rdf::{Syntax, WriteOptions, write};
///
/// let lines = b"<http://example.org/a> <http://www.w3.org/2000/01/rdf-schema#label> \"A\"@en .\n\
///     <http://example.org/a> <http://www.w3.org/2000/01/rdf-schema#seeAlso> _:b .\n\
///     _:b <http://purl.org/dc/terms/title> \"B\" .\n";
/// let mut turtle = Vec::new();
/// write(Syntax::Turtle, lines, &WriteOptions::default(), &mut turtle)?;
/// assert_eq!(String::from_utf8(turtle).unwrap(), r#"@prefix dcterms: <http://purl.org/dc/terms/> .
/// @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
///
/// <http://example.org/a>
///   rdfs:label "A"@en ;
///   rdfs:seeAlso [
///     dcterms:title "B"
///   ] .
/// "#);
/// # Ok::<(), abreast_rdf::WriteError>(())
/// ```
///
/// # Errors
/// The lines are not N-Triples, the syntax cannot express them, or the output fails.
pub fn write(
    syntax: Syntax,
    lines: &[u8],
    options: &WriteOptions,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    let mut writer = Writer::new(syntax, options, out);
    writer.is_single = true;
    writer.description(lines)?;
    writer.finish()
}

/// Whether the syntax can express a description: RDF/XML needs predicates that end in an XML name,
/// and characters that XML allows.
///
/// # Examples
/// ```
/// use abreast_rdf::{Syntax, can_write};
///
/// // No XML name begins with a digit.
/// let lines = b"<http://h/7> <http://h/terms/245a> \"Atlas\" .\n<http://h/7> <http://h/245/> \"x\" .\n";
/// assert!(can_write(Syntax::RdfXml, lines).is_err());
/// assert!(can_write(Syntax::Turtle, lines).is_ok());
/// ```
///
/// # Errors
/// The first statement that it cannot express, or lines that are not N-Triples.
pub fn can_write(syntax: Syntax, lines: &[u8]) -> Result<(), CannotWrite> {
    if syntax != Syntax::RdfXml {
        return Ok(());
    }
    let triples = triples(lines).map_err(|error| CannotWrite::new(syntax, error.to_string()))?;
    triples.iter().try_for_each(rdf_xml::check)
}

/// Writes many descriptions as one document.
///
/// Blank nodes of different descriptions are different nodes, even with equal labels: each label is
/// prefixed with the number of its description.
///
/// ```
/// use abreast_rdf::{Syntax, WriteOptions, Writer};
///
/// let mut document = Vec::new();
/// let options = WriteOptions::default();
/// let mut writer = Writer::new(Syntax::NTriples, &options, &mut document);
/// writer.description(b"<http://example.org/a> <http://example.org/p> _:b .\n")?;
/// writer.description(b"<http://example.org/c> <http://example.org/p> _:b .\n")?;
/// writer.finish()?;
/// assert_eq!(document, b"<http://example.org/a> <http://example.org/p> _:s0_b .\n\
///     <http://example.org/c> <http://example.org/p> _:s1_b .\n");
/// # Ok::<(), abreast_rdf::WriteError>(())
/// ```
pub struct Writer<'a> {
    syntax: Syntax,
    options: &'a WriteOptions,
    out: &'a mut dyn Write,
    /// Whether labels of blank nodes remain unchanged, because there is one description only.
    is_single: bool,
    written: u64,
    /// Whether the head of the document was written, which RDF/XML and JSON-LD have.
    begun: bool,
    /// Whether a statement was written.
    has_text: bool,
    declared: BTreeSet<String>,
    text: String,
}

impl<'a> Writer<'a> {
    /// Starts a document with many descriptions.
    pub fn new(syntax: Syntax, options: &'a WriteOptions, out: &'a mut dyn Write) -> Self {
        Self {
            syntax,
            options,
            out,
            is_single: false,
            written: 0,
            begun: false,
            has_text: false,
            declared: BTreeSet::new(),
            text: String::new(),
        }
    }

    /// Writes a description, or nothing if it cannot be written as a whole.
    ///
    /// # Errors
    /// The lines are not N-Triples, the syntax cannot express them, or the output fails.
    pub fn description(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        self.text.clear();
        let number = self.written;
        self.written += 1;
        let is_lines = matches!(self.syntax, Syntax::NTriples | Syntax::NQuads);
        if is_lines && (self.is_single || memmem::find(lines, b"_:").is_none()) {
            return Ok(self.out.write_all(lines)?);
        }
        let mut triples = triples(lines)?;
        if !self.is_single {
            graph::rename(&mut triples, number);
        }
        match self.syntax {
            Syntax::NTriples | Syntax::NQuads => n_triples::write(&triples, &mut self.text),
            Syntax::Turtle | Syntax::TriG => {
                let prefixes = &self.options.prefixes;
                turtle::write(
                    &triples,
                    prefixes,
                    &mut self.declared,
                    self.has_text,
                    &mut self.text,
                );
            }
            Syntax::RdfXml => rdf_xml::write(&triples, &self.options.prefixes, &mut self.text)?,
            Syntax::JsonLd => {
                json_ld::write(&triples, self.has_text, &mut self.text);
            }
        }
        self.has_text |= !self.text.is_empty();
        self.begin()?;
        Ok(self.out.write_all(self.text.as_bytes())?)
    }

    /// Writes a comment, which is no statement, before the next description.
    ///
    /// ```
    /// use abreast_rdf::{Syntax, WriteOptions, Writer};
    ///
    /// let mut document = Vec::new();
    /// let options = WriteOptions::default();
    /// let mut writer = Writer::new(Syntax::NTriples, &options, &mut document);
    /// writer.comment("position 17")?;
    /// writer.finish()?;
    /// assert_eq!(document, b"# position 17\n");
    /// # Ok::<(), abreast_rdf::WriteError>(())
    /// ```
    ///
    /// # Errors
    /// JSON-LD has no comments; a comment has one line, and in RDF/XML neither `--` nor `-` at its
    /// end [xml §2.5]. Or the output fails.
    pub fn comment(&mut self, text: &str) -> Result<(), WriteError> {
        let (syntax, is_xml) = (self.syntax, self.syntax == Syntax::RdfXml);
        let is_refused = match syntax {
            Syntax::JsonLd => true,
            _ => text.contains(char::is_control),
        };
        if is_refused || is_xml && (text.contains("--") || text.ends_with('-')) {
            return Err(CannotWrite::new(syntax, format!("no comment can be `{text:?}`")).into());
        }
        self.begin()?;
        Ok(if is_xml {
            writeln!(self.out, "<!-- {text} -->")
        } else {
            writeln!(self.out, "# {text}")
        }?)
    }

    /// Ends the document.
    ///
    /// # Errors
    /// The output fails.
    pub fn finish(mut self) -> Result<(), WriteError> {
        self.begin()?;
        let end: &[u8] = match self.syntax {
            Syntax::RdfXml => rdf_xml::END,
            Syntax::JsonLd => json_ld::END,
            _ => b"",
        };
        Ok(self.out.write_all(end)?)
    }

    fn begin(&mut self) -> Result<(), WriteError> {
        if !std::mem::replace(&mut self.begun, true) {
            let head: &[u8] = match self.syntax {
                Syntax::RdfXml => rdf_xml::HEAD,
                Syntax::JsonLd => json_ld::HEAD,
                _ => b"",
            };
            self.out.write_all(head)?;
        }
        Ok(())
    }
}
