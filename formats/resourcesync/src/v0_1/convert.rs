//! Documents of 1.1 as documents of 0.1, and back.
//!
//! 0.1 does not have equivalents of some metadata of 1.1. A conversion to 0.1 and back loses:
//!
//! - of a document: `completed`, `from`, all links (0.1 has neither Capability Lists nor Source
//!   Descriptions), and whether a plain Sitemap has a capability;
//! - of an entry of a list: `change` and `datetime`; of an entry of an index: `at`, `completed`,
//!   `from`, `until`, `capability`;
//! - of a change: a `lastmod` that differs from the time of the change, and for deletions every
//!   `lastmod`;
//! - of digests: SHA-512 and unknown algorithms;
//! - of links: priority (they are ordered by it), `modified`, `length`, `hash`, `encoding`, `path`;
//!   patches outside of change sets, and patches without media type; further relations of a
//!   duplicate, a patch or a category.
//!
//! A conversion to 1.1 and back loses the protocol of a `loc`, the titles of links, all
//! `xhtml:meta`, and deletions in a Sitemap.

use super::{Change, Document, Entry, Head, Link, MIRROR, PARTIAL, Root, SUBJECT};
use crate::v1_1::{self, Capability, Ln};

/// Prefix of the `rs:protocol` of partial content whose format is a media type.
pub const MEDIA_TYPES: &str = "https://www.iana.org/assignments/media-types/";

/// Relation types of 1.1.
const DUPLICATE: &str = "duplicate";
const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";
const COLLECTION: &str = "collection";
/// The relation [`SUBJECT`] as a URI.
const SUBJECT_URI: &str = "http://purl.org/dc/terms/subject";

impl Document {
    /// Converts a list, change list or manifest to 0.1; `None` for other documents, which do not
    /// have an equivalent.
    pub fn from_1_1(document: &v1_1::Document) -> Option<Self> {
        let head = Head::from_1_1(&document.head)?;
        let entries =
            document.entries.iter().map(|entry| Entry::from_1_1(entry, head.change_set)).collect();
        Some(Self { head, entries })
    }

    /// The same document in 1.1: a manifest if an entry has a path.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::{v0_1, v1_1::Capability};
    ///
    /// let sitemap = br#"<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"
    ///   xmlns:rs="http://www.openarchives.org/rs/terms/">
    ///   <url><loc>https://repo.example/item/1</loc><rs:size>40960</rs:size></url>
    /// </urlset>"#;
    /// let list = v0_1::Document::from_slice(sitemap)?.to_1_1();
    /// assert_eq!(list.head.capability, Some(Capability::ResourceList));
    /// assert_eq!(list.entries[0].length, Some(40_960));
    /// # Ok::<(), abreast_resourcesync::v0_1::Error>(())
    /// ```
    pub fn to_1_1(&self) -> v1_1::Document {
        let mut head = self.head.to_1_1();
        if self.entries.iter().any(|entry| entry.path.is_some()) {
            head.capability = Some(Capability::ResourceDumpManifest);
        }
        let entries = self.entries.iter().filter_map(|entry| entry.to_1_1(self.head.change_set));
        v1_1::Document { head, entries: entries.collect() }
    }
}

impl Head {
    /// The same head in 0.1: a Sitemap for a Resource List, its index, a plain Sitemap or the
    /// manifest of a dump, a change set for a Change List.
    pub fn from_1_1(head: &v1_1::Head) -> Option<Self> {
        let (change_set, modified) = match (head.capability, head.root) {
            (None | Some(Capability::ResourceList), _)
            | (Some(Capability::ResourceDumpManifest), Root::UrlSet) => (false, head.at),
            (Some(Capability::ChangeList), Root::UrlSet) => (true, head.until),
            _ => return None,
        };
        Some(Self { root: head.root, change_set, modified, ..Self::default() })
    }

    /// The same head in 1.1.
    pub fn to_1_1(&self) -> v1_1::Head {
        let (capability, at, until) = if self.change_set {
            (Capability::ChangeList, None, self.modified)
        } else {
            (Capability::ResourceList, self.modified, None)
        };
        let capability = Some(capability);
        v1_1::Head { root: self.root, capability, at, until, ..v1_1::Head::default() }
    }
}

