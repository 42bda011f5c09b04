//! Rules for notifications and for the entries that lead to topics [rs-change-notification §3, §5].
//! [rs-framework-notification §2.1, §3, §5]

use crate::fetch::values;
use crate::report::{Findings, rules as r};
use crate::resourcesync::entry::{Entry, Head};
use crate::resourcesync::kind;
use crate::resourcesync::markup::has;
use abreast_resourcesync::v1_1::{Capability, Change, Root};
use abreast_webtypes::{W3cDatetime, excerpt};
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Entries that are remembered to find duplicates.
const LISTED_MAX: usize = 50_000;

/// State from earlier entries of the document.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// Hashes of the URIs and times of earlier entries.
    listed: HashSet<u64>,
    /// Topics in a Capability List: the kind of notification and the URL.
    topics: Vec<(Capability, String)>,
}

/// Checks the head of a notification.
pub(crate) fn head(head: &Head, capability: Capability, found: &mut Findings) {
    if head.root() == Root::SitemapIndex {
        let name = kind::name(Some(capability), Root::UrlSet);
        found.add(&r::NOTIFICATION_ROOT, head.md_place, || {
            format!("the root of this {name} is `sitemapindex`")
        });
    }
}

/// Reports changes or documents that a notification contains twice. Several changes of a resource
/// without times are allowed.
pub(crate) fn once(capability: Capability, entry: &Entry, state: &mut State, found: &mut Findings) {
    let is_framework = capability == Capability::FrameworkNotification;
    // A notification contains each document once, with its last change.
    let time = entry.md.datetime.map(|time| time.instant).filter(|_| !is_framework);
    if time.is_none() && !is_framework {
        return;
    }
    let mut hasher = DefaultHasher::new();
    (&entry.loc, time).hash(&mut hasher);
    let hash = hasher.finish();
    if state.listed.contains(&hash) {
        let time = time.map_or_else(String::new, |time| format!(" at {time}"));
        let message = || format!("{}{time} is listed already", excerpt(&entry.loc));
        found.add(&r::NOTIFICATION_ONCE, entry.place, message);
    } else if state.listed.len() < LISTED_MAX {
        state.listed.insert(hash);
    }
}

/// Checks an entry of a Framework Notification.
pub(crate) fn framework_entry(until: Option<W3cDatetime>, entry: &Entry, found: &mut Findings) {
    let (md, place) = (&entry.md, entry.place);
    if !md.has(has::CHANGE) {
        found.add(&r::FRAMEWORK_CHANGE, place, || {
            format!("no `change` for {}", excerpt(&entry.loc))
        });
    }
    if !md.has(has::CAPABILITY) {
        found.add(&r::FRAMEWORK_CAPABILITY, place, || {
            format!("no `capability` for {}", excerpt(&entry.loc))
        });
    }
    if let Some(capability) = md.capability {
        if kind::is_manifest(capability) || kind::is_notification(capability) {
            let message = || format!("`{}` is not a document that is notified", capability.token());
            found.add(&r::FRAMEWORK_TABLE, place, message);
        } else if let Some(change) = md.change.filter(|change| !may_be(capability, *change)) {
            let name = kind::name(Some(capability), Root::UrlSet);
            let message = || format!("a {name} is notified as {}", change.token());
            found.add(&r::FRAMEWORK_TABLE, place, message);
        }
    }
    // `from` is the time from which all changes are contained; earlier changes are also allowed.
    if let (Some(time), Some(until)) = (md.datetime, until)
        && values::is_before(until, time)
    {
        let message = || format!("`datetime` {} is after `until` {}", time.instant, until.instant);
        found.add(&r::DATETIME_RANGE, place, message);
    }
    if entry.links.iter().any(|link| link.has_rel("index") && link.href == entry.loc) {
        let message = || format!("{} has itself as index", excerpt(&entry.loc));
        found.add(&r::FRAMEWORK_NO_INDEX, place, message);
    }
}

/// Whether the table of changes allows the change for this kind of document. The table does not
/// contain archives.
fn may_be(capability: Capability, change: Change) -> bool {
    match capability {
        Capability::ResourceList | Capability::ChangeList | Capability::ChangeDump => {
            change != Change::Deleted
        }
        Capability::ResourceDump => change == Change::Created,
        _ => true,
    }
}

/// Checks an entry of a Capability List for a topic.
pub(crate) fn topic_entry(
    capability: Capability,
    entry: &Entry,
    state: &mut State,
    found: &mut Findings,
) {
    if !entry.links.iter().any(|link| link.has_rel("hub")) {
        found.add(&r::TOPIC_ENTRY_HUB, entry.place, || {
            format!("no `hub` link for {}", excerpt(&entry.loc))
        });
    }
    if let Some((other, _)) =
        state.topics.iter().find(|(other, loc)| *other != capability && *loc == entry.loc)
    {
        let other = other.token();
        let message = || format!("{} is the topic of `{other}` already", excerpt(&entry.loc));
        found.add(&r::CHANNELS, entry.place, message);
    }
    if !state.topics.iter().any(|(known, _)| *known == capability) {
        state.topics.push((capability, entry.loc.clone()));
    }
}
