//! Pending verifications of subscribers, and their results.

use super::target::{NewTarget, Secret};
use abreast_webtypes::Timestamp;

/// Number of a verification in its store, which is never used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerificationId(pub i64);

/// The question or message to the subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerificationMode {
    /// Ask the subscriber to confirm a subscription [websub §5.3].
    Subscribe,
    /// Ask the subscriber to confirm an unsubscription [websub §5.3].
    Unsubscribe,
    /// Notify the subscriber of a denial [websub §5.2].
    Denied,
}

/// A request to be verified, with the subscriber's values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVerification {
    /// The topic's URL, exactly as in the request; at most 8 KiB.
    pub topic_url: String,
    /// URL of the callback to ask; at most 8 KiB.
    pub callback: String,
    /// The question or message to send to the callback.
    pub mode: VerificationMode,
    /// The key for signatures, if any; at most 199 bytes.
    pub secret: Option<Secret>,
    /// The lease that will be granted, in seconds; `None` for an unlimited lease.
    pub lease_seconds: Option<u64>,
    /// The challenge that the subscriber must return; at most 1 KiB. Empty for a denial.
    pub challenge: String,
    /// Reason of a denial, in at most 1 KiB [websub §5.2].
    pub reason: Option<String>,
    /// Time of the next attempt to reach the callback.
    pub next_at: Timestamp,
}

/// A verification whose result is not recorded yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The verification's number in the store.
    pub id: VerificationId,
    /// The request, with the time of the next attempt.
    pub request: NewVerification,
    /// Number of failed attempts. `request.next_at` is the time of the next one.
    pub attempts: u32,
    /// Time at which the request was recorded.
    pub created: Timestamp,
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Confirmed: the target is created or renewed.
    Subscribed(NewTarget),
    /// The subscriber confirmed the end: this target ends, and so does the subscription of the same
    /// callback, if there is one.
    Unsubscribed,
    /// Targets do not change: the request was refused or failed permanently, or the subscriber was
    /// notified of a denial.
    Dropped,
}
