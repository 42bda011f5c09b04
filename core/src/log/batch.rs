//! The rules of a batch: the effect of each change, given the rows of its keys.
//!
//! Pure, so that every store shares the rules. A store reads the rows of all keys once, calls
//! [`decide`], and writes the result in bulk: the steps in their order, and one row for each key. A
//! long batch may be decided in parts, each after the previous part was written.

use crate::{Action, Change, ContentId, Imported, Kind, Position, Resource, State, next_time};
use abreast_webtypes::Timestamp;
use std::collections::HashMap;
use std::time::Duration;

/// How long a writer's own name for a change is remembered.
pub const IDEMPOTENCY_AGE: Duration = Duration::from_secs(7 * 24 * 3_600);

/// Properties of a resource, and the address of its bytes, which a later put of equal properties
/// may have replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held<'b> {
    /// Properties; the other field replaces their `content`.
    pub state: &'b State,
    /// Current address of the stored bytes.
    pub content: Option<ContentId>,
}

impl<'b> Held<'b> {
    fn of(state: &'b State) -> Self {
        Self { state, content: state.content }
    }
}

/// A change for the log. For the base of a set: a resource that was imported, at position 0 and
/// without a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'b> {
    /// Position of the change in the log.
    pub position: Position,
    /// Time of the change, later than all before.
    pub time: Timestamp,
    /// Kind of the change, as decided from the row.
    pub kind: Kind,
    /// The index of its row in [`Decided::rows`].
    pub row: usize,
    /// Properties after the change; `None` when the resource left the set.
    pub new: Option<Held<'b>>,
    /// Properties before the change; `None` when the resource was not in the set.
    pub old: Option<Held<'b>>,
    /// Whether the resource is deprecated afterwards, and the URIs to use instead.
    pub deprecated: Option<&'b [String]>,
    /// URIs of the replacements that this change lists.
    pub replaced_by: &'b [String],
    /// A sentence for people about it.
    pub summary: Option<&'b str>,
}

/// Equal properties whose bytes have another address, which is not recorded as a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved<'b> {
    /// The index of its row in [`Decided::rows`].
    pub row: usize,
    /// The former address, if there was one.
    pub from: Option<ContentId>,
    /// Properties with their new address.
    pub new: Held<'b>,
    /// Position of the change that recorded the properties.
    pub position: Position,
}

/// One write to the log. The steps of a batch follow the order of its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'b> {
    /// Record a change in the log.
    Record(Entry<'b>),
    /// Replace the address of stored bytes.
    Move(Moved<'b>),
}

/// A resource after a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now<'b> {
    /// Current properties of the resource and their address.
    pub held: Held<'b>,
    /// Fingerprint of the origin, as in [`Resource::witness`].
    pub witness: &'b [u8],
    /// Position of the last change of the resource.
    pub position: Position,
    /// Replacements of a deprecated resource, as in [`Resource::deprecated`].
    pub deprecated: Option<&'b [String]>,
    /// Step of the batch that recorded these properties; `None` if an earlier batch recorded them.
    pub step: Option<usize>,
}

/// The effect of a batch on the row with one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'b> {
    /// Key of the resource, as in [`Resource::key`].
    pub key: &'b str,
    /// The resource before the batch.
    pub before: Option<&'b Resource>,
    /// The resource after the batch; `None` when the set does not contain the resource.
    pub now: Option<Now<'b>>,
    /// The position where it last left the set within the batch.
    pub left: Option<Position>,
}

