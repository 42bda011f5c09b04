//! The intervals of documents with changes, and gaps between these intervals.

use crate::read::walk::Walk;
use abreast_webtypes::Moment;

/// The end times in documents of changes, compared with the end times in their index. A document
/// with an earlier end comes from a cache.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// A document contains its end time.
    gives: bool,
    /// A document does not contain its end time, but the index does.
    lacks: bool,
    /// A document ends before the time in the index.
    is_older: bool,
    /// Number of documents without an end time in the document, regardless of the index.
    open: usize,
    /// All documents end before the dump that lists them, and lack changes that were read before.
    pub(super) are_short: bool,
}

impl Ends {
    /// Adds a document.
    pub(super) fn note(&mut self, stated: Option<Moment>, own: Option<Moment>) {
        self.gives |= own.is_some();
        self.lacks |= stated.is_some() && own.is_none();
        self.is_older |= stated.zip(own).is_some_and(|(stated, own)| own.is_before(stated));
    }

    /// Takes a document into account that has changes itself.
    pub(super) fn read(&mut self, stated: Option<Moment>, own: Option<Moment>) {
        self.note(stated, own);
        self.open += usize::from(own.is_none());
    }

    /// Whether several documents lack an end time: some are parallel, or older than the others.
    pub(super) const fn are_several_open(&self) -> bool {
        self.open > 1
    }

    /// Requests another walk if documents are too old. `is_usual`: closed documents usually contain
    /// their end time.
    pub(super) fn judge(&self, walk: &mut Walk<'_, '_>, is_usual: bool) {
        walk.walked.is_unstable |= self.is_older;
        // Only the last of several documents can be open, unless they are parallel.
        let several_open = self.are_several_open();
        let are_odd = self.are_short || several_open;
        let is_expected = is_usual && self.lacks;
        let is_new = self.are_short || several_open && self.gives;
        // If other documents contain their end times, a document whose end time is only in the
        // index comes from a cache, even if other documents are open.
        let gives = self.gives && (self.lacks || !are_odd);
        walk.lacks_end(gives, self.lacks || are_odd, (several_open, is_expected || is_new));
    }
}

/// A Change List, or a package of a Change Dump, with the interval in the document, or else in its
/// index.
pub(super) struct Span<'s> {
    pub(super) url: &'s str,
    pub(super) from: Moment,
    /// `None` if the document is open: it contains all changes up to now.
    pub(super) until: Option<Moment>,
}

/// Between which two documents changes after a position are in neither.
pub(super) fn hole(mut spans: Vec<Span<'_>>, since: Option<Moment>) -> Option<String> {
    let since = since?;
    spans.sort_by_key(|span| (span.from.first(), span.url));
    // Consecutive days leave no gap between them, unless several documents have the same day.
    let are_joined = spans.windows(2).any(|pair| pair[0].until == Some(pair[1].from));
    let between = i64::from(!are_joined);
    let mut end: Option<(Moment, &str)> = None;
    for Span { url, from, until } in spans {
        if let Some((before, name)) = end
            && before.last().plus_micros(between) < from.first()
            && since.is_before(from)
        {
            let (before, from) = (before.first(), from.first());
            return Some(format!(
                "no document has the changes between {before}, the end of {name}, and {from}, the begin of {url}"
            ));
        }
        let until = until?;
        if end.is_none_or(|end| end.0.last() < until.last()) {
            end = Some((until, url));
        }
    }
    None
}

/// The gap that results from an index or a dump that is older than the first document in it.
pub(super) fn older_index(from: Moment) -> String {
    format!(
        "what names the documents of changes is older than they are, and they begin at {}",
        from.first()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_webtypes::Timestamp;

    const DAY: i64 = 86_400_000_000;

    fn day(number: i64) -> Moment {
        let begin = Timestamp::from_micros(number * DAY);
        Moment::between(begin, begin.plus_micros(DAY - 1))
    }

    fn hole_of(spans: &[(i64, Option<i64>)], since: i64) -> bool {
        let span = |&(from, until): &(i64, Option<i64>)| Span {
            url: "http://a.example/c",
            from: day(from),
            until: until.map(day),
        };
        hole(spans.iter().map(span).collect(), Some(day(since))).is_some()
    }

    #[test]
    fn spans_leave_a_hole_only_where_none_has_the_changes() {
        let (joined, apart) = ([(1, Some(3)), (4, None)], [(5, None), (1, Some(3))]);
        assert!(!hole_of(&joined, 0), "days that follow each other");
        assert!(hole_of(&[(0, Some(1)), (1, Some(3)), (4, None)], 0), "unless others repeat them");
        assert!(hole_of(&apart, 0), "in any order");
        assert!(!hole_of(&apart, 5), "before the position");
        assert!(!hole_of(&[(1, Some(6)), (2, Some(3)), (5, None)], 0), "one inside another");
        assert!(!hole_of(&[(1, None), (5, None)], 0), "one that is open");
    }
}
