//! Relations of links, in the spellings of 1.0 and of older drafts.

use abreast_webtypes::excerpt;

/// Namespace of Atom [rfc4287 §1.2].
pub const ATOM_NAMESPACE: &str = "http://www.w3.org/2005/Atom";
/// Namespace of SDShare 1.0, of the element `resource` and all relations.
pub const SDSHARE_NAMESPACE: &str = "http://www.sdshare.org/2012/core/";
/// Namespace of the draft of 2010, which some servers still use.
pub const SDSHARE_2010_NAMESPACE: &str = "http://www.egovpt.org/sdshare";

/// The scheme of categories for information that SDShare does not have an element for
/// [rfc4287 §4.2.2]: `files` in a fragments feed whose fragments are files, and `deleted` in the
/// entry of a resource that does not exist any more. They are hints, which other clients ignore.
pub const CATEGORIES: &str = "urn:abreast:sdshare";

/// Media type of all feeds of SDShare [rfc4287 §7].
pub const ATOM_MEDIA_TYPE: &str = "application/atom+xml";

/// The namespaces that the reader knows, in the order of the constants of `parser`.
pub(crate) const KNOWN: &[&str] = &[
    ATOM_NAMESPACE,
    SDSHARE_NAMESPACE,
    "http://www.sdshare.org/2012/core",
    SDSHARE_2010_NAMESPACE,
    "http://www.egovpt.org/sdshare/",
];

/// The relation of a link [sdshare §Server Role, rfc4287 §4.2.7.2, rfc5005 §3].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Relation {
    /// To the collection feed of a collection, in an overview feed.
    CollectionFeed,
    /// To the snapshots feed of a collection.
    SnapshotsFeed,
    /// To the fragments feed of a collection.
    FragmentsFeed,
    /// To the data of a snapshot.
    Snapshot,
    /// To the feed of the chunks of a snapshot.
    ChunkedSnapshot,
    /// To a chunk of a snapshot.
    SnapshotComponent,
    /// To the description of a resource.
    Fragment,
    /// To another form of the entry or feed; every link of SDShare is repeated with this relation.
    Alternate,
    /// To the document that has the link.
    SelfLink,
    /// To a WebSub hub of the feed [websub §4].
    Hub,
    /// To the first page of a feed.
    First,
    /// To the page before this one.
    Previous,
    /// To the page after this one.
    Next,
    /// To the last page of a feed.
    Last,
    /// Any other relation, as it is written.
    Other(String),
}

/// The relations by the part after the namespace.
const SDSHARE: [(&str, Relation); 7] = [
    ("collectionfeed", Relation::CollectionFeed),
    ("snapshotsfeed", Relation::SnapshotsFeed),
    ("fragmentsfeed", Relation::FragmentsFeed),
    ("snapshot", Relation::Snapshot),
    ("chunked-snapshot", Relation::ChunkedSnapshot),
    ("snapshot-component", Relation::SnapshotComponent),
    ("fragment", Relation::Fragment),
];

const REGISTERED: [(&str, Relation); 8] = [
    ("alternate", Relation::Alternate),
    ("self", Relation::SelfLink),
    ("hub", Relation::Hub),
    ("first", Relation::First),
    ("previous", Relation::Previous),
    ("prev", Relation::Previous),
    ("next", Relation::Next),
    ("last", Relation::Last),
];

impl Relation {
    /// Reads the value of `rel`, and whether its spelling differs from SDShare 1.0 and Atom.
    ///
    /// Lenient: the namespace of the draft of 2010, and any letter case.
    ///
    /// # Examples
    /// ```
    /// use abreast_sdshare::Relation;
    ///
    /// let (relation, is_other_spelling) =
    ///     Relation::parse("http://www.sdshare.org/2012/core/SnapshotsFeed");
    /// assert_eq!(relation, Relation::SnapshotsFeed);
    /// assert!(is_other_spelling);
    /// ```
    pub fn parse(text: &str) -> (Self, bool) {
        let find = |table: &[(&str, Self)], name: &str| {
            let same = |row: &&(&str, Self)| row.0.eq_ignore_ascii_case(name);
            table.iter().find(same).map(|(exact, relation)| (relation.clone(), *exact != name))
        };
        // The longest namespace first, because the shorter ones are its prefixes.
        let namespaces = [KNOWN[1], KNOWN[4]];
        for (number, namespace) in namespaces.into_iter().enumerate() {
            let rest =
                text.get(..namespace.len()).filter(|start| start.eq_ignore_ascii_case(namespace));
            if let Some(start) = rest
                && let Some((relation, odd)) = find(&SDSHARE, &text[namespace.len()..])
            {
                return (relation, odd || number > 0 || start != namespace);
            }
        }
        let name = text.strip_prefix("http://www.iana.org/assignments/relation/").unwrap_or(text);
        find(&REGISTERED, name).unwrap_or_else(|| (Self::Other(text.to_owned()), false))
    }

