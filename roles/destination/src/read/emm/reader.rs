//! The reader of change feeds: what is read, in which order, and the plan that results.

use super::document::{Read, read};
use super::entity::{cost, each_change, may_have_patch, syntax_of};
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
use crate::read::descriptions::{
    DescriptionFile, each_description, fetch_sorted, no_temporary, plan_descriptions,
};
use crate::read::sets::{choose, name_of};
use crate::read::{Announcement, Expecting, Reader, SourceSet, Start};
use crate::requests::Requests;
use crate::state::key;
use crate::state_folder::StateFolder;
use abreast_emm::{Action, Item, Link};
use abreast_store::mirror::{Mirror, PendingCounts};
use abreast_webtypes::{SyntaxError, Timestamp};

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

/// A change feed.
#[derive(Debug, Default)]
pub(crate) struct Emm {
    pub(super) entry: Read,
    /// What cannot be used was reported in this run.
    has_reported: bool,
}

/// The full download that is read for a copy that begins.
struct Whole {
    /// One, or several of one time and syntax, which are its parts.
    files: Vec<DescriptionFile>,
    /// Up to when changes are in it.
    updated: Option<Timestamp>,
}

impl Whole {
    /// Its name in messages.
    fn name(&self) -> &str {
        self.files.first().map_or("", |file| &file.url)
    }
}

impl Emm {
    fn start(&mut self, entry: Read) -> Start {
        let first = entry.url.clone();
        *self = Self { entry, has_reported: false };
        let has_list = self.whole().is_some();
        Start { first, uri_space: None, has_list }
    }

    /// What a copy by this feed alone lacks, if its full download is one that is not read. A page for
    /// people is none.
    fn lacks(&self) -> Option<String> {
        let mut downloads = self.entry.document.downloads.iter();
        let is_data = |link: &&Link| link.media_type.as_deref() != Some("text/html");
        let list = downloads.find(is_data).filter(|_| self.whole().is_none())?;
        Some(format!(
            "resources that have not changed since the feed began are not copied: its full download is no RDF\n  \
             help: for a set of files, give the address of its Resource List: {}",
            list.href
        ))
    }

