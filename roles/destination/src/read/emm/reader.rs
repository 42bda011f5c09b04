//! The reader of change feeds: what is read, in which order, and the plan that results.

use super::document::{Read, read};
use super::download::{Download, download};
use super::entity::{each_change, may_have_patch};
use super::find::{check_host, find};
use super::repeat::{self, Step};
use super::walk::{Cut, Since, newest_of, way};
use super::wanted::{each_wanted, forget_planned, is_planned};
use crate::error::{Error, ExitCode};
use crate::events::{Event, Mode, Observer, Problem};
use crate::options::SyncOptions;
use crate::package::download::Downloads;
use crate::plan::changes::{Followed, Seen};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::push::Topic;
use crate::read::boundary::Boundary;
use crate::read::descriptions::{fetch_sorted, plan_descriptions};
use crate::read::resourcesync::resource_list::{ResourceLists, plan_named_list};
use crate::read::sets::{choose, name_of};
use crate::read::sitemap::walk;
use crate::read::{Announcement, Expecting, Reader, SourceSet, Start};
use crate::requests::Requests;
use crate::state::key;
use abreast_emm::{Action, Item, Link};
use abreast_store::mirror::{Mirror, PendingCounts};
use abreast_webtypes::{SyntaxError, Timestamp};
use std::cell::OnceCell;

/// The Entry Point.
const ENTRY: &str = "emm-entry";
/// The time up to which changes were seen, microseconds.
const SEEN: &str = "emm-seen";
/// The time of the newest activity of the feed when it was read last, microseconds. A full download
/// may be of a later time.
const NEWEST: &str = "emm-newest";
/// The run that last planned from the feed. What it wrote, or later ones, may be newer than the
/// changes that were seen.
const RUN: &str = "emm-run";
/// The changes that were seen last.
const LAST: &str = "emm-last";
/// Set where the copy began with a Resource List: its resources are files.
const FILES: &str = "emm-files";

/// A change feed.
#[derive(Debug, Default)]
pub(crate) struct Emm {
    pub(super) entry: Read,
    /// The full download, once it was needed.
    download: OnceCell<Option<Download>>,
    /// What cannot be used was reported in this run.
    has_reported: bool,
}

impl Emm {
    fn start(&self, has_list: bool) -> Start {
        Start { first: self.entry.url.clone(), uri_space: None, has_list }
    }

