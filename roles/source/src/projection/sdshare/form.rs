//! The forms of linked representations.

use abreast_rdf::{Syntax, WriteError, WriteOptions};

/// A form in which descriptions are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// RDF/XML: all that some clients read.
    RdfXml,
    NTriples,
    /// N-Triples in ASCII, as SDShare calls it
    /// [sdshare §Recommended Resource Representation Formats].
    PlainText,
    Turtle,
}

impl Form {
    /// All forms, in the order in which they are listed.
    pub(super) const ALL: [Self; 4] = [Self::RdfXml, Self::NTriples, Self::PlainText, Self::Turtle];
    /// Those of which N-Triples in ASCII are a document.
    pub(super) const OF_LINES: [Self; 3] = [Self::NTriples, Self::PlainText, Self::Turtle];

    const fn syntax(self) -> Syntax {
        match self {
            Self::RdfXml => Syntax::RdfXml,
            Self::NTriples | Self::PlainText => Syntax::NTriples,
            Self::Turtle => Syntax::Turtle,
        }
    }

    /// Its media type.
    pub(super) const fn media_type(self) -> &'static str {
        match self {
            Self::PlainText => "text/plain",
            _ => self.syntax().media_type(),
        }
    }

    /// Its name in addresses.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::PlainText => "txt",
            _ => self.syntax().extension(),
        }
    }

    /// The form of this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// A description in this form.
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
