//! The fragments feed: what changed since the last update that was seen [sdshare §Fragments Feed,
//! §Fragment Processing].

use super::feed::read_feed;
use crate::error::{Error, ExitCode};
use crate::plan::listed::Listed;
use crate::read::pieces::Go;
use crate::read::position::Of;
use crate::read::walk::{Trail, Walk};
use abreast_core::Kind;
use abreast_rdf::Syntax;
use abreast_sdshare::{Entry, Feed, Link, Relation, with_since};
use abreast_webtypes::{Digests, Moment, Timestamp};
use std::sync::LazyLock;

/// The time before the last change from which on entries are asked for, microseconds: servers may list only what came after
/// a second.
const SECOND: i64 = 1_000_000;

static NO_DIGESTS: LazyLock<Digests> = LazyLock::new(Digests::default);

/// A fragment that is kept of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fragment<'e> {
    href: &'e str,
    media_type: Option<&'e str>,
    /// Whether it describes the resource; a file is kept as it is.
    describes: bool,
}

impl<'e> Fragment<'e> {
    /// The fragment of an entry whose syntax is the cheapest to read.
    fn of(feed: &Feed, entry: &'e Entry) -> Option<Self> {
        let link = entry.targets(&Relation::Fragment).min_by_key(|link| cost(link))?;
        let media_type = link.media_type.as_deref();
        Some(Self { href: &link.href, media_type, describes: !feed.has_files })
    }

    /// As a resource, or one that changed.
    fn listed<'l>(self, entry: &'l Entry, resource: &'l str, page: &'l str) -> Listed<'l>
    where
        'e: 'l,
    {
        Listed {
            uri: resource,
            href: Some(self.href),
            accept: self.media_type.filter(|_| self.describes),
            describes: self.describes,
            body: None,
            document: page,
            modified: None,
            modified_is_change: false,
            length: None,
            media_type: self.media_type,
            digests: &NO_DIGESTS,
            change: Some(if entry.is_deleted { Kind::Delete } else { Kind::Update }),
            changed: entry.updated.map(moment),
            // It may be the same for each change of its resource.
            id: Some(&entry.id).filter(|id| !id.is_empty()).map(String::as_str),
            patch: None,
            replaced_by: &[],
            patches: Vec::new(),
            links: Vec::new(),
            categories: Vec::new(),
        }
    }
}

/// How dear it is to read what a link leads to.
pub(super) fn cost(link: &Link) -> u8 {
    match Syntax::of_sdshare_media_type(&link.essence()) {
        Some(Syntax::NTriples) if link.essence() != "text/plain" => 0,
        Some(Syntax::NTriples) => 1,
        Some(Syntax::Turtle) => 2,
        Some(Syntax::NQuads | Syntax::TriG) => 3,
        Some(Syntax::RdfXml) => 4,
        Some(Syntax::JsonLd) => 5,
        _ => 6,
    }
}

/// The time of an entry. Times of whole seconds may be of a clock that has no others.
fn moment(updated: Timestamp) -> Moment {
    match updated.as_micros() % SECOND {
        0 => Moment::between(updated, updated.plus_micros(SECOND - 1)),
        _ => Moment::exact(updated),
    }
}

