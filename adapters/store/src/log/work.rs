//! Jobs for the writer of a change log, and their replies.

use crate::database::queue::{Limits, QueueItem};
use abreast_core::{
    AppendDone, Appended, Change, Collected, ContentId, Imported, LogError, NewSet, ResourceSet,
    SetId, VersionPolicy,
};
use std::sync::mpsc::SyncSender;

/// Most waiting jobs; then callers block.
const JOBS_MAX: usize = 64;
/// Most changes in waiting jobs; then callers block.
const WAITING_MAX: usize = 20_000;
/// A transaction that has this many changes gets no more jobs.
const GROUP_MAX: usize = 1_000;

/// The jobs of the writer.
pub(crate) enum Work {
    Append(SetId, Vec<Change>),
    /// A request that was refused earlier; answered by the writer's thread, so that answers are in
    /// order.
    Refuse(LogError),
    OpenSet(NewSet),
    Import(SetId, Vec<Imported>),
    CompleteImport(SetId),
    RefreshWitnesses(SetId, Vec<(String, Vec<u8>)>),
    KeepVersions(SetId, bool),
    CollectVersions(SetId, VersionPolicy, usize),
    ForgetContents(Vec<ContentId>),
    /// Makes a process the worker of a set, if it has the lease with this name.
    #[cfg(feature = "postgres")]
    TakeOver(SetId, String, i64),
}

impl Work {
    fn changes(&self) -> usize {
        match self {
            Self::Append(_, changes) => changes.len(),
            Self::Import(_, resources) => resources.len(),
            Self::RefreshWitnesses(_, witnesses) => witnesses.len(),
            Self::CollectVersions(_, _, limit) => *limit,
            Self::ForgetContents(ids) => ids.len(),
            Self::Refuse(_)
            | Self::OpenSet(_)
            | Self::CompleteImport(_)
            | Self::KeepVersions(..) => 1,
            #[cfg(feature = "postgres")]
            Self::TakeOver(..) => 1,
        }
    }
}

#[cfg(feature = "postgres")]
impl Work {
    /// The set that the job changes.
    pub(crate) const fn set(&self) -> Option<SetId> {
        match self {
            Self::Append(set, _)
            | Self::Import(set, _)
            | Self::CompleteImport(set)
            | Self::RefreshWitnesses(set, _)
            | Self::KeepVersions(set, _)
            | Self::CollectVersions(set, ..)
            | Self::TakeOver(set, ..) => Some(*set),
            Self::Refuse(_) | Self::OpenSet(_) | Self::ForgetContents(_) => None,
        }
    }

    /// The changes to append.
    pub(crate) fn batch(&self) -> Option<&[Change]> {
        if let Self::Append(_, changes) = self { Some(changes) } else { None }
    }
}

/// The result of a job.
pub(crate) enum Outcome {
    Appended(Appended),
    Set(ResourceSet),
    Collected(Collected),
    Done,
}

/// The receiver of a job's result.
pub(crate) enum Reply {
    Append(AppendDone),
    Call(SyncSender<Result<Outcome, LogError>>),
}

impl Reply {
    pub(crate) fn send(self, result: Result<Outcome, LogError>) {
        match self {
            Self::Append(done) => done(result.map(|outcome| match outcome {
                Outcome::Appended(appended) => appended,
                Outcome::Set(_) | Outcome::Collected(_) | Outcome::Done => Appended::default(),
            })),
            Self::Call(sender) => {
                let _ = sender.send(result); // the caller waits for nothing else
            }
        }
    }
}

/// A job with the receiver of its result.
pub(crate) struct Job {
    pub(crate) work: Work,
    pub(crate) reply: Reply,
    /// The process that must be the worker of the set; any if `None`.
    #[cfg(feature = "postgres")]
    pub(crate) worker: Option<i64>,
}

impl Job {
    pub(crate) const fn new(work: Work, reply: Reply) -> Self {
        Self {
            work,
            reply,
            #[cfg(feature = "postgres")]
            worker: None,
        }
    }
}

#[cfg(feature = "postgres")]
impl Job {
    /// Whether another process is the worker of the set now.
    pub(crate) fn is_late(&self, worker: i64) -> bool {
        self.worker.is_some_and(|own| own != worker)
    }
}

impl QueueItem for Job {
    const LIMITS: Limits =
        Limits { jobs: JOBS_MAX, weight: WAITING_MAX, group: GROUP_MAX, patience: None };

    fn weight(&self) -> usize {
        self.work.changes()
    }

    fn refuse(self, why: LogError) {
        self.reply.send(Err(why));
    }
}