    /// Whether its full download shows that its resources are files.
    pub(super) fn is_of_files(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<bool, Error> {
        Ok(matches!(self.download(requests, options)?, Some(Download::List(_))))
    }

    /// The full download that a copy begins with, if one can be read.
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

    /// What a copy by this feed alone lacks, where its full download cannot be read. A page for people
    /// is none.
    fn lacks(&self) -> Option<String> {
        let is_data = |link: &&Link| link.media_type.as_deref() != Some("text/html");
        let other = self.entry.document.downloads.iter().find(is_data)?;
        Some(format!(
            "resources that have not changed since the feed began are not copied: its full download is neither RDF \
             nor a Resource List\n  help: download it yourself: {}",
            other.href
        ))
    }

    /// Plans what changed since a time, or all that the feed lists.
    pub(super) fn follow(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Followed, Error> {
        let (requests, options) = (run.requests, run.planner.options);
        let name = self.entry.url.clone();
        let report_all = !std::mem::replace(&mut self.has_reported, true);
        let own = names_of(&self.entry);
        let only_files = run.planner.mirror.meta(FILES)?.is_some();
        let found = way(requests, options, &self.entry)?;
        let mut glimpsed = newest_of(&found.0.begin().document);
        note_newest(run.planner.mirror, glimpsed)?;
        let mut boundary = Boundary::read(run.planner.mirror, LAST)?;
        let planned = run.plan_noted(&mut |run| {
            let (mut seen, mut reading) = (Seen::default(), run.reading_changes(&name));
            let cursor = since.unwrap_or(Timestamp::MIN);
            // A copy that has something needs the deletions before a refresh too.
            let is_new = run.planner.mirror.count_rows_up_to(1)? == 0
                && run.planner.mirror.pending_counts()? == PendingCounts::default();
            let everything = (!is_new).then_some(Since::time(Timestamp::MIN));
            let (mut useless, mut of_others) = (0, 0);
            let has_descriptions = run.planner.mirror.has_bodies()?;
            let known = boundary.begin();
            let whole = since.map(|cursor| Since {
                cursor,
                known: known.map_or(cursor, |known| known.min(cursor)),
            });
            let whole = whole.or(everything);
            let walked = repeat::walk(requests, options, &self.entry, found.clone(), whole, &mut |step| {
                let (page, is_sure) = match step {
                    Step::Page(page, is_sure) => (page, is_sure),
                    Step::Again => {
                        seen.read_again();
                        return Ok(());
                    }
                };
                glimpsed = glimpsed.max(newest_of(page.document));
                for item in &page.document.items {
                    if let (Some(time), Some(object)) = (item.time, item.objects.first()) {
                        boundary.note(time, &object.id);
                    }
                }
                if page.is_back {
                    seen.earlier_list();
                } else {
                    seen.next_list();
                }
                for item in &page.items {
                    if is_of_other_feed(item, &own) {
                        of_others += 1;
                        continue;
                    }
                    useless += u64::from(item.objects.is_empty() && is_change(item));
                    // In another order, patches would lead to an earlier version.
                    let patch = if is_sure { kept_patch(run, item, cursor)? } else { None };
                    let page = (page.document, page.url);
                    each_change(page, item, patch, only_files, &mut |listed| {
                        // It is in the full download, which does not state its time.
                        if let Some(changed) = listed.changed.filter(|time| *time < cursor)
                            && has_descriptions
                            && !listed.is_deletion()
                        {
                            let mirror = run.planner.mirror;
                            mirror.date_description(listed.uri, changed.as_micros())?;
                        }
                        run.note_change(listed, cursor, &mut seen, &mut reading)
                    })?;
                }
                Ok(())
            })?;
            // A full comparison does not need the former end.
            let before = since.map_or(Ok(None), |_| time_of(run.planner.mirror, NEWEST))?;
            // Behind a loop there may be newer changes.
            let is_whole = walked.cut != Some(Cut::Newer);
            if let (Some(before), Some(newest)) = (before, walked.newest)
                && newest < before
                && is_whole
            {
                return Ok(Followed::Gap(format!(
                    "the feed ends at {newest}, and changes of {before} were seen already"
                )));
            }
            if since.is_some() && is_whole && boundary.has_lost(walked.end) {
                let why = "the feed does not have the changes any more that were seen last";
                return Ok(Followed::Gap(why.to_owned()));
            }
            if of_others > 0 {
                let message =
                    format!("activities that add to, or remove from, other feeds are left out: {of_others}");
                run.report.notice("emm.other", &name, &message);
            }
            if report_all && useless > 0 {
                let message = format!("activities without the IRI of an entity: {useless}");
                run.report.list_failed("emm.object", &name, &message);
            }
            if is_new && since.is_none() && walked.pages > 0 && walked.first.is_none() {
                let message = "the feed has no activities\n  \
                               help: if it should have some, check the address, for example the name of a type in it; \
                               feeds begin again when their server is restored from a backup";
                run.report.notice("emm.nothing", &name, message);
            }
            if walked.cut == Some(Cut::Older) {
                let message = "its pages do not lead to the changes that are known: those between may be missing\n  \
                               help: they are read again by every run; `--baseline` compares with all";
                run.report.list_failed("emm.paging-loop", &name, message);
            }
            if walked.is_unstable {
                let message = "its pages changed each time they were read: changes may be missing\n  \
                               help: they are read again by the next run";
                run.report.list_failed("list.unstable", &name, message);
            }
            run.plan_coming()?;
            if since.is_none()
                && run.planner.mirror.count_rows_up_to(1)? == 0
                && run.planner.mirror.pending_counts()?.fetches == 0
            {
                run.planner.selection.report_nothing(&name, seen.entries, run.report);
            }
            run.keep_common(&mut seen)?;
            let is_all = walked.cut != Some(Cut::Older) && !walked.is_unstable;
            let newest = walked.newest.filter(|_| is_all);
            let newest =
                newest.map(|newest| run.not_after(&name, "published", newest, walked.began));
            keep_time(run.planner.mirror, SEEN, since.max(newest))?;
            keep_time(run.planner.mirror, NEWEST, glimpsed.max(before.filter(|_| !is_whole)))?;
            boundary.keep(run.planner.mirror, walked.cut.is_some() || walked.is_unstable)?;
            run.planner.mirror.set_meta(RUN, Some(&run.planner.epoch.to_string()))?;
            Ok(if seen.entries == 0 { Followed::Unchanged } else { Followed::Planned })
        });
        // Should a server be restored before the next run, what this one saw is missing then.
        if planned.as_ref().is_err_and(|error| error.exit_code() != ExitCode::Cancelled) {
            note_newest(run.planner.mirror, glimpsed)?;
            boundary.keep_beside(run.planner.mirror)?;
        }
        planned
    }

    /// Plans what makes the copy equal to a Resource List, and what changed since.
    fn plan_listed(&mut self, run: &mut PlanContext<'_, '_>, list: &str) -> Result<(), Error> {
        let baseline = plan_named_list(run, list, &mut |mirror, is_whole, at| {
            forget_end(mirror)?;
            forget_planned(mirror)?;
            mirror.set_meta(FILES, Some("1"))?;
            keep_time(mirror, SEEN, at.filter(|_| is_whole))
        })?;
        if let Some(uris) = &run.planner.options.uris {
            self.plan_wanted(run, uris, false)?;
        }
        // Without all of the list, the next run compares again.
        if let Some(at) = baseline.at.filter(|_| baseline.whole) {
            self.follow(run, Some(at))?;
        }
        Ok(())
    }

    /// Hands over each change since then, or each of the feed. Returns what is not known, if the pages
    /// lead in a circle.
    fn each_changed(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        since: Option<Timestamp>,
        each: &mut dyn FnMut(Walked<'_>) -> Result<(), Error>,
    ) -> Result<Option<Cut>, Error> {
        let only_files = self.is_of_files(requests, options)?;
        let own = names_of(&self.entry);
        let (way, _) = way(requests, options, &self.entry)?;
        let seen = way.walk(requests, options, since.map(Since::time), &mut |page| {
            if page.is_back {
                each(Walked::EarlierPage)?;
            }
            let mut each = |listed: &Listed<'_>| each(Walked::Change(listed));
            let mut items = page.items.iter().filter(|item| !is_of_other_feed(item, &own));
            items.try_for_each(|item| {
                each_change((page.document, page.url), item, None, only_files, &mut each)
            })
        })?;
        Ok(seen.cut)
    }
}

/// What a walk through a feed hands over.
enum Walked<'l> {
    /// The changes that follow are earlier than those before, where their times are the same.
    EarlierPage,
    Change(&'l Listed<'l>),
}

/// Keeps the patch of an activity that is not known yet; returns where it begins.
fn kept_patch(
    run: &mut PlanContext<'_, '_>,
    item: &Item,
    cursor: Timestamp,
) -> Result<Option<u64>, Error> {
    let content = item.patch().and_then(|(_, content)| content);
    match content.filter(|_| may_have_patch(item) && item.time.is_none_or(|time| time >= cursor)) {
        Some(content) => run.planner.keep_patch(content.as_bytes()),
        None => Ok(None),
    }
}

/// The URLs by which a feed of IIIF is named, without their scheme; none of other feeds.
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
        Action::Put => item.target(),
        Action::Remove => item.origin(),
        _ => return false,
    };
    let is_own = |url: &String| own.iter().any(|own| own == without_scheme(url));
    !own.is_empty() && !named.is_empty() && !named.iter().any(is_own)
}

