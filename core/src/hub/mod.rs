//! The store of a hub: topics, their notifications, targets, and subscribers that are not verified
//! yet.
//!
//! A notification is recorded once for any number of targets. A target stores one number: the
//! offset of the last notification that it took. The progress of deliveries is recorded for many
//! targets at once, at intervals, so that a crash repeats a few deliveries and loses none.

mod done;
mod limits;
mod nodes;
mod store;
mod summary;
mod target;
mod topic;
mod verification;

pub use done::Done;
pub use limits::{
    ALL_DEAD_LETTERS_MAX, ATTEMPTS_MAX, BODY_BYTES_MAX, DEAD_LETTERS_MAX, ENDED_MAX,
    ERROR_BYTES_MAX, FAILING_TARGETS_MAX, LINK_BYTES_MAX, NAME_BYTES_MAX, SECRET_BYTES_MAX,
    TOPICS_MAX, URL_BYTES_MAX, VERIFICATIONS_MAX, check_notification, check_target,
    check_topic_url, check_verification, no_topic,
};
pub use nodes::{
    ChangedTarget, HUB_SHARDS, HubChanges, HubNodes, HubRevision, HubShard, Membership,
};
pub use store::HubStore;
pub use summary::{FailingTarget, HubSummary, Sizes, TopicSummary};
pub use target::{
    Attempt, DeadLetter, EndedTarget, Ending, NewTarget, Progress, Secret, Target, TargetId,
    TargetKind,
};
pub use topic::Topic;
pub use verification::{NewVerification, Settled, Verification, VerificationId, VerificationMode};
