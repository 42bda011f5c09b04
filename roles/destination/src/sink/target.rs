//! The text of a target, such as `warc:DIR`, as each kind of copy declares and reads it.
//!
//! A kind implements [`TargetKind`] next to its `SinkKind`; `SinkOptions::targets` lists the kinds,
//! and `targets.rs` finds the kind of a text.

use crate::report::options::SyncOptions;
use crate::report::sinks::{Graph, Output, SinkOptions};
use std::path::PathBuf;

/// The forms of targets in object stores.
pub(crate) const OBJECT_FORMS: &[&str] = &["s3://BUCKET", "file://DIR"];
/// The word for a graph of each resource.
const OF_RESOURCE: &str = "resource";

/// Options that only some kinds have, as messages show them.
pub(crate) const SEGMENT_SIZE: &str = "--segment-size";
pub(crate) const COMPRESS: &str = "--compress";
pub(crate) const BLOCK_DIGEST: &str = "--block-digest";
pub(crate) const CONTENT: &str = "--content";
pub(crate) const GRAPH: &str = "--graph";
pub(crate) const QUERY_URL: &str = "--query-url";
pub(crate) const LABEL_PREDICATE: &str = "--label-predicate";
pub(crate) const LABEL_LANGUAGE: &str = "--label-language";

/// Options that only some kinds of copies have. A target whose kind does not have a given option is
/// refused.
#[derive(Clone, Debug, Default)]
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
    /// The folder of the published set for `set:NAME`.
    pub set_folder: Option<PathBuf>,
    /// Opens the writer of the target `-`, and is called for no other target. Default: standard
    /// output.
    pub output: Option<fn() -> Output>,
}

impl TargetOptions {
    /// Each option, and whether a value is given.
    pub(crate) const fn given(&self) -> [(&'static str, bool); 8] {
        [
            (SEGMENT_SIZE, self.segment_bytes.is_some()),
            (COMPRESS, self.compression > 0),
            (BLOCK_DIGEST, self.block_digest),
            (CONTENT, self.content_bytes_max.is_some()),
            (GRAPH, self.graph.is_some()),
            (QUERY_URL, self.query_url.is_some()),
            (LABEL_PREDICATE, !self.label_predicates.is_empty()),
            (LABEL_LANGUAGE, !self.label_languages.is_empty()),
        ]
    }
}

/// The reason why the text of a target or an option cannot be used. Texts in errors contain no login.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The word before the first colon is not a kind of copy: the word, the help and the target.
    #[error(
        "`{0}:` is not a kind of copy (help: {1}; a folder whose name has a colon is written with its path: ./{2})"
    )]
    UnknownKind(String, String, String),
    /// The target is the address of a server, and the kind of server is missing: the target and the
    /// kinds.
    #[error(
        "`{0}` is a URL; the second argument must be a folder (help: name a folder, or the kind of server: {1}; a \
         folder whose name has a colon is written with its path: ./{0})"
    )]
    ServerWithoutKind(String, String),
    /// The folder is missing after the word of the kind with this form.
    #[error("`{word}:` needs a folder (help: abreast sync URL {form})", word = word_of(.0).unwrap_or_default(), form = .0)]
    FolderMissing(&'static str),
    /// A copy in this place, which is not a folder, needs a folder for its database.
    #[error("{0} has no folder for its state (help: name one with `--state DIR`)")]
    StateMissing(&'static str),
    /// The folder of the published set with this name is not known ([`TargetOptions::set_folder`]).
    #[error("the folder of the set `{0}` is not known (help: name the folder itself)")]
    SetUnknown(String),
    /// The option has no effect on this target: the option, the target and the kinds that have the option.
    #[error("`{0}` has no effect on a copy in `{1}` (help: leave it out; it is for {2})")]
    OptionWithoutEffect(&'static str, String, String),
    /// The place, or the value of an option, does not fit the kind.
    #[error("{0}")]
    Unsuitable(&'static str),
    /// This build does not contain the kind: the target, the missing part, and how to build with it.
    #[error("cannot keep a copy in {0}: this program was built without {1} (help: {2})")]
    NotBuilt(String, &'static str, &'static str),
}

/// A kind of copy, and the texts of its targets.
pub(crate) trait TargetKind: Sized {
    /// The forms of the text: a word, a colon and what follows in capitals, such as `warc:DIR`.
    const FORMS: &'static [&'static str];
    /// The options that the kind has.
    const OPTIONS: &'static [&'static str] = &[];

    /// Reads the options of the kind, and sets the folder of the copy or of its database.
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
        let target = abreast_webtypes::without_login(target.text).into_owned();
        Err(TargetError::NotBuilt(target, "object stores", "build it with the default features"))
    }
}

/// A [`TargetKind`] in the list of kinds.
pub(crate) struct TargetRow {
    pub(crate) forms: &'static [&'static str],
    pub(crate) options: &'static [&'static str],
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
            return Err(TargetError::FolderMissing(form));
        }
        self.options.folder = PathBuf::from(self.place);
        Ok(())
    }

    /// Uses the folder of the database for a copy that is not in a folder; `place` is the place of the
    /// copy in words.
    pub(crate) fn use_state(&mut self, place: &'static str) -> Result<(), TargetError> {
        self.options.folder = self.options.state.take().ok_or(TargetError::StateMissing(place))?;
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
