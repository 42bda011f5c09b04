//! Other places of a resource's bytes: mirrors and patches that its entry links to, kept for one run
//! [rs-core §14.1, §14.2, §14.4].
//!
//! They are hints, so they may be forgotten: beyond the limits, and by a run that goes on where another was stopped.

use crate::admit::Admission;
use crate::plan::listed::{Link, Listed, Relation};
use abreast_webtypes::Digests;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Resources whose alternates are remembered.
const RESOURCES_MAX: usize = 100_000;
/// Mirrors of one resource.
const MIRRORS_MAX: usize = 8;
/// Changed resources remembered to recognise the first change of each.
const CHANGED_MAX: usize = 1_000_000;

/// What all threads of a run know.
#[derive(Debug, Default)]
pub(crate) struct Alternates {
    any: AtomicBool,
    by_uri: Mutex<HashMap<String, Alternate>>,
}

/// Where else one resource's bytes are.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alternate {
    /// In the order of their priority.
    pub(crate) mirrors: Vec<Mirror>,
    pub(crate) patch: Option<Patch>,
}

/// The same bytes at another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    pub(crate) url: String,
    pub(crate) priority: u32,
}

/// What makes the new version out of the one before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) url: String,
    pub(crate) media_type: String,
    pub(crate) length: Option<u64>,
    pub(crate) digests: Digests,
}

/// Which resources changed in the lists read for one plan: a patch is for the version before, so it is of use only
/// with the first change since the version that is kept.
#[derive(Debug, Default)]
pub(crate) struct Changed {
    seen: HashSet<u64>,
    hasher: RandomState,
}

impl Changed {
    /// Whether this is the first change of a resource. In doubt it is not.
    pub(crate) fn is_first(&mut self, uri: &str) -> bool {
        self.seen.len() < CHANGED_MAX && self.seen.insert(self.hasher.hash_one(uri.as_bytes()))
    }
}

impl Alternates {
    /// Remembers what a listed resource links to. `first_change` says that a patch of it fits the version kept.
    pub(crate) fn note(&self, listed: &Listed<'_>, first_change: bool) {
        if listed.links.is_empty() && !self.any.load(Ordering::Relaxed) {
            return;
        }
        let (uri, alternate) = (listed.uri, Alternate::of(listed, first_change));
        let mut by_uri = self.lock();
        if alternate.mirrors.is_empty() && alternate.patch.is_none() {
            // What an earlier change said is of no use any more.
            by_uri.remove(uri);
        } else if by_uri.len() < RESOURCES_MAX || by_uri.contains_key(uri) {
            by_uri.insert(uri.to_owned(), alternate);
            self.any.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn of(&self, uri: &str) -> Option<Alternate> {
        if self.any.load(Ordering::Relaxed) { self.lock().get(uri).cloned() } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Alternate>> {
        self.by_uri.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alternate {
    fn of(listed: &Listed<'_>, first_change: bool) -> Self {
        let of = |relation| listed.links_to(relation).filter_map(|link| Some((http(listed, link)?, link)));
        let mut mirrors: Vec<Mirror> =
            of(Relation::Mirror).map(|(url, link)| Mirror { url, priority: link.priority }).collect();
        // Stable: of equal ones the first of the document comes first.
        mirrors.sort_by_key(|mirror| mirror.priority);
        mirrors.truncate(MIRRORS_MAX);
        let patch = of(Relation::Patch).filter(|_| first_change).find_map(|(url, link)| {
            let media_type = link.media_type?;
            crate::transfer::fetch::patch::Kind::of(media_type)?;
            Some(Patch { url, media_type: media_type.to_owned(), length: link.length, digests: link.digests.clone() })
        });
        Self { mirrors, patch }
    }
}

/// Where a link leads, if that is http or https: other schemes are not spoken here.
fn http(listed: &Listed<'_>, link: &Link<'_>) -> Option<String> {
    let url = listed.url_of(link)?;
    let lower = url.get(..8).unwrap_or(&url).to_ascii_lowercase();
    (lower.starts_with("http://") || lower.starts_with("https://")).then_some(url)
}

/// Whether a host may be requested that the list is not on. Hosts that the user allows are; any other only at a public address, as
/// for redirects. Never http on behalf of an https list, unless that is allowed.
pub(crate) fn is_public_only(admission: &mut Admission, url: &str) -> Option<bool> {
    match admission.check(url) {
        Ok(()) => Some(false),
        Err(crate::admit::Refusal::Authority) if admission.is_secure_enough(url) => Some(true),
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::testing::{link, listed};

    fn mirror(href: &str, priority: u32) -> Link<'_> {
        Link { priority, ..link(Relation::Mirror, href) }
    }

    #[test]
    fn mirrors_come_by_priority_and_only_those_that_can_be_asked() {
        let alternates = Alternates::default();
        let links = vec![
            mirror("http://m3/a", 999_999),
            mirror("gsiftp://m/a", 1),
            mirror("https://m2/a", 2),
            link(Relation::Origin, "http://m/b"),
            mirror("/again", 1),
        ];
        alternates.note(&listed("http://h/list.xml", "http://h/a", links), false);
        let mirrors: Vec<_> = alternates
            .of("http://h/a")
            .unwrap()
            .mirrors
            .into_iter()
            .map(|mirror| (mirror.url, mirror.priority))
            .collect();
        assert_eq!(
            mirrors,
            [("http://h/again".to_owned(), 1), ("https://m2/a".to_owned(), 2), ("http://m3/a".to_owned(), 999_999)]
        );
        assert!(alternates.of("http://h/b").is_none());
    }

    #[test]
    fn a_patch_counts_for_the_first_change_only() {
        let alternates = Alternates::default();
        let mut changed = Changed::default();
        let patched = |uri, media_type| {
            let patch = Link { media_type: Some(media_type), ..link(Relation::Patch, "http://h/p") };
            listed("http://h/l", uri, vec![patch])
        };
        let usual = patched("http://h/a", "application/json-patch");
        alternates.note(&usual, changed.is_first("http://h/a"));
        assert!(alternates.of("http://h/a").unwrap().patch.is_some());
        // A second change: the patch begins with a version that is not here.
        alternates.note(&usual, changed.is_first("http://h/a"));
        assert!(alternates.of("http://h/a").is_none());
        // One of a kind nobody knows.
        alternates.note(&patched("http://h/b", "application/x-tiff-diff"), true);
        assert!(alternates.of("http://h/b").is_none());
    }
}
