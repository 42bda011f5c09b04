//! The reader of change feeds: the documents of a feed, and their contents.

use super::document::{Read, read};
use super::download::{Download, download};
use super::entity::each_change;
use super::find::{check_host, find};
use super::listed::Listed;
use super::order::newest_of;
use super::pages::{Since, turned, way};
use super::repeat::{self, Step};
use super::wanted::{hand_over_wanted, short_list};
use crate::push::announcement::{Announcement, Topic};
use crate::read::descriptions::{fetch_sorted, hand_over};
use crate::read::moved::other_source;
use crate::read::position::Position;
use crate::read::resourcesync::resource_list::{keep_indexes, known_indexes, resource_list};
use crate::read::sets::{choose, name_of};
use crate::read::walk::Walk;
use crate::read::{Finding, Offers, Reader, Snapshot, SourceSet, Start, Whole};
use crate::report::error::Error;
use crate::report::options::SyncOptions;
use crate::request::requests::Requests;
use abreast_emm::{Action, Item, Link};
use abreast_store::mirror::Mirror;
use abreast_webtypes::{Moment, SyntaxError, Timestamp};
use std::cell::OnceCell;

/// Key of the URL of the Entry Point in the database.
const ENTRY: &str = "emm-entry";
/// Key that is set if the copy started with a Resource List, so that its resources are files.
const FILES: &str = "emm-files";
/// Key of the text of the list of URIs whose entities were planned.
const PLANNED: &str = "emm-uris";

/// A change feed.
#[derive(Debug, Default)]
pub(crate) struct Emm {
    pub(super) entry: Read,
    /// The full download, after its first use.
    download: OnceCell<Option<Download>>,
    /// The feed was followed by an earlier run, so the Entry Point must be read again first.
    is_followed: bool,
    /// The activities that the walks of this run have found.
    listed: Listed,
    state: State,
}

/// The properties of the feed in the database of a copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct State {
    entry: Option<String>,
    only_files: bool,
    planned: Option<String>,
    indexes: Vec<String>,
}

impl State {
    fn known(mirror: &Mirror) -> Result<Self, Error> {
        Ok(Self {
            entry: mirror.meta(ENTRY)?,
            only_files: mirror.meta(FILES)?.is_some(),
            planned: mirror.meta(PLANNED)?,
            indexes: known_indexes(mirror)?,
        })
    }
}

impl Emm {
    /// Whether the full download shows that the resources are files.
    fn is_of_files(&self, requests: &Requests<'_>, options: &SyncOptions) -> Result<bool, Error> {
        Ok(matches!(self.download(requests, options)?, Some(Download::List(_))))
    }

    fn hand_over_wanted(&self, walk: &mut Walk<'_, '_>, anew: bool) -> Result<(), Error> {
        let Some(list) = walk.options.uris.as_deref() else { return Ok(()) };
        let is_of_files = self.is_of_files(walk.requests, walk.options)?;
        hand_over_wanted(list, &self.entry, is_of_files, walk, anew)
    }

