//! Notifications as pushed documents [rs-change-notification §3]. Each gives the time since which it has all changes.

use super::notification::{Notification, read_notification};
use crate::read::Pushed;
use crate::read::walk::Walk;
use crate::report::error::Error;
use abreast_webtypes::{Moment, Timestamp};

/// A notification of a set whose Change List is `document`.
struct PushedNotification {
    notification: Notification,
    document: String,
}

/// Parses a notification, or returns the reason why it cannot be used.
pub(super) fn read_pushed(bytes: &[u8], document: String) -> Result<Box<dyn Pushed>, String> {
    let notification = read_notification(bytes)?;
    Ok(Box::new(PushedNotification { notification, document }))
}

impl Pushed for PushedNotification {
    fn from(&self) -> Option<Timestamp> {
        Some(self.notification.from)
    }

    fn until(&self) -> Timestamp {
        self.notification.until
    }

    fn is_span(&self) -> bool {
        true
    }

    fn each(&self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let (from, until) = (self.notification.from, self.notification.until);
        walk.begin_changes(&self.document, Some(from.into()), Some(Moment::exact(until)));
        self.notification.changes(&self.document).try_for_each(|change| walk.change(&change))
    }
}
