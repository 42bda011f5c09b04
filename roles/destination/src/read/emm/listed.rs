//! The activities that walks of this run have found. If a later walk lacks an activity, it has read
//! a page that is older than the other pages, as responses from caches may be.

use crate::copy::fingerprint::Fingerprint;
use abreast_emm::{Action, Item};
use abreast_webtypes::{Moment, Timestamp};
use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash as _, Hasher as _};

/// The newest activities that are remembered.
const NEWEST_MAX: usize = 10_000;

/// The newest activities, by their times and entities.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    newest: BTreeSet<(Timestamp, u64)>,
    /// From when on everything is listed again.
    refreshed: Option<Timestamp>,
}

impl Listed {
    /// Adds the activities of a page.
    pub(super) fn add<'p>(&mut self, items: impl Iterator<Item = &'p Item>) {
        for item in items {
            let time = item.moment.map(Moment::first);
            if item.action == Action::Refresh {
                self.refreshed = self.refreshed.max(time.or(Some(Timestamp::MAX)));
            } else if let Some(time) = time {
                self.newest.insert((time, entity_of(item)));
            }
        }
        self.limit();
    }

    /// Adds the activities of another walk.
    pub(super) fn extend(&mut self, other: &Self) {
        self.newest.extend(&other.newest);
        self.refreshed = self.refreshed.max(other.refreshed);
        self.limit();
    }

    fn limit(&mut self) {
        while self.newest.len() > NEWEST_MAX {
            self.newest.pop_first();
        }
    }

    /// Whether a walk back to some time lacks activities that earlier walks have found, without a
    /// newer activity of the same entity. Times in the future are not evidence of the order.
    pub(super) fn lacks(
        &self,
        before: &Self,
        since: Timestamp,
        is_future: &dyn Fn(Timestamp) -> bool,
    ) -> bool {
        let oldest = self.newest.first().filter(|_| self.newest.len() == NEWEST_MAX);
        let oldest = oldest.map(|oldest| oldest.0.plus_micros(1));
        let Some(since) = [Some(since), self.refreshed, oldest].into_iter().flatten().max() else {
            return false;
        };
        let last: HashMap<u64, Timestamp> = self.newest.iter().map(|it| (it.1, it.0)).collect();
        let is_replaced =
            |(time, entity): &(Timestamp, u64)| last.get(entity).is_some_and(|last| last >= time);
        let mut wanted = before.newest.range((since, 0)..).filter(|it| !is_future(it.0));
        wanted.any(|it| !is_replaced(it))
    }
}

fn entity_of(item: &Item) -> u64 {
    let mut hasher = Fingerprint::new();
    item.objects.iter().for_each(|object| object.id.hash(&mut hasher));
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_emm::Document;

    /// Activities by their seconds and entities: `14a 13b`; an `R` refreshes.
    fn listed(activities: &str) -> Listed {
        let item = |text: &str| {
            let (time, entity) = text.split_at(2);
            let kind = if entity == "R" { "Refresh" } else { "Update" };
            format!(
                r#"{{"type":"{kind}","published":"2026-01-01T00:00:{time}Z","object":{{"id":"urn:e:{entity}"}}}}"#
            )
        };
        let items: Vec<String> = activities.split_whitespace().map(item).collect();
        let text = format!(
            r#"{{"@context":"https://www.w3.org/ns/activitystreams","id":"urn:p","type":"OrderedCollectionPage","orderedItems":[{}]}}"#,
            items.join(",")
        );
        let mut listed = Listed::default();
        listed.add(Document::from_slice(text.as_bytes(), "urn:p").unwrap().items.iter());
        listed
    }

    #[test]
    fn what_a_walk_before_has_listed_is_there() {
        let second = |second: i64| Timestamp::from_micros((1_767_225_600 + second) * 1_000_000);
        let lacks = |now: &str, before: &str, since: i64| {
            let is_future = |time| time > second(50);
            listed(now).lacks(&listed(before), second(since), &is_future)
        };
        assert!(lacks("14a 12c", "13b 12c", 10));
        assert!(!lacks("14a 13b 12c", "13b 12c", 10));
        assert!(!lacks("14a 12c", "13b 12c", 14), "it is older than what the walk reads");
        assert!(!lacks("14b 12c", "13b 12c", 10), "a newer one replaced it");
        assert!(lacks("12b 12c", "13b 12c", 10), "an older one did not");
        assert!(!lacks("14a 12c", "55b 12c", 10), "of a time in the future");
        assert!(!lacks("14R 15a", "13b 12c", 10), "all is listed again");
    }
}
