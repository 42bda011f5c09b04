//! A walk through the documents of a Source, with the rules that are the same for every protocol:
//! the order of changes, the recognition of known changes, limits of pages, circles, and the
//! interval that the documents cover.
//!
//! A reader passes on the contents of documents, and a [`Visitor`] processes them: a plan, an
//! audit, or a list for filters.

mod order;
mod prefix;
mod trail;
mod visitor;
mod walked;

pub(crate) use trail::{Cut, Trail};
pub(crate) use visitor::{Category, Visitor};
pub(crate) use walked::Walked;

use super::marks::{IsKnown, Marks, Recent};
use super::position::{Bookmark, Of, Position};
use crate::copy::state_folder::StateFolder;
use crate::plan::judge::LIST_AHEAD_MAX;
use crate::plan::listed::Listed;
use crate::read::ahead::{FUTURE_MAX, resource_of};
use crate::report::clock::now;
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::admit::Admission;
use crate::request::package::download::Downloads;
use crate::request::pieces::Answered;
use crate::request::requests::Requests;
use abreast_store::mirror::{ChangeOrder, Document};
use abreast_webtypes::{Moment, Timestamp};
use order::Order;
use prefix::Prefix;

/// Precision of a server's clock, in microseconds: whole seconds.
const CLOCK_STEP: i64 = 1_000_000;
/// A position that is later than the Source's clock by more than this was reached by a wrong clock, microseconds.
pub(crate) const AHEAD_MAX: i64 = 3_600_000_000;

/// A walk under way.
pub(crate) struct Walk<'w, 'a> {
    pub(crate) requests: &'w Requests<'a>,
    pub(crate) options: &'w SyncOptions,
    to: &'w mut dyn Visitor,
    /// The position that changes are read from.
    position: Position,
    is_conditional: bool,
    /// Whether the walk follows a comparison that was necessary because of a gap.
    follows_gap: bool,
    since: Option<Moment>,
    marks: Marks,
    recent: Recent,
    order: Order,
    prefix: Prefix,
    /// The latest instant that the Source's clock or our own has reached.
    latest: Option<Timestamp>,
    admission: Option<Admission>,
    /// Documents of a snapshot that failed or were read in part.
    incomplete: u64,
    /// The walk before believed that closed documents do not give their end.
    gave_no_end: bool,
    /// The value of `gives_end` after earlier walks.
    gave_end_before: Option<bool>,
    pub(crate) walked: Walked,
}

