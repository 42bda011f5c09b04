//! The comparison of a snapshot with what is kept: one pass over both, in constant memory.
//!
//! The list and the state are read in parallel, in the order of URIs. Resources out of that order
//! are looked up one by one. Kept resources that were passed are noted, and taken out again when a
//! later list names them after all.

use crate::admit::Admission;
use crate::common_base::CommonBase;
use crate::error::{Error, ExitCode};
use crate::events::Mode;
use crate::options::MaxDelete;
use crate::plan::listed::Listed;
use crate::plan::planner::{PlanContext, Planner};
use crate::probe::FileSystem;
use crate::state::key;
use abreast_store::mirror::{Mirror, Pending, PendingAction, Row};
use abreast_webtypes::{Digests, Timestamp};
use std::collections::VecDeque;

/// Rows of the state read at a time.
const ROWS: usize = 512;
/// Times a snapshot that changes while it is read is read again.
const READS_MAX: usize = 3;

/// The result of a comparison with a complete list.
#[derive(Debug, Default)]
pub(crate) struct Baseline {
    /// Every list answered that it has not changed.
    pub(crate) unchanged: bool,
    /// All lists were read, so what they do not name is gone.
    pub(crate) whole: bool,
    /// The instant from which changes are to be replayed.
    pub(crate) at: Option<Timestamp>,
}

impl PlanContext<'_, '_> {
    /// Plans what makes the copy equal to a snapshot, which `read` reads into a [`Comparison`];
    /// `None` from it means that the snapshot changed meanwhile.
    pub(crate) fn plan_snapshot(
        &mut self,
        name: &str,
        read: &mut dyn FnMut(&mut Self) -> Result<Option<Baseline>, Error>,
    ) -> Result<Baseline, Error> {
        self.report.summary.mode = Mode::Baseline;
        crate::damage::check_kept(self)?;
        for _ in 0..READS_MAX {
            self.planner.begin(self.report)?;
            let compared = read(self);
            self.requests.diagnostics.report(self.report);
            match compared {
                Ok(Some(baseline)) => {
                    self.planner.commit()?;
                    self.planner.mirror.clear_scratch()?;
                    return Ok(baseline);
                }
                Ok(None) => self.planner.abandon(self.report)?,
                Err(error) => {
                    self.planner.abandon(self.report)?;
                    return Err(error);
                }
            }
        }
        let message = format!("{name} changed each time it was read");
        Err(Error::new("list.unstable", ExitCode::Retryable, message)
            .with_help("try again when the Source is quiet"))
    }

    /// Begins to compare with the snapshot of that name.
    pub(crate) fn begin_comparison(&mut self, name: &str) -> Result<Comparison, Error> {
        self.planner.mirror.clear_scratch()?;
        let stale = self.planner.mirror.mark_stale()? > 0;
        Comparison::new(name, self.planner, stale)
    }

    /// Ends a comparison: what no list named is to go, if all of them were read. The reader keeps
    /// how far it has read.
    pub(crate) fn conclude(
        &mut self,
        list: &str,
        comparison: &mut Comparison,
        whole: bool,
    ) -> Result<(), Error> {
        comparison.finish(self.planner.mirror)?;
        let (entries, base) = (comparison.entries, comparison.base.of_most(list));
        if whole
            && entries == 0
            && self.planner.mirror.count_rows()? > 0
            && self.planner.options.max_delete == MaxDelete::Default
        {
            let message = format!("{list} lists nothing, and there are resources kept from it");
            return Err(Error::new("list.empty", ExitCode::SourceInvalid, message)
                .with_help("nothing was deleted; if the Source really is empty, run once with `--max-delete 100%`"));
        }
        if whole {
            self.planner.selection.spare_unseen(self.planner.mirror)?;
            self.planner.mirror.plan_unseen()?;
            self.planner.mirror.forget_stale()?;
        }
        if self.planner.mirror.meta(key::BASE)?.is_none()
            && let Some(base) = base
        {
            self.planner.mirror.set_meta(key::COMMON, Some(&base))?;
        }
        if whole {
            if !comparison.has_wanted {
                self.planner.selection.report_nothing(list, entries, self.report);
            }
            self.planner.selection.keep(self.planner.mirror)?;
        }
        Ok(self.planner.mirror.forget_documents()?)
    }

    /// A document that names only resources on other hosts is of another Source: it does not
    /// describe this copy.
    pub(crate) fn refuse_elsewhere(&self, url: &str, comparison: &Comparison) -> Result<(), Error> {
        if !comparison.wanted || comparison.admitted || self.planner.mirror.count_rows()? == 0 {
            return Ok(());
        }
        let message = format!("{url} names only resources of other hosts or schemes");
        Err(Error::new("list.elsewhere", ExitCode::SourceInvalid, message).with_help(
            "nothing was deleted; if they are meant, see `--allow-host` and `--allow-downgrade`",
        ))
    }

