//! The check of a set's rows, which is the same for every database.
//!
//! Redundant data is compared: rows with the log, pages and shards with the rows that they cover, and the counted
//! uses of stored contents with the rows that use them.

use crate::maintenance::integrity::findings::Findings;
use abreast_core::ContentId;
use abreast_webtypes::{Timestamp, count};
use std::collections::HashSet;

/// Positions of a restarted log follow the next multiple of this.
pub const POSITIONS_APART: i64 = 1_000_000_000;

/// Tables whose rows belong to sets.
pub(crate) const SET_TABLES: [&str; 8] = [
    "resources",
    "tombstones",
    "changes",
    "pages",
    "shards",
    "versions",
    "contents",
    "idempotency",
];

/// A set in a store, with its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetFacts {
    /// Name of the set in URLs.
    pub slug: String,
    /// Position of the set's last change.
    pub position: u64,
    /// Number of resources in the set.
    pub resources: u64,
}

/// The row of a set.
pub(crate) struct SetRow {
    pub(crate) id: i64,
    pub(crate) slug: String,
    /// Start of the log: creation of the set, or the last restart.
    pub(crate) begins: Timestamp,
    pub(crate) restarted: bool,
    /// Whether the base is not complete: there are no changes before.
    pub(crate) importing: bool,
    pub(crate) kept_bytes: i64,
    /// Values that follow from other rows, if the database stores them.
    pub(crate) head: Option<HeadRow>,
}

/// Values of a set that follow from other rows.
pub(crate) struct HeadRow {
    pub(crate) position: i64,
    pub(crate) time: i64,
    pub(crate) resources: i64,
    pub(crate) page: i64,
    pub(crate) page_after: i64,
}

/// A Change List.
pub(crate) struct PageRow {
    pub(crate) number: i64,
    pub(crate) after: i64,
    pub(crate) last: Option<i64>,
    pub(crate) from: i64,
    pub(crate) until: Option<i64>,
    /// Time of the change at `last`.
    pub(crate) time_of_last: Option<i64>,
}

/// A part of the Resource List.
pub(crate) struct ShardRow {
    pub(crate) id: i64,
    pub(crate) start: String,
    pub(crate) end: Option<String>,
    pub(crate) resources: i64,
    pub(crate) bytes: i64,
    pub(crate) version: i64,
    pub(crate) time: i64,
    pub(crate) retired: bool,
    /// Time of the change at `version`.
    pub(crate) time_of_version: Option<i64>,
}

/// A change. A `fault` is the reason why the row cannot be used, here and in the other rows.
pub(crate) struct ChangeRow<'r> {
    pub(crate) position: i64,
    pub(crate) time: Timestamp,
    pub(crate) key: &'r str,
    pub(crate) fault: Option<String>,
    /// Whether the change removed a resource that is still missing, without a tombstone as late.
    pub(crate) lacks_tombstone: bool,
}

/// A resource.
pub(crate) struct ResourceRow<'r> {
    pub(crate) key: &'r str,
    /// Size of the entry in a document.
    pub(crate) bytes: u64,
    /// The stored address of the bytes, which may be damaged.
    pub(crate) content: Option<&'r [u8]>,
    /// Whether the resource differs from its last change.
    pub(crate) differs: bool,
    pub(crate) fault: Option<String>,
}

/// An earlier version of a resource.
pub(crate) struct VersionRow<'r> {
    pub(crate) key: &'r str,
    pub(crate) content: Option<&'r [u8]>,
    pub(crate) fault: Option<String>,
}

/// How often rows of the set need the bytes with an address.
pub(crate) struct ContentRow<'r> {
    pub(crate) id: &'r [u8],
    pub(crate) needed: i64,
    pub(crate) length: i64,
}

/// The rows of a log, all from one instant. Each row is passed to a closure.
pub(crate) trait LogRows {
    type Error;

    fn sets(&mut self) -> Result<Vec<SetRow>, Self::Error>;

    /// The pages in the order of their numbers.
    fn pages(&mut self, set: i64, visit: &mut dyn FnMut(PageRow)) -> Result<(), Self::Error>;

    fn shards(&mut self, set: i64) -> Result<Vec<ShardRow>, Self::Error>;