/// Hands over what a feed lists since the position of the walk, or all of it.
pub(super) fn fragments(walk: &mut Walk<'_, '_>, feed: &str) -> Result<(), Error> {
    let since = walk.since().map(Moment::first);
    // The entries that were read last are listed again, by servers too that list only what came after a time.
    let known = walk.marks().oldest().into_iter().chain(since).min();
    let asked = known.filter(|_| since.is_some()).map(|known| known.plus_micros(-SECOND));
    let requests = walk.requests;
    let mut next = Some(asked.map_or_else(|| feed.to_owned(), |since| with_since(feed, since)));
    let (mut admission, mut trail) = (walk.admission(feed), Trail::new(true));
    let (mut updated, mut began) = (None, None);
    let (mut marks_deletions, mut may_delete) = (false, false);
    let mut oldest = None::<Timestamp>;
    // Of changes of one time the first counts where the newest comes first, as is usual.
    let (mut before, mut is_ascending) = (None::<Timestamp>, false);
    while let Some(url) = next.take() {
        if admission.check(&url).is_err() {
            let message =
                format!("the next page of {feed} is {url}, on a host that is not allowed");
            return Err(Error::new("uri.authority", ExitCode::SourceInvalid, message)
                .with_help("allow hosts you trust with `--allow-host HOST`"));
        }
        trail.visit(&url);
        let (mut entries, mut has_begun) = (0, false);
        let read = read_feed(requests, &url, &mut |page, entry, answered| {
            if !std::mem::replace(&mut has_begun, true) {
                walk.clock(answered);
                walk.begin_changes(&url, None, None);
            }
            entries += 1;
            is_ascending |= before.zip(entry.updated).is_some_and(|(before, now)| before < now);
            before = entry.updated;
            if is_ascending {
                walk.later_document();
            } else {
                walk.earlier_document();
            }
            oldest = oldest.into_iter().chain(entry.updated).min();
            marks_deletions |= entry.is_deleted;
            may_delete |= !page.has_files && !entry.is_deleted;
            hand_over(walk, (page, entry), &url)?;
            Ok(Go::On)
        })?;
        walk.clock(&read.answered);
        if trail.len() == 1 {
            (updated, began) = (read.feed.updated, Some(read.answered.date));
        }
        let following = read.feed.link(&Relation::Next).map(|link| link.href.clone());
        if let Some(following) = following {
            match trail.check(&url, entries, &following) {
                Ok(()) => next = Some(following),
                Err(cut) => walk.cut(cut),
            }
        }
    }
    // What changed while the pages were read may stand on one that was read before.
    if let Some(began) = began.filter(|_| trail.len() > 1) {
        walk.limit_to(began);
    }
    if walk.options.dry_run && may_delete && !marks_deletions {
        let message = "fragments are not read in a dry run: a resource whose fragment is empty is reported as fetched, \
            and a run deletes it";
        walk.notice("sdshare.dry-run", feed, message);
    }
    walk.walked.end = asked;
    if walk.marks().are_lost(asked) {
        let earliest =
            oldest.or(updated).filter(|earliest| since.is_some_and(|since| since < *earliest));
        // What is listed begins after what is known: entries were removed.
        if let Some(earliest) = earliest {
            walk.reaches_back_to(Moment::exact(earliest));
        }
    }
    walk.walked.went_back = went_back(walk, updated, since);
    Ok(())
}

/// Why the feed does not continue what was seen: its server was restored, or its clock went back.
fn went_back(
    walk: &Walk<'_, '_>,
    updated: Option<Timestamp>,
    since: Option<Timestamp>,
) -> Option<String> {
    let (seen, newest) = (walk.position().newest_seen(), walk.walked.newest.map(Moment::last));
    // A snapshot may be newer than the last change.
    let since = since.filter(|_| walk.position().of() != Of::Snapshot).max(seen)?;
    let updated = updated.filter(|updated| *updated < since)?;
    // The entry that was seen last is listed again; without it, it never was.
    newest.is_none_or(|newest| newest < since).then(|| {
        format!("the feed was updated at {updated}, and changes of {since} were seen already")
    })
}

fn hand_over(
    walk: &mut Walk<'_, '_>,
    (feed, entry): (&Feed, &Entry),
    page: &str,
) -> Result<(), Error> {
    let fragment = Fragment::of(feed, entry);
    let (Some(fragment), false) = (fragment, entry.resources.is_empty()) else {
        // It is read again by every run.
        if let Some(updated) = entry.updated {
            walk.limit_to(updated);
        }
        walk.unusable(|| {
            let what = if fragment.is_none() { "link to a fragment" } else { "resource" };
            format!("line {} of {page}: an entry without a {what}", entry.line)
        });
        return Ok(());
    };
    let mut resources = entry.resources.iter();
    resources.try_for_each(|resource| walk.change(&fragment.listed(entry, resource, page)))
}
