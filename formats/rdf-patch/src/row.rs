//! The rows of a patch.

use oxrdf::{Quad, Term};

/// One change of a dataset.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Change {
    /// `A`: adds a statement.
    Add(Quad),
    /// `D`: removes a statement.
    Remove(Quad),
    /// `PA`: adds a prefix.
    AddPrefix {
        /// The prefix without its colon.
        prefix: String,
        /// What it stands for.
        iri: String,
    },
    /// `PD`: removes a prefix.
    RemovePrefix {
        /// The prefix without its colon.
        prefix: String,
    },
}

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// `H`: a word and a term.
    Header {
        /// The word.
        word: String,
        /// The term.
        value: Term,
    },
    /// `TX`: a transaction begins.
    Begin,
    /// `TC`: the changes since `TX` apply.
    Commit,
    /// `TA`: the changes since `TX` do not apply.
    Abort,
    /// `A`, `D`, `PA` or `PD`: it applies when its transaction is committed.
    Change(Change),
}
