//! Rules for versions: which versions are recorded, which are dropped, and which contents
//! are still needed.

use crate::log::set_rows::Encoded;
use crate::log::set_state::SetState;
use crate::log::shards::LastChange;
use crate::log::tables::Tables;
use crate::log::version_state::{Collector, Dropped, PastChange};
use abreast_core::{Collected, Order, Position, Resource, Version, VersionPolicy};
use abreast_webtypes::Timestamp;

/// Most versions of a resource that are dropped at once.
const DROP_MAX: usize = 1_000;

/// The stored time of imported versions: before every change, however long the import runs.
pub(crate) const BASE_TIME: Timestamp = Timestamp::from_micros(i64::MIN);

/// Converts the start of a range to stored times, in which imported versions are first; `None` if
/// the range is empty.
pub(crate) fn stored_from(from: Timestamp, order: Order, created: Timestamp) -> Option<Timestamp> {
    match order {
        Order::OldestFirst if from <= created => Some(BASE_TIME),
        Order::NewestFirst if from < created => None,
        Order::OldestFirst | Order::NewestFirst => Some(from),
    }
}

/// The present content of a resource as a version since `time`; `None` if its bytes are not stored.
pub(crate) fn current(resource: &Resource, time: Timestamp) -> Option<Version> {
    resource.state.content.as_ref()?;
    let mut state = resource.state.clone();
    state.digests.unknown.clear();
    state.links.clear();
    state.description = None;
    Some(Version { time, position: resource.position, state: Some(state) })
}

/// Adds the present content to versions that were read, if the range includes it. Content from a
/// time without recording of versions does not have a row until it is superseded
/// ([`record_former`]).
pub(crate) fn add_current(
    found: &mut Vec<Version>,
    current: Option<Version>,
    from: Timestamp,
    order: Order,
    limit: usize,
) {
    let Some(current) = current else { return };
    if found.iter().any(|version| version.time == current.time) {
        return;
    }
    match order {
        Order::OldestFirst if current.time >= from && found.len() < limit => found.push(current),
        Order::NewestFirst if current.time <= from && limit > 0 => {
            found.insert(0, current);
            found.truncate(limit);
        }
        Order::OldestFirst | Order::NewestFirst => {}
    }
}

/// Enables or disables the recording of versions.
pub(crate) fn keep(set_state: &mut SetState, keep: bool) {
    let versions = &mut set_state.versions;
    if keep && !versions.keep {
        versions.since = Some(set_state.position);
    }
    versions.keep = keep;
    if keep {
        versions.begun.get_or_insert(set_state.position);
    }
}

/// Records a resource after a change, if the set records versions; `None` for a deleted resource.
pub(crate) fn record<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    key: &str,
    touch: LastChange,
    new: Option<&Encoded>,
) -> Result<(), T::Error> {
    if !set_state.versions.keep {
        return Ok(());
    }
    let content = new.and_then(|new| new.content);
    // Content without stored bytes ends the version before it, if there is one.
    if content.is_none() && !tables.has_versions(key)? {
        return Ok(());
    }
    let time = if touch.position == Position(0) { BASE_TIME } else { touch.time };
    if touch.position == Position(0) {
        // A second import of the same key replaces the first.
        let before = tables.version_content(key, time)?.flatten();
        let_go(set_state, before);
    }
    tables.add_version(key, touch.position, time, new)?;
    hold(set_state, new);
    Ok(())
}

/// Records the content that a change replaces, if its bytes are stored and it is from a time
/// without recording of versions.
pub(crate) fn record_former<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    former: &Resource,
) -> Result<(), T::Error> {
    if !set_state.versions.keep || former.state.content.is_none() {
        return Ok(());
    }
    let Some(time) = stored_time(tables, former.position)? else { return Ok(()) };
    if tables.version_content(&former.key, time)?.is_some() {
        return Ok(());
    }
    let state = Encoded::of(&former.state);
    tables.add_version(&former.key, former.position, time, Some(&state))?;
    hold(set_state, Some(&state));
    Ok(())
}

/// Adds stored bytes, or their new address, to a version that was recorded without them.
pub(crate) fn found_content<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    key: &str,
    recorded_at: Position,
    new: &Encoded,
) -> Result<(), T::Error> {
    if !set_state.versions.keep {
        return Ok(());
    }
    let Some(time) = stored_time(tables, recorded_at)? else { return Ok(()) };
    let before = tables.version_content(key, time)?.flatten();
    let_go(set_state, before);
    tables.add_version(key, recorded_at, time, Some(new))?;
    hold(set_state, Some(new));
    Ok(())
}

/// The stored time of a version, by the position of its change.
fn stored_time<T: Tables>(
    tables: &mut T,
    recorded_at: Position,
) -> Result<Option<Timestamp>, T::Error> {
    if recorded_at == Position(0) { Ok(Some(BASE_TIME)) } else { tables.time_of(recorded_at) }
}