    /// A document may not speak for a time that its own server has not reached.
    pub(crate) fn not_after(
        &mut self,
        url: &str,
        what: &str,
        stated: Timestamp,
        date: Option<Timestamp>,
    ) -> Timestamp {
        match date {
            Some(date) if is_future(stated, Some(date)) => {
                self.report.notice(
                    "time.future",
                    url,
                    &format!("`{what}` is {stated}, but the server's clock shows {date}"),
                );
                date
            }
            _ => stated,
        }
    }
}

/// Whether a document speaks for a time that its own server has not reached. Its clock is stated in
/// whole seconds.
pub(crate) fn is_future(stated: Timestamp, date: Option<Timestamp>) -> bool {
    date.is_some_and(|date| stated > date.plus_micros(1_000_000))
}

/// One comparison under way.
pub(crate) struct Comparison {
    admission: Admission,
    rows: VecDeque<Row>,
    key: String,
    exhausted: bool,
    /// All rows were passed: resources that are named later are looked up.
    is_finished: bool,
    last: String,
    stale: bool,
    pub(crate) entries: u64,
    /// Of all admitted URIs, while the base is not known.
    base: CommonBase,
    wants_base: bool,
    /// Whether the document that is read names anything that is wanted, and any of that may be
    /// asked for.
    wanted: bool,
    admitted: bool,
    /// Whether any document names anything that is wanted.
    has_wanted: bool,
    listed: Pending,
    /// The file system of a copy in a folder, which may round times.
    system: Option<FileSystem>,
}

impl Comparison {
    fn new(list: &str, planner: &Planner<'_>, stale: bool) -> Result<Self, Error> {
        let system =
            planner.mirror.meta(key::FILE_SYSTEM)?.filter(|_| planner.options.sink.is_folder());
        Ok(Self {
            admission: Admission::new(
                list,
                &planner.options.allow_hosts,
                planner.options.allow_downgrade,
            ),
            rows: VecDeque::new(),
            key: String::new(),
            exhausted: false,
            is_finished: false,
            last: String::new(),
            stale,
            entries: 0,
            base: CommonBase::default(),
            wants_base: planner.sink.is_none(),
            wanted: false,
            admitted: false,
            has_wanted: false,
            listed: Pending::default(),
            system: system.as_deref().and_then(FileSystem::from_text),
        })
    }

    /// Before the entries of a document.
    pub(crate) fn begin_document(&mut self) {
        (self.wanted, self.admitted) = (false, false);
    }

    /// Whether the resource is available: no host is asked for bytes that came with the list.
    fn admits(&mut self, listed: &Listed<'_>) -> bool {
        listed.body.is_some() || self.admission.check(listed.href()).is_ok()
    }

    /// Compares a listed resource; whether its bytes are wanted.
    pub(crate) fn entry(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        listed: &Listed<'_>,
    ) -> Result<bool, Error> {
        self.entries += 1;
        let mirror = run.planner.mirror;
        let planner = &mut *run.planner;
        let uri = listed.uri;
        if self.wants_base && self.admits(listed) {
            self.base.note(uri);
        }
        let row = self.matching(mirror, uri)?;
        if !planner.selection.wants(mirror, run.report, listed, row.is_some())? {
            if self.stale {
                mirror.forget_pending(uri)?;
            }
            return Ok(false);
        }
        (self.wanted, self.has_wanted) = (true, true);
        self.admitted = self.admitted || self.admits(listed);
        planner.history.note(listed);
        listed.pending_into(&mut self.listed);
        let due = compare(&self.listed, listed.digests, row.as_ref()).or_else(|| {
            // A file that was only touched here gets its time back.
            let (system, row, modified) = (self.system?, row.as_ref()?, self.listed.modified?);
            let has_time = system.has_time(modified, row.file_mtime);
            (!has_time).then_some(PendingAction::Touch)
        });
        match due {
            None => {
                run.report.summary.unchanged += 1;
                mirror.set_access(uri, self.listed.access.as_deref())?;
                if self.stale {
                    mirror.forget_pending(uri)?;
                }
            }
            Some(action) => {
                self.listed.action = action;
                mirror.put_pending(&self.listed)?;
                if !listed.links.is_empty() {
                    planner.alternates.note(listed);
                }
            }
        }
        Ok(due == Some(PendingAction::Fetch))
    }

