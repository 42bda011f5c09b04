//! The fragments feed: what changed since the last update that was seen [sdshare §Fragments Feed,
//! §Fragment Processing].

use super::feed::{Go, Read, read_feed};
use crate::error::{Error, ExitCode};
use crate::plan::changes::{Followed, ReadingChanges, Seen};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use abreast_core::Kind;
use abreast_rdf::Syntax;
use abreast_sdshare::{Entry, Feed, Link, Relation, with_since};
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Digests, Timestamp};
use std::collections::HashSet;
use std::sync::LazyLock;

/// Most pages of one feed.
const PAGES_MAX: usize = 100_000;
/// The time of the last update that was seen, microseconds.
const SEEN: &str = "sdshare-seen";
/// Servers with whole seconds may list only what came after that second.
const OVERLAP: i64 = 1_000_000;

static NO_DIGESTS: LazyLock<Digests> = LazyLock::new(Digests::default);

/// The time of the last update that was seen.
pub(super) fn seen(mirror: &Mirror) -> Result<Option<Timestamp>, Error> {
    let text = mirror.meta(SEEN)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros))
}

/// Keeps it, in the transaction of what was planned up to then.
pub(super) fn keep_seen(mirror: &Mirror, time: Option<Timestamp>) -> Result<(), Error> {
    Ok(mirror.set_meta(SEEN, time.map(|time| time.as_micros().to_string()).as_deref())?)
}

/// A fragment that is kept of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fragment<'e> {
    pub(super) href: &'e str,
    pub(super) media_type: Option<&'e str>,
    /// Whether it describes the resource; a file is kept as it is.
    pub(super) describes: bool,
}

impl<'e> Fragment<'e> {
    /// The fragment of an entry whose syntax is the cheapest to read.
    pub(super) fn of(feed: &Feed, entry: &'e Entry) -> Option<Self> {
        let link = entry.targets(&Relation::Fragment).min_by_key(|link| cost(link))?;
        let media_type = link.media_type.as_deref();
        Some(Self { href: &link.href, media_type, describes: !feed.has_files })
    }

    /// As a resource, or one that changed.
    pub(super) fn listed<'l>(self, entry: &Entry, resource: &'l str, page: &'l str) -> Listed<'l>
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
            changed: entry.updated,
            replaced_by: &[],
            patches: Vec::new(),
            links: Vec::new(),
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

/// What was read of the pages of a feed.
#[derive(Default)]
struct Pages {
    visited: HashSet<String>,
    /// The newest time of an entry.
    newest: Option<Timestamp>,
    /// The oldest time of an entry that cannot be used.
    unusable: Option<Timestamp>,
    /// Entries that cannot be used, and the first of them.
    unusable_count: u64,
    first_unusable: Option<String>,
    /// The server's clock when the first page was asked for.
    began: Option<Timestamp>,
    /// The time of the feed itself.
    updated: Option<Timestamp>,
}

/// Plans what changed since a time, or everything that a feed lists.
pub(super) fn plan_fragments(
    run: &mut PlanContext<'_, '_>,
    feed: &str,
    since: Option<Timestamp>,
) -> Result<Followed, Error> {
    let asked = since.map(|since| match since.as_micros() % 1_000_000 {
        0 => since.plus_micros(-OVERLAP),
        _ => since,
    });
    run.plan_noted(&mut |run| {
        let (mut seen, mut pages) = (Seen::default(), Pages::default());
        let mut next = Some(asked.map_or_else(|| feed.to_owned(), |since| with_since(feed, since)));
        while let Some(url) = next.take() {
            let is_first = pages.visited.is_empty();
            if !pages.begin(run, feed, &url)? {
                break;
            }
            let read = pages.read(run, &url, asked.unwrap_or(Timestamp::MIN), &mut seen)?;
            if is_first {
                (pages.began, pages.updated) = (Some(read.answered.date), read.feed.updated);
            }
            next = read.feed.link(&Relation::Next).map(|link| link.href.clone());
        }
        if let Some(why) = pages.went_back(since) {
            return Ok(Followed::Gap(why));
        }
        pages.report(run, feed);
        run.plan_coming()?;
        run.keep_common(&mut seen)?;
        let newest = pages.seen_until(run, feed);
        keep_seen(run.planner.mirror, since.max(newest))?;
        Ok(if seen.entries == 0 { Followed::Unchanged } else { Followed::Planned })
    })
}

impl Pages {
    /// Whether a page is to be read.
    fn begin(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        feed: &str,
        url: &str,
    ) -> Result<bool, Error> {
        if !run.planner.is_admitted(url) {
            let message =
                format!("the next page of {feed} is {url}, on a host that is not allowed");
            return Err(Error::new("uri.authority", ExitCode::SourceInvalid, message)
                .with_help("allow hosts you trust with `--allow-host HOST`"));
        }
        if self.visited.len() == PAGES_MAX {
            let message = format!("{feed} has more than {PAGES_MAX} pages");
            return Err(Error::new("limit.pages", ExitCode::Limit, message));
        }
        if self.visited.insert(url.to_owned()) {
            return Ok(true);
        }
        let message = "the next page is one that was read already; it is taken for the end";
        run.report.notice("atom.paging-loop", url, message);
        Ok(false)
    }

