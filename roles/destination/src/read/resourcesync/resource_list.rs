//! Resource Lists and their indexes: the snapshot of a Source [rs-core §10].

use super::cursor;
use super::document::{Kind, Part, Read, read_first_parts, read_parts};
use super::keys;
use super::listed::listed;
use crate::error::{Error, ExitCode};
use crate::plan::comparison::Baseline;
use crate::plan::planner::PlanContext;
use crate::read::pieces::Go;
use crate::read::sitemap::compare::compare;
use crate::read::sitemap::document::unasked;
use crate::read::sitemap::unchanged::is_all_unchanged;
use crate::read::sitemap::walk::{Found, Lists, Member};
use crate::requests::Requests;
use abreast_resourcesync::v1_1::{Capability, V1_1};
use abreast_store::mirror::Mirror;
use abreast_webtypes::Timestamp;

/// How far before a list's own time changes are replayed when it does not state `at`, microseconds.
const MARGIN_MICROS: i64 = 3_600_000_000;

/// Resource Lists, and what those read so far state.
#[derive(Debug, Default)]
pub(crate) struct ResourceLists {
    /// The first document states `at`.
    states_at: bool,
    /// The instant up to which all changes are included, if the lists state it.
    pub(crate) at: Option<Timestamp>,
}

impl Lists for ResourceLists {
    type Version = V1_1;

    fn read(
        &mut self,
        requests: &Requests<'_>,
        url: &str,
        each: &mut dyn FnMut(Found<'_>) -> Result<(), Error>,
    ) -> Result<Read, Error> {
        let read = read_parts(requests, url, Kind::Resources, None, &mut |part| {
            match part {
                Part::Begin(_) => Ok(()),
                Part::Entry(head, entry) => each(Found::Resource(&listed(url, head, entry))),
                Part::Member(member) => {
                    let (url, time) = (member.url, member.at);
                    each(Found::Member(Member { url, time, is_other: false }))
                }
            }?;
            Ok(Go::On)
        })?;
        read.ok_or_else(|| unasked(url))
    }

    fn note(&mut self, _url: &str, read: &Read, member: Option<&Member>) {
        let Some(own) = read.head.at.map(|at| at.instant) else { return };
        // A list older than its index states comes from some cache: the changes in between are
        // replayed.
        let counts = match member {
            None => {
                self.states_at = true;
                true
            }
            Some(member) => !self.states_at || member.time.is_some_and(|stated| own < stated),
        };
        if counts {
            self.at = self.at.into_iter().chain([read.at_earliest(own)]).min();
        }
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
        && is_all_unchanged(run, list, keys::LIST_INDEXES, &mut ResourceLists::default())?
    {
        return Ok(Baseline { unchanged: true, whole: true, at: None });
    }
    run.plan_snapshot(list, &mut |run| compare_lists(run, list, has_changes, &mut keep_snapshot))
}

/// Whether an address has a Resource List, or an index of such, that states to be one.
///
/// # Errors
/// There is no answer, or a transient failure.
pub(in crate::read) fn is_resource_list(requests: &Requests<'_>, url: &str) -> Result<bool, Error> {
    let mut is_stated = false;
    let read = read_first_parts(requests, url, Kind::Resources, &mut |part| {
        if let Part::Begin(head) = part {
            is_stated = head.capability == Some(Capability::ResourceList);
        }
        Ok(Go::Enough)
    });
    match read {
        Ok(_) => Ok(is_stated),
        Err(error) if error.exit_code() == ExitCode::SourceInvalid => Ok(false),
        Err(error) => Err(error),
    }
}

/// Plans what makes the copy equal to a Resource List that is followed by changes of another
/// protocol.
pub(in crate::read) fn plan_named_list(
    run: &mut PlanContext<'_, '_>,
    list: &str,
    keep: Keep<'_>,
) -> Result<Baseline, Error> {
    run.report.begin_phase("reading");
    run.plan_snapshot(list, &mut |run| compare_lists(run, list, true, keep))
}

/// Keeps how far a copy is known after a comparison: whether everything was read, and the instant
/// from which changes are to be read.
type Keep<'k> = &'k mut dyn FnMut(&Mirror, bool, Option<Timestamp>) -> Result<(), Error>;

/// Compares with the list or the index and its lists; `None` when they changed meanwhile.
fn compare_lists(
    run: &mut PlanContext<'_, '_>,
    list: &str,
    has_changes: bool,
    keep: Keep<'_>,
) -> Result<Option<Baseline>, Error> {
    let mut lists = ResourceLists::default();
    let mut compared = compare(run, list, &mut lists, !has_changes)?;
    let is_exact = lists.at.is_some() && has_changes;
    if !is_exact && compared.changed_meanwhile(run.requests)? {
        return Ok(None);
    }
    let at = replay_from(run, list, &compared.top, lists.at, has_changes);
    let whole = compared.whole;
    run.conclude(list, &mut compared.comparison, whole)?;
    keep(run.planner.mirror, whole, at)?;
    compared.keep(run.planner.mirror, keys::LIST_INDEXES)?;
    Ok(Some(Baseline { unchanged: false, whole, at }))
}

/// Keeps the instant of a snapshot, if it was read whole, as the cursor.
pub(super) fn keep_snapshot(
    mirror: &Mirror,
    whole: bool,
    at: Option<Timestamp>,
) -> Result<(), Error> {
    if whole {
        mirror.set_meta(keys::OPEN_LIST, None)?;
    }
    cursor::set_to_snapshot(mirror, at.filter(|_| whole))
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
        let found =
            top.answered.last_modified.or(top.answered.stated_date)?.plus_micros(-MARGIN_MICROS);
        if has_changes {
            let message =
                format!("the Resource List does not state `at`; changes are replayed from {found}");
            run.report.notice("list.no-at", list, &message);
        }
        found
    };
    Some(run.not_after(list, "at", stated, top.answered.stated_date))
}
