//! Detection of pages with different ages in one walk, as responses from caches may have.
//!
//! A page that is older than the other pages contains activities that are also on another page,
//! instead of newer activities. A missing activity may be found on a later page, next to an
//! activity that was read before: on the earlier page, it was missing next to that activity.

use crate::copy::fingerprint::Fingerprint;
use crate::read::emm::document::{PageLink, activities};
use abreast_emm::{Document, Item};
use abreast_webtypes::{Moment, Timestamp};
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash as _, Hasher as _};

/// The last activities that are remembered.
const LAST_MAX: usize = 10_000;

/// The activities of a walk, in the order of reading.
#[derive(Debug, Default)]
pub(super) struct Ages {
    /// The page on which each was read first.
    pages: HashMap<u64, usize>,
    last: VecDeque<u64>,
    page: usize,
    first: Option<u64>,
    before: Option<Before>,
    /// A page is older than others.
    pub(super) are_mixed: bool,
}

/// The previous activity of the walk.
#[derive(Debug)]
struct Before {
    key: u64,
    page: usize,
    id: Option<Box<str>>,
    moment: Option<Moment>,
    /// Whether the activity was not on any earlier page.
    is_new: bool,
}

impl Ages {
    /// Adds the activities of the next page. With `is_back`, the walk goes from newer to older
    /// activities.
    pub(super) fn add<'p>(&mut self, items: impl Iterator<Item = &'p Item>, is_back: bool) {
        self.page += 1;
        for item in items {
            let key = key_of(item);
            let known = self.pages.get(&key).copied();
            let before = self.before.as_ref().filter(|before| before.is_new && before.key != key);
            if let (Some(known), Some(before)) = (known, before) {
                let is_apart = before.moment.zip(item.moment).is_some_and(|(before, own)| {
                    if is_back { own.is_before(before) } else { before.is_before(own) }
                });
                // A new activity at the end where the walk starts did not exist before.
                self.are_mixed |= known < self.page
                    && self.first != Some(key)
                    && (before.page == self.page || is_apart)
                    && is_named(item, before);
            }
            self.first = self.first.or(Some(key));
            let (page, id, moment) = (self.page, item.id.clone(), item.moment);
            let is_new = known.is_none_or(|known| known == page);
            self.before = Some(Before { key, page, id, moment, is_new });
            if known.is_none() {
                self.note(key);
            }
        }
    }

    fn note(&mut self, key: u64) {
        self.pages.insert(key, self.page);
        self.last.push_back(key);
        if self.last.len() > LAST_MAX
            && let Some(oldest) = self.last.pop_front()
        {
            self.pages.remove(&oldest);
        }
    }
}

/// Whether no other activity is equal to this one.
fn is_named(item: &Item, before: &Before) -> bool {
    item.moment.is_some_and(Moment::is_exact) || item.id.is_some() && item.id != before.id
}

fn key_of(item: &Item) -> u64 {
    let mut hasher = Fingerprint::new();
    (&item.id, item.time.map(Timestamp::as_micros), item.action as u8).hash(&mut hasher);
    item.objects.iter().for_each(|object| object.id.hash(&mut hasher));
    hasher.finish()
}

/// Links from older pages to newer ones.
#[derive(Debug, Default)]
pub(super) struct Links {
    are_there: bool,
    /// Number of activities on the smallest page without such a link.
    unlinked: Option<usize>,
}

impl Links {
    /// Adds an older page, and its link to the newer page.
    pub(super) fn add(&mut self, page: &Document, newer: PageLink) {
        if newer.of(page).is_some() {
            self.are_there = true;
        } else {
            self.unlinked = self.unlinked.into_iter().chain([activities(page).len()]).min();
        }
    }

    /// Whether a page was the newest page when a cache stored it, so that it lacks later
    /// activities.
    pub(super) fn are_mixed(&self, largest: usize) -> bool {
        self.are_there && self.unlinked.is_some_and(|unlinked| unlinked < largest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether pages are mixed, of activities by number, from the newest on: `14.13 7` are two pages.
    fn are_mixed(pages: &str) -> bool {
        let mut ages = Ages::default();
        for page in pages.split(' ') {
            let item = |number: &str| {
                format!(
                    r#"{{"id":"urn:a:{number}","type":"Update","published":"2026-01-01T00:00:{number:0>2}Z","object":{{"id":"urn:e:{number}"}}}}"#
                )
            };
            let items: Vec<String> = page.split('.').map(item).collect();
            let text = format!(
                r#"{{"@context":"https://www.w3.org/ns/activitystreams","id":"urn:p","type":"OrderedCollectionPage","orderedItems":[{}]}}"#,
                items.join(",")
            );
            let page = Document::from_slice(text.as_bytes(), "urn:p").unwrap();
            ages.add(page.items.iter(), true);
        }
        ages.are_mixed
    }

    #[test]
    fn a_page_of_a_cache_lacks_what_stands_beside_its_activities() {
        assert!(are_mixed("15.14.13.12 6.5.4.3 7.6.5.4"), "11 to 8 are missing");
        assert!(are_mixed("18 15 16 13 14 13"));
        assert!(are_mixed("14.13 3.2 4.3.2.1"));
    }

    #[test]
    fn pages_that_move_while_they_are_read_lack_nothing() {
        for pages in
            ["9.8 7.6 5.4", "9.8 8.7 6.5", "9 9 8 7", "9.8.7 8.7.6", "9 8 7 8 7 6", "9 11 10 9 8"]
        {
            assert!(!are_mixed(pages), "{pages}");
        }
    }

    #[test]
    fn changes_that_are_published_late_are_no_cache() {
        assert!(!are_mixed("9.8 3.7 6.5") && !are_mixed("9 3 8 7"));
    }

    #[test]
    fn a_smaller_page_without_a_link_was_the_newest_one_once() {
        let page = |number: usize, links: &str| {
            let items = vec![r#"{"type":"Update","object":{"id":"urn:e"}}"#; number].join(",");
            let text = format!(
                r#"{{"@context":"https://www.w3.org/ns/activitystreams","id":"urn:p","type":"OrderedCollectionPage",{links}"orderedItems":[{items}]}}"#
            );
            Document::from_slice(text.as_bytes(), "urn:p").unwrap()
        };
        let are_mixed = |pages: &[(usize, &str)]| {
            let mut links = Links::default();
            for (number, own) in pages {
                links.add(&page(*number, own), PageLink::Next);
            }
            links.are_mixed(1)
        };
        let linked = r#""next":"urn:q","#;
        assert!(are_mixed(&[(0, ""), (1, linked)]) && are_mixed(&[(1, linked), (0, "")]));
        assert!(!are_mixed(&[(1, ""), (1, linked)]), "nothing came to it");
        assert!(!are_mixed(&[(0, ""), (1, "")]), "no page has one");
    }
}
