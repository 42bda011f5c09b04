//! What the user's filters mean for a run: what is left alone, kept although excluded, or compared again.
//!
//! A resource that is excluded is neither fetched nor brought up to date nor deleted, as if neither side had it. When
//! filters change, the Change Lists alone would not tell what is new: then all is compared with the Resource List.

use crate::admit::Admission;
use crate::error::Error;
use crate::events::{Event, Filtered};
use crate::filter::{Decision, Filter, MediaType, Subject};
use crate::options::SyncOptions;
use crate::path_map::{Form, NameRules, PathMap};
use crate::plan::comparison::widen;
use crate::plan::listed::Listed;
use crate::read::{Reader, Start};
use crate::requests::Requests;
use crate::session::Session;
use crate::state::key;
use abreast_store::mirror::Row;
use abreast_webtypes::count;

/// The filters of the last run.
const FILTER: &str = "filter";
/// Rows looked at together.
const ROWS: usize = 512;

/// A run's filters, with what they need to know.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    filter: Filter,
    /// Under which paths rules know resources; by ordinary names, whatever the file system does to some.
    map: Option<PathMap>,
    path: Vec<u8>,
    /// Another filter than that of the last run.
    changed: bool,
    /// Whether resources are kept although excluded.
    any_kept: bool,
    /// How many are so since this run.
    newly_kept: u64,
}

impl Selection {
    pub(crate) fn new(filter: Filter) -> Self {
        Self { filter, ..Self::default() }
    }

