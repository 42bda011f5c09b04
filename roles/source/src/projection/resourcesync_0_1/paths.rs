//! Paths of documents of ResourceSync 0.1, and URLs with these paths.
//!
//! | path below the path of a set | |
//! |---|---|
//! | `v0.1/sitemap.xml` | the Sitemap, or the index of several |
//! | `v0.1/sitemaps/{shard}.xml` | a Sitemap of the index |
//! | `v0.1/sitemaps/{shard}-{parts}-{part}.xml` | one of several Sitemaps of a shard |
//! | `v0.1/changeset.xml` | the current change set |
//! | `v0.1/changesets/{page}.xml`, `v0.1/changesets/{page}-{part}.xml` | a closed change set |
//! | `v0.1/notify/changeset` | the topic of pushed change sets |
//! | `v0.1/subscribe` | the address at which callbacks subscribe to the topic |

use crate::projection::plain_number;
use crate::publish::SetUrls;
use abreast_core::ShardId;

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

/// A document of a set, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SetDocument {
    Sitemap,
    Shard(ShardId, Part),
    CurrentChangeSet,
    ClosedChangeSet(ChangeSetNumber),
}

impl SetDocument {
    /// Parses a path below the public base into set and document; `find` returns the set with a
    /// name.
    pub(super) fn parse<S>(path: &str, find: impl FnOnce(&str) -> Option<S>) -> Option<(S, Self)> {
        let (slug, rest) = path.split_once('/')?;
        let stem = rest.strip_prefix("v0.1/")?.strip_suffix(".xml")?;
        let document = match stem {
            "sitemap" => Self::Sitemap,
            "changeset" => Self::CurrentChangeSet,
            _ => match stem.split_once('/')? {
                ("sitemaps", name) => shard(name)?,
                ("changesets", name) => Self::ClosedChangeSet(change_set_number(name)?),
                _ => return None,
            },
        };
        Some((find(slug)?, document))
    }

    /// URL of the document in a set.
    pub(super) fn url(self, set: &SetUrls) -> String {
        let base = set.base();
        match self {
            Self::Sitemap => format!("{base}v0.1/sitemap.xml"),
            Self::Shard(ShardId(id), Part { of: 1, .. }) => {
                format!("{base}v0.1/sitemaps/{id}.xml")
            }
            Self::Shard(ShardId(id), Part { of, number }) => {
                format!("{base}v0.1/sitemaps/{id}-{of}-{number}.xml")
            }
            Self::CurrentChangeSet => format!("{base}v0.1/changeset.xml"),
            Self::ClosedChangeSet(ChangeSetNumber { page, part: 1 }) => {
                format!("{base}v0.1/changesets/{page}.xml")
            }
            Self::ClosedChangeSet(ChangeSetNumber { page, part }) => {
                format!("{base}v0.1/changesets/{page}-{part}.xml")
            }
        }
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

/// Parses `{id}` or `{id}-{of}-{number}` into a Sitemap.
fn shard(name: &str) -> Option<SetDocument> {
    let (id, part) = match name.split_once('-') {
        None => (name, Part::WHOLE),
        Some((id, part)) => {
            let (of, number) = part.split_once('-')?;
            let part = Part { of: plain_number(of)?, number: plain_number(number)? };
            let valid = part.of.is_power_of_two()
                && (2..=MAX_PARTS).contains(&part.of)
                && (1..=part.of).contains(&part.number);
            (id, Some(part).filter(|_| valid)?)
        }
    };
    Some(SetDocument::Shard(ShardId(plain_number(id)?), part))
}

/// Parses `{page}` or `{page}-{part}` into a change set.
fn change_set_number(name: &str) -> Option<ChangeSetNumber> {
    match name.split_once('-') {
        None => Some(ChangeSetNumber { page: plain_number(name)?, part: 1 }),
        Some((page, part)) => {
            let part = plain_number(part).filter(|part| *part > 1)?;
            Some(ChangeSetNumber { page: plain_number(page)?, part })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::publish::SourceUrls;

    fn of(path: &str) -> Option<(usize, SetDocument)> {
        SetDocument::parse(path, |slug| ["a", "b"].iter().position(|name| *name == slug))
    }

    #[test]
    fn every_document_has_one_path() {
        let sets = ["a", "b"].map(|slug| SourceUrls::new("https://example.org/").set(slug));
        let closed = |page, part| SetDocument::ClosedChangeSet(ChangeSetNumber { page, part });
        let shard = |id, of, number| SetDocument::Shard(ShardId(id), Part { of, number });
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
