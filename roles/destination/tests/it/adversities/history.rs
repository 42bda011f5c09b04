//! The history of a Source, in terms that all protocols share: entities with versions, pages of
//! changes, one snapshot, and the deviations of the documents that show them.

use abreast_webtypes::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) const SECOND: i64 = 1_000_000;
pub(crate) const MINUTE: i64 = 60 * SECOND;
pub(crate) const HOUR: i64 = 60 * MINUTE;
pub(crate) const DAY: i64 = 24 * HOUR;
/// 2026-01-01, microseconds since 1970.
pub(crate) const BEGIN: i64 = 1_767_225_600 * SECOND;
/// 2099-01-01.
pub(crate) const FUTURE: i64 = 4_070_908_800 * SECOND;
/// An entity that never changes.
pub(crate) const ANCHOR: usize = 99;
/// Between two changes; the sum is never a whole second.
const STEP: i64 = 7 * SECOND + 123;

/// The version of each entity.
pub(crate) type Versions = BTreeMap<usize, u32>;

/// What happened to an entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Created,
    Updated,
    Deleted,
    /// A type of activity or change that no specification has.
    Unknown,
    /// An update whose entry does not contain its entity.
    Nameless,
}

impl Kind {
    /// The value of `change` in ResourceSync.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated | Self::Nameless => "updated",
            Self::Deleted => "deleted",
            Self::Unknown => "sneezed",
        }
    }
}

/// One change of an entity.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The number of the change, which identifies it.
    pub(crate) id: usize,
    pub(crate) entity: usize,
    pub(crate) kind: Kind,
    pub(crate) version: u32,
    /// The time in documents, in microseconds.
    pub(crate) time: i64,
}

/// One document of changes, or one package.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) number: i64,
    /// The changes in the order of the document, for feeds that start with the oldest change.
    pub(crate) changes: Vec<Change>,
    pub(crate) from: i64,
    /// The end of a page that does not grow any more.
    pub(crate) until: Option<i64>,
    /// Whether other documents contain the page.
    pub(crate) is_named: bool,
}

impl Page {
    pub(crate) const fn new(number: i64, from: i64) -> Self {
        Self { number, changes: Vec::new(), from, until: None, is_named: true }
    }
}

/// The direction of a link between pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Toward {
    Older,
    Newer,
}

/// The target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Page(i64),
    /// The document at the address of the Source, or the document with the pages.
    Entry,
}

/// The precision of a time in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precision {
    Full,
    /// Half seconds, as some databases round.
    Half,
    Second,
    Minute,
    Day,
}

impl Precision {
    pub(crate) fn text(self, micros: i64) -> String {
        let unit = match self {
            Self::Full => 1,
            Self::Half => SECOND / 2,
            Self::Second => SECOND,
            Self::Minute => MINUTE,
            Self::Day => DAY,
        };
        let text = Timestamp::from_micros(micros.div_euclid(unit) * unit).to_string();
        match self {
            Self::Day => text[..10].to_owned(),
            Self::Minute => format!("{}Z", &text[..16]),
            _ => text,
        }
    }
}

/// The `Date` of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// As the history.
    Right,
    /// Always this time.
    Stopped(i64),
    /// Responses without `Date`.
    None,
}

/// Pages that never end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endless {
    /// Behind the oldest page, without changes.
    EmptyOlder,
    /// Behind the oldest page, each with a change of long ago.
    FullOlder,
    /// After the newest page, without changes.
    EmptyNewer,
}

/// All entities at one time.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    pub(crate) versions: Versions,
    pub(crate) modified: BTreeMap<usize, i64>,
    pub(crate) at: i64,
}

/// A Source, and how its documents deviate.
#[derive(Clone, Debug)]
pub(crate) struct History {
    pub(crate) versions: Versions,
    /// The time of each entity's last change in documents.
    pub(crate) modified: BTreeMap<usize, i64>,
    /// Entities that were ever deleted.
    pub(crate) deleted: BTreeSet<usize>,
    pub(crate) pages: Vec<Page>,
    pub(crate) snapshot: Snapshot,
    /// The time now, microseconds.
    pub(crate) now: i64,
    /// Changes of a page.
    pub(crate) page_size: usize,
    /// Changes that were not pushed yet.
    pub(crate) unpushed: Vec<Change>,
    /// The time up to which changes were pushed.
    pub(crate) pushed_until: i64,
    next_change: usize,
    next_version: u32,

