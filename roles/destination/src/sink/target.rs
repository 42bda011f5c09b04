//! The text of a target, such as `warc:DIR`, as each kind of copy declares and reads it.
//!
//! A kind implements [`TargetKind`] next to its `SinkKind`; `SinkOptions::TARGETS` lists the kinds,
//! and `targets.rs` finds the kind of a text.

use crate::report::options::SyncOptions;
use crate::report::sinks::{Graph, Output, SinkOptions};
use std::path::PathBuf;

/// The forms of targets in object stores.
pub(crate) const OBJECT_FORMS: &[&str] = &["s3://BUCKET", "file://DIR"];
/// The word for a graph of each resource.
const OF_RESOURCE: &str = "resource";

/// Options that only some kinds of copies have. A target whose kind does not have a given option is
/// refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TargetOptions {
    /// Length of a file, in bytes, from which on another file is started. Default: 1 GiB for WARC,
    /// 64 MiB for N-Quads.
    pub segment_bytes: Option<u64>,
    /// Compression of WARC records, from 1 (fast) to 9 (small). 0, the default, is none.
    pub compression: u8,
    /// Whether WARC responses have a digest of the whole block too.
    pub block_digest: bool,
    /// Length, in bytes, up to which contents are in the lines of a stream; at most 1 MiB.
    pub content_bytes_max: Option<u64>,
    /// IRI of the graph of all statements, or `resource` for one graph for each resource. Default:
    /// the default graph.
    pub graph: Option<String>,
    /// The address of a SPARQL endpoint that answers queries. Default: derived from the target.
    pub query_url: Option<String>,
    /// Predicates of labels, the best first. Default: `rdfs:label`, `skos:prefLabel` and other usual
    /// predicates.
    pub label_predicates: Vec<String>,
    /// Languages of labels, the best first; each entity then has one label. Default: all labels.
    pub label_languages: Vec<String>,
    /// The folder of the published set that `set:NAME` names.
    pub set_folder: Option<PathBuf>,
    /// Opens the writer of the target `-`. Default: standard output.
    pub output: Option<OpenOutput>,
}

/// A function that opens the writer of a stream, called only for targets that are streams.
#[derive(Clone, Copy, Debug)]
pub struct OpenOutput(pub fn() -> Output);

impl PartialEq for OpenOutput {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for OpenOutput {}

/// An option of [`TargetOptions`] that a kind of copy may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TargetOption {
    SegmentSize,
    Compress,
    BlockDigest,
    Content,
    Graph,
    QueryUrl,
    LabelPredicate,
    LabelLanguage,
}

impl TargetOptions {
    /// Each option with its flag, and whether a value is given.
    pub(crate) const fn given(&self) -> [(TargetOption, &'static str, bool); 8] {
        [
            (TargetOption::SegmentSize, "--segment-size", self.segment_bytes.is_some()),
            (TargetOption::Compress, "--compress", self.compression > 0),
            (TargetOption::BlockDigest, "--block-digest", self.block_digest),
            (TargetOption::Content, "--content", self.content_bytes_max.is_some()),
            (TargetOption::Graph, "--graph", self.graph.is_some()),
            (TargetOption::QueryUrl, "--query-url", self.query_url.is_some()),
            (TargetOption::LabelPredicate, "--label-predicate", !self.label_predicates.is_empty()),
            (TargetOption::LabelLanguage, "--label-language", !self.label_languages.is_empty()),
        ]
    }
}

/// The reason why the text of a target or an option cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The word before the first colon is not a kind of copy.
    #[error(
        "`{word}:` is not a kind of copy (help: {help}; a folder whose name has a colon is written with its path: ./{target})"
    )]
    UnknownKind {
        /// The word, in lower case.
        word: String,
        /// The target without a login.
        target: String,
        /// The kind that was probably meant, or a list of all kinds.
        help: String,
    },
    /// The target is the address of a server, without the kind of server.
    #[error(
        "`{target}` is a URL; the second argument must be a folder (help: name a folder, or the kind of server: {kinds}; a \
         folder whose name has a colon is written with its path: ./{target})"
    )]
    ServerWithoutKind {
        /// The target without a login.
        target: String,
        /// The kinds of servers.
        kinds: String,
    },
    /// The folder is missing after the word for the kind.
    #[error("`{}:` needs a folder (help: abreast sync URL {form})", word_of(form).unwrap_or_default())]
    FolderMissing {
        /// The form of targets of this kind.
        form: &'static str,
    },
    /// A copy that is not in a folder needs a folder for its state.
    #[error("{place} has no folder for its state (help: name one with `--state DIR`)")]
    StateMissing {
        /// The place of the copy.
        place: &'static str,
    },
    /// The folder of a published set is not known ([`TargetOptions::set_folder`]).
    #[error("the folder of the set `{name}` is not known (help: name the folder itself)")]
    SetUnknown {
        /// The name of the set.
        name: String,
    },
    /// The option has no effect on copies of this kind.
    #[error(
        "`{option}` has no effect on a copy in `{target}` (help: leave it out; it is for {kinds})"
    )]
    OptionWithoutEffect {
        /// The option, as a flag.
        option: &'static str,
        /// The target without a login.
        target: String,
        /// The kinds of copies that have the option.
        kinds: String,
    },
    /// The value of an option, or the place, does not fit the kind.
    #[error("{0}")]
    Unsuitable(&'static str),
    /// This build does not contain the kind of copy.
    #[error(
        "cannot keep a copy in {target}: this program was built without {missing} (help: {help})"
    )]
    NotBuilt {
        /// The target without a login.
        target: String,
        /// The missing part.
        missing: &'static str,
        /// How to build the program with the part.
        help: &'static str,
    },
}