    /// The full download that is cheapest to read, if one is in RDF.
    fn whole(&self) -> Option<Whole> {
        let links = self.entry.document.downloads.iter();
        let readable: Vec<_> = links.filter_map(|link| Some((link, syntax_of(link)?))).collect();
        let newest = readable.iter().map(|(link, _)| link.updated).max()?;
        let newest = || readable.iter().filter(|(link, _)| link.updated == newest);
        let cheapest = newest().map(|(_, syntax)| cost(Some(*syntax))).min()?;
        let files = newest().filter(|(_, syntax)| cost(Some(*syntax)) == cheapest);
        let files = files.map(|(link, syntax)| DescriptionFile {
            url: link.href.clone(),
            media_type: link.media_type.clone(),
            syntax: *syntax,
        });
        // Changes from then on are read: a clock that is ahead must not hide any.
        let latest = self.entry.answered.date.plus_micros(1_000_000);
        let updated = readable.iter().map(|(link, _)| link.updated).max()?;
        Some(Whole { files: files.collect(), updated: updated.map(|updated| updated.min(latest)) })
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
        let found = way(requests, options, &self.entry)?;
        let mut glimpsed = newest_of(&found.0.begin().document);
        note_newest(run.planner.mirror, glimpsed)?;
        let planned = run.plan_noted(&mut |run| {
            let (mut seen, mut reading) = (Seen::default(), run.reading_changes(&name));
            let cursor = since.unwrap_or(Timestamp::MIN);
            let mut boundary = Boundary::read(run.planner.mirror, LAST)?;
            // A copy that has something needs the deletions before a refresh too.
            let is_new = run.planner.mirror.count_rows_up_to(1)? == 0
                && run.planner.mirror.pending_counts()? == PendingCounts::default();
            let everything = (!is_new).then_some(Since::time(Timestamp::MIN));
            let (mut useless, mut of_others) = (0, 0);
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
                    each_change(page.document, page.url, item, patch, &mut |listed| {
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
            if since.is_some() && is_whole && boundary.is_broken(walked.end) {
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
            if walked.cut == Some(Cut::Older) {
                let message = "its pages do not lead to the changes that are known: those between may be missing\n  \
                               help: they are read again by every run; `--baseline` compares with all";
                run.report.list_failed("emm.paging-loop", &name, message);
            }
            run.plan_coming()?;
            run.keep_common(&mut seen)?;
            let newest = walked.newest.filter(|_| walked.cut != Some(Cut::Older));
            let newest =
                newest.map(|newest| run.not_after(&name, "published", newest, walked.began));
            keep_time(run.planner.mirror, SEEN, since.max(newest))?;
            keep_time(run.planner.mirror, NEWEST, glimpsed.max(before.filter(|_| !is_whole)))?;
            boundary.keep(run.planner.mirror, walked.cut.is_some())?;
            run.planner.mirror.set_meta(RUN, Some(&run.planner.epoch.to_string()))?;
            Ok(if seen.entries == 0 { Followed::Unchanged } else { Followed::Planned })
        });
        if planned.as_ref().is_err_and(|error| error.exit_code() != ExitCode::Cancelled) {
            note_newest(run.planner.mirror, glimpsed)?;
        }
        planned
    }

    fn each_changed(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        since: Option<Timestamp>,
        each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let own = names_of(&self.entry);
        let (way, _) = way(requests, options, &self.entry)?;
        way.walk(requests, options, since.map(Since::time), &mut |page| {
            let mut items = page.items.iter();
            items.try_for_each(|item| {
                if is_of_other_feed(item, &own) {
                    return Ok(());
                }
                each_change(page.document, page.url, item, None, each)
            })
        })?;
        Ok(())
    }
}

/// Keeps the patch of an activity that is not known yet; returns where it begins.
fn kept_patch(
    run: &mut PlanContext<'_, '_>,
    item: &Item,
    cursor: Timestamp,
) -> Result<Option<u64>, Error> {
    let content = item.patch.as_ref().and_then(|(_, content)| content.as_deref());
    match content.filter(|_| may_have_patch(item) && item.time.is_none_or(|time| time >= cursor)) {
        Some(content) => run.planner.keep_patch(content.as_bytes()),
        None => Ok(None),
    }
}

/// Hands over the descriptions in a full download.
fn each_described(
    requests: &Requests<'_>,
    whole: &Whole,
    each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(no_temporary)?;
    let downloads = Downloads::new(StateFolder::at(folder.path())?);
    let name = whole.name();
    let sorted = fetch_sorted(requests, name, &whole.files, &downloads)?;
    each_description(name, &sorted, &mut |described| each(&described.listed(name, 0)))?;
    Ok(())
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
        Action::Put => &item.target,
        Action::Remove => &item.origin,
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
        Ok(self.start(found))
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
        let start = self.start(found);
        if let Some(message) = self.lacks().filter(|_| options.uris.is_none()) {
            let (code, uri) = ("emm.partial", &*self.entry.url);
            observer.event(&Event::Notice(Problem { code, uri, message: &message }));
        }
        Ok(start)
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
        match self.whole() {
            Some(whole) => each_described(requests, &whole, &mut every),
            None => self.each_changed(requests, options, None, &mut every),
        }
    }

    fn expect(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        to: &mut dyn Expecting,
    ) -> Result<(), Error> {
        let whole = self.whole();
        if let Some(list) = &options.uris {
            each_wanted(options, &self.entry.url, list, false, &mut |listed| to.listed(listed))?;
        }
        if let Some(whole) = &whole
            && self.short_list(requests, options)?.is_none()
        {
            each_described(requests, whole, &mut |listed| to.listed(listed))?;
        }
        let since = whole.and_then(|whole| whole.updated);
        self.each_changed(requests, options, since, &mut |listed| {
            to.changed(listed, listed.changed.unwrap_or(Timestamp::MIN).as_micros())
        })
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
            known = None;
        }
        let last_run = run.planner.mirror.meta(RUN)?;
        run.planner.uncertain_from = last_run.and_then(|text| text.parse().ok());
        if let Some(list) = self.short_list(run.requests, options)? {
            let all = options.baseline || known.is_none();
            return self.plan_short_list(run, list, known, all);
        }
        run.report.summary.mode = Mode::Baseline;
        let Some(whole) = self.whole() else {
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
        let (requests, name, files) = (run.requests, whole.name(), &whole.files);
        let mut fetch = |downloads: &Downloads| fetch_sorted(requests, name, files, downloads);
        plan_descriptions(run, name, &mut fetch, &mut |mirror| {
            forget_end(mirror)?;
            forget_planned(mirror)?;
            keep_time(mirror, SEEN, whole.updated)
        })?;
        if let Some(list) = &options.uris {
            self.plan_wanted(run, list, false)?;
        }
        self.follow(run, whole.updated)?;
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
