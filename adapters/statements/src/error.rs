//! Why statements cannot be read.

use std::io;

/// Statements cannot be read or sorted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The lines are not in byte order, or not canonical.
    #[error("line {line} is not in byte order")]
    NotSorted {
        /// The first such line, from 1; 0 when it is not known.
        line: u64,
    },
    /// A line is no statement.
    #[error("line {line}: {problem}")]
    Line {
        /// Its number, from 1.
        line: u64,
        /// What is wrong.
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
    /// An input cannot be read, or is wrong.
    #[error("{name}: {cause}")]
    Input {
        /// Its name.
        name: String,
        /// What is wrong.
        #[source]
        cause: abreast_rdf::ReadError,
    },
    /// An input cannot be opened.
    #[error("cannot read `{name}`")]
    Open {
        /// Its name.
        name: String,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// The name of a file states no syntax.
    #[error(
        "{0}: the name has no ending of a known syntax\n  help: .nt, .nq, .ttl, .trig, .rdf, .owl or .jsonld, also with .gz, .bz2, .xz or .zst"
    )]
    Unknown(String),
    /// No statement is in a graph whose statements count.
    #[error("no statement is in the graph `{graph}` (rdf.graph)\n  help: the graphs with statements are {}", .found.join(", "))]
    Graph {
        /// The graph.
        graph: String,
        /// Graphs that have statements, not all if there are many.
        found: Vec<String>,
    },
    /// Blank nodes cannot get IRIs.
    #[error("{0}")]
    Skolem(String),
    /// It was stopped.
    #[error("stopped")]
    Stopped,
    /// The disk failed.
    #[error("a temporary file failed")]
    Io(#[from] io::Error),
}
