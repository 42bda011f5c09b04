//! What a provider of each protocol is like.

use super::adversity::Fault;
use super::data::ChangeList;
use super::time::Precision;
use super::time::text;
use abreast_core::testing::Random;

/// How changes are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changes {
    /// Not at all.
    None,
    /// In one list, which loses its older changes at times.
    One,
    /// In lists of so many changes that an index names; whether the open one has a name that stays the same.
    Index(usize, bool),
}

/// What a provider of lists is like.
#[derive(Clone, Debug)]
pub struct Lists {
    /// The consumer is given a Capability List, else the Resource List.
    pub(super) has_capabilities: bool,
    /// Parts of the Resource List; without any, there is no index.
    pub(super) parts: u64,
    /// The Resource List is made for each request.
    pub(super) is_live: bool,
    /// It states `at`.
    pub(super) has_at: bool,
    /// Entries have digest and length.
    pub(super) has_fixity: bool,
    /// Changes have their times.
    pub(super) has_times: bool,
    /// An index states the spans of its lists.
    pub(super) has_spans: bool,
    pub(super) changes: Changes,
    pub(super) precision: Precision,
}

impl Lists {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut one_in = |of| random.below(of) == 0;
        let (has_capabilities, is_live, has_at) = (!one_in(4), one_in(2), !one_in(4));
        let (has_fixity, has_times, has_spans) = (!one_in(3), !one_in(6), !one_in(3));
        let precision = if one_in(2) { Precision::Second } else { Precision::Micro };
        let parts = [0, 0, 1, 3][random.below(4) as usize];
        let changes = match random.below(6) {
            0 => Changes::None,
            1 | 2 => Changes::One,
            kind => Changes::Index(1 + random.below(6) as usize, kind == 3),
        };
        // Nothing shows a second change within a second then.
        let is_blind = changes == Changes::None && !has_fixity;
        let precision = if is_blind { Precision::Micro } else { precision };
        Self {
            has_capabilities,
            parts,
            is_live,
            has_at,
            has_fixity,
            has_times,
            has_spans,
            changes,
            precision,
        }
    }

    /// Changes of a list, if there are several lists.
    pub(super) const fn length(&self) -> Option<usize> {
        match self.changes {
            Changes::Index(length, _) => Some(length),
            Changes::None | Changes::One => None,
        }
    }

    pub(super) fn has_changes(&self) -> bool {
        self.changes != Changes::None
    }

    pub(super) fn withheld(&self) -> Vec<Fault> {
        let mut withheld = vec![Fault::PageSize, Fault::EmptyPage];
        if !self.has_at {
            // Without `at` a consumer has nothing but the clocks of the answers, less an hour.
            withheld.extend([Fault::Late, Fault::Skew, Fault::NoDate, Fault::Caches]);
            let is_entry = !self.has_capabilities;
            withheld.extend((is_entry && self.is_live).then_some(Fault::OldEntry));
        }
        withheld
    }

    pub(super) const fn entry_path(&self) -> &'static str {
        if self.has_capabilities { "/caps.xml" } else { "/list.xml" }
    }
}

/// Packages of a part of a dump that has an index.
pub(super) const PART_PACKAGES: usize = 2;

/// Where the time of a Resource Dump is, if it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimeIn {
    Dump,
    Manifests,
    Both,
}

/// What a provider of dumps is like.
#[derive(Clone, Debug)]
pub struct Dumps {
    /// Its lists, and what is the same in its dumps.
    pub(super) lists: Lists,
    pub(super) has_resource_list: bool,
    pub(super) has_resource_dump: bool,
    pub(super) has_change_list: bool,
    pub(super) has_change_dump: bool,
    /// Packages of the Resource Dump.
    pub(super) packages: u64,
    /// Dumps have an index.
    pub(super) has_index: bool,
    pub(super) time_in: TimeIn,
    /// The manifests of the Resource Dump are beside its packages too.
    pub(super) are_beside: bool,
    /// Packages have digest and length.
    pub(super) has_sums: bool,
    /// A package that changes gets another name.
    pub(super) is_renamed: bool,
    /// The Change Dump states its end.
    pub(super) is_closed: bool,
    /// The newest package is the first.
    pub(super) is_newest_first: bool,
}

impl Dumps {
    pub(super) fn draw(random: &mut Random) -> Self {
        let lists = Lists::draw(random);
        let mut one_in = |of| random.below(of) == 0;
        let (has_index, are_beside, has_sums) = (one_in(4), one_in(3), one_in(2));
        let (is_renamed, is_closed) = (one_in(3), one_in(3));
        let is_newest_first = lists.has_spans && one_in(4);
        let packages = [1, 1, 2, 3][random.below(4) as usize];
        let time_in = *random.of(&[TimeIn::Dump, TimeIn::Manifests, TimeIn::Both]);
        let (list, dump, both) = ((true, false), (false, true), (true, true));
        let (resources, changes) = [
            (dump, dump),
            (dump, dump),
            (dump, dump),
            (dump, list),
            (list, dump),
            (dump, both),
            (both, dump),
            (both, both),
        ][random.below(8) as usize];
        Self {
            has_resource_list: resources.0,
            has_resource_dump: resources.1,
            has_change_list: changes.0 && lists.has_changes(),
            has_change_dump: changes.1 && lists.has_changes(),
            lists,
            packages,
            has_index,
            time_in,
            are_beside,
            has_sums,
            is_renamed,
            is_closed,
            is_newest_first,
        }
    }

