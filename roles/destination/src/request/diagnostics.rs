//! Diagnostics of reading: tolerated faults in documents, and the speed of the Source.

use crate::report::options::Tolerance;
use crate::report::reporter::Reporter;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::rc::Rc;
use std::time::Duration;

/// Maximum number of documents for which a run reports the same code, since a program makes the
/// same fault in each document.
const DOCUMENTS_MAX: usize = 10;
/// Length from which a document is a measure of speed.
const PACE_BYTES: u64 = 64 << 10;

/// The tolerance for faults in documents, and the observed faults. Clones share the observations.
#[derive(Clone, Default)]
pub(crate) struct Diagnostics {
    pub(crate) tolerance: Tolerance,
    noticed: Rc<RefCell<Noticed>>,
    pace: Rc<Cell<Pace>>,
}

#[derive(Default)]
struct Noticed {
    /// Reported or to be reported: document and code.
    seen: HashSet<(String, &'static str)>,
    waiting: Vec<(String, Remark)>,
}

/// A violation of the specification in a document.
#[derive(Clone, Debug)]
pub(crate) struct Remark {
    /// A stable code such as `rs.zone`.
    pub(crate) code: &'static str,
    /// The line of the first occurrence; 0 if the fault does not belong to a line.
    pub(crate) line: u64,
    /// The first occurrence.
    pub(crate) message: String,
    /// Number of occurrences in the document.
    pub(crate) count: u64,
}

impl Diagnostics {
    pub(crate) fn new(tolerance: Tolerance) -> Self {
        Self { tolerance, ..Self::default() }
    }

    /// Records a remark about a document, once for each document and code.
    pub(crate) fn note(&self, url: &str, remark: Remark) {
        self.note_in(url, remark, DOCUMENTS_MAX);
    }

    /// Records a remark about the form of all documents of a Source, for the first document only.
    pub(crate) fn note_form(&self, url: &str, remark: Remark) {
        self.note_in(url, remark, 1);
    }

    fn note_in(&self, url: &str, mut remark: Remark, documents: usize) {
        let mut noticed = self.noticed.borrow_mut();
        let known = noticed.seen.iter().filter(|(_, code)| *code == remark.code).count();
        if known >= documents || !noticed.seen.insert((url.to_owned(), remark.code)) {
            return;
        }
        if known + 1 == documents {
            remark.message.push_str("; further documents with this are not listed");
        }
        noticed.waiting.push((url.to_owned(), remark));
    }

    /// Removes the remarks about a document that is read again, since it may be another version.
    pub(crate) fn forget(&self, url: &str) {
        let mut noticed = self.noticed.borrow_mut();
        noticed.seen.retain(|(of, _)| of != url);
        noticed.waiting.retain(|(of, _)| of != url);
    }

    /// Reports the remarks that were recorded since the last call.
    pub(crate) fn report(&self, report: &mut Reporter<'_>) {
        self.each(&mut |code, url, message| report.notice(code, url, message));
    }

    /// Passes code, document and message of each remark since the last call to `to`.
    pub(crate) fn each(&self, to: &mut dyn FnMut(&'static str, &str, &str)) {
        for (url, remark) in std::mem::take(&mut self.noticed.borrow_mut().waiting) {
            let more = match remark.count {
                0 | 1 => String::new(),
                count => format!(" (and {} more)", count - 1),
            };
            let place = match remark.line {
                0 => String::new(),
                line => format!("line {line}: "),
            };
            to(remark.code, &url, &format!("{place}{}{more}", remark.message));
        }
    }

    pub(crate) fn keep_pace(&self, pace: Pace) {
        self.pace.set(self.pace.get().with(pace));
    }

    /// The speed of the Source, as far as it was measured.
    pub(crate) fn pace(&self) -> Pace {
        self.pace.get()
    }
}

/// The measured speed of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// Time from the request to the head of the response; the shortest one observed.
    pub(crate) round_trip: Option<Duration>,
    /// Length of the longest body so far, in bytes.
    bytes: u64,
    /// Time spent waiting for these bytes, without the time for processing.
    waited: Duration,
}

impl Pace {
    /// The measurement for the head of a response.
    pub(crate) fn of_head(round_trip: Duration) -> Self {
        Self { round_trip: Some(round_trip), ..Self::default() }
    }

    pub(crate) fn add(&mut self, bytes: usize, waited: Duration) {
        self.bytes += bytes as u64;
        self.waited += waited;
    }

    fn with(self, other: Self) -> Self {
        let longest = if other.bytes > self.bytes { other } else { self };
        let round_trip = match (self.round_trip, other.round_trip) {
            (Some(one), Some(two)) => Some(one.min(two)),
            (one, two) => one.or(two),
        };
        Self { round_trip, ..longest }
    }

    /// Bytes a second; `None` when nothing long enough was read.
    pub(crate) fn bytes_per_second(self) -> Option<f64> {
        (self.bytes >= PACE_BYTES && !self.waited.is_zero())
            .then(|| self.bytes as f64 / self.waited.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_of_every_document_is_reported_for_some() {
        let diagnostics = Diagnostics::default();
        for code in ["rs.no-at", "rs.zone"] {
            for number in 0..100 {
                let message = "a fault".to_owned();
                diagnostics
                    .note(&format!("/{number}"), Remark { code, line: 0, message, count: 1 });
            }
        }
        let noticed = diagnostics.noticed.borrow();
        assert_eq!(noticed.waiting.len(), 2 * DOCUMENTS_MAX);
        assert!(noticed.waiting[DOCUMENTS_MAX - 1].1.message.contains("not listed"));
    }

    #[test]
    fn a_form_of_all_documents_is_reported_once() {
        let diagnostics = Diagnostics::default();
        for number in 0..100 {
            let message = "small letters".to_owned();
            let remark = Remark { code: "emm.type-case", line: 0, message, count: 1 };
            diagnostics.note_form(&format!("/{number}"), remark);
        }
        let noticed = diagnostics.noticed.borrow();
        assert_eq!(noticed.waiting.len(), 1);
        assert_eq!(noticed.waiting[0].0, "/0");
        assert!(noticed.waiting[0].1.message.contains("not listed"));
    }

    #[test]
    fn the_shortest_round_trip_and_the_longest_document_count() {
        let short = Pace {
            round_trip: Some(Duration::from_millis(2)),
            bytes: 1_000,
            waited: Duration::from_secs(1),
        };
        let long = Pace {
            round_trip: Some(Duration::from_millis(9)),
            bytes: 1_000_000,
            waited: Duration::from_millis(500),
        };
        let pace = Pace::default().with(long).with(short);
        assert_eq!(pace.round_trip, Some(Duration::from_millis(2)));
        assert_eq!(pace.bytes_per_second(), Some(2_000_000.0));
        assert_eq!(short.bytes_per_second(), None);
    }
}
