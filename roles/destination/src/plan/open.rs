//! Resources whose last change may or may not be in a list of all resources, because the time of
//! the list is not precise enough. Only changes that are listed later show the answer.

use abreast_webtypes::{Moment, Timestamp};
use std::collections::HashSet;

/// Maximum number of recorded resources. If there are more, all resources count as open.
const OPEN_MAX: usize = 65_536;

/// The resources that are open.
#[derive(Debug, Default)]
pub(crate) struct Open {
    resources: HashSet<String>,
    /// Resources that differ from a list that is older than a list read before.
    older: HashSet<String>,
    are_too_many: bool,
    are_too_many_older: bool,
    since: Option<Timestamp>,
}

impl Open {
    /// Records a resource; `at` is the time of the list.
    pub(crate) fn note(&mut self, uri: &str, at: Option<Moment>) {
        self.since = self.since.into_iter().chain(at.map(Moment::first)).min();
        if self.resources.len() < OPEN_MAX {
            self.resources.insert(uri.to_owned());
        } else {
            self.are_too_many = true;
        }
    }

    /// Records a resource whose stored version differs from a list that is older than a list read
    /// before.
    pub(crate) fn note_older(&mut self, uri: &str, at: Option<Moment>) {
        self.note(uri, at);
        if self.older.len() < OPEN_MAX {
            self.older.insert(uri.to_owned());
        } else {
            self.are_too_many_older = true;
        }
    }

    /// Whether the question is open for a resource.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.resources.contains(uri)
    }

    /// Removes a resource, because a change of the resource is listed.
    pub(crate) fn settle(&mut self, uri: &str) {
        self.resources.remove(uri);
        self.older.remove(uri);
    }

    /// Whether there are resources without a listed change that explains their difference from an
    /// older list.
    pub(crate) fn has_older(&self) -> bool {
        self.are_too_many_older || !self.older.is_empty()
    }

    /// The earliest possible time of the list, if any resource is open.
    pub(crate) fn since(&self) -> Option<Timestamp> {
        self.since.filter(|_| self.are_too_many || !self.resources.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_each_resource_settle_what_a_list_leaves_open() {
        let mut open = Open::default();
        assert_eq!(open.since(), None);
        let at = |micros| Moment::exact(Timestamp::from_micros(micros));
        open.note("one", Some(at(7)));
        open.note("two", Some(at(5)));
        assert!(open.has("one") && !open.has("three"));
        open.settle("one");
        assert!(!open.has("one"));
        assert_eq!(open.since(), Some(Timestamp::from_micros(5)));
        open.settle("two");
        assert_eq!(open.since(), None);
    }
}
