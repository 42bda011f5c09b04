//! The change log: what every store must do, and the arithmetic they share.

use crate::{
    Change, ChangeRecord, Collected, ContentId, Order, Position, Resource, ResourceSet, SetId,
    State, Version, VersionPolicy,
};
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use thiserror::Error;

/// When is a page of changes closed?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageRule {
    /// Changes in a full page.
    pub changes: u32,
    /// A page whose first change is older than this is closed before the next change is recorded.
    pub age: Duration,
}

impl Default for PageRule {
    fn default() -> Self {
        Self { changes: 5_000, age: Duration::from_secs(7 * 24 * 3_600) }
    }
}

/// When is a shard split?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShardRule {
    /// When it has this many resources.
    pub resources: u64,
    /// Or when a document of them would have about this many bytes.
    pub bytes: u64,
}

impl ShardRule {
    /// 40,000 resources or 36 MB: documents that a client can still read at once.
    pub const DEFAULT: Self = Self { resources: 40_000, bytes: 36_000_000 };
}

impl Default for ShardRule {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Where the history of a set begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    /// With a base that is imported before the log begins and has no change records, as for
    /// folders: a list of all resources is the truth, the log has what came after it.
    #[default]
    Base,
    /// In the log: its first resources are changes too, so that the log alone is the whole history.
    Log,
}

/// Options of a new set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSet {
    /// Name in URLs: `[a-z0-9][a-z0-9._-]*`, at most 64 characters.
    pub slug: String,
    /// When pages are closed from now on; closed ones stay as they are.
    pub page_rule: PageRule,
    /// Where its history begins; the same each time it is opened.
    pub beginning: Beginning,
    /// Of a new set that begins in its log: its first state is read from elsewhere, and is not complete before
    /// [`ChangeLog::complete_import`]. A base never is.
    pub incomplete: bool,
}

/// Where a set's log stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The last change.
    pub position: Position,
    /// Its time; the set's creation time while there is none.
    pub time: Timestamp,
    /// When the set's log began: the end of its import. The first Change List speaks from here.
    pub created: Timestamp,
    /// Resources now in the set.
    pub resources: u64,
    /// Number of the open page (1 in a new set); all before it are closed.
    pub open_page: u64,
    /// Whether the first state of the set is not complete yet: nothing may be published.
    pub importing: bool,
    /// Whether the history begins in the log. Otherwise a base is imported first, and appends are refused meanwhile.
    pub in_log: bool,
    /// Where the log stood when it began to keep versions, if it keeps them: changes behind it have one each.
    pub versions_since: Option<Position>,
    /// Grows when versions may have been dropped.
    pub collected: u64,
}

impl Head {
    /// Whether what is recorded now is what the set has at first, in its log: that is not complete, or the set never had a
    /// resource.
    pub const fn is_first(&self) -> bool {
        if self.importing { self.in_log } else { self.position.0 == 0 && self.resources == 0 }
    }

    /// Whether the base is being imported.
    pub const fn takes_base(&self) -> bool {
        self.importing && !self.in_log
    }

    /// Whether anything changed since the log began. A log that was restarted has a position before
    /// its first change.
    pub fn has_changes(&self) -> bool {
        self.time > self.created
    }
}

/// One resource of the base of a new set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// See [`Resource::key`].
    pub key: String,
    /// Its state.
    pub state: State,
    /// See [`Resource::witness`].
    pub witness: Vec<u8>,
}

/// What the Source saw of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witnessed {
    /// See [`Resource::key`].
    pub key: String,
    /// See [`Resource::witness`].
    pub witness: Vec<u8>,
    /// See [`State::content`].
    pub content: Option<ContentId>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Head of the log after it.
    pub head: Position,
    /// Changes recorded.
    pub recorded: u64,
    /// Changes that were no change: equal state, nothing to delete, idempotency key seen before.
    pub unchanged: u64,
}

/// A range of positions that is one document in every protocol: `(after, last]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// 1 for the first.
    pub number: u64,
    /// The page starts after this position.
    pub after: Position,
    /// Its last position; `None` while it is open.
    pub last: Option<Position>,
    /// Time of the change at `after`, or the set's creation.
    pub from: Timestamp,
    /// Time of its last change; `None` while it is open.
    pub until: Option<Timestamp>,
}

