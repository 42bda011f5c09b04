//! The reader of change feeds: what is read, in which order, and what follows from it.

use super::document::Read;
use super::entity::{cost, each_change, syntax_of};
use super::find::{check_host, find};
use super::walk::{Seen as Walked, way};
use crate::error::{Error, ExitCode};
use crate::events::{Mode, Observer};
use crate::options::SyncOptions;
use crate::package::download::Downloads;
use crate::plan::changes::{Followed, Seen};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::push::Topic;
use crate::read::descriptions::{
    DescriptionFile, each_description, fetch_sorted, no_temporary, plan_descriptions,
};
use crate::read::sets::{choose, name_of};
use crate::read::{Announcement, Expecting, Reader, SourceSet, Start};
use crate::requests::Requests;
use crate::state::key;
use crate::state_folder::StateFolder;
use abreast_store::mirror::Mirror;
use abreast_webtypes::{SyntaxError, Timestamp};

/// The Entry Point.
const ENTRY: &str = "emm-entry";
/// The time of the newest activity that was seen, microseconds.
const SEEN: &str = "emm-seen";
/// Walks until the newest page stays as it is.
const WALKS_MAX: usize = 5;

/// A change feed.
#[derive(Debug, Default)]
pub(crate) struct Emm {
    entry: Read,
    /// What cannot be used was reported in this run.
    has_reported: bool,
}

/// The full download that is read for a copy that begins.
struct Whole {
    file: DescriptionFile,
    /// Up to when changes are in it.
    updated: Option<Timestamp>,
}

impl Emm {
    fn start(&mut self, entry: Read) -> Start {
        let first = entry.url.clone();
        *self = Self { entry, has_reported: false };
        let has_list = self.whole().is_some();
        Start { first, uri_space: None, has_list }
    }

    /// The full download that is cheapest to read, if one is in RDF.
    fn whole(&self) -> Option<Whole> {
        let links = self.entry.document.downloads.iter();
        let readable = links.filter_map(|link| Some((link, syntax_of(link)?)));
        let (link, syntax) = readable.min_by_key(|(_, syntax)| cost(Some(*syntax)))?;
        let (url, media_type) = (link.href.clone(), link.media_type.clone());
        let file = DescriptionFile { url, media_type, syntax };
        // Changes from then on are read: a clock that is ahead must not hide any.
        let latest = self.entry.answered.date.plus_micros(1_000_000);
        Some(Whole { file, updated: link.updated.map(|updated| updated.min(latest)) })
    }

    /// Plans what changed since a time, or all that the feed lists.
    fn follow(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        since: Option<Timestamp>,
    ) -> Result<Followed, Error> {
        let (requests, options) = (run.requests, run.planner.options);
        let mut way = way(requests, options, &self.entry)?;
        let (name, entry) = (self.entry.url.clone(), self.entry.url.as_str());
        let report_all = !std::mem::replace(&mut self.has_reported, true);
        let is_iiif = self.entry.document.is_iiif;
        run.plan_noted(&mut |run| {
            let (mut seen, mut reading) = (Seen::default(), run.reading_changes(&name));
            let cursor = since.unwrap_or(Timestamp::MIN);
            let mut useless = 0;
            let mut walked = Walked::default();
            for walk in 1.. {
                let found = way.walk(requests, options, since, &mut |page| {
                    if page.is_back {
                        seen.earlier_list();
                    } else {
                        seen.next_list();
                    }
                    for item in &page.items {
                        if is_of_other_feed(item, is_iiif, entry) {
                            continue;
                        }
                        useless += u64::from(item.objects.is_empty() && is_change(item));
                        each_change(page.document, page.url, item, &mut |listed| {
                            run.note_change(listed, cursor, &mut seen, &mut reading)
                        })?;
                    }
                    Ok(())
                })?;
                walked = Walked { newest: walked.newest.max(found.newest), ..found };
                match way.renewed(requests)? {
                    Some(renewed) if walk < WALKS_MAX => way = renewed,
                    _ => break,
                }
            }
            if let (Some(since), Some(newest)) = (since, walked.newest)
                && newest < since
            {
                return Ok(Followed::Gap(format!(
                    "the feed ends at {newest}, and changes of {since} were seen already"
                )));
            }
            if report_all && useless > 0 {
                let message = format!("activities without the IRI of an entity: {useless}");
                run.report.list_failed("emm.object", &name, &message);
            }
            if walked.is_cut {
                let message = "its pages do not lead to the changes that are known: those between may be missing\n  \
                               help: they are read again by every run; `--baseline` compares with all";
                run.report.list_failed("emm.paging-loop", &name, message);
            }
            run.plan_coming()?;
            run.keep_common(&mut seen)?;
            let newest = walked.newest.filter(|_| !walked.is_cut);
            let newest =
                newest.map(|newest| run.not_after(&name, "published", newest, walked.began));
            keep_seen(run.planner.mirror, since.max(newest))?;
            Ok(if seen.entries == 0 { Followed::Unchanged } else { Followed::Planned })
        })
    }

