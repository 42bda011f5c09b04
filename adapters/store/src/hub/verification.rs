//! Pending verifications of subscribers, and their results: types.

use super::{NewTarget, Secret};
use abreast_webtypes::Timestamp;

/// A verification's number in its store; never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerificationId(pub i64);

/// The question or message to the subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerificationMode {
    /// Ask the subscriber to confirm a subscription [websub §5.3].
    Subscribe,
    /// Ask the subscriber to confirm an unsubscription [websub §5.3].
    Unsubscribe,
    /// You do not get it.
    Denied,
}

/// A request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewVerification {
    /// The topic's URL, exactly as it was given; at most 8 KiB.
    pub topic_url: String,
    /// Where to ask; at most 8 KiB.
    pub callback: String,
    /// The question or message to send to the callback.
    pub mode: VerificationMode,
    /// The key for signatures, if any; at most 199 bytes.
    pub secret: Option<Secret>,
    /// The lease that will be granted, in seconds; `None` for an unlimited lease.
    pub lease_seconds: Option<u64>,
    /// The challenge that the subscriber must return; at most 1 KiB. Empty where nothing is asked.
    pub challenge: String,
    /// Reason of a denial, in at most 1 KiB [websub §5.2].
    pub reason: Option<String>,
    /// Time of the next attempt to reach the callback.
    pub next_at: Timestamp,
}

/// A request that is not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// The verification's number in the store.
    pub id: VerificationId,
    /// The request, with the time of the next attempt.
    pub request: NewVerification,
    /// How often asking failed. `request.next_at` is when to ask next.
    pub attempts: u32,
    /// Time at which the request was recorded.
    pub created: Timestamp,
}

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Confirmed: the target is created or renewed.
    Subscribed(NewTarget),
    /// The subscriber wants it to end, as does this topic's and callback's subscription, if there
    /// is one.
    Unsubscribed,
    /// Nothing: it was refused, failed permanently, or the subscriber was notified.
    Dropped,
}
