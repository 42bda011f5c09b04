//! Options of sinks, which determine the place and the format of a copy.

use super::error::{Error, ExitCode};
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

    /// Whether the sink stores statements, independent of the syntax in which the Source sends
    /// them.
    pub fn is_of_statements(&self) -> bool {
        self.facts().is_of_statements()
    }

    /// Whether the copy's folder contains more than its state.
    pub fn is_local(&self) -> bool {
        self.facts().is_local()
    }

    /// Whether the copy is a stream, so that its writer should not receive anything else.
    pub fn is_stream(&self) -> bool {
        self.facts().is_stream()
    }

    /// The address of the service that stores the copy, for kinds that are reached over HTTP, so
    /// that a caller can take a login out of the address.
    pub const fn service_url_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Sparql(SparqlOptions { url, .. })
            | Self::GraphStore(GraphStoreOptions { url })
            | Self::Push(PushOptions { url, .. }) => Some(url),
            _ => None,
        }
    }
}

/// Properties of a kind of copy that do not depend on what was copied. The defaults are those of a
/// service: the copy's folder contains the state only.
pub(crate) trait Facts {
    /// The name of the kind in the state of a copy.
    fn word(&self) -> &'static str;

    /// Whether the sink stores statements, independent of the syntax in which the Source sends
    /// them.
    fn is_of_statements(&self) -> bool {
        false
    }

    /// Whether the copy's folder contains more than its state.
    fn is_local(&self) -> bool {
        false
    }

    /// Whether the copy is a stream.
    fn is_stream(&self) -> bool {
        false
    }

    /// The options for one of several sets, which has the folder `name`; `None` for a kind whose
    /// place follows from the folder of the copy.
    fn of_set(&self, _name: &str) -> Option<SinkOptions> {
        None
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

#[cfg(feature = "s3")]
impl Facts for ObjectsOptions {
    fn word(&self) -> &'static str {
        "objects"
    }

    fn of_set(&self, name: &str) -> Option<SinkOptions> {
        let url = format!("{}/{name}", self.url.trim_end_matches('/'));
        Some(SinkOptions::Objects(Self { url, settings: self.settings.clone() }))
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

impl SinkOptions {
    /// Replaces the writer of a stream of lines. Returns `false`, and changes nothing, if the sink is not a stream.
    pub fn write_to(&mut self, output: Output) -> bool {
        match self {
            Self::Lines(options) => {
                options.output = output;
                true
            }
            _ => false,
        }
    }
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

impl Facts for LinesOptions {
    fn word(&self) -> &'static str {
        "lines"
    }

    fn is_stream(&self) -> bool {
        true
    }

    fn check_audit(&self, _full: bool) -> Result<(), Error> {
        let message = "what was written to a stream cannot be compared";
        Err(Error::new("sink.stream", ExitCode::Usage, message)
            .with_help("audit what was made of it, where that is"))
    }
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

/// The Oxigraph store and the graph of the statements.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OxigraphOptions {
    /// The graph of the statements.
    pub graph: Graph,
    /// A store that the caller has opened. `None`: the sink opens the store in the copy's folder.
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

/// A graph store, which has one graph for each resource, with the URI of the resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphStoreOptions {
    /// The address of the store (`http` or `https`), without the parameter `graph`.
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

/// A receiver of SDShare Push, and the graph of the statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushOptions {
    /// The address of the receiver (`http` or `https`), without the parameter `resource`.
    pub url: String,
    /// The graph in which the receiver stores the statements; `None`: the receiver's choice.
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
