//! Forms of linked representations.

use crate::projection::routes::PathValue;
use abreast_rdf::{Syntax, WriteError, WriteOptions};

/// A form in which descriptions are available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// RDF/XML, the only form that some clients read.
    RdfXml,
    NTriples,
    /// N-Triples in ASCII, which SDShare calls plain text
    /// [sdshare §Recommended Resource Representation Formats].
    PlainText,
    Turtle,
}

impl Form {
    /// All forms, in the order of links in entries.
    pub(super) const ALL: [Self; 4] = [Self::RdfXml, Self::NTriples, Self::PlainText, Self::Turtle];
    /// Forms in which N-Triples in ASCII are a valid document.
    pub(super) const OF_LINES: [Self; 3] = [Self::NTriples, Self::PlainText, Self::Turtle];

    const fn syntax(self) -> Syntax {
        match self {
            Self::RdfXml => Syntax::RdfXml,
            Self::NTriples | Self::PlainText => Syntax::NTriples,
            Self::Turtle => Syntax::Turtle,
        }
    }

    /// Media type of the form.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::PlainText => "text/plain",
            _ => self.syntax().media_type(),
        }
    }

    /// Name of the form in URLs.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PlainText => "txt",
            _ => self.syntax().extension(),
        }
    }

    /// Writes a description, given as canonical N-Triples, in this form.
    pub(crate) fn write(self, lines: Vec<u8>) -> Result<Vec<u8>, WriteError> {
        match self {
            Self::NTriples => Ok(lines),
            Self::PlainText => Ok(super::ascii::to_ascii(&lines)?.into_owned()),
            Self::RdfXml | Self::Turtle => {
                let mut out = Vec::with_capacity(lines.len());
                abreast_rdf::write(self.syntax(), &lines, &WriteOptions::default(), &mut out)?;
                Ok(out)
            }
        }
    }
}

impl PathValue for Form {
    fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == text)
    }

    fn write(&self, path: &mut String) {
        path.push_str(self.name());
    }
}
