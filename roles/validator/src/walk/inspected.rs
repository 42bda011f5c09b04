//! Results of one address.

use crate::fetch::Failure;
use crate::fetch::ResponseFacts;
use crate::report::finding::Finding;
use crate::resourcesync::package::Package;
use crate::walk::node::Doc;
use crate::walk::sketch::Changes;
use crate::walk::sketch::Listed;
use crate::walk::sketch::Sketch;

/// The result of one inspection.
#[derive(Default)]
pub(crate) struct Inspection {
    pub(crate) found: Inspected,
    pub(crate) findings: Vec<Finding>,
    pub(crate) listed: Option<(Sketch<Listed>, Sketch<Changes>)>,
}

impl From<Failure> for Inspection {
    fn from(failure: Failure) -> Self {
        let found = match failure {
            Failure::Missing(message) => Inspected::Nothing(message),
            Failure::Limit(limit) => Inspected::Limit(limit),
            Failure::Cancelled => Inspected::Cancelled,
        };
        Self { found, ..Self::default() }
    }
}

#[derive(Default)]
pub(crate) enum Inspected {
    Document(Box<Doc>),
    Package(Box<Package>),
    Page(Vec<u8>, Box<ResponseFacts>),
    /// A resource, which leads to its Source by the headers of its answer.
    Resource(Box<ResponseFacts>),
    Plain,
    /// A feed of SDShare, read later.
    Feed,
    /// A document of Activity Streams, read later.
    ChangeFeed,
    /// A document of ResourceSync 0.1, read later.
    Alpha,
    /// A dump of ResourceSync 0.1, read later.
    AlphaDump,
    Nothing(String),
    Left(&'static str),
    Limit(&'static str),
    #[default]
    Cancelled,
}
