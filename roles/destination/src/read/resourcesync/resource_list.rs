//! Resource Lists and their indexes: the snapshot of a Source [rs-core §10].
//!
//! [`walk`] is the only way through an index and its lists; a run, an audit and the filters' test
//! differ in what they do with what is listed, and with lists that cannot be read.

use super::cursor;
use super::document::{
    Answer, Go, Kind, Member, Part, Read, has_changed, is_unchanged, read_parts,
};
use super::keys;
use super::listed::listed;
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::plan::comparison::{Baseline, Comparison};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::unchanged::{is_all_unchanged, kept_indexes};
use crate::requests::Requests;
use abreast_store::mirror::Document;
use abreast_webtypes::Timestamp;
use std::collections::{HashSet, VecDeque};

/// Most lists of one index.
const LISTS_MAX: usize = 200_000;
/// Lists up to which each is asked again whether it changed meanwhile.
const RECHECKED_MAX: usize = 1_000;
/// Failed lists that end a run; beyond, one in a hundred.
const LIST_BUDGET: usize = 100;
/// How far before a list's own time changes are replayed when it does not state `at`, microseconds.
const MARGIN_MICROS: i64 = 3_600_000_000;

/// A consumer of the resources of a Resource List.
pub(crate) trait Visitor {
    /// A document begins, again when its transfer is repeated.
    fn begin(&mut self) {}

    /// A resource is listed.
    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error>;

    /// A document was read to its end. An error counts as one of that document.
    fn end(&mut self, _url: &str, _read: &Read) -> Result<(), Error> {
        Ok(())
    }

    /// A document is an index that another index names.
    fn nested(&mut self, _url: &str) {}

    /// One of `named` documents that an index names cannot be read; an error ends the walk.
    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error>;
}

/// The result of a walk.
pub(crate) struct Walked {
    /// The document that it began with.
    pub(crate) top: Box<Read>,
    /// The instant up to which all changes are included, if the lists state it.
    pub(crate) at: Option<Timestamp>,
}

/// Reads a Resource List, or an index and its lists, and hands over each resource.
///
/// # Errors
/// The first document cannot be read; what the visitor does not pass over.
pub(crate) fn walk(
    requests: &Requests<'_>,
    options: &SyncOptions,
    list: &str,
    visitor: &mut dyn Visitor,
) -> Result<Walked, Error> {
    let mut admission = Admission::new(list, &options.allow_hosts, options.allow_downgrade);
    let mut waiting = VecDeque::new();
    let top = read_one(requests, list, 0, &mut waiting, visitor)?;
    let mut seen = HashSet::from([list.to_owned(), top.url.clone()]);
    let mut at = top.head.at.map(|at| top.at_earliest(at.instant));
    let named = waiting.len();
    while let Some((member, depth)) = waiting.pop_front() {
        requests.check_cancelled()?;
        let read = if !seen.insert(member.url.clone()) {
            let message = format!("an index names {} more than once, or names itself", member.url);
            Err(Error::new("list.cycle", ExitCode::Limit, message))
        } else if let Err(refusal) = admission.check(&member.url) {
            let message = format!("{}: {}", member.url, refusal.message());
            Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message))
        } else {
            read_one(requests, &member.url, depth, &mut waiting, visitor)
        };
        match read {
            Ok(read) => {
                // A list older than its index states comes from some cache: the changes in between
                // are replayed.
                if let Some(own) = read.head.at
                    && (top.head.at.is_none()
                        || member.at.is_some_and(|promised| own.instant < promised))
                {
                    at = at.into_iter().chain([read.at_earliest(own.instant)]).min();
                }
            }
            Err(error) if is_of_document(&error) => visitor.failed(&member.url, error, named)?,
            Err(error) => return Err(error),
        }
    }
    Ok(Walked { top, at })
}

/// Whether it is a failure of one document, without which others may be read.
const fn is_of_document(error: &Error) -> bool {
    matches!(
        error.exit_code(),
        ExitCode::SourceInvalid
            | ExitCode::Retryable
            | ExitCode::Tls
            | ExitCode::Auth
            | ExitCode::Limit
    )
}