    fn read(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        url: &str,
        since: Timestamp,
        seen: &mut Seen,
    ) -> Result<Read, Error> {
        let (requests, mut reading) = (run.requests, run.reading_changes(url));
        read_feed(requests, url, &mut |feed, entry| {
            self.note(run, (feed, entry), url, since, (seen, &mut reading))?;
            Ok(Go::On)
        })
    }

    fn note(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        (feed, entry): (&Feed, &Entry),
        page: &str,
        since: Timestamp,
        (seen, reading): (&mut Seen, &mut ReadingChanges),
    ) -> Result<(), Error> {
        self.newest = self.newest.max(entry.updated);
        let fragment = Fragment::of(feed, entry);
        let (Some(fragment), false) = (fragment, entry.resources.is_empty()) else {
            self.unusable_count += 1;
            self.unusable = self.unusable.into_iter().chain(entry.updated).min();
            self.first_unusable.get_or_insert_with(|| {
                let what = if fragment.is_none() { "link to a fragment" } else { "resource" };
                format!("line {} of {page}: an entry without a {what}", entry.line)
            });
            return Ok(());
        };
        for resource in &entry.resources {
            run.note_change(&fragment.listed(entry, resource, page), since, seen, reading)?;
        }
        Ok(())
    }

    /// Why the feed does not continue what was seen: its server was restored, or its clock went
    /// back.
    fn went_back(&self, since: Option<Timestamp>) -> Option<String> {
        let since = since?;
        let updated = self.updated.filter(|updated| *updated < since)?;
        // The entry that was seen last is listed again; without it, it never was.
        self.newest.is_none_or(|newest| newest < since).then(|| {
            format!("the feed was updated at {updated}, and changes of {since} were seen already")
        })
    }

    /// Reports entries that cannot be used: what they are about may differ from the Source.
    fn report(&self, run: &mut PlanContext<'_, '_>, feed: &str) {
        let Some(first) = &self.first_unusable else { return };
        let message = format!(
            "entries that cannot be used: {}; {first}\n  help: they are read again by every run; \
             `--baseline` compares with a snapshot",
            self.unusable_count
        );
        run.report.list_failed("sdshare.resource", feed, &message);
    }

    /// Up to when the feed was read. What changed while its pages were read may stand on one that
    /// was read before, and entries that cannot be used are read again.
    fn seen_until(&self, run: &mut PlanContext<'_, '_>, feed: &str) -> Option<Timestamp> {
        let newest = run.not_after(feed, "updated", self.newest?, self.began);
        let began = self.began.filter(|_| self.visited.len() > 1);
        [Some(newest), began, self.unusable].into_iter().flatten().min()
    }
}
