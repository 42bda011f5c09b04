//! Requirements of SDShare and Atom for entries and feeds, checked while reading.

use crate::feed::finding::Findings;
use crate::{ATOM_MEDIA_TYPE, Entry, Feed, FeedKind, Link, Relation};
use abreast_webtypes::excerpt;

/// The elements that an entry had, if its fields do not show them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) content: bool,
    pub(crate) updated: bool,
}

/// Counts for the checks at the end of the feed.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// The line of the root, from 1.
    pub(crate) line: u64,
    pub(crate) feed_updated: bool,
    kind: Option<FeedKind>,
    entries: u64,
    snapshots_feeds: u64,
    fragments_feeds: u64,
    /// The line of the first entry without an author.
    without_author: Option<u64>,
}

/// Checks a complete entry.
pub(crate) fn check_entry(entry: &Entry, seen: Seen, tally: &mut Tally, findings: &mut Findings) {
    let mut add = |code, message: String| findings.add(code, entry.line, message);
    if entry.id.is_empty() {
        add("atom.id", "an entry without `id` [rfc4287 §4.1.2]".to_owned());
    }
    if entry.title.is_empty() {
        add("atom.title", "an entry without `title` [rfc4287 §4.1.2]".to_owned());
    }
    if !seen.updated {
        add("atom.updated", "an entry without `updated` [rfc4287 §4.1.2]".to_owned());
    }
    if entry.author.is_none() {
        tally.without_author.get_or_insert(entry.line);
    }
    let alternates = || entry.links.iter().filter(|link| link.relation == Relation::Alternate);
    if !seen.content && alternates().next().is_none() {
        let message =
            "an entry without content has no link `alternate`, which it needs [rfc4287 §4.1.2]";
        add("atom.alternate", message.to_owned());
    }
    for (number, link) in entry.links.iter().enumerate() {
        let same = |other: &Link| {
            other.relation == Relation::Alternate
                && other.essence() == link.essence()
                && other.hreflang == link.hreflang
        };
        if link.relation == Relation::Alternate && entry.links[..number].iter().any(same) {
            let message = format!(
                "a second link `alternate` of the type \"{}\" [rfc4287 §4.1.2]",
                excerpt(link.media_type.as_deref().unwrap_or_default())
            );
            add("atom.alternate-twice", message);
        }
        let is_repeated = || {
            alternates().any(|other| other.href == link.href && other.essence() == link.essence())
        };
        if link.relation.needs_alternate() && !is_repeated() {
            let message = format!(
                "the link `{}` is not repeated as `alternate` with its type and address [sdshare §Server Role]",
                link.relation.parts().1
            );
            add("sdshare.alternate", message);
        }
        if link.relation.is_sdshare() {
            match link.media_type.as_deref() {
                None => {
                    let name = link.relation.parts().1;
                    add(
                        "sdshare.type",
                        format!("the link `{name}` has no `type` [sdshare §Server Role]"),
                    );
                }
                Some(written)
                    if link.relation.leads_to_feed() && link.essence() != ATOM_MEDIA_TYPE =>
                {
                    let message = format!(
                        "the link `{}` to a feed has the type \"{}\", not \"{ATOM_MEDIA_TYPE}\" [sdshare §Server Role]",
                        link.relation.parts().1,
                        excerpt(written)
                    );
                    add("sdshare.type", message);
                }
                Some(_) => {}
            }
        }
    }
    tally.entries += 1;
    let kind = entry.kind();
    let expected = tally.kind.or(kind);
    tally.kind = expected;
    let Some(expected) = expected else {
        add("sdshare.link", "an entry without a link of SDShare [sdshare §Server Role]".to_owned());
        return;
    };
    if let Some(kind) = kind.filter(|kind| *kind != expected) {
        let message = format!("an entry of a {} in a {}", kind.name(), expected.name());
        add("sdshare.mixed", message);
        return;
    }
    let count = |relation: &Relation| {
        entry.links.iter().filter(|link| link.relation == *relation).count() as u64
    };
    match expected {
        FeedKind::Collection => {
            tally.snapshots_feeds += count(&Relation::SnapshotsFeed);
            tally.fragments_feeds += count(&Relation::FragmentsFeed);
        }
        FeedKind::Overview if count(&Relation::CollectionFeed) != 1 => {
            let message = format!(
                "an entry with {} links `collectionfeed`, not one [sdshare §Overview Feed]",
                count(&Relation::CollectionFeed)
            );
            add("sdshare.link", message);
        }
        _ if count(&expected.relation()) == 0 => {
            let message = format!(
                "an entry of a {} without a link `{}` [sdshare §Server Role]",
                expected.name(),
                expected.relation().parts().1
            );
            add("sdshare.link", message);
        }
        _ => {}
    }
    if expected == FeedKind::Fragments && entry.resources.len() != 1 {
        let message = format!(
            "an entry with {} elements `resource`, not one [sdshare §Fragments Feed]",
            entry.resources.len()
        );
        add("sdshare.resource", message);
    }
}

impl Tally {
    /// Checks a complete feed.
    pub(crate) fn check(&self, feed: &Feed, base: &str, findings: &mut Findings) {
        let mut add = |code, message: String| findings.add(code, self.line, message);
        if feed.id.is_empty() {
            add("atom.id", "the feed has no `id` [rfc4287 §4.1.1]".to_owned());
        }
        if feed.title.is_empty() {
            add("atom.title", "the feed has no `title` [rfc4287 §4.1.1]".to_owned());
        }
        if !self.feed_updated {
            add("atom.updated", "the feed has no `updated` [rfc4287 §4.1.1]".to_owned());
        }
        if self.kind == Some(FeedKind::Collection)
            && (self.entries, self.snapshots_feeds, self.fragments_feeds) != (2, 1, 1)
        {
            let message = format!(
                "a collection feed of {}, with {} to a snapshots feed and {} to a fragments feed; \
                 it has two entries with one of them each [sdshare §Collection Feed]",
                abreast_webtypes::count(self.entries, "entry"),
                abreast_webtypes::count(self.snapshots_feeds, "link"),
                self.fragments_feeds
            );
            add("sdshare.collection", message);
        }
        let mut next = feed.links.iter().filter(|link| link.relation == Relation::Next);
        if let Some(page) = next.next() {
            let itself = feed.link(&Relation::SelfLink).is_some_and(|link| link.href == page.href);
            if page.href == base || itself {
                add("atom.paging-loop", "the next page is this page [rfc5005 §3]".to_owned());
            }
        }
        if next.next().is_some() {
            add(
                "atom.paging",
                "a second link to the next page [sdshare §Fragments Feed]".to_owned(),
            );
        }
        if feed.author.is_none()
            && let Some(line) = self.without_author.or((self.entries == 0).then_some(self.line))
        {
            let message = "neither the feed nor this entry has an author [rfc4287 §4.1.1]";
            findings.add("atom.author", line, message.to_owned());
        }
    }
}
