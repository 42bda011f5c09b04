//! Topics, and the Change Notifications of a set [rs-change-notification §3, §4]
//! [rs-framework-notification §3, §4].
//!
//! A Change Notification is a range of the log, with the same entries as in the Change List. Its
//! `from` equals `until` of the previous notification. A reader that finds a gap reads the missing
//! changes in the Change List.

use super::change_list::ChangeWriter;
use super::dumps::time_of;
use super::values::{XML, exactly, link};
use super::{PublishError, PublishedSet, Publisher, SetUrls};
use crate::publish::{Notifications, Topic, TopicContent};
use abreast_core::{ChangeLog, Position};
use abreast_resourcesync::v1_1::{Capability, Head, Root, write_end, write_head};
use abreast_webtypes::{Link, Timestamp, write_link};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Kind of notifications; each kind has one topic in every set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Channel {
    /// Changes of resources [rs-change-notification §2].
    Change,
    /// Changes of the documents about a set [rs-framework-notification §2].
    Framework,
}

impl Channel {
    /// All channels: changes and framework.
    pub const ALL: [Self; 2] = [Self::Change, Self::Framework];

    /// Name of the channel in URLs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Change => "change",
            Self::Framework => "framework",
        }
    }

    /// Capability in the documents of the channel.
    pub const fn capability(self) -> Capability {
        match self {
            Self::Change => Capability::ChangeNotification,
            Self::Framework => Capability::FrameworkNotification,
        }
    }
}

impl Notifications {
    /// Whether the set has this channel.
    pub fn has(&self, channel: Channel) -> bool {
        match channel {
            Channel::Change => self.changes,
            Channel::Framework => self.framework,
        }
    }

    /// Channels that are enabled for the set.
    pub fn channels(&self) -> impl Iterator<Item = Channel> + '_ {
        Channel::ALL.into_iter().filter(|channel| self.has(*channel))
    }
}

/// Topics of all sets.
pub(super) fn topics(publisher: &Publisher) -> Vec<Topic> {
    let all = |set| Channel::ALL.into_iter().filter_map(move |channel| topic(set, channel));
    publisher.sets().iter().flat_map(all).collect()
}

/// Topic of a channel of a set, if the channel is enabled.
pub(super) fn topic(set: &Arc<PublishedSet>, channel: Channel) -> Option<Topic> {
    set.notifications.as_ref().filter(|notifications| notifications.has(channel))?;
    let mut links = String::new();
    let target = set.urls.capability_list();
    write_link(&mut links, &Link { target, rel: "resourcesync".to_owned(), params: Vec::new() });
    Some(Topic {
        url: set.urls.topic(channel),
        set: Arc::clone(set),
        record: set.slug.clone(),
        content: match channel {
            Channel::Change => TopicContent::Changes,
            Channel::Framework => TopicContent::Documents,
        },
        media_type: XML,
        links,
    })
}

/// Whether a path has the form of a channel's topic; the set need not be published.
pub(super) fn is_topic(path: &str, channel: Channel) -> bool {
    let slug = path.strip_suffix(channel.name()).and_then(|rest| rest.strip_suffix("/notify/"));
    slug.is_some_and(|slug| !slug.is_empty() && !slug.contains('/'))
}

/// Change Notification of a range of a set's log. Reads the store. The same range always has the
/// same bytes.
///
/// If the range began before the log was recreated, only later changes are included: `from` is
/// later than `until` of the previous notification, which leads readers to the Change List.
/// later than `until` of the one before, and that leads readers to the Change List.
///
/// # Errors
/// When the log fails.
pub(super) fn of_changes(
    log: &dyn ChangeLog,
    set: &PublishedSet,
    after: Position,
    last: Position,
) -> Result<Vec<u8>, PublishError> {
    let before = time_of(log, set.id, after)?;
    let created = log.head(set.id)?.created;
    let mut until = None;
    let (mut entries, mut writer) = (Vec::new(), ChangeWriter::new(set));
    if after < last {
        log.read(set.id, after, &mut |record| {
            if record.position > last {
                return ControlFlow::Break(());
            }
            // `from` is the beginning of the log, so that earlier changes are outside the interval.
            if record.time > created && until.is_some_and(|until| until <= created) {
                entries.clear();
            }
            until = Some(record.time);
            writer.write(&mut entries, record);
            if record.position == last { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
    }
    let (from, until) = match until {
        // The changes were notified before the log was recreated, and are not in the log.
        Some(until) if until <= created => (before.min(until), until),
        // The changes in between are unknown since the log was recreated; readers detect a gap.
        Some(until) => (before.max(created), until),
        None => (created, created),
    };
    let mut bytes = Vec::with_capacity(entries.len() + 512);
    write_head(&mut bytes, &head(&set.urls, Channel::Change, Some(from), until));
    bytes.append(&mut entries);
    write_end(&mut bytes, Root::UrlSet);
    Ok(bytes)
}

pub(super) fn head(
    urls: &SetUrls,
    channel: Channel,
    from: Option<Timestamp>,
    until: Timestamp,
) -> Head {
    Head {
        root: Root::UrlSet,
        capability: Some(channel.capability()),
        from: from.map(exactly),
        until: Some(exactly(until)),
        links: vec![link("up", &urls.capability_list())],
        ..Head::default()
    }
}
