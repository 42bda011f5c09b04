//! The fragments feed: what changed since the last update that was seen [sdshare §Fragments Feed,
//! §Fragment Processing].

use super::feed::{Read, read_feed};
use crate::admit::Admission;
use crate::diagnostics::Remark;
use crate::error::{Error, ExitCode};
use crate::options::SyncOptions;
use crate::plan::changes::{Followed, ReadingChanges, Seen};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::pieces::Go;
use crate::requests::Requests;
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

/// The pages of a feed, one after the other.
pub(super) struct Pages<'p> {
    feed: &'p str,
    next: Option<String>,
    visited: HashSet<String>,
    admission: Admission,
}

impl<'p> Pages<'p> {
    pub(super) fn new(feed: &'p str, since: Option<Timestamp>, options: &SyncOptions) -> Self {
        let next = since.map_or_else(|| feed.to_owned(), |since| with_since(feed, since));
        let admission = Admission::new(feed, &options.allow_hosts, options.allow_downgrade);
        Self { feed, next: Some(next), visited: HashSet::new(), admission }
    }

    /// The page to be read next; `Err(None)` when it was read already.
    fn begin(&mut self) -> Result<Option<String>, Option<Error>> {
        let Some(url) = self.next.take() else { return Ok(None) };
        if self.admission.check(&url).is_err() {
            let message =
                format!("the next page of {} is {url}, on a host that is not allowed", self.feed);
            return Err(Some(
                Error::new("uri.authority", ExitCode::SourceInvalid, message)
                    .with_help("allow hosts you trust with `--allow-host HOST`"),
            ));
        }
        if self.visited.len() == PAGES_MAX {
            let message = format!("{} has more than {PAGES_MAX} pages", self.feed);
            return Err(Some(Error::new("limit.pages", ExitCode::Limit, message)));
        }
        if self.visited.insert(url.clone()) { Ok(Some(url)) } else { Err(None) }
    }

    /// Reads the next page and hands over its entries, with its URL; `None` when there are no more.
    pub(super) fn read(
        &mut self,
        requests: &Requests<'_>,
        each: &mut dyn FnMut(&str, &Feed, &Entry) -> Result<(), Error>,
    ) -> Result<Option<Read>, Error> {
        let url = match self.begin() {
            Ok(None) => return Ok(None),
            Ok(Some(url)) => url,
            Err(Some(error)) => return Err(error),
            Err(None) => {
                let message = "its next page is one that was read already, and taken for the end";
                let (code, message) = ("atom.paging-loop", message.to_owned());
                requests.diagnostics.note(self.feed, Remark { code, line: 1, message, count: 1 });
                return Ok(None);
            }
        };
        let read = read_feed(requests, &url, &mut |feed, entry| {
            each(&url, feed, entry)?;
            Ok(Go::On)
        })?;
        self.next = read.feed.link(&Relation::Next).map(|link| link.href.clone());
        Ok(Some(read))
    }

    fn are_several(&self) -> bool {
        self.visited.len() > 1
    }
}

/// What was read of a feed.
#[derive(Default)]
struct Noted {
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
    /// Whether a deletion is marked, and whether anything was listed that is not.
    marks_deletions: bool,
    may_delete: bool,
}

/// Plans what changed since a time, or everything that a feed lists. What cannot be used is
/// reported once, as `has_reported` has it.
pub(super) fn plan_fragments(
    run: &mut PlanContext<'_, '_>,
    feed: &str,
    since: Option<Timestamp>,
    has_reported: &mut bool,
) -> Result<Followed, Error> {
    let asked = since.map(|since| match since.as_micros() % 1_000_000 {
        0 => since.plus_micros(-OVERLAP),
        _ => since,
    });
    run.plan_noted(&mut |run| {
        let (mut seen, mut noted) = (Seen::default(), Noted::default());
        let mut reading = run.reading_changes(feed);
        let mut pages = Pages::new(feed, asked, run.planner.options);
        let (requests, cursor) = (run.requests, asked.unwrap_or(Timestamp::MIN));
        while let Some(read) = pages.read(requests, &mut |page, feed, entry| {
            noted.note(run, (feed, entry), page, cursor, (&mut seen, &mut reading))
        })? {
            if !pages.are_several() {
                (noted.began, noted.updated) = (Some(read.answered.date), read.feed.updated);
            }
        }
        if let Some(why) = noted.went_back(since) {
            return Ok(Followed::Gap(why));
        }
        if !std::mem::replace(has_reported, true) {
            noted.report(run, feed);
        }
        run.plan_coming()?;
        run.keep_common(&mut seen)?;
        let newest = noted.seen_until(run, feed, pages.are_several());
        keep_seen(run.planner.mirror, since.max(newest))?;
        Ok(if seen.entries == 0 { Followed::Unchanged } else { Followed::Planned })
    })
}

impl Noted {
    fn note(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        (feed, entry): (&Feed, &Entry),
        page: &str,
        cursor: Timestamp,
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
        self.marks_deletions |= entry.is_deleted;
        self.may_delete |= fragment.describes && !entry.is_deleted;
        for resource in &entry.resources {
            run.note_change(&fragment.listed(entry, resource, page), cursor, seen, reading)?;
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
        if run.planner.options.dry_run && self.may_delete && !self.marks_deletions {
            let message = "fragments are not read in a dry run: a resource whose fragment is empty is reported as fetched, \
                and a run deletes it";
            run.report.notice("sdshare.dry-run", feed, message);
        }
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
    fn seen_until(
        &self,
        run: &mut PlanContext<'_, '_>,
        feed: &str,
        are_several: bool,
    ) -> Option<Timestamp> {
        let newest = run.not_after(feed, "updated", self.newest?, self.began);
        let began = self.began.filter(|_| are_several);
        [Some(newest), began, self.unusable].into_iter().flatten().min()
    }
}