    /// Whether nothing shows of which time a document is: where only the Resource Dump has a time, a package without digest, and a
    /// manifest beside a package.
    pub(super) fn is_ageless(&self, path: &str) -> bool {
        let is_part = path.starts_with("/dump/manifest")
            || path.starts_with("/dump/package") && !self.has_sums;
        is_part && self.time_in == TimeIn::Dump
    }

    pub(super) const fn entry_path(&self) -> &'static str {
        match (self.lists.has_capabilities, self.has_resource_list) {
            (true, _) => "/caps.xml",
            (false, true) => "/list.xml",
            (false, false) => "/dump.xml",
        }
    }

    /// The part of the Change Dump that has the changes of a list.
    pub(super) fn part_of(&self, list: &ChangeList) -> usize {
        list.begin / self.lists.length().unwrap_or(usize::MAX) / PART_PACKAGES
    }

    /// The path of the package with the changes of a list.
    pub(super) fn package_of(&self, list: &ChangeList) -> String {
        let name = list.path.trim_start_matches("/changes").trim_end_matches(".xml");
        let version = if self.is_renamed && !list.is_closed {
            format!("-{}", list.end)
        } else {
            String::new()
        };
        format!("/cdump/package{name}{version}.zip")
    }
}

/// What a provider of Sitemaps is like.
#[derive(Clone, Debug)]
pub struct Sitemaps {
    /// Parts of the Sitemap; without any, there is no index.
    pub(super) parts: u64,
    /// The Sitemap is made for each request.
    pub(super) is_live: bool,
    /// Documents state when they were modified.
    pub(super) has_modified: bool,
    /// Entries have digest and length.
    pub(super) has_fixity: bool,
    /// Changes of a change set; without any, there is one with all of them.
    pub(super) length: usize,
    /// The root of change sets states that it is one.
    pub(super) is_typed: bool,
    /// Change sets list their changes in any order.
    pub(super) is_unordered: bool,
    /// Deleted resources stay in the Sitemap, as such.
    pub(super) has_tombstones: bool,
    pub(super) precision: Precision,
}

impl Sitemaps {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut one_in = |of| random.below(of) == 0;
        let (is_live, has_modified, has_fixity) = (one_in(2), !one_in(3), !one_in(3));
        let (is_typed, is_unordered, has_tombstones) = (!one_in(3), one_in(4), one_in(4));
        // Without an order of any kind nothing shows which of two changes in a second is the last.
        let is_coarse = one_in(2) && !is_unordered;
        let precision = if is_coarse { Precision::Second } else { Precision::Micro };
        let parts = [0, 0, 1, 3][random.below(4) as usize];
        let length = [0, 1, 2, 3, 5, 8][random.below(6) as usize];
        Self {
            parts,
            is_live,
            has_modified,
            has_fixity,
            length,
            is_typed,
            is_unordered,
            has_tombstones,
            precision,
        }
    }

    pub(super) fn withheld(&self) -> Vec<Fault> {
        let mut withheld = vec![Fault::PageSize, Fault::EmptyPage];
        if !self.has_modified {
            // Without a time of the Sitemap a consumer has nothing but the clocks of the answers.
            withheld.extend([Fault::Late, Fault::Skew, Fault::NoDate, Fault::Caches]);
        }
        if self.is_unordered {
            // Without usable times, nothing shows which of two changes is the later one.
            withheld.extend([Fault::EqualTimes, Fault::Skew, Fault::Future]);
        }
        withheld
    }

    pub(super) fn modified(&self, time: i64) -> String {
        if !self.has_modified {
            return String::new();
        }
        let time = text(time, self.precision);
        format!("<xhtml:meta name=\"DCTERMS.modified\" content=\"{time}\"/>\n")
    }
}

/// What a provider of feeds is like.
#[derive(Clone, Debug)]
pub struct Atom {
    pub(super) has_snapshots: bool,
    /// Chunks of a snapshot; without any, it is one file.
    pub(super) chunks: u64,
    /// The snapshot is made for each request.
    pub(super) is_live: bool,
    /// The first page has the newest change.
    pub(super) is_newest_first: bool,
    /// `since` leaves out what was changed at exactly that time.
    pub(super) is_exclusive: bool,
    /// Entries of what is gone state that.
    pub(super) has_marks: bool,
    pub(super) precision: Precision,
}

impl Atom {
    pub(super) fn draw(random: &mut Random) -> Self {
        let mut one_in = |of| random.below(of) == 0;
        let (has_snapshots, is_live, is_newest_first) = (!one_in(3), one_in(2), one_in(2));
        let (is_exclusive, has_marks) = (one_in(3), one_in(2));
        let precision = if one_in(2) { Precision::Second } else { Precision::Micro };
        let chunks = [0, 0, 1, 3][random.below(4) as usize];
        Self { has_snapshots, chunks, is_live, is_newest_first, is_exclusive, has_marks, precision }
    }

    /// A feed has the last change of each entity: none is missing.
    pub(super) const WITHHELD: &[Fault] = &[Fault::Holes];
}