fn is_change(item: &Item) -> bool {
    !matches!(item.action, Action::Refresh | Action::Other)
}

fn time_of(mirror: &Mirror, key: &str) -> Result<Option<Timestamp>, Error> {
    let text = mirror.meta(key)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros))
}

/// Keeps a time, in the transaction of the plan up to then.
fn keep_time(mirror: &Mirror, key: &str, time: Option<Timestamp>) -> Result<(), Error> {
    Ok(mirror.set_meta(key, time.map(|time| time.as_micros().to_string()).as_deref())?)
}

/// Notes what a feed has, before it is planned: should a server be restored meanwhile, what was
/// fetched may be newer than the feed.
fn note_newest(mirror: &Mirror, newest: Option<Timestamp>) -> Result<(), Error> {
    match time_of(mirror, NEWEST)? {
        Some(known) if newest > Some(known) => keep_time(mirror, NEWEST, newest),
        _ => Ok(()),
    }
}

/// What the feed ended with counts no longer: all is compared.
pub(super) fn forget_end(mirror: &Mirror) -> Result<(), Error> {
    keep_time(mirror, NEWEST, None)?;
    Boundary::forget(mirror, LAST)
}

/// # Errors
/// The copy is of another feed, `known`.
fn check_same(entry: &Read, known: Option<&str>) -> Result<(), Error> {
    let Some(known) = known.filter(|known| *known != entry.url) else { return Ok(()) };
    let message = format!("this is a copy of {known}, not of {}", entry.url);
    Err(Error::new("folder.source", ExitCode::Usage, message).with_help(
        "use another folder; or, if the Source has moved, remove the state and run again",
    ))
}

