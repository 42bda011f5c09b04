//! The data that filters need about a Source, and the resources that they select.

use crate::copy::common_base::{CommonBase, authority_root};
use crate::copy::key;
use crate::copy::path_map::{NameRules, PathMap};
use crate::plan::select::{FILTER, Selection};
use crate::plan::skolem;
use crate::read::Start;
use crate::read::driver::Driver;
use crate::report::error::Error;
use crate::report::events::{Event, Filtered};
use crate::report::options::SyncOptions;
use crate::report::reporter::Reporter;
use crate::request::admit::Admission;
use crate::request::requests::Requests;
use abreast_core::filter::Decision;
use abreast_store::mirror::Mirror;

impl Selection {
    /// Finds out what filters need to know before anything is planned.
    pub(crate) fn prepare(
        &mut self,
        mirror: &Mirror,
        options: &SyncOptions,
        (reader, requests): (&mut Driver, &Requests<'_>),
        start: &Start,
    ) -> Result<(), Error> {
        self.any_kept = mirror.has_excluded()?;
        let before = mirror.meta(FILTER)?.unwrap_or_default();
        self.changed = before != self.text() || skolem::wants_comparison(mirror)?;
        if !self.filter.needs_paths() {
            return Ok(());
        }
        let known = [
            mirror.meta(key::BASE)?,
            options.base.clone(),
            start.uri_space.clone(),
            mirror.meta(key::COMMON)?,
        ];
        let map_of = |base: &str| PathMap::new(base, NameRules::default()).ok();
        let mut map = known.into_iter().flatten().find_map(|base| map_of(&base));
        if map.is_none() {
            let has_list = start.has_list;
            let common =
                if has_list { common_base(reader, requests, start, options)? } else { None };
            if let Some(common) = &common {
                mirror.set_meta(key::COMMON, Some(common))?;
            }
            let base = common.or_else(|| authority_root(&start.first));
            if let (false, Some(base)) = (has_list, &base) {
                // Changes and dumps are read only once, so the rules apply to the paths of the copy
                // from now on.
                mirror.set_meta(key::BASE, Some(base))?;
            }
            map = base.and_then(|base| map_of(&base));
        }
        self.map = map;
        Ok(())
    }

    /// Reports for each listed resource how the filters decide; changes nothing.
    pub(crate) fn show(
        &mut self,
        options: &SyncOptions,
        (reader, requests): (&mut Driver, &Requests<'_>),
        report: &mut Reporter<'_>,
    ) -> Result<(), Error> {
        let (observer, summary) = (report.observer, &mut report.summary);
        reader.each_resource(requests, options, None, &mut |listed| {
            let (taken, rule) = match self.decide(listed.subject()) {
                Decision::Excluded(rule) => (false, rule.to_owned()),
                Decision::Taken(rule) => (true, rule.to_owned()),
                Decision::Unknown => (true, String::new()),
            };
            *(if taken { &mut summary.selected } else { &mut summary.excluded }) += 1;
            let (uri, path) = (listed.uri, self.path());
            observer.event(&Event::Filter(Filtered { uri, path: &path, taken, rule: &rule }));
        })?;
        Ok(())
    }
}

/// The common start of all listed URIs, determined by reading the lists.
pub(crate) fn common_base(
    reader: &mut Driver,
    requests: &Requests<'_>,
    start: &Start,
    options: &SyncOptions,
) -> Result<Option<String>, Error> {
    let mut base = CommonBase::default();
    let mut admission = Admission::new(&start.first, &options.allow_hosts, options.allow_downgrade);
    reader.each_resource(requests, options, None, &mut |listed| {
        if admission.check(listed.href()).is_ok() {
            base.note(listed.uri);
        }
    })?;
    Ok(base.of_most(&start.first))
}
