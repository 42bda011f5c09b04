//! Other sources of a resource's bytes in one run: mirrors, and the chain of patches from the
//! stored version to the listed version [rs-core §14.1, §14.2, §14.4].
//!
//! Alternates save transfers and are never required. They are discarded if a limit is exceeded, and
//! by a run that continues an interrupted run.

use crate::plan::listed::{Listed, Relation};
use crate::plan::patch_format::Format;
use crate::request::admit::Admission;
use abreast_webtypes::{Digests, resolve};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of resources with alternates in memory.
const RESOURCES_MAX: usize = 100_000;
/// Maximum number of mirrors of a resource.
const MIRRORS_MAX: usize = 8;
/// Maximum number of patches of a resource; a request for the whole resource is faster than a
/// longer chain.
pub(crate) const CHAIN_MAX: usize = 16;
/// Maximum total number of patches of all resources.
const PATCHES_MAX: usize = 200_000;
/// Maximum number of changed resources that are remembered to recognise the first change of each.
const CHANGED_MAX: usize = 1_000_000;

/// The mirrors and patches of a run, shared by its threads.
#[derive(Debug, Default)]
pub(crate) struct Alternates {
    any: AtomicBool,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    by_uri: HashMap<String, Alternate>,
    /// Number of patches of all resources.
    patches: usize,
}

/// Other sources of the bytes of a resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Alternate {
    /// In the order of their priority.
    pub(crate) mirrors: Vec<Mirror>,
    /// In the order in which they are applied.
    pub(crate) patches: Vec<Patch>,
}

/// The same bytes at another place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mirror {
    pub(crate) url: String,
    pub(crate) priority: u32,
}

/// One step of a chain: makes a version from the previous version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Patch {
    pub(crate) url: String,
    pub(crate) format: Format,
    pub(crate) length: Option<u64>,
    pub(crate) digests: Digests,
    /// Digests of the version to which the patch applies.
    pub(crate) before: Option<Digests>,
    /// Digests of the version that results from the patch.
    pub(crate) after: Option<Digests>,
    pub(crate) length_after: Option<u64>,
    /// Time of the change, and the place of its list among all lists.
    pub(crate) order: (i64, i64),
}