fn read_one(
    requests: &Requests<'_>,
    url: &str,
    depth: u8,
    waiting: &mut VecDeque<(Member, u8)>,
    visitor: &mut dyn Visitor,
) -> Result<Box<Read>, Error> {
    let mut nested = false;
    let waiting_before = waiting.len();
    let answer = read_parts(requests, url, Kind::Resources, None, &mut |part| {
        match part {
            Part::Begin(_) => {
                waiting.truncate(waiting_before);
                visitor.begin();
            }
            Part::Entry(head, entry) => visitor.listed(&listed(url, head, entry))?,
            Part::Member(_) if depth >= 2 => {
                let message = format!("{url} is an index inside an index inside an index");
                return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
            }
            Part::Member(_) if waiting.len() >= LISTS_MAX => {
                let message = format!("{url} names more than {LISTS_MAX} lists");
                return Err(Error::new("limit.lists", ExitCode::Limit, message));
            }
            Part::Member(member) => {
                nested = depth > 0;
                waiting.push_back((member, depth + 1));
            }
        }
        Ok(Go::On)
    })?;
    if nested {
        visitor.nested(url);
    }
    let Answer::Read(read) = answer else {
        return Err(Error::new(
            "http.status",
            ExitCode::SourceInvalid,
            format!("{url} answered 304 unasked"),
        ));
    };
    visitor.end(url, &read)?;
    Ok(read)
}

/// Hands over each resource. Lists that cannot be read are left out: a run that reads them reports
/// them.
pub(crate) fn each_resource(
    requests: &Requests<'_>,
    list: &str,
    options: &SyncOptions,
    each: &mut dyn FnMut(&Listed<'_>),
) -> Result<(), Error> {
    struct Each<'a>(&'a mut dyn FnMut(&Listed<'_>));
    impl Visitor for Each<'_> {
        fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
            (self.0)(listed);
            Ok(())
        }

        fn failed(&mut self, _: &str, error: Error, _: usize) -> Result<(), Error> {
            let is_passed = error.exit_code() != ExitCode::Limit || error.code() == "list.cycle";
            if is_passed { Ok(()) } else { Err(error) }
        }
    }
    walk(requests, options, list, &mut Each(each)).map(|_| ())
}

/// The visitor of a run: compares a Resource List with the state.
struct Compared<'s, 'p, 'a> {
    run: &'s mut PlanContext<'p, 'a>,
    comparison: &'s mut Comparison,
    list: &'s str,
    has_changes: bool,
    /// The documents that were read, to check later whether they have changed.
    read: Vec<(String, Document)>,
    /// Those of them that are indexes.
    indexes: Vec<String>,
    failed: usize,
    partial: bool,
}

impl Visitor for Compared<'_, '_, '_> {
    fn begin(&mut self) {
        self.comparison.begin_document();
    }

    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error> {
        self.comparison.entry(self.run, listed)?;
        if self.comparison.entries.is_multiple_of(1_024) {
            self.run.requests.check_cancelled()?;
            self.run.report.status(self.comparison.entries, 0, 0);
        }
        Ok(())
    }

    fn end(&mut self, url: &str, read: &Read) -> Result<(), Error> {
        self.run.refuse_elsewhere(url, self.comparison)?;
        self.partial |= self.run.report.left_out(url, read.skipped);
        self.indexes.extend(read.is_index().then(|| url.to_owned()));
        if self.read.len() <= RECHECKED_MAX || !self.has_changes {
            self.read.push((url.to_owned(), read.validators.clone()));
        }
        Ok(())
    }

    fn nested(&mut self, url: &str) {
        let message = "an index inside an index; the specification has no such thing";
        self.run.report.notice("list.nested-index", url, message);
    }

    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error> {
        self.failed += 1;
        self.run.report.list_failed(error.code(), url, &error.to_string());
        if self.failed > LIST_BUDGET.max(named / 100) {
            let message = format!(
                "{} of {named} lists named by {} could not be read",
                self.failed, self.list
            );
            return Err(Error::new("budget.lists", ExitCode::Limit, message)
                .with_help("nothing was changed; the Source has to correct its index"));
        }
        Ok(())
    }
}

