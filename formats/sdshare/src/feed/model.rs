//! The parts of a feed: its head, entries and links [rfc4287 §4.1].

use crate::{ATOM_MEDIA_TYPE, Relation};
use abreast_webtypes::Timestamp;

/// The metadata of a feed [rfc4287 §4.1.1].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Feed {
    /// A permanent identifier; empty if it is missing.
    pub id: String,
    /// Title of the feed as text; may be markup of the publisher.
    pub title: String,
    /// A description of the feed, for users.
    pub subtitle: Option<String>,
    /// Time of the last change of the feed.
    pub updated: Option<Timestamp>,
    /// The name of the author of the feed.
    pub author: Option<String>,
    /// Links of the whole feed, such as links to other pages.
    pub links: Vec<Link>,
    /// Whether the fragments of the feed are files in any format, not descriptions in RDF; see
    /// [`CATEGORIES`].
    ///
    /// [`CATEGORIES`]: crate::CATEGORIES
    pub has_files: bool,
}

impl Feed {
    /// The first link of the feed with a relation.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{Feed, Link, Relation};
    ///
    /// let next = "https://museum.example/sdshare/fragments?after=1042";
    /// let feed = Feed::default().with_link(Link::to_feed(Relation::Next, next));
    /// assert_eq!(feed.link(&Relation::Next).map(|link| link.href.as_str()), Some(next));
    /// assert!(feed.link(&Relation::Hub).is_none());
    /// ```
    pub fn link(&self, relation: &Relation) -> Option<&Link> {
        self.links.iter().find(|link| link.relation == *relation)
    }

    /// Appends a link to the links.
    #[must_use]
    pub fn with_link(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }
}

/// An entry of a feed [rfc4287 §4.1.2].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// A permanent identifier; empty if it is missing.
    pub id: String,
    /// Title of the entry as text; may be markup of the publisher.
    pub title: String,
    /// Time of the last change of the collection, snapshot or resource; `None` if it cannot be
    /// read.
    pub updated: Option<Timestamp>,
    /// A description of the entry, for users.
    pub summary: Option<String>,
    /// Author of the entry; `None` for the author of the feed.
    pub author: Option<String>,
    /// All links of the entry, in order.
    pub links: Vec<Link>,
    /// The IRIs of the entry's resources: exactly one in a fragments feed
    /// [sdshare §Fragments Feed]. Entries of older servers have several, and the fragment describes
    /// all.
    pub resources: Vec<String>,
    /// Whether the entry is marked as a deletion; see [`CATEGORIES`](crate::CATEGORIES). Most
    /// servers do not mark deletions: then the fragment is empty.
    pub is_deleted: bool,
    /// The line of the entry's start tag, from 1; 0 for an entry that was not read.
    pub line: u64,
}

/// A link of a feed or entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The relation of the target to the feed or entry.
    pub relation: Relation,
    /// URL of the target, absolute.
    pub href: String,
    /// The media type of the target, as written.
    pub media_type: Option<String>,
    /// The language of the target, as written.
    pub hreflang: Option<String>,
}

impl Link {
    /// A link to an address.
    pub fn new(relation: Relation, href: impl Into<String>) -> Self {
        Self { relation, href: href.into(), media_type: None, hreflang: None }
    }

    /// A link to a feed, with the media type of Atom.
    pub fn to_feed(relation: Relation, href: impl Into<String>) -> Self {
        Self::new(relation, href).with_type(ATOM_MEDIA_TYPE)
    }

    /// Sets the media type of the target.
    #[must_use]
    pub fn with_type(mut self, media_type: impl Into<String>) -> Self {
        self.media_type = Some(media_type.into());
        self
    }

    /// The media type without parameters, in lower case; empty if it is missing.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{Link, Relation};
    ///
    /// let link = Link::new(Relation::Fragment, "https://museum.example/coins/1042")
    ///     .with_type("Text/Turtle; charset=UTF-8");
    /// assert_eq!(link.essence(), "text/turtle");
    /// ```
    pub fn essence(&self) -> String {
        let written = self.media_type.as_deref().unwrap_or_default();
        let essence = written.split_once(';').map_or(written, |(essence, _)| essence);
        essence.trim_ascii().to_ascii_lowercase()
    }
}