/// The number of a shard in its set; never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShardId(pub u64);

/// Keys `start ≤ key < end`; no end means all that follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub start: String,
    /// First key after the range.
    pub end: Option<String>,
}

/// A fixed range of keys of the resource table, small enough for one document.
///
/// Live shards cover all keys without overlap. A shard that grew too large is retired: two new ones
/// take its place, and its own number still answers for its old range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Its number.
    pub id: ShardId,
    /// Its keys.
    pub range: KeyRange,
    /// Resources in it.
    pub resources: u64,
    /// The last change in its range: a document made from it stays right until this moves.
    pub version: Position,
    /// Time of that change; the set's creation while there is none.
    pub time: Timestamp,
    /// Whether it was replaced by smaller ones.
    pub retired: bool,
}

/// The kinds of failures of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No such set.
    NoSet,
    /// The store is damaged or was written by a newer version.
    Corrupt,
    /// The disk or the database failed; nothing of the batch is recorded.
    Io,
    /// The disk is full; nothing of the batch is recorded, and it can be sent again when there is space.
    Full,
    /// Too much is waiting; try again later.
    Busy,
    /// The request itself cannot be stored, for example a key over 8 KiB.
    Refused,
}

/// A store failed.
#[derive(Debug, Error)]
#[error("{message}")]
pub struct LogError {
    kind: ErrorKind,
    message: String,
    #[source]
    cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl LogError {
    /// A failure with its explanation.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), cause: None }
    }

