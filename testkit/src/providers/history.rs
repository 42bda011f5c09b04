//! What happens to the entities of a provider, and when.

use super::adversity::Fault;
use super::data::{Change, Listing, Version};
use super::provider::Provider;
use super::rendering::Rendering;
use super::time::{DAY, Precision, SECOND};

/// Entities that are ever there.
pub(super) const ENTITIES: u64 = 9;
/// An hour, microseconds.
const HOUR: i64 = 3_600 * SECOND;
/// How far ahead a time is that is wrong.
const FUTURE: i64 = 40 * DAY;

impl Provider {
    /// Goes on to the time of the next change.
    fn tick(&mut self) -> i64 {
        let mut is_same = self.faults.has(Fault::EqualTimes) && self.chance(2);
        if let (Some(lists), Precision::Micro) =
            (self.rendering.lists(), self.rendering.precision())
            && lists.length().is_some_and(|length| self.data.log.len().is_multiple_of(length))
        {
            // An empty list would be the same after a change of the microsecond in which it begins.
            is_same = false;
        }
        self.now += match self.random.below(5) {
            _ if is_same => 0,
            0 => 1 + self.random.below(900) as i64,
            1 | 2 => self.random.below(3 * SECOND as u64) as i64 + 1,
            3 => self.random.below(3_600) as i64 * SECOND + 1,
            _ => self.random.below(2 * DAY as u64) as i64,
        };
        let last = self.data.log.last().map_or(super::EPOCH, |last| last.noted);
        if !self.has_times() && self.now + self.ahead == last + 1 {
            // That microsecond stands for the time of a change without one.
            self.now += 1;
        }
        self.rendering.precision().round(self.now + self.ahead)
    }

    /// Whether changes have times.
    fn has_times(&self) -> bool {
        self.rendering.lists().is_none_or(|lists| lists.has_times)
    }

    fn record(&mut self, entity: u64, kind: &'static str, target: u64) {
        let mut noted = self.tick();
        let is_expiry = matches!(self.rendering, Rendering::Sitemaps(_))
            && matches!(kind, "Delete" | "Remove" | "Move");
        let is_wrong = self.has(Fault::Future) && !is_expiry && self.chance(12);
        let mut time = if is_wrong { noted + FUTURE } else { noted };
        let before = [entity, target].into_iter().filter_map(|one| self.last_change(one));
        if let Some(last) = before.map(|last| last.time).max() {
            // Of one entity the changes have times in their order.
            if time < last {
                time = last + self.rendering.precision().step();
            }
            let is_fine = self.rendering.precision() == Precision::Micro;
            if last == time && (is_fine || self.is_without_order(time)) {
                // A clock this fine shows two changes of one entity at two times.
                let step = if self.has_times() { 1 } else { 2 };
                self.now += step;
                (time, noted) = (time + step, noted + step);
            }
        }
        for entity in [entity, target] {
            self.forgotten.remove(&entity);
            self.missed.remove(&entity);
        }
        let version = self.versions;
        self.data.log.push(Change { entity, kind, time, noted, target, version });
        for entity in [entity, target] {
            if let Some(there) = self.data.entities.get_mut(&entity) {
                there.time = time;
            }
        }
    }

    /// Whether nothing shows the order of changes of that time: a feed that names its last page, as those with the oldest change
    /// first do, begins with the newest, and has no other time.
    fn is_without_order(&self, time: i64) -> bool {
        let is_reversed = matches!(self.rendering, Rendering::Activities(shape) if shape.is_newest_first && shape.has_last);
        is_reversed && self.data.log.iter().all(|it| it.time == time)
    }

    fn last_change(&self, entity: u64) -> Option<&Change> {
        self.data.log.iter().rev().find(|it| it.entity == entity || it.target == entity)
    }

    fn put(&mut self, entity: u64) {
        self.versions += 1;
        self.data.entities.insert(entity, Version { number: self.versions, time: 0 });
    }