/// Counts one more row with these bytes.
pub(crate) fn hold(set_state: &mut SetState, new: Option<&Encoded>) {
    let Some(new) = new else { return };
    let Some(id) = new.content else { return };
    let counted = set_state.references.entry(id).or_default();
    counted.more += 1;
    counted.length = Some(new.state.length.unwrap_or(0));
}

/// Counts one row with this content less.
pub(crate) fn let_go(set_state: &mut SetState, content: Dropped) {
    let Some(id) = content else { return };
    set_state.references.entry(id).or_default().more -= 1;
}

/// Writes the counts of the batch to the table.
pub(crate) fn settle<T: Tables>(set_state: &mut SetState, tables: &mut T) -> Result<(), T::Error> {
    let counted = std::mem::take(&mut set_state.references);
    if !counted.is_empty() {
        let grown = tables.count_references(counted)?;
        let kept_bytes = &mut set_state.versions.kept_bytes;
        *kept_bytes = kept_bytes.saturating_add_signed(grown);
    }
    Ok(())
}

/// Runs a part of applying a policy, for at most `limit` changes.
///
/// Every bound is applied by one pass over the log: a change supersedes the earlier version of its
/// resource.
pub(crate) fn collect<T: Tables>(
    set_state: &mut SetState,
    tables: &mut T,
    policy: &VersionPolicy,
    now: Timestamp,
    limit: usize,
) -> Result<Collected, T::Error> {
    let mut step = Step { tables, left: limit, dropped: 0 };
    let mut complete = true;
    if let Some(count) = policy.count.map(|count| count.max(1)) {
        let collector = &mut set_state.versions.collector;
        if collector.counted_as.is_none_or(|before| count < before) {
            collector.counted = Position(0);
        }
        collector.counted_as = Some(count);
        complete &= step.walk(
            set_state,
            |cursors| &mut cursors.counted,
            |tables, _, change| tables.newest(&change.key, count),
        )?;
    }
    if let Some(age) = policy.age {
        let oldest = now.plus_micros(-i64::try_from(age.as_micros()).unwrap_or(i64::MAX));
        complete &= step.walk_until(
            set_state,
            |cursors| &mut cursors.aged,
            |_, change| change.time < oldest,
            |tables, _, change| {
                // Delete the end of a deleted resource's history too.
                let last = !change.kind.keeps_resource()
                    && tables.newest(&change.key, 1)? == Some(change.time);
                Ok(Some(if last { change.time.next() } else { change.time }))
            },
        )?;
    }
    if let Some(bytes) = policy.bytes {
        complete &= step.walk_until(
            set_state,
            |cursors| &mut cursors.sized,
            |set_state, _| set_state.versions.kept_bytes > bytes,
            |_, _, change| Ok(Some(change.time)),
        )?;
    }
    Ok(Collected { dropped: step.dropped, complete, kept_bytes: set_state.versions.kept_bytes })
}

struct Step<'t, T> {
    tables: &'t mut T,
    left: usize,
    dropped: u64,
}

impl<T: Tables> Step<'_, T> {
    fn walk(
        &mut self,
        set_state: &mut SetState,
        cursor: impl Fn(&mut Collector) -> &mut Position,
        bound: impl FnMut(&mut T, &SetState, &PastChange) -> Result<Option<Timestamp>, T::Error>,
    ) -> Result<bool, T::Error> {
        self.walk_until(set_state, cursor, |_, _| true, bound)
    }

    /// Visits changes after the cursor while they are `due`, and drops the versions of their
    /// resources from before `bound`. Returns whether all due changes were visited.
    fn walk_until(
        &mut self,
        set_state: &mut SetState,
        cursor: impl Fn(&mut Collector) -> &mut Position,
        due: impl Fn(&SetState, &PastChange) -> bool,
        mut bound: impl FnMut(&mut T, &SetState, &PastChange) -> Result<Option<Timestamp>, T::Error>,
    ) -> Result<bool, T::Error> {
        let begun = set_state.versions.begun.unwrap_or(set_state.position);
        let after = begun.max(*cursor(&mut set_state.versions.collector));
        if after >= set_state.position {
            return Ok(true);
        }
        let changes = self.tables.changes_after(after, self.left)?;
        for change in &changes {
            if !due(set_state, change) {
                return Ok(true);
            }
            self.left = self.left.saturating_sub(1);
            if let Some(before) = bound(self.tables, set_state, change)? {
                let dropped = self.tables.drop_before(&change.key, before, DROP_MAX)?;
                self.dropped += dropped.len() as u64;
                let many = dropped.len() == DROP_MAX;
                for content in dropped {
                    let_go(set_state, content);
                }
                // The counts decide whether more is dropped.
                settle(set_state, self.tables)?;
                if many {
                    return Ok(false);
                }
            }
            *cursor(&mut set_state.versions.collector) = change.position;
        }
        Ok(*cursor(&mut set_state.versions.collector) >= set_state.position)
    }
}
