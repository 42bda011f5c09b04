//! Options of sinks: where a copy is kept.

use super::lines::LinesOptions;
use super::rdf::label_table::LabelsOptions;
use super::rdf::nquads::NQuadsOptions;
use super::rdf::remote::{GraphStoreOptions, OxigraphOptions, PushOptions, SparqlOptions};
use super::warc::WarcOptions;
use crate::copy::path_map::NameRules;

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
    Objects(super::objects::ObjectsOptions),
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

    /// The rules of names where URIs are mapped to paths that are no files.
    #[cfg_attr(
        not(feature = "s3"),
        expect(clippy::unused_self, reason = "no such kind without its feature")
    )]
    pub(crate) const fn key_rules(&self) -> Option<NameRules> {
        #[cfg(feature = "s3")]
        if let Self::Objects(_) = self {
            return Some(super::objects::KEY_RULES);
        }
        None
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
