//! The comparison of a snapshot with the copy: one pass over both, in constant memory.
//!
//! The list and the database are read in parallel, ordered by URI. Resources that are not in order
//! are looked up individually. Stored resources that the pass has skipped are recorded as not
//! listed, and removed from this record if a later list contains them.

use crate::copy::common_base::CommonBase;
use crate::copy::key;
use crate::copy::probe::FileSystem;
use crate::plan::judge::{AsOf, Stated, Verdict, judge};
use crate::plan::left::Left;
use crate::plan::listed::Listed;
use crate::plan::open::Open;
use crate::plan::planner::{PlanContext, Planner};
use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::report::options::MaxDelete;
use crate::request::admit::Admission;
use crate::request::diagnostics::Remark;
use crate::request::requests::Requests;
use abreast_store::mirror::{Mirror, Pending, PendingAction, Row};
use abreast_webtypes::{Digests, Moment, Timestamp, excerpt};
use std::collections::VecDeque;

/// Number of rows that are read from the database at a time.
const ROWS: usize = 512;
impl PlanContext<'_, '_> {
    /// Starts the comparison with the snapshot `name`.
    pub(crate) fn begin_comparison(&mut self, name: &str) -> Result<Comparison, Error> {
        self.planner.mirror.clear_scratch()?;
        self.planner.open = Open::default();
        let stale = self.planner.mirror.mark_stale()? > 0;
        Comparison::new(name, self.planner, stale)
    }

    /// Ends a comparison. Resources that are not listed are deleted, if all lists were read, unless
    /// their stored version is later than the lists.
    pub(crate) fn conclude(
        &mut self,
        list: &str,
        comparison: &mut Comparison,
        whole: bool,
        as_of: Option<Moment>,
    ) -> Result<(), Error> {
        comparison.finish(self.planner.mirror)?;
        if as_of.is_some() {
            self.spare_newer(as_of)?;
        }
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
        comparison.left.check(self.planner.options, list)?;
        if whole {
            self.planner.selection.spare_unseen(self.planner.mirror)?;
            self.planner.mirror.plan_unseen()?;
            self.planner.mirror.forget_stale()?;
            let is_uncertain =
                self.planner.uncertain_from.is_some() && self.planner.lost_until.is_none();
            let before = as_of.filter(|_| !is_uncertain).map(|at| at.first().as_micros());
            if is_uncertain || before.is_some() {
                self.planner.mirror.forget_gone(before)?;
            }
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

    /// Excludes resources from deletion that are not listed, but whose stored version is from a
    /// later change.
    fn spare_newer(&mut self, at: Option<Moment>) -> Result<(), Error> {
        let (mirror, is_uncertain) = (self.planner.mirror, self.planner.uncertain_from.is_some());
        let listed = self.planner.listed;
        let lost_until = self.planner.lost_until;
        let now = Some(now());
        let as_of = AsOf { at, is_uncertain, lost_until, now, listed, ..AsOf::default() };
        let has_gone = mirror.has_gone()?;
        let (mut key, mut rows) = (String::new(), Vec::new());
        loop {
            rows.clear();
            mirror.unseen_after(&key, ROWS, &mut rows)?;
            let Some(last) = rows.last() else { return Ok(()) };
            key.clone_from(&last.uri);
            for row in &rows {
                let gone = if has_gone { mirror.gone(&row.uri)? } else { None };
                let as_of = AsOf { gone: gone.map(Timestamp::from_micros), ..as_of };
                if judge(Stated::Absent, as_of, Some(row)) == Verdict::Unknown {
                    if as_of.is_open(Some(row)) {
                        self.planner.open.note(&row.uri, at);
                    } else if as_of.is_only_older_than_list(row) {
                        self.planner.open.note_older(&row.uri, at);
                    }
                    mirror.take_unseen(&row.uri)?;
                    // A planned action belongs to the later change, or follows from a later list.
                    mirror.keep_planned(&row.uri, as_of.is_older_than_list())?;
                }
            }
        }
    }

    /// Refuses a document that contains only resources on other hosts: it belongs to another Source
    /// and does not describe this copy.
    pub(crate) fn refuse_elsewhere(&self, url: &str, comparison: &Comparison) -> Result<(), Error> {
        if !comparison.wanted || comparison.admitted || self.planner.mirror.count_rows()? == 0 {
            return Ok(());
        }
        comparison.left.check(self.planner.options, url)?;
        let message = format!("{url} names only resources of other hosts or schemes");
        Err(Error::new("list.elsewhere", ExitCode::SourceInvalid, message).with_help(
            "nothing was deleted; if they are meant, see `--allow-host` and `--allow-downgrade`",
        ))
    }
}

/// A comparison in progress.
pub(crate) struct Comparison {
    admission: Admission,
    rows: VecDeque<Row>,
    key: String,
    exhausted: bool,
    /// The pass has reached the last row; resources of later lists are looked up individually.
    is_finished: bool,
    last: String,
    stale: bool,
    pub(crate) entries: u64,
    /// The common start of all admitted URIs, while the base is not known.
    base: CommonBase,
    wants_base: bool,
    /// Whether the current document contains resources that the filters include, and whether any
    /// may be requested.
    wanted: bool,
    admitted: bool,
    /// Whether any document contains resources that the filters include.
    has_wanted: bool,
    listed: Pending,
    /// Whether changes have deleted resources.
    has_gone: bool,
    now: Timestamp,
    /// The file system of a copy in a folder, which may round times.
    system: Option<FileSystem>,
    left: Left,
}

impl Comparison {
    fn new(list: &str, planner: &Planner<'_>, stale: bool) -> Result<Self, Error> {
        let system = planner
            .mirror
            .meta(key::FILE_SYSTEM)?
            .filter(|_| planner.options.sink.facts().is_folder());
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
            has_gone: planner.mirror.has_gone()?,
            now: now(),
            system: system.as_deref().and_then(FileSystem::from_text),
            left: Left::new(planner.mirror)?,
        })
    }

