//! What a hub must not forget, in one SQLite file: topics, what was said in them, who is to be told, and who is still to
//! be asked.
//!
//! A notification is one row, however many are to be told: each of these targets is one number, the last notification
//! that it took. Publishing is durable when `done` is called, as is a request to be verified; progress of deliveries is
//! recorded for many targets at once, now and then, so that a crash repeats a little and loses nothing.

mod check;
pub(crate) mod limits;
mod mend;
mod recorder;
mod store;
mod target;
mod targets;
mod topics;
mod verification;
mod verifications;

pub use check::{HubFacts, check_hub};
pub use limits::{
    BODY_BYTES_MAX, LINK_BYTES_MAX, NAME_BYTES_MAX, SECRET_BYTES_MAX, TOPICS_MAX, URL_BYTES_MAX, VERIFICATIONS_MAX,
};
pub use mend::{OFFSETS_APART, begin_hub_anew, check_hub_copy, copy_hub, repair_hub};
pub use store::{Done, HubStore, Sizes};
pub use target::{Attempt, DeadLetter, EndedTarget, Ending, NewTarget, Progress, Secret, Target, TargetId, TargetKind};
pub use targets::{ALL_DEAD_LETTERS_MAX, ATTEMPTS_MAX, DEAD_LETTERS_MAX, ENDED_MAX, ERROR_BYTES_MAX};
pub use topics::Topic;
pub use verification::{NewVerification, Settled, Verification, VerificationId, VerificationMode};
