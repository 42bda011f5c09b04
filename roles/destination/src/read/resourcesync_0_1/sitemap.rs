//! Sitemaps and their indexes: the snapshot of a Source [rs-0.1 §3].
//!
//! [`walk`] is the only way through an index and its Sitemaps; a run, an audit and the filters' test
//! differ in what they do with what is listed, and with Sitemaps that cannot be read.

use super::change_sets::note_others;
use super::document::{Part, Read, is_change_set, read, unasked};
use super::entry_points::EntryPoints;
use super::listed::{categories, listed};
use crate::admit::Admission;
use crate::error::{Error, ExitCode};
use crate::filter::Categories;
use crate::options::SyncOptions;
use crate::plan::listed::Listed;
use crate::read::resourcesync::document::Go;
use crate::requests::Requests;
use crate::select::is_any;
use abreast_resourcesync::v0_1::{Change, Entry, Head, Root};
use abreast_webtypes::Timestamp;
use std::collections::{HashSet, VecDeque};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most Sitemaps of one walk, in all indexes.
const SITEMAPS_MAX: usize = 200_000;

/// A consumer of the resources of a Sitemap.
pub(super) trait Visitor {
    /// A document begins, again when its transfer is repeated.
    fn begin(&mut self) {}

    /// A resource is listed.
    fn listed(&mut self, listed: &Listed<'_>) -> Result<(), Error>;

    /// A resource is listed as deleted [rs-0.1 §3.1.2].
    fn deleted(&mut self) {}

    /// A document was read to its end. An error counts as one of that document.
    fn end(&mut self, _url: &str, _read: &Read) -> Result<(), Error> {
        Ok(())
    }

    /// One of `named` documents that an index names cannot be read; an error ends the walk.
    fn failed(&mut self, url: &str, error: Error, named: usize) -> Result<(), Error>;

    /// Whether the Sitemaps that were left out because of their categories are read after all.
    fn needs_all(&mut self) -> Result<bool, Error> {
        Ok(false)
    }
}

/// The result of a walk.
pub(super) struct Walked {
    /// The document that it began with.
    pub(super) top: Read,
    /// When the snapshot was last modified, if that is stated.
    pub(super) modified: Option<Timestamp>,
    /// The newest time of a resource.
    pub(super) newest: Option<Timestamp>,
    /// What the documents name.
    pub(super) entry_points: EntryPoints,
}

/// A Sitemap that an index names.
struct Member {
    url: String,
    modified: Option<Timestamp>,
    /// Its categories show that nothing wanted is in it.
    is_other: bool,
}

/// One walk.
struct Walk<'a> {
    requests: &'a Requests<'a>,
    options: &'a SyncOptions,
    waiting: VecDeque<(Member, u8)>,
    /// How many Sitemaps were named so far, in all indexes.
    named: usize,
    newest: Option<Timestamp>,
    now: Timestamp,
}

