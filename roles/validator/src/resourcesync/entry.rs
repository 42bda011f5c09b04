//! Heads and entries of ResourceSync documents for the checks.

use crate::report::Findings;
use crate::resourcesync::markup::Md;
use abreast_resourcesync::v1_1::{Ln, Root};
use abreast_webtypes::W3cDatetime;

/// Head of a document: the root element, its metadata and links.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    /// `None` if the root element is not from ResourceSync or Sitemap.
    pub(crate) root: Option<Root>,
    pub(crate) md: Option<Md>,
    pub(crate) md_place: (u64, u64),
    pub(crate) links: Vec<(Ln, (u64, u64))>,
}

impl Head {
    /// Target of the first link with a relation, as written.
    pub(crate) fn link(&self, rel: &str) -> Option<(&str, (u64, u64))> {
        self.links
            .iter()
            .find(|(link, _)| link.has_rel(rel))
            .map(|(link, place)| (link.href.as_str(), *place))
    }

    pub(crate) fn root(&self) -> Root {
        self.root.unwrap_or_default()
    }
}

/// One entry of a document. The value is reused for the next entry.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) loc: String,
    pub(crate) locs: u32,
    pub(crate) lastmod: Option<W3cDatetime>,
    pub(crate) has_lastmod: bool,
    pub(crate) has_md: bool,
    pub(crate) md: Md,
    pub(crate) links: Vec<Ln>,
    pub(crate) place: (u64, u64),
}

impl Entry {
    pub(crate) fn clear(&mut self, place: (u64, u64)) {
        self.loc.clear();
        self.md.clear();
        self.links.clear();
        (self.locs, self.lastmod, self.has_lastmod, self.has_md) = (0, None, false, false);
        self.place = place;
    }
}

/// Observer of a document that is checked.
pub(crate) trait DocumentObserver {
    /// Called once with the complete head, before the entries.
    fn head(&mut self, head: &Head);
    /// Called for each entry that was read.
    fn entry(&mut self, head: &Head, entry: &Entry, found: &mut Findings);
}

/// Links checked in one place; further ones are counted only.
pub(crate) const MAX_LINKS: usize = 1_000;