impl<'w, 'a> Walk<'w, 'a> {
    /// From a position; with `is_conditional` documents that have not changed need not be read.
    pub(crate) fn new(
        (requests, options): (&'w Requests<'a>, &'w SyncOptions),
        position: &Position,
        is_conditional: bool,
        to: &'w mut dyn Visitor,
    ) -> Self {
        Self {
            requests,
            options,
            to,
            since: position.until(),
            marks: marks_of(position),
            recent: Recent::known(position.recent()),
            position: position.clone(),
            is_conditional,
            follows_gap: false,
            order: Order::default(),
            prefix: Prefix::default(),
            latest: None,
            admission: None,
            incomplete: 0,
            gave_no_end: position.gives_end == Some(false),
            gave_end_before: position.gives_end,
            walked: Walked::default(),
        }
    }

    /// Judges hosts by this document.
    pub(crate) fn with_admission(mut self, admission: Option<Admission>) -> Self {
        self.admission = admission;
        self
    }

    /// After a comparison because of a gap.
    pub(crate) const fn after_gap(mut self, follows_gap: bool) -> Self {
        self.follows_gap = follows_gap;
        self
    }

    /// Whether the walk must show that no change is missing between the list of all resources and
    /// the listed changes.
    pub(crate) const fn follows_gap(&self) -> bool {
        self.follows_gap
    }

    /// The position that changes are read from.
    pub(crate) const fn position(&self) -> &Position {
        &self.position
    }

    /// Changes before this are known; `None` if all are wanted.
    pub(crate) const fn since(&self) -> Option<Moment> {
        self.since
    }

    /// The marks of this walk: the last known changes, as far as they were found.
    pub(crate) const fn marks(&self) -> &Marks {
        &self.marks
    }

    /// The known version of a document, if a conditional request is allowed.
    pub(crate) fn known(&self, url: &str) -> Result<Option<Document>, Error> {
        if !self.is_conditional {
            return Ok(None);
        }
        let known = self.to.document(url)?;
        Ok(known.filter(|known| known.etag.is_some() || known.last_modified.is_some()))
    }

    /// The known version of a document, for any purpose.
    pub(crate) fn document(&self, url: &str) -> Result<Option<Document>, Error> {
        self.to.document(url)
    }

    /// Whether documents that have not changed need not be read.
    pub(crate) const fn is_conditional(&self) -> bool {
        self.is_conditional
    }

    /// Whether the walk only tests for a newer snapshot.
    pub(crate) fn is_probe(&self) -> bool {
        self.is_conditional && !self.to.plans()
    }

    /// Whether a document with this URL may be requested.
    pub(crate) fn is_admitted(&self, url: &str) -> bool {
        self.admission.clone().is_some_and(|mut rule| rule.check(url).is_ok())
    }

    /// The rule for hosts of documents to which `document` leads.
    pub(crate) fn admission(&self, document: &str) -> Admission {
        Admission::new(document, &self.options.allow_hosts, self.options.allow_downgrade)
    }

    pub(crate) fn plans(&self) -> bool {
        self.to.plans()
    }

    pub(crate) fn is_new_copy(&self) -> Result<bool, Error> {
        self.to.is_new_copy()
    }

    /// Receives files in the state folder of the copy, or in a temporary folder that exists during
    /// `with`.
    pub(crate) fn with_downloads<T>(
        &mut self,
        with: impl FnOnce(&mut Self, &Downloads) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if let Some(downloads) = self.to.downloads() {
            return with(self, &downloads);
        }
        let folder = tempfile::tempdir().map_err(crate::report::error::no_temporary)?;
        let downloads = Downloads::new(StateFolder::at(folder.path())?);
        with(self, &downloads)
    }

    /// Records the current version of a document, for the next conditional request.
    pub(crate) fn keep_document(&mut self, url: &str, document: &Document) {
        self.walked.documents.push((url.to_owned(), document.clone()));
    }

    pub(crate) fn notice(&mut self, code: &str, url: &str, message: &str) {
        self.to.notice(code, url, message);
    }

    pub(crate) fn fault(&mut self, code: &str, url: &str, message: &str) -> Result<(), Error> {
        self.to.fault(code, url, message)
    }

    /// Records the clock of a responding server, and compares the first response with the position.
    pub(crate) fn clock(&mut self, answered: &Answered) {
        let is_first = self.latest.is_none();
        self.latest = self.latest.max(Some(answered.latest_now()));
        if is_first {
            self.walked.date = answered.stated_date;
            let until = self.position.until().map(|until| until.first().plus_micros(-AHEAD_MAX));
            self.walked.is_ahead = until.is_some_and(|until| self.is_future(until));
        }
    }

    /// Later times are in the future.
    pub(crate) fn latest(&self) -> Timestamp {
        self.latest.map_or_else(now, |latest| latest.max(now()))
    }

    /// Times after this one are so far in the future that they are ignored.
    fn latest_ahead(&self) -> Timestamp {
        self.latest().plus_micros(LIST_AHEAD_MAX)
    }

    /// Whether a time is in the future, both by the server's clock and by our own.
    pub(crate) fn is_future(&self, time: Timestamp) -> bool {
        // Time passes while documents are read.
        self.latest.is_some_and(|latest| time > latest && time > now())
    }

    /// A time of a document that is not in the future; else now, by the server's clock and our own, and it is reported.
    pub(crate) fn not_after(&mut self, url: &str, what: &str, stated: Moment) -> Moment {
        if !self.is_future(stated.first()) {
            return stated;
        }
        let (date, whose) = match self.walked.date {
            Some(date) => (date, "the server's clock"),
            None => (now(), "this machine's clock"),
        };
        let message = format!("`{what}` is {}, but {whose} shows {date}", stated.first());
        self.notice("time.future", url, &message);
        let latest = now().max(date);
        let is_undated = stated.first() > latest.plus_micros(LIST_AHEAD_MAX);
        self.walked.is_undated |= is_undated;
        // Smaller differences of clocks do not matter.
        if !is_undated && stated.first() > latest.plus_micros(AHEAD_MAX) {
            self.walked.early = self.walked.early.max(Some(stated.first()));
        }
        Moment::between(date, latest)
    }

    /// Sorts documents by their intervals, if all have a start time. An index may list the newest
    /// document first, also within an interval of a coarse time. A future time is not evidence of
    /// the order: such documents remain in the order of the index, or follow the order of the
    /// others.
    pub(crate) fn sort_by_span<T>(
        &self,
        documents: &mut [T],
        span: impl Fn(&T) -> (Option<Timestamp>, Option<Timestamp>),
    ) {
        let begins: Vec<_> = documents.iter().map(|one| span(one).0).collect();
        if begins.iter().any(Option::is_none) {
            return;
        }
        let usable = || begins.iter().flatten().filter(|begin| !self.is_future(**begin));
        // A document that ends where another one starts precedes it, even if a clock was wrong.
        let joined = |one: &T, next: &T| span(one).1.is_some() && span(one).1 == span(next).0;
        let pairs = || documents.windows(2);
        let is_back = || {
            pairs().filter(|pair| joined(&pair[1], &pair[0])).count()
                > pairs().filter(|pair| joined(&pair[0], &pair[1])).count()
        };
        let (first, last) = (usable().next(), usable().next_back());
        if first > last || first == last && is_back() {
            documents.reverse();
        }
        if usable().count() == begins.len() {
            documents.sort_by_key(|one| {
                let (begin, end) = span(one);
                (begin, end.unwrap_or(Timestamp::MAX))
            });
        }
    }

    // Snapshots

    /// Starts a snapshot.
    pub(crate) fn begin_snapshot(&mut self, name: &str) -> Result<(), Error> {
        self.to.begin_snapshot(name)
    }

    pub(crate) fn begin_document(&mut self, url: &str) {
        self.to.begin_document(url);
    }

    pub(crate) fn resource(
        &mut self,
        listed: &Listed<'_>,
        as_of: Option<Moment>,
        lines: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.to.resource(listed, as_of, lines)
    }

    /// Records the number of parts in the descriptions of a snapshot.
    pub(crate) fn parts(&mut self, parts: u64) {
        self.walked.parts = Some(self.walked.parts.unwrap_or(0) + parts);
    }

    pub(crate) fn gone(&mut self) {
        self.to.gone();
    }

    pub(crate) fn end_document(&mut self, url: &str) -> Result<(), Error> {
        self.to.end_document(url)
    }

    /// Records the number of entries of a document that were left out.
    pub(crate) fn skipped(&mut self, url: &str, skipped: u64) -> Result<(), Error> {
        if self.to.skipped(url, skipped)? {
            self.incomplete += 1;
            self.walked.left_out = true;
        }
        Ok(())
    }

    /// A document of a snapshot cannot be read.
    pub(crate) fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error> {
        self.incomplete += 1;
        self.to.failed(url, error, named)
    }

    /// Whether every document so far was read and understood.
    pub(crate) const fn is_whole(&self) -> bool {
        self.incomplete == 0
    }

    pub(crate) fn needs_all(&mut self) -> Result<bool, Error> {
        self.to.needs_all()
    }

    pub(crate) fn wanted(&mut self, listed: &Listed<'_>, anew: bool) -> Result<(), Error> {
        self.to.wanted(listed, anew)
    }

    pub(crate) fn left_out(&mut self, categories: &crate::plan::select::OtherCategories) {
        self.to.left_out(categories);
    }

    // Changes

    /// Called at the start of a document of changes; `from` and `until` are the interval in the
    /// document.
    pub(crate) fn begin_changes(&mut self, url: &str, from: Option<Moment>, until: Option<Moment>) {
        let known = self.since.map(Moment::last).max(self.order.written);
        self.order.end = self.order.end.or(self.latest.max(known)).filter(|_| self.order.is_back);
        // A time that the Source has not reached shows no order.
        self.order.begin(from.filter(|from| !self.is_future(from.first())), until);
        if let Some(until) = until {
            self.states_end(until);
        }
        self.prefix = Prefix::of(self.position.bookmark.as_ref().filter(|it| it.document == url));
        self.to.begin_document(url);
    }

    /// The next document may have been missing in earlier walks, although it ends before the
    /// position.
    pub(crate) const fn may_all_be_late(&mut self) {
        self.prefix.is_unnamed = true;
    }

    /// Documents are read from the newest to older ones; `written` is the time at which the Source
    /// wrote this one, by its clock.
    pub(crate) fn reads_back(&mut self, written: Option<Timestamp>) {
        self.order.is_back = true;
        self.order.written = written.filter(|written| *written <= self.latest_ahead());
    }

    /// The documents from here on are later than the previous ones, if times are the same.
    pub(crate) const fn later_document(&mut self) {
        self.order.list += 1;
    }

    /// The documents from here on are earlier.
    pub(crate) const fn earlier_document(&mut self) {
        self.order.list -= 1;
        self.order.last = None;
    }

    /// The documents are read again from here on, with precedence over the previous read.
    pub(crate) fn again(&mut self) -> Result<(), Error> {
        // More documents than anybody reads.
        self.order.list = (self.order.list.div_euclid(1 << 32) + 2) << 32;
        self.order = Order { list: self.order.list, ..Order::default() };
        // The next run places those again that are not among the documents now.
        self.walked.future.clear();
        self.to.again()
    }

    /// Whether a change without categories concerns a selected resource.
    pub(crate) fn category(&mut self, listed: &Listed<'_>) -> Result<Category, Error> {
        self.to.category(listed)
    }

    /// Processes a change. The decision whether the change is known is made here, for every
    /// protocol:
    ///
    /// - Changes before the position are known. If a document was read up to an entry and has more
    ///   entries now, these may be changes that were published late; so may changes among the
    ///   newest known ones.
    /// - Among changes with the time of the position, changes that were read are known, and all
    ///   others are new.
    /// - A future time by the Source's clock is not evidence of the order.
    pub(crate) fn change(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
        self.walked.entries += 1;
        if self.walked.entries.is_multiple_of(1_024) {
            self.requests.check_cancelled()?;
        }
        let fingerprint = listed.fingerprint();
        let is_after_prefix = self.prefix.add(fingerprint);
        let since = self.since;
        let is_old =
            self.order.until.zip(since).is_some_and(|(until, since)| until.is_before(since));
        let Some(time) = listed.changed else {
            self.marks.ahead.compare(listed, None, true);
            let order = self.order.undated(since, None, self.latest_ahead());
            return if is_old {
                self.to.known_change(listed)
            } else {
                self.hand_over(listed, order)
            };
        };
        self.walked.dated += 1;
        if self.is_future(time.first()) {
            self.walked.first_future.get_or_insert(time.first());
            self.states_end(time);
            self.marks.supersede(listed);
            if self.walked.future.len() < FUTURE_MAX {
                let width = time.last().as_micros() - time.first().as_micros();
                self.walked.future.push((fingerprint, width));
            }
            let order = self.order.undated(since, Some(time), self.latest_ahead());
            self.marks.ahead.compare(listed, Some(time), !self.position.has_read(fingerprint));
            self.marks.ahead.note(listed, time, order.time);
            return if is_old {
                self.known_change(listed, order)
            } else if self.was_future(fingerprint) {
                self.to.change(listed, ChangeOrder { is_known: true, is_new: true, ..order })
            } else {
                self.hand_over(listed, order)
            };
        }
        let mut order = self.order.of(Some(time));
        let newest = self.walked.newest;
        if newest.is_none_or(|newest| (newest.first(), newest.last()) < (time.first(), time.last()))
        {
            self.walked.newest = Some(time);
        }
        self.walked.oldest = self.walked.oldest.into_iter().chain([time.first()]).min();
        let is_known = self.marks.note(time, listed, fingerprint);
        let is_new_among_known = self.recent.note(time, fingerprint);
        self.marks.ahead.compare(listed, Some(time), is_new_among_known);
        if let Some(since) = since {
            if time.is_before(since) {
                self.prefix.has_old = true;
                let is_in_snapshot = self.position.snapshot().is_some_and(|at| time.last() < at);
                // If a document is known up to an entry, its place relative to that entry decides.
                let is_late = match self.prefix.known {
                    Some(_) => is_after_prefix,
                    None => {
                        is_new_among_known
                            || self.prefix.is_unnamed && !self.recent.is_known(time, fingerprint)
                    }
                };
                if is_late && !is_in_snapshot {
                    self.note_late(time.first());
                } else {
                    // A future change that was read before its time is known.
                    let is_late = is_late && !self.position.has_read(fingerprint);
                    self.compare_with_list(listed, time, is_late)?;
                }
                return self.known_change(listed, order);
            }
            // An entry after the known entries is new, even if it is equal to a known one. Within a
            // second of a coarse clock there may be several indistinguishable changes, which are
            // all passed on, since the last one is applied. Changes that were pushed meanwhile are
            // known although they are after the known entries.
            let is_added = is_after_prefix
                && self.prefix.is_same == Some(true)
                && self.position.of() != Of::Pushed;
            let may_repeat = time.last() >= time.first().plus_micros(CLOCK_STEP - 1);
            // Changes that are read again from an earlier time on count together.
            if is_known == IsKnown::Yes && !is_added && !may_repeat && !since.is_before(time) {
                return self.known_change(listed, order);
            }
            // A future change that was read before its time is known.
            if time.is_exact() && self.was_future(fingerprint) {
                return self
                    .to
                    .change(listed, ChangeOrder { is_known: true, is_new: true, ..order });
            }
            self.walked.is_around |= !time.is_exact() && !since.is_before(time);
            let is_of_known_time = self.marks.are_any() && time.first() <= since.last();
            order.is_new = is_of_known_time && is_known != IsKnown::Unclear || is_new_among_known;
        }
        self.hand_over(listed, order)
    }

    /// A change that is known. It may have followed one without a usable time, or one whose time is around that of the position,
    /// or a list leaves it open which of the two is later.
    fn known_change(&mut self, listed: &Listed<'_>, order: ChangeOrder) -> Result<(), Error> {
        self.to.known_change(listed)?;
        // An audit instead compares with the properties in the list.
        let is_new = self.to.is_open(listed.uri);
        let may_follow = is_new || self.walked.first_future.is_some() || self.walked.is_around;
        if !may_follow || !self.to.plans() {
            return Ok(());
        }
        self.to.change(listed, ChangeOrder { is_known: true, is_new, ..order })
    }

    /// Whether a change was read when its time was in the future, unless changes are read again
    /// from an earlier time on. A document that starts after the position does not contain changes
    /// that were read.
    fn was_future(&self, fingerprint: u64) -> bool {
        let is_after = |since: Moment| {
            self.marks.newest_known().is_some_and(|known| since.last() < known)
                || self.order.from.is_some_and(|from| since.is_before(from))
        };
        self.position.is_future(fingerprint) && !self.since.is_some_and(is_after)
    }

    fn hand_over(&mut self, listed: &Listed<'_>, order: ChangeOrder) -> Result<(), Error> {
        self.walked.new += 1;
        self.to.change(listed, order)
    }

    /// A document of changes was read to its end. One that was rewritten may have changes of any time in its span.
    pub(crate) fn end_changes(&mut self) {
        if self.prefix.was_rewritten() {
            let from = self.order.from.map_or(Timestamp::MIN, Moment::first);
            let late = from.max(self.position.snapshot().unwrap_or(Timestamp::MIN));
            self.note_late(late);
        }
    }

    /// Compares a late change with a list of all resources with a later time, which has precedence.
    /// If the change was published after the list, and the list lacks it, one is wrong. If a
    /// resource has several changes, the last one is used.
    fn compare_with_list(
        &mut self,
        listed: &Listed<'_>,
        time: Moment,
        is_late: bool,
    ) -> Result<(), Error> {
        if !is_late && self.walked.late_for_list.is_empty() {
            return Ok(());
        }
        let (resource, count) = (resource_of(listed), self.walked.late_for_list.len());
        let is_wanted = match self.walked.late_for_list.get(&resource) {
            Some((before, _)) => *before <= time.first(),
            None => is_late && count < FUTURE_MAX,
        };
        if is_wanted {
            let differs = self.to.differs(listed, time)?;
            self.walked.late_for_list.insert(resource, (time.first(), differs));
        }
        Ok(())
    }

    fn note_late(&mut self, time: Timestamp) {
        self.walked.late = self.walked.late.into_iter().chain([time]).min();
    }

    /// Whether the last document of changes starts with the entries that an earlier run has read.
    pub(crate) fn has_same_begin(&self) -> bool {
        self.prefix.is_same == Some(true)
    }

    /// The bookmark for the last document of changes, which will grow: the next walk requests it
    /// first.
    pub(crate) fn bookmark_of(&self, url: &str) -> Bookmark {
        self.prefix.bookmark(url)
    }

    /// Starts the walk again with all changes, in another order; previous results are discarded.
    pub(crate) fn restart(&mut self) -> Result<(), Error> {
        self.again()?;
        let Walked { is_ahead, date, documents, .. } = std::mem::take(&mut self.walked);
        self.walked = Walked { is_ahead, date, documents, ..Walked::default() };
        self.marks = marks_of(&self.position);
        self.recent = Recent::known(self.position.recent());
        self.to.forget()
    }

    /// All changes since then were read.
    pub(crate) fn reaches_back_to(&mut self, from: Moment) {
        let earliest = self.walked.from;
        if earliest.is_none_or(|earliest| from.first() < earliest.first()) {
            self.walked.from = Some(from);
        }
    }

    /// A closed document gives its end; known also if the documents are read again.
    pub(crate) const fn gave_end(&mut self) {
        self.position.gives_end = Some(true);
    }

    /// Records whether closed documents contain their end time, and whether a document lacks it. If
    /// no document contains an end time, the next run accepts the document; if none was read
    /// before, `is_usual` decides. If the document is only `odd`, the results of this walk do not
    /// count, so that the next run accepts the document in any case.
    pub(crate) fn lacks_end(&mut self, gives: bool, lacks: bool, (is_odd, is_usual): (bool, bool)) {
        let gave = if is_odd { self.gave_end_before } else { self.position.gives_end };
        self.walked.is_unstable |= lacks && (gives || gave.unwrap_or(is_usual));
        if gives && self.gave_no_end {
            // The documents without an end time came from a cache, so any change since the list of
            // all resources may be missing.
            self.note_late(self.position.snapshot().unwrap_or(Timestamp::MIN));
        }
        self.walked.gives_end = if gives || lacks { Some(gives) } else { gave };
    }

    /// All changes until this time were read, even if none has this time.
    pub(crate) fn covers_until(&mut self, until: Moment) {
        let newest = self.walked.newest;
        if newest.is_none_or(|newest| newest.first() < until.first()) {
            self.walked.newest = Some(until);
        }
    }

    /// The documents contain all changes up to this time, so the Source's clock has reached it,
    /// regardless of our clock.
    pub(crate) fn states_end(&mut self, until: Moment) {
        let stated = Some(until.first()).filter(|stated| *stated <= self.latest_ahead());
        self.walked.stated = self.walked.stated.max(stated);
    }

    /// The walk cannot continue.
    pub(crate) fn cut(&mut self, cut: Cut) {
        self.walked.cut.get_or_insert(cut);
    }

    /// An entry that no change can be made of.
    pub(crate) fn unusable(&mut self, what: impl FnOnce() -> String) {
        self.walked.unusable += 1;
        self.walked.first_unusable.get_or_insert_with(what);
    }

    /// Moves the position no further than this.
    pub(crate) fn limit_to(&mut self, at: Timestamp) {
        self.walked.limit = self.walked.limit.into_iter().chain([at]).min();
    }

    /// The result of the walk, and the changes by which the next walk recognises its place.
    pub(crate) fn finish(mut self) -> (Walked, Marks) {
        self.walked.recent = self.recent.into_newest();
        (self.walked, self.marks)
    }
}

/// The changes that a copy knows.
fn marks_of(position: &Position) -> Marks {
    Marks::known(position.marks(), position.glimpsed()).with_ahead(position.ahead())
}