impl Reader for Emm {
    fn find(&mut self, run: &mut PlanContext<'_, '_>) -> Result<Start, Error> {
        let (options, mirror) = (run.planner.options, run.planner.mirror);
        let found = find(run.requests, options)?;
        run.requests.diagnostics.report(run.report);
        check_same(&found, mirror.meta(ENTRY)?.as_deref())?;
        check_set(&found, options)?;
        run.planner.begin(run.report)?;
        mirror.set_meta(key::SOURCE_URL, Some(&options.url))?;
        mirror.set_meta(key::SET, options.set.as_deref())?;
        mirror.set_meta(ENTRY, Some(&found.url))?;
        run.planner.commit()?;
        *self = Self { entry: found, ..Self::default() };
        let is_new = time_of(mirror, SEEN)?.is_none();
        let has_list = is_new && self.download(run.requests, options)?.is_some();
        Ok(self.start(has_list))
    }

    fn find_read_only(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        known: Option<&Mirror>,
        observer: &dyn Observer,
    ) -> Result<Start, Error> {
        let found = find(requests, options)?;
        if let Some(mirror) = known {
            check_same(&found, mirror.meta(ENTRY)?.as_deref())?;
        }
        *self = Self { entry: found, ..Self::default() };
        let has_list = self.download(requests, options)?.is_some();
        if let Some(message) = self.lacks().filter(|_| !has_list && options.uris.is_none()) {
            let (code, uri) = ("emm.partial", &*self.entry.url);
            observer.event(&Event::Notice(Problem { code, uri, message: &message }));
        }
        Ok(self.start(has_list))
    }

    fn sets(
        &mut self,
        requests: &Requests<'_>,
        options: &SyncOptions,
    ) -> Result<Vec<SourceSet>, Error> {
        let url = find(requests, options)?.url;
        Ok(vec![SourceSet { name: name_of(&url).to_owned(), url }])
    }

    /// The Entry Point itself is the topic, if it names hubs in the headers of its answer.
    fn announcement(&self, mirror: &Mirror) -> Result<Option<Announcement>, Error> {
        let topic_in = |_: &[u8], url: &str| -> Result<Option<Topic>, SyntaxError> {
            Ok(Some(Topic { url: url.to_owned(), ..Topic::default() }))
        };
        Ok(mirror.meta(ENTRY)?.map(|url| Announcement { url, topic_in, offers: Vec::new() }))
    }

    fn each_resource(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        each: &mut dyn FnMut(&Listed<'_>),
    ) -> Result<(), Error> {
        let mut every = |listed: &Listed<'_>| {
            each(listed);
            Ok(())
        };
        match self.download(requests, options)? {
            Some(Download::Descriptions(whole)) => whole.each(requests, &mut every).map(drop),
            Some(Download::List(list)) => {
                let mut lists = ResourceLists::default();
                walk::each_resource(requests, options, list, &mut lists, each)
            }
            None => self
                .each_changed(requests, options, None, &mut |walked| match walked {
                    Walked::EarlierPage => Ok(()),
                    Walked::Change(listed) => every(listed),
                })
                .map(drop),
        }
    }