    /// The relation of SDShare with this name after its namespace, in any letter case.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let (_, relation) = SDSHARE.iter().find(|(own, _)| own.eq_ignore_ascii_case(name))?;
        Some(relation.clone())
    }

    /// The value of `rel`, in two parts to be concatenated.
    pub fn parts(&self) -> (&'static str, &str) {
        if let Some((name, _)) = SDSHARE.iter().find(|(_, relation)| relation == self) {
            return (SDSHARE_NAMESPACE, name);
        }
        if let Self::Other(text) = self {
            return ("", text);
        }
        let name = REGISTERED.iter().find(|(_, relation)| relation == self);
        ("", name.map_or("", |(name, _)| name))
    }

    /// Whether SDShare defines the relation [sdshare §Server Role].
    pub fn is_sdshare(&self) -> bool {
        SDSHARE.iter().any(|(_, relation)| relation == self)
    }

    /// Whether a link with this relation must be repeated with `alternate`.
    ///
    /// Only the link to the whole snapshot is repeated, not the link to its chunks
    /// [sdshare §Snapshots Feed].
    pub fn needs_alternate(&self) -> bool {
        self.is_sdshare() && *self != Self::ChunkedSnapshot
    }

    /// Whether the target of the link is a feed.
    pub fn leads_to_feed(&self) -> bool {
        matches!(
            self,
            Self::CollectionFeed
                | Self::SnapshotsFeed
                | Self::FragmentsFeed
                | Self::ChunkedSnapshot
        )
    }
}

impl std::fmt::Display for Relation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (namespace, name) = self.parts();
        write!(f, "{namespace}{name}")
    }
}

/// The message about an Atom feed without links of SDShare, by its title, which may be empty.
pub fn other_feed(title: &str) -> String {
    let title = if title.is_empty() { String::new() } else { format!(" (\"{}\")", excerpt(title)) };
    format!("an Atom feed{title} that is not of SDShare: no entry has a link of SDShare")
}

/// Whether the first bytes of an Atom feed contain the namespace of SDShare or one of its
/// relations.
///
/// # Examples
/// ```
/// use abreast_sdshare::has_mark;
///
/// let news = br#"<feed xmlns="http://www.w3.org/2005/Atom"><title>News of the library</title>"#;
/// let fragments = br#"<feed xmlns="http://www.w3.org/2005/Atom"
///   xmlns:s="http://www.sdshare.org/2012/core/"><title>Fragments</title>"#;
/// assert!(has_mark(fragments));
/// assert!(!has_mark(news));
/// ```
pub fn has_mark(begin: &[u8]) -> bool {
    const MARK: &[u8] = b"sdshare";
    let text = begin.trim_ascii_start();
    text.contains(&b'<') && text.windows(MARK.len()).any(|window| window.eq_ignore_ascii_case(MARK))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_read_back_as_they_are_written() {
        for (_, relation) in SDSHARE.iter().chain(&REGISTERED) {
            assert_eq!(Relation::parse(&relation.to_string()), (relation.clone(), false));
        }
        let other = Relation::Other("describedby".to_owned());
        assert_eq!(Relation::parse("describedby"), (other, false));
    }

    #[test]
    fn older_spellings_are_read_and_noticed() {
        for (text, relation) in [
            ("http://www.egovpt.org/sdshare/fragmentsfeed", Relation::FragmentsFeed),
            ("http://www.egovpt.org/sdshare/snapshot", Relation::Snapshot),
            ("http://www.sdshare.org/2012/core/SnapshotsFeed", Relation::SnapshotsFeed),
            ("HTTP://www.sdshare.org/2012/core/fragment", Relation::Fragment),
            ("Next", Relation::Next),
        ] {
            assert_eq!(Relation::parse(text), (relation, true), "{text}");
        }
        let iana = "http://www.iana.org/assignments/relation/self";
        assert_eq!(Relation::parse(iana), (Relation::SelfLink, false));
        for text in ["http://www.sdshare.org/2012/core/", "http://www.sdshare.org/2012/core/é", "é"]
        {
            assert!(matches!(Relation::parse(text).0, Relation::Other(_)), "{text}");
        }
    }
}
