//! Head, entries and links of documents [rs-0.1 §3.1].

use super::{CHANGE_SET, Change, Root};
use abreast_webtypes::{Digests, Timestamp, W3cDatetime, resolve};

/// The head of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// A list, or an index of lists [rs-0.1 §3.2].
    pub root: Root,
    /// Whether the root has `rs:type="changeset"` [rs-0.1 §5.1].
    pub change_set: bool,
    /// `DCTERMS.modified`: last modification of the document.
    pub modified: Option<W3cDatetime>,
    /// Links of the document: change sets, dumps, push.
    pub links: Vec<Link>,
    /// All `xhtml:meta` of the document other than `DCTERMS.modified`.
    pub metas: Vec<Meta>,
}

impl Head {
    /// Whether the document at this address is a change set. Its attribute `rs:type` is only
    /// recommended [rs-0.1 §5.1], so the links that only change sets have are checked too.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v0_1::{CHANGE_SET, Head, Link};
    ///
    /// let url = "https://repo.example/rs/changes.xml";
    /// let current = Link {
    ///     rel: format!("current {CHANGE_SET}"),
    ///     href: "changes.xml".to_owned(),
    ///     ..Link::default()
    /// };
    /// let head = Head { links: vec![current], ..Head::default() };
    /// assert!(head.is_change_set(url));
    /// assert!(!head.is_change_set("https://repo.example/rs/sitemap.xml"));
    /// ```
    pub fn is_change_set(&self, url: &str) -> bool {
        let is_own = |href: &str| resolve(url, href).is_ok_and(|target| target == url);
        self.change_set
            || self.links.iter().any(|link| {
                link.has_rel(CHANGE_SET)
                    && (link.has_rel("prev") || link.has_rel("current") && is_own(&link.href))
            })
    }
}

/// A link of a document or an entry, `xhtml:link`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Relation types, separated by spaces; empty for links that are identified by their `protocol`
    /// [rs-0.1 §5.2.1].
    pub rel: String,
    /// Target of the link, as written.
    pub href: String,
    /// Title for users, such as that of a category.
    pub title: Option<String>,
    /// Media type of the target.
    pub media_type: Option<String>,
    /// `rs:protocol`: URI of the protocol for the target.
    pub protocol: Option<String>,
    /// `rs:pubsubnode`: the node of an XMPP service.
    pub pubsub_node: Option<String>,
}

impl Link {
    /// Whether this is one of its relation types. Registered types compare in any letter case
    /// [rfc8288 §2.1.1].
    pub fn has_rel(&self, rel: &str) -> bool {
        self.rel.split_ascii_whitespace().any(|token| token.eq_ignore_ascii_case(rel))
    }
}

/// A property of a document or an entry, `xhtml:meta`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    /// The name of the property, for example `DC.subject`.
    pub name: String,
    /// The value of the property, as written.
    pub content: String,
}

/// One `url` or `sitemap`: a resource, a change, or another Sitemap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// URI as written, without white space around it.
    pub loc: String,
    /// `rs:protocol` of `loc`: URI of a protocol such as OAI-PMH [rs-0.1 §4.3.3].
    pub protocol: Option<String>,
    /// `created` or `updated` from `rs:type` of `lastmod`; `deleted` if there is `expires`.
    pub change: Option<Change>,
    /// `lastmod`, or `expires` of a deletion: together with `loc` it identifies a change
    /// [rs-0.1 §5.1].
    pub time: Option<W3cDatetime>,
    /// `rs:fixity`: digests of the content as it is transferred.
    pub digests: Digests,
    /// `rs:size`: bytes of the content as it is transferred.
    pub size: Option<u64>,
    /// `rs:mimetype`: media type of the content.
    pub media_type: Option<String>,
    /// `rs:contentencoding`: content coding of the content.
    pub encoding: Option<String>,
    /// `rs:path`: path of the content in a dump, without a slash at its start [rs-0.1 §4.2.1].
    pub path: Option<String>,
    /// Links: categories, mirrors, partial content, versions.
    pub links: Vec<Link>,
    /// Categories that are not URIs, and other properties.
    pub metas: Vec<Meta>,
    /// Line of the entry's start tag, from 1; 0 if it was not read from a document.
    pub line: u64,
}

impl Entry {
    /// Whether the resource was deleted, and not later than `now`.
    ///
    /// A deletion has an `expires` in the past [rs-0.1 §3.1.2]; a time in the future only announces
    /// a deletion.
    ///
    /// # Examples
    /// ```
    /// use abreast_resourcesync::v0_1::{Change, Entry};
    /// use abreast_webtypes::{Timestamp, W3cDatetime};
    ///
    /// let expires = W3cDatetime::parse(b"2026-06-30T00:00:00Z")?;
    /// let entry = Entry { change: Some(Change::Deleted), time: Some(expires), ..Entry::default() };
    /// assert!(entry.is_deleted(expires.instant));
    /// assert!(!entry.is_deleted(Timestamp::from_seconds(0)));
    /// # Ok::<(), abreast_webtypes::ParseDatetimeError>(())
    /// ```
    pub fn is_deleted(&self, now: Timestamp) -> bool {
        self.change == Some(Change::Deleted) && self.time.is_some_and(|time| time.instant <= now)
    }

    /// Resets to the default, reusing the allocations of `loc` and of the vectors.
    pub fn clear(&mut self) {
        self.loc.clear();
        self.digests.clear();
        self.links.clear();
        self.metas.clear();
        (self.protocol, self.change, self.time, self.size) = (None, None, None, None);
        (self.media_type, self.encoding, self.path) = (None, None, None);
        self.line = 0;
    }
}