    fn expect(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error> {
        if let Some(list) = &options.uris {
            let is_file = self.is_of_files(requests, options)?;
            each_wanted(options, &self.entry.url, list, is_file, &mut |listed| to.listed(listed))?;
        }
        let is_short = self.short_list(requests, options)?.is_some();
        let since = match self.download(requests, options)? {
            Some(Download::Descriptions(whole)) if is_short => whole.updated,
            Some(Download::Descriptions(whole)) => {
                whole.each(requests, &mut |listed| to.listed(listed))?
            }
            Some(Download::List(list)) if !is_short => {
                let mut lists = ResourceLists::default();
                walk::expect_all(requests, options, list, &mut lists, to)?;
                lists.at
            }
            _ => None,
        };
        to.changes_since(since);
        let cut = self.each_changed(requests, options, since, &mut |walked| match walked {
            Walked::EarlierPage => {
                to.earlier_list();
                Ok(())
            }
            Walked::Change(listed) => {
                to.changed(listed, listed.changed.map_or(i64::MIN, Timestamp::as_micros))
            }
        })?;
        if cut.is_some() {
            let message = format!(
                "the pages of {} lead back to one that was read already: a copy cannot be compared with what is behind it",
                self.entry.url
            );
            return Err(Error::new("emm.paging-loop", ExitCode::Partial, message)
                .with_help("report it to the server's operator"));
        }
        Ok(())
    }

    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        let options = run.planner.options;
        let mut known = time_of(run.planner.mirror, SEEN)?;
        if !run.planner.polling.may_poll() {
            run.planner.polling.is_postponed = true;
            return Ok(());
        }
        // A repair plans resources again that came with a full download: they may have no address.
        if !options.baseline
            && !run.planner.selection.has_changed()
            && is_planned(run.planner.mirror, options)?
            && !run.planner.mirror.has_unaddressed()?
            && known.is_some()
        {
            let Followed::Gap(why) = self.follow(run, known)? else {
                run.report.summary.mode = Mode::Incremental;
                return Ok(());
            };
            let message = format!("{why}; comparing with all that the Source has now");
            run.report.notice("gap", &self.entry.url, &message);
            // Until that has succeeded.
            keep_time(run.planner.mirror, SEEN, None)?;
            known = None;
        }
        let last_run = run.planner.mirror.meta(RUN)?;
        run.planner.uncertain_from = last_run.and_then(|text| text.parse().ok());
        if let Some(list) = self.short_list(run.requests, options)? {
            let all = options.baseline || known.is_none();
            return self.plan_short_list(run, list, known, all);
        }
        run.report.summary.mode = Mode::Baseline;
        if let Some(Download::List(list)) = self.download(run.requests, options)? {
            let list = list.clone();
            return self.plan_listed(run, &list);
        }
        let Some(Download::Descriptions(whole)) = self.download(run.requests, options)? else {
            if let Some(list) = &options.uris {
                self.plan_wanted(run, list, false)?;
            } else {
                forget_planned(run.planner.mirror)?;
                if let Some(message) = self.lacks() {
                    run.report.notice("emm.partial", &self.entry.url, &message);
                }
            }
            self.follow(run, None)?;
            if run.planner.selection.has_changed() {
                run.planner.selection.keep(run.planner.mirror)?;
            }
            return Ok(());
        };
        for file in &whole.files {
            check_host(options, &self.entry.url, &file.url)?;
        }
        if let Some(future) = whole.future {
            let message = format!(
                "the full download states {future}, which is later than the server's clock: changes of any time are read"
            );
            run.report.notice("time.future", whole.name(), &message);
        }
        let (requests, name, files) = (run.requests, whole.name(), &whole.files);
        let mut fetch = |downloads: &Downloads| fetch_sorted(requests, name, files, downloads);
        let mut updated = None;
        let planned = plan_descriptions(run, name, &mut fetch, &mut |mirror, count| {
            // One without any shows nothing.
            updated = whole.updated.filter(|_| count > 0);
            forget_end(mirror)?;
            forget_planned(mirror)?;
            mirror.set_meta(FILES, None)?;
            keep_time(mirror, SEEN, updated)
        });
        let is_gone = match planned {
            Err(error) if matches!(error.status(), Some(404 | 410)) => {
                let message = format!(
                    "{error}; the feed alone may lack resources that have not changed since it began"
                );
                run.report.list_failed("emm.download", name, &message);
                forget_planned(run.planner.mirror)?;
                true
            }
            planned => planned.map(|()| false)?,
        };
        if let Some(list) = &options.uris {
            self.plan_wanted(run, list, false)?;
        }
        self.follow(run, updated)?;
        if is_gone {
            // The next run asks for it again.
            keep_time(run.planner.mirror, SEEN, None)?;
        }
        Ok(())
    }

    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let Some(known) = time_of(run.planner.mirror, SEEN)? else { return Ok(false) };
        if !run.planner.polling.may_poll() {
            return Ok(false);
        }
        self.entry = read(run.requests, &self.entry.url)?;
        Ok(self.follow(run, Some(known))? == Followed::Planned)
    }

    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(time_of(mirror, SEEN)?.map(|time| time.to_string()))
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
