//! The topics of feeds.

use super::paths::Feed;
use crate::publish::{Topic, TopicContent};
use std::sync::Arc;

/// The topic of a feed of all changes, if they are notified; of other views of them too.
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