    /// Has a base of its own, where there is one at all.
    pub(crate) fn with_base(filter: Filter, base: Option<&str>) -> Self {
        let map = base.and_then(|base| PathMap::new(base, NameRules::default()).ok());
        Self { map, ..Self::new(filter) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filter.is_empty()
    }

    pub(crate) fn decide(&mut self, subject: Subject<'_>) -> Decision<'_> {
        let Self { filter, map, path, .. } = self;
        path.clear();
        if let Some(map) = map
            && map.path_into(subject.uri, Form::Plain, path).is_err()
        {
            path.clear();
        }
        filter.decide(&Subject { path, ..subject })
    }

    fn path(&self) -> String {
        String::from_utf8_lossy(&self.path).into_owned()
    }
}

impl Session<'_> {
    /// Finds out what filters need to know before anything is planned.
    pub(crate) fn prepare_selection(&mut self, reader: &dyn Reader, start: &Start) -> Result<(), Error> {
        self.selection.any_kept = self.mirror.has_excluded()?;
        let before = self.mirror.meta(FILTER)?.unwrap_or_default();
        self.selection.changed = before != self.options.filter.text();
        if !self.options.filter.needs_paths() {
            return Ok(());
        }
        let known = [
            self.mirror.meta(key::BASE)?,
            self.options.base.clone(),
            start.uri_space.clone(),
            self.mirror.meta("common")?,
        ];
        let map_of = |base: &str| PathMap::new(base, NameRules::default()).ok();
        let mut map = known.into_iter().flatten().find_map(|base| map_of(&base));
        if map.is_none() {
            let has_list = start.has_list;
            let common = if has_list { common_base(reader, &self.requests, start, self.options)? } else { None };
            if let Some(common) = &common {
                self.mirror.set_meta("common", Some(common))?;
            }
            let base = common.or_else(|| crate::run::authority_root(&start.first));
            if let (false, Some(base)) = (has_list, &base) {
                // Changes and dumps are read once only: the paths that rules mean are those of the copy from now on.
                self.mirror.set_meta(key::BASE, Some(base))?;
            }
            map = base.and_then(|base| map_of(&base));
        }
        self.selection.map = map;
        Ok(())
    }

    /// Whether all has to be compared again, because Change Lists do not tell what other filters let through.
    pub(crate) const fn filter_changed(&self) -> bool {
        self.selection.changed
    }

    /// From now on this run's filters are those of the copy.
    pub(crate) fn keep_filter(&mut self) -> Result<(), Error> {
        let text = self.options.filter.text();
        Ok(self.mirror.set_meta(FILTER, (!text.is_empty()).then_some(text))?)
    }

    /// Is this listed resource wanted? If not, and it is kept, that is noted.
    pub(crate) fn wants(&mut self, listed: &Listed<'_>, is_kept: bool) -> Result<bool, Error> {
        if self.selection.is_empty() && !self.selection.any_kept {
            return Ok(true);
        }
        let uri = listed.uri;
        if let Decision::Excluded(rule) = self.selection.decide(listed.subject()) {
            if self.options.dry_run {
                let rule = rule.to_owned();
                let path = self.selection.path();
                self.report.observer.event(&Event::Filter(Filtered { uri, path: &path, taken: false, rule: &rule }));
            }
            self.report.summary.excluded += 1;
            self.leave(uri, is_kept)?;
            return Ok(false);
        }
        if is_kept {
            self.take_again(uri)?;
        }
        Ok(true)
    }

    /// Notes that a resource is excluded.
    pub(crate) fn leave(&mut self, uri: &str, is_kept: bool) -> Result<(), Error> {
        if is_kept && self.mirror.set_excluded(uri, true)? {
            self.selection.any_kept = true;
            self.selection.newly_kept += 1;
        }
        Ok(())
    }

    /// Notes that a kept resource is wanted, again perhaps.
    pub(crate) fn take_again(&mut self, uri: &str) -> Result<(), Error> {
        if self.selection.any_kept {
            self.mirror.set_excluded(uri, false)?;
        }
        Ok(())
    }

    /// Whether a change from the Change List is about an excluded resource. A deletion says nothing that filters could
    /// look at: it is for what was wanted so far.
    pub(crate) fn excludes_change(&mut self, listed: &Listed<'_>) -> bool {
        !listed.is_deletion()
            && !self.selection.is_empty()
            && matches!(self.selection.decide(listed.subject()), Decision::Excluded(_))
    }

    /// Is it kept although excluded?
    pub(crate) fn is_left(&self, uri: &str) -> Result<bool, Error> {
        Ok(self.selection.any_kept && self.mirror.is_excluded(uri)?)
    }

    /// Of what is kept and no longer listed, leaves alone what is excluded.
    pub(crate) fn spare_unseen(&mut self) -> Result<(), Error> {
        if self.selection.is_empty() && !self.selection.any_kept {
            return Ok(());
        }
        let (mut key, mut rows) = (String::new(), Vec::new());
        loop {
            rows.clear();
            self.mirror.unseen_after(&key, ROWS, &mut rows)?;
            let Some(last) = rows.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            for row in &rows {
                let excluded = match self.selection.decide(subject_of(row)) {
                    Decision::Excluded(_) => true,
                    Decision::Unknown => self.is_left(&row.uri)?,
                    Decision::Taken(_) => false,
                };
                if excluded {
                    self.mirror.take_unseen(&row.uri)?;
                    self.leave(&row.uri, true)?;
                } else {
                    self.take_again(&row.uri)?;
                }
            }
        }
    }

    /// Plans what is to become of what is kept although excluded.
    pub(crate) fn plan_excluded(&mut self) -> Result<(), Error> {
        if !self.selection.any_kept {
            return Ok(());
        }
        self.mirror.plan_excluded(self.options.delete_excluded)?;
        if self.selection.newly_kept > 0 && !self.options.delete_excluded {
            let message = format!(
                "excluded now, with files that stay as they are: {}\n  help: `--delete-excluded` deletes them",
                count(self.selection.newly_kept, "resource")
            );
            self.report.notice("filter.kept", &self.options.url, &message);
        }
        Ok(())
    }
}

/// What all listed URIs start with, found by reading the lists.
pub(crate) fn common_base(
    reader: &dyn Reader,
    requests: &Requests<'_>,
    start: &Start,
    options: &SyncOptions,
) -> Result<Option<String>, Error> {
    let mut base = None;
    let mut admission = Admission::new(&start.first, &options.allow_hosts, options.allow_downgrade);
    reader.each_resource(requests, options, &mut |listed| {
        if admission.check(listed.uri).is_ok() {
            widen(&mut base, listed.uri);
        }
    })?;
    Ok(base)
}

fn subject_of(row: &Row) -> Subject<'_> {
    Subject {
        uri: &row.uri,
        path: &[],
        media_type: MediaType::Unknown,
        length: Some(row.length),
        modified: row.modified,
    }
}

impl Session<'_> {
    /// Tells of each listed resource what the filters say, and does nothing.
    pub(crate) fn show_selection(&mut self, reader: &dyn Reader) -> Result<(), Error> {
        let requests = self.requests.clone();
        let (observer, options) = (self.report.observer, self.options);
        let (selection, summary) = (&mut self.selection, &mut self.report.summary);
        reader.each_resource(&requests, options, &mut |listed| {
            let (taken, rule) = match selection.decide(listed.subject()) {
                Decision::Excluded(rule) => (false, rule.to_owned()),
                Decision::Taken(rule) => (true, rule.to_owned()),
                Decision::Unknown => (true, String::new()),
            };
            *(if taken { &mut summary.selected } else { &mut summary.excluded }) += 1;
            let (uri, path) = (listed.uri, selection.path());
            observer.event(&Event::Filter(Filtered { uri, path: &path, taken, rule: &rule }));
        })
    }
}
