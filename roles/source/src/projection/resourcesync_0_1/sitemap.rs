//! Sitemaps: all resources of a set, and the index of several Sitemaps [rs-0.1 §3.1, §3.2].
//!
//! A Sitemap is a shard of the resource table, like a Resource List, or a part of a shard, since a
//! Sitemap has at most 10 MB. Only the keys of resources decide the parts, so that no resource
//! moves to another part while a client reads. A growing shard is divided into more parts; the
//! addresses of the earlier parts remain available. `DCTERMS.modified` is the time of the last
//! change in the range: the Sitemap includes every change up to this time.

use super::change_set::current_link;
use super::entries::EntryWriter;
use super::links::Category;
use super::paths::{MAX_PARTS, Part, SetDocument};
use super::values::{Limits, XML, exactly};
use super::{Output, PublishError, PublishedSet, Rendered};
use crate::projection::routes::Route as _;
use crate::publish::publisher::MAX_IN_MEMORY;
use abreast_core::{ChangeLog, Head as LogHead, Position, SetId, Shard, ShardId};
use abreast_resourcesync::v0_1::{
    Entry, Head, Link, OAI_PMH_PROTOCOL, Root, write_end, write_entry, write_head,
};
use abreast_webtypes::Timestamp;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Largest number of categories, and of their bytes, that the index lists for a Sitemap. If a
/// Sitemap exceeds a limit, the index lists none of its categories.
const MAX_CATEGORIES: usize = 100;
const MAX_CATEGORY_BYTES: usize = 20_000;
/// Approximate bytes of an entry, to estimate the length of a document.
const ENTRY_BYTES: u64 = 400;
/// Approximate bytes of an entry of the index without categories.
const INDEX_ENTRY_BYTES: usize = 200;

/// The division of a shard into Sitemaps, with the categories that the index lists.
#[derive(Debug)]
struct Outline {
    /// Last change of the shard that the outline includes.
    version: Position,
    created: Timestamp,
    /// The categories of each part.
    parts: Vec<BTreeSet<Category>>,
}

/// Cached outlines of shards. A change makes the outline of one shard out of date.
#[derive(Debug, Default)]
pub(super) struct Outlines(Mutex<HashMap<(SetId, ShardId), Arc<Outline>>>);

impl Outlines {
    fn lock(&self) -> MutexGuard<'_, HashMap<(SetId, ShardId), Arc<Outline>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resources of a set, as Sitemaps.
pub(super) struct Sitemaps<'a> {
    pub(super) log: &'a dyn ChangeLog,
    pub(super) set: &'a PublishedSet,
    pub(super) outlines: &'a Outlines,
    pub(super) limits: Limits,
}

