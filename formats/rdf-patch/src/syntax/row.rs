//! The rows of a patch.

use oxrdf::{Quad, Term};

/// One change of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// Row `A`, which adds a statement.
    Add(Quad),
    /// Row `D`, which removes a statement.
    Remove(Quad),
    /// Row `PA`, which adds a prefix.
    AddPrefix {
        /// The prefix without its colon.
        prefix: String,
        /// IRI that the prefix abbreviates.
        iri: String,
    },
    /// Row `PD`, which removes a prefix.
    RemovePrefix {
        /// The prefix without its colon.
        prefix: String,
    },
}

/// One row of a patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// `H`: a word and a term.
    Header {
        /// Word that gives the purpose of the header.
        word: String,
        /// Value of the header: an IRI or a literal.
        value: Term,
    },
    /// Row `TX`, the start of a transaction.
    Begin,
    /// `TC`: the changes since `TX` apply.
    Commit,
    /// `TA`: the changes since `TX` do not apply.
    Abort,
    /// `A`, `D`, `PA` or `PD`: it applies when its transaction is committed.
    Change(Change),
}
