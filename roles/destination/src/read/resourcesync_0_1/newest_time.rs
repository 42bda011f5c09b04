//! The newest time in a document.

use crate::read::sitemap::document::at_earliest;
use crate::request::diagnostics::{Diagnostics, Remark};
use crate::request::pieces::Answered;
use abreast_webtypes::Timestamp;

/// The newest time in a Sitemap or dump that has passed by some clock; future times are ignored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewestTime {
    date: Timestamp,
    latest: Timestamp,
    newest: Option<Timestamp>,
    /// Times in the future.
    future: u64,
}

impl NewestTime {
    pub(super) fn of(answered: &Answered) -> Self {
        Self { date: answered.date, latest: answered.latest_now(), ..Self::default() }
    }

    /// Adds the time of an entry.
    pub(super) fn add(&mut self, time: Option<Timestamp>) {
        if time.is_some_and(|time| time > self.latest) {
            self.future += 1;
        } else {
            self.newest = self.newest.max(time);
        }
    }

    /// The newest time, as early as possible; reports future times.
    pub(super) fn end(
        self,
        diagnostics: &Diagnostics,
        url: &str,
        zoneless: bool,
    ) -> Option<Timestamp> {
        if self.future > 0 && !zoneless {
            let message = format!(
                "a time of a resource is in the future: the server's clock shows {}",
                self.date
            );
            let remark = Remark { code: "time.future", line: 1, message, count: self.future };
            diagnostics.note(url, remark);
        }
        self.newest.map(|newest| at_earliest(zoneless, newest))
    }
}
