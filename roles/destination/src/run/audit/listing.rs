//! The visitor of an audit, which records the listed resources.

use crate::copy::common_base::CommonBase;
use crate::plan::comparison::note_twice;
use crate::plan::listed::Listed;
use crate::plan::select::{OtherCategories, Selection};
use crate::read::walk::{Category, Visitor};
use crate::report::error::Error;
use crate::report::events::{Event, Observer, Problem};
use crate::request::requests::Requests;
use abreast_core::Meter;
use abreast_core::filter::Decision;
use abreast_store::mirror::{ChangeOrder, Expected, ExpectedRow, Pending};
use abreast_webtypes::Moment;
use std::sync::atomic::{AtomicBool, Ordering};

/// Records the listed resources of a Source.
pub(super) struct Listing<'a> {
    pub(super) expected: &'a Expected,
    pub(super) selection: &'a mut Selection,
    /// Resources that the filters exclude, stored or not.
    pub(super) excluded: &'a Expected,
    /// The common start of all URIs.
    pub(super) common: CommonBase,
    pub(super) item: Pending,
    pub(super) meter: Meter,
    pub(super) observer: &'a dyn Observer,
    pub(super) requests: &'a Requests<'a>,
    pub(super) cancel: &'a AtomicBool,
}

impl Visitor for Listing<'_> {
    fn resource(
        &mut self,
        listed: &Listed<'_>,
        as_of: Option<Moment>,
        _: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.meter.add(1, 0);
        stop(self.cancel)?;
        listed.pending_into(&mut self.item);
        self.common.note(&self.item.uri);
        let is_excluded = matches!(self.selection.decide(listed.subject()), Decision::Excluded(_));
        let to = if is_excluded { self.excluded } else { self.expected };
        // As in a comparison, the first entry is used; an entry without properties does not count.
        let first = to.row(&self.item.uri)?;
        if let Some(first) = first.filter(|it| it.length.is_some() || !it.digests.is_empty()) {
            note_twice(self.requests, listed, first.length, &first.digests);
            return Ok(());
        }
        let at = as_of.map(|at| (at.first().as_micros(), at.last().as_micros()));
        let row = ExpectedRow { at, ..expected_row(&self.item) };
        Ok(to.put(&row, (i64::MIN, i64::MIN), false)?)
    }

    /// An incomplete list is an error: resources that are missing in the other lists may be in this
    /// one.
    fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
        Err(error)
    }

    fn change(&mut self, listed: &Listed<'_>, order: ChangeOrder) -> Result<(), Error> {
        stop(self.cancel)?;
        listed.pending_into(&mut self.item);
        let (row, at) = (expected_row(&self.item), order.changed);
        let row = ExpectedRow { at, is_change: at.is_some(), ..row };
        let (mut row, mut order) = (row, (order.time, order.list));
        if listed.is_only_deprecated() {
            // The resource is in the set, with the properties in another entry, if any.
            (row.at, row.is_change) = (None, false);
            order = (i64::MIN, i64::MIN);
            if self.expected.contains(&row.uri)? {
                return Ok(());
            }
        }
        let is_gone = listed.is_deletion();
        let is_excluded =
            !is_gone && matches!(self.selection.decide(listed.subject()), Decision::Excluded(_));
        self.expected.put(&row, order, is_gone || is_excluded)?;
        if is_excluded || !is_gone && !self.selection.is_empty() {
            self.excluded.put(&row, order, !is_excluded)?;
        }
        Ok(())
    }

    fn category(&mut self, listed: &Listed<'_>) -> Result<Category, Error> {
        let is_kept = listed.categories.is_empty() && self.expected.contains(listed.uri)?;
        Ok(if is_kept { Category::AsKept } else { Category::Own })
    }

    fn left_out(&mut self, categories: &OtherCategories) {
        self.selection.note_others(categories);
    }

    fn notice(&mut self, code: &str, uri: &str, message: &str) {
        self.observer.event(&Event::Notice(Problem { code, uri, message }));
    }

    fn fault(&mut self, code: &str, url: &str, message: &str) -> Result<(), Error> {
        self.notice(code, url, message);
        Ok(())
    }
}

fn expected_row(item: &Pending) -> ExpectedRow {
    let href = item.access.as_ref().and_then(|access| access.href.clone());
    ExpectedRow {
        uri: item.uri.clone(),
        href,
        modified: item.modified,
        length: item.length,
        digests: item.digests.clone(),
        at: None,
        is_change: false,
        describes: item.describes(),
    }
}

pub(super) fn stop(cancel: &AtomicBool) -> Result<(), Error> {
    if cancel.load(Ordering::Relaxed) { Err(Error::cancelled()) } else { Ok(()) }
}
