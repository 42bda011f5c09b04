//! Rules across documents: the lists of an index, and change sets along `prev` [rs-0.1 §3.2, §6.1].

use super::CLOSED_MAX;
use super::document::{Changed, Facts, Sitemaps};
use crate::fetch::Failure;
use crate::report::rules as r;
use crate::resourcesync_0_1::alpha::Alpha;
use crate::walk::feeds::Feeds;
use crate::walk::node::FoundBy;
use abreast_resourcesync::sitemap::{NAMES_ITSELF, is_no_sitemap, named_again};
use abreast_resourcesync::v0_1::{CHANGE_SET, Change, Link, Root};
use abreast_webtypes::{count_of, excerpt, resolve, without_fragment};
use std::collections::{HashMap, HashSet};

/// Resources of other lists and change sets that are remembered.
const LATER_MAX: usize = 1_000_000;
/// Most categories of a list for which its index must repeat them.
const AGGREGATED_MAX: usize = 100;

impl Feeds<'_> {
    /// Reads the lists of an index and compares each with its entry.
    pub(super) async fn lists(
        &mut self,
        number: usize,
        index: &Facts,
        sitemaps: &mut Sitemaps,
    ) -> Result<(), Failure> {
        // Copies read indexes in an index, but no deeper levels.
        for (below, index) in self.lists_of(number, index, sitemaps).await? {
            if self.walks(below) {
                self.lists_of(below, &index, sitemaps).await?;
            } else {
                sitemaps.are_known = false;
            }
        }
        Ok(())
    }

    /// Reads the Sitemaps of an index; returns the nested indexes.
    async fn lists_of(
        &mut self,
        number: usize,
        index: &Facts,
        sitemaps: &mut Sitemaps,
    ) -> Result<Vec<(usize, Facts)>, Failure> {
        let url = self.walked.nodes[number].url.clone();
        let (mut indexes, mut named) = (Vec::new(), HashSet::new());
        for listed in &index.lists {
            let from = (number, listed.line);
            let Ok(target) = resolve(&url, &listed.loc) else { continue };
            if without_fragment(&target) == url {
                self.refused(number, NAMES_ITSELF.to_owned());
                self.add(number, &r::A_INDEX, listed.line, || NAMES_ITSELF.to_owned());
                continue;
            }
            if !named.insert(target.clone()) {
                self.refused(number, named_again(&target));
                let message = || format!("{}; copies refuse it", named_again(&target));
                self.add(number, &r::A_READ, listed.line, message);
                continue;
            }
            let Some(child) = self.child(from, &target, FoundBy::Down) else {
                sitemaps.are_known = false;
                continue;
            };
            let Some(list) = self.read_alpha(child, Some(from), false).await? else {
                sitemaps.are_known = false;
                continue;
            };
            sitemaps.add(&list);
            if list.head.root == Root::SitemapIndex || list.head.change_set {
                let message = if list.head.change_set {
                    self.refused(number, is_no_sitemap(&target));
                    is_no_sitemap(&target)
                } else {
                    format!("{} is not a Sitemap", excerpt(&target))
                };
                self.add(number, &r::A_INDEX, listed.line, || message);
                if !list.head.change_set {
                    indexes.push((child, list));
                }
                continue;
            }
            let uris = &mut sitemaps.uris;
            let again = list.uris.iter().filter(|uri| uris.contains(uri)).count();
            if again > 0 {
                let again = count_of(again, "resource");
                let message = || format!("{} has {again} of earlier Sitemaps", excerpt(&target));
                self.add(number, &r::A_ONCE, listed.line, message);
            }
            if uris.len() < LATER_MAX {
                uris.extend(&list.uris);
            }
            let modified = list.head.modified.map(|time| time.instant);
            if let (Some(stated), Some(modified)) = (listed.time, modified)
                && stated > modified
            {
                let message =
                    || format!("{} is of {modified}, stated is {stated}", excerpt(&target));
                self.add(number, &r::A_INDEX_TIME, listed.line, message);
            }
            if list.is_whole
                && !listed.categories.is_empty()
                && listed.categories != list.categories
            {
                let mut differing = listed.categories.symmetric_difference(&list.categories);
                let one = differing.next().map(|category| excerpt(category)).unwrap_or_default();
                let message = || format!("the categories of {} differ: {one}", excerpt(&target));
                self.add(number, &r::A_CATEGORIES, listed.line, message);
            } else if list.is_whole
                && listed.categories.is_empty()
                && (1..=AGGREGATED_MAX).contains(&list.categories.len())
            {
                let message = || format!("{} has categories", excerpt(&target));
                self.add(number, &r::A_CATEGORIES_MISSING, listed.line, message);
            }
        }
        Ok(indexes)
    }

    /// Records why copies refuse a Sitemap or index.
    pub(super) fn refused(&mut self, number: usize, message: String) {
        if let Some(index) = self.walked.nodes[number].outcome.record_mut::<Alpha>() {
            index.refusal.get_or_insert(message);
        }
    }

    /// Reads the change sets from this one back to the first [rs-0.1 §6.1].
    pub(super) async fn change_sets(&mut self, start: usize, set: Facts) -> Result<(), Failure> {
        let (mut number, mut set) = (start, set);
        let mut seen = HashSet::from([self.walked.nodes[start].url.clone()]);
        let (mut closed, mut later) = (Vec::new(), HashMap::new());
        self.current(number, &set);
        loop {
            let url = self.walked.nodes[number].url.clone();
            let mut links = set.head.links.iter().filter(|link| is_link(link, "prev"));
            let Some(target) = links.next().and_then(|link| resolve(&url, &link.href).ok()) else {
                break;
            };
            if links.next().is_some() {
                self.add(number, &r::A_PREV, 0, || "several links to previous ones");
            }
            let target = without_fragment(&target).to_owned();
            if !seen.insert(target.clone()) {
                let message = || format!("`prev` leads back to {}", excerpt(&target));
                self.add(number, &r::A_PREV, 0, message);
                break;
            }
            if !self.walks(number) {
                break;
            }
            let Some(child) = self.child((number, 0), &target, FoundBy::Down) else { break };
            let Some(before) = self.read_alpha(child, Some((number, 0)), true).await? else {
                break;
            };
            if !before.head.change_set {
                self.no_change_set(number, child, &before);
                break;
            }
            self.neighbours(number, &set, &target, &before);
            self.missing_between(number, &set, &target, &before, &mut later);
            if closed.len() < CLOSED_MAX {
                closed.push((child, target, before.hash));
            }
            (number, set) = (child, before);
        }
        for (child, target, hash) in closed {
            self.is_closed(child, &target, hash).await?;
        }
        Ok(())
    }

    /// Reports changes that two consecutive sets share, and times in the wrong order.
    fn neighbours(&mut self, number: usize, set: &Facts, target: &str, before: &Facts) {
        if let (Some(oldest), Some(newest)) = (set.oldest, before.newest)
            && oldest <= newest
        {
            let message =
                || format!("it begins at {oldest}, and {} ends at {newest}", excerpt(target));
            self.add(number, &r::A_CHAIN, 0, message);
        }
        let both = set.changes.intersection(&before.changes).count();
        if both > 0 {
            let message = || format!("changes that are in {} too: {both}", excerpt(target));
            self.add(number, &r::A_IDENTITY, 0, message);
        }
        if let (Some(modified), Some(earlier)) = (set.head.modified, before.head.modified)
            && earlier.instant > modified.instant
        {
            let message = || {
                format!(
                    "{} is of {}, later than this of {}",
                    excerpt(target),
                    earlier.instant,
                    modified.instant
                )
            };
            self.add(number, &r::A_CHAIN, 0, message);
        }
    }

    /// Reports changes that cannot precede the changes in later sets. `later` has the first change
    /// of each resource in the later sets.
    fn missing_between(
        &mut self,
        number: usize,
        set: &Facts,
        target: &str,
        before: &Facts,
        later: &mut HashMap<u64, Option<Change>>,
    ) {
        for (uri, changed) in &set.changed {
            if later.len() < LATER_MAX || later.contains_key(uri) {
                later.insert(*uri, changed.first.1);
            }
        }
        let is_odd = |(uri, changed): &(&u64, &Changed)| {
            later.get(*uri).is_some_and(|next| cannot_follow(changed.last.1, *next))
        };
        let odd = before.changed.iter().filter(is_odd).count();
        if odd > 0 {
            let message = || {
                format!(
                    "after {}, changes are missing: of resources that are created twice, or changed after they were deleted ({odd})",
                    excerpt(target)
                )
            };
            self.add(number, &r::A_GAP, 0, message);
        }
    }

    /// Checks that a current set links to itself.
    fn current(&mut self, number: usize, set: &Facts) {
        let url = self.walked.nodes[number].url.clone();
        let has_prev = set.head.links.iter().any(|link| is_link(link, "prev"));
        let has_current = set.head.links.iter().any(|link| is_link(link, "current"));
        if has_prev && !has_current {
            let message = || format!("{} has no link to the current one", excerpt(&url));
            self.add(number, &r::A_CURRENT, 0, message);
        }
    }

    /// Checks that a closed set is unchanged when it is fetched again.
    async fn is_closed(&mut self, number: usize, url: &str, hash: u64) -> Result<(), Failure> {
        if !self.samples() {
            return Ok(());
        }
        let most = self.options.max_document_bytes;
        let Ok(answer) = self.ask(url, None, false, most).await? else { return Ok(()) };
        let now = {
            use std::hash::Hasher as _;
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write(&answer.body);
            hasher.finish()
        };
        if answer.facts.is_success() && answer.is_whole && now != hash {
            self.add(number, &r::A_CLOSED, 0, || "it differs from what it was a moment ago");
        }
        Ok(())
    }
}

/// Whether a change must be missing between two changes of a resource.
fn cannot_follow(last: Option<Change>, next: Option<Change>) -> bool {
    match (last, next) {
        (Some(Change::Deleted), Some(next)) => next != Change::Created,
        (Some(_), Some(next)) => next == Change::Created,
        _ => false,
    }
}

fn is_link(link: &Link, rel: &str) -> bool {
    link.has_rel(rel) && link.has_rel(CHANGE_SET)
}
