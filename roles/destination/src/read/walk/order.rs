//! The order of changes.

use abreast_store::mirror::ChangeOrder;
use abreast_webtypes::{Moment, Timestamp};

/// The width of a time that is not known, at least, microseconds.
const WIDTH_MIN: i64 = 1_000_000;

/// The order of changes: by their times; where these are missing, coarse or the same, by the order of documents.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// The position of the current document among all documents.
    pub(super) list: i64,
    /// The newest time among previous entries, or the start of the document's interval.
    pub(super) last: Option<Timestamp>,
    /// The place of the last entry of the document without a time.
    pub(super) undated: Option<Timestamp>,
    /// The oldest time of all entries: entries of earlier documents are not later.
    pub(super) least: Option<Timestamp>,
    /// Whether documents are read from the newest one back.
    pub(super) is_back: bool,
    /// In that case the end of all documents: an entry of the first document is not earlier than
    /// others.
    pub(super) end: Option<Timestamp>,
    /// The time at which the document was written, by a clock that may be ahead.
    pub(super) written: Option<Timestamp>,
    /// The interval of the document.
    pub(super) from: Option<Moment>,
    pub(super) until: Option<Moment>,
}

impl Order {
    pub(super) fn begin(&mut self, from: Option<Moment>, until: Option<Moment>) {
        self.last = self.last.max(from.map(Moment::first));
        (self.from, self.until, self.undated) = (from, until, None);
    }

    /// The place of a change without a usable time. The change happened in the interval of its
    /// document, and after the known changes. The document or the time of the change contains the
    /// latest possible time; such times are used up to `limit`, by a clock that is ahead.
    pub(super) fn undated(
        &mut self,
        since: Option<Moment>,
        stated: Option<Moment>,
        limit: Timestamp,
    ) -> ChangeOrder {
        let begin =
            self.from.map(|from| from.first().max(since.map_or(Timestamp::MIN, Moment::first)));
        let begin = begin.map(|begin| begin.plus_micros(1));
        let begin = begin.map(|begin| stated.map_or(begin, |stated| begin.min(stated.first())));
        let begin = begin.map(Timestamp::as_micros);
        let end = self.until.or(stated).filter(|end| end.first() <= limit);
        let end = end.map(|end| end.last().as_micros());
        let changed = match begin {
            Some(begin) => Some((begin, end.unwrap_or(i64::MAX).max(begin + WIDTH_MIN))),
            None => end.map(|end| (i64::MIN, end)),
        };
        ChangeOrder { changed, ..self.of(None) }
    }

    /// The place of the next change.
    pub(super) fn of(&mut self, time: Option<Moment>) -> ChangeOrder {
        let placed = match time {
            None => {
                let placed = self.last.or(self.least).or(self.end).max(self.undated);
                self.undated = placed;
                placed.unwrap_or(Timestamp::MIN)
            }
            // The order of the document decides within the limits of a coarse time.
            Some(time) => self.last.filter(|last| time.contains(*last)).unwrap_or(time.first()),
        };
        if time.is_some() {
            self.last = self.last.max(Some(placed));
            self.least = self.least.into_iter().chain([placed]).min();
        }
        let changed = time.map(|time| (time.first().as_micros(), time.last().as_micros()));
        ChangeOrder { time: placed.as_micros(), list: self.list, changed, ..ChangeOrder::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// The number of the change that is applied for each resource, if pages with these numbers of
    /// entries are read.
    fn counting(
        changes: &[(u8, Moment)],
        lengths: &[usize],
        is_back: bool,
        has_spans: bool,
    ) -> BTreeMap<u8, usize> {
        let (mut pages, mut begin) = (Vec::new(), 0);
        for length in lengths.iter().cycle() {
            let end = changes.len().min(begin + length);
            pages.push(begin..end);
            begin = end;
            if end == changes.len() {
                break;
            }
        }
        if is_back {
            pages.reverse();
        }
        let mut order = Order { is_back, ..Order::default() };
        let mut newest = BTreeMap::<u8, ((i64, i64), usize)>::new();
        for page in pages {
            let from = changes.get(page.start).map(|(_, time)| *time).filter(|_| has_spans);
            order.begin(from, None);
            for number in page {
                let (resource, time) = changes[number];
                let ChangeOrder { time, list, .. } = order.of(Some(time));
                let place = (time, list);
                let known = newest.entry(resource).or_insert((place, number));
                if place >= known.0 {
                    *known = (place, number);
                }
            }
            if is_back {
                (order.list, order.last) = (order.list - 1, None);
            } else {
                order.list += 1;
            }
        }
        newest.into_iter().map(|(resource, (_, number))| (resource, number)).collect()
    }

    proptest! {
        #[test]
        fn the_order_of_equal_times_does_not_depend_on_pages(
            steps in vec((0_u8..3, 0_i64..2), 1..24),
            lengths in vec(1_usize..5, 1..6),
            width in prop::sample::select(vec![1_i64, 1_000_000, 86_400_000_000]),
            is_back: bool,
            has_spans: bool,
        ) {
            let mut now = 0;
            let changes: Vec<(u8, Moment)> = steps
                .into_iter()
                .map(|(resource, step)| {
                    now += step * width;
                    let [first, last] = [now, now + width - 1].map(Timestamp::from_micros);
                    (resource, Moment::between(first, last))
                })
                .collect();
            // The last change of each resource, for any pages.
            let last: BTreeMap<u8, usize> =
                changes.iter().enumerate().map(|(number, change)| (change.0, number)).collect();
            prop_assert_eq!(counting(&changes, &lengths, is_back, has_spans), last);
        }
    }

    #[test]
    fn a_time_that_is_not_stated_is_never_an_instant() {
        let at = |micros| Moment::exact(Timestamp::from_micros(micros));
        let mut order = Order::default();
        order.begin(Some(at(3)), Some(at(7)));
        // All of the document before its end is known.
        let place = order.undated(Some(at(7)), None, Timestamp::MAX);
        assert!(place.changed.is_some_and(|(first, last)| first < last), "{place:?}");
    }
}
