//! Options of sinks: where a copy is kept.

use super::error::{Error, ExitCode};
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
    /// The properties of the kind.
    pub(crate) const fn facts(&self) -> &dyn Facts {
        match self {
            Self::Folder => &Files,
            Self::Warc(options) => options,
            #[cfg(feature = "s3")]
            Self::Objects(options) => options,
            Self::Lines(options) => options,
            Self::NQuads(options) => options,
            Self::Labels(options) => options,
            Self::Oxigraph(options) => options,
            Self::Sparql(options) => options,
            Self::GraphStore(options) => options,
            Self::Push(options) => options,
        }
    }

    /// Whether statements are stored, whatever the syntax that they are sent in.
    pub fn is_of_statements(&self) -> bool {
        self.facts().is_of_statements()
    }

    /// Whether the copy's folder contains more than its state.
    pub fn is_local(&self) -> bool {
        self.facts().is_local()
    }
}

/// Properties of a kind of copy that do not depend on what was copied. The defaults are those of a
/// service: the copy's folder contains the state only.
pub(crate) trait Facts {
    /// The name of the kind in the state of a copy.
    fn word(&self) -> &'static str;

    /// Whether statements are stored, whatever the syntax that they are sent in.
    fn is_of_statements(&self) -> bool {
        false
    }

    /// Whether the copy's folder contains more than its state.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether each resource is a file in the copy's folder, which other programs may change.
    fn is_folder(&self) -> bool {
        false
    }

    /// The file or folder outside the copy's folder that the copy is written to.
    fn place(&self) -> Option<PathBuf> {
        None
    }

    /// Folders within the copy's folder whose contents a failed first run removes.
    fn own_folders(&self) -> &'static [&'static str] {
        &[]
    }

    /// The runs that compare what is stored with the state.
    fn compared(&self) -> Compared {
        Compared::Never
    }

    /// Whether an audit finds stored resources that the state does not contain.
    fn lists_extras(&self) -> bool {
        false
    }

    /// Refuses an audit of a kind that cannot be read.
    ///
    /// # Errors
    /// The kind cannot be compared at all, or not in full.
    fn check_audit(&self, _full: bool) -> Result<(), Error> {
        Ok(())
    }
}

/// The runs that compare what is stored with the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Each comparison with the whole list: lengths and times of files show most damage.
    Always,
    /// Runs with `--baseline`, since the target has to be listed or opened.
    Baseline,
    /// Runs with `--baseline --full`, since everything has to be requested.
    FullBaseline,
    /// None: the target cannot be read.
    Never,
}

impl Compared {
    /// Whether a run compares.
    pub(crate) const fn is_due(self, baseline: bool, full: bool) -> bool {
        match self {
            Self::Always => true,
            Self::Baseline => baseline,
            Self::FullBaseline => baseline && full,
            Self::Never => false,
        }
    }
}

/// The kind of a copy with one file for each resource.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files;

impl Facts for Files {
    fn word(&self) -> &'static str {
        "folder"
    }

    fn is_local(&self) -> bool {
        true
    }

    fn is_folder(&self) -> bool {
        true
    }

    fn compared(&self) -> Compared {
        Compared::Always
    }

    fn lists_extras(&self) -> bool {
        true
    }
}

/// The folder of the segments of a packed copy, in the copy's folder.
pub(crate) const ARCHIVE: &str = "archive";
/// The folder of their index.
pub(crate) const INDEXES: &str = "indexes";

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

impl Facts for WarcOptions {
    fn word(&self) -> &'static str {
        "warc"
    }

    fn is_local(&self) -> bool {
        true
    }

    fn own_folders(&self) -> &'static [&'static str] {
        &[ARCHIVE, INDEXES]
    }

    fn compared(&self) -> Compared {
        Compared::Always
    }

    fn lists_extras(&self) -> bool {
        true
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

#[cfg(feature = "s3")]
impl Facts for ObjectsOptions {
    fn word(&self) -> &'static str {
        "objects"
    }

    /// The folder of a store in files.
    fn place(&self) -> Option<PathBuf> {
        let url = url::Url::parse(&self.url).ok().filter(|url| url.scheme() == "file");
        url.and_then(|url| url.to_file_path().ok())
    }

    fn compared(&self) -> Compared {
        Compared::Baseline
    }

    fn lists_extras(&self) -> bool {
        true
    }
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

impl Facts for LinesOptions {
    fn word(&self) -> &'static str {
        "lines"
    }

    fn check_audit(&self, _full: bool) -> Result<(), Error> {
        let message = "what was written to a stream cannot be compared";
        Err(Error::new("sink.stream", ExitCode::Usage, message)
            .with_help("audit what was made of it, where that is"))
    }
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

impl Facts for NQuadsOptions {
    fn word(&self) -> &'static str {
        "nquads"
    }

    fn is_of_statements(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn compared(&self) -> Compared {
        Compared::Always
    }

    fn lists_extras(&self) -> bool {
        true
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

impl Facts for LabelsOptions {
    fn word(&self) -> &'static str {
        "labels"
    }

    fn is_of_statements(&self) -> bool {
        true
    }

    fn place(&self) -> Option<PathBuf> {
        Some(self.path.clone())
    }

    fn compared(&self) -> Compared {
        Compared::Baseline
    }
}

/// A store of Oxigraph, and where in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OxigraphOptions {
    /// The graph that statements are in.
    pub graph: Graph,
    /// A store that the caller has opened; else the one in the copy's folder is opened.
    pub store: Option<OpenStore>,
}

impl Facts for OxigraphOptions {
    fn word(&self) -> &'static str {
        "oxigraph"
    }

    fn is_of_statements(&self) -> bool {
        true
    }

    fn is_local(&self) -> bool {
        true
    }

    fn compared(&self) -> Compared {
        Compared::FullBaseline
    }
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

impl Facts for SparqlOptions {
    fn word(&self) -> &'static str {
        "sparql"
    }

    fn is_of_statements(&self) -> bool {
        true
    }

    fn compared(&self) -> Compared {
        Compared::FullBaseline
    }
}

/// A graph store, in which each resource has a graph with its URI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphStoreOptions {
    /// The address of the store (`http` or `https`), without `graph`.
    pub url: String,
}

impl Facts for GraphStoreOptions {
    fn word(&self) -> &'static str {
        "graphstore"
    }

    fn is_of_statements(&self) -> bool {
        true
    }

    fn compared(&self) -> Compared {
        Compared::FullBaseline
    }
}

/// A receiver of SDShare Push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// The address of the receiver (`http` or `https`), without `resource`.
    pub url: String,
    /// The graph that the receiver is to keep the statements in, if one is named.
    pub graph: Option<String>,
}

impl Facts for PushOptions {
    fn word(&self) -> &'static str {
        "push"
    }

    fn is_of_statements(&self) -> bool {
        true
    }

    fn check_audit(&self, full: bool) -> Result<(), Error> {
        if !full {
            return Ok(());
        }
        let message = "what a receiver has cannot be read";
        Err(Error::new("sink.stream", ExitCode::Usage, message)
            .with_help("without `--full`, what it accepted is compared with the lists"))
    }
}
