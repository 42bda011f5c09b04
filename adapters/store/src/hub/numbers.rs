//! Numbers and limits of columns that all stores of a hub share.

use abreast_core::hub::{ERROR_BYTES_MAX, Ending, TargetKind, VerificationMode};

/// Most bytes of bodies in the result of a read, unless the first body alone has more.
pub(crate) const READ_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Most notifications dropped in one transaction.
pub(crate) const TRIM_MAX: u64 = 1_000;

const KINDS: [TargetKind; 5] = [
    TargetKind::Subscription,
    TargetKind::FatSubmission,
    TargetKind::FormSubmission,
    TargetKind::Node,
    TargetKind::Webhook,
];

pub(crate) const fn kind_number(kind: TargetKind) -> i64 {
    match kind {
        TargetKind::Subscription => 1,
        TargetKind::FatSubmission => 2,
        TargetKind::FormSubmission => 3,
        TargetKind::Node => 4,
        TargetKind::Webhook => 5,
    }
}

/// The kind of a target with this number, if there is one.
pub(crate) fn kind_of(number: i64) -> Option<TargetKind> {
    KINDS.into_iter().find(|kind| kind_number(*kind) == number)
}

const ENDINGS: [Ending; 6] = [
    Ending::Unsubscribed,
    Ending::LeaseOver,
    Ending::Gone,
    Ending::Denied,
    Ending::ByHand,
    Ending::NotConfigured,
];

pub(crate) const fn ending_number(ending: Ending) -> i64 {
    match ending {
        Ending::Unsubscribed => 1,
        Ending::LeaseOver => 2,
        Ending::Gone => 3,
        Ending::Denied => 4,
        Ending::ByHand => 5,
        Ending::NotConfigured => 6,
    }
}

/// The reason with this number, if there is one.
pub(crate) fn ending_of(number: i64) -> Option<Ending> {
    ENDINGS.into_iter().find(|ending| ending_number(*ending) == number)
}

const MODES: [VerificationMode; 3] =
    [VerificationMode::Subscribe, VerificationMode::Unsubscribe, VerificationMode::Denied];

pub(crate) const fn mode_number(mode: VerificationMode) -> i64 {
    match mode {
        VerificationMode::Subscribe => 1,
        VerificationMode::Unsubscribe => 2,
        VerificationMode::Denied => 3,
    }
}

/// The mode with this number, if there is one.
pub(crate) fn mode_of(number: i64) -> Option<VerificationMode> {
    MODES.into_iter().find(|mode| mode_number(*mode) == number)
}

/// The start of an error text, up to the limit of bytes.
pub(crate) fn cut(error: &str) -> &str {
    let mut end = error.len().min(ERROR_BYTES_MAX);
    while !error.is_char_boundary(end) {
        end -= 1;
    }
    &error[..end]
}