    pub(crate) clock: Clock,
    /// The precision of the times of changes.
    pub(crate) precision: Precision,
    /// The precision of intervals, and of the time of snapshots.
    pub(crate) spans: Precision,
    pub(crate) has_digests: bool,
    /// The last modification of every entity in documents.
    pub(crate) lastmod: Option<i64>,
    /// Links that lead elsewhere, or nowhere.
    pub(crate) links: BTreeMap<(i64, Toward), Option<Target>>,
    /// Where the entry point leads instead of to the newest page.
    pub(crate) newest_link: Option<Target>,
    /// Where the entry point leads instead of to the oldest page.
    pub(crate) oldest_link: Option<Target>,
    /// The document with the pages contains itself too.
    pub(crate) index_names_itself: bool,
    pub(crate) endless: Option<Endless>,
    /// Only the entry point leads to the newest page; pages lead to no other.
    pub(crate) is_loose: bool,
    /// Entries are only such as the protocol has for other uses.
    pub(crate) is_foreign: bool,
    /// Whether the Source has no snapshot.
    pub(crate) lacks_snapshot: bool,
    /// Documents mark deletions where that is not part of the protocol.
    pub(crate) marks_deletions: bool,
    /// The text of documents is altered by this.
    pub(crate) altered: Option<fn(String) -> String>,
}

impl History {
    /// One entity that never changes, and was there from the beginning.
    pub(crate) fn new() -> Self {
        let (id, entity, kind, version, time) = (1, ANCHOR, Kind::Created, 1, BEGIN);
        let mut first = Page::new(0, BEGIN);
        first.changes.push(Change { id, entity, kind, version, time });
        let (versions, modified) =
            (Versions::from([(ANCHOR, 1)]), BTreeMap::from([(ANCHOR, BEGIN)]));
        let snapshot =
            Snapshot { versions: versions.clone(), modified: modified.clone(), at: BEGIN };
        Self {
            versions,
            modified,
            deleted: BTreeSet::new(),
            pages: vec![first],
            snapshot,
            now: BEGIN,
            page_size: 3,
            unpushed: Vec::new(),
            pushed_until: BEGIN,
            next_change: 2,
            next_version: 2,
            clock: Clock::Right,
            precision: Precision::Full,
            spans: Precision::Full,
            has_digests: true,
            lastmod: None,
            links: BTreeMap::new(),
            newest_link: None,
            oldest_link: None,
            index_names_itself: false,
            endless: None,
            is_loose: false,
            is_foreign: false,
            lacks_snapshot: false,
            marks_deletions: true,
            altered: None,
        }
    }

    /// The same history with the pages of another one.
    pub(crate) fn with_pages_of(history: &Self, pages: &Self) -> Self {
        Self { pages: pages.pages.clone(), ..history.clone() }
    }

    /// Continues the numbers of another history, so that versions do not occur twice.
    pub(crate) const fn go_on_from(&mut self, other: &Self) {
        self.next_change = other.next_change;
        self.next_version = other.next_version;
        self.pushed_until = other.pushed_until;
    }

    /// The text of a document as it is served.
    pub(crate) fn written(&self, text: String) -> String {
        match self.altered {
            Some(altered) => altered(text),
            None => text,
        }
    }

    /// Goes on by the time between two changes.
    fn tick(&mut self) -> i64 {
        self.now += STEP;
        self.now
    }

    /// Changes an entity without a record of the change.
    pub(crate) fn apply(&mut self, entity: usize, kind: Kind, time: i64) -> Change {
        let id = self.next_change;
        self.next_change += 1;
        if kind == Kind::Deleted {
            self.versions.remove(&entity);
            self.deleted.insert(entity);
        } else {
            self.versions.insert(entity, self.next_version);
            self.next_version += 1;
        }
        self.modified.insert(entity, time);
        let version = self.next_version - 1;
        Change { id, entity, kind, version, time }
    }

    /// Records a change in the newest page, and starts another page before that if the page is
    /// full.
    pub(crate) fn record(&mut self, change: Change) {
        if self.newest().changes.len() >= self.page_size {
            self.close();
        }
        self.unpushed.push(change.clone());
        self.newest_mut().changes.push(change);
    }

    /// Closes the newest page, and starts another page at its end.
    pub(crate) fn close(&mut self) {
        let now = self.now;
        let newest = self.newest_mut();
        let end = newest.changes.iter().map(|change| change.time).max().unwrap_or(newest.from);
        let end = end.min(now);
        newest.until = Some(end);
        let number = newest.number + 1;
        self.pages.push(Page::new(number, end));
    }

    pub(crate) fn newest(&self) -> &Page {
        self.pages.last().unwrap()
    }

    pub(crate) fn newest_mut(&mut self) -> &mut Page {
        self.pages.last_mut().unwrap()
    }

    /// Creates or updates an entity at a time.
    pub(crate) fn set_at(&mut self, entity: usize, time: i64) {
        let is_there = self.versions.contains_key(&entity);
        let kind = if is_there { Kind::Updated } else { Kind::Created };
        let change = self.apply(entity, kind, time);
        self.record(change);
    }

    pub(crate) fn delete_at(&mut self, entity: usize, time: i64) {
        let change = self.apply(entity, Kind::Deleted, time);
        self.record(change);
    }

    pub(crate) fn set(&mut self, entity: usize) {
        let time = self.tick();
        self.set_at(entity, time);
    }

    pub(crate) fn delete(&mut self, entity: usize) {
        let time = self.tick();
        self.delete_at(entity, time);
    }