    /// The row of a URI, passing those before it.
    fn matching(&mut self, mirror: &Mirror, uri: &str) -> Result<Option<Row>, Error> {
        if self.is_finished || uri <= self.last.as_str() {
            let row = mirror.row(uri)?;
            if row.is_some() {
                mirror.take_unseen(uri)?;
            }
            return Ok(row);
        }
        uri.clone_into(&mut self.last);
        while let Some(front) = self.front(mirror)? {
            if front.uri.as_str() > uri {
                return Ok(None);
            }
            let Some(row) = self.rows.pop_front() else { break };
            if row.uri == uri {
                return Ok(Some(row));
            }
            mirror.add_unseen(&row.uri)?;
        }
        Ok(None)
    }

    fn front(&mut self, mirror: &Mirror) -> Result<Option<&Row>, Error> {
        if self.rows.is_empty() && !self.exhausted {
            let mut read = Vec::with_capacity(ROWS);
            mirror.rows_after(&self.key, ROWS, &mut read)?;
            self.exhausted = read.len() < ROWS;
            if let Some(last) = read.last() {
                self.key.clone_from(&last.uri);
            }
            self.rows = read.into();
        }
        Ok(self.rows.front())
    }

    /// Counts a resource that is listed as deleted. What no list has is deleted anyway.
    pub(crate) const fn deleted(&mut self) {
        self.entries += 1;
    }

    /// Notes the kept resources that were not named so far.
    pub(crate) fn finish(&mut self, mirror: &Mirror) -> Result<(), Error> {
        self.is_finished = true;
        while self.front(mirror)?.is_some() {
            while let Some(row) = self.rows.pop_front() {
                mirror.add_unseen(&row.uri)?;
            }
        }
        Ok(())
    }
}

/// Whether the version kept is the one of a listed time: by its own time, or by that of the change that
/// brought it, whatever its server states as `Last-Modified`.
pub(crate) fn is_version_of(modified: Option<i64>, row: &Row) -> bool {
    modified.is_some() && (modified == row.modified || modified == row.changed)
}

/// The action for a listed resource, given the row that is kept; `None` when it is up to date.
pub(crate) fn compare(
    listed: &Pending,
    digests: &Digests,
    row: Option<&Row>,
) -> Option<PendingAction> {
    let Some(row) = row else { return Some(PendingAction::Fetch) };
    if listed.length.is_some_and(|length| length != row.length) {
        return Some(PendingAction::Fetch);
    }
    let mut kept = Digests::default();
    kept.set_from_bytes(&row.digests);
    let same_time = listed.modified == row.modified;
    match digests.agree(&kept) {
        Some(true) if same_time || listed.modified.is_none() => None,
        Some(true) => Some(PendingAction::Touch),
        // Without a digest to compare, length and time have to do; without a time only the server
        // knows.
        None if is_version_of(listed.modified, row) => None,
        Some(false) | None => Some(PendingAction::Fetch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digests(text: &str) -> Digests {
        let mut digests = Digests::default();
        digests.parse_into(text.as_bytes()).unwrap();
        digests
    }

    #[test]
    fn what_agrees_is_left_alone() {
        let hello = digests("md5:5d41402abc4b2a76b9719d911017c592");
        let other = digests("md5:00000000000000000000000000000000");
        let sha =
            digests("sha-256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
        let none = Digests::default();
        let row = Row { length: 5, modified: Some(7), digests: hello.to_bytes(), ..Row::default() };
        let listed = |length, modified| Pending { length, modified, ..Pending::default() };
        let compare = |length, modified, digests: &Digests| {
            compare(&listed(length, modified), digests, Some(&row))
        };
        assert_eq!(compare(Some(5), Some(7), &hello), None);
        assert_eq!(compare(None, None, &hello), None);
        assert_eq!(compare(None, Some(8), &hello), Some(PendingAction::Touch));
        assert_eq!(compare(None, Some(7), &other), Some(PendingAction::Fetch));
        assert_eq!(compare(Some(6), Some(7), &hello), Some(PendingAction::Fetch));
        assert_eq!(compare(Some(5), Some(7), &sha), None);
        assert_eq!(compare(Some(5), Some(8), &sha), Some(PendingAction::Fetch));
        assert_eq!(compare(Some(5), None, &none), Some(PendingAction::Fetch));
        let row = Row { changed: Some(9), ..row.clone() };
        let compare = |modified| super::compare(&listed(Some(5), modified), &none, Some(&row));
        assert_eq!(compare(Some(9)), None);
        assert_eq!(compare(Some(8)), Some(PendingAction::Fetch));
    }
}