/// How a row is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Write<'b> {
    /// Nothing to write: the row is unchanged, or the key does not have a row.
    Nothing,
    /// Insert a row. The key leaves the list of removed resources.
    Insert(Now<'b>),
    /// Write other properties to the row.
    Update(Now<'b>),
    /// Write another witness or another address of the bytes to the row; the properties are equal.
    Refresh(Now<'b>),
    /// Delete the row of the resource.
    Delete,
}

impl<'b> Row<'b> {
    /// How the row is to be written.
    pub fn write(&self) -> Write<'b> {
        match (self.before, self.now) {
            (None, None) => Write::Nothing,
            (None, Some(now)) => Write::Insert(now),
            (Some(_), None) => Write::Delete,
            (Some(_), Some(now)) if now.step.is_some() => Write::Update(now),
            (Some(before), Some(now)) => {
                let same =
                    now.witness == before.witness && now.held.content == before.state.content;
                if same { Write::Nothing } else { Write::Refresh(now) }
            }
        }
    }

    /// Position at which an absent resource left the set, which is its place in the list of removed
    /// resources.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::batch::decide;
    /// use abreast_core::{Change, Position, Resource};
    /// use abreast_webtypes::Timestamp;
    ///
    /// let known = Resource { key: "letters/1843.xml".to_owned(), ..Resource::default() };
    /// let last = (Position(41), Timestamp::from_seconds(1_772_355_600));
    /// let changes = [Change::delete("letters/1843.xml")];
    /// let decided = decide(last, last.1, &changes, |_| Some(&known), |_| None);
    /// assert_eq!(decided.rows[0].tombstone(), Some(Position(42)));
    /// ```
    pub fn tombstone(&self) -> Option<Position> {
        self.left.filter(|_| self.now.is_none())
    }
}

/// A writer's own name for a change, to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'b> {
    /// Idempotency key that the writer chose.
    pub name: &'b str,
    /// The position of its change, or where it would have been.
    pub position: Position,
    /// Time from which the name is remembered.
    pub time: Timestamp,
}

/// The effect of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decided<'b> {
    /// Writes to the log, in order.
    pub steps: Vec<Step<'b>>,
    /// The rows of the keys in the batch, each once, in the order in which they first come up.
    pub rows: Vec<Row<'b>>,
    /// Names to be remembered, each once.
    pub names: Vec<Name<'b>>,
    /// Head of the log after each change of the batch.
    pub heads: Vec<Position>,
    /// Number of changes that the batch records.
    pub recorded: u64,
}

/// Decides the effect of a batch of changes on a set whose last change has this position and time.
/// `resource` returns the rows of the batch's keys, and `remembered` the time since when a name of
/// the batch is remembered.
///
/// # Examples
/// ```
/// use abreast_core::batch::{Step, decide};
/// use abreast_core::{Change, Kind, Position, State};
/// use abreast_webtypes::Timestamp;
///
/// // An empty set, to which a file is added twice with equal properties.
/// let last = (Position(0), Timestamp::from_seconds(1_772_355_600));
/// let put = Change::put("letters/1843.xml", State { length: Some(512), ..State::default() });
/// let changes = [put.clone(), put];
/// let decided = decide(last, Timestamp::from_seconds(1_772_355_660), &changes, |_| None, |_| None);
/// assert_eq!(decided.recorded, 1);
/// let Step::Record(entry) = &decided.steps[0] else { unreachable!("the resource is new") };
/// assert_eq!((entry.position, entry.kind), (Position(1), Kind::Create));
/// ```
pub fn decide<'b>(
    last: (Position, Timestamp),
    now: Timestamp,
    changes: impl IntoIterator<Item = &'b Change, IntoIter: ExactSizeIterator>,
    resource: impl FnMut(&'b str) -> Option<&'b Resource>,
    mut remembered: impl FnMut(&'b str) -> Option<Timestamp>,
) -> Decided<'b> {
    let (mut position, mut last_time) = last;
    let changes = changes.into_iter();
    let mut batch = Batch::new(resource, changes.len());
    batch.decided.heads.reserve(changes.len());
    let mut names: HashMap<&'b str, usize> = HashMap::new();
    for change in changes {
        let (next, time) = (position.next(), next_time(last_time, now));
        if let Some(name) = change.idempotency_key.as_deref() {
            let expired = time.plus_micros(-(IDEMPOTENCY_AGE.as_micros() as i64));
            let known = names
                .get(name)
                .map(|place| batch.decided.names[*place].time)
                .or_else(|| remembered(name));
            if known.is_some_and(|since| since >= expired) {
                batch.decided.heads.push(position);
                continue;
            }
            let remember = Name { name, position: next, time };
            if let Some(place) = names.get(name) {
                batch.decided.names[*place] = remember;
            } else {
                names.insert(name, batch.decided.names.len());
                batch.decided.names.push(remember);
            }
        }
        if batch.change(change, next, time) {
            (position, last_time) = (next, time);
        }
        batch.decided.heads.push(position);
    }
    batch.decided.recorded = position.0 - last.0.0;
    batch.decided
}