    /// The full download from which a copy starts, if it can be read.
    fn download(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Option<&Download>, Error> {
        if let Some(known) = self.download.get() {
            return Ok(known.as_ref());
        }
        let found = download(requests, options, &self.entry)?;
        Ok(self.download.get_or_init(|| found).as_ref())
    }

    /// The reason why a copy from this feed is incomplete, if its full download cannot be read. A
    /// page for people is not a full download.
    fn lacks(&self) -> Option<String> {
        let is_data = |link: &&Link| link.media_type.as_deref() != Some("text/html");
        let other = self.entry.document.downloads.iter().find(is_data)?;
        Some(format!(
            "resources that have not changed since the feed began are not copied: its full download is neither RDF \
             nor a Resource List\n  help: download it yourself: {}",
            other.href
        ))
    }

    /// Passes on the entities of a short list of URIs. The feed shows which of these entities were
    /// deleted.
    fn snapshot_of_list(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        let position = walk.position();
        let known = position.until().filter(|_| position.due.is_none());
        let anew = walk.options.baseline || known.is_none();
        let everything = || Moment::exact(Timestamp::MIN);
        let changes_from = if !walk.plans() {
            let updated = match self.download(walk.requests, walk.options)? {
                Some(Download::Descriptions(whole)) => whole.updated,
                _ => None,
            };
            updated.map_or_else(everything, Moment::exact)
        } else if let Some(known) = known {
            known
        } else {
            let (way, _) = way(walk.requests, walk.options, &self.entry, &mut |_| ())?;
            let newest = Some(Since::time(Timestamp::MAX));
            let end = way.walk(walk, &self.entry, newest, &mut |_, _| Ok(()))?;
            let newest = end.newest.filter(|_| end.cut.is_none());
            newest.map_or_else(everything, |newest| {
                walk.not_after(&self.entry.url, "published", newest.into())
            })
        };
        walk.begin_snapshot(&self.entry.url)?;
        self.hand_over_wanted(walk, anew)?;
        self.state.planned = walk.options.uris.as_ref().map(|uris| uris.text().to_owned());
        Ok(Snapshot { changes_from: Some(changes_from), ..Snapshot::default() })
    }
}

/// The URLs that identify a feed of IIIF, without their scheme; empty for other feeds.
fn names_of(entry: &Read) -> Vec<String> {
    let document = &entry.document;
    let names = [
        Some(&entry.url),
        Some(&entry.answered.url),
        document.id.as_ref(),
        document.part_of.as_ref(),
    ];
    let names = names.into_iter().flatten().filter(|_| document.is_iiif);
    names.map(|url| without_scheme(url).to_owned()).collect()
}

fn without_scheme(url: &str) -> &str {
    url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/')
}

/// Whether an activity adds to, or removes from, a feed other than this one [iiif-discovery §3.5].
fn is_of_other_feed(item: &Item, own: &[String]) -> bool {
    let named = match item.action {
        action if action.is_put() => item.target(),
        Action::Remove => item.origin(),
        _ => return false,
    };
    let is_own = |url: &String| own.iter().any(|own| own == without_scheme(url));
    !own.is_empty() && !named.is_empty() && !named.iter().any(is_own)
}

fn is_change(item: &Item) -> bool {
    !matches!(item.action, Action::Refresh | Action::Other)
}

/// # Errors
/// The copy is of another feed, `known`.
fn check_same(entry: &Read, known: Option<&str>) -> Result<(), Error> {
    let Some(known) = known.filter(|known| *known != entry.url) else { return Ok(()) };
    let message = format!("this is a copy of {known}, not of {}", entry.url);
    Err(other_source(message))
}

impl Reader for Emm {
    fn find(&mut self, finding: &mut Finding<'_, '_>) -> Result<Start, Error> {
        let (requests, options) = (finding.requests, finding.options);
        let found = find(requests, options)?;
        let mut state = finding.known.map(State::known).transpose()?.unwrap_or_default();
        if !finding.is_moved {
            check_same(&found, state.entry.as_deref())?;
        }
        if !finding.is_read_only {
            check_set(&found, options)?;
        }
        state.entry = Some(found.url.clone());
        *self = Self { entry: found, state, ..Self::default() };
        let is_new = match finding.known.filter(|_| !finding.is_read_only) {
            Some(mirror) => Position::load(mirror)?.until().is_none(),
            None => true,
        };
        let has_list = is_new && self.download(requests, options)?.is_some();
        if finding.is_read_only
            && let Some(message) = self.lacks().filter(|_| !has_list && options.uris.is_none())
        {
            (finding.notice)("emm.partial", &self.entry.url, &message);
        }
        let first = self.entry.url.clone();
        Ok(Start { first, uri_space: None, has_list, is_found_anew: !finding.is_read_only })
    }

    fn keep(&self, mirror: &Mirror) -> Result<(), Error> {
        let State { entry, only_files, planned, indexes } = &self.state;
        if State::known(mirror)? == self.state {
            return Ok(());
        }
        mirror.set_meta(ENTRY, entry.as_deref())?;
        mirror.set_meta(FILES, only_files.then_some("1"))?;
        mirror.set_meta(PLANNED, planned.as_deref())?;
        keep_indexes(mirror, indexes)
    }

    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        let url = find(requests, options)?.url;
        Ok(vec![SourceSet { name: name_of(&url).to_owned(), url }])
    }

    fn offers(&self, mirror: Option<&Mirror>, options: &SyncOptions) -> Result<Offers, Error> {
        let wanted = options.uris.as_ref().map(|uris| uris.text());
        // A repair plans resources again that came with a full download, and may not be available
        // individually.
        let has_unaddressed = mirror.map(Mirror::has_unaddressed).transpose()?.unwrap_or(false);
        Ok(Offers {
            whole: Whole::Snapshot,
            changes: Some(self.entry.url.clone()),
            changes_in_packages: false,
            is_comparison_due: has_unaddressed || self.state.planned.as_deref() != wanted,
        })
    }