/// The kinds of feeds [sdshare §Server Role].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FeedKind {
    /// The collections of a server.
    Overview,
    /// The two feeds of a collection.
    Collection,
    /// The snapshots of a collection.
    Snapshots,
    /// The chunks of a snapshot.
    ChunkedSnapshot,
    /// The changed resources of a collection.
    Fragments,
}

impl FeedKind {
    /// The name of the kind in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Overview => "overview feed",
            Self::Collection => "collection feed",
            Self::Snapshots => "snapshots feed",
            Self::ChunkedSnapshot => "chunked snapshot feed",
            Self::Fragments => "fragments feed",
        }
    }

    /// The relation of the link in an entry of this kind of feed. For a collection feed, the
    /// relation in one of its two entries.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{FeedKind, Relation};
    ///
    /// assert_eq!(FeedKind::Snapshots.relation(), Relation::Snapshot);
    /// assert_eq!(
    ///     FeedKind::Fragments.relation().to_string(),
    ///     "http://www.sdshare.org/2012/core/fragment",
    /// );
    /// ```
    pub const fn relation(self) -> Relation {
        match self {
            Self::Overview => Relation::CollectionFeed,
            Self::Collection => Relation::FragmentsFeed,
            Self::Snapshots => Relation::Snapshot,
            Self::ChunkedSnapshot => Relation::SnapshotComponent,
            Self::Fragments => Relation::Fragment,
        }
    }
}

impl Entry {
    /// The kind of feed that the entry belongs to, by its links and resources; `None` if they do
    /// not show it.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{Entry, FeedKind, Link, Relation};
    ///
    /// let part = Link::new(Relation::SnapshotComponent, "https://museum.example/snapshot/1.nt");
    /// assert_eq!(Entry::default().with_link(part).kind(), Some(FeedKind::ChunkedSnapshot));
    /// let page = Link::new(Relation::Alternate, "https://museum.example/coins");
    /// assert_eq!(Entry::default().with_link(page).kind(), None);
    /// ```
    pub fn kind(&self) -> Option<FeedKind> {
        if !self.resources.is_empty() {
            return Some(FeedKind::Fragments);
        }
        self.links.iter().find_map(|link| match link.relation {
            Relation::CollectionFeed => Some(FeedKind::Overview),
            Relation::SnapshotsFeed | Relation::FragmentsFeed => Some(FeedKind::Collection),
            Relation::Snapshot | Relation::ChunkedSnapshot => Some(FeedKind::Snapshots),
            Relation::SnapshotComponent => Some(FeedKind::ChunkedSnapshot),
            Relation::Fragment => Some(FeedKind::Fragments),
            _ => None,
        })
    }

    /// The links with a relation. If the entry does not have one, the links with `alternate`, the
    /// only relation that some older servers use.
    ///
    /// In a collection feed, `alternate` does not show which of the two feeds is meant, so it is
    /// not used there.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::{Entry, Link, Relation};
    ///
    /// // A server of an older draft, whose links have no relation of SDShare.
    /// let url = "https://archive.example/fragments/88";
    /// let entry = Entry::default().with_link(Link::new(Relation::Alternate, url));
    /// let targets: Vec<_> = entry.targets(&Relation::Fragment).map(|link| &link.href).collect();
    /// assert_eq!(targets, [url]);
    /// ```
    pub fn targets(&self, relation: &Relation) -> impl Iterator<Item = &Link> {
        let has = |relation: &Relation| self.links.iter().any(|link| link.relation == *relation);
        let alone = matches!(
            relation,
            Relation::SnapshotsFeed | Relation::FragmentsFeed | Relation::ChunkedSnapshot
        );
        let wanted = if has(relation) || alone { relation.clone() } else { Relation::Alternate };
        self.links.iter().filter(move |link| link.relation == wanted)
    }

    /// Appends a link to the links.
    #[must_use]
    pub fn with_link(mut self, link: Link) -> Self {
        self.links.push(link);
        self
    }

    /// Empties the entry for the next one in a feed, reusing its allocations.
    pub fn clear(&mut self) {
        self.id.clear();
        self.title.clear();
        self.links.clear();
        self.resources.clear();
        (self.updated, self.summary, self.author, self.line) = (None, None, None, 0);
        self.is_deleted = false;
    }
}
