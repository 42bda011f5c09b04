//! Which subscribers are still to be asked, and what came of it?

use super::{NewTarget, Secret};
use abreast_webtypes::Timestamp;

/// A verification's number in its store; never given twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VerificationId(pub i64);

/// What is the subscriber asked, or told?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VerificationMode {
    /// Do you want this subscription?
    Subscribe,
    /// Do you want it to end?
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
    /// What to ask.
    pub mode: VerificationMode,
    /// The key for signatures, if any; at most 199 bytes.
    pub secret: Option<Secret>,
    /// The lease that will be granted.
    pub lease_seconds: Option<u64>,
    /// What the subscriber must say; at most 1 KiB.
    pub challenge: String,
    /// Why it is denied; at most 1 KiB.
    pub reason: Option<String>,
    /// When to ask.
    pub next_at: Timestamp,
}

/// A request that is not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verification {
    /// Its number.
    pub id: VerificationId,
    /// What was asked for.
    pub request: NewVerification,
    /// How often asking failed. `request.next_at` is when to ask next.
    pub attempts: u32,
    /// When it came.
    pub created: Timestamp,
}

/// What came of a verification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The subscriber wants it: the target is made or made anew.
    Subscribed(NewTarget),
    /// The subscriber wants it to end, as does this topic's and callback's subscription, if there is one.
    Unsubscribed,
    /// Nothing: it was refused, failed for good, or was told.
    Dropped,
}
