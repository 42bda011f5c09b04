//! A document of ResourceSync, as a record of the walk.

use crate::fetch::ResponseFacts;
use crate::report::{Document, Finding, NO_END, rules as r};
use crate::resourcesync::collect::Child;
use crate::resourcesync::entry::Head;
use crate::resourcesync::kind;
use crate::resourcesync::sets::Sketches;
use crate::walk::node::{FoundBy, Node, Record};
use abreast_resourcesync::v1_1::{Capability, Root};
use abreast_webtypes::{W3cDatetime, resolve};

/// A ResourceSync document that was read.
#[derive(Debug, Default)]
pub(crate) struct Doc {
    pub(crate) head: Head,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) complete: bool,
    /// Error for which copies refuse the document.
    pub(crate) refusal: Option<String>,
    pub(crate) children: Vec<Child>,
    pub(crate) fingerprint: u64,
    pub(crate) facts: ResponseFacts,
    pub(crate) again: Vec<((u64, u64), (u32, u32))>,
    /// Whether the document is a topic without content, since nothing was notified yet.
    pub(crate) silent: bool,
    /// Resources and changes, until they are moved to the set.
    pub(crate) sketches: Option<Sketches>,
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

    /// Target of the first link with a relation, and the place of the link.
    pub(crate) fn link(&self, base: &str, rel: &str) -> Option<(String, (u64, u64))> {
        let (href, place) = self.head.link(rel)?;
        Some((resolve(base, href).ok()?, place))
    }
}

impl Record for Doc {
    fn report(&self, node: &Node, document: &mut Document) {
        document.is_source = self.silent || self.capability().is_some() || self.entries > 0;
        document.name = if self.silent {
            "topic".to_owned()
        } else if self.head.root.is_some() && self.head.md.is_none() {
            "plain Sitemap".to_owned()
        } else {
            kind::name(self.capability(), self.root())
        };
        document.read = true;
        (document.entries, document.bytes) = (self.entries, self.bytes);
        if !self.silent {
            let no_end = (!self.complete).then(|| NO_END.to_owned());
            // Copies also stop at these faults.
            let refused = [r::LISTED_ONCE.id, r::CAPABILITY_EQUAL.id];
            let is_refused = |found: &&Finding| refused.contains(&found.rule.id);
            let circle = node.findings.iter().find(is_refused).map(|found| &found.message);
            document.problem = self.refusal.clone().or(no_end).or_else(|| circle.cloned());
        }
        if let Some(md) = &self.head.md {
            let instant = |time: Option<W3cDatetime>| time.map(|time| time.instant);
            (document.at, document.completed) = (instant(md.at), instant(md.completed));
            (document.from, document.until) = (instant(md.from), instant(md.until));
        }
    }

    fn children(&self) -> Vec<&str> {
        if self.is(Capability::FrameworkNotification) {
            return Vec::new(); // It reports of documents that are elsewhere in the tree.
        }
        let all = self.children.iter();
        let urls = all.flat_map(|child| [Some(&child.url), child.contents.as_ref()]);
        urls.flatten().map(String::as_str).collect()
    }

    fn is_document(&self, found_by: FoundBy) -> Option<bool> {
        Some(self.capability().is_some() || found_by == FoundBy::Plain)
    }

    fn facts(&self) -> Option<&ResponseFacts> {
        Some(&self.facts)
    }

    fn related(&self, url: &str) -> Vec<String> {
        let links = ["index", "up"].into_iter().filter_map(|rel| self.link(url, rel));
        links.map(|(target, _)| target).collect()
    }
}

/// Whether an archive that was read lists the document.
pub(crate) fn in_archive(nodes: &[Node], url: &str) -> bool {
    nodes.iter().filter_map(|node| node.outcome.record::<Doc>()).any(|doc| {
        doc.capability().is_some_and(kind::is_archive)
            && doc.children.iter().any(|child| child.url == url)
    })
}
