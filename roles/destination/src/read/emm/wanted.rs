//! Lists of URIs: the entities that a user wants are fetched by their IRIs, whether the feed has a
//! change of them or not.

use super::entity::{ACCEPT, by_iri, each_change};
use super::reader::{Emm, forget_end};
use super::walk::{Cut, Since, Way, way};
use crate::admit::Admission;
use crate::error::Error;
use crate::events::Mode;
use crate::filter::Decision;
use crate::options::SyncOptions;
use crate::plan::changes::{Followed, Seen};
use crate::plan::listed::Listed;
use crate::plan::planner::PlanContext;
use crate::read::pieces::{Asked, Nothing, read_unknown};
use crate::requests::Requests;
use crate::uri_list::UriList;
use abreast_emm::Action;
use abreast_store::mirror::{Mirror, Pending, Task};
use abreast_webtypes::Timestamp;

/// Entities of the feed of which one has to be found at its IRI.
const PROBES_MAX: usize = 3;
/// The list of URIs whose entities were planned, as its text.
const PLANNED: &str = "emm-uris";

/// Whether all that a list needs is planned.
pub(super) fn is_planned(mirror: &Mirror, options: &SyncOptions) -> Result<bool, Error> {
    let text = options.uris.as_ref().map(|uris| uris.text());
    Ok(mirror.meta(PLANNED)?.as_deref() == text)
}

/// The next run plans the list again.
pub(super) fn forget_planned(mirror: &Mirror) -> Result<(), Error> {
    Ok(mirror.set_meta(PLANNED, None)?)
}

fn admission(options: &SyncOptions, url: &str) -> Admission {
    Admission::new(url, &options.allow_hosts, options.allow_downgrade)
}

