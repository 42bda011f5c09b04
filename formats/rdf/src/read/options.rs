//! Options and limits for reading RDF.

use crate::notation::syntax::Syntax;
use crate::read::contexts::Contexts;
use crate::read::error::ReadError;
use crate::read::left_out::LeftOut;
use abreast_webtypes::excerpt;
use oxiri::Iri;
use oxrdf::QuadRef;
use std::ops::ControlFlow;

/// Callback for each statement; [`ControlFlow::Break`] ends the reading.
pub type Visit<'a> = dyn FnMut(QuadRef<'_>) -> ControlFlow<()> + 'a;

/// Options for reading a document.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// Base for relative IRIs. If `None`, relative IRIs are refused unless the document contains a
    /// base.
    pub base: Option<String>,
    /// Skips the checks of IRIs and language tags in N-Triples, N-Quads, Turtle and TriG: for
    /// documents that were checked before.
    pub lenient: bool,
    /// A number for the document: the labels of its blank nodes become `d<NUMBER>_<LABEL>`, so that
    /// equal labels in documents with different numbers are different nodes.
    pub document: Option<u64>,
    /// The contexts that JSON-LD may use.
    pub contexts: Contexts,
    /// Counter for statements that cannot be used; if `None`, the first one is an error.
    pub left_out: Option<LeftOut>,
    /// Limits of the document and its statements.
    pub limits: ReadLimits,
}

impl ReadOptions {
    /// Sets the base IRI, against which relative IRIs are resolved.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::{ReadOptions, Syntax, read};
    /// use std::ops::ControlFlow;
    ///
    /// let options = ReadOptions::default().with_base("https://museum.example/objects/");
    /// let mut subject = String::new();
    /// read(Syntax::Turtle, &b"<7> <title> \"Atlas\" ."[..], &options, &mut |quad| {
    ///     subject = quad.subject.to_string();
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(subject, "<https://museum.example/objects/7>");
    /// # Ok::<(), abreast_rdf::ReadError>(())
    /// ```
    #[must_use]
    pub fn with_base(mut self, base: impl Into<String>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Sets whether the checks of [`ReadOptions::lenient`] are skipped.
    #[must_use]
    pub fn with_lenient(mut self, lenient: bool) -> Self {
        self.lenient = lenient;
        self
    }

    /// Sets the number of the document, which distinguishes its blank nodes from blank nodes of other documents.
    ///
    /// # Examples
    /// ```
    /// use abreast_rdf::{ReadOptions, read_lines};
    /// use std::ops::ControlFlow;
    ///
    /// let part = b"_:maker <http://h/name> \"Mercator\" .\n";
    /// let mut lines = Vec::new();
    /// for number in [1, 2] {
    ///     let options = ReadOptions::default().with_document(number);
    ///     read_lines(&part[..], &options, &mut |line| {
    ///         lines.push(String::from_utf8_lossy(line).into_owned());
    ///         ControlFlow::Continue(())
    ///     })?;
    /// }
    /// assert!(lines[0].starts_with("_:d1_maker ") && lines[1].starts_with("_:d2_maker "));
    /// # Ok::<(), abreast_rdf::ReadError>(())
    /// ```
    #[must_use]
    pub fn with_document(mut self, number: u64) -> Self {
        self.document = Some(number);
        self
    }

    /// Sets the contexts that JSON-LD may use.
    #[must_use]
    pub fn with_contexts(mut self, contexts: Contexts) -> Self {
        self.contexts = contexts;
        self
    }

    /// Sets the counter for unusable statements: [`ReadOptions::left_out`].
    #[must_use]
    pub fn with_left_out(mut self, left_out: LeftOut) -> Self {
        self.left_out = Some(left_out);
        self
    }

    /// Sets the limits of the document.
    #[must_use]
    pub fn with_limits(mut self, limits: ReadLimits) -> Self {
        self.limits = limits;
        self
    }

    /// The base IRI, after a check.
    pub(crate) fn base_iri(&self) -> Result<Option<Iri<String>>, ReadError> {
        let Some(base) = &self.base else { return Ok(None) };
        Iri::parse(base.clone()).map(Some).map_err(|error| {
            let message = format!("the base `{}` is not an absolute IRI: {error}", excerpt(base));
            ReadError::new("rdf.iri", (0, 0), message, None)
        })
    }
}

/// Limits of a document, with their defaults in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadLimits {
    /// Bytes of a line in N-Triples and N-Quads; of a literal, IRI or comment in the other syntaxes
    /// [16 MiB, which is also the most for Turtle and TriG].
    pub token_length: usize,
    /// Most nested brackets in Turtle, TriG and JSON-LD, and elements in RDF/XML [256; in JSON-LD
    /// 128 at most].
    pub depth: usize,
    /// Most bytes of a JSON-LD document, which is read into memory [32 MiB].
    pub json_ld_length: usize,
    /// Most bytes of memory for the JSON-LD parser, estimated from the structure of the document
    /// [128 MiB].
    pub json_ld_memory: u64,
    /// Limits on the bytes of all statements, written in full.
    pub expansion: Expansion,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self {
            token_length: 16 << 20,
            depth: 256,
            json_ld_length: 32 << 20,
            json_ld_memory: 128 << 20,
            expansion: Expansion::default(),
        }
    }
}

impl ReadLimits {
    /// The limits for a document whose statements are collected in memory: at most 32 MiB of
    /// statements, of which 1 MiB does not count for the ratio.
    pub fn in_memory() -> Self {
        let expansion = Expansion { free: 1 << 20, most: 32 << 20, ..Expansion::default() };
        Self { expansion, ..Self::default() }
    }

    /// Estimated memory for a document that is read within these limits and collected, in bytes.
    pub fn memory(&self, syntax: Syntax, length: u64) -> u64 {
        let parser = if syntax == Syntax::JsonLd {
            // An item of two bytes in a list needs a thousand.
            self.json_ld_memory.min(length.saturating_mul(500))
        } else {
            0
        };
        // A growing list needs twice its size for a short time.
        let statements = self.expansion.allowed(length).saturating_mul(3);
        parser.saturating_add(statements).saturating_add(length)
    }
}

/// Limits on the bytes of statements, written in full as N-Quads, with the defaults in brackets.
/// Prefixes, vocabularies and lists expand a short document to many bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// Bytes for each byte of the document that was read [default 32].
    pub ratio: u64,
    /// Bytes that do not count for the ratio [16 MiB].
    pub free: u64,
    /// Bytes in total, for documents of any size; unlimited by default.
    pub most: u64,
}

impl Default for Expansion {
    fn default() -> Self {
        Self { ratio: 32, free: 16 << 20, most: u64::MAX }
    }
}

impl Expansion {
    /// The allowed bytes of statements after reading this many bytes.
    pub(crate) fn allowed(&self, read: u64) -> u64 {
        self.most.min(read.saturating_mul(self.ratio).saturating_add(self.free))
    }

    /// The error for a document that exceeds the limit.
    pub(crate) fn exceeded(&self, read: u64) -> ReadError {
        let Self { ratio, most, .. } = self;
        if self.allowed(read) == *most {
            let message =
                format!("the statements have more than {most} bytes when written in full");
            return ReadError::new("rdf.size", (0, 0), message, Some("split the document"));
        }
        let message = format!(
            "the statements have more than {ratio} bytes for each byte of the document when written in full"
        );
        let help = "use shorter prefixes, or publish N-Triples";
        ReadError::new("rdf.size", (0, 0), message, Some(help))
    }
}