/// The resources that changed in the lists read for one plan. A chain of patches starts with the
/// first change since the stored version, and ends at a change without patches.
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
    /// Replaces the alternates of a resource by its listed mirrors.
    pub(crate) fn note(&self, listed: &Listed<'_>) {
        if listed.links.is_empty() && !self.any.load(Ordering::Relaxed) {
            return;
        }
        let mut known = self.lock();
        known.take(listed.uri);
        self.insert(
            listed.uri,
            Alternate { mirrors: mirrors(listed), patches: Vec::new() },
            &mut known,
        );
    }

    /// Records the mirrors and patches of a changed resource. The patches continue the chain of the
    /// previous changes, unless this is the first change. `order` is the time of the change, and
    /// the place of its list among all lists.
    pub(crate) fn note_change(&self, listed: &Listed<'_>, is_first: bool, order: (i64, i64)) {
        if listed.links.is_empty() && listed.patches.is_empty() && !self.any.load(Ordering::Relaxed)
        {
            return;
        }
        let mut known = self.lock();
        let mut chain = known.take(listed.uri).filter(|_| !is_first).unwrap_or_default().patches;
        if listed.patches.is_empty() || chain.is_empty() && !is_first {
            // A version in between is not known.
            chain.clear();
        } else {
            append(&mut chain, listed, order);
        }
        self.insert(listed.uri, Alternate { mirrors: mirrors(listed), patches: chain }, &mut known);
    }

    fn insert(&self, uri: &str, mut alternate: Alternate, known: &mut Known) {
        if known.patches + alternate.patches.len() > PATCHES_MAX {
            alternate.patches.clear();
        }
        let is_empty = alternate.mirrors.is_empty() && alternate.patches.is_empty();
        if !is_empty && known.by_uri.len() < RESOURCES_MAX {
            known.patches += alternate.patches.len();
            known.by_uri.insert(uri.to_owned(), alternate);
            self.any.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn of(&self, uri: &str) -> Option<Alternate> {
        if self.any.load(Ordering::Relaxed) { self.lock().by_uri.get(uri).cloned() } else { None }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn take(&mut self, uri: &str) -> Option<Alternate> {
        let taken = self.by_uri.remove(uri)?;
        self.patches -= taken.patches.len();
        Some(taken)
    }
}

/// The mirrors of a listed resource, in the order of their priority.
fn mirrors(listed: &Listed<'_>) -> Vec<Mirror> {
    let mut mirrors: Vec<Mirror> = listed
        .links_to(Relation::Mirror)
        .filter_map(|link| Some(Mirror { url: http(listed, link.href)?, priority: link.priority }))
        .collect();
    // The sort is stable, so mirrors with the same priority remain in the order of the document.
    mirrors.sort_by_key(|mirror| mirror.priority);
    mirrors.truncate(MIRRORS_MAX);
    mirrors
}

/// Adds the patches of a change to a chain. A chain with a patch that cannot be used, or with too
/// many, is discarded whole.
fn append(chain: &mut Vec<Patch>, listed: &Listed<'_>, order: (i64, i64)) {
    let last = listed.patches.len() - 1;
    for (at, patch) in listed.patches.iter().enumerate() {
        let (after, length_after) =
            if at == last { (Some(listed.digests), listed.length) } else { (patch.after, None) };
        let (Some(url), Some(format)) = (http(listed, patch.href), Format::of(patch.media_type))
        else {
            return chain.clear();
        };
        if chain.iter().any(|known| known.url == url) {
            // A list whose transfer broke off is read again from its beginning.
            continue;
        }
        let digests = patch.digests.clone();
        let (before, after) =
            (patch.before.cloned(), after.filter(|after| !after.is_empty()).cloned());
        chain.push(Patch {
            url,
            format,
            length: patch.length,
            digests,
            before,
            after,
            length_after,
            order,
        });
    }
    if chain.len() > CHAIN_MAX {
        return chain.clear();
    }
    // The sort is stable: lists may be read newest first, and the patches of a change remain in
    // their order.
    chain.sort_by_key(|patch| patch.order);
}

/// The URL of a link, if that is http or https: other schemes are not supported here.
fn http(listed: &Listed<'_>, href: &str) -> Option<String> {
    let url = resolve(listed.document, href).ok()?;
    let lower = url.get(..8).unwrap_or(&url).to_ascii_lowercase();
    (lower.starts_with("http://") || lower.starts_with("https://")).then_some(url)
}

/// Whether a host may be requested that the list is not on. Hosts that the user allows are; any
/// other only at a public address, as for redirects. Never http on behalf of an https list, unless
/// that is allowed.
pub(crate) fn is_public_only(admission: &mut Admission, url: &str) -> Option<bool> {
    match admission.check(url) {
        Ok(()) => Some(false),
        Err(crate::request::admit::Refusal::Authority) if admission.is_secure_enough(url) => {
            Some(true)
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::listed::testing::{NO_DIGESTS, link, listed};
    use crate::plan::listed::{self, Link};

    fn mirror(href: &str, priority: u32) -> Link<'_> {
        Link { priority, ..link(Relation::Mirror, href) }
    }

    fn patch<'a>(href: &'a str, media_type: &'a str) -> listed::Patch<'a> {
        listed::Patch {
            href,
            media_type,
            length: None,
            digests: &NO_DIGESTS,
            before: None,
            after: None,
        }
    }

    fn changed<'a>(uri: &'a str, patches: &[&'a str]) -> Listed<'a> {
        let patches = patches.iter().map(|href| patch(href, "application/json-patch")).collect();
        Listed { patches, ..listed("http://h/l", uri, Vec::new()) }
    }

    fn chain(alternates: &Alternates, uri: &str) -> Vec<String> {
        alternates.of(uri).unwrap_or_default().patches.into_iter().map(|patch| patch.url).collect()
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
        alternates.note(&listed("http://h/list.xml", "http://h/a", links));
        let mirrors: Vec<_> = alternates
            .of("http://h/a")
            .unwrap()
            .mirrors
            .into_iter()
            .map(|mirror| (mirror.url, mirror.priority))
            .collect();
        assert_eq!(
            mirrors,
            [
                ("http://h/again".to_owned(), 1),
                ("https://m2/a".to_owned(), 2),
                ("http://m3/a".to_owned(), 999_999)
            ]
        );
        assert!(alternates.of("http://h/b").is_none());
    }

    #[test]
    fn patches_of_successive_changes_are_one_chain() {
        let (alternates, mut seen, uri) = (Alternates::default(), Changed::default(), "http://h/a");
        let mut note = |patches: &[&str], time| {
            alternates.note_change(&changed(uri, patches), seen.is_first(uri), (time, 0));
            chain(&alternates, uri)
        };
        assert_eq!(note(&["/2", "/3"], 2), ["http://h/2", "http://h/3"]);
        // Lists may be read newest first, and again from the beginning.
        assert_eq!(note(&["/1"], 1), ["http://h/1", "http://h/2", "http://h/3"]);
        assert_eq!(note(&["/2", "/3"], 2), ["http://h/1", "http://h/2", "http://h/3"]);
        // If a change lacks patches, the chain does not lead to the next version.
        assert!(note(&[], 3).is_empty());
        assert!(note(&["/5"], 4).is_empty());
    }

    #[test]
    fn a_chain_has_limits_and_known_formats_only() {
        let (alternates, mut seen) = (Alternates::default(), Changed::default());
        let mut note = |listed: &Listed<'_>| {
            alternates.note_change(listed, seen.is_first(listed.uri), (0, 0));
            chain(&alternates, listed.uri).len()
        };
        let hrefs: Vec<String> = (0..=CHAIN_MAX).map(|number| format!("/{number}")).collect();
        let hrefs: Vec<&str> = hrefs.iter().map(String::as_str).collect();
        assert_eq!(note(&changed("http://h/a", &hrefs[..CHAIN_MAX])), CHAIN_MAX);
        assert_eq!(note(&changed("http://h/a", &hrefs[CHAIN_MAX..])), 0);
        assert_eq!(note(&changed("http://h/b", &hrefs)), 0);
        let mut unknown = changed("http://h/c", &hrefs[..1]);
        unknown.patches.push(patch("/x", "application/x-tiff-diff"));
        assert_eq!(note(&unknown), 0);
        unknown.patches[1] = patch("ftp://h/x", "application/json-patch");
        assert_eq!(note(&unknown), 0);
    }
}
