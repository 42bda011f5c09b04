//! The Sitemap of a Source as a snapshot, and its time [rs-0.1 §2.2.1].

use super::document::read_head;
use super::entry_points::EntryPoints;
use super::sitemap::Sitemaps;
use crate::read::Snapshot;
use crate::read::sitemap::snapshot::read_snapshot;
use crate::read::sitemap::unchanged::is_all_unchanged;
use crate::read::walk::Walk;
use crate::report::clock::SECOND_MICROS;
use crate::report::error::{Error, ExitCode};
use crate::report::options::MaxDelete;
use crate::request::pieces::Answered;
use abreast_resourcesync::sitemap::{lists_only_others, may_be_change_set};
use abreast_webtypes::{Moment, Timestamp};

/// Interval before the time of a Sitemap whose changes are replayed, in microseconds. The draft
/// does not specify whether that time is the start or the end of the creation of the Sitemap.
pub(super) const MARGIN_MICROS: i64 = 3_600_000_000;

/// Passes on the Sitemap, and adds the documents in it to `known`. Sets `indexes` to the parts that
/// are indexes.
pub(super) fn sitemap_snapshot(
    walk: &mut Walk<'_, '_>,
    sitemap: &str,
    known: &mut EntryPoints,
    indexes: &mut Vec<String>,
) -> Result<Snapshot, Error> {
    let options = walk.options;
    if walk.is_conditional()
        && (is_all_unchanged(walk, sitemap, indexes, &mut Sitemaps::new(options))?
            || walk.is_probe() && is_of_known_time(walk, sitemap)?)
    {
        return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
    }
    let mut sitemaps = Sitemaps::new(options);
    let read = read_snapshot(walk, sitemap, &mut sitemaps, true)?;
    if let Some(count) = sitemaps.only_others() {
        let message = lists_only_others(sitemap, count);
        return Err(Error::new("discover.oai-pmh", ExitCode::SourceInvalid, message).with_help(
            "ask the repository for documents of ResourceSync that list its resources",
        ));
    }
    let may_be_changes = sitemaps.may_be_changes();
    let Sitemaps { modified, newest, saved, entry_points: mut found, others, .. } = sitemaps;
    walk.left_out(&others);
    found.sitemap.clone_from(&known.sitemap);
    found.keep_changes_of(known);
    let has_changes = found.change_set.is_some();
    let is_unstable = !has_changes && walk.is_whole() && read.changed_meanwhile(walk.requests)?;
    let at = time_of(walk, sitemap, (&read.top.answered, saved), modified, newest);
    if walk.is_whole() {
        *known = found;
    }
    *indexes = read.indexes;
    let doubt = (may_be_changes && options.max_delete == MaxDelete::Default).then(|| {
        let message = format!(
            "{}, and it is read as a list of all resources, so that others would be deleted",
            may_be_change_set(sitemap)
        );
        Error::new("rs.type", ExitCode::SourceInvalid, message).with_help(
            "change sets have `rs:type=\"changeset\"` in their root; if it is a Sitemap, run with `--max-delete`, for example 10%",
        )
    });
    // Change sets may contain any change with that time.
    let changes_from = Moment::between(at.first().plus_micros(-MARGIN_MICROS), at.first());
    Ok(Snapshot {
        is_unstable,
        lists_all: true,
        // Later changes need not be in the Sitemap.
        as_of: Some(at).filter(|_| has_changes),
        changes_from: Some(changes_from),
        doubt,
        ..Snapshot::default()
    })
}

/// Whether a Sitemap has the time of the last Sitemap that was read.
fn is_of_known_time(walk: &Walk<'_, '_>, sitemap: &str) -> Result<bool, Error> {
    let modified = read_head(walk.requests, sitemap)?.modified().map(Moment::first);
    Ok(modified.is_some() && modified == walk.position().snapshot())
}

/// The time of a Sitemap or dump, as by [`instant`]; one that is in the future is reported. `saved` is `Last-Modified` of the parts
/// of a Sitemap.
pub(super) fn time_of(
    walk: &mut Walk<'_, '_>,
    url: &str,
    (answered, saved): (&Answered, Option<Timestamp>),
    modified: Option<Moment>,
    newest: Option<Timestamp>,
) -> Moment {
    if let Some(modified) = modified {
        walk.not_after(url, "DCTERMS.modified", modified);
    }
    instant((answered, saved), modified, newest)
}

/// The time of a Sitemap or dump. A document without a modification time, or with a future time by
/// the server's clock, may be a file that was copied later: then it is considered as old as its
/// newest entry.
fn instant(
    (answered, saved): (&Answered, Option<Timestamp>),
    modified: Option<Moment>,
    newest: Option<Timestamp>,
) -> Moment {
    let stated = modified.filter(|modified| modified.first() <= answered.latest_now());
    stated.unwrap_or_else(|| {
        let of_answer = in_its_second(saved.or(answered.last_modified).unwrap_or(answered.date));
        let newest = newest.filter(|newest| *newest <= of_answer.last());
        newest.map_or(of_answer, in_its_second)
    })
}

/// A time in whole seconds may be any instant within that second.
pub(super) fn in_its_second(time: Timestamp) -> Moment {
    let is_whole = time.as_micros() % SECOND_MICROS == 0;
    Moment::between(time, time.plus_micros(if is_whole { SECOND_MICROS - 1 } else { 0 }))
}
