//! Resource Lists and their indexes: the snapshot of a Source [rs-core §10].

use super::document::{Kind, Part, Read, read_first_parts, read_parts};
use super::keys;
use super::listed::listed;
use crate::read::Snapshot;
use crate::read::sitemap::document::unasked;
use crate::read::sitemap::snapshot::{Read as SnapshotRead, read_snapshot};
use crate::read::sitemap::unchanged::is_all_unchanged;
use crate::read::sitemap::walk::{Found, Lists, Member};
use crate::read::walk::Walk;
use crate::report::clock::now;
use crate::report::error::{Error, ExitCode};
use crate::request::pieces::{Answered, Go};
use crate::request::requests::Requests;
use abreast_resourcesync::v1_1::{Capability, V1_1};
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Moment, Timestamp};

/// Interval before the modification time of a list without `at` whose changes are replayed, in
/// microseconds.
const MARGIN_MICROS: i64 = 3_600_000_000;

/// Resource Lists, and what those read so far give.
#[derive(Debug, Default)]
pub(crate) struct ResourceLists {
    /// The first document gives `at`.
    gives_at: bool,
    /// The instant up to which all changes are included, if the lists contain it.
    at: Option<Moment>,
    /// The latest `at` of all documents.
    latest: Option<Moment>,
    /// The time `at` of the list that is being read.
    own: Option<Moment>,
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
                Part::Begin(head, _) => {
                    self.own = head.at.map(abreast_webtypes::W3cDatetime::moment);
                    Ok(())
                }
                Part::Entry(head, entry) => {
                    each(Found::Resource(&listed(url, head, entry), self.own.or(self.at)))
                }
                Part::Member(member) => {
                    let (url, time) = (member.url, member.at.map(Moment::first));
                    each(Found::Member(Member { url, time, is_other: false }))
                }
            }?;
            Ok(Go::On)
        })?;
        read.ok_or_else(|| unasked(url))
    }

    fn note(&mut self, _url: &str, read: &Read, member: Option<&Member>) {
        let Some(own) = read.head.at.map(|at| read.moment(at)) else { return };
        self.latest = self.latest.into_iter().chain([own]).max_by_key(|at| at.first());
        // A list that is older than its index claims comes from a cache: the changes since the list
        // are replayed.
        let counts = match member {
            None => {
                self.gives_at = true;
                true
            }
            Some(member) => {
                !self.gives_at || member.time.is_some_and(|stated| own.first() < stated)
            }
        };
        if counts && self.at.is_none_or(|at| own.first() < at.first()) {
            self.at = Some(own);
        }
    }
}

/// Passes on the resources of a Resource List, or of an index and its lists.
pub(in crate::read) fn resource_list(
    walk: &mut Walk<'_, '_>,
    list: &str,
    has_changes: bool,
    indexes: &mut Vec<String>,
) -> Result<Snapshot, Error> {
    if walk.is_conditional()
        && (!is_of_answer(walk, list)?
            && is_all_unchanged(walk, list, indexes, &mut ResourceLists::default())?
            || walk.is_probe() && is_of_known_time(walk, list)?)
    {
        return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
    }
    let mut lists = ResourceLists::default();
    let read = read_snapshot(walk, list, &mut lists, !has_changes)?;
    let is_exact = lists.at.is_some() && has_changes;
    let is_unstable = !is_exact && walk.is_whole() && read.changed_meanwhile(walk.requests)?;
    let changes_from = replay_from(walk, list, &read.top.answered, lists.at, has_changes);
    let SnapshotRead { indexes: found, .. } = read;
    *indexes = found;
    Ok(Snapshot {
        is_unstable,
        lists_all: true,
        as_of: lists.at.or(changes_from.filter(|_| has_changes)),
        changes_from,
        mixed_until: lists.latest.filter(|latest| lists.at.is_some_and(|at| at.is_before(*latest))),
        ..Snapshot::default()
    })
}

/// Whether a probe for a newer snapshot finds the same snapshot with a newer time: the time is that
/// of the response.
pub(super) fn is_of_answer(walk: &Walk<'_, '_>, url: &str) -> Result<bool, Error> {
    let position = walk.position();
    let since = position.unknown.as_ref().filter(|_| walk.is_probe()).and_then(|it| it.since);
    let width = since.zip(position.snapshot()).map(|(since, at)| at.as_micros() - since);
    let known = walk.known(url)?.filter(|_| width >= Some(MARGIN_MICROS));
    Ok(known.is_some_and(|known| known.last_modified.is_none()))
}

/// Whether a list has the time of the last list that was read.
fn is_of_known_time(walk: &Walk<'_, '_>, list: &str) -> Result<bool, Error> {
    let read = read_parts(walk.requests, list, Kind::Resources, None, &mut |_| Ok(Go::Enough))?;
    let at = read.and_then(|read| Some(read.moment(read.head.at?).last()));
    Ok(at.is_some() && at == walk.position().snapshot())
}

/// Whether an address has a Resource List, or an index of Resource Lists, with that capability in
/// its head.
///
/// # Errors
/// A response did not arrive, or the failure is transient.
pub(in crate::read) fn is_resource_list(requests: &Requests<'_>, url: &str) -> Result<bool, Error> {
    let mut is_stated = false;
    let read = read_first_parts(requests, url, Kind::Resources, &mut |part| {
        if let Part::Begin(head, _) = part {
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

/// Stores which of the lists are indexes, for conditional requests.
pub(in crate::read) fn keep_indexes(mirror: &Mirror, indexes: &[String]) -> Result<(), Error> {
    let kept = crate::read::sitemap::unchanged::kept_indexes(indexes);
    Ok(mirror.set_meta(keys::LIST_INDEXES, kept.as_deref())?)
}

/// The indexes among the lists read last.
pub(in crate::read) fn known_indexes(mirror: &Mirror) -> Result<Vec<String>, Error> {
    let text = mirror.meta(keys::LIST_INDEXES)?.unwrap_or_default();
    Ok(text.lines().map(str::to_owned).collect())
}

/// The time from which changes are to be replayed, never later than the server's own clock. An `at` that is later counts as
/// none.
pub(super) fn replay_from(
    walk: &mut Walk<'_, '_>,
    list: &str,
    answered: &Answered,
    at: Option<Moment>,
    has_changes: bool,
) -> Option<Moment> {
    if let Some(at) = at {
        let stated = walk.not_after(list, "at", at);
        if stated == at {
            return Some(at);
        }
    }
    let is_wrong = at.is_some();
    let own = is_wrong.then(now);
    let at: Timestamp = answered.last_modified.or(answered.stated_date).or(own)?;
    let from = at.plus_micros(-MARGIN_MICROS);
    if has_changes && !is_wrong {
        let message = format!("it does not give `at`; changes are replayed from {from}");
        walk.notice("list.no-at", list, &message);
    }
    Some(walk.not_after(list, "Last-Modified", Moment::between(from, at)))
}