/// Plans what makes the copy equal to the Resource List.
pub(crate) fn plan_baseline(
    run: &mut PlanContext<'_, '_>,
    list: &str,
    has_changes: bool,
) -> Result<Baseline, Error> {
    run.report.begin_phase("reading");
    if !has_changes
        && !run.planner.options.baseline
        && !run.planner.selection.has_changed()
        && all_lists_unchanged(run, list)?
    {
        return Ok(Baseline { unchanged: true, whole: true, at: None });
    }
    run.plan_snapshot(list, &mut |run| compare_lists(run, list, has_changes))
}

/// Without a Change List, asking each list is the way to find that nothing has changed.
fn all_lists_unchanged(run: &PlanContext<'_, '_>, list: &str) -> Result<bool, Error> {
    let indexes = run.planner.mirror.meta(keys::LIST_INDEXES)?;
    let members = |index: &str| {
        let mut members = Vec::new();
        read_parts(run.requests, index, Kind::Resources, None, &mut |part| {
            match part {
                Part::Begin(_) => members.clear(),
                Part::Member(member) => members.push(member.url),
                Part::Entry(..) => {}
            }
            Ok(Go::On)
        })?;
        Ok(members)
    };
    let is_unchanged = |url: &str, known: &Document| is_unchanged(run.requests, url, known);
    is_all_unchanged(run, list, indexes.as_deref(), &is_unchanged, &members)
}

/// Compares with the list or the index and its lists; `None` when they changed meanwhile.
fn compare_lists(
    run: &mut PlanContext<'_, '_>,
    list: &str,
    has_changes: bool,
) -> Result<Option<Baseline>, Error> {
    let (requests, options) = (run.requests, run.planner.options);
    let mut comparison = run.begin_comparison(list)?;
    let mut compared = Compared {
        run: &mut *run,
        comparison: &mut comparison,
        list,
        has_changes,
        read: Vec::new(),
        indexes: Vec::new(),
        failed: 0,
        partial: false,
    };
    let Walked { top, at } = walk(requests, options, list, &mut compared)?;
    let whole = compared.failed == 0 && !compared.partial;
    let (read, indexes) = (compared.read, compared.indexes);
    let is_index = top.is_index();
    let is_exact = at.is_some() && has_changes;
    if whole && is_index && !is_exact && changed_meanwhile(requests, &read)? {
        return Ok(None);
    }
    let at = replay_from(run, list, &top, at, has_changes);
    run.conclude(list, &mut comparison, whole)?;
    keep_snapshot(run, whole, at)?;
    run.planner.mirror.set_meta(keys::LIST_INDEXES, kept_indexes(&indexes).as_deref())?;
    if whole {
        for (url, validators) in &read {
            run.planner.mirror.set_document(url, validators)?;
        }
    }
    Ok(Some(Baseline { unchanged: false, whole, at }))
}

/// Keeps the instant of a snapshot, if it was read whole, as the cursor.
pub(super) fn keep_snapshot(
    run: &PlanContext<'_, '_>,
    whole: bool,
    at: Option<Timestamp>,
) -> Result<(), Error> {
    if whole {
        run.planner.mirror.set_meta(keys::OPEN_LIST, None)?;
    }
    cursor::set_to_snapshot(run.planner.mirror, at.filter(|_| whole))
}

/// The instant from which changes are to be replayed, never later than the server's own clock.
fn replay_from(
    run: &mut PlanContext<'_, '_>,
    list: &str,
    top: &Read,
    at: Option<Timestamp>,
    has_changes: bool,
) -> Option<Timestamp> {
    let stated = if let Some(at) = at {
        at
    } else {
        let found = top.last_modified.or(top.date)?.plus_micros(-MARGIN_MICROS);
        if has_changes {
            let message =
                format!("the Resource List does not state `at`; changes are replayed from {found}");
            run.report.notice("list.no-at", list, &message);
        }
        found
    };
    Some(run.not_after(list, "at", stated, top.date))
}

fn changed_meanwhile(requests: &Requests<'_>, read: &[(String, Document)]) -> Result<bool, Error> {
    for (url, known) in read.iter().take(RECHECKED_MAX) {
        if has_changed(requests, url, known)? {
            return Ok(true);
        }
    }
    Ok(false)
}