impl Emm {
    /// The list of URIs, if each is fetched by itself: it is short, all of them may be asked for, and
    /// the entities of the feed are found at their IRIs.
    pub(super) fn short_list<'o>(
        &self,
        requests: &Requests<'_>,
        options: &'o SyncOptions,
    ) -> Result<Option<&'o UriList>, Error> {
        let mut admission = admission(options, &self.entry.url);
        let mut is_admitted = |uri: &str| admission.check(uri).is_ok();
        let list = options.uris.as_deref();
        let Some(list) = list
            .filter(|list| list.short().is_some_and(|all| all.iter().all(|uri| is_admitted(uri))))
        else {
            return Ok(None);
        };
        let (way, _) = way(requests, options, &self.entry)?;
        let mut has_failed = false;
        let items = way.begin().document.items.iter();
        let there = items.filter(|item| matches!(item.action, Action::Put | Action::Deprecate));
        let objects = there.flat_map(|item| &item.objects).filter(|object| is_admitted(&object.id));
        for object in objects.take(PROBES_MAX) {
            requests.check_cancelled()?;
            if is_there(requests, &object.id)? {
                return Ok(Some(list));
            }
            has_failed = true;
        }
        Ok((!has_failed).then_some(list))
    }

    /// Plans to fetch the entities of a short list that are not here, or all of them, and what
    /// changed: since then, or if that is not known, from now on. A full download is not read.
    pub(super) fn plan_short_list(
        &mut self,
        run: &mut PlanContext<'_, '_>,
        list: &UriList,
        since: Option<Timestamp>,
        all: bool,
    ) -> Result<(), Error> {
        let (requests, options) = (run.requests, run.planner.options);
        run.report.summary.mode = if all { Mode::Baseline } else { Mode::Incremental };
        let mut now = None;
        if all {
            let (way, _) = way(requests, options, &self.entry)?;
            let newest = Some(Since::time(Timestamp::MAX));
            let end = way.walk(requests, options, newest, &mut |_| Ok(()))?;
            let newest = end.newest.filter(|_| end.cut != Some(Cut::Older));
            now =
                newest.map(|newest| run.not_after(&self.entry.url, "published", newest, end.began));
        }
        self.plan_wanted(run, list, all)?;
        // An entity that was deleted since then cannot be fetched: the feed shows that it is gone.
        if since.is_some() && !matches!(self.follow(run, since)?, Followed::Gap(_)) {
            return Ok(());
        }
        // All of them are planned.
        forget_end(run.planner.mirror)?;
        self.follow(run, now)?;
        Ok(())
    }

    /// Plans to fetch the entities of a list that are not here, or all of them.
    pub(super) fn plan_wanted(
        &self,
        run: &mut PlanContext<'_, '_>,
        list: &UriList,
        all: bool,
    ) -> Result<(), Error> {
        let is_file = self.is_of_files(run.requests, run.planner.options)?
            || lists_files(&way(run.requests, run.planner.options, &self.entry)?.0);
        run.planner.begin(run.report)?;
        let planned = self.note_wanted(run, list, all, is_file);
        match planned {
            Ok(()) => run.planner.commit(),
            Err(error) => {
                run.planner.abandon(run.report)?;
                Err(error)
            }
        }
    }

    fn note_wanted(
        &self,
        run: &mut PlanContext<'_, '_>,
        list: &UriList,
        all: bool,
        is_file: bool,
    ) -> Result<(), Error> {
        let mirror = run.planner.mirror;
        let (mut seen, mut item) = (Seen::default(), Pending::default());
        each_wanted(run.planner.options, &self.entry.url, list, is_file, &mut |listed| {
            run.requests.check_cancelled()?;
            let (uri, selection) = (listed.uri, &mut run.planner.selection);
            if matches!(selection.decide(listed.subject()), Decision::Excluded(_)) {
                return Ok(());
            }
            seen.base.note(uri);
            let is_planned = mirror.task(uri)?.map(|Task { pending, .. }| {
                // Where nothing names its address, its IRI is.
                pending.action.is_deletion() || pending.access.is_some() || pending.body.is_some()
            });
            let is_here = mirror.row(uri)?.is_some() && !selection.is_left(mirror, uri)?;
            if !all && is_planned.unwrap_or(is_here) {
                return Ok(());
            }
            selection.take_again(mirror, uri)?;
            listed.pending_into(&mut item);
            Ok(mirror.put_pending(&item)?)
        })?;
        run.planner.selection.leave_excluded(mirror)?;
        run.planner.selection.keep(mirror)?;
        run.keep_common(&mut seen)?;
        Ok(mirror.set_meta(PLANNED, Some(list.text()))?)
    }
}

/// Whether an entity is found at its IRI; not, where its host does not want it to be requested.
fn is_there(requests: &Requests<'_>, iri: &str) -> Result<bool, Error> {
    if let Some(robots) = &requests.robots
        && requests.run(robots.check(&requests.client, iri, false))?.is_err()
    {
        return Ok(false);
    }
    let asked = Asked { accept: Some(ACCEPT), ..Asked::begin(iri, 0, u64::MAX) };
    Ok(read_unknown(requests, &asked, &mut Nothing).is_ok())
}

/// Whether the resources of a feed are files, and no entities.
fn lists_files(way: &Way) -> bool {
    let page = way.begin();
    let (mut files, mut others) = (0, 0);
    for item in &page.document.items {
        let _ = each_change((&page.document, &page.url), item, None, false, &mut |listed| {
            *(if listed.describes { &mut others } else { &mut files }) += 1;
            Ok::<_, Error>(())
        });
    }
    files > 0 && others == 0
}

/// Hands over the resources of a list that may be asked for.
pub(super) fn each_wanted(
    options: &SyncOptions,
    feed: &str,
    list: &UriList,
    is_file: bool,
    each: &mut dyn FnMut(&Listed<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut admission = admission(options, feed);
    list.each(&mut |uri| match admission.check(uri) {
        Ok(()) => each(&by_iri(uri, is_file)),
        Err(_) => Ok(()),
    })
}