    /// One entity changes.
    pub(super) fn change(&mut self) {
        let entity = self.random.below(ENTITIES);
        let is_there = self.data.entities.contains_key(&entity);
        let mut choice = self.random.below(12);
        let is_ahead = self.last_change(entity).is_some_and(|last| last.time > last.noted);
        if matches!(self.rendering, Rendering::Sitemaps(_)) && is_ahead {
            // What expires in the future is there until then.
            choice = 11;
        }
        match choice {
            _ if !is_there => {
                self.put(entity);
                let kind = if choice < 6 { "Create" } else { "Add" };
                self.record(entity, kind, entity);
            }
            0 | 1 if self.rendering.has_deletions() => {
                self.data.entities.remove(&entity);
                self.deleted.insert(entity);
                self.record(entity, if choice == 0 { "Delete" } else { "Remove" }, entity);
            }
            2 if self.rendering.has_moves() => {
                let target = (entity + 1 + self.random.below(ENTITIES - 1)) % ENTITIES;
                if !self.data.entities.contains_key(&target) {
                    self.data.entities.remove(&entity);
                    self.deleted.insert(entity);
                    self.put(target);
                    self.record(entity, "Move", target);
                }
            }
            3 if self.rendering.has_refreshes() && self.chance(3) => self.refresh(),
            4 if self.rendering.has_deletions() && !self.rendering.has_moves() => {
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
        let (entity, target) = (ENTITIES, ENTITIES);
        let (kind, version) = ("Refresh", 0);
        self.data.log.push(Change { entity, kind, time, noted: time, target, version });
        for entity in self.data.entities.keys().copied().collect::<Vec<_>>() {
            self.record(entity, "Update", entity);
        }
    }

    /// All entities as the changes have them that documents have already.
    fn listing(&self) -> Listing {
        let (at, end, made) = (super::EPOCH, self.published, self.now);
        let mut listing = Listing { at, end, made, ..Listing::default() };
        for change in &self.data.log[..self.published] {
            let Change { entity, kind, time, noted, target, version } = *change;
            listing.at = noted;
            if change.is_deletion() || kind == "Move" {
                listing.entities.remove(&entity);
                listing.deleted.insert(entity, time);
            }
            if !change.is_deletion() {
                listing.entities.insert(target, Version { number: version, time });
                listing.deleted.remove(&target);
            }
        }
        listing
    }

    /// Makes the list of all entities again.
    pub(super) fn make_listing(&mut self) {
        self.data.listing = self.listing();
    }

    /// Whether all that there is follows from the documents.
    pub fn is_knowable(&self) -> bool {
        let (end, hole) = (self.data.listing.end, self.data.hole);
        let hole = hole.filter(|hole| self.faults.has(Fault::Holes) && *hole < self.data.log.len());
        match &self.rendering {
            Rendering::Activities(_) => hole.is_none(),
            Rendering::Atom(atom) => {
                // A clock that goes back is the same as a server that does.
                let may_go_back = self.faults.has(Fault::Restored) || self.faults.has(Fault::Skew);
                !may_go_back || self.has_entry_of_snapshot(atom)
            }
            _ if self.rendering.lists().is_some_and(|lists| !lists.has_changes()) => {
                end == self.data.log.len()
            }
            _ => {
                // Documents are missing as a whole.
                let length = self.rendering.changes_per_document().unwrap_or(1);
                let begin = |place: usize| place - place % length;
                self.is_listed(begin(self.data.first))
                    && hole.is_none_or(|hole| self.is_listed(begin(hole) + length))
            }
        }
    }

    /// Whether the list of all entities shows that it includes the changes before that place: of a coarse time there may be
    /// others.
    fn is_listed(&self, end: usize) -> bool {
        // Without `at` there is the time of the answer, less an hour.
        let is_dated = self.rendering.lists().is_none_or(|lists| lists.has_at);
        let made = self.data.listing.made / SECOND * SECOND - HOUR;
        if end == 0 && !is_dated && super::EPOCH > made {
            // The documents begin within that hour: nothing shows that there was nothing before.
            return false;
        }
        let Some(last) = end.checked_sub(1).and_then(|last| self.data.log.get(last)) else {
            return true;
        };
        let are_equal =
            self.faults.has(Fault::EqualTimes) || self.rendering.precision() != Precision::Micro;
        let listing = &self.data.listing;
        let at = listing.at;
        let is_covered = if let Rendering::Sitemaps(sitemaps) = &self.rendering {
            // Change sets do not state since when they have all changes: all of the oldest one has to be older than the list.
            let length = self.rendering.changes_per_document().unwrap_or(1);
            let set = self.data.log.iter().skip(end).take(length);
            let oldest = set.clone().map(|it| it.time).filter(|time| *time <= self.now).max();
            // One whose times are all in the future has the time when it was modified.
            let oldest = oldest.or(set.map(|it| it.noted).max().filter(|_| sitemaps.has_modified));
            // A list without a time of its own is at least as new as its newest entry. What was deleted after that is not seen.
            let times = listing.entities.values().map(|it| it.time);
            let newest = times.filter(|time| *time <= self.now).max();
            let shown = if sitemaps.has_modified { Some(at) } else { newest };
            match oldest {
                Some(oldest) => Some(oldest) < shown,
                None => sitemaps.has_modified && !(are_equal && last.noted == at),
            }
        } else {
            let next = self.data.log.get(end).map(|next| next.noted);
            !(are_equal && (last.noted == at || next == Some(at)))
                && (is_dated || last.noted <= made)
        };
        end <= listing.end && is_covered
    }

    /// Drops the older changes from all documents, or loses some of them.
    pub(super) fn prune(&mut self) {
        let (first, published) = (self.data.first, self.published);
        if self.faults.has(Fault::Holes) && self.chance(2) {
            let hole = first + self.random.below((published - first) as u64 + 1) as usize;
            // The spans of its document show that it is missing.
            let length = self.rendering.changes_per_document().unwrap_or(1);
            let begin = hole - hole % length;
            if self.are_at_other_times(begin, length + 2) && !self.is_replayed(begin + length) {
                self.data.hole = Some(hole);
            }
        } else if self.chance(2) {
            let mut first = first + self.random.below((published - first) as u64 + 1) as usize;
            if self.would_hide_all(first) {
                first -= 1;
            }
            // What is left begins at a time of one change: documents state since when they have all.
            let begin = first - first % self.rendering.changes_per_document().unwrap_or(1);
            if self.are_at_other_times(begin, 3) {
                self.data.first = first;
            }
        }
    }

    /// Whether the only change set is empty without the changes before that place, and nothing shows that there were any which
    /// the list of all entities does not have.
    fn would_hide_all(&self, first: usize) -> bool {
        let Rendering::Sitemaps(sitemaps) = &self.rendering else { return false };
        let is_hidden = !sitemaps.has_modified && !sitemaps.is_live && sitemaps.length == 0;
        is_hidden && first == self.published && self.data.listing.end < first
    }

    /// Whether a list may be replayed from before the change at the end of a document on: without `at`, that is an hour. If that is
    /// missing, an older one wins over the list.
    fn is_replayed(&self, end: usize) -> bool {
        let Some(lists) = self.rendering.lists().filter(|lists| !lists.has_at) else {
            return false;
        };
        let made = if lists.is_live { self.now } else { self.data.listing.made };
        self.time_before(end.min(self.data.log.len())) >= made / SECOND * SECOND - HOUR
    }

    /// Whether so many changes, from two before a place on, have times of their own.
    pub(super) fn are_at_other_times(&self, place: usize, count: usize) -> bool {
        let changes = self.data.log.iter().skip(place.saturating_sub(2)).take(count);
        changes.is_sorted_by(|one, two| one.noted < two.noted)
    }

    /// The server has the state of its backup again.
    pub(super) fn restore(&mut self) {
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
        // Nothing shows that a version was there which no page had that the consumer keeps.
        let is_feed = matches!(self.rendering, Rendering::Activities(_));
        let shown = if is_feed { self.kept.max(backup.log.len()) } else { backup.log.len() };
        for change in self.data.log.iter().skip(shown) {
            self.forgotten.extend([change.entity, change.target]);
        }
        // Of which place of another history a document is, shows nothing.
        self.cached.values_mut().for_each(|cached| cached.place = usize::MAX);
        if matches!(self.rendering, Rendering::Sitemaps(_)) {
            // Nor which history a change set is of that never changes again.
            self.cached.retain(|path, _| !path.starts_with("/c/"));
        }
        // What was deleted is there again.
        self.data = backup;
        self.published = self.data.log.len();
        (self.cached_entry, self.served, self.kept) = (None, self.published, self.published);
    }
}