    fn each_changed(
        &self,
        requests: &Requests<'_>,
        options: &SyncOptions,
        since: Option<Timestamp>,
        each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let is_iiif = self.entry.document.is_iiif;
        way(requests, options, &self.entry)?.walk(requests, options, since, &mut |page| {
            let mut items = page.items.iter();
            items.try_for_each(|item| {
                if is_of_other_feed(item, is_iiif, &self.entry.url) {
                    return Ok(());
                }
                each_change(page.document, page.url, item, each)
            })
        })?;
        Ok(())
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
    let name = &whole.file.url;
    let files = std::slice::from_ref(&whole.file);
    let sorted = fetch_sorted(requests, name, files, &downloads)?;
    each_description(name, &sorted, &mut |described| each(&described.listed(name, 0)))?;
    Ok(())
}

/// Whether an activity adds to, or removes from, a feed other than this one [iiif-discovery §3.5].
fn is_of_other_feed(item: &abreast_emm::Item, is_iiif: bool, entry: &str) -> bool {
    use abreast_emm::Action;
    let named = match item.action {
        Action::Put => &item.target,
        Action::Remove => &item.origin,
        _ => return false,
    };
    is_iiif && !named.is_empty() && !named.iter().any(|url| url == entry)
}

fn is_change(item: &abreast_emm::Item) -> bool {
    use abreast_emm::Action;
    !matches!(item.action, Action::Refresh | Action::Other)
}

fn seen(mirror: &Mirror) -> Result<Option<Timestamp>, Error> {
    let text = mirror.meta(SEEN)?;
    Ok(text.and_then(|text| text.parse().ok()).map(Timestamp::from_micros))
}

/// Keeps how far the feed was read, in the transaction of what was planned up to then.
fn keep_seen(mirror: &Mirror, time: Option<Timestamp>) -> Result<(), Error> {
    Ok(mirror.set_meta(SEEN, time.map(|time| time.as_micros().to_string()).as_deref())?)
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
        _: &dyn Observer,
    ) -> Result<Start, Error> {
        let found = find(requests, options)?;
        if let Some(mirror) = known {
            check_same(&found, mirror.meta(ENTRY)?.as_deref())?;
        }
        Ok(self.start(found))
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
            Ok(Some(Topic { url: url.to_owned(), hubs: Vec::new() }))
        };
        Ok(mirror.meta(ENTRY)?.map(|url| Announcement { url, topic_in }))
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
        if let Some(whole) = &whole {
            each_described(requests, whole, &mut |listed| to.listed(listed))?;
        }
        let since = whole.and_then(|whole| whole.updated);
        self.each_changed(requests, options, since, &mut |listed| {
            to.changed(listed, listed.changed.unwrap_or(Timestamp::MIN).as_micros())
        })
    }

    fn plan(&mut self, run: &mut PlanContext<'_, '_>) -> Result<(), Error> {
        let known = seen(run.planner.mirror)?;
        if !run.planner.polling.may_poll() {
            run.planner.polling.is_postponed = true;
            return Ok(());
        }
        // A repair plans resources again that came with a full download: they may have no address.
        if !run.planner.options.baseline
            && !run.planner.selection.has_changed()
            && !run.planner.mirror.has_unaddressed()?
            && known.is_some()
        {
            let Followed::Gap(why) = self.follow(run, known)? else {
                run.report.summary.mode = Mode::Incremental;
                return Ok(());
            };
            let message = format!("{why}; comparing with all that the Source has now");
            run.report.notice("gap", &self.entry.url, &message);
        }
        run.report.summary.mode = Mode::Baseline;
        let Some(whole) = self.whole() else {
            self.follow(run, None)?;
            if run.planner.selection.has_changed() {
                run.planner.selection.keep(run.planner.mirror)?;
            }
            return Ok(());
        };
        check_host(run.planner.options, &self.entry.url, &whole.file.url)?;
        let (requests, name) = (run.requests, whole.file.url.clone());
        let files = std::slice::from_ref(&whole.file);
        let mut fetch = |downloads: &Downloads| fetch_sorted(requests, &name, files, downloads);
        plan_descriptions(run, &name, &mut fetch, &mut |mirror| keep_seen(mirror, whole.updated))?;
        self.follow(run, whole.updated)?;
        Ok(())
    }

    fn plan_again(&mut self, run: &mut PlanContext<'_, '_>) -> Result<bool, Error> {
        let Some(known) = seen(run.planner.mirror)? else { return Ok(false) };
        Ok(run.planner.polling.may_poll() && self.follow(run, Some(known))? == Followed::Planned)
    }

    fn position(&self, mirror: &Mirror) -> Result<Option<String>, Error> {
        Ok(seen(mirror)?.map(|time| time.to_string()))
    }

    /// An entity that cannot be fetched is no entity that is gone [iiif-discovery §4.2].
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