    /// The Entry Point is the topic, if the headers of its response contain hubs.
    fn announcement(&self) -> Option<Announcement> {
        let topic_in = |_: &[u8], url: &str| -> Result<Option<Topic>, SyntaxError> {
            Ok(Some(Topic { url: url.to_owned(), ..Topic::default() }))
        };
        let url = self.state.entry.clone()?;
        Some(Announcement { url, topic_in, offers: Vec::new() })
    }

    fn snapshot(&mut self, walk: &mut Walk<'_, '_>) -> Result<Snapshot, Error> {
        let (requests, options) = (walk.requests, walk.options);
        walk.clock(&self.entry.answered);
        if short_list(&self.entry, requests, options)?.is_some() {
            return self.snapshot_of_list(walk);
        }
        self.download(requests, options)?;
        let everything = Some(Moment::exact(Timestamp::MIN));
        let mut snapshot = match self.download.get().and_then(Option::as_ref) {
            Some(Download::List(list)) => {
                let list = list.clone();
                let read = resource_list(walk, &list, true, &mut self.state.indexes)?;
                self.state.only_files = true;
                read
            }
            Some(Download::Descriptions(whole)) => {
                for file in &whole.files {
                    check_host(options, &self.entry.url, &file.url)?;
                }
                if let Some(future) = whole.future {
                    let message = format!(
                        "the full download states {future}, which is later than the server's clock: changes of any time are read"
                    );
                    walk.notice("time.future", whole.name(), &message);
                }
                let known = walk.position().snapshot();
                if walk.is_conditional() && whole.updated.is_some_and(|at| known >= Some(at)) {
                    return Ok(Snapshot { is_unchanged: true, ..Snapshot::default() });
                }
                let as_of = whole.updated.map(Moment::exact);
                let read = walk.with_downloads(|walk, downloads| {
                    let sorted = fetch_sorted(requests, whole.name(), &whole.files, downloads)?;
                    walk.begin_snapshot(whole.name())?;
                    let count = hand_over(walk, whole.name(), &sorted, as_of)?;
                    Ok::<_, Error>((count, sorted.lists_all()))
                });
                match read {
                    Err(error)
                        if matches!(error.status(), Some(404 | 410))
                            && (walk.plans() || walk.is_probe()) =>
                    {
                        let message = format!(
                            "{error}; the feed alone may lack resources that have not changed since it began"
                        );
                        walk.fault("emm.download", whole.name(), &message)?;
                        self.state.planned = None;
                        return Ok(Snapshot { is_missing: true, ..Snapshot::default() });
                    }
                    Err(error) => return Err(error),
                    Ok((count, lists_all)) => {
                        self.state.only_files = false;
                        // A snapshot without descriptions is not evidence.
                        let as_of = as_of.filter(|_| count > 0);
                        let changes_from = as_of.or(everything);
                        Snapshot { lists_all, as_of, changes_from, ..Snapshot::default() }
                    }
                }
            }
            None => {
                if let Some(message) =
                    self.lacks().filter(|_| options.uris.is_none() && walk.plans())
                {
                    walk.notice("emm.partial", &self.entry.url, &message);
                }
                if options.uris.is_none() {
                    self.state.planned = None;
                    return Ok(Snapshot::default());
                }
                walk.begin_snapshot(&self.entry.url)?;
                Snapshot { changes_from: everything, ..Snapshot::default() }
            }
        };
        self.state.planned = None;
        if let Some(uris) = &options.uris {
            self.hand_over_wanted(walk, false)?;
            self.state.planned = Some(uris.text().to_owned());
        }
        snapshot.is_missing = false;
        Ok(snapshot)
    }