impl Sitemaps<'_> {
    /// Renders the Sitemap if one Sitemap is enough, else the index. The head contains the link to
    /// the current change set and the links in `more`.
    pub(super) fn entry_point(
        &self,
        more: Vec<Link>,
        output: &mut dyn Output,
    ) -> Result<Rendered, PublishError> {
        // The head is read before the shards, so that the shards include all changes up to the
        // head.
        let head = self.log.head(self.set.id)?;
        let shards = self.log.shards(self.set.id)?;
        // Shards to read: the only Sitemap, or shards whose outlines are out of date.
        let single = shards.len() == 1;
        let unread = shards.iter().filter(|shard| single || self.known(shard, &head).is_none());
        let resources: u64 = unread.map(|shard| shard.resources).sum();
        output.expect(resources * ENTRY_BYTES + shards.len() as u64 * INDEX_ENTRY_BYTES as u64);
        if let [only] = shards.as_slice()
            && self.may_be_whole(only)
        {
            let (rendered, fits) =
                self.list((only, Part::WHOLE), self.limits, more.clone(), output)?;
            if fits {
                return Ok(rendered);
            }
            output.restart();
        }
        let outlines = self.outlines_of(&shards, &head)?;
        if let ([only], [outline]) = (shards.as_slice(), outlines.as_slice())
            && outline.parts.len() == 1
        {
            return Ok(self.list((only, Part::WHOLE), Limits::NONE, more, output)?.0);
        }
        let all = shards.iter().zip(&outlines);
        let mut sitemaps = Vec::new();
        for (shard, outline) in all {
            let of = outline.parts.len() as u64;
            for (number, categories) in (1..).zip(&outline.parts) {
                let document = SetDocument::Shard((shard.id, Part { of, number }));
                sitemaps.push((document, shard.time, categories));
            }
        }
        // The index has the same length limit as a Sitemap.
        let share = self.limits.bytes / sitemaps.len().max(1);
        let mut bytes = Vec::with_capacity(1_024 + sitemaps.len() * INDEX_ENTRY_BYTES);
        self.write_head(&mut bytes, Root::SitemapIndex, head.time, more);
        for (document, time, categories) in sitemaps {
            let loc = document.url(&self.set.urls);
            let mut entry = Entry { loc, time: Some(exactly(time)), ..Entry::default() };
            let plain = bytes.len();
            for category in categories {
                category.clone().add_to(&mut entry);
            }
            write_entry(&mut bytes, Root::SitemapIndex, &entry);
            if bytes.len() - plain > share && !categories.is_empty() {
                bytes.truncate(plain);
                entry.links.clear();
                entry.metas.clear();
                write_entry(&mut bytes, Root::SitemapIndex, &entry);
            }
        }
        write_end(&mut bytes, Root::SitemapIndex);
        Ok(Rendered { bytes, content_type: XML })
    }

    /// Renders a Sitemap of the index, for a current shard or a shard that was replaced.
    pub(super) fn shard(
        &self,
        id: ShardId,
        part: Part,
        output: &mut dyn Output,
    ) -> Result<Rendered, PublishError> {
        let shard = self.log.shard(self.set.id, id)?.ok_or(PublishError::NotFound)?;
        if shard.resources > self.limits.entries.saturating_mul(part.of) {
            return Err(PublishError::Gone);
        }
        // Every part is found by reading the whole shard.
        output.expect(shard.resources * ENTRY_BYTES);
        Ok(self.list((&shard, part), Limits::NONE, Vec::new(), output)?.0)
    }

    /// Whether one Sitemap may be enough for a shard: the last outline has one part, or no outline
    /// exists.
    fn may_be_whole(&self, shard: &Shard) -> bool {
        let known = self.outlines.lock().get(&(self.set.id, shard.id)).cloned();
        shard.resources < self.limits.entries && known.is_none_or(|known| known.parts.len() == 1)
    }

    /// The Sitemaps of the index, or an empty list if the set has no index.
    pub(super) fn all(&self) -> Result<Vec<SetDocument>, PublishError> {
        let head = self.log.head(self.set.id)?;
        let shards = self.log.shards(self.set.id)?;
        let mut all = Vec::new();
        for (shard, outline) in shards.iter().zip(self.outlines_of(&shards, &head)?) {
            let of = outline.parts.len() as u64;
            let part = |number| SetDocument::Shard((shard.id, Part { of, number }));
            all.extend((1..=of).map(part));
        }
        Ok(if all.len() > 1 { all } else { Vec::new() })
    }

    fn write_head(&self, out: &mut Vec<u8>, root: Root, modified: Timestamp, more: Vec<Link>) {
        let mut links = vec![current_link(self.set)];
        links.extend(more);
        let modified = Some(exactly(modified));
        write_head(out, &Head { root, modified, links, ..Head::default() });
    }

    /// Renders the Sitemap of a part of a shard, and reports whether the Sitemap is within the
    /// limits.
    fn list(
        &self,
        (shard, part): (&Shard, Part),
        limits: Limits,
        more: Vec<Link>,
        output: &mut dyn Output,
    ) -> Result<(Rendered, bool), PublishError> {
        let length = 2_048 + shard.resources / part.of * ENTRY_BYTES;
        let mut bytes = Vec::with_capacity((length as usize).min(MAX_IN_MEMORY));
        self.write_head(&mut bytes, Root::UrlSet, shard.time, more);
        if shard.range.start.is_empty() && part.number == 1 {
            self.write_oai_pmh(&mut bytes, shard.time);
        }
        let mut writer = EntryWriter::new(self.set);
        let (mut length, mut entries) = (0, 0);
        self.log.scan(self.set.id, &shard.range, &mut |resource| {
            if !part.has(&resource.key) {
                return ControlFlow::Continue(());
            }
            let before = bytes.len();
            writer.resource(&mut bytes, resource);
            length += bytes.len() - before;
            entries += 1;
            output.drain(&mut bytes);
            if limits.have_room(length, entries) {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            }
        })?;
        write_end(&mut bytes, Root::UrlSet);
        let rendered = Rendered { bytes, content_type: XML };
        Ok((rendered, limits.have_room(length, entries)))
    }

    /// Writes the base URL at which the set is also offered over OAI-PMH [rs-0.1 §4.3.3].
    fn write_oai_pmh(&self, out: &mut Vec<u8>, time: Timestamp) {
        let Some(base) = &self.set.resourcesync_0_1().oai_pmh else { return };
        let entry = Entry {
            loc: base.clone(),
            protocol: Some(OAI_PMH_PROTOCOL.to_owned()),
            time: Some(exactly(time)),
            ..Entry::default()
        };
        write_entry(out, Root::UrlSet, &entry);
    }

    /// The cached outline of a shard, if the shard has not changed since.
    fn known(&self, shard: &Shard, head: &LogHead) -> Option<Arc<Outline>> {
        let found = self.outlines.lock().get(&(self.set.id, shard.id)).cloned();
        found.filter(|found| (found.version, found.created) == (shard.version, head.created))
    }

    /// Outlines of the current shards; outlines that are out of date are computed again.
    fn outlines_of(
        &self,
        shards: &[Shard],
        head: &LogHead,
    ) -> Result<Vec<Arc<Outline>>, PublishError> {
        let mut outlines = Vec::with_capacity(shards.len());
        for shard in shards {
            outlines.push(if let Some(known) = self.known(shard, head) {
                known
            } else {
                let new = Arc::new(self.outline(shard, head.created)?);
                self.outlines.lock().insert((self.set.id, shard.id), Arc::clone(&new));
                new
            });
        }
        // Removes the outlines of shards that were replaced by smaller shards.
        let live: BTreeSet<ShardId> = shards.iter().map(|shard| shard.id).collect();
        self.outlines.lock().retain(|(set, id), _| *set != self.set.id || live.contains(id));
        Ok(outlines)
    }

    fn outline(&self, shard: &Shard, created: Timestamp) -> Result<Outline, PublishError> {
        let mut buckets: Vec<Bucket> = (0..MAX_PARTS).map(|_| Bucket::default()).collect();
        let (mut writer, mut bytes) = (EntryWriter::new(self.set), Vec::new());
        self.log.scan(self.set.id, &shard.range, &mut |resource| {
            bytes.clear();
            writer.resource(&mut bytes, resource);
            let bucket = &mut buckets[Part::bucket(&resource.key) as usize];
            bucket.entries += 1;
            bucket.bytes += bytes.len();
            Category::all_of(writer.last()).for_each(|category| bucket.categories.add(category));
            ControlFlow::Continue(())
        })?;
        let mut of = 1;
        let parts = loop {
            let mut parts: Vec<Bucket> = (0..of).map(|_| Bucket::default()).collect();
            for (number, bucket) in buckets.iter().enumerate() {
                parts[number % of].add(bucket);
            }
            let fits = |part: &Bucket| self.limits.have_room(part.bytes, part.entries);
            if of as u64 == MAX_PARTS || parts.iter().all(fits) {
                break parts;
            }
            of *= 2;
        };
        let parts = parts.into_iter().map(|part| part.categories.all).collect();
        Ok(Outline { version: shard.version, created, parts })
    }
}

/// Resources of a shard with the same remainder of the key.
#[derive(Clone, Debug, Default)]
struct Bucket {
    entries: u64,
    bytes: usize,
    categories: Categories,
}

impl Bucket {
    fn add(&mut self, other: &Self) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.categories.add_all(&other.categories);
    }
}

/// Categories of some resources, or none if the number exceeds the limit of the index.
#[derive(Clone, Debug, Default)]
struct Categories {
    all: BTreeSet<Category>,
    bytes: usize,
    too_many: bool,
}

impl Categories {
    fn add(&mut self, category: Category) {
        if self.too_many {
            return;
        }
        let bytes = category.bytes();
        if self.all.insert(category) {
            self.bytes += bytes;
        }
        if self.all.len() > MAX_CATEGORIES || self.bytes > MAX_CATEGORY_BYTES {
            *self = Self { too_many: true, ..Self::default() };
        }
    }

    fn add_all(&mut self, other: &Self) {
        if other.too_many {
            *self = other.clone();
        }
        other.all.iter().cloned().for_each(|category| self.add(category));
    }
}
