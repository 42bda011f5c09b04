//! Shared files of a node, and the thread that follows the records of other nodes.

use super::error::SharedError;
use super::group::Group;
use super::place::{Place, SharedOptions};
use crate::made::worker::{Signal, Worker};
use abreast_core::contents::made::MadeStore;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Interval at which the node with the turn deletes leftovers of killed nodes.
const LEFTOVERS_EVERY: Duration = Duration::from_secs(3_600);
/// Kinds of the groups of a set. Groups of dumps have the name of the set after the first segment.
pub(super) const KINDS: [&str; 6] =
    ["archives", "snapshots", "dumps/resources", "dumps/changes", "dumps/since", "dumps/derived"];
/// Request to make a file if the newest file is old enough.
pub(crate) const WHEN_OLD: u8 = 1;
/// Request of an operator to make files at once.
pub(crate) const NOW: u8 = 2;

/// Made files that this node shares with other nodes of the same Source.
pub struct SharedFiles {
    followed: Arc<Followed>,
    /// Stops the thread when the last owner drops the files.
    _worker: Worker,
}

/// All groups of a node.
struct Followed {
    place: Arc<Place>,
    groups: Mutex<Vec<Weak<SharedGroup>>>,
    is_failing: AtomicBool,
}

/// Shared files for the groups of a set.
#[derive(Clone)]
pub struct SharedSet {
    files: Arc<SharedFiles>,
    slug: String,
}

/// A group, with requests to make its files.
pub(crate) struct SharedGroup {
    group: Group,
    /// Request of this node.
    wanted: AtomicU8,
    /// Function that starts making the requested files.
    wake: OnceLock<Box<dyn Fn(u8) + Send + Sync>>,
    leftovers: Mutex<Option<Instant>>,
}

impl Deref for SharedGroup {
    type Target = Group;

    fn deref(&self) -> &Group {
        &self.group
    }
}

impl fmt::Debug for SharedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedFiles").finish_non_exhaustive()
    }
}

impl fmt::Debug for SharedSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSet").field("slug", &self.slug).finish_non_exhaustive()
    }
}

impl SharedFiles {
    /// Starts a thread that reads the records of other nodes at the interval of the options.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(store: Arc<dyn MadeStore>, options: SharedOptions) -> io::Result<Arc<Self>> {
        let poll = options.poll;
        let place = Arc::new(Place::new(store, options));
        let groups = Mutex::default();
        let followed = Arc::new(Followed { place, groups, is_failing: AtomicBool::new(false) });
        let of_thread = Arc::clone(&followed);
        let follow = move |signal: &Signal| of_thread.follow(signal);
        let worker = Worker::start_every(poll, "shared-files", Arc::default(), follow)?;
        Ok(Arc::new(Self { followed, _worker: worker }))
    }

    /// Shared files of the set with this name in URLs.
    pub fn of_set(self: &Arc<Self>, slug: &str) -> SharedSet {
        SharedSet { files: Arc::clone(self), slug: slug.to_owned() }
    }
}

impl SharedSet {
    /// Opens a group such as `snapshots/SET`, with local copies in `folder`.
    pub(crate) fn open(&self, kind: &str, folder: PathBuf) -> io::Result<Arc<SharedGroup>> {
        debug_assert!(KINDS.contains(&kind), "{kind}");
        let followed = &self.files.followed;
        let name = group_of(kind, &self.slug);
        let group = Arc::new(SharedGroup {
            group: Group::open(&followed.place, &name, folder)?,
            wanted: AtomicU8::new(0),
            wake: OnceLock::new(),
            leftovers: Mutex::default(),
        });
        followed.lock().push(Arc::downgrade(&group));
        Ok(group)
    }
}

/// Name of the group of a kind for a set: `dumps/SET/changes` for the kind `dumps/changes`.
pub(super) fn group_of(kind: &str, slug: &str) -> String {
    match kind.split_once('/') {
        Some((first, rest)) => format!("{first}/{slug}/{rest}"),
        None => format!("{kind}/{slug}"),
    }
}

impl Followed {
    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Weak<SharedGroup>>> {
        self.groups.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the records of all groups. The first failure of the store ends the round.
    fn follow(&self, signal: &Signal) {
        let groups: Vec<_> = {
            let mut groups = self.lock();
            groups.retain(|group| group.strong_count() > 0);
            groups.iter().filter_map(Weak::upgrade).collect()
        };
        let mut failed = false;
        for group in groups {
            if signal.is_stopped() {
                return;
            }
            let Err(error) = group.tend() else { continue };
            failed = true;
            if !self.is_failing.swap(true, Ordering::Relaxed) {
                tracing::warn!("cannot read the made files of other nodes: {error}; retrying");
            }
            if error.retry().is_some() {
                return;
            }
        }
        if !failed && self.is_failing.swap(false, Ordering::Relaxed) {
            tracing::info!("the made files of other nodes can be read again");
        }
    }
}

impl SharedGroup {
    /// Sets the function that starts making requested files.
    pub(crate) fn on_request(&self, wake: impl Fn(u8) + Send + Sync + 'static) {
        let _ = self.wake.set(Box::new(wake));
    }

    /// Requests the making of files; the node with the turn makes the files. Returns at once.
    pub(crate) fn want(&self, wanted: u8) {
        self.wanted.fetch_max(wanted, Ordering::Relaxed);
    }

    /// Reads the record, and does what is due.
    fn tend(&self) -> Result<(), SharedError> {
        self.refresh()?;
        let own = self.wanted.swap(0, Ordering::Relaxed);
        if self.is_mine() {
            let (taken, result) = self.take_request();
            let wanted = taken.max(own);
            result.inspect_err(|_| self.want(wanted))?;
            if let Some(wake) = self.wake.get().filter(|_| wanted > 0) {
                wake(wanted);
            }
            self.delete_removed()?;
            let mut leftovers = self.leftovers.lock().unwrap_or_else(PoisonError::into_inner);
            if leftovers.is_none_or(|time| time.elapsed() >= LEFTOVERS_EVERY) {
                *leftovers = Some(Instant::now());
                self.delete_leftovers()?;
            }
        } else if own > 0 {
            self.request(own).inspect_err(|_| self.want(own))?;
        }
        Ok(())
    }
}
