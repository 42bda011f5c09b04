//! The change log: what every store must do, and the arithmetic they share.

pub mod batch;
pub(crate) mod clock;
pub(crate) mod finding;
pub(crate) mod lease;
pub(crate) mod lease_notes;
pub(crate) mod limits;
pub(crate) mod node_roles;
pub(crate) mod records;
pub(crate) mod start;
pub(crate) mod topic;

use crate::{
    Change, ChangeRecord, Clock as _, Collected, ContentId, Order, Position, Resource, ResourceSet,
    SetId, State, SystemClock, Version, VersionPolicy,
};
use abreast_webtypes::Timestamp;
use std::ops::ControlFlow;
use std::sync::{Arc, mpsc};
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
    /// Number of resources at which a shard is split in two.
    pub resources: u64,
    /// Estimated size, in bytes, of a document of the shard's resources at which it is split.
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

/// The place where the history of a set starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beginning {
    /// With a base that is imported before the log starts, without change records, as for folders.
    /// A list of all resources then describes the imported resources, and the log has only later
    /// changes.
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
    /// Where the set's history starts; the same each time the set is opened.
    pub beginning: Beginning,
    /// Whether the first state of a new set that starts in its log is read from elsewhere. Such a
    /// set is not complete before [`ChangeLog::complete_import`]. A set with a base ignores this
    /// field.
    pub incomplete: bool,
}

/// Where a set's log stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// Position of the last change in the log.
    pub position: Position,
    /// Time of the last change; the set's creation time in an empty log.
    pub time: Timestamp,
    /// Start of the set's log, which is the end of its import. The first Change List covers changes
    /// from this time on.
    pub created: Timestamp,
    /// Resources now in the set.
    pub resources: u64,
    /// Number of the open page (1 in a new set); all before it are closed.
    pub open_page: u64,
    /// Whether the set's first import is not complete yet. Nothing may be published before its end.
    pub importing: bool,
    /// Whether the history starts in the log. Otherwise a base is imported first, and appends are
    /// refused during the import.
    pub in_log: bool,
    /// Position of the log when the recording of versions started; `None` without versions. Each
    /// later change has one version.
    pub versions_since: Option<Position>,
    /// Grows when versions may have been dropped.
    pub collected: u64,
}

impl Head {
    /// Whether changes recorded now belong to the first content of a set that starts in its log:
    /// the import is not complete, or the set never had a resource.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::{Head, Position};
    ///
    /// let new = Head::default();
    /// assert!(new.is_first());
    /// let later = Head { position: Position(1), resources: 1, ..new };
    /// assert!(!later.is_first());
    /// ```
    pub const fn is_first(&self) -> bool {
        if self.importing { self.in_log } else { self.position.0 == 0 && self.resources == 0 }
    }

    /// Whether the base is being imported.
    pub const fn takes_base(&self) -> bool {
        self.importing && !self.in_log
    }

    /// Whether anything changed since the log started. A restarted log has a position before its
    /// first change, so the position alone does not answer this.
    ///
    /// # Examples
    /// ```
    /// use abreast_core::{Head, Position};
    /// use abreast_webtypes::Timestamp;
    ///
    /// // A log that was restarted at position 41 and has no change yet.
    /// let created = Timestamp::from_seconds(1_772_355_600);
    /// let head = Head { position: Position(41), time: created, created, ..Head::default() };
    /// assert!(!head.has_changes());
    /// ```
    pub fn has_changes(&self) -> bool {
        self.time > self.created
    }
}

/// One resource of the base of a new set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Imported {
    /// Key of the resource, as in [`Resource::key`].
    pub key: String,
    /// First published representation of the resource.
    pub state: State,
    /// Fingerprint of the origin, as in [`Resource::witness`].
    pub witness: Vec<u8>,
}

/// The Source's fingerprint of a resource, without the published representation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witnessed {
    /// Key of the resource, as in [`Resource::key`].
    pub key: String,
    /// Fingerprint of the origin, as in [`Resource::witness`].
    pub witness: Vec<u8>,
    /// Address of the stored bytes, as in [`State::content`].
    pub content: Option<ContentId>,
}

