//! Intervals that follow each other: the lists of a Change List Index, the packages of a Change Dump and
//! the dumps of its index [rs-core §12.2, §13.1].
//!
//! A document by itself shows the intervals that its entries state. Where they state none, those of the
//! lists and packages themselves are used after the walk.

use crate::rule::Rule;
use crate::rules as r;
use crate::values::is_before;
use abreast_resourcesync::v1_1::Capability;
use abreast_webtypes::W3cDatetime;

/// A finding: its rule, its place, its message.
pub(crate) type Fault = (&'static Rule, (u64, u64), String);

/// A limit of an interval, and whether the entry states it rather than the document it leads to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) time: W3cDatetime,
    pub(crate) is_stated: bool,
}

impl Bound {
    /// The limit of an entry, or else that of the document it leads to.
    pub(crate) fn of(entry: Option<W3cDatetime>, own: Option<W3cDatetime>) -> Option<Self> {
        let time = entry.or(own)?;
        Some(Self { time, is_stated: entry.is_some() })
    }
}

/// One interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Interval {
    pub(crate) from: Option<Bound>,
    pub(crate) until: Option<Bound>,
    /// How it is known that it has no end.
    pub(crate) open: Option<Openness>,
    pub(crate) place: (u64, u64),
}

/// How it is known that an interval has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Openness {
    /// The entry has `from`, and no `until`.
    Stated,
    /// The list itself has no `until`.
    Own,
}

/// Intervals of one document, in their order.
#[derive(Clone, Debug)]
pub(crate) struct Chain {
    /// The entries alone are judged; else what they state is judged already.
    is_alone: bool,
    before: Option<Interval>,
    latest: Option<Bound>,
    first: Option<Interval>,
    is_started: bool,
}

impl Chain {
    /// Of a document by itself.
    pub(crate) const fn alone() -> Self {
        Self { is_alone: true, before: None, latest: None, first: None, is_started: false }
    }

    /// Of a document with those that it leads to.
    pub(crate) const fn related() -> Self {
        Self { is_alone: false, before: None, latest: None, first: None, is_started: false }
    }

    /// Whether these limits are compared here.
    const fn compares(&self, one: Bound, other: Bound) -> bool {
        self.is_alone == (one.is_stated && other.is_stated)
    }

    /// The next interval is unknown: its document was not read.
    pub(crate) const fn unknown(&mut self) {
        self.is_started = true;
        self.before = None;
    }

    /// Judges the next interval.
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
            && is_before(until.time, from.time)
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
        self.before = Some(next);
    }

    /// Judges the ends, by the interval that the document states.
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
            && is_before(from.time, first.time)
            && self.compares(from, first)
        {
            let (from, first) = (from.time.instant, first.time.instant);
            let message = format!("the {whole} begins at {from}, its first {what} at {first}");
            faults.push((rule, place, message));
        }
        let due = if self.is_alone { Openness::Stated } else { Openness::Own };
        let ends_before = match (until.map(stated), last.until) {
            (Some(until), Some(last)) => {
                is_before(last.time, until.time) && self.compares(last, until)
            }
            (Some(_), None) => last.open == Some(due),
            _ => false,
        };
        if ends_before {
            let message =
                format!("the {whole} is closed at a time that its last {what} does not reach");
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
