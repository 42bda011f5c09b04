//! The user's filters in a run: resources that are skipped, retained although excluded, or compared
//! again.
//!
//! An excluded resource is neither fetched nor updated nor deleted, as if it existed neither at the
//! Source nor in the copy. When filters change, Change Lists are not sufficient to find newly
//! included resources, so the copy is compared with the Resource List.

use crate::copy::path_map::{Form, NameRules, PathMap};
use crate::plan::listed::Listed;
use crate::report::error::Error;
use crate::report::events::{Event, Filtered};
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::report::uri_list::UriList;
use abreast_core::filter::{Categories, Decision, Filter, MediaType, Subject};
use abreast_store::mirror::{Mirror, Row};
use abreast_webtypes::{count, excerpt};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The code of the notice that the filters exclude all listed resources.
pub(crate) const NOTHING_WANTED: &str = "filter.none";

/// Key of the filters of the last run in the database.
pub(crate) const FILTER: &str = "filter";
/// The rule that excludes resources which are missing in a list of URIs.
const NOT_LISTED: &str = "--uris-from";
/// The rule that excludes resources without any of the required categories.
const OTHER_CATEGORY: &str = "--category";
/// Number of rows that are read at a time.
const ROWS: usize = 512;
/// Maximum number of categories in a message.
const SHOWN_MAX: usize = 10;

/// The filters of a run, with the data that they need.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    pub(crate) filter: Filter,
    uris: Option<Arc<UriList>>,
    /// The categories of which a resource must have one; empty if categories are not tested.
    categories: Vec<String>,
    /// The map to the paths that rules test. It uses default names, independent of the file system.
    pub(crate) map: Option<PathMap>,
    path: Vec<u8>,
    /// Whether the filters differ from the last run.
    pub(crate) changed: bool,
    /// Whether the copy contains excluded resources.
    pub(crate) any_kept: bool,
    /// Number of excluded resources that the copy retains since this run.
    newly_kept: u64,
    /// Whether any listed resource has a required category.
    has_category: bool,
    others: OtherCategories,
}

/// Some of the listed categories that are not required: the first ones in alphabetical order.
#[derive(Debug, Default)]
pub(crate) struct OtherCategories {
    some: BTreeSet<String>,
    are_more: bool,
}

impl OtherCategories {
    pub(crate) fn note(&mut self, categories: &[&str]) {
        for category in categories {
            let is_full = self.some.len() >= SHOWN_MAX;
            if self.some.contains(*category) {
                continue;
            }
            self.are_more |= is_full;
            if is_full && self.some.last().is_some_and(|last| last.as_str() < *category) {
                continue;
            }
            self.some.insert((*category).to_owned());
            if is_full {
                self.some.pop_last();
            }
        }
    }
}

/// Texts of other people, quoted for a message.
fn quoted<'a>(texts: impl IntoIterator<Item = &'a String>) -> String {
    let quoted = texts.into_iter().map(|text| format!("`{}`", excerpt(text)));
    quoted.collect::<Vec<_>>().join(", ")
}

impl Selection {
    pub(crate) fn new(options: &SyncOptions) -> Self {
        let (filter, uris) = (options.filter.clone(), options.uris.clone());
        // The order of the categories does not matter.
        let mut categories = options.categories.clone();
        categories.sort_unstable();
        categories.dedup();
        Self { filter, uris, categories, ..Self::default() }
    }