/// Decides what resources of the base of a set do. Their steps have position 0 and the given time.
pub fn decide_import<'b>(
    created: Timestamp,
    resources: &'b [Imported],
    resource: impl FnMut(&'b str) -> Option<&'b Resource>,
) -> Decided<'b> {
    let mut batch = Batch::new(resource, resources.len());
    for imported in resources {
        let row = batch.row(&imported.key);
        let given = Given::new(Held::of(&imported.state), &imported.witness, Kind::Create);
        batch.put(row, given, Position(0), created);
    }
    batch.decided
}

/// Properties that a change gives to a resource.
#[derive(Clone, Copy)]
struct Given<'b> {
    held: Held<'b>,
    witness: &'b [u8],
    /// The kind of change if the resource is new in the set.
    first: Kind,
    /// The replacements, when it is deprecated.
    deprecated: Option<&'b [String]>,
    summary: Option<&'b str>,
}

impl<'b> Given<'b> {
    fn new(held: Held<'b>, witness: &'b [u8], first: Kind) -> Self {
        Self { held, witness, first, deprecated: None, summary: None }
    }
}

/// A batch, decided up to a change.
struct Batch<'b, F> {
    resource: F,
    places: HashMap<&'b str, usize>,
    decided: Decided<'b>,
}

impl<'b, F: FnMut(&'b str) -> Option<&'b Resource>> Batch<'b, F> {
    fn new(resource: F, changes: usize) -> Self {
        let decided = Decided {
            steps: Vec::with_capacity(changes),
            rows: Vec::with_capacity(changes),
            ..Decided::default()
        };
        Self { resource, places: HashMap::with_capacity(changes), decided }
    }

    /// The index of a key's row, as it is up to here.
    fn row(&mut self, key: &'b str) -> usize {
        let next = self.decided.rows.len();
        let place = *self.places.entry(key).or_insert(next);
        if place == next {
            let before = (self.resource)(key);
            let now = before.map(|resource| Now {
                held: Held::of(&resource.state),
                witness: &resource.witness,
                position: resource.position,
                deprecated: resource.deprecated.as_deref(),
                step: None,
            });
            self.decided.rows.push(Row { key, before, now, left: None });
        }
        place
    }

    /// Applies one change; returns whether it is recorded.
    fn change(&mut self, change: &'b Change, position: Position, time: Timestamp) -> bool {
        let row = self.row(&change.key);
        let summary = change.summary.as_deref();
        let given = match &change.action {
            Action::Put { state, witness } => Given::new(Held::of(state), witness, Kind::Create),
            Action::Add { state, witness } => Given::new(Held::of(state), witness, Kind::Add),
            Action::Deprecate { state, replaced_by } => {
                let current = self.decided.rows[row].now.map(|now| (now.held, now.witness));
                let given =
                    state.as_ref().map(|(state, witness)| (Held::of(state), witness.as_slice()));
                let Some((held, witness)) = given.or(current) else { return false };
                Given {
                    deprecated: Some(replaced_by),
                    ..Given::new(held, witness, Kind::Deprecate)
                }
            }
            Action::Remove => return self.remove(row, Kind::Remove, summary, position, time),
            Action::Delete => return self.remove(row, Kind::Delete, summary, position, time),
        };
        self.put(row, Given { summary, ..given }, position, time)
    }

    /// Creates, updates or deprecates a resource; returns whether its properties changed.
    fn put(&mut self, row: usize, given: Given<'b>, position: Position, time: Timestamp) -> bool {
        let before = self.decided.rows[row].now;
        let kind = match before {
            None => given.first,
            Some(now) => {
                let same_deprecation =
                    given.deprecated.is_none() || given.deprecated == now.deprecated;
                // Equal properties do not end a deprecation.
                if same_deprecation && is_same(now.held.state, given.held.state) {
                    self.refresh(row, now, given);
                    return false;
                }
                if same_deprecation { Kind::Update } else { Kind::Deprecate }
            }
        };
        let step = Some(self.decided.steps.len());
        let Given { held, witness, deprecated, summary, .. } = given;
        self.decided.steps.push(Step::Record(Entry {
            position,
            time,
            kind,
            row,
            new: Some(held),
            old: before.map(|now| now.held),
            deprecated,
            replaced_by: deprecated.unwrap_or_default(),
            summary,
        }));
        self.decided.rows[row].now = Some(Now { held, witness, position, deprecated, step });
        true
    }

