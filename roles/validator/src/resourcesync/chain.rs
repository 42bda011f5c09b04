//! Intervals in sequence: the lists of a Change List Index, the packages of a Change Dump and the
//! dumps of its index [rs-core §12.2, §13.1].
//!
//! A single document is checked with the intervals in its entries. For entries without an interval,
//! the intervals of the lists and packages themselves are checked after the walk.

use crate::fetch::values::is_before;
use crate::report::{Rule, rules as r};
use abreast_resourcesync::v1_1::Capability;
use abreast_webtypes::{Precision, W3cDatetime};

/// A finding as its rule, place and message.
pub(crate) type Fault = (&'static Rule, (u64, u64), String);

/// Start or end of an interval, and whether it is from the entry or from the entry's target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) time: W3cDatetime,
    pub(crate) is_stated: bool,
}

impl Bound {
    /// The time in an entry or, if it is missing, the time in the target of the entry.
    pub(crate) fn of(entry: Option<W3cDatetime>, own: Option<W3cDatetime>) -> Option<Self> {
        let time = entry.or(own)?;
        Some(Self { time, is_stated: entry.is_some() })
    }
}

/// Interval of an entry or its target.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) from: Option<Bound>,
    pub(crate) until: Option<Bound>,
    /// Why the interval is known to be open, if it is.
    pub(crate) open: Option<Openness>,
    pub(crate) place: (u64, u64),
}

/// Source of the information that an interval is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Openness {
    /// The entry has `from`, but not `until`.
    Stated,
    /// The target of the entry does not have `until`.
    Own,
}

/// Whether there is a gap between two times. In a Change Dump, a gap of a single unit of the
/// coarser time is permitted: the specification does not define whether `until` is within the
/// interval.
fn is_apart(of: Capability, one: W3cDatetime, other: W3cDatetime) -> bool {
    const SECOND: i64 = 1_000_000;
    let unit = match one.precision.min(other.precision) {
        Precision::Year => 366 * 24 * 3_600 * SECOND,
        Precision::Month => 31 * 24 * 3_600 * SECOND,
        Precision::Day => 24 * 3_600 * SECOND,
        Precision::Minute => 60 * SECOND,
        Precision::Second => SECOND,
        Precision::Fraction => SECOND / 1_000,
    };
    let permitted = if of == Capability::ChangeList { 0 } else { unit };
    let between = other.instant.as_micros().saturating_sub(one.instant.as_micros());
    is_before(one, other) && between > permitted
}

/// Intervals of the entries of a document, in document order.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// Whether to compare only times from entries. If not, only pairs with a time from a target are
    /// compared, because pairs of entries were checked before.
    is_alone: bool,
    before: Option<Interval>,
    latest: Option<Bound>,
    /// The latest end of the intervals so far.
    end: Option<Bound>,
    first: Option<Interval>,
    is_started: bool,
}

impl Chain {
    const fn new(is_alone: bool) -> Self {
        Self { is_alone, before: None, latest: None, end: None, first: None, is_started: false }
    }

    /// Checks the entries of a document without their targets.
    pub(crate) const fn alone() -> Self {
        Self::new(true)
    }

    /// Checks a document together with the targets of its entries.
    pub(crate) const fn related() -> Self {
        Self::new(false)
    }

    /// Whether this chain compares these two times.
    const fn compares(&self, one: Bound, other: Bound) -> bool {
        self.is_alone == (one.is_stated && other.is_stated)
    }

    /// Skips an interval that is unknown because its document was not read.
    pub(crate) const fn unknown(&mut self) {
        self.is_started = true;
        self.before = None;
    }

    /// Compares the next interval with the earlier ones.
    pub(crate) fn next(&mut self, of: Capability, next: Interval, faults: &mut Vec<Fault>) {
        let is_index = of == Capability::ChangeList;
        let (order, gap, what) = if is_index {
            (&r::CHANGE_INDEX_ORDER, &r::CHANGE_INDEX_GAP, "list")
        } else {
            (&r::CHANGE_DUMP_ORDER, &r::CHANGE_DUMP_SPAN, "package")
        };
        let until = self.before.and_then(|before| before.until);
        let is_late = |latest: &Bound, from: &Bound| is_before(from.time, latest.time);
        if let (Some(latest), Some(from)) = (self.latest, next.from)
            && is_late(&latest, &from)
        {
            if self.compares(latest, from) {
                let (from, latest) = (from.time.instant, latest.time.instant);
                let message = format!("the {what} from {from} comes behind the one from {latest}");
                faults.push((order, next.place, message));
            }
        } else if let (Some(until), Some(from)) = (until, next.from)
            && is_apart(of, until.time, from.time)
            && self.compares(until, from)
        {
            let (until, from) = (until.time.instant, from.time.instant);
            let message = format!("nothing covers the time from {until} to {from}");
            faults.push((gap, next.place, message));
        }
        let due = if self.is_alone { Openness::Stated } else { Openness::Own };
        if let Some(before) = self.before.filter(|before| is_index && before.open == Some(due)) {
            let message = "a list without `until` that is not the last".to_owned();
            faults.push((&r::CHANGE_INDEX_LAST, before.place, message));
        }
        if !std::mem::replace(&mut self.is_started, true) {
            self.first = Some(next);
        }
        self.latest = next.from.or(self.latest);
        let is_later = |end: Bound| self.end.is_none_or(|before| is_before(before.time, end.time));
        self.end = next.until.filter(|end| is_later(*end)).or(self.end);
        self.before = Some(next);
    }