    /// Filters with the paths for this base instead of the copy's base.
    pub(crate) fn with_base(options: &SyncOptions, base: Option<&str>) -> Self {
        let map = base.and_then(|base| PathMap::new(base, NameRules::default()).ok());
        Self { map, ..Self::new(options) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filter.is_empty() && self.uris.is_none() && self.categories.is_empty()
    }

    /// Equal selections have equal texts.
    pub(crate) fn text(&self) -> String {
        let mut text = self.uris.as_ref().map_or("", |uris| uris.text()).to_owned();
        for category in &self.categories {
            text.push_str("category ");
            text.push_str(category);
            text.push('\n');
        }
        text + self.filter.text()
    }

    pub(crate) fn decide(&mut self, subject: Subject<'_>) -> Decision<'_> {
        let Self { filter, uris, categories, map, path, has_category, others, .. } = self;
        path.clear();
        if uris.as_ref().is_some_and(|uris| !uris.contains(subject.uri)) {
            return Decision::Excluded(NOT_LISTED);
        }
        let is_of_category = is_any(categories, subject.categories);
        if is_of_category == Some(false) {
            if let Categories::Listed(listed) = subject.categories {
                others.note(listed);
            }
            return Decision::Excluded(OTHER_CATEGORY);
        }
        *has_category |= is_of_category == Some(true);
        if let Some(map) = map
            && map.path_into(subject.uri, Form::Plain, path).is_err()
        {
            path.clear();
        }
        match filter.decide(&Subject { path, ..subject }) {
            Decision::Taken(_) if is_of_category.is_none() => Decision::Unknown,
            decision => decision,
        }
    }

    pub(crate) fn path(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }

    /// Whether all has to be compared again, because Change Lists do not show what other filters
    /// let through.
    pub(crate) const fn has_changed(&self) -> bool {
        self.changed
    }

    /// Stores the filters of this run as the filters of the copy.
    pub(crate) fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        let text = self.text();
        Ok(mirror.set_meta(FILTER, Some(text.as_str()).filter(|text| !text.is_empty()))?)
    }

    /// Whether a listed resource is included. Records an excluded resource that the copy retains.
    pub(crate) fn wants(
        &mut self,
        mirror: &Mirror,
        report: &mut Reporter<'_>,
        listed: &Listed<'_>,
        is_kept: bool,
    ) -> Result<bool, Error> {
        if self.is_empty() && !self.any_kept {
            return Ok(true);
        }
        let uri = listed.uri;
        if let Decision::Excluded(rule) = self.decide(listed.subject()) {
            if report.summary.dry_run {
                let rule = rule.to_owned();
                let path = self.path();
                report.observer.event(&Event::Filter(Filtered {
                    uri,
                    path: &path,
                    taken: false,
                    rule: &rule,
                }));
            }
            report.summary.excluded += 1;
            self.leave(mirror, uri, is_kept)?;
            return Ok(false);
        }
        if is_kept {
            self.take_again(mirror, uri)?;
        }
        Ok(true)
    }

    /// Records that a resource is excluded.
    pub(crate) fn leave(&mut self, mirror: &Mirror, uri: &str, is_kept: bool) -> Result<(), Error> {
        if is_kept && mirror.set_excluded(uri, true)? {
            self.any_kept = true;
            self.newly_kept += 1;
        }
        Ok(())
    }

    /// Records that a stored resource is included, possibly again.
    pub(crate) fn take_again(&self, mirror: &Mirror, uri: &str) -> Result<(), Error> {
        if self.any_kept {
            mirror.set_excluded(uri, false)?;
        }
        Ok(())
    }

    /// Whether a change from a Change List concerns an excluded resource. A deletion lacks
    /// properties that filters could test, so it is applied to any resource in the copy.
    pub(crate) fn excludes_change(&mut self, listed: &Listed<'_>) -> bool {
        !listed.is_deletion()
            && !self.is_empty()
            && matches!(self.decide(listed.subject()), Decision::Excluded(_))
    }

    /// Whether resources are selected by their categories.
    pub(crate) const fn has_categories(&self) -> bool {
        !self.categories.is_empty()
    }

    /// Whether the copy retains this excluded resource.
    pub(crate) fn is_left(&self, mirror: &Mirror, uri: &str) -> Result<bool, Error> {
        Ok(self.any_kept && mirror.is_excluded(uri)?)
    }

    /// Excludes retained resources from the deletion of resources that are not listed.
    pub(crate) fn spare_unseen(&mut self, mirror: &Mirror) -> Result<(), Error> {
        if self.is_empty() && !self.any_kept {
            return Ok(());
        }
        let (mut key, mut rows) = (String::new(), Vec::new());
        loop {
            rows.clear();
            mirror.unseen_after(&key, ROWS, &mut rows)?;
            let Some(last) = rows.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            for row in &rows {
                let excluded = match self.decide(subject_of(row)) {
                    Decision::Excluded(_) => true,
                    Decision::Unknown => self.is_left(mirror, &row.uri)?,
                    Decision::Taken(_) => false,
                };
                if excluded {
                    mirror.take_unseen(&row.uri)?;
                    self.leave(mirror, &row.uri, true)?;
                } else {
                    self.take_again(mirror, &row.uri)?;
                }
            }
        }
    }

    /// Records which stored or planned resources are excluded, if the Source does not have a list
    /// of all resources.
    pub(crate) fn leave_excluded(&mut self, mirror: &Mirror) -> Result<(), Error> {
        mirror.each_batch(|rows| {
            for row in rows {
                if matches!(self.decide(subject_of(row)), Decision::Excluded(_)) {
                    self.leave(mirror, &row.uri, true)?;
                }
            }
            Ok::<(), Error>(())
        })?;
        let (mut key, mut tasks) = (String::new(), Vec::new());
        loop {
            tasks.clear();
            mirror.pending_after(&key, ROWS, &mut tasks)?;
            let Some(last) = tasks.last() else { return Ok(()) };
            key.clone_from(&last.pending.uri);
            for task in &tasks {
                let uri = &task.pending.uri;
                if matches!(self.decide(subject_of_uri(uri)), Decision::Excluded(_)) {
                    mirror.forget_pending(uri)?;
                }
            }
        }
    }

    /// Adds the categories of lists that were skipped because of their categories.
    pub(crate) fn note_others(&mut self, others: &OtherCategories) {
        self.others.note(&others.some.iter().map(String::as_str).collect::<Vec<_>>());
        self.others.are_more |= others.are_more;
    }

    /// Reports that the filters exclude all resources of a list, unless the list is empty.
    pub(crate) fn report_nothing(&self, list: &str, entries: u64, report: &mut Reporter<'_>) {
        if let Some(message) = self.nothing_wanted(entries > 0) {
            report.notice(NOTHING_WANTED, list, &message);
        }
    }

    /// The reason why no listed resource is included; `None` if nothing is listed, or there are no
    /// filters.
    pub(crate) fn nothing_wanted(&self, is_listed: bool) -> Option<String> {
        let Self { categories, has_category, others, .. } = self;
        if self.is_empty() || !is_listed && others.some.is_empty() {
            return None;
        }
        Some(if categories.is_empty() || *has_category {
            "the filters exclude all that is listed\n  help: `--test-filter` prints the rule that decides for each resource".to_owned()
        } else {
            let listed = match quoted(&others.some) {
                none if none.is_empty() => "no categories are listed".to_owned(),
                some if others.are_more => format!("listed are {some}, and others"),
                some => format!("listed are {some}"),
            };
            format!(
                "nothing that is listed has a wanted category ({}); {listed}\n  help: categories are compared exactly, upper and \
                 lower case included",
                quoted(categories)
            )
        })
    }

    /// Plans the actions for retained resources that are excluded.
    pub(crate) fn plan_excluded(
        &self,
        mirror: &Mirror,
        options: &SyncOptions,
        report: &mut Reporter<'_>,
    ) -> Result<(), Error> {
        if !self.any_kept {
            return Ok(());
        }
        mirror.plan_excluded(options.delete_excluded)?;
        if self.newly_kept > 0 && !options.delete_excluded {
            let message = format!(
                "excluded now, with files that stay as they are: {}\n  help: `--delete-excluded` deletes them",
                count(self.newly_kept, "resource")
            );
            report.notice("filter.kept", &options.url, &message);
        }
        Ok(())
    }
}

/// A resource of which no more than its URI is known.
fn subject_of_uri(uri: &str) -> Subject<'_> {
    Subject { uri, ..Subject::default() }
}

fn subject_of(row: &Row) -> Subject<'_> {
    Subject {
        uri: &row.uri,
        path: &[],
        media_type: MediaType::Unknown,
        length: Some(row.length),
        modified: row.modified,
        categories: Categories::Unknown,
    }
}

/// Whether a resource has one of the required categories; always true if none is required. `None`
/// if its categories are not known.
pub(crate) fn is_any(wanted: &[String], categories: Categories<'_>) -> Option<bool> {
    match categories {
        _ if wanted.is_empty() => Some(true),
        Categories::Unknown => None,
        Categories::Listed(own) => {
            Some(own.iter().any(|own| wanted.iter().any(|wanted| wanted == own)))
        }
    }
}