    fn changes(&mut self, walk: &mut Walk<'_, '_>) -> Result<(), Error> {
        let (requests, options) = (walk.requests, walk.options);
        if std::mem::replace(&mut self.is_followed, true) {
            self.entry = read(requests, &self.entry.url)?;
        }
        let only_files =
            if walk.plans() { self.state.only_files } else { self.is_of_files(requests, options)? };
        let own = names_of(&self.entry);
        let (mut newest, mut on_the_way) = (None, Listed::default());
        let found = way(requests, options, &self.entry, &mut |page| {
            newest = newest.max(newest_of(page));
            on_the_way.add(page.document.items.iter());
        })
        .inspect_err(|_| {
            // If a server is restored before the next run, this change will be missing.
            if let Some(newest) = newest {
                walk.covers_until(newest.into());
            }
        })?;
        let known = walk.marks().newest_known();
        let found = (turned(requests, options, found.0, known)?, found.1);
        // A copy that has something needs the deletions before a refresh too.
        let is_new = walk.is_new_copy()?;
        let (since, known) = (walk.since().map(Moment::first), walk.marks().oldest());
        let since = since.filter(|since| *since > Timestamp::MIN);
        let reach = since
            .map(|cursor| Since { cursor, known: known.map_or(cursor, |known| known.min(cursor)) });
        let reach = reach.or((!is_new).then_some(Since::time(Timestamp::MIN)));
        let (mut of_others, mut unknown, mut usable) = (0, 0, 0);
        let mut begin = None;
        let mut visit = |walk: &mut Walk<'_, '_>, step: Step<'_, '_>| {
            let (page, is_sure) = match step {
                Step::Page(page, is_sure) => (page, is_sure),
                Step::Again => {
                    begin = None;
                    return walk.again();
                }
            };
            if page.is_back {
                walk.reads_back(None);
                walk.earlier_document();
            } else {
                walk.later_document();
            }
            // The place of an activity without a usable time is the start of its page.
            let times = page.items.iter().filter_map(|item| item.moment);
            let oldest =
                times.filter(|time| !walk.is_future(time.first())).min_by_key(|it| it.first());
            begin = oldest.or(begin);
            walk.begin_changes(page.url, begin, None);
            for item in &page.items {
                if is_of_other_feed(item, &own) {
                    of_others += 1;
                    continue;
                }
                if item.objects.is_empty() && is_change(item) {
                    walk.unusable(|| "an activity without the IRI of an entity".to_owned());
                }
                unknown += u64::from(item.action == Action::Other);
                usable += u64::from(is_change(item) && !item.objects.is_empty());
                // In another order, patches would lead to an earlier version.
                let page = (page.document, page.url);
                each_change(page, item, is_sure, only_files, &mut |listed| walk.change(listed))?;
            }
            Ok(())
        };
        let seen = if walk.plans() {
            repeat::walk(walk, (&self.entry, &mut self.listed), found, reach, &mut visit)?
        } else {
            let reach = since.map(Since::time);
            found.0.walk(walk, &self.entry, reach, &mut |walk, page| {
                visit(walk, Step::Page(page, false))
            })?
        };
        let name = &self.entry.url;
        if of_others > 0 {
            let message = format!(
                "activities that add to, or remove from, other feeds are left out: {of_others}"
            );
            walk.notice("emm.other", name, &message);
        }
        if unknown > 0 && usable == 0 && !walk.marks().are_any() {
            walk.unusable(|| format!("all {unknown} activities are of types that are not known"));
        }
        if is_new && since.is_none() && seen.pages > 0 && seen.first.is_none() {
            let message = "the feed has no activities\n  \
                           help: if it should have some, check the address, for example the name of a type in it; \
                           feeds begin again when their server is restored from a backup";
            walk.notice("emm.nothing", name, message);
        }
        walk.walked.end = seen.end;
        // A page on the way may now come from a cache, and lack activities that it had before.
        let cursor = reach.map_or(Timestamp::MIN, |reach| reach.cursor);
        let is_future = |time| walk.is_future(time);
        let lacks = walk.plans()
            && seen.cut.is_none()
            && self.listed.lacks(&on_the_way, cursor, &is_future);
        walk.walked.is_unstable = seen.is_unstable || lacks;
        if let Some(cut) = seen.cut {
            walk.cut(cut);
        }
        Ok(())
    }

    /// An entity that cannot be fetched is not deleted [iiif-discovery §4.2].
    fn is_gone_if_empty(&self) -> bool {
        false
    }
}

fn check_set(found: &Read, options: &SyncOptions) -> Result<(), Error> {
    let only = [SourceSet { name: name_of(&found.url).to_owned(), url: found.url.clone() }];
    match &options.set {
        Some(wanted) => choose(&only, Some(wanted), &options.url).map(drop),
        None => Ok(()),
    }
}