    /// With what caused it.
    #[must_use]
    pub fn with_cause(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The kind, for callers to match on.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Is called with one item after the other, until it returns [`ControlFlow::Break`].
pub type Visit<'v, T> = &'v mut dyn FnMut(&T) -> ControlFlow<()>;

/// A durable, ordered log of changes for each set, and the table of resources it implies.
///
/// Calls block; async callers move reads to a blocking thread. What implementations promise:
/// - positions of a set are 1, 2, 3 … without gaps; times strictly increase ([`next_time`]), over
///   restarts and clock steps;
/// - `done` of an append is called once, with success only when the batch is durable, and then all
///   of it is;
/// - a batch is atomic: all of its changes are visible, or none;
/// - a new set that begins with a base is importing: the base is built by `import` and ended by
///   `complete_import` before any append; one that begins in its log refuses an import, and is importing until
///   `complete_import` only if it was opened as incomplete;
/// - readers see a batch no later than its `done`, and never part of one;
/// - pages, once closed, never change.
pub trait ChangeLog: Send + Sync + 'static {
    /// The set of that name, created if there is none. Its page rule becomes the given one.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the set is there and has another beginning; else when the store
    /// fails.
    fn open_set(&self, set: &NewSet) -> Result<ResourceSet, LogError>;

    /// All sets, in the order they were created.
    ///
    /// # Errors
    /// When the store fails.
    fn sets(&self) -> Result<Vec<ResourceSet>, LogError>;

    /// The set of that name, if there is one; none is created.
    ///
    /// # Errors
    /// When the store fails.
    fn find_set(&self, slug: &str) -> Result<Option<ResourceSet>, LogError> {
        Ok(self.sets()?.into_iter().find(|set| set.slug == slug))
    }

    /// Where the set's log stands.
    ///
    /// # Errors
    /// When there is no such set or the store fails.
    fn head(&self, set: SetId) -> Result<Head, LogError>;

    /// The same without asking the store, for threads that must not block: it includes every change
    /// acknowledged through this value. `None` when the store must be asked.
    fn known_head(&self, _set: SetId) -> Option<Head> {
        None
    }

    /// Checks that what is recorded from now on outlives this process, for probes and before long
    /// work.
    ///
    /// # Errors
    /// When the store was removed or replaced while it is open.
    fn check_available(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Waits until one of these sets has a change after its position, or until the time is over:
    /// then `false`.
    ///
    /// Stores that know when they record wake at once; others poll often enough.
    ///
    /// # Errors
    /// When there is no such set or the store fails.
    fn wait_for(&self, known: &[(SetId, Position)], timeout: Duration) -> Result<bool, LogError> {
        let begun = Instant::now();
        loop {
            for (set, position) in known {
                if self.head(*set)?.position > *position {
                    return Ok(true);
                }
            }
            let left = timeout.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(WAIT_LOOK));
        }
    }

    /// Adds resources to the base of a new set: what was there before the log began. They get
    /// position 0 and no change record; Change Lists speak only of what came after. Blocks until
    /// the batch is durable. A key imported twice takes the later state. Shards follow as for
    /// changes.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] once the import is complete; else when the store fails.
    fn import(&self, set: SetId, resources: Vec<Imported>) -> Result<(), LogError>;

    /// Ends the import: the set's creation time becomes now, and changes may be appended.
    /// An interrupted import continues after a restart; completing a complete one does nothing.
    ///
    /// # Errors
    /// When the store fails.
    fn complete_import(&self, set: SetId) -> Result<(), LogError>;

    /// Whether there is space for a change: to be asked before something is done that a change is to record.
    ///
    /// # Errors
    /// There is none ([`ErrorKind::Full`]).
    fn check_space(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Records a batch (at most 10,000 changes) and calls `done` from another thread when it is
    /// durable. Blocks while too much is waiting.
    fn append_then(&self, set: SetId, changes: Vec<Change>, done: AppendDone);

    /// Notes what the Source saw of resources whose published state is unchanged. Not a change.
    ///
    /// # Errors
    /// When the store fails.
    fn refresh_witnesses(
        &self,
        set: SetId,
        witnesses: Vec<(String, Vec<u8>)>,
    ) -> Result<(), LogError>;

    /// Visits changes after a position, oldest first, until the visitor stops or the log ends.
    ///
    /// # Errors
    /// When the store fails.
    fn read(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError>;

    /// Visits the latest change of each resource that changed after a position, oldest first, until
    /// the visitor stops or at the end. What left the set is visited too; the base of a set is not,
    /// since it is no change. A resource that changes meanwhile is visited with one of its changes
    /// at least.
    ///
    /// The cost follows the changes that are visited: neither the collection nor superseded changes
    /// are read.
    ///
    /// # Errors
    /// When the store fails.
    fn latest(
        &self,
        set: SetId,
        after: Position,
        visit: Visit<'_, ChangeRecord>,
    ) -> Result<(), LogError>;

    /// The last position before this one whose change is the latest of its resource: the other
    /// direction of [`Self::latest`].
    ///
    /// # Errors
    /// When the store fails.
    fn latest_before(&self, set: SetId, position: Position) -> Result<Option<Position>, LogError>;

    /// The position of the last change that is not after `time`. Where there is none, the position
    /// where the log begins when `time` is not before its beginning ([`Head::created`]), and 0
    /// otherwise.
    ///
    /// # Errors
    /// When the store fails.
    fn position_at(&self, set: SetId, time: Timestamp) -> Result<Position, LogError>;

    /// One resource.
    ///
    /// # Errors
    /// When the store fails.
    fn resource(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError>;

    /// Visits resources in byte order of their keys, all from one consistent state. The visited
    /// value is reused. The visit sees at least what the last answered `head` saw.
    ///
    /// # Errors
    /// When the store fails.
    fn scan(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Resource>,
    ) -> Result<(), LogError>;

    /// As [`Self::scan`], of what the Source saw only.
    ///
    /// # Errors
    /// When the store fails.
    fn scan_witnesses(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Witnessed>,
    ) -> Result<(), LogError> {
        let mut seen = Witnessed::default();
        self.scan(set, range, &mut |resource| {
            seen.key.clone_from(&resource.key);
            seen.witness.clone_from(&resource.witness);
            seen.content = resource.state.content;
            visit(&seen)
        })
    }

    /// The live shards in key order.
    ///
    /// # Errors
    /// When the store fails.
    fn shards(&self, set: SetId) -> Result<Vec<Shard>, LogError>;

    /// One shard, live or retired.
    ///
    /// # Errors
    /// When the store fails.
    fn shard(&self, set: SetId, id: ShardId) -> Result<Option<Shard>, LogError>;

    /// Sets whether versions of this set's resources are recorded from now on. Those of states
    /// whose bytes are kept ([`State::content`]), and what follows them. Kept over restarts.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the store cannot; else when it fails.
    fn keep_versions(&self, set: SetId, keep: bool) -> Result<(), LogError> {
        self.head(set)?;
        if keep {
            return Err(LogError::new(
                ErrorKind::Refused,
                "this store cannot keep versions of resources",
            ));
        }
        Ok(())
    }

    /// Versions of a resource from a time on, or from it back, that time included; at most `limit`.
    ///
    /// # Errors
    /// When the store fails.
    fn versions(
        &self,
        set: SetId,
        _key: &str,
        _from: Timestamp,
        _order: Order,
        _limit: usize,
    ) -> Result<Vec<Version>, LogError> {
        self.head(set).map(|_| Vec::new())
    }

    /// Drops some of the versions that a policy does not keep, checking no more than `limit`
    /// changes: asked again until [`Collected::complete`]. Waits in line with appends, so keep the
    /// limit small.
    ///
    /// # Errors
    /// When the store fails.
    fn collect_versions(
        &self,
        set: SetId,
        _policy: &VersionPolicy,
        _limit: usize,
    ) -> Result<Collected, LogError> {
        self.head(set).map(|_| Collected { complete: true, ..Collected::default() })
    }

    /// Whether a resource or a version of any set needs these bytes.
    ///
    /// # Errors
    /// When the store fails.
    fn needs_content(&self, _id: &ContentId) -> Result<bool, LogError> {
        Ok(true)
    }

    /// Addresses of bytes that no row needs any more: at most `limit`, after one. Returned again
    /// until forgotten.
    ///
    /// # Errors
    /// When the store fails.
    fn unneeded_contents(
        &self,
        _after: Option<ContentId>,
        _limit: usize,
    ) -> Result<Vec<ContentId>, LogError> {
        Ok(Vec::new())
    }

    /// Forgets bytes that were removed; those needed again meanwhile stay known.
    ///
    /// # Errors
    /// When the store fails.
    fn forget_contents(&self, _ids: Vec<ContentId>) -> Result<(), LogError> {
        Ok(())
    }

    /// Pages numbered from `first` on, at most `limit`, the open one last.
    ///
    /// # Errors
    /// When the store fails.
    fn pages(&self, set: SetId, first: u64, limit: usize) -> Result<Vec<Page>, LogError>;
}

/// How often a store that does not know when it records is checked.
const WAIT_LOOK: Duration = Duration::from_millis(20);

/// Called once with the result of an append.
pub type AppendDone = Box<dyn FnOnce(Result<Appended, LogError>) + Send>;

/// Appends and waits until the batch is durable.
///
/// # Errors
/// When the store fails; then nothing of the batch is recorded, or the store ended and it is
/// unknown.
pub fn append(log: &dyn ChangeLog, set: SetId, changes: Vec<Change>) -> Result<Appended, LogError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    log.append_then(
        set,
        changes,
        Box::new(move |result| {
            let _ = sender.send(result);
        }),
    );
    receiver.recv().unwrap_or_else(|_| {
        Err(LogError::new(ErrorKind::Io, "the store stopped before it answered"))
    })
}

/// The time of a set's next change: now, or just after the last change when the clock is behind it.
pub fn next_time(last: Timestamp, now: Timestamp) -> Timestamp {
    now.max(last.next())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_follow_the_clock_but_never_go_back() {
        let at = Timestamp::from_micros;
        assert_eq!(next_time(at(10), at(500)), at(500));
        assert_eq!(next_time(at(10), at(11)), at(11));
        assert_eq!(next_time(at(10), at(10)), at(11));
        assert_eq!(next_time(at(10), at(-500)), at(11));
    }

    #[test]
    fn error_has_its_kind_and_its_cause() {
        let cause = std::io::Error::other("no space left");
        let error = LogError::new(ErrorKind::Io, "cannot record").with_cause(cause);
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::Io, "cannot record".to_owned()));
        assert_eq!(
            std::error::Error::source(&error).map(ToString::to_string).as_deref(),
            Some("no space left")
        );
    }
}