    /// Takes over the fingerprint and the address that came with equal properties.
    fn refresh(&mut self, row: usize, mut now: Now<'b>, given: Given<'b>) {
        now.witness = given.witness;
        if given.held.content.is_some() && given.held.content != now.held.content {
            let from = now.held.content;
            now.held.content = given.held.content;
            self.decided.steps.push(Step::Move(Moved {
                row,
                from,
                new: now.held,
                position: now.position,
            }));
        }
        self.decided.rows[row].now = Some(now);
    }

    fn remove(
        &mut self,
        row: usize,
        kind: Kind,
        summary: Option<&'b str>,
        position: Position,
        time: Timestamp,
    ) -> bool {
        let Some(now) = self.decided.rows[row].now.take() else { return false };
        self.decided.rows[row].left = Some(position);
        self.decided.steps.push(Step::Record(Entry {
            position,
            time,
            kind,
            row,
            new: None,
            old: Some(now.held),
            deprecated: None,
            replaced_by: &[],
            summary,
        }));
        true
    }
}

/// Whether two resources are equal for readers of the log. The address of the bytes does not
/// matter, and neither do unknown digests, which are not stored.
fn is_same(one: &State, other: &State) -> bool {
    one.modified == other.modified
        && one.length == other.length
        && one.media_type == other.media_type
        && one.encoding == other.encoding
        && one.digests.md5 == other.digests.md5
        && one.digests.sha1 == other.digests.sha1
        && one.digests.sha256 == other.digests.sha256
        && one.digests.sha512 == other.digests.sha512
        && one.links == other.links
        && one.description == other.description
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Timestamp {
        Timestamp::from_micros(micros)
    }

    fn state(length: u64) -> State {
        State { length: Some(length), ..State::default() }
    }

    fn kept(length: u64, byte: u8) -> State {
        State { content: Some(ContentId([byte; ContentId::BYTES])), ..state(length) }
    }

    fn resource(state: State) -> Resource {
        Resource { key: "a".into(), state, position: Position(3), ..Resource::default() }
    }

    /// Decides about one key whose row is `before`, after position 7 at time 100.
    fn decided<'b>(before: Option<&'b Resource>, changes: &'b [Change]) -> Decided<'b> {
        decide((Position(7), at(100)), at(50), changes, |_| before, |_| None)
    }

    fn kinds(decided: &Decided<'_>) -> Vec<(u64, i64, Kind)> {
        let entries = decided.steps.iter().filter_map(|step| match step {
            Step::Record(entry) => Some((entry.position.0, entry.time.as_micros(), entry.kind)),
            Step::Move(_) => None,
        });
        entries.collect()
    }

    #[test]
    fn only_differences_are_recorded_at_later_times() {
        let changes = [
            Change::put("a", state(1)),
            Change::put("a", state(1)),
            Change::put("a", state(2)),
            Change::remove("a"),
            Change::delete("a"),
            Change::add("a", state(2)),
        ];
        let decided = decided(None, &changes);
        let expected = [
            (8, 101, Kind::Create),
            (9, 102, Kind::Update),
            (10, 103, Kind::Remove),
            (11, 104, Kind::Add),
        ];
        assert_eq!((kinds(&decided).as_slice(), decided.recorded), (&expected[..], 4));
        assert!(
            matches!(decided.rows[0].write(), Write::Insert(now) if now.position == Position(11))
        );
        assert_eq!((decided.rows.len(), decided.rows[0].tombstone()), (1, None));
    }

    #[test]
    fn net_effect_on_a_row_follows_from_its_first_and_last_state() {
        let row = resource(state(1));
        let new = [Change::put("a", state(1)), Change::delete("a")];
        assert_eq!(decided(None, &new).rows[0].write(), Write::Nothing);
        assert_eq!(decided(None, &new).rows[0].tombstone(), Some(Position(9)));
        assert_eq!(decided(Some(&row), &new).rows[0].write(), Write::Delete);
        let back = [Change::delete("a"), Change::put("a", state(1))];
        assert!(
            matches!(decided(Some(&row), &back).rows[0].write(), Write::Update(now) if now.step == Some(1))
        );
        let seen = [Change::put("a", state(1)).with_witness(vec![1])];
        assert!(
            matches!(decided(Some(&row), &seen).rows[0].write(), Write::Refresh(now) if now.witness == [1])
        );
        let nothing = [Change::put("a", state(1)), Change::deprecate("b", Vec::new())];
        let decided = decide(
            (Position(7), at(9)),
            at(9),
            &nothing,
            |key| (key == "a").then_some(&row),
            |_| None,
        );
        assert!(
            decided.steps.is_empty()
                && decided.rows.iter().all(|row| row.write() == Write::Nothing)
        );
    }

    #[test]
    fn deprecation_follows_the_state_before_it_in_the_batch() {
        let other = || vec!["urn:b".to_owned()];
        let changes = [
            Change::put("a", state(5)),
            Change::deprecate("a", other()),
            Change::put("a", state(5)),
            Change::deprecate("a", other()),
            Change::deprecate("a", Vec::new()),
            Change::put("a", state(6)),
        ];
        let row = resource(state(1));
        let found = decided(Some(&row), &changes);
        let kinds: Vec<_> = kinds(&found).into_iter().map(|(_, _, kind)| kind).collect();
        assert_eq!(kinds, [Kind::Update, Kind::Deprecate, Kind::Deprecate, Kind::Update]);
        let Step::Record(first) = found.steps[1] else { panic!("a record") };
        assert_eq!(
            (first.new.map(|new| new.state), first.replaced_by),
            (Some(&state(5)), &other()[..])
        );
        assert_eq!(found.rows[0].now.unwrap().deprecated, None);
    }

    #[test]
    fn content_of_an_equal_state_moves_and_goes_along() {
        let changes = [
            Change::put("a", kept(1, 7)),
            Change::put("a", state(1)),
            Change::deprecate("a", Vec::new()),
            Change::delete("a"),
        ];
        let row = resource(kept(1, 6));
        let found = decided(Some(&row), &changes);
        let id = |byte| Some(ContentId([byte; ContentId::BYTES]));
        let [Step::Move(moved), Step::Record(deprecated), Step::Record(deleted)] = found.steps[..]
        else {
            panic!("{:?}", found.steps)
        };
        assert_eq!((moved.from, moved.new.content, moved.position), (id(6), id(7), Position(3)));
        assert_eq!(deprecated.old.and_then(|old| old.content), id(7));
        assert_eq!(deprecated.new.and_then(|new| new.content), id(7));
        assert_eq!(deleted.old.and_then(|old| old.content), id(7));
    }

    #[test]
    fn names_count_once_until_they_expire() {
        let week = IDEMPOTENCY_AGE.as_micros() as i64;
        let named = |length| Change::put("a", state(length)).with_idempotency_key("n");
        let changes = [named(1), named(2)];
        for (since, recorded) in [(None, 1), (Some(at(0)), 1), (Some(at(1)), 0)] {
            let found = decide((Position(0), at(0)), at(week + 1), &changes, |_| None, |_| since);
            assert_eq!(
                (found.recorded, found.names.len() as u64),
                (recorded, recorded),
                "{since:?}"
            );
        }
    }

    #[test]
    fn an_import_has_rows_and_no_positions() {
        let imported =
            |length| Imported { key: "a".into(), state: state(length), witness: Vec::new() };
        let resources = [imported(1), imported(1), imported(2)];
        let found = decide_import(at(9), &resources, |_| None);
        assert_eq!((found.recorded, found.steps.len()), (0, 2));
        assert!(
            matches!(found.rows[0].write(), Write::Insert(now) if now.held.state.length == Some(2))
        );
        assert_eq!(kinds(&found), [(0, 9, Kind::Create), (0, 9, Kind::Update)]);
    }
}
