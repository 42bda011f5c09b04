//! Providers of a collection, simulated: a random history of entities, rendered by one protocol, under
//! the adversity that a seed has chosen. No sockets: a consumer asks [`Provider::answer`].
//!
//! | file | subject |
//! |---|---|
//! | `provider.rs`, `data.rs`, `time.rs` | the state of a provider, its entities and its times |
//! | `kinds.rs`, `rendering.rs` | what a provider of each protocol is like |
//! | `history.rs` | what happens to the entities, and when |
//! | `adversity.rs` | what goes wrong |
//! | `caches.rs` | documents of caches, and what the documents of a run show |
//! | `activities.rs`, `shapes.rs` | change feeds in Activity Streams: EMM 0.1 and 1.0, IIIF |
//! | `lists.rs` | ResourceSync 1.1: Resource Lists and Change Lists |
//! | `dumps.rs` | ResourceSync 1.1: Resource Dumps and Change Dumps |
//! | `sitemaps.rs` | ResourceSync 0.1: Sitemaps and change sets |
//! | `atom.rs` | SDShare: snapshots and fragments |

mod activities;
mod adversity;
mod atom;
mod caches;
mod data;
mod dumps;
mod history;
mod kinds;
mod lists;
mod provider;
mod rendering;
mod shapes;
mod sitemaps;
mod time;

use abreast_core::testing::Random;
pub use adversity::{Fault, Faults};
use data::Data;
use history::ENTITIES;
pub use kinds::{Atom, Changes, Dumps, Lists, Sitemaps};
pub use provider::Provider;
use provider::{Validators, hash_of, is_statements};
pub use rendering::Rendering;
pub use shapes::{Paging, SHAPES, Shape};
use std::collections::{BTreeMap, BTreeSet};
pub use time::Precision;
use time::{DAY, EPOCH, SECOND, http_date};

/// Changes that happen at most while a run reads.
const SHIFTS_MAX: usize = 10;
/// A protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Change feeds in Activity Streams.
    Activities,
    /// ResourceSync 1.1, without dumps.
    Lists,
    /// ResourceSync 1.1, with dumps.
    Dumps,
    /// ResourceSync 0.1, without dumps.
    Sitemaps,
    /// SDShare.
    Atom,
}

/// What a consumer knows of a document that it asks for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'k> {
    /// `If-None-Match`.
    pub etag: Option<&'k str>,
    /// `If-Modified-Since`.
    pub last_modified: Option<&'k str>,
}

/// An answer.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    /// The status; 0 when the connection ends without an answer.
    pub status: u16,
    /// `Date`, microseconds since 1970, if it has that.
    pub date: Option<i64>,
    /// `ETag`.
    pub etag: Option<String>,
    /// `Last-Modified`.
    pub last_modified: Option<String>,
    /// The body.
    pub body: Vec<u8>,
    /// The transfer breaks off after so many bytes.
    pub cut: Option<usize>,
}

