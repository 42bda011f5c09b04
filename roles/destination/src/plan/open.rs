//! Resources of which the time of a list of all resources leaves it open whether it has their last change: only changes that
//! are listed since then show it.

use abreast_webtypes::{Moment, Timestamp};
use std::collections::HashSet;

/// Resources that are noted; beyond, it is open permanently.
const OPEN_MAX: usize = 65_536;

/// What is open.
#[derive(Debug, Default)]
pub(crate) struct Open {
    resources: HashSet<String>,
    /// Those that are not as a list has them which was read before, and is later than this one.
    older: HashSet<String>,
    are_too_many: bool,
    are_too_many_older: bool,
    since: Option<Timestamp>,
}

impl Open {
    /// Notes a resource; `at` is the time of the list.
    pub(crate) fn note(&mut self, uri: &str, at: Option<Moment>) {
        self.since = self.since.into_iter().chain(at.map(Moment::first)).min();
        if self.resources.len() < OPEN_MAX {
            self.resources.insert(uri.to_owned());
        } else {
            self.are_too_many = true;
        }
    }

    /// Notes a resource that differs from what the copy has, in a list that is older than one read before.
    pub(crate) fn note_older(&mut self, uri: &str, at: Option<Moment>) {
        self.note(uri, at);
        if self.older.len() < OPEN_MAX {
            self.older.insert(uri.to_owned());
        } else {
            self.are_too_many_older = true;
        }
    }

    /// Whether it is open for a resource.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.resources.contains(uri)
    }

    /// A change of a resource is listed.
    pub(crate) fn settle(&mut self, uri: &str) {
        self.resources.remove(uri);
        self.older.remove(uri);
    }

    /// Whether no change since a list leads from it to what the copy has of a later one.
    pub(crate) fn has_older(&self) -> bool {
        self.are_too_many_older || !self.older.is_empty()
    }

    /// The begin of the time of the list, if anything is open.
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
