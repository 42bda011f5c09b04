//! Providers of change feeds, simulated: a random history of entities, served in the shape of one of
//! the feeds that are found, under the adversity that a seed has chosen. No sockets: a consumer asks
//! [`Provider::answer`].

mod pages;
mod shapes;

use crate::Random;
pub use shapes::{Paging, Precision, SHAPES, Shape};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Entities that are ever there.
const ENTITIES: u64 = 9;
/// Microseconds of a second, and of a day.
const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// 2026-01-01.
const EPOCH: i64 = 1_767_225_600 * SECOND;

/// What goes wrong at a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Fault {
    /// Entities change between two requests of a walk.
    Shifting,
    /// Several entities change at one time.
    EqualTimes,
    /// Documents end in the middle.
    Truncated,
    /// Requests are answered 429, 500 or 503, or not at all.
    Errors,
    /// Entities cannot be fetched for a time.
    Unreachable,
    /// The clock that the answers have is behind or ahead, and differs from that of the activities.
    Skew,
    /// The number of activities of a page changes.
    PageSize,
    /// The server is restored from a backup.
    Restored,
    /// Pages lead back to others, or to themselves.
    Loops,
    /// The newest page is empty.
    EmptyPage,
    /// The Entry Point is older than the pages.
    OldEntry,
    /// Activities and their ids are there twice.
    Duplicates,
    /// Activities are published some time after the changes.
    Late,
    /// The consumer is killed at any point.
    Kills,
}

const FAULTS: [(Fault, &str); 14] = [
    (Fault::Shifting, "shifting"),
    (Fault::EqualTimes, "equal times"),
    (Fault::Truncated, "truncated"),
    (Fault::Errors, "errors"),
    (Fault::Unreachable, "unreachable"),
    (Fault::Skew, "skew"),
    (Fault::PageSize, "page size"),
    (Fault::Restored, "restored"),
    (Fault::Loops, "loops"),
    (Fault::EmptyPage, "empty page"),
    (Fault::OldEntry, "old entry"),
    (Fault::Duplicates, "duplicates"),
    (Fault::Late, "late"),
    (Fault::Kills, "kills"),
];

/// The faults of one seed.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults(u16);

impl Faults {
    /// None of them, or each with a chance of one in three.
    fn draw(random: &mut Random) -> Self {
        let chosen = |_: &&(Fault, &str)| random.below(3) == 0;
        Self(FAULTS.iter().filter(chosen).fold(0, |all, (fault, _)| all | 1 << *fault as u16))
    }

    /// Whether it is one of them.
    pub const fn has(self, fault: Fault) -> bool {
        self.0 & 1 << fault as u16 != 0
    }

    /// One alone.
    pub const fn only(fault: Fault) -> Self {
        Self(1 << fault as u16)
    }

    /// Without one.
    #[must_use]
    pub const fn without(self, fault: Fault) -> Self {
        Self(self.0 & !(1 << fault as u16))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(FAULTS.iter().filter(|it| self.has(it.0)).map(|it| it.1)).finish()
    }
}

/// A change in the log of a provider.
#[derive(Clone, Debug)]
struct Change {
    entity: u64,
    kind: &'static str,
    /// As the activity states it.
    time: i64,
    /// The entity that it is now, of a `Move`.
    target: u64,
}

/// The state of a provider that a backup has.
#[derive(Clone, Debug, Default)]
struct Data {
    /// The version of each entity that is there.
    entities: BTreeMap<u64, u64>,
    log: Vec<Change>,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The status; 0 when the connection ends without an answer.
    pub status: u16,
    /// The time that its `Date` has, microseconds since 1970.
    pub date: i64,
    /// The body.
    pub body: String,
}

/// A provider of a change feed.
pub struct Provider {
    /// The shape of its feed.
    pub shape: &'static Shape,
    /// What goes wrong.
    pub faults: Faults,
    base: String,
    random: Random,
    data: Data,
    backup: Option<Data>,
    /// Changes that the feed has already.
    published: usize,
    now: i64,
    /// How much the clock of the activities is ahead of that of the answers.
    ahead: i64,
    /// The number of activities of a page has changed since the last run.
    is_resized: bool,
    /// Activities of a page.
    page: usize,
    versions: u64,
    unreachable: BTreeSet<u64>,
    /// The Entry Point as caches have it.
    cached: Option<String>,
    /// Nothing goes wrong, and nothing changes any more.
    is_quiet: bool,
    /// Entities that were ever deleted.
    deleted: BTreeSet<u64>,
    /// Changes that were on any page.
    served: usize,
    /// Entities that were lost when the server was restored, of which the feed says nothing.
    forgotten: BTreeSet<u64>,
}

