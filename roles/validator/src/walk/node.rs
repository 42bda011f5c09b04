//! Addresses of a walk, with the records of their documents.

use crate::fetch::ResponseFacts;
use crate::report::{Document, Finding, Findings};
use crate::walk::sketch::{Listed, Sketch};
use abreast_webtypes::Origin as WebOrigin;
use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use url::Url;

/// How the walk found a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundBy {
    Start,
    WellKnown,
    Robots,
    Sitemap,
    /// A plain Sitemap from robots.txt, for a site without other documents.
    Plain,
    /// The metadata of the site (RFC 6415), tried if nothing else leads to documents.
    HostMeta,
    /// A document of ResourceSync 0.1 that host-meta or the given page links to.
    Site,
    Page,
    Up,
    Index,
    Archives,
    Down,
    Contents,
    Package,
    Topic,
    Feed,
    Snapshot,
}

impl FoundBy {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Start => "given",
            Self::WellKnown => "well-known",
            Self::Robots => "robots.txt",
            Self::Sitemap | Self::Plain => "sitemap",
            Self::HostMeta => "host-meta",
            Self::Site => "site",
            Self::Page => "link",
            Self::Up => "up",
            Self::Index => "index",
            Self::Archives => "archives",
            Self::Down => "entry",
            Self::Contents => "contents",
            Self::Package => "package",
            Self::Topic => "topic",
            Self::Feed => "feed",
            Self::Snapshot => "snapshot",
        }
    }
}

/// A document that its protocol read, in memory until the report.
pub(crate) trait Record: Any + Debug + Send + Sync {
    /// Fills in the entry of the document in the report.
    fn report(&self, node: &Node, document: &mut Document);

    /// URLs of documents that the document links to, in addition to the children of the node.
    fn children(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether the document belongs to a Source; `None` if unknown.
    fn is_document(&self, _found_by: FoundBy) -> Option<bool> {
        None
    }

    /// Whether the limit of findings applies to all pages together, because there may be a very
    /// large number of pages.
    fn counts_once(&self) -> bool {
        false
    }

    /// Headers of the answer, used to detect a change of the document.
    fn facts(&self) -> Option<&ResponseFacts> {
        None
    }

    /// Other documents whose change can explain a finding in this document.
    fn related(&self, _url: &str) -> Vec<String> {
        Vec::new()
    }
}

/// Result of inspecting one address.
#[derive(Debug)]
pub(crate) enum Outcome {
    Waiting,
    Read(Box<dyn Record>),
    /// A plain Sitemap listed in robots.txt.
    Plain,
    /// A web page, robots.txt or a resource; contains the name for the report.
    Page(&'static str),
    Failed(String),
    /// Not checked; contains the reason.
    Left(&'static str),
}

impl Outcome {
    pub(crate) fn read(record: impl Record) -> Self {
        Self::Read(Box::new(record))
    }

    /// The record as the type of a protocol; `None` if the record has another type.
    pub(crate) fn record<R: Record>(&self) -> Option<&R> {
        let Self::Read(record) = self else { return None };
        (&**record as &dyn Any).downcast_ref()
    }

    pub(crate) fn record_mut<R: Record>(&mut self) -> Option<&mut R> {
        let Self::Read(record) = self else { return None };
        (&mut **record as &mut dyn Any).downcast_mut()
    }
}

/// Origin of a document, which decides with which others it is compared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// URL of the index that links to the document.
    pub(crate) index: Option<String>,
    /// Whether the document is archived: an archive links to it.
    pub(crate) archived: bool,
}

/// A link that the walk follows.
#[derive(Debug)]
pub(crate) struct Lead {
    pub(crate) url: String,
    pub(crate) found_by: FoundBy,
    /// Data of the protocol about the link.
    pub(crate) note: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) level: u32,
    pub(crate) origin: Origin,
    pub(crate) stage: Stage,
}

impl Lead {
    /// A link without data of a protocol, whose target is read at once.
    pub(crate) fn new(url: impl Into<String>, found_by: FoundBy, level: u32) -> Self {
        let (origin, stage) = (Origin::default(), Stage::Now);
        Self { url: url.into(), found_by, note: None, level, origin, stage }
    }
}

/// Time within the walk at which an address is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    #[default]
    Now,
    /// Change Lists: read after the other lists, so that they contain all changes in these lists.
    Late,
    /// Documents of archives: read last, because an archive may also contain a current list.
    Past,
    /// Addresses that are tried only if nothing else led to a document.
    Try,
}

/// An address of the walk and its result.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) url: String,
    pub(crate) found_by: FoundBy,
    /// Index of the document that links here.
    pub(crate) from: Option<usize>,
    pub(crate) note: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) level: u32,
    pub(crate) origin: Origin,
    pub(crate) stage: Stage,
    pub(crate) outcome: Outcome,
    /// Links of the document, added while it was read.
    pub(crate) children: Vec<String>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) millis: u64,
    /// Start and end of reading, counted in steps of the walk.
    pub(crate) steps: (u64, u64),
}

impl Node {
    pub(crate) fn new(lead: Lead, from: Option<usize>, outcome: Outcome) -> Self {
        let Lead { url, found_by, note, level, origin, stage } = lead;
        let (children, findings) = (Vec::new(), Vec::new());
        let (millis, steps) = (0, (0, 0));
        Self {
            url,
            found_by,
            from,
            note,
            level,
            origin,
            stage,
            outcome,
            children,
            findings,
            millis,
            steps,
        }
    }

    /// Whether the address has a document of a Source that was read.
    pub(crate) fn is_document(&self) -> bool {
        matches!(&self.outcome, Outcome::Read(record) if record.is_document(self.found_by) == Some(true))
    }

    /// Whether the address is a start and the root of a site.
    pub(crate) fn is_root(&self) -> bool {
        self.found_by == FoundBy::Start && Url::parse(&self.url).is_ok_and(|url| url.path() == "/")
    }
}

/// Whether the walk found documents at the site of a start, or through that site. If so, the root
/// of the site need not have a page.
pub(crate) fn site_has_documents(nodes: &[Node], start: usize) -> bool {
    let origin = WebOrigin::of(&nodes[start].url);
    let is_of_site = |node: &Node| {
        let mut first = node;
        while let Some(from) = first.from {
            first = &nodes[from];
        }
        WebOrigin::of(&first.url) == origin
    };
    nodes.iter().any(|node| node.is_document() && is_of_site(node))
}

/// All results of a walk.
pub(crate) struct Walked {
    pub(crate) nodes: Vec<Node>,
    pub(crate) by_url: HashMap<String, usize>,
    /// Resources of each set that can be sampled.
    pub(crate) sets: HashMap<String, Sampled>,
    pub(crate) limit: Option<&'static str>,
    pub(crate) cancelled: bool,
    pub(crate) unique_one_in: u64,
}

/// Resources of a set that may be fetched.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub(crate) listed: Sketch<Listed>,
    /// Whether `listed` contains all resources of the set that can be fetched, so that the
    /// documents are not read again.
    pub(crate) is_all: bool,
}

impl Walked {
    /// Adds findings to the documents with these URLs.
    pub(crate) fn add(&mut self, found: HashMap<String, Findings>) {
        for (url, found) in found {
            if let Some(number) = self.by_url.get(&url) {
                self.nodes[*number].findings.append(&mut found.into_list());
            }
        }
    }

    /// The record at an address as the type of a protocol; `None` if it is missing or has another
    /// type.
    pub(crate) fn record<R: Record>(&self, url: &str) -> Option<&R> {
        self.nodes[*self.by_url.get(url)?].outcome.record()
    }
}