    /// Creates entities.
    pub(crate) fn create(&mut self, entities: impl IntoIterator<Item = usize>) {
        entities.into_iter().for_each(|entity| self.set(entity));
    }

    /// One change of each kind, of entities that are there or not.
    pub(crate) fn change(&mut self) {
        self.set(1);
        self.delete(2);
        self.create([6]);
    }

    /// Changes an entity; the entry is not as it should be. Returns its number.
    pub(crate) fn set_oddly(&mut self, entity: usize, kind: Kind) -> usize {
        let change = self.apply(entity, kind, self.now + 1);
        self.wait(2);
        let id = change.id;
        self.record(change);
        id
    }

    /// The entry of a change is as it should be.
    pub(crate) fn correct(&mut self, id: usize) {
        let changes = self.pages.iter_mut().flat_map(|page| &mut page.changes);
        changes.filter(|change| change.id == id).for_each(|change| change.kind = Kind::Updated);
    }

    /// Goes on by a time.
    pub(crate) fn wait(&mut self, micros: i64) {
        self.now += micros;
    }

    /// Makes a snapshot of now.
    pub(crate) fn make_snapshot(&mut self) {
        self.tick();
        let (versions, modified) = (self.versions.clone(), self.modified.clone());
        self.snapshot = Snapshot { versions, modified, at: self.now };
    }

    /// Removes all pages before the newest one.
    pub(crate) fn prune(&mut self) {
        let newest = self.pages.len() - 1;
        self.pages.drain(..newest);
    }

    pub(crate) fn page(&self, number: i64) -> Option<&Page> {
        self.pages.iter().find(|page| page.number == number)
    }

    pub(crate) fn page_mut(&mut self, number: i64) -> &mut Page {
        self.pages.iter_mut().find(|page| page.number == number).unwrap()
    }

    /// Removes the page that closed last from all that name it.
    pub(crate) fn hide(&mut self, number: i64) {
        self.page_mut(number).is_named = false;
    }

    /// A page as it is served; with endless ones also pages that nobody wrote.
    pub(crate) fn served_page(&self, number: i64) -> Option<Page> {
        if let Some(page) = self.page(number) {
            return Some(page.clone());
        }
        let oldest = self.pages[0].number;
        let empty = Page { until: Some(BEGIN - DAY), ..Page::new(number, BEGIN - DAY) };
        match self.endless? {
            Endless::EmptyOlder if number < oldest => Some(empty),
            Endless::FullOlder if number < oldest => {
                let time = BEGIN - DAY + number * SECOND;
                let kind = Kind::Deleted;
                let change = Change { id: 0, entity: 900, kind, version: 0, time };
                let (from, until) = (time - SECOND, Some(time));
                Some(Page { changes: vec![change], from, until, ..empty })
            }
            Endless::EmptyNewer if number > self.newest().number => {
                Some(Page { from: self.newest().from, until: None, ..empty })
            }
            _ => None,
        }
    }

    /// The page to which the entry point leads.
    pub(crate) fn served_newest(&self) -> Option<Page> {
        match self.entry_newest() {
            Target::Page(number) => self.served_page(number),
            Target::Entry => Some(self.newest().clone()),
        }
    }

    /// Where the link of a page leads.
    pub(crate) fn link(&self, page: i64, toward: Toward) -> Option<Target> {
        if let Some(target) = self.links.get(&(page, toward)) {
            return *target;
        }
        if self.is_loose {
            return None;
        }
        let is_endless = match self.endless {
            Some(Endless::EmptyOlder | Endless::FullOlder) => toward == Toward::Older,
            Some(Endless::EmptyNewer) => toward == Toward::Newer,
            None => false,
        };
        let (oldest, newest) = (self.pages[0].number, self.newest().number);
        let next = |from: i64| if toward == Toward::Older { from - 1 } else { from + 1 };
        let mut number = next(page);
        while (oldest..=newest).contains(&number) {
            if self.page(number).is_some_and(|page| page.is_named) {
                return Some(Target::Page(number));
            }
            number = next(number);
        }
        is_endless.then_some(Target::Page(number))
    }

    /// The newest page according to the entry point.
    pub(crate) fn entry_newest(&self) -> Target {
        self.newest_link.unwrap_or(Target::Page(self.newest().number))
    }

    pub(crate) fn entry_oldest(&self) -> Target {
        let oldest = self.pages.iter().find(|page| page.is_named).unwrap_or(&self.pages[0]);
        self.oldest_link.unwrap_or(Target::Page(oldest.number))
    }

    /// The text of the time of a change in documents.
    pub(crate) fn stamp(&self, micros: i64) -> String {
        self.precision.text(micros)
    }

    /// The text of the end of an interval, or of the time of a snapshot, in documents.
    pub(crate) fn span(&self, micros: i64) -> String {
        self.spans.text(micros)
    }

    /// The text of an entity's last modification in documents.
    pub(crate) fn lastmod(&self, modified: Option<i64>) -> String {
        self.stamp(self.lastmod.or(modified).unwrap_or(BEGIN))
    }
}
