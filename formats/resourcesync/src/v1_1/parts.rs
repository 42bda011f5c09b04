//! Head, entries and links of documents [rs-core §7].

use super::{Capability, Change, Root};
use abreast_webtypes::{Digests, W3cDatetime};

/// The head of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// A list, or an index of lists.
    pub root: Root,
    /// The capability of the document; `None` for a plain Sitemap.
    pub capability: Option<Capability>,
    /// Start of the snapshot: all changes until then are included.
    pub at: Option<W3cDatetime>,
    /// When the snapshot was complete.
    pub completed: Option<W3cDatetime>,
    /// All changes since then are included.
    pub from: Option<W3cDatetime>,
    /// All changes until then are included; when present, the document is closed.
    pub until: Option<W3cDatetime>,
    /// Links of the document: `up`, `index`, `describedby`.
    pub links: Vec<Ln>,
    /// Whether the capability was written in the wrong letter case.
    pub lenient_capability: bool,
}

/// A link of a document or an entry, `rs:ln`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ln {
    /// Relation types, separated by spaces.
    pub rel: String,
    /// Target of the link, as written.
    pub href: String,
    /// Priority among links with the same relation, 1 to 999,999, the lowest first; absent means
    /// 999,999.
    pub pri: Option<u32>,
    /// Last modification of the target.
    pub modified: Option<W3cDatetime>,
    /// Media type of the target.
    pub media_type: Option<String>,
    /// Length of the target in bytes.
    pub length: Option<u64>,
    /// Digests of the target, as listed.
    pub digests: Digests,
    /// Content coding of the target.
    pub encoding: Option<String>,
    /// Path of the target in a package.
    pub path: Option<String>,
}

impl Ln {
    /// Whether this is one of its relation types. Registered types compare in any letter case
    /// [rfc8288 §2.1.1].
    pub fn has_rel(&self, rel: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|token| token.eq_ignore_ascii_case(rel))
    }
}

/// One `url` or `sitemap`: a resource, a change, a package or another document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// URI, as written without white space around it.
    pub loc: String,
    /// Last modification of the resource.
    pub lastmod: Option<W3cDatetime>,
    /// The capability of the target document.
    pub capability: Option<Capability>,
    /// As in [`Head`], for the target document.
    pub at: Option<W3cDatetime>,
    /// As in [`Head`], for the target document.
    pub completed: Option<W3cDatetime>,
    /// As in [`Head`], for the target document.
    pub from: Option<W3cDatetime>,
    /// As in [`Head`], for the target document.
    pub until: Option<W3cDatetime>,
    /// The kind of change, in lists of changes.
    pub change: Option<Change>,
    /// The time of the change.
    pub datetime: Option<W3cDatetime>,
    /// Digests of the content, as listed.
    pub digests: Digests,
    /// Length of the content in bytes.
    pub length: Option<u64>,
    /// Media type of the content.
    pub media_type: Option<String>,
    /// Content coding of the content, such as `gzip`.
    pub encoding: Option<String>,
    /// Path of the content in a package.
    pub path: Option<String>,
    /// Links of the entry to related resources.
    pub links: Vec<Ln>,
    /// Line of the entry's start tag, from 1; 0 if it was not read from a document.
    pub line: u64,
}

impl Entry {
    /// Resets to the default, reusing the allocations of `loc` and of the vectors.
    pub fn clear(&mut self) {
        self.loc.clear();
        self.digests.clear();
        self.links.clear();
        (self.lastmod, self.capability, self.change, self.datetime) = (None, None, None, None);
        (self.at, self.completed, self.from, self.until) = (None, None, None, None);
        (self.length, self.media_type, self.encoding, self.path) = (None, None, None, None);
        self.line = 0;
    }
}
