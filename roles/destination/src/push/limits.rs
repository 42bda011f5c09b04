//! Limits of notifications, the same for all transports.

/// Maximum length of a notification, in bytes.
pub(super) const NOTIFICATION_MAX: usize = 8 << 20;