impl Provider {
    /// The provider of a seed, whose URLs begin with `base`; without any fault if `is_calm`.
    pub fn new(protocol: Protocol, seed: u64, base: &str, is_calm: bool) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let rendering = match protocol {
            Protocol::Activities => {
                Rendering::Activities(&SHAPES[(seed % SHAPES.len() as u64) as usize])
            }
            Protocol::Lists => Rendering::Lists(Lists::draw(&mut random)),
            Protocol::Dumps => Rendering::Dumps(Dumps::draw(&mut random)),
            Protocol::Sitemaps => Rendering::Sitemaps(Sitemaps::draw(&mut random)),
            Protocol::Atom => Rendering::Atom(Atom::draw(&mut random)),
        };
        let faults = if is_calm { Faults::default() } else { Faults::draw(&mut random) };
        let faults = rendering.withheld().into_iter().fold(faults, Faults::without);
        // An entry with a time in the future shows nothing of what became of its entity before then.
        let is_blind = match &rendering {
            Rendering::Atom(_) => faults.has(Fault::Restored),
            // Nothing shows what came after it.
            Rendering::Sitemaps(sitemaps) => sitemaps.is_unordered,
            Rendering::Activities(_) | Rendering::Lists(_) | Rendering::Dumps(_) => false,
        };
        let faults = if is_blind { faults.without(Fault::Future) } else { faults };
        let page = 1 + random.below(5) as usize;
        let ahead = if faults.has(Fault::Skew) { random.below(3) as i64 * DAY / 2 } else { 0 };
        let validators =
            [Validators::None, Validators::Etag, Validators::LastModified, Validators::Both];
        let mut drawn = *random.of(&validators);
        if faults.has(Fault::Skew) && drawn == Validators::LastModified {
            // Of clocks that differ, none shows which of two versions is the later one.
            drawn = Validators::Etag;
        }
        let validators = if rendering.needs_modified() { Validators::Both } else { drawn };
        let gone = *random.of(&[404, 404, 410, 403]);
        let mut provider = Self {
            rendering,
            faults,
            base: base.to_owned(),
            random,
            data: Data::default(),
            backup: None,
            published: 0,
            now: EPOCH,
            ahead,
            is_resized: false,
            shifts: SHIFTS_MAX,
            gone,
            page,
            versions: 0,
            validators,
            changed: BTreeMap::new(),
            unreachable: BTreeSet::new(),
            lost: None,
            cached_entry: None,
            cached: BTreeMap::new(),
            shown: (0, false),
            feed_time: None,
            is_quiet: false,
            deleted: BTreeSet::new(),
            on_pages: BTreeMap::new(),
            served: 0,
            kept: 0,
            forgotten: BTreeSet::new(),
            missed: BTreeSet::new(),
            missed_behind: 0,
        };
        for _ in 0..=provider.random.below(12) {
            provider.change();
        }
        provider.published = provider.data.log.len();
        provider.make_listing();
        provider
    }

    /// The shape of a change feed.
    ///
    /// # Panics
    /// It renders its collection otherwise.
    pub fn shape(&self) -> &'static Shape {
        match &self.rendering {
            Rendering::Activities(shape) => shape,
            other => panic!("{other:?}"),
        }
    }

    /// The address that a consumer is given.
    pub fn url(&self) -> String {
        format!("{}{}", self.base, self.rendering.entry_path())
    }

    /// The IRI of an entity.
    pub fn iri(&self, entity: u64) -> String {
        format!("{}/id/{entity}", self.base)
    }

    /// The IRI of each entity that is there, with its version.
    pub fn entities(&self) -> BTreeMap<String, String> {
        let of = |(entity, version): (&u64, &data::Version)| {
            (self.iri(*entity), version.number.to_string())
        };
        self.data.entities.iter().map(of).collect()
    }

    /// Whether an entity was ever deleted.
    pub fn has_deleted(&self, iri: &str) -> bool {
        self.deleted.iter().any(|entity| self.iri(*entity) == iri)
    }

    /// Whether no document says what became of an entity: the server had another version of it before
    /// it was restored.
    pub fn has_forgotten(&self, iri: &str) -> bool {
        self.forgotten.iter().any(|entity| self.iri(*entity) == iri)
    }

    /// A copy was told that what lies between the list of all and the oldest change that is listed is not known.
    pub fn note_missed(&mut self) {
        let Rendering::Sitemaps(sitemaps) = self.rendering.clone() else { return };
        let (begin, end) = (self.data.listing.end, self.oldest_listed(&sitemaps));
        let mut last = BTreeMap::new();
        for (place, change) in self.data.log.iter().enumerate() {
            last.extend([(change.entity, place), (change.target, place)]);
        }
        let missed = last.into_iter().filter(|(_, place)| (begin..end).contains(place));
        (self.missed, self.missed_behind) = (missed.map(|it| it.0).collect(), begin);
    }

    /// Whether the last change of an entity was there when a copy was told so, and the list is still the same.
    pub fn has_missed(&self, iri: &str) -> bool {
        self.missed_behind == self.data.listing.end
            && self.missed.iter().any(|entity| self.iri(*entity) == iri)
    }

    /// Whether a list of all resources shows nothing of the last change of an entity: it has the time of the one before,
    /// and there is no digest.
    pub fn is_hidden(&self, iri: &str) -> bool {
        let has_fixity = match &self.rendering {
            Rendering::Lists(lists) | Rendering::Dumps(Dumps { lists, .. }) => lists.has_fixity,
            Rendering::Sitemaps(sitemaps) => sitemaps.has_fixity,
            Rendering::Activities(_) | Rendering::Atom(_) => return false,
        };
        let is_of = |entity: u64| self.iri(entity) == iri;
        let own = self.data.log.iter().rev().filter(|it| is_of(it.entity) || is_of(it.target));
        let mut times = own.map(|it| it.time);
        !has_fixity && times.next().is_some_and(|last| times.next() == Some(last))
    }

    /// The server's clock, microseconds since 1970.
    pub const fn clock(&self) -> i64 {
        self.now
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
        (self.is_resized, self.shifts) = (false, SHIFTS_MAX);
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
        if self.chance(3) {
            self.make_listing();
        }
        if self.chance(4) {
            self.prune();
        }
        if self.faults.has(Fault::Unreachable) {
            self.unreachable = (0..ENTITIES).filter(|_| self.random.below(4) == 0).collect();
        }
        if self.faults.has(Fault::Lost) {
            self.lost = (self.random.below(3) == 0).then(|| self.random.below(1 << 20));
        }
        if self.faults.has(Fault::Restored) {
            match self.random.below(6) {
                0 | 1 => self.backup = Some(self.data.clone()),
                2 => self.restore(),
                _ => {}
            }
        }
        if self.faults.has(Fault::OldEntry) && self.chance(2) {
            let path = self.rendering.entry_path();
            self.cached_entry = self.document(path).map(|body| self.as_cached(path, body));
        }
        if self.chance(2) {
            self.cached.clear();
        }
        if self.faults.has(Fault::PageSize) && self.chance(3) {
            self.page = 1 + self.random.below(5) as usize;
        }
        if self.chance(3) {
            self.now += self.random.below(3) as i64 * DAY;
        }
    }

    /// Nothing goes wrong from now on: all is published, and two days pass.
    pub fn quieten(&mut self) {
        self.published = self.data.log.len();
        self.unreachable.clear();
        (self.cached_entry, self.lost) = (None, None);
        self.is_quiet = true;
        let is_only = self.rendering.lists().is_some_and(|lists| !lists.has_changes());
        if is_only || self.chance(2) {
            self.make_listing();
        }
        self.wait();
    }

    /// The days of changes are over.
    pub fn wait(&mut self) {
        self.now += 2 * DAY;
    }

    /// The answer to a request of a URL.
    pub fn answer(&mut self, url: &str, known: Known<'_>) -> Reply {
        let path = url.strip_prefix(self.base.as_str()).unwrap_or(url).to_owned();
        let is_entity = path.starts_with("/id/");
        if self.has(Fault::Shifting) && self.chance(4) {
            self.shift();
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
        let date =
            (!self.faults.has(Fault::NoDate)).then(|| self.now / SECOND * SECOND + skew * DAY);
        let lost = self.lost.filter(|_| !is_entity);
        if let Some(status) = lost.and_then(|lost| lost_status(&path, lost)) {
            return Reply { status, date, ..Reply::default() };
        }
        let Some((body, made)) = self.document_of_caches(&path) else {
            let of_entity = [404, 410, 500, 403][self.random.below(4) as usize];
            let status = if is_entity { of_entity } else { self.gone };
            return Reply { status, date, ..Reply::default() };
        };
        if path.starts_with("/fragments") {
            self.feed_time = atom::time_of(&body).map(str::to_owned);
        }
        let mut reply = Reply { status: 200, date, body, ..Reply::default() };
        if !is_entity {
            self.validate(&path, made, &mut reply);
            if is_known(known, &reply) {
                return Reply { status: 304, body: Vec::new(), ..reply };
            }
            self.spoil(&path, &mut reply);
            if reply.cut.is_none() {
                let newest = self.on_pages.get(&hash_of(&reply.body));
                self.served = self.served.max(newest.copied().unwrap_or_default());
            }
        }
        reply
    }

    /// The consumer keeps what it has read, or it was killed, and has only what it kept before.
    pub fn note_kept(&mut self, is_kept: bool) {
        if is_kept {
            self.kept = self.served;
        } else {
            self.served = self.kept;
        }
    }

    /// Something changes while a run reads.
    fn shift(&mut self) {
        if let Some(left) = self.shifts.checked_sub(1) {
            self.shifts = left;
            self.change();
            self.published = self.data.log.len();
        }
    }

    /// Lets a transfer end in the middle.
    fn spoil(&mut self, path: &str, reply: &mut Reply) {
        let length = reply.body.len() as u64;
        if length < 2 {
            return;
        }
        if self.has(Fault::Truncated) && self.chance(12) {
            // Before the last brace.
            let end = self.random.below(length - 1) as usize;
            let is_whole = matches!(reply.body[..end].trim_ascii_end().last(), None | Some(b'.'));
            if !(is_whole && is_statements(path)) {
                reply.body.truncate(end);
            }
        } else if self.has(Fault::Cut) && self.chance(8) {
            reply.cut = Some(self.random.below(length) as usize);
            // The next transfer has another version.
            self.shift();
            if self.chance(2) {
                self.make_listing();
            }
        }
    }

    fn document(&mut self, path: &str) -> Option<Vec<u8>> {
        if let Some(entity) = path.strip_prefix("/id/") {
            let entity = entity.strip_suffix(".nt").unwrap_or(entity).parse().ok()?;
            return self.entity(entity).map(String::into_bytes);
        }
        let text = match self.rendering.clone() {
            Rendering::Activities(_) if path == "/feed" => Some(self.entry()),
            Rendering::Activities(_) => self.change_set(path.strip_prefix("/feed/")?),
            Rendering::Lists(lists) => self.list_document(&lists, path),
            Rendering::Dumps(dumps) => return self.dump_document(&dumps, path),
            Rendering::Sitemaps(sitemaps) => self.sitemap_document(&sitemaps, path),
            Rendering::Atom(atom) => self.atom_document(&atom, path),
        };
        text.map(String::into_bytes)
    }

    /// What is answered for an entity.
    fn entity(&self, entity: u64) -> Option<String> {
        let is_away = !self.is_quiet && self.unreachable.contains(&entity);
        match self.data.entities.get(&entity) {
            _ if is_away => None,
            Some(version) => Some(self.body(entity, version.number)),
            // Nothing is stated about it any more.
            None => matches!(self.rendering, Rendering::Atom(_)).then(String::new),
        }
    }

    /// The bytes of a version of an entity: one statement.
    fn body(&self, entity: u64, version: u64) -> String {
        format!("<{}> <http://ns.example/version> \"{version}\" .\n", self.iri(entity))
    }

    /// Adds the validators of a document.
    fn validate(&mut self, path: &str, made: i64, reply: &mut Reply) {
        let hash = hash_of(&reply.body);
        let now = self.now;
        let changed = *self.changed.entry((path.to_owned(), hash)).or_insert(now);
        let is_listing = ["/list", "/dump", "/s"].iter().any(|begin| path.starts_with(begin));
        let time = if is_listing { made } else { changed };
        if matches!(self.validators, Validators::Etag | Validators::Both) {
            reply.etag = Some(format!("\"{hash:x}\""));
        }
        // A cache that has an older version states when it received that, which shows that another one of the same second may follow.
        let of_second = |time: i64| time / SECOND;
        let is_superseded = !is_listing
            && self.changed.iter().any(|((other, version), time)| {
                (other == path && *version != hash && *time >= changed)
                    && of_second(*time) == of_second(changed)
            });
        if matches!(self.validators, Validators::LastModified | Validators::Both) && !is_superseded
        {
            reply.last_modified = Some(http_date(time));
        }
    }
}

fn is_known(known: Known<'_>, reply: &Reply) -> bool {
    match (known.etag, reply.etag.as_deref()) {
        (Some(known), Some(etag)) => known == etag,
        _ => known.last_modified.is_some() && known.last_modified == reply.last_modified.as_deref(),
    }
}

/// The status of a document that cannot be read for a time, if it is one.
fn lost_status(path: &str, lost: u64) -> Option<u16> {
    let hash = hash_of(format!("{lost} {path}").as_str());
    hash.is_multiple_of(4).then(|| [404, 500, 403, 503][(hash / 4 % 4) as usize])
}