/// A kind of copy, as the text of a target names it.
pub(crate) trait TargetKind: Sized {
    /// The forms of the text: a word, a colon and what follows in capitals, such as `warc:DIR`.
    const FORMS: &'static [&'static str];
    /// The options that the kind has.
    const OPTIONS: &'static [TargetOption] = &[];

    /// Reads the options of the kind, and sets the folder of the copy or of its state.
    ///
    /// # Errors
    /// The place or the value of an option does not fit the kind.
    fn read(target: &mut Target<'_>) -> Result<Self, TargetError>;
}

/// Objects in a build without object stores.
#[cfg(not(feature = "s3"))]
pub(crate) struct NoObjects;

#[cfg(not(feature = "s3"))]
impl TargetKind for NoObjects {
    const FORMS: &'static [&'static str] = OBJECT_FORMS;

    fn read(target: &mut Target<'_>) -> Result<Self, TargetError> {
        Err(TargetError::NotBuilt {
            target: abreast_webtypes::without_login(target.text).into_owned(),
            missing: "object stores",
            help: "build it with the default features",
        })
    }
}

/// A [`TargetKind`] in the list of kinds.
pub(crate) struct TargetRow {
    pub(crate) forms: &'static [&'static str],
    pub(crate) options: &'static [TargetOption],
    pub(crate) read: fn(&mut Target<'_>) -> Result<SinkOptions, TargetError>,
}

impl TargetRow {
    pub(crate) const fn of<K: TargetKind>(
        read: fn(&mut Target<'_>) -> Result<SinkOptions, TargetError>,
    ) -> Self {
        Self { forms: K::FORMS, options: K::OPTIONS, read }
    }
}

/// The text of a target whose kind is known.
pub(crate) struct Target<'t> {
    pub(crate) text: &'t str,
    /// The text after the word of the kind.
    pub(crate) place: &'t str,
    pub(crate) given: &'t TargetOptions,
    /// The options of the run.
    pub(crate) options: &'t mut SyncOptions,
}

impl Target<'_> {
    /// Uses the place as the folder of the copy; `form` is for the help.
    pub(crate) fn use_folder(&mut self, form: &'static str) -> Result<(), TargetError> {
        if self.place.is_empty() {
            return Err(TargetError::FolderMissing { form });
        }
        self.options.folder = PathBuf::from(self.place);
        Ok(())
    }

    /// Uses the folder of the state for a copy that is not in a folder; `place` is the place of the
    /// copy in words.
    pub(crate) fn use_state(&mut self, place: &'static str) -> Result<(), TargetError> {
        self.options.folder =
            self.options.state.take().ok_or(TargetError::StateMissing { place })?;
        Ok(())
    }

    /// The graph of the statements.
    pub(crate) fn graph(&self) -> Graph {
        match self.given.graph.as_deref() {
            None => Graph::Default,
            Some(OF_RESOURCE) => Graph::OfResource,
            Some(iri) => Graph::Named(iri.to_owned()),
        }
    }
}

/// The word before the first colon of a target, unless the word is a part of a path.
pub(crate) fn word_of(target: &str) -> Option<&str> {
    target.split_once(':').map(|(word, _)| word).filter(|word| !word.contains('/'))
}