    /// Before the entries of a document.
    pub(crate) fn begin_document(&mut self) {
        (self.wanted, self.admitted) = (false, false);
    }

    /// Whether the resource is available: bytes in the list itself need no request.
    fn admits(&mut self, listed: &Listed<'_>) -> bool {
        listed.body.is_some() || self.admission.check(listed.href()).is_ok()
    }

    /// Compares a listed resource; whether its bytes are wanted.
    pub(crate) fn entry(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        listed: &Listed<'_>,
        as_of: Option<Moment>,
    ) -> Result<bool, Error> {
        self.entries += 1;
        let mirror = run.planner.mirror;
        let planner = &mut *run.planner;
        let uri = listed.uri;
        if self.wants_base && self.admits(listed) {
            self.base.note(uri);
        }
        let (row, is_again) = self.matching(mirror, uri)?;
        self.left.note(mirror, uri, row.is_some())?;
        if is_again {
            note_again(run, listed, row.as_ref())?;
            return Ok(false);
        }
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
        let stated = Stated::of(&self.listed, listed.digests, false);
        let is_uncertain = planner.uncertain_from.is_some();
        let gone = if self.has_gone { mirror.gone(uri)? } else { None };
        let gone = gone.map(Timestamp::from_micros);
        let (at, now) = (as_of, Some(self.now));
        let (lost_until, listed_at) = (planner.lost_until, planner.listed);
        let as_of =
            AsOf { at, is_uncertain, lost_until, now, gone, listed: listed_at, ..AsOf::default() };
        let due = match judge(stated, as_of, row.as_ref()) {
            Verdict::Fetch => Some(PendingAction::Fetch),
            Verdict::Touch => Some(PendingAction::Touch),
            // A file that was only touched locally gets its time back.
            Verdict::Keep => self.system.zip(row).zip(self.listed.modified).and_then(
                |((system, row), modified)| {
                    let is_own = row.modified == Some(modified);
                    let has_time = system.has_time(modified, row.file_mtime);
                    (is_own && !has_time).then_some(PendingAction::Touch)
                },
            ),
            Verdict::Delete | Verdict::Unknown => {
                if self.stale {
                    // A planned action belongs to the later change, or follows from a later list.
                    mirror.keep_planned(uri, as_of.is_older_than_list())?;
                }
                if as_of.is_open(row.as_ref()) {
                    planner.open.note(uri, at);
                } else if row.is_some_and(|row| as_of.is_only_older_than_list(&row)) {
                    planner.open.note_older(uri, at);
                }
                return Ok(false);
            }
        };
        match due {
            None => {
                run.report.summary.unchanged += 1;
                mirror.set_access(uri, self.listed.access.as_deref())?;
                let planned = if self.stale { mirror.task(uri)? } else { None };
                match planned {
                    // The planned action may belong to a change that is later than the list.
                    Some(planned) if as_of.may_be_older_than_change(planned.pending.changed) => {
                        mirror.keep_planned(uri, false)?;
                    }
                    Some(_) => mirror.forget_pending(uri)?,
                    None => {}
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

    /// The row of a URI, and whether the URI was listed before. Advances the pass to this URI.
    fn matching(&mut self, mirror: &Mirror, uri: &str) -> Result<(Option<Row>, bool), Error> {
        if self.is_finished || uri <= self.last.as_str() {
            let row = mirror.row(uri)?;
            let is_again = match &row {
                Some(_) => !mirror.take_unseen(uri)?,
                None => mirror.new_task(uri)?.is_some(),
            };
            return Ok((row, is_again));
        }
        uri.clone_into(&mut self.last);
        while let Some(front) = self.front(mirror)? {
            if front.uri.as_str() > uri {
                return Ok((None, false));
            }
            let Some(row) = self.rows.pop_front() else { break };
            if row.uri == uri {
                return Ok((Some(row), false));
            }
            mirror.add_unseen(&row.uri)?;
        }
        Ok((None, false))
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

    /// Counts a resource that is listed as deleted. Resources that are not listed are deleted
    /// anyway.
    pub(crate) const fn deleted(&mut self) {
        self.entries += 1;
    }

    /// Records the remaining stored resources as not listed.
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

/// Examines a resource that is listed more than once; the plan uses the first entry.
fn note_again(
    run: &PlanContext<'_, '_>,
    listed: &Listed<'_>,
    row: Option<&Row>,
) -> Result<(), Error> {
    let planned = run.planner.mirror.new_task(listed.uri)?.map(|task| task.pending);
    let first = planned.map(|first| (first.length, first.digests));
    let first = first.or_else(|| row.map(|row| (Some(row.length), row.digests.clone())));
    if let Some((length, digests)) = first {
        note_twice(run.requests, listed, length, &digests);
    }
    Ok(())
}

/// Records a remark if two entries about the same resource contradict each other.
pub(crate) fn note_twice(
    requests: &Requests<'_>,
    listed: &Listed<'_>,
    length: Option<u64>,
    digests: &[u8],
) {
    let mut first = Digests::default();
    first.set_from_bytes(digests);
    let has_other_length = length.zip(listed.length).is_some_and(|(first, now)| first != now);
    if has_other_length || listed.digests.agree(&first) == Some(false) {
        let (code, uri) = ("list.twice", excerpt(listed.uri));
        let message =
            format!("{uri} is listed again with another length or digest; the first entry counts");
        requests.diagnostics.note(listed.document, Remark { code, line: 0, message, count: 1 });
    }
}
