//! Notifications: changes are recorded for subscribers soon and without a gap
//! [rs-change-notification §2] [rs-framework-notification §2].
//!
//! | file | subject |
//! |---|---|
//! | `notifier.rs` | the thread that records notifications |
//! | `change_topic.rs` | the next range of a set's log |
//! | `document_topics.rs` | the documents that projections report as new or different |
//! | `state_file.rs` | where topics began and which documents they have notified, over restarts |
//!
//! The number and addresses of subscribers are a hub's business. A notification is made when it is
//! durable in its topic's log ([`abreast_core::TopicLog`]).

mod change_topic;
mod document_topics;
mod due;
mod error;
mod notifier;
mod state_file;

pub use crate::notify::error::NotifyError;
pub use notifier::{Notifier, Published};
pub use state_file::{check_notified, topics_of_set};

use std::time::Duration;

/// The options of notifications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotifyOptions {
    /// The longest pause between two notifications: 200 ms by default. After a single one it is a
    /// tenth of that, and twice as long after each that follows soon.
    pub debounce: Duration,
    /// Changes in one notification: 1,000 by default, 50,000 at most [rs-core §7]. More become
    /// several.
    pub most: usize,
    /// A notification is about this long at most: 512 KiB by default. More become several.
    pub bytes: usize,
    /// An open Change List that grows is notified this often: once a minute by default; never when
    /// zero. New and closed ones are notified at once.
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
    /// With at most this time between two notifications of one set.
    #[must_use]
    pub const fn with_debounce(mut self, debounce: Duration) -> Self {
        self.debounce = debounce;
        self
    }

    /// With at most so many changes in one notification.
    #[must_use]
    pub fn with_most(mut self, most: usize) -> Self {
        self.most = most.clamp(1, 50_000);
        self
    }

    /// With notifications of about this length at most.
    #[must_use]
    pub const fn with_bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// With open Change Lists notified this often; never when zero.
    #[must_use]
    pub const fn with_change_list_every(mut self, every: Duration) -> Self {
        self.change_list_every = every;
        self
    }
}
