//! Earlier versions of resources that lists link to: mementos [rs-core §14.6].

use crate::plan::listed::{Listed, Relation};
use abreast_webtypes::{Digests, Timestamp};

/// Maximum number of resources whose versions are fetched in a run.
const RESOURCES_MAX: usize = 10_000;

/// Versions to which lists link, until they are fetched.
#[derive(Debug, Default)]
pub(crate) struct History {
    is_wanted: bool,
    pub(crate) noted: Vec<Noted>,
}

/// The addresses of the versions of a resource.
#[derive(Debug)]
pub(crate) struct Noted {
    pub(crate) uri: String,
    pub(crate) versions: Vec<Version>,
    pub(crate) timemap: Option<String>,
}

/// An earlier version of a resource.
#[derive(Clone, Debug, Default)]
pub(crate) struct Version {
    pub(crate) url: String,
    pub(crate) time: Option<Timestamp>,
    pub(crate) length: Option<u64>,
    pub(crate) digests: Digests,
}

impl History {
    /// Records versions only if `is_wanted`, that is, if the user wants earlier versions.
    pub(crate) const fn new(is_wanted: bool) -> Self {
        Self { is_wanted, noted: Vec::new() }
    }

    /// Records the versions to which a listed resource links, if the user wants versions.
    pub(crate) fn note(&mut self, listed: &Listed<'_>) {
        if !self.is_wanted || listed.links.is_empty() {
            return;
        }
        let versions: Vec<_> = listed
            .links_to(Relation::Version)
            .filter_map(|link| {
                let (length, digests) = (link.length, link.digests.clone());
                Some(Version { url: listed.url_of(link)?, time: link.modified, length, digests })
            })
            .collect();
        let timemap = listed.links_to(Relation::VersionList).find_map(|link| listed.url_of(link));
        if (!versions.is_empty() || timemap.is_some()) && self.noted.len() < RESOURCES_MAX {
            self.noted.push(Noted { uri: listed.uri.to_owned(), versions, timemap });
        }
    }
}
