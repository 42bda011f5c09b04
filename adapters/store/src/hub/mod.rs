//! The durable data of a hub, in one SQLite file: topics, their notifications, targets, and
//! subscribers that are not verified yet.
//!
//! A notification is one row for any number of targets. A target stores one number: the offset of
//! the last notification that it took. A publication, and a request to be verified, is durable when
//! `done` is called. The progress of deliveries is recorded for many targets at once, at intervals,
//! so that a crash repeats a few deliveries and loses none.

mod done;
pub(crate) mod limits;
mod recorder;
pub(crate) mod store;
pub(crate) mod summary;
pub(crate) mod target;
pub(crate) mod targets;
pub(crate) mod topic_states;
pub(crate) mod topics;
mod transaction;
pub(crate) mod verification;
pub(crate) mod verifications;

pub use crate::hub::done::Done;
pub use limits::{
    BODY_BYTES_MAX, LINK_BYTES_MAX, NAME_BYTES_MAX, SECRET_BYTES_MAX, TOPICS_MAX, URL_BYTES_MAX,
    VERIFICATIONS_MAX,
};
pub(crate) use store::MIGRATIONS;
pub use store::{HubStore, Sizes};
pub use summary::{FailingTarget, HubSummary, TopicSummary};
pub use target::{
    Attempt, DeadLetter, EndedTarget, Ending, NewTarget, Progress, Secret, Target, TargetId,
    TargetKind,
};
pub use targets::{
    ALL_DEAD_LETTERS_MAX, ATTEMPTS_MAX, DEAD_LETTERS_MAX, ENDED_MAX, ERROR_BYTES_MAX,
};
pub use topics::Topic;
pub use verification::{NewVerification, Settled, Verification, VerificationId, VerificationMode};
