//! Records of the addresses of a walk.

use crate::fetch::ResponseFacts;
use crate::report::{Document, Finding, Findings};
use crate::walk::sketch::{Listed, Sketch};
use abreast_webtypes::Origin as WebOrigin;
use std::any::Any;
use std::collections::HashMap;
use std::fmt::Debug;
use url::Url;

/// Why a document is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoundBy {
    Start,
    WellKnown,
    Robots,
    Sitemap,
    /// A plain Sitemap that robots.txt names, of a site where nothing else was found.
    Plain,
    /// What the site describes itself with (RFC 6415), tried where nothing else leads to documents.
    HostMeta,
    /// What that, or the page that was given, links to as documents of ResourceSync 0.1.
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

/// A document in the memory of its protocol.
pub(crate) trait Record: Any + Debug + Send + Sync {
    /// Fills in the entry of the report.
    fn report(&self, node: &Node, document: &mut Document);

    /// Documents that the document points to, beside the children of the node.
    fn children(&self) -> Vec<&str> {
        Vec::new()
    }

    /// Whether the document is of a Source; `None`: not known.
    fn is_document(&self, _found_by: FoundBy) -> Option<bool> {
        None
    }

    /// Whether the findings of all pages are counted together: there may be very many pages.
    fn counts_once(&self) -> bool {
        false
    }

    /// Headers of the answer, for noticing a change.
    fn facts(&self) -> Option<&ResponseFacts> {
        None
    }

    /// Other documents: a change of such a document can be the reason for a finding.
    fn related(&self, _url: &str) -> Vec<String> {
        Vec::new()
    }
}

/// The result of one address.
#[derive(Debug)]
pub(crate) enum Outcome {
    Waiting,
    Read(Box<dyn Record>),
    /// A plain Sitemap that robots.txt named.
    Plain,
    /// A web page, robots.txt, or a resource, by its name for people.
    Page(&'static str),
    Failed(String),
    /// Not checked, and why.
    Left(&'static str),
}

impl Outcome {
    pub(crate) fn read(record: impl Record) -> Self {
        Self::Read(Box::new(record))
    }

    /// The record, if there is one of that type.
    pub(crate) fn record<R: Record>(&self) -> Option<&R> {
        let Self::Read(record) = self else { return None };
        (&**record as &dyn Any).downcast_ref()
    }

    pub(crate) fn record_mut<R: Record>(&mut self) -> Option<&mut R> {
        let Self::Read(record) = self else { return None };
        (&mut **record as &mut dyn Any).downcast_mut()
    }
}

/// Where a document was found, as far as it matters for what is remembered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    /// The index it was reached from.
    pub(crate) index: Option<String>,
    /// It is of the past: an archive led to it.
    pub(crate) archived: bool,
}

/// A link that is followed.
#[derive(Debug)]
pub(crate) struct Lead {
    pub(crate) url: String,
    pub(crate) found_by: FoundBy,
    /// Data that the protocol attaches to the link.
    pub(crate) note: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) level: u32,
    pub(crate) origin: Origin,
    pub(crate) stage: Stage,
}

impl Lead {
    /// A link without a note whose target is read at once.
    pub(crate) fn new(url: impl Into<String>, found_by: FoundBy, level: u32) -> Self {
        let (origin, stage) = (Origin::default(), Stage::Now);
        Self { url: url.into(), found_by, note: None, level, origin, stage }
    }
}

/// When an address is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    #[default]
    Now,
    /// Change Lists: read later, since the other lists have to be known before them.
    Late,
    /// Documents of archives: read last, since a current list may be in an archive too.
    Past,
    /// Only where nothing else led to a document.
    Try,
}

/// One address.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) url: String,
    pub(crate) found_by: FoundBy,
    /// The document that led here.
    pub(crate) from: Option<usize>,
    pub(crate) note: Option<Box<dyn Any + Send + Sync>>,
    pub(crate) level: u32,
    pub(crate) origin: Origin,
    pub(crate) stage: Stage,
    pub(crate) outcome: Outcome,
    /// Documents that were added while this one was read.
    pub(crate) children: Vec<String>,
    pub(crate) findings: Vec<Finding>,
    pub(crate) millis: u64,
    /// When reading began and ended, counted in steps of the walk.
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

    /// Whether a document of a Source was read.
    pub(crate) fn is_document(&self) -> bool {
        matches!(&self.outcome, Outcome::Read(record) if record.is_document(self.found_by) == Some(true))
    }

    /// Whether the root of a site was given.
    pub(crate) fn is_root(&self) -> bool {
        self.found_by == FoundBy::Start && Url::parse(&self.url).is_ok_and(|url| url.path() == "/")
    }
}

/// Whether documents were found at the site of what was given, or by what is there. Its root need not
/// have a page then.
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

/// Everything that was learnt.
pub(crate) struct Walked {
    pub(crate) nodes: Vec<Node>,
    pub(crate) by_url: HashMap<String, usize>,
    /// Resources of each set, for the sample.
    pub(crate) sets: HashMap<String, Sampled>,
    pub(crate) limit: Option<&'static str>,
    pub(crate) cancelled: bool,
    pub(crate) unique_one_in: u64,
}

/// Resources of a set that may be fetched.
#[derive(Debug)]
pub(crate) struct Sampled {
    pub(crate) listed: Sketch<Listed>,
    /// No other resources of the set can be fetched: the documents are not read again.
    pub(crate) is_all: bool,
}

impl Walked {
    /// Adds findings to the documents at these addresses.
    pub(crate) fn add(&mut self, found: HashMap<String, Findings>) {
        for (url, found) in found {
            if let Some(number) = self.by_url.get(&url) {
                self.nodes[*number].findings.append(&mut found.into_list());
            }
        }
    }

    /// The record of an address, if there is one of that type.
    pub(crate) fn record<R: Record>(&self, url: &str) -> Option<&R> {
        self.nodes[*self.by_url.get(url)?].outcome.record()
    }
}