/// The result of an append.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// Head of the log after it.
    pub head: Position,
    /// Number of changes that the append recorded.
    pub recorded: u64,
    /// Number of ignored changes: the resource was equal or already absent, or the idempotency key
    /// was seen before.
    pub unchanged: u64,
}

/// A range of positions that is one document in every protocol: `(after, last]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Number of the page in its set; the first page has 1.
    pub number: u64,
    /// The page starts after this position.
    pub after: Position,
    /// Last position of the page; `None` while the page is open.
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
    /// First key in the range, included.
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
    /// Number by which URLs and the store identify the shard.
    pub id: ShardId,
    /// Keys that the shard covers.
    pub range: KeyRange,
    /// Number of resources in the shard's range.
    pub resources: u64,
    /// The last change in its range: a document made from it stays right until this moves.
    pub version: Position,
    /// Time of the last change in the range; the set's creation time in an unchanged shard.
    pub time: Timestamp,
    /// Whether smaller shards replaced this shard.
    pub retired: bool,
}

/// The kinds of failures of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The store does not contain the set.
    NoSet,
    /// The store is damaged or was written by a newer version.
    Corrupt,
    /// The disk or the database failed; nothing of the batch is recorded.
    Io,
    /// The disk is full; nothing of the batch is recorded, and it can be sent again when there is space.
    Full,
    /// Too much is waiting; try again later.
    Busy,
    /// The store cannot be reached; try again later.
    Unavailable,
    /// The request itself cannot be stored, for example a key over 8 KiB.
    Refused,
}

/// A failure of a store, with its kind and an explanation for people.
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

    /// Adds the error that caused this failure, for [`std::error::Error::source`].
    ///
    /// # Examples
    /// ```
    /// use abreast_core::{ErrorKind, LogError};
    /// use std::error::Error as _;
    ///
    /// let cause = std::io::Error::other("disk quota exceeded");
    /// let error = LogError::new(ErrorKind::Full, "cannot record the changes").with_cause(cause);
    /// assert_eq!(error.kind(), ErrorKind::Full);
    /// assert_eq!(error.source().map(ToString::to_string).as_deref(), Some("disk quota exceeded"));
    /// ```
    #[must_use]
    pub fn with_cause(mut self, cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The kind, for callers to match on.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the same call may succeed later without a repair.
    pub const fn is_passing(&self) -> bool {
        matches!(self.kind, ErrorKind::Busy | ErrorKind::Unavailable)
    }
}

/// Is called with one item after the other, until it returns [`ControlFlow::Break`].
pub type Visit<'v, T> = &'v mut dyn FnMut(&T) -> ControlFlow<()>;