impl Provider {
    /// The provider of a seed, whose URLs begin with `base`; without any fault if `is_calm`.
    pub fn new(seed: u64, base: &str, is_calm: bool) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let shape = &SHAPES[(seed % SHAPES.len() as u64) as usize];
        let faults = if is_calm { Faults::default() } else { Faults::draw(&mut random) };
        let faults = shape.withheld.iter().fold(faults, |faults, fault| faults.without(*fault));
        let page = 1 + random.below(5) as usize;
        let ahead = if faults.has(Fault::Skew) { random.below(3) as i64 * DAY / 2 } else { 0 };
        let mut provider = Self {
            shape,
            faults,
            base: base.to_owned(),
            random,
            data: Data::default(),
            backup: None,
            published: 0,
            now: EPOCH,
            ahead,
            is_resized: false,
            page,
            versions: 0,
            unreachable: BTreeSet::new(),
            cached: None,
            is_quiet: false,
            deleted: BTreeSet::new(),
            served: 0,
            forgotten: BTreeSet::new(),
        };
        for _ in 0..=provider.random.below(12) {
            provider.change();
        }
        provider.published = provider.data.log.len();
        provider
    }

    /// The address of its Entry Point.
    pub fn url(&self) -> String {
        format!("{}/feed", self.base)
    }

    /// The IRI of an entity.
    pub fn iri(&self, entity: u64) -> String {
        format!("{}/id/{entity}", self.base)
    }

    /// The IRI of each entity that is there, with its version.
    pub fn entities(&self) -> BTreeMap<String, String> {
        let of = |(entity, version): (&u64, &u64)| (self.iri(*entity), version.to_string());
        self.data.entities.iter().map(of).collect()
    }

    /// Whether an entity was ever deleted.
    pub fn has_deleted(&self, iri: &str) -> bool {
        self.deleted.iter().any(|entity| self.iri(*entity) == iri)
    }

    /// Whether nothing in the feed says what became of an entity: the server had another version of it
    /// before it was restored.
    pub fn has_forgotten(&self, iri: &str) -> bool {
        self.forgotten.iter().any(|entity| self.iri(*entity) == iri)
    }

    /// One in so many.
    fn chance(&mut self, of: u64) -> bool {
        self.random.below(of) == 0
    }

    fn has(&self, fault: Fault) -> bool {
        !self.is_quiet && self.faults.has(fault)
    }

    /// Time passes, and entities change.
    pub fn live(&mut self) {
        self.is_resized = false;
        let has_more = self.random.below(6);
        for _ in 0..has_more {
            self.change();
        }
        if self.faults.has(Fault::Late) && self.chance(2) {
            // The rest is published later.
            let lag = self.data.log.len() - self.published;
            self.published += self.random.below(lag as u64 + 1) as usize;
        } else {
            self.published = self.data.log.len();
        }
        if self.faults.has(Fault::Unreachable) {
            self.unreachable = (0..ENTITIES).filter(|_| self.random.below(4) == 0).collect();
        }
        if self.faults.has(Fault::Restored) {
            match self.random.below(6) {
                0 | 1 => self.backup = Some(self.data.clone()),
                2 => self.restore(),
                _ => {}
            }
        }
        if self.faults.has(Fault::OldEntry) && self.chance(2) {
            self.cached = Some(self.entry());
        }
        if self.faults.has(Fault::PageSize) && self.chance(3) {
            self.page = 1 + self.random.below(5) as usize;
        }
        if self.chance(3) {
            self.now += self.random.below(3) as i64 * DAY;
        }
    }

    fn restore(&mut self) {
        let Some(backup) = self.backup.take() else { return };
        // Restored servers are further behind than what happens in their first second.
        self.now += 2 * DAY;
        // No activity says that those are gone which the backup does not have.
        for change in &self.data.log[backup.log.len()..] {
            for entity in [change.entity, change.target] {
                if !backup.entities.contains_key(&entity) {
                    self.deleted.insert(entity);
                    self.forgotten.insert(entity);
                }
            }
        }
        // Nothing shows that a version was there which no page had.
        for change in self.data.log.iter().skip(self.served) {
            self.forgotten.extend([change.entity, change.target]);
        }
        // What was deleted is there again.
        self.data = backup;
        self.published = self.data.log.len();
        (self.cached, self.served) = (None, self.published);
    }

    /// Nothing goes wrong from now on: all is published, and two days pass.
    pub fn quieten(&mut self) {
        self.published = self.data.log.len();
        self.unreachable.clear();
        self.cached = None;
        self.is_quiet = true;
        self.wait();
    }

    /// The days of changes are over.
    pub fn wait(&mut self) {
        self.now += 2 * DAY;
    }

    /// Goes on to the time of the next change.
    fn tick(&mut self) -> i64 {
        let is_same = self.faults.has(Fault::EqualTimes) && self.chance(2);
        self.now += match self.random.below(5) {
            _ if is_same => 0,
            0 => 1 + self.random.below(900) as i64,
            1 | 2 => self.random.below(3 * SECOND as u64) as i64 + 1,
            3 => self.random.below(3_600) as i64 * SECOND + 1,
            _ => self.random.below(2 * DAY as u64) as i64,
        };
        self.shape.precision.round(self.now + self.ahead)
    }

    fn record(&mut self, entity: u64, kind: &'static str, target: u64) {
        let mut time = self.tick();
        let last = self.data.log.iter().rev().find(|it| it.entity == entity || it.target == entity);
        if last.is_some_and(|last| last.time == time) && time % SECOND != 0 {
            // A clock this fine shows two changes of one entity at two times.
            self.now += 1;
            time += 1;
        }
        self.forgotten.remove(&entity);
        self.forgotten.remove(&target);
        self.data.log.push(Change { entity, kind, time, target });
    }

    fn put(&mut self, entity: u64) {
        self.versions += 1;
        self.data.entities.insert(entity, self.versions);
    }

    /// One entity changes.
    fn change(&mut self) {
        let entity = self.random.below(ENTITIES);
        let is_there = self.data.entities.contains_key(&entity);
        let choice = self.random.below(12);
        match choice {
            _ if !is_there => {
                self.put(entity);
                let kind = if choice < 6 { "Create" } else { "Add" };
                self.record(entity, kind, entity);
            }
            0 | 1 if self.shape.has_deletions => {
                self.data.entities.remove(&entity);
                self.deleted.insert(entity);
                self.record(entity, if choice == 0 { "Delete" } else { "Remove" }, entity);
            }
            2 if self.shape.is_iiif_2 => {
                let target = (entity + 1 + self.random.below(ENTITIES - 1)) % ENTITIES;
                if !self.data.entities.contains_key(&target) {
                    self.data.entities.remove(&entity);
                    self.deleted.insert(entity);
                    self.put(target);
                    self.record(entity, "Move", target);
                }
            }
            3 if self.shape.is_iiif_2 && self.chance(3) => self.refresh(),
            4 if self.shape.has_deletions && !self.shape.is_iiif_2 => {
                self.put(entity);
                self.record(entity, "Deprecate", entity);
            }
            _ => {
                self.put(entity);
                self.record(entity, "Update", entity);
            }
        }
    }

    /// Lists everything again, at once.
    fn refresh(&mut self) {
        let time = self.tick();
        self.data.log.push(Change { entity: ENTITIES, kind: "Refresh", time, target: ENTITIES });
        for entity in self.data.entities.keys().copied().collect::<Vec<_>>() {
            self.record(entity, "Update", entity);
        }
    }

    /// The answer to a request of a URL.
    pub fn answer(&mut self, url: &str) -> Reply {
        let path = url.strip_prefix(self.base.as_str()).unwrap_or(url).to_owned();
        if self.has(Fault::Shifting) && self.chance(4) {
            self.change();
            self.published = self.data.log.len();
        }
        if self.has(Fault::PageSize) && !self.is_resized && self.chance(12) {
            self.is_resized = true;
            self.page = 1 + self.random.below(5) as usize;
        }
        if self.has(Fault::Errors) && self.chance(12) {
            let status = [429, 500, 503, 0][self.random.below(4) as usize];
            return Reply { status, ..Reply::default() };
        }
        let skew = if self.has(Fault::Skew) { self.random.below(5) as i64 - 2 } else { 0 };
        let date = self.now / SECOND * SECOND + skew * DAY;
        let Some(mut body) = self.document(&path) else {
            let status = [404, 410, 500, 403][self.random.below(4) as usize];
            return Reply { status, date, ..Reply::default() };
        };
        if self.has(Fault::Truncated) && path.starts_with("/feed") && self.chance(12) {
            // Before the last brace.
            body.truncate(self.random.below(body.len() as u64 - 1) as usize);
        }
        Reply { status: 200, date, body }
    }

    fn document(&mut self, path: &str) -> Option<String> {
        if let Some(entity) = path.strip_prefix("/id/") {
            let entity = entity.strip_suffix(".nt").unwrap_or(entity).parse().ok()?;
            let version = self.data.entities.get(&entity)?;
            let is_away = !self.is_quiet && self.unreachable.contains(&entity);
            return (!is_away).then(|| {
                format!("<{}> <http://ns.example/version> \"{version}\" .\n", self.iri(entity))
            });
        }
        if path == "/feed" {
            return Some(match &self.cached {
                Some(cached) if self.has(Fault::OldEntry) => cached.clone(),
                _ => self.entry(),
            });
        }
        self.change_set(path.strip_prefix("/feed/")?)
    }
}
