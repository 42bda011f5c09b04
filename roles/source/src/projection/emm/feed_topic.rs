//! Topics of change feeds.

use super::paths::Feed;
use crate::publish::{Topic, TopicContent};
use std::sync::Arc;

/// Topic of a feed of all changes, in any view; `None` if changes are not notified.
pub(super) fn topic(feed: &Feed<'_>) -> Option<Topic> {
    feed.set.notifications.as_ref().filter(|notifications| notifications.changes)?;
    Some(Topic {
        url: feed.url(),
        set: Arc::clone(feed.set),
        record: format!("{}/{}", feed.set.slug, feed.profile.name()),
        content: TopicContent::Changes,
        media_type: feed.profile.media_types()[0],
        links: String::new(),
    })
}