/// Reads a Sitemap, or an index and its Sitemaps, and hands over each resource.
///
/// # Errors
/// The first document cannot be read; what the visitor does not pass over.
pub(super) fn walk(
    requests: &Requests<'_>,
    options: &SyncOptions,
    sitemap: &str,
    visitor: &mut dyn Visitor,
) -> Result<Walked, Error> {
    let mut walk =
        Walk { requests, options, waiting: VecDeque::new(), named: 0, newest: None, now: now() };
    let mut admission = Admission::new(sitemap, &options.allow_hosts, options.allow_downgrade);
    let top = walk.read_one(sitemap, 0, visitor)?;
    let mut entry_points = EntryPoints::of(&top, sitemap, options);
    let mut seen = HashSet::from([sitemap.to_owned(), top.answered.url.clone()]);
    let mut modified = top.modified();
    let (named, mut others) = (walk.waiting.len(), VecDeque::new());
    loop {
        let Some((member, depth)) = walk.waiting.pop_front() else {
            if others.is_empty() || !visitor.needs_all()? {
                break;
            }
            walk.waiting = std::mem::take(&mut others);
            continue;
        };
        requests.check_cancelled()?;
        if member.is_other {
            others.push_back((Member { is_other: false, ..member }, depth));
            continue;
        }
        let url = &member.url;
        let read = if !seen.insert(url.clone()) {
            let message = format!("an index names {url} more than once, or names itself");
            Err(Error::new("list.cycle", ExitCode::Limit, message))
        } else if let Err(refusal) = admission.check(url) {
            let message = format!("{url}: {}", refusal.message());
            Err(Error::new(refusal.code(), ExitCode::SourceInvalid, message))
        } else {
            walk.read_one(url, depth, visitor)
        };
        match read {
            Ok(read) => {
                // A Sitemap older than its index states comes from some cache: the changes in
                // between are replayed.
                if let (Some(own), Some(stated)) = (read.modified(), member.modified)
                    && own < stated
                {
                    modified = modified.map(|modified| modified.min(own));
                }
                let of_member = EntryPoints::of(&read, url, options);
                entry_points.add(EntryPoints { sitemap: None, ..of_member });
            }
            Err(error) if is_of_document(&error) => visitor.failed(url, error, named)?,
            Err(error) => return Err(error),
        }
    }
    Ok(Walked { top, modified, newest: walk.newest, entry_points })
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

impl Walk<'_> {
    fn read_one(&mut self, url: &str, depth: u8, visitor: &mut dyn Visitor) -> Result<Read, Error> {
        let (before, named_before) = (self.waiting.len(), self.named);
        let (requests, mut others) = (self.requests, 0);
        let answer = read(requests, url, None, &mut |part| {
            match part {
                Part::Begin(head) => {
                    check_is_sitemap(head, url)?;
                    self.waiting.truncate(before);
                    self.named = named_before;
                    others = 0;
                    visitor.begin();
                }
                Part::Entry(head, entry) if head.root == Root::SitemapIndex => {
                    self.add_member(url, depth, entry)?;
                }
                Part::Entry(_, entry) if entry.protocol.is_some() => others += 1,
                Part::Entry(_, entry) => {
                    let time = entry.time.map(|time| time.instant);
                    self.newest = self.newest.max(time);
                    // One that is to be deleted is there until then.
                    let is_over = time.is_none_or(|time| time <= self.now);
                    if entry.change == Some(Change::Deleted) && is_over {
                        visitor.deleted();
                    } else {
                        visitor.listed(&listed(url, false, entry))?;
                    }
                }
            }
            Ok(Go::On)
        })?;
        let read = answer.ok_or_else(|| unasked(url))?;
        if others > 0 {
            note_others(requests, url, others);
        }
        visitor.end(url, &read)?;
        Ok(read)
    }

    fn add_member(&mut self, index: &str, depth: u8, entry: &Entry) -> Result<(), Error> {
        if depth >= 2 {
            let message = format!("{index} is an index inside an index inside an index");
            return Err(Error::new("limit.index-depth", ExitCode::Limit, message));
        }
        if self.named >= SITEMAPS_MAX {
            let message = format!(
                "{index}, with the indexes read before it, names more than {SITEMAPS_MAX} Sitemaps"
            );
            return Err(Error::new("limit.lists", ExitCode::Limit, message));
        }
        self.named += 1;
        let member = Member {
            url: entry.loc.clone(),
            modified: entry.time.map(|time| time.instant),
            is_other: is_other(entry, self.options),
        };
        self.waiting.push_back((member, depth + 1));
        Ok(())
    }
}

/// Whether the categories that an index states for a Sitemap show that nothing wanted is in it.
pub(super) fn is_other(entry: &Entry, options: &SyncOptions) -> bool {
    let own = categories(&entry.links, &entry.metas);
    // Without any, the index does not state them.
    !own.is_empty() && is_any(&options.categories, Categories::Listed(&own)) == Some(false)
}

/// # Errors
/// It is a change set: read as all there is, it would delete everything else.
fn check_is_sitemap(head: &Head, url: &str) -> Result<(), Error> {
    if !is_change_set(head, url) {
        return Ok(());
    }
    let message = format!("{url} is not a Sitemap: it is a change set");
    Err(Error::new("list.capability", ExitCode::SourceInvalid, message)
        .with_help("read as a list of all there is, it would delete everything else"))
}

/// Our own clock.
pub(super) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Hands over each resource. Sitemaps that cannot be read are left out: a run that reads them
/// reports them.
pub(super) fn each_resource(
    requests: &Requests<'_>,
    sitemap: &str,
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
    walk(requests, options, sitemap, &mut Each(each)).map(drop)
}