    /// The changes in the order of their positions.
    fn changes(
        &mut self,
        set: i64,
        visit: &mut dyn FnMut(ChangeRow<'_>),
    ) -> Result<(), Self::Error>;

    /// The resources in any order.
    fn resources(
        &mut self,
        set: i64,
        visit: &mut dyn FnMut(ResourceRow<'_>),
    ) -> Result<(), Self::Error>;

    /// Passes the key of each tombstone of a resource that was not removed there, or exists.
    fn wrong_tombstones(
        &mut self,
        set: i64,
        visit: &mut dyn FnMut(&str),
    ) -> Result<(), Self::Error>;

    fn versions(
        &mut self,
        set: &SetRow,
        visit: &mut dyn FnMut(VersionRow<'_>),
    ) -> Result<(), Self::Error>;

    fn contents(
        &mut self,
        set: i64,
        visit: &mut dyn FnMut(ContentRow<'_>),
    ) -> Result<(), Self::Error>;

    /// Tables with rows that belong to no set, and the number of these rows.
    fn strangers(&mut self) -> Result<Vec<(&'static str, u64)>, Self::Error>;
}

/// Checks the rows of all sets; adds the facts about each set when its rows were read.
pub(crate) fn check_sets<R: LogRows>(
    rows: &mut R,
    place: &str,
    findings: &mut Findings,
    facts: &mut Vec<SetFacts>,
) -> Result<(), R::Error> {
    for row in rows.sets()? {
        let mut set = SetCheck {
            place: format!("{place}: set {}", row.slug),
            findings,
            head: (0, row.begins),
            live: Vec::new(),
            uses: Uses::default(),
            row,
        };
        set.check(rows)?;
        let resources = set.live.iter().map(|shard| shard.resources as u64).sum();
        facts.push(SetFacts { slug: set.row.slug, position: set.head.0 as u64, resources });
    }
    for (table, number) in rows.strangers()? {
        let message = format!("rows of {table} that belong to no set: {number}");
        findings.add("store.row", place, message);
    }
    Ok(())
}

/// The uses of contents by rows, or the counted uses. The order does not matter: addresses are digests, so
/// different uses have different sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uses {
    number: i64,
    sums: [u128; 2],
}

impl Uses {
    fn add(&mut self, content: &[u8], times: i64) {
        self.number = self.number.wrapping_add(times);
        for (sum, part) in self.sums.iter_mut().zip(content.chunks(16)) {
            let mut bytes = [0; 16];
            bytes[..part.len()].copy_from_slice(part);
            let value = u128::from_le_bytes(bytes).wrapping_mul(i128::from(times) as u128);
            *sum = sum.wrapping_add(value);
        }
    }
}

/// A set while it is checked.
struct SetCheck<'a> {
    row: SetRow,
    place: String,
    findings: &'a mut Findings,
    /// Position and time of the last change.
    head: (i64, Timestamp),
    live: Vec<ShardRow>,
    uses: Uses,
}

impl SetCheck<'_> {
    fn check<R: LogRows>(&mut self, rows: &mut R) -> Result<(), R::Error> {
        let last_page = self.pages(rows)?;
        self.load_shards(rows)?;
        self.changes(rows, last_page.after)?;
        let resources = self.resources(rows)?;
        self.head(last_page, resources);
        self.tombstones(rows)?;
        self.versions(rows)?;
        self.needs(rows)
    }

    fn add(&mut self, rule: &'static str, message: impl Into<String>) {
        self.findings.add(rule, self.place.clone(), message);
    }

    /// Checks that pages follow each other without gap, and that only the last is open. Returns the
    /// last page.
    fn pages<R: LogRows>(&mut self, rows: &mut R) -> Result<LastPage, R::Error> {
        let mut last_page = LastPage::default();
        let mut before: Option<PageRow> = None;
        let (restarted, begins) = (self.row.restarted, self.row.begins.as_micros());
        let (findings, place) = (&mut *self.findings, &self.place);
        let mut fault = |text: String| findings.add("log.page", place.clone(), text);
        rows.pages(self.row.id, &mut |page| {
            let number = page.number;
            last_page = LastPage { number, after: page.after.max(last_page.after) };
            let follows = match &before {
                None => (restarted || (number, page.after) == (1, 0)) && page.from == begins,
                Some(before) => {
                    number == before.number.saturating_add(1)
                        && Some(page.after) == before.last
                        && Some(page.from) == before.until
                }
            };
            if !follows {
                fault(format!("Change List {number} does not follow the one before it"));
            }
            if let (Some(last), Some(until)) = (page.last, page.until) {
                if last <= page.after || until < page.from || page.time_of_last != Some(until) {
                    fault(format!("Change List {number} ends where no change is"));
                }
            } else if page.last.is_some() != page.until.is_some() {
                fault(format!("Change List {number} has half an end"));
            }
            before = Some(page);
        })?;
        if before.is_none_or(|last| last.last.is_some()) {
            fault("there is no open Change List".to_owned());
        }
        Ok(last_page)
    }

    /// Checks that live shards cover all keys without overlap.
    fn load_shards<R: LogRows>(&mut self, rows: &mut R) -> Result<(), R::Error> {
        let (retired, mut live): (Vec<_>, Vec<_>) =
            rows.shards(self.row.id)?.into_iter().partition(|shard| shard.retired);
        live.sort_by(|one, other| one.start.cmp(&other.start));
        let covers = live.first().is_some_and(|first| first.start.is_empty())
            && live.windows(2).all(|pair| pair[0].end.as_ref() == Some(&pair[1].start))
            && live.last().is_some_and(|last| last.end.is_none());
        if !covers {
            self.add("table.shard", "the parts of the Resource List do not cover all keys once");
        }
        let starts: HashSet<&str> = live.iter().map(|live| live.start.as_str()).collect();
        for ShardRow { id, start, end, .. } in &retired {
            if !starts.contains(start.as_str())
                || end.as_deref().is_some_and(|end| !starts.contains(end))
            {
                let message = format!(
                    "the former part {id} of the Resource List has limits that no part has"
                );
                self.add("table.shard", message);
            }
        }
        self.live = live;
        Ok(())
    }

    /// Checks the log: positions without gaps, increasing times; and that each shard is as new as
    /// its last change.
    fn changes<R: LogRows>(&mut self, rows: &mut R, last_page: i64) -> Result<(), R::Error> {
        let mut before = (0_i64, Timestamp::MIN);
        let mut newest = vec![0_i64; self.live.len()];
        let (restarted, importing) = (self.row.restarted, self.row.importing);
        let (findings, place, live) = (&mut *self.findings, &self.place, &self.live);
        let mut add = |rule, message: String| findings.add(rule, place.clone(), message);
        rows.changes(self.row.id, &mut |change| {
            let position = change.position;
            if let Some(fault) = change.fault {
                add("store.row", format!("the change at position {position} is damaged: {fault}"));
            }
            // A restarted log continues after a multiple of [`POSITIONS_APART`].
            let restarts = restarted && position.saturating_sub(1) % POSITIONS_APART == 0;
            let next = before.0.saturating_add(1);
            if position < next || position > next && !restarts {
                add("log.gap", format!("after position {} comes {position}", before.0));
            }
            if change.time <= before.1 {
                let message = format!(
                    "the change at position {position} is not later than the one before it"
                );
                add("log.time", message);
            }
            if importing {
                let message =
                    format!("there is a change at position {position} before the base is complete");
                add("log.import", message);
            }
            if change.lacks_tombstone {
                let message = format!("`{}` was removed and is not listed as removed", change.key);
                add("table.tombstone", message);
            }
            before = (position, change.time);
            if let Some(newest) = shard_of(live, change.key).and_then(|at| newest.get_mut(at)) {
                *newest = position;
            }
        })?;
        self.head = (before.0.max(last_page), before.1.max(self.row.begins));
        for (live, newest) in self.live.iter().zip(newest) {
            let is_other_time = live.time_of_version.is_some_and(|time| time != live.time);
            if live.version < newest || live.version > self.head.0 || is_other_time {
                let message = format!(
                    "part {} of the Resource List is not as new as its last change",
                    live.id
                );
                self.findings.add("table.shard", self.place.clone(), message);
            }
        }
        Ok(())
    }

    /// Checks the resources: each with its last change, and the counted number in each shard. Returns
    /// the number of resources.
    fn resources<R: LogRows>(&mut self, rows: &mut R) -> Result<i64, R::Error> {
        let mut counted = vec![(0_i64, 0_i64); self.live.len()];
        let (findings, place, live) = (&mut *self.findings, &self.place, &self.live);
        let mut add = |rule, message: String| findings.add(rule, place.clone(), message);
        let (mut number, uses) = (0, &mut self.uses);
        rows.resources(self.row.id, &mut |resource| {
            let key = resource.key;
            number += 1;
            if let Some(content) = resource.content {
                uses.add(content, 1);
            }
            if resource.differs {
                add("table.row", format!("`{key}` is not what its last change made of it"));
            }
            if let Some(fault) = resource.fault {
                add("store.row", format!("the row of `{key}` is damaged: {fault}"));
                return;
            }
            if let Some(counted) = shard_of(live, key).and_then(|at| counted.get_mut(at)) {
                *counted = (counted.0 + 1, counted.1 + resource.bytes as i64);
            }
        })?;
        for (live, counted) in self.live.iter().zip(counted) {
            if (live.resources, live.bytes) != counted {
                let message = format!(
                    "part {} of the Resource List counts {}, there are {}",
                    live.id,
                    count(live.resources.unsigned_abs(), "resource"),
                    counted.0
                );
                self.findings.add("table.shard", self.place.clone(), message);
            }
        }
        Ok(number)
    }

    /// Compares the stored values of the set with its rows.
    fn head(&mut self, last_page: LastPage, resources: i64) {
        let (position, time) = (self.head.0, self.head.1.as_micros());
        let LastPage { number: page, after: page_after } = last_page;
        let Some(stored) = self.row.head.take() else { return };
        for (name, stored, found) in [
            ("position", stored.position, position),
            ("time", stored.time, time),
            ("number of resources", stored.resources, resources),
            ("open page", stored.page, page),
            ("start of the open page", stored.page_after, page_after),
        ] {
            if stored != found {
                let message = format!(
                    "the {name} in the row of the set is {stored}, and {found} in its other rows"
                );
                self.add("log.head", message);
            }
        }
    }

    /// Checks that the resource of each tombstone was removed there, and does not exist.
    fn tombstones<R: LogRows>(&mut self, rows: &mut R) -> Result<(), R::Error> {
        let (findings, place) = (&mut *self.findings, &self.place);
        rows.wrong_tombstones(self.row.id, &mut |key| {
            let message = format!("`{key}` is listed as removed where it was not");
            findings.add("table.tombstone", place.clone(), message);
        })
    }

    fn versions<R: LogRows>(&mut self, rows: &mut R) -> Result<(), R::Error> {
        let (findings, place, uses) = (&mut *self.findings, &self.place, &mut self.uses);
        rows.versions(&self.row, &mut |version| {
            if let Some(content) = version.content {
                uses.add(content, 1);
            }
            if let Some(fault) = version.fault {
                let message = format!("a version of `{}` is damaged: {fault}", version.key);
                findings.add("store.row", place.clone(), message);
            }
        })
    }

    /// Checks that the counted uses of each content equal the number of rows with it.
    fn needs<R: LogRows>(&mut self, rows: &mut R) -> Result<(), R::Error> {
        let (mut counted, mut kept, mut wrong) = (Uses::default(), 0_i64, 0_u64);
        rows.contents(self.row.id, &mut |content| {
            counted.add(content.id, content.needed);
            if content.needed > 0 {
                kept = kept.wrapping_add(content.length);
            }
            wrong += u64::from(content.id.len() != ContentId::BYTES);
        })?;
        if wrong > 0 {
            self.add(
                "store.row",
                format!("addresses of kept contents that are not digests: {wrong}"),
            );
        }
        if counted != self.uses {
            let message = format!(
                "rows refer to kept contents {} times; {} uses are counted{}",
                self.uses.number,
                counted.number,
                if counted.number == self.uses.number { ", of other contents" } else { "" }
            );
            self.add("versions.need", message);
        }
        if kept != self.row.kept_bytes {
            let message = format!(
                "the bytes of kept contents are {kept}, {} are counted",
                self.row.kept_bytes
            );
            self.add("versions.need", message);
        }
        Ok(())
    }
}

/// Number of the last page, and the position before it.
#[derive(Clone, Copy, Debug, Default)]
struct LastPage {
    number: i64,
    after: i64,
}

/// Index of the shard with a key.
fn shard_of(live: &[ShardRow], key: &str) -> Option<usize> {
    live.partition_point(|live| live.start.as_str() <= key).checked_sub(1)
}
