//! Errors while statements are read and sorted.

use std::io;

/// Statements cannot be read or sorted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lines are not in byte order, or not canonical.
    #[error("line {line} is not in byte order")]
    NotSorted {
        /// The first such line, from 1; 0 if it is not known.
        line: u64,
    },
    /// A line is not a valid statement.
    #[error("line {line}: {problem}")]
    Line {
        /// Number of the line, from 1.
        line: u64,
        /// Description of the fault in the line.
        problem: String,
    },
    /// The description of an entity is too large.
    #[error(transparent)]
    TooLarge(#[from] abreast_rdf::TooLarge),
    /// The descriptions of all entities are too large together.
    #[error(
        "{0}\n  help: blank nodes that several entities lead to are part of each description; give them IRIs (`skolemize`)"
    )]
    Together(abreast_rdf::TooLarge),
    /// An input cannot be read, or is invalid.
    #[error("{name}: {cause}")]
    Input {
        /// Name of the input in messages.
        name: String,
        /// The fault that the reader found.
        #[source]
        cause: abreast_rdf::ReadError,
    },
    /// An input cannot be opened.
    #[error("cannot read `{name}`")]
    Open {
        /// Path of the file in messages.
        name: String,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// The file name does not have the extension of a known syntax.
    #[error(
        "{0}: the name has no ending of a known syntax\n  help: .nt, .nq, .ttl, .trig, .rdf, .owl or .jsonld, also with .gz, .bz2, .xz or .zst"
    )]
    Unknown(String),
    /// None of the wanted graphs has statements.
    #[error("no statement is in the graph `{graph}` (rdf.graph)\n  help: the graphs with statements are {}", .found.join(", "))]
    Graph {
        /// The graph of the setting `rdf.graph`.
        graph: String,
        /// Graphs with statements; not all if there are many.
        found: Vec<String>,
    },
    /// IRIs cannot be created for blank nodes.
    #[error("{0}")]
    Skolem(String),
    /// The caller's `stop` flag was set.
    #[error("stopped")]
    Stopped,
    /// Reading or writing a temporary file failed.
    #[error("a temporary file failed")]
    Io(#[from] io::Error),
}
