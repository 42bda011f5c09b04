//! Collects facts from the entries of a feed, in bounded memory.

use crate::report::{Findings, rules as r};
use crate::walk::sketch::{Sketch, hash};
use abreast_rdf::Syntax;
use abreast_sdshare::{Entry, FeedKind, Link, Relation};
use abreast_webtypes::{Timestamp, excerpt};
use std::collections::{BTreeSet, HashMap};

/// Most entries of a feed that are followed; of a fragments feed, only a sample is followed.
pub(super) const ENTRIES_MAX: usize = 10_000;
/// Most ids of entries that are remembered. About 50 MB.
const IDS_MAX: usize = 1 << 20;
/// Number of the newest entries from which the values for `since` are selected.
const NEWEST_MAX: usize = 20;
/// Most media types of a feed that are reported.
const FORMATS_MAX: usize = 20;
/// Most seconds by which the server's clock may be behind.
const CLOCK_SECONDS: i64 = 60;

/// Facts about a feed, collected from its entries page by page.
pub(super) struct Reading {
    seed: u64,
    pub(super) kind: Option<FeedKind>,
    /// Entries of all feeds except fragments feeds.
    pub(super) entries: Vec<Entry>,
    pub(super) is_cut: bool,
    /// Sample of entries of a fragments feed.
    pub(super) sample: Sketch<Entry>,
    /// The newest entries, as time and resources.
    pub(super) newest: BTreeSet<(Timestamp, Vec<String>)>,
    pub(super) formats: BTreeSet<String>,
    /// Hashes of the version and the resource of each entry, by the hash of its id.
    ids: HashMap<u64, (u64, u64)>,
    /// Number of entries on this page that are on no earlier page.
    pub(super) fresh: u64,
    pub(super) is_complete: bool,
    /// Whether the fragments of the feed are files, not descriptions.
    pub(super) has_files: bool,
}

impl Reading {
    /// Starts a feed. `kind` is the kind that the link to the feed shows; entries of older servers
    /// do not show a kind.
    pub(super) fn new(seed: u64, sample: usize, kind: Option<FeedKind>) -> Self {
        Self {
            seed,
            kind,
            entries: Vec::new(),
            is_cut: false,
            sample: Sketch::new(sample),
            newest: BTreeSet::new(),
            formats: BTreeSet::new(),
            ids: HashMap::new(),
            fresh: 0,
            is_complete: false,
            has_files: false,
        }
    }

    pub(super) fn newest_time(&self) -> Option<Timestamp> {
        self.newest.last().map(|(time, _)| *time)
    }

    /// Adds an entry; `now` is the clock of the server.
    pub(super) fn entry(&mut self, entry: &Entry, now: Option<Timestamp>, found: &mut Findings) {
        self.kind = self.kind.or(entry.kind());
        let place = (entry.line, 0);
        self.once(entry, found);
        let is_data = |link: &&Link| link.relation.is_sdshare();
        let is_extra = |link: &&Link| {
            link.relation == Relation::Alternate
                && entry.links.iter().any(|other| is_data(&other))
                && !entry.links.iter().any(|other| is_data(&other) && other.href == link.href)
        };
        if let Some(link) = entry.links.iter().find(is_extra) {
            found.add(&r::SDS_EXTRA, place, || format!("{} is `alternate`", excerpt(&link.href)));
        }
        if let Some(updated) = entry.updated {
            if let Some(now) = now
                && updated.as_seconds() > now.as_seconds() + CLOCK_SECONDS
            {
                let message = || format!("`updated` is {updated}, and it is {now} at the server");
                found.add(&r::SDS_FUTURE, place, message);
            }
            let key = (updated, entry.resources.clone());
            if self.newest.len() < NEWEST_MAX
                || self.newest.first().is_some_and(|first| *first < key)
            {
                self.newest.insert(key);
                if self.newest.len() > NEWEST_MAX {
                    self.newest.pop_first();
                }
            }
        }
        let Some(kind) = self.kind else { return };
        self.formats_of(entry, kind, found);
        match kind {
            FeedKind::Fragments => {
                let first = entry.resources.first().map_or("", String::as_str);
                if let Some(kept) = self.sample.entry(hash(self.seed, first), || entry.clone())
                    && kept.updated < entry.updated
                {
                    kept.clone_from(entry);
                }
            }
            _ if self.entries.len() < ENTRIES_MAX => self.entries.push(entry.clone()),
            _ => self.is_cut = true,
        }
    }

    fn formats_of(&mut self, entry: &Entry, kind: FeedKind, found: &mut Findings) {
        if matches!(kind, FeedKind::Overview | FeedKind::Collection) {
            return;
        }
        let types: Vec<String> =
            entry.targets(&kind.relation()).map(abreast_sdshare::Link::essence).collect();
        let is_recommended = |name: &String| {
            matches!(Syntax::of_sdshare_media_type(name), Some(Syntax::RdfXml | Syntax::NTriples))
        };
        if types.iter().any(|name| Syntax::of_media_type(name).is_some())
            && !types.iter().any(is_recommended)
        {
            let message = || format!("it is offered as {}", excerpt(&types.join(", ")));
            found.add(&r::SDS_FORMATS, (entry.line, 0), message);
        }
        for name in types {
            if self.formats.len() < FORMATS_MAX && !name.is_empty() {
                self.formats.insert(name);
            }
        }
    }

    /// Reports different entries with the same id. The same id is allowed for versions of an entry
    /// [rfc4287 §4.1.1].
    fn once(&mut self, entry: &Entry, found: &mut Findings) {
        let about = entry.resources.first().or_else(|| {
            let own = entry.links.iter().find(|link| link.relation != Relation::Alternate);
            own.map(|link| &link.href)
        });
        let about = hash(self.seed, about.map_or("", String::as_str));
        let version = entry.updated.map_or(0, |time| time.as_micros() as u64);
        let id = hash(self.seed, &entry.id);
        if entry.id.is_empty() {
            self.fresh += 1;
            return;
        }
        let Some((before, of)) = self.ids.get(&id).copied() else {
            self.fresh += 1;
            if self.ids.len() < IDS_MAX {
                self.ids.insert(id, (version, about));
            }
            return;
        };
        let place = (entry.line, 0);
        if of != about {
            let message = || format!("`id` {} is that of another entry", excerpt(&entry.id));
            found.add(&r::ATOM_ID_ONCE, place, message);
        } else if before == version {
            let message =
                || format!("`id` {} is listed before, with this `updated`", excerpt(&entry.id));
            found.add(&r::ATOM_ID_ONCE, place, message);
            return;
        }
        self.fresh += 1;
        self.ids.insert(id, (version, about));
    }
}
