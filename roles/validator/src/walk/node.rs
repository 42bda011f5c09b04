//! Records of the addresses of a walk.

use crate::emm::change_feed::ChangeFeed;
use crate::fetch::ResponseFacts;
use crate::report::finding::Finding;
use crate::resourcesync::collect::{Child, Origin};
use crate::resourcesync::entry::Head;
use crate::resourcesync::kind;
use crate::resourcesync::package::Package;
use crate::resourcesync_0_1::alpha::Alpha;
use crate::sdshare::feed::Feed;
use crate::walk::sketch::{Changes, Listed, Sketch};
use abreast_resourcesync::v1_1::{Capability, Root};
use abreast_webtypes::{Origin as WebOrigin, resolve};
use std::collections::HashMap;
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

/// The result of one address.
#[derive(Debug)]
pub(crate) enum Outcome {
    Waiting,
    Document(Box<Doc>),
    Package(Box<Package>),
    /// Of SDShare.
    Feed(Box<Feed>),
    /// Of Activity Streams.
    ChangeFeed(Box<ChangeFeed>),
    /// Of ResourceSync 0.1.
    Alpha(Box<Alpha>),
    /// A plain Sitemap that robots.txt named.
    Plain,
    /// A web page, robots.txt, or a resource, by its name for people.
    Page(&'static str),
    Failed(String),
    /// Not checked, and why.
    Left(&'static str),
}

/// A document that was read.
#[derive(Debug, Default)]
pub(crate) struct Doc {
    pub(crate) head: Head,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) complete: bool,
    /// Why copies refuse it.
    pub(crate) refusal: Option<String>,
    pub(crate) children: Vec<Child>,
    pub(crate) fingerprint: u64,
    pub(crate) facts: ResponseFacts,
    pub(crate) again: Vec<((u64, u64), (u32, u32))>,
    /// A topic at which nothing was stated yet.
    pub(crate) silent: bool,
}

impl Doc {
    pub(crate) fn capability(&self) -> Option<Capability> {
        self.head.md.as_ref().and_then(|md| md.capability)
    }

    pub(crate) fn root(&self) -> Root {
        self.head.root()
    }

    pub(crate) fn is(&self, capability: Capability) -> bool {
        self.capability() == Some(capability)
    }

    /// Where a link leads, and where it is written.
    pub(crate) fn link(&self, base: &str, rel: &str) -> Option<(String, (u64, u64))> {
        let (href, place) = self.head.link(rel)?;
        Some((resolve(base, href).ok()?, place))
    }
}

/// One address.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) url: String,
    pub(crate) found_by: FoundBy,
    /// The document that led here.
    pub(crate) from: Option<usize>,
    /// Which of its entries, for packages.
    pub(crate) entry: usize,
    pub(crate) level: u32,
    pub(crate) origin: Origin,
    pub(crate) outcome: Outcome,
    pub(crate) findings: Vec<Finding>,
    pub(crate) millis: u64,
    /// When reading began and ended, counted in steps of the walk.
    pub(crate) steps: (u64, u64),
}

impl Node {
    /// Whether it is a document of ResourceSync, or stands for one.
    pub(crate) fn is_document(&self) -> bool {
        match &self.outcome {
            Outcome::Document(doc) => doc.capability().is_some() || self.found_by == FoundBy::Plain,
            Outcome::Alpha(_) => true,
            _ => false,
        }
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

/// The lists of a set of resources.
#[derive(Debug)]
pub(crate) struct SetData {
    pub(crate) listed: Sketch<Listed>,
    pub(crate) dumped: Sketch<Listed>,
    pub(crate) changed: Sketch<Changes>,
}

impl SetData {
    pub(crate) fn merge(&mut self, listed: Sketch<Listed>, changed: Sketch<Changes>) {
        self.listed.merge(listed, |_, _| {});
        self.changed.merge(changed, |one, other| {
            other.latest.into_iter().for_each(|change| one.add(change));
        });
    }
}

/// Does an archive that was read have the document?
pub(crate) fn in_archive(nodes: &[Node], url: &str) -> bool {
    nodes.iter().any(|node| match &node.outcome {
        Outcome::Document(doc) => {
            doc.capability().is_some_and(kind::is_archive)
                && doc.children.iter().any(|child| child.url == url)
        }
        _ => false,
    })
}

/// Everything that was learnt.
pub(crate) struct Walked {
    pub(crate) nodes: Vec<Node>,
    pub(crate) by_url: HashMap<String, usize>,
    /// By the address of the Capability List.
    pub(crate) sets: HashMap<String, SetData>,
    pub(crate) limit: Option<&'static str>,
    pub(crate) cancelled: bool,
    pub(crate) unique_one_in: u64,
}

impl Walked {
    /// Whether a document is one of ResourceSync 0.1.
    pub(crate) fn is_of_0_1(&self, url: &str) -> bool {
        let number = self.by_url.get(url);
        number.is_some_and(|number| matches!(self.nodes[*number].outcome, Outcome::Alpha(_)))
    }

    /// The resources of Sitemaps of ResourceSync 0.1.
    pub(crate) fn sets_of_0_1(&self) -> impl Iterator<Item = &SetData> {
        self.sets.iter().filter(|(url, _)| self.is_of_0_1(url)).map(|(_, set)| set)
    }
}