    /// Compares the first start and the last end with the interval of the document.
    pub(crate) fn end(
        &self,
        of: Capability,
        (from, until): (Option<W3cDatetime>, Option<W3cDatetime>),
        place: (u64, u64),
        faults: &mut Vec<Fault>,
    ) {
        let (first, last) = (self.first.unwrap_or_default(), self.before.unwrap_or_default());
        let (rule, whole, what) = if of == Capability::ChangeList {
            (&r::CHANGE_INDEX_SPAN, "index", "list")
        } else {
            (&r::CHANGE_DUMP_SPAN, "dump", "package")
        };
        let stated = |time| Bound { time, is_stated: true };
        if let (Some(from), Some(first)) = (from.map(stated), first.from)
            && is_apart(of, from.time, first.time)
            && self.compares(from, first)
        {
            let (from, first) = (from.time.instant, first.time.instant);
            let message = format!("the {whole} begins at {from}, its first {what} at {first}");
            faults.push((rule, place, message));
        }
        let due = if self.is_alone { Openness::Stated } else { Openness::Own };
        let ends_before = match (until.map(stated), last.until) {
            (Some(until), Some(last)) => {
                is_apart(of, last.time, until.time) && self.compares(last, until)
            }
            (Some(_), None) => last.open == Some(due),
            _ => false,
        };
        if ends_before {
            let message =
                format!("the {whole} is closed at a time that its last {what} does not reach");
            faults.push((rule, place, message));
        }
        // The interval of an index of lists may be shorter than the intervals of its lists.
        let is_dump = of != Capability::ChangeList;
        if let (true, Some(from), Some(first)) = (is_dump, from.map(stated), first.from)
            && is_before(first.time, from.time)
            && self.compares(from, first)
        {
            let (from, first) = (from.time.instant, first.time.instant);
            let message =
                format!("the {whole} begins at {from}, after its first {what} at {first}");
            faults.push((rule, place, message));
        }
        if let (true, Some(until), Some(end)) = (is_dump, until.map(stated), self.end)
            && is_before(until.time, end.time)
            && self.compares(until, end)
        {
            let (until, end) = (until.time.instant, end.time.instant);
            let message =
                format!("the {whole} ends at {until}, before a {what} that ends at {end}");
            faults.push((rule, place, message));
        }
        if let (Some(until), Some(latest)) = (until.map(stated), self.latest)
            && is_before(until.time, latest.time)
            && self.compares(until, latest)
        {
            let (until, latest) = (until.time.instant, latest.time.instant);
            let message = format!("the {whole} ends at {until}, before the {what} from {latest}");
            faults.push((rule, place, message));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_between_two_packages_is_no_gap() {
        for (until, from, is_gap) in [
            ("2026-01-04T23:59:59Z", "2026-01-05T00:00:00Z", false),
            ("2026-01-04T23:59:58Z", "2026-01-05T00:00:00Z", true),
            ("2026-01-04T23:59:59.999Z", "2026-01-05T00:00:00Z", false),
            ("2026-01-04T23:59:59.999Z", "2026-01-05T00:00:00.000Z", false),
            ("2026-01-04T23:59:59.9Z", "2026-01-05T00:00:00.0Z", true),
            ("2026-01-04T23:59Z", "2026-01-05T00:00:00Z", false),
            ("2026-01-04T23:58Z", "2026-01-05T00:00Z", true),
            ("2026-01-04", "2026-01-05", false),
            ("2026-01-04", "2026-01-06", true),
            ("2025-12", "2026-01", false),
            ("2025-12", "2026-02", true),
            ("2024", "2025", false),
            ("2024", "2026", true),
            ("2026-01-05T00:00:00Z", "2026-01-05T00:00:00Z", false),
            ("2026-01-06T00:00:00Z", "2026-01-05T00:00:00Z", false),
        ] {
            let [one, other] =
                [until, from].map(|time: &str| W3cDatetime::parse(time.as_bytes()).unwrap());
            assert_eq!(is_apart(Capability::ChangeDump, one, other), is_gap, "{until} {from}");
            let is_gap = is_before(one, other);
            assert_eq!(is_apart(Capability::ChangeList, one, other), is_gap, "{until} {from}");
        }
    }
}
