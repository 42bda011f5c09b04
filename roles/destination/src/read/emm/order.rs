//! The order of a feed, according to its times.

use super::document::Read;
use crate::plan::judge::LIST_AHEAD_MAX;
use abreast_emm::Item;
use abreast_webtypes::Timestamp;
use std::cmp::Ordering;
use std::collections::HashMap;

/// The order of the first and the last of some times, if all times are in that order.
pub(super) fn order_in(times: &[Timestamp]) -> Option<Ordering> {
    let is_ordered = times.is_sorted() || times.is_sorted_by(|one, two| one >= two);
    let ends = times.first().zip(times.last()).filter(|_| is_ordered);
    ends.map(|(first, last)| first.cmp(last)).filter(|order| order.is_ne())
}

/// The order of the times on two pages, if they do not overlap.
pub(super) fn order_of_pages(page: &Read, other: &Read) -> Option<Ordering> {
    let (own, others) = (times_of(page)?, times_of(other)?);
    match (own.0 < others.1, own.1 > others.0) {
        (true, _) => Some(Ordering::Less),
        (_, true) => Some(Ordering::Greater),
        _ => None,
    }
}

/// The order of the first and the last time on a page.
pub(super) fn order_of(page: &Read) -> Option<Ordering> {
    let times = usable_times(page);
    let [first, .., last] = times.as_slice() else { return None };
    Some(first.cmp(last))
}

/// The newest and the oldest time on a page.
pub(super) fn times_of(page: &Read) -> Option<(Timestamp, Timestamp)> {
    let times = usable_times(page);
    times.iter().copied().max().zip(times.iter().copied().min())
}

/// Whether a page is not evidence of the order: all its times are in the future, or it is empty.
pub(super) fn is_ahead(page: &Read) -> bool {
    let (latest, items) = (page.answered.latest_now(), &page.document.items);
    let mut times = items.iter().filter_map(|item| item.time).peekable();
    items.is_empty() || times.peek().is_some() && times.all(|time| time > latest)
}

/// The times on a page that can show its order. Future times are used only if all times on the page
/// are in the future and in order. Times in the far future are never used.
fn usable_times(page: &Read) -> Vec<Timestamp> {
    let latest = page.answered.latest_now();
    let times = page.document.items.iter().filter_map(|item| item.time);
    let near: Vec<_> = times.filter(|time| *time <= latest.plus_micros(LIST_AHEAD_MAX)).collect();
    let past: Vec<_> = near.iter().copied().filter(|time| *time <= latest).collect();
    let is_ordered = near.is_sorted() || near.is_sorted_by(|one, two| one >= two);
    if past.is_empty() && is_ordered { near } else { past }
}

/// The newest time on a page that is not in the future.
pub(super) fn newest_of(page: &Read) -> Option<Timestamp> {
    let latest = page.answered.latest_now();
    let times = page.document.items.iter().filter_map(|item| item.time);
    times.filter(|time| *time <= latest).max()
}

/// The order of the first time of each entity and its later times, if it is the same for all
/// entities. Changes of an entity are in order, even if a clock was far ahead.
pub(super) fn order_of_entities<'p>(items: impl Iterator<Item = &'p Item>) -> Option<Ordering> {
    let (mut last, mut order) = (HashMap::new(), None);
    for item in items {
        let Some((time, object)) = item.time.zip(item.objects.first()) else { continue };
        let before = last.insert(object.id.as_str(), time);
        let Some(own) = before.map(|before| before.cmp(&time)).filter(|own| own.is_ne()) else {
            continue;
        };
        if order.replace(own).is_some_and(|other| other != own) {
            return None;
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_emm::Document;

    /// The order that activities show, by their days and entities: `40a 41a`.
    fn order(activities: &str) -> Option<Ordering> {
        let item = |text: &str| {
            let (day, entity) = text.split_at(2);
            format!(
                r#"{{"type":"Update","published":"2026-01-{day}T00:00:00Z","object":{{"id":"urn:e:{entity}"}}}}"#
            )
        };
        let items: Vec<String> = activities.split_whitespace().map(item).collect();
        let text = format!(
            r#"{{"@context":"https://www.w3.org/ns/activitystreams","id":"urn:p","type":"OrderedCollectionPage","orderedItems":[{}]}}"#,
            items.join(",")
        );
        order_of_entities(Document::from_slice(text.as_bytes(), "urn:p").unwrap().items.iter())
    }

    #[test]
    fn times_of_one_entity_show_the_order_of_the_feed() {
        assert_eq!(order("28a 03b 29a"), Some(Ordering::Less));
        assert_eq!(order("29a 03b 28a 02b"), Some(Ordering::Greater));
        assert_eq!(order("29a 03b 28a 04b"), None, "entities differ");
        assert_eq!(order("29a 03b 29a"), None, "a time twice");
        assert_eq!(order("29a 03b"), None);
    }
}
