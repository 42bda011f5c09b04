//! Options of sinks, which determine the place and the format of a copy.

use super::open_store::OpenStore;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// The kind of a copy, with its options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinkOptions {
    /// One file for each resource, in the copy's folder.
    #[default]
    Folder,
    /// WARC files in the copy's folder.
    Warc(WarcOptions),
    /// Objects in an object store; the folder contains only `.abreast`.
    #[cfg(feature = "s3")]
    Objects(ObjectsOptions),
    /// A stream of lines; the folder contains only `.abreast`.
    Lines(LinesOptions),
    /// Files of N-Quads in the copy's folder.
    NQuads(NQuadsOptions),
    /// A table of labels in one file; the folder contains only `.abreast`.
    Labels(LabelsOptions),
    /// An Oxigraph store in the copy's folder, or one that the caller has opened.
    Oxigraph(OxigraphOptions),
    /// A SPARQL endpoint; the folder contains only `.abreast`.
    Sparql(SparqlOptions),
    /// A graph store; the folder contains only `.abreast`.
    GraphStore(GraphStoreOptions),
    /// A receiver of SDShare Push; the folder contains only `.abreast`.
    Push(PushOptions),
}

impl SinkOptions {
    /// The word for the kind of copy in the database of the copy.
    pub(crate) const fn word(&self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::Warc(_) => "warc",
            #[cfg(feature = "s3")]
            Self::Objects(_) => "objects",
            Self::Lines(_) => "lines",
            Self::NQuads(_) => "nquads",
            Self::Labels(_) => "labels",
            Self::Oxigraph(_) => "oxigraph",
            Self::Sparql(_) => "sparql",
            Self::GraphStore(_) => "graphstore",
            Self::Push(_) => "push",
        }
    }

    /// Whether the sink stores statements, independent of the syntax in which the Source sends
    /// them.
    pub const fn is_of_statements(&self) -> bool {
        matches!(
            self,
            Self::NQuads(_)
                | Self::Labels(_)
                | Self::Oxigraph(_)
                | Self::Sparql(_)
                | Self::GraphStore(_)
                | Self::Push(_)
        )
    }

    /// Whether resources are stored in the copy's folder.
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Folder | Self::Warc(_) | Self::NQuads(_) | Self::Oxigraph(_))
    }

    /// Whether resources are files in the copy's folder, which other programs may change.
    pub(crate) const fn is_folder(&self) -> bool {
        matches!(self, Self::Folder)
    }
}

/// Options of a copy in WARC files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarcOptions {
    /// Length of a segment, in bytes, from which on no record is added. Default 1 GiB.
    pub segment_bytes: u64,
    /// Level of compression of records. 0 stores records uncompressed in their gzip members; 1 to 9
    /// compress records whose content is not already compressed. Default 0: compressing small
    /// records takes longer than fetching them from a server nearby.
    pub compression: u8,
    /// Whether response records get a `WARC-Block-Digest` in addition to the digest of their
    /// payload; each byte is then hashed twice.
    pub block_digest: bool,
}

impl Default for WarcOptions {
    fn default() -> Self {
        Self { segment_bytes: 1 << 30, compression: 0, block_digest: false }
    }
}

/// The object store and the prefix of the copy's objects.
#[cfg(feature = "s3")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsOptions {
    /// `s3://BUCKET/PREFIX`, or `file:///FOLDER`. Credentials, region and endpoint of S3 come from
    /// the environment variables that Amazon's own programs use.
    pub url: String,
    /// Settings with precedence over the environment, with the keys of the crate `object_store`,
    /// such as `aws_endpoint`.
    pub settings: Vec<(String, String)>,
}

/// The writer of a stream of lines.
#[derive(Clone)]
pub struct Output(pub(crate) Arc<Mutex<Box<dyn Write + Send>>>);

impl Output {
    /// Makes the sink write its lines to `output`.
    pub fn new(output: impl Write + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Box::new(output))))
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Output")
    }
}

impl PartialEq for Output {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Output {}

/// Options of a copy as a stream of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesOptions {
    /// The writer that receives the lines.
    pub output: Output,
    /// Length in bytes up to which contents are fetched, verified and written into the line as base
    /// 64; at most 1 MiB. With `None`, nothing is fetched, and lines contain the listed properties
    /// only.
    pub content_bytes_max: Option<u64>,
}

/// The graph in which statements are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Graph {
    /// The default graph, which contains the description of each resource.
    #[default]
    Default,
    /// The graph with this IRI, which contains the description of each resource.
    Named(String),
    /// One graph for each resource, with the URI of the resource; it contains the whole document.
    OfResource,
}

/// Options of a copy in files of N-Quads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NQuadsOptions {
    /// The graph of the statements.
    pub graph: Graph,
    /// Length of a file, in bytes, from which on nothing is added. Default 64 MiB.
    pub file_bytes: u64,
}

impl Default for NQuadsOptions {
    fn default() -> Self {
        Self { graph: Graph::Default, file_bytes: 64 << 20 }
    }
}

/// Options of a copy as a table of labels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelsOptions {
    /// The path of the file with the table.
    pub path: PathBuf,
    /// Whether the file is CSV; otherwise the file is an SQLite database.
    pub is_csv: bool,
    /// Predicates of labels, the best first. Empty: `rdfs:label`, `skos:prefLabel` and other usual
    /// predicates.
    pub predicates: Vec<String>,
    /// Languages of labels, the best first; each entity then has one label. Empty: all labels.
    pub languages: Vec<String>,
}

/// The Oxigraph store and the graph of the statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OxigraphOptions {
    /// The graph of the statements.
    pub graph: Graph,
    /// A store that the caller has opened. `None`: the sink opens the store in the copy's folder.
    pub store: Option<OpenStore>,
}

/// The SPARQL endpoint and the graph of the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparqlOptions {
    /// The address that accepts updates (`http` or `https`).
    pub url: String,
    /// The address that answers queries. Default: derived from `url`, according to the conventions
    /// of common servers.
    pub query_url: Option<String>,
    /// The graph of the statements.
    pub graph: Graph,
}

/// A graph store, which has one graph for each resource, with the URI of the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphStoreOptions {
    /// The address of the store (`http` or `https`), without the parameter `graph`.
    pub url: String,
}

/// A receiver of SDShare Push, and the graph of the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// The address of the receiver (`http` or `https`), without the parameter `resource`.
    pub url: String,
    /// The graph in which the receiver stores the statements; `None`: the receiver's choice.
    pub graph: Option<String>,
}