impl Entry {
    /// The same entry in 0.1.
    pub fn from_1_1(entry: &v1_1::Entry, of_change_set: bool) -> Self {
        let mut digests = entry.digests.clone();
        digests.sha512 = None;
        digests.unknown.clear();
        let mut links: Vec<_> = entry.links.iter().collect();
        links.sort_by_key(|link| link.pri.unwrap_or(u32::MAX));
        Self {
            loc: entry.loc.clone(),
            change: entry.change.filter(|_| of_change_set),
            time: if of_change_set { entry.datetime.or(entry.lastmod) } else { entry.lastmod },
            digests,
            size: entry.length,
            media_type: entry.media_type.clone(),
            encoding: entry.encoding.clone(),
            path: entry.path.as_deref().map(|path| path.trim_start_matches('/').to_owned()),
            links: links
                .into_iter()
                .filter_map(|link| Link::from_1_1(link, of_change_set))
                .collect(),
            ..Self::default()
        }
    }

    /// The same entry in 1.1; `None` for a deletion in a list of resources.
    pub fn to_1_1(&self, of_change_set: bool) -> Option<v1_1::Entry> {
        let is_deleted = self.change == Some(Change::Deleted);
        if is_deleted && !of_change_set {
            return None;
        }
        Some(v1_1::Entry {
            loc: self.loc.clone(),
            lastmod: self.time.filter(|_| !is_deleted),
            change: self.change.filter(|_| of_change_set),
            datetime: self.time.filter(|_| of_change_set),
            digests: self.digests.clone(),
            length: self.size,
            media_type: self.media_type.clone(),
            encoding: self.encoding.clone(),
            path: self.path.as_ref().map(|path| format!("/{path}")),
            links: self.links.iter().map(Link::to_1_1).collect(),
            ..v1_1::Entry::default()
        })
    }
}

impl Link {
    /// The same link in 0.1; `None` for a patch outside of change sets or in an unknown format
    /// [rs-0.1 §4.3.2].
    pub fn from_1_1(link: &Ln, of_change_set: bool) -> Option<Self> {
        let (rel, href, media_type) =
            (link.rel.clone(), link.href.clone(), link.media_type.clone());
        Self { rel, href, media_type, ..Self::default() }.with_own_relations(of_change_set)
    }

    /// Converts the relations of a link from 1.1 to 0.1; `None` for a patch outside of change sets
    /// or in an unknown format.
    #[must_use]
    pub fn with_own_relations(mut self, of_change_set: bool) -> Option<Self> {
        if self.has_rel(PATCH) {
            let media_type = self.media_type.as_ref().filter(|_| of_change_set)?;
            self.protocol = Some(format!("{MEDIA_TYPES}{media_type}"));
            (self.rel, self.title) = (PARTIAL.to_owned(), None);
        } else if self.has_rel(DUPLICATE) {
            (self.rel, self.title) = (format!("alternate {MIRROR}"), None);
        } else if self.has_rel(COLLECTION) {
            self.rel = format!("{SUBJECT} {COLLECTION}");
        } else if self.has_rel(SUBJECT_URI) {
            SUBJECT.clone_into(&mut self.rel);
        }
        Some(self)
    }

    /// The same link in 1.1.
    pub fn to_1_1(&self) -> Ln {
        let rel = if self.has_rel(PARTIAL) {
            PATCH
        } else if self.has_rel(MIRROR) {
            DUPLICATE
        } else if self.has_rel(SUBJECT) {
            if self.has_rel(COLLECTION) { COLLECTION } else { SUBJECT_URI }
        } else {
            &self.rel
        };
        let stated = || self.protocol.as_deref()?.strip_prefix(MEDIA_TYPES).map(str::to_owned);
        let media_type = self.media_type.clone().or_else(|| stated().filter(|_| rel == PATCH));
        Ln { rel: rel.to_owned(), href: self.href.clone(), media_type, ..Ln::default() }
    }
}
