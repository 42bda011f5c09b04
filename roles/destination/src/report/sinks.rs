//! Options of sinks: where a copy is kept.

use super::open_store::OpenStore;
use std::fmt;
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Where the resources of a copy go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SinkOptions {
    /// One file a resource, in the copy's folder.
    #[default]
    Folder,
    /// WARC files in the copy's folder.
    Warc(WarcOptions),
    /// Objects in a store; the folder holds the state only.
    #[cfg(feature = "s3")]
    Objects(ObjectsOptions),
    /// A stream of lines; the folder holds the state only.
    Lines(LinesOptions),
    /// Files of N-Quads in the copy's folder.
    NQuads(NQuadsOptions),
    /// A table of labels in a file; the folder holds the state only.
    Labels(LabelsOptions),
    /// A store of Oxigraph in the copy's folder, or one that is open.
    Oxigraph(OxigraphOptions),
    /// A SPARQL endpoint; the folder holds the state only.
    Sparql(SparqlOptions),
    /// A graph store; the folder holds the state only.
    GraphStore(GraphStoreOptions),
    /// A receiver of SDShare Push; the folder holds the state only.
    Push(PushOptions),
}

impl SinkOptions {
    /// The word by which the state remembers what kind of copy it is of.
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

    /// Whether statements are stored, whatever the syntax that they are sent in.
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

    /// Whether the copy's folder holds more than its state.
    pub const fn is_local(&self) -> bool {
        matches!(self, Self::Folder | Self::Warc(_) | Self::NQuads(_) | Self::Oxigraph(_))
    }

    /// Whether files of resources are in the copy's folder, where other programs may touch them.
    pub(crate) const fn is_folder(&self) -> bool {
        matches!(self, Self::Folder)
    }
}

/// How a packed copy is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarcOptions {
    /// Length from which no record is added to a segment. Default 1 GiB.
    pub segment_bytes: u64,
    /// 0 stores records as they are within their gzip members; 1 to 9 packs those that are not
    /// packed already. Default 0: packing small records costs more time than fetching them from a
    /// server nearby.
    pub compression: u8,
    /// Whether answers get a `WARC-Block-Digest` beside the digest of their payload: the bytes are
    /// digested twice.
    pub block_digest: bool,
}

impl Default for WarcOptions {
    fn default() -> Self {
        Self { segment_bytes: 1 << 30, compression: 0, block_digest: false }
    }
}

/// Which store, and where in it.
#[cfg(feature = "s3")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectsOptions {
    /// `s3://BUCKET/PREFIX`, or `file:///FOLDER`. Credentials, region and endpoint of S3 come from
    /// the environment, by the names that Amazon's own programs use.
    pub url: String,
    /// Settings that come before the environment's, by the names of the crate `object_store`, such
    /// as `aws_endpoint`.
    pub settings: Vec<(String, String)>,
}

/// Where lines go.
#[derive(Clone)]
pub struct Output(pub(crate) Arc<Mutex<Box<dyn Write + Send>>>);

impl Output {
    /// Lines are written to this.
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

/// The contents of the lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinesOptions {
    /// Where they go.
    pub output: Output,
    /// Up to which length contents are fetched, verified and written into the line as base 64; at
    /// most 1 MiB. Without it nothing is fetched, and lines state what the Source lists.
    pub content_bytes_max: Option<u64>,
}

/// Which graph statements are stored in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Graph {
    /// The default graph: of each resource its description.
    #[default]
    Default,
    /// The graph with this IRI: of each resource its description.
    Named(String),
    /// Each resource has a graph with its URI: the whole document.
    OfResource,
}

/// How N-Quads are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NQuadsOptions {
    /// The graph that statements are in.
    pub graph: Graph,
    /// Length from which nothing is added to a file. Default 64 MiB.
    pub file_bytes: u64,
}

impl Default for NQuadsOptions {
    fn default() -> Self {
        Self { graph: Graph::Default, file_bytes: 64 << 20 }
    }
}

/// How labels are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelsOptions {
    /// The file.
    pub path: PathBuf,
    /// Whether it is CSV; otherwise a database of SQLite.
    pub is_csv: bool,
    /// Predicates of labels, the best first; none for the usual ones.
    pub predicates: Vec<String>,
    /// Languages, the best first: then each entity has one label. None: all labels.
    pub languages: Vec<String>,
}

/// A store of Oxigraph, and where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OxigraphOptions {
    /// The graph that statements are in.
    pub graph: Graph,
    /// A store that the caller has opened; else the one in the copy's folder is opened.
    pub store: Option<OpenStore>,
}

/// Which endpoint, and where in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SparqlOptions {
    /// The address that takes updates (`http` or `https`).
    pub url: String,
    /// The address that answers queries; by default what the usual servers have for this `url`.
    pub query_url: Option<String>,
    /// The graph that statements are in.
    pub graph: Graph,
}

/// A graph store, in which each resource has a graph with its URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphStoreOptions {
    /// The address of the store (`http` or `https`), without `graph`.
    pub url: String,
}

/// A receiver of SDShare Push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// The address of the receiver (`http` or `https`), without `resource`.
    pub url: String,
    /// The graph that the receiver is to keep the statements in, if one is named.
    pub graph: Option<String>,
}
