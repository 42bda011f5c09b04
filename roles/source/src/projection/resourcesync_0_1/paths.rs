//! Paths of documents of ResourceSync 0.1, and URLs with them.

use crate::projection::routes::{PathValue, routes};
use crate::publish::SetUrls;
use abreast_core::ShardId;
use std::fmt::Write as _;

/// Path of the topic, below the path of a set.
pub(super) const TOPIC: &str = "v0.1/notify/changeset";
/// Path at which callbacks subscribe to the topic, below the path of a set.
pub(super) const SUBSCRIBE: &str = "v0.1/subscribe";

/// Largest number of parts of a shard.
pub(super) const MAX_PARTS: u64 = 64;

/// Some of the resources of a shard, selected by a remainder of the key. A resource remains in its
/// part when other resources are added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Number of parts: a power of two, at most [`MAX_PARTS`].
    pub(super) of: u64,
    /// Number of this part, counted from 1.
    pub(super) number: u64,
}

impl Part {
    pub(super) const WHOLE: Self = Self { of: 1, number: 1 };

    /// Whether the part has the resource with this key.
    pub(super) fn has(self, key: &str) -> bool {
        self.of == 1 || Self::bucket(key) % self.of == self.number - 1
    }

    /// Constant number of a key, below [`MAX_PARTS`].
    pub(super) fn bucket(key: &str) -> u64 {
        u64::from(blake3::hash(key.as_bytes()).as_bytes()[0]) % MAX_PARTS
    }
}

/// A closed change set: a part of a page of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChangeSetNumber {
    pub(super) page: u64,
    /// Number of the part, counted from 1.
    pub(super) part: u64,
}

routes! {
    /// A document of a set, by its path.
    #[derive(Copy)]
    enum SetDocument {
        /// The Sitemap, or the index of several.
        Sitemap = "v0.1/sitemap.xml",
        /// A Sitemap of the index: a shard, or one of several parts of a shard.
        Shard(part: (ShardId, Part)) = "v0.1/sitemaps/{}.xml",
        CurrentChangeSet = "v0.1/changeset.xml",
        ClosedChangeSet(number: ChangeSetNumber) = "v0.1/changesets/{}.xml",
    }
}

/// URL of the topic for pushed change sets.
pub(super) fn topic(set: &SetUrls) -> String {
    format!("{}{TOPIC}", set.base())
}

/// URL at which callbacks subscribe to the topic.
pub(super) fn subscribe(set: &SetUrls) -> String {
    format!("{}{SUBSCRIBE}", set.base())
}

/// `{id}` or `{id}-{of}-{number}`
impl PathValue for (ShardId, Part) {
    fn parse(name: &str) -> Option<Self> {
        let Some((id, part)) = name.split_once('-') else {
            return Some((ShardId::parse(name)?, Part::WHOLE));
        };
        let (of, number) = part.split_once('-')?;
        let part = Part { of: u64::parse(of)?, number: u64::parse(number)? };
        let valid = part.of.is_power_of_two()
            && (2..=MAX_PARTS).contains(&part.of)
            && (1..=part.of).contains(&part.number);
        Some((ShardId::parse(id)?, Some(part).filter(|_| valid)?))
    }

    fn write(&self, path: &mut String) {
        let (id, Part { of, number }) = self;
        id.write(path);
        if *of > 1 {
            let _ = write!(path, "-{of}-{number}");
        }
    }
}

/// `{page}` or `{page}-{part}`
impl PathValue for ChangeSetNumber {
    fn parse(name: &str) -> Option<Self> {
        let (page, part) = match name.split_once('-') {
            None => (name, 1),
            Some((page, part)) => (page, u64::parse(part).filter(|part| *part > 1)?),
        };
        Some(Self { page: u64::parse(page)?, part })
    }

    fn write(&self, path: &mut String) {
        self.page.write(path);
        if self.part > 1 {
            let _ = write!(path, "-{}", self.part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::projection::routes::Route as _;
    use crate::publish::SourceUrls;

    fn of(path: &str) -> Option<(usize, SetDocument)> {
        SetDocument::parse_in_set(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
    }

    #[test]
    fn every_route_reads_back() {
        crate::projection::routes::tests::assert_read_back::<SetDocument>();
    }

    #[test]
    fn every_document_has_one_path() {
        let sets = ["a", "b"].map(|slug| SourceUrls::new("https://example.org/").set(slug));
        let closed = |page, part| SetDocument::ClosedChangeSet(ChangeSetNumber { page, part });
        let shard = |id, of, number| SetDocument::Shard((ShardId(id), Part { of, number }));
        for (path, set, document) in [
            ("a/v0.1/sitemap.xml", 0, SetDocument::Sitemap),
            ("b/v0.1/sitemaps/12.xml", 1, shard(12, 1, 1)),
            ("b/v0.1/sitemaps/12-4-3.xml", 1, shard(12, 4, 3)),
            ("a/v0.1/changeset.xml", 0, SetDocument::CurrentChangeSet),
            ("a/v0.1/changesets/7.xml", 0, closed(7, 1)),
            ("a/v0.1/changesets/7-2.xml", 0, closed(7, 2)),
        ] {
            assert_eq!(of(path), Some((set, document)));
            assert_eq!(document.url(&sets[set]), format!("https://example.org/{path}"));
        }
        for path in [
            "",
            "a/sitemap.xml",
            "a/v0.1/",
            "a/v0.1/sitemap",
            "c/v0.1/sitemap.xml",
            "a/v0.1/sitemaps/01.xml",
            "a/v0.1/sitemaps/1-1-1.xml",
            "a/v0.1/sitemaps/1-3-1.xml",
            "a/v0.1/sitemaps/1-4-5.xml",
            "a/v0.1/sitemaps/1-4-0.xml",
            "a/v0.1/sitemaps/1-128-1.xml",
            "a/v0.1/changesets/1-1.xml",
            "a/v0.1/changesets/1-02.xml",
            "a/v0.1/changesets/+1.xml",
            "a/v0.1/changesets/1/2.xml",
        ] {
            assert_eq!(of(path), None, "{path}");
        }
    }

    #[test]
    fn a_key_is_in_one_part_of_each_number_of_parts() {
        for number in 0..200 {
            let key = format!("k{number}");
            for of in [1, 2, 4, 8, 16, 32, 64] {
                let parts = (1..=of).filter(|number| Part { of, number: *number }.has(&key));
                assert_eq!(parts.count(), 1);
            }
        }
    }
}
