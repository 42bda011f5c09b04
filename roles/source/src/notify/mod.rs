//! Notifications: changes are recorded for subscribers soon and without gaps
//! [rs-change-notification §2] [rs-framework-notification §2].
//!
//! | file | subject |
//! |---|---|
//! | `notifier.rs` | the thread that records notifications |
//! | `change_topic.rs` | the next range of a set's log |
//! | `document_topics.rs` | the documents that projections report as new or different |
//! | `state_file.rs` | where topics began and which documents they have notified, over restarts |
//!
//! A hub handles the subscribers. A notification is complete when it is durable in the log of its
//! topic ([`abreast_core::TopicLog`]).

mod change_topic;
mod document_topics;
mod due;
mod error;
mod notifier;
mod state_file;

pub use crate::notify::error::NotifyError;
pub use notifier::{Notifier, Published};
pub use state_file::{
    NotifiedPlace, check_notified, copy_notified, notified_path, rename_in_record, topics_of_set,
};

use std::time::Duration;

/// Limits and intervals of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotifyOptions {
    /// Longest pause between two notifications of a set, 200 ms by default. After a single
    /// notification, the pause is a tenth of this value, and it doubles after each notification
    /// that follows soon.
    pub debounce: Duration,
    /// Most changes in a notification: 1,000 by default, at most 50,000 [rs-core §7]. Further
    /// changes are in another notification.
    pub most: usize,
    /// Approximate maximum length of a notification in bytes, 512 KiB by default. Further changes
    /// are in another notification.
    pub bytes: usize,
    /// Interval between notifications of an open Change List that grows, one minute by default;
    /// zero to disable. New and closed lists are notified immediately.
    pub change_list_every: Duration,
}

impl Default for NotifyOptions {
    fn default() -> Self {
        Self {
            debounce: Duration::from_millis(200),
            most: 1_000,
            bytes: 512 * 1_024,
            change_list_every: Duration::from_secs(60),
        }
    }
}

impl NotifyOptions {
    /// Sets the longest pause between two notifications of a set.
    #[must_use]
    pub const fn with_debounce(mut self, debounce: Duration) -> Self {
        self.debounce = debounce;
        self
    }

    /// Sets the maximum number of changes in a notification.
    #[must_use]
    pub fn with_most(mut self, most: usize) -> Self {
        self.most = most.clamp(1, 50_000);
        self
    }

    /// Sets the approximate maximum length of a notification, in bytes.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Sets the interval between notifications of a growing Change List; zero to disable.
    #[must_use]
    pub const fn with_change_list_every(mut self, every: Duration) -> Self {
        self.change_list_every = every;
        self
    }
}
