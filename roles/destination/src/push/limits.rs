//! Limits of notifications, however they come.

/// Bytes of one notification.
pub(super) const NOTIFICATION_MAX: usize = 8 << 20;
