//! A whole patch in memory.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use crate::dataset::apply::{QuadSet, apply};
use crate::stream::read_error::{Finding, ReadError};
use crate::stream::reader::{ReadOptions, Reader};
use crate::stream::writer::{WriteError, Writer};
use crate::syntax::header::Header;
use crate::syntax::row::{Change, Row};

/// A patch: a header and committed transactions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Patch {
    /// Header rows before the first transaction.
    pub header: Header,
    /// Changes of each committed transaction. Aborted transactions are left out.
    pub transactions: Vec<Vec<Change>>,
}

/// A patch that cannot be reversed: it removes a prefix whose IRI is unknown.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the patch removes the prefix `{prefix}` and does not state what it stood for")]
pub struct CannotReverse {
    /// Prefix that the patch removes.
    pub prefix: String,
}

impl Patch {
    /// Reads a patch into memory, with the findings of the lenient reader.
    ///
    /// # Errors
    /// As [`Reader`].
    pub fn read(
        input: impl Read,
        options: &ReadOptions,
    ) -> Result<(Self, Vec<Finding>), ReadError> {
        let mut reader = Reader::new(input, *options);
        let mut patch = Self::default();
        while let Some(changes) = reader.next_transaction()? {
            patch.transactions.push(changes);
        }
        patch.header = reader.header().clone();
        Ok((patch, reader.into_findings()))
    }

    /// Reads bytes at hand by the strict rules.
    ///
    /// # Errors
    /// The bytes are not strict RDF Patch.
    pub fn from_slice(bytes: &[u8]) -> Result<Self, ReadError> {
        Self::read(bytes, &ReadOptions::default()).map(|(patch, _)| patch)
    }

    /// Writes the patch.
    ///
    /// # Errors
    /// The header has a word that cannot be written, or the output fails.
    pub fn write(&self, out: impl Write) -> Result<(), WriteError> {
        let mut writer = Writer::new(out);
        for (word, value) in self.header.rows() {
            writer.header(word, value.as_ref())?;
        }
        for changes in &self.transactions {
            writer.row(&Row::Begin)?;
            for change in changes {
                writer.change(change)?;
            }
            writer.row(&Row::Commit)?;
        }
        writer.finish().map(drop)
    }

    /// The patch as text.
    ///
    /// # Errors
    /// The header has a word that cannot be written.
    pub fn to_text(&self) -> Result<String, WriteError> {
        let mut out = Vec::new();
        self.write(&mut out)?;
        String::from_utf8(out).map_err(|error| WriteError::Io(io::Error::other(error)))
    }

    /// Applies all transactions, and returns the patch of the rows with an effect: its reverse
    /// restores the set.
    #[expect(clippy::return_self_not_must_use, reason = "the set is the result")]
    pub fn apply(&self, set: &mut impl QuadSet) -> Self {
        let transactions = self.transactions.iter().map(|changes| apply(changes, set)).collect();
        Self { header: self.header.clone(), transactions }
    }

    /// The patch that undoes this patch: additions and removals are exchanged, from the last row to
    /// the first, and so are `id` and `prev`. The reverse restores a set only if each row of this
    /// patch changed the set: see [`Patch::apply`]. The IRI of a replaced prefix is not restored.
    ///
    /// # Errors
    /// A prefix is removed, and no earlier row has its IRI.
    pub fn reversed(&self) -> Result<Self, CannotReverse> {
        let mut prefixes: HashMap<&str, &str> = HashMap::new();
        let mut transactions = Vec::with_capacity(self.transactions.len());
        for changes in &self.transactions {
            let mut reversed = Vec::with_capacity(changes.len());
            for change in changes {
                reversed.push(match change {
                    Change::Add(quad) => Change::Remove(quad.clone()),
                    Change::Remove(quad) => Change::Add(quad.clone()),
                    Change::AddPrefix { prefix, iri } => {
                        prefixes.insert(prefix, iri);
                        Change::RemovePrefix { prefix: prefix.clone() }
                    }
                    Change::RemovePrefix { prefix } => match prefixes.remove(prefix.as_str()) {
                        Some(iri) => {
                            Change::AddPrefix { prefix: prefix.clone(), iri: iri.to_owned() }
                        }
                        None => return Err(CannotReverse { prefix: prefix.clone() }),
                    },
                });
            }
            reversed.reverse();
            transactions.push(reversed);
        }
        transactions.reverse();
        Ok(Self { header: self.header.reversed(), transactions })
    }
}
