//! The interface between protocols and the walk, the sample and the report.

use crate::fetch::archive::Got;
use crate::fetch::hosts::Hosts;
use crate::fetch::{Budget, Failure, Go, ResponseFacts};
use crate::report::{Finding, Findings, Options};
use crate::walk::feeds::Feeds;
use crate::walk::node::{FoundBy, Lead, Node, Origin, Outcome, Record, Walked};
use crate::walk::sketch::Listed;
use abreast_net::{Client, Shared};
use std::any::Any;
use std::fs::File;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use url::Url;

/// A protocol, during one run.
pub(crate) trait Protocol: Sync {
    /// Whether the first bytes of a document are of this protocol.
    fn is_document(&self, begin: &[u8]) -> bool;

    /// Findings of a single document, in pieces of that many bytes.
    fn check(&self, bytes: &[u8], piece: usize, found: Findings) -> Findings;

    // Recognition. A recognised document is read after the walk, by `read`.

    /// Whether the first bytes of a resource show a document of this protocol and nothing else.
    fn has_mark(&self, _begin: &[u8]) -> bool {
        false
    }

    fn recognise(&self, _begin: &Begin<'_>) -> Option<Box<dyn Record>> {
        None
    }

    /// Recognises a given package.
    fn recognise_package(&self, _url: &str, _file: &File) -> Option<Box<dyn Record>> {
        None
    }

    /// Recognises a document without marks by the documents below.
    fn recognise_below<'f>(&'f self, _visit: &'f Visit<'_>, _begin: &'f [u8]) -> Recognition<'f> {
        Box::pin(async { Ok(None) })
    }

    /// Reads the given document and the documents below.
    fn read<'f>(
        &self,
        _feeds: &'f mut Feeds<'_>,
        _number: usize,
    ) -> Pending<'f, Result<(), Failure>> {
        Box::pin(async { Ok(()) })
    }

    // Reading during the walk.

    /// The reader of documents that no protocol recognised.
    fn reader<'v>(&'v self, _visit: &'v Visit<'_>) -> Option<Box<dyn Reader + 'v>> {
        None
    }

    /// Checks a package; hands it back if it has none.
    fn package(&self, _visit: &Visit<'_>, got: Got) -> Result<Inspection, Got> {
        Err(got)
    }

    // Children.

    /// Whether the head of an answer leads to its documents.
    fn leads_on(&self, _facts: &ResponseFacts) -> bool {
        false
    }

    /// Links of a page, robots.txt or host-meta that lead to documents of this protocol.
    fn links(&self, _page: &Page<'_>) -> Vec<Lead> {
        Vec::new()
    }

    /// Places of the site of a URL that may lead to its documents.
    fn places(&self, _start: &Url) -> Vec<Lead> {
        Vec::new()
    }

    /// Returns the level of a document of this protocol and the links to follow.
    fn take_over(
        &self,
        _record: &mut dyn Record,
        _nodes: &[Node],
        _number: usize,
        _options: &Options,
    ) -> Option<(u32, Vec<Lead>)> {
        None
    }

    // Rules.

    /// Judges its documents against each other.
    fn relate(&self, _walked: &mut Walked, _run: &Run<'_>) {}

    /// Hands over all resources that its documents list.
    fn each_resource(&self, _walked: &Walked, _run: &Run<'_>, _send: &mut dyn FnMut(Listed)) {}

    /// The fault of a link of a listed resource.
    fn link_fault(&self, _walked: &Walked, _listed: &Listed, _target: &str) -> Option<String> {
        None
    }
}

/// Work in progress.
pub(crate) type Pending<'f, T> = Pin<Box<dyn Future<Output = T> + 'f>>;

/// Whether a document was recognised.
pub(crate) type Recognition<'f> = Pending<'f, Result<Option<Box<dyn Record>>, Failure>>;

/// The beginning of an answer.
pub(crate) struct Begin<'b> {
    pub(crate) bytes: &'b [u8],
    pub(crate) found_by: FoundBy,
    /// It is host-meta, in which nothing but links is read.
    pub(crate) is_links: bool,
    /// It is JSON by its name or media type.
    pub(crate) is_json: bool,
}

/// A page for people, robots.txt, or host-meta.
pub(crate) struct Page<'p> {
    pub(crate) bytes: &'p [u8],
    pub(crate) facts: &'p ResponseFacts,
    pub(crate) found_by: FoundBy,
    pub(crate) is_host_meta: bool,
}

/// Reads one document while it is fetched.
pub(crate) trait Reader {
    /// Takes the head of the answer into account.
    fn answered(&mut self, facts: &ResponseFacts);

    fn feed(&mut self, bytes: &[u8]) -> Go;

    fn finish<'f>(self: Box<Self>, facts: ResponseFacts) -> Pending<'f, Inspection>
    where
        Self: 'f;
}

/// Data that all parts of a run share.
pub(crate) struct Run<'a> {
    pub(crate) options: &'a Options,
    pub(crate) budget: &'a Budget<'a>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) hosts: Hosts,
    pub(crate) protocols: &'a [Box<dyn Protocol>],
    /// Conditional requests that are left for the walk.
    pub(crate) conditions: AtomicU64,
}

/// One address that is inspected.
pub(crate) struct Visit<'v> {
    pub(crate) run: &'v Run<'v>,
    pub(crate) client: &'v Client,
    pub(crate) number: usize,
    pub(crate) url: String,
    pub(crate) found_by: FoundBy,
    pub(crate) origin: Origin,
    /// Data that the protocol attached to the link.
    pub(crate) note: Option<Box<dyn Any + Send + Sync>>,
    /// How many findings of one rule may be kept.
    pub(crate) most_each: usize,
}

impl Visit<'_> {
    pub(crate) fn is_start(&self) -> bool {
        self.found_by == FoundBy::Start
    }

    pub(crate) fn findings(&self) -> Findings {
        Findings::new(&self.url, self.run.options.mode, self.most_each)
    }
}

/// The result of one inspection.
pub(crate) struct Inspection {
    pub(crate) found: Inspected,
    pub(crate) findings: Vec<Finding>,
}

impl From<Inspected> for Inspection {
    fn from(found: Inspected) -> Self {
        Self { found, findings: Vec::new() }
    }
}

impl From<Failure> for Inspection {
    fn from(failure: Failure) -> Self {
        Self::from(match failure {
            Failure::Missing(message) => Inspected::Done(Outcome::Failed(message)),
            failure => Inspected::Ended(failure),
        })
    }
}

/// The kind of answer of an address.
pub(crate) enum Inspected {
    Done(Outcome),
    /// A document or package that the protocol of that number reads later.
    Later(usize, Box<dyn Record>),
    Page(Vec<u8>, Box<ResponseFacts>),
    /// A resource, which leads to its Source by the headers of its answer.
    Resource(Box<ResponseFacts>),
    /// The walk ends: a limit was reached, or the user stopped the run.
    Ended(Failure),
}