/// A durable, ordered log of changes for each set, and the table of resources it implies.
///
/// Calls block; async callers move reads to a blocking thread. What implementations promise:
/// - positions of a set are 1, 2, 3 … without gaps; times strictly increase ([`next_time`]), over
///   restarts and clock steps;
/// - `done` of an append is called once, with success only when the whole batch is durable;
/// - a batch is atomic: all of its changes are visible, or none;
/// - a new set with a base is importing: `import` builds the base, and `complete_import` ends the
///   import before any append. A set that starts in its log refuses an import, and is importing
///   until `complete_import` only if it was opened as incomplete;
/// - readers see a batch no later than its `done`, and never a part;
/// - pages, once closed, never change.
pub trait ChangeLog: Send + Sync + 'static {
    /// Opens the set with this slug, and creates a missing set. The set gets the page rule of
    /// `set`.
    ///
    /// # Errors
    /// [`ErrorKind::Refused`] when the set is there and has another beginning; else when the store
    /// fails.
    fn open_set(&self, set: &NewSet) -> Result<ResourceSet, LogError>;

    /// The current time, by the clock that all nodes of this log share.
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    /// All sets, in the order they were created.
    ///
    /// # Errors
    /// When the store fails.
    fn sets(&self) -> Result<Vec<ResourceSet>, LogError>;

    /// Finds the set with this slug without creating a missing set.
    ///
    /// # Errors
    /// When the store fails.
    fn find_set(&self, slug: &str) -> Result<Option<ResourceSet>, LogError> {
        Ok(self.sets()?.into_iter().find(|set| set.slug == slug))
    }

    /// The first recorded idempotency key of the set that begins with `prefix`. Keys are remembered for
    /// at least [`IDEMPOTENCY_AGE`](batch::IDEMPOTENCY_AGE).
    ///
    /// # Errors
    /// When the store fails.
    fn idempotency_key(&self, set: SetId, prefix: &str) -> Result<Option<String>, LogError>;

    /// Where the set's log stands.
    ///
    /// # Errors
    /// When the store does not contain the set or fails.
    fn head(&self, set: SetId) -> Result<Head, LogError>;

    /// The same without asking the store, for threads that must not block: it includes every change
    /// acknowledged through this value. `None` when the store must be asked.
    fn known_head(&self, _set: SetId) -> Option<Head> {
        None
    }

    /// The head for documents: if the store cannot be reached, the last head that was read, so that
    /// documents which were rendered before can be served.
    ///
    /// # Errors
    /// When the store does not contain the set or fails, and no head was read before.
    fn head_for_documents(&self, set: SetId) -> Result<Head, LogError> {
        self.head(set)
    }

    /// Checks that changes recorded from now on outlive this process, for probes and before long
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
    /// When the store does not contain a set or fails.
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

    /// Adds resources to the base of a new set, which exists before the log starts. Base resources
    /// get position 0 and no change record, since Change Lists cover only later changes. Blocks
    /// until the batch is durable. A key imported twice takes the later representation. Shards
    /// follow as for changes.
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
    /// When the disk has too little free space ([`ErrorKind::Full`]).
    fn check_space(&self) -> Result<(), LogError> {
        Ok(())
    }

    /// Records a batch (at most 10,000 changes) and calls `done` from another thread when it is
    /// durable. Blocks while too much is waiting.
    fn append_then(&self, set: SetId, changes: Vec<Change>, done: AppendDone);

    /// A view of this log for the process that has the lease with this name, such as the watch of the
    /// set's folder; see [`Lease::take_over`](crate::Lease::take_over).
    /// What earlier workers of the set record through their views is refused from now on
    /// ([`ErrorKind::Busy`]), also if it waits already. `None` if the log belongs to one process.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] if another process has the lease; else when the store fails.
    fn take_over(
        &self,
        _set: SetId,
        _lease: &str,
        _process: i64,
    ) -> Result<Option<Arc<dyn ChangeLog>>, LogError> {
        Ok(None)
    }

    /// Records the Source's fingerprints of resources whose published representation is unchanged.
    /// The call records no change.
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
    /// the visitor stops or at the end. Removed and deleted resources are included. The base of a
    /// set is not, since base resources do not have change records. A resource that changes during
    /// the visit is visited with at least one of its changes.
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

    /// The position of the last change that is not after `time`. Without such a change, the
    /// position where the log starts if `time` is not before [`Head::created`], and 0 otherwise.
    ///
    /// # Errors
    /// When the store fails.
    fn position_at(&self, set: SetId, time: Timestamp) -> Result<Position, LogError>;

    /// One resource.
    ///
    /// # Errors
    /// When the store fails.
    fn resource(&self, set: SetId, key: &str) -> Result<Option<Resource>, LogError>;

    /// Visits resources in byte order of their keys, all from one consistent snapshot. The visited
    /// value is reused. The visit sees at least the changes that the last answered `head` saw.
    ///
    /// # Errors
    /// When the store fails.
    fn scan(
        &self,
        set: SetId,
        range: &KeyRange,
        visit: Visit<'_, Resource>,
    ) -> Result<(), LogError>;

    /// Visits keys and fingerprints only, in the order of [`Self::scan`].
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

    /// Sets whether the store records versions of this set's resources from now on. A version is
    /// recorded for each state with stored bytes ([`State::content`]) and for each later change of
    /// such a resource. The setting survives restarts.
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

    /// Drops some of the versions that a policy does not retain, and checks at most `limit`
    /// changes. Callers repeat the call until [`Collected::complete`]. The call waits in line with
    /// appends, so a small limit delays appends less.
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
    wait(|done| log.append_then(set, changes, done))
}

/// Makes a request and waits for its result.
pub(crate) fn wait<T: Send + 'static>(
    request: impl FnOnce(Box<dyn FnOnce(Result<T, LogError>) + Send>),
) -> Result<T, LogError> {
    let (sender, receiver) = mpsc::sync_channel(1);
    request(Box::new(move |result| drop(sender.send(result))));
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
