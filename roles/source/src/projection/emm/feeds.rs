//! Entry Points, Change Sets, single activities and Entity Patches.

use super::activity::Activities;
use super::pages::Pages;
use super::patches::{self, skolem_base};
use super::paths::{Feed, FeedPath, RDF_PATCH, View};
use crate::projection::sdshare::newest_snapshot;
use crate::publish::publisher::Publisher;
use crate::publish::{
    HeadReader, Output, PublishError, PublishedSet, Rendered, ResolvedDocument, Version,
};
use abreast_core::{ChangeLog, ChangeRecord, Position};
use abreast_emm::{
    EntryPoint, LinkTo, Page, PageWriter, Profile, write_activity, write_entry_point,
};
use abreast_rdf::PatchBlankNodes;
use abreast_webtypes::{Timestamp, W3cDatetime, decode_segment};
use std::sync::Arc;

/// Bytes of an activity, about.
const ACTIVITY_BYTES: u64 = 900;

/// A document of a change feed, found for a path.
pub(super) struct FeedDocument<'p> {
    pub(super) publisher: &'p Publisher,
    pub(super) path: FeedPath<'p>,
    /// Query of a request for `skip-to`.
    pub(super) query: Option<String>,
}

impl ResolvedDocument for FeedDocument<'_> {
    fn version(&self, heads: HeadReader<'_>) -> Result<Version, PublishError> {
        let feed = self.path.feed();
        let head = heads.of(feed.set)?;
        if head.importing {
            return Err(PublishError::Importing);
        }
        let (created, position) = (head.created.as_micros() as u64, head.position);
        let changing = |position: u64| Version::changing([created, position]);
        Ok(match &self.path {
            FeedPath::EntryPoint(_) => {
                let download = newest_download(feed.set).map_or(0, |time| time.as_micros() as u64);
                changing(position.0 ^ download.rotate_left(24))
            }
            FeedPath::Page(_, number) => {
                if *number == 0 || *number > feed.last_page(&head) {
                    return Err(PublishError::NotFound);
                }
                match feed.view {
                    View::Latest => changing(position.0),
                    _ if !feed.is_closed(*number, position) => changing(position.0),
                    // The next page may be created later, because changes of other types are
                    // skipped.
                    View::Type(_) => changing(position.0),
                    // These pages use earlier descriptions, which are not stored permanently.
                    View::Labels | View::Patches => changing(head.collected),
                    View::History | View::Newest => Version::closed([created, 0]),
                }
            }
            FeedPath::SkipTo(_) | FeedPath::Log(..) => changing(position.0),
            FeedPath::Activity(_, at) | FeedPath::Patch(_, at, _) => {
                if *at > position {
                    return Err(PublishError::NotFound);
                }
                changing(head.collected)
            }
        })
    }

    fn introduces(&self) -> Vec<Arc<PublishedSet>> {
        vec![Arc::clone(self.path.feed().set)]
    }

    fn media_types(&self) -> &'static [&'static str] {
        match &self.path {
            FeedPath::Patch(feed, _, raw) if *raw || feed.profile != Profile::Emm01 => &[],
            FeedPath::Log(..) => &[],
            path => path.feed().profile.media_types(),
        }
    }

    fn other_form(&self) -> Option<(&'static str, &'static str)> {
        let is_json = matches!(&self.path, FeedPath::Patch(_, _, false));
        (is_json && !self.media_types().is_empty()).then_some((rdf_patch::MEDIA_TYPE, RDF_PATCH))
    }

    fn is_newest(&self) -> bool {
        matches!(self.path, FeedPath::EntryPoint(_))
    }

    fn topic(&self) -> Option<String> {
        match &self.path {
            FeedPath::EntryPoint(feed) | FeedPath::Page(feed, _) => {
                super::feed_topic::topic(&feed.history()).map(|topic| topic.url)
            }
            _ => None,
        }
    }

    fn render(&self, output: &mut dyn Output) -> Result<Rendered, PublishError> {
        let log = &**self.publisher.log();
        let feed = self.path.feed();
        let pages = Pages::new(feed, log)?;
        let bytes = match &self.path {
            FeedPath::EntryPoint(_) => entry_point(feed, &pages, log)?,
            FeedPath::Page(_, number) => page(feed, &pages, *number, output)?,
            FeedPath::SkipTo(_) => {
                let time = self.datetime()?;
                return Err(PublishError::Elsewhere(feed.page(pages.at(time)?)));
            }
            FeedPath::Activity(_, position) => {
                let has = |change: &ChangeRecord| {
                    !matches!(feed.view, View::Type(_)) || feed.view.is_other(change)
                };
                let change = pages.change(*position)?.filter(has).ok_or(PublishError::NotFound)?;
                let page = feed.page(feed.page_of(*position));
                Activities::new(feed).with(&change, Some(&page), None, |activity| {
                    write_activity(feed.profile, activity)
                })
            }
            FeedPath::Patch(_, position, raw) => {
                let change = pages.change(*position)?.ok_or(PublishError::NotFound)?;
                return patches::document(feed, &pages, &change, *raw);
            }
            FeedPath::Log(_, patch) => return patches::of_log(feed, log, &pages, *patch),
        };
        Ok(Rendered { bytes, content_type: feed.profile.media_types()[0] })
    }
}

impl FeedDocument<'_> {
    /// Time in the query of the request.
    fn datetime(&self) -> Result<Timestamp, PublishError> {
        let bad = |problem: &str| {
            let example = "for example `skip-to?datetime=2026-05-01T00:00:00Z`";
            PublishError::BadQuery(format!("{problem}; give a date and time, {example}"))
        };
        let query = self.query.as_deref().unwrap_or_default();
        let value = query.split('&').find_map(|pair| pair.strip_prefix("datetime="));
        let value = value.ok_or_else(|| bad("`datetime` is missing"))?;
        let time = W3cDatetime::parse(&decode_segment(value.as_bytes()));
        Ok(time.map_err(|_| bad("`datetime` is not a time"))?.instant)
    }
}

fn entry_point(
    feed: &Feed<'_>,
    pages: &Pages<'_, '_>,
    log: &dyn ChangeLog,
) -> Result<Vec<u8>, PublishError> {
    let set = feed.set;
    let (oldest, newest) = pages.ends()?;
    let (first, last) = if feed.view == View::Newest { (newest, oldest) } else { (oldest, newest) };
    let title = if set.about.title.is_empty() { &set.slug } else { &set.about.title };
    let (url, history) = (feed.url(), feed.history().url());
    Ok(write_entry_point(
        feed.profile,
        &EntryPoint {
            id: &url,
            summary: &format!("{title}: {}", feed.view.summary()),
            downloads: &downloads(feed, log, pages)?,
            first: &feed.page(first),
            last: &feed.page(last),
            total_items: pages.count(),
            part_of: (feed.view != View::History).then_some(&*history),
        },
    ))
}

/// Full downloads of the set, each with the last change that it includes, and the page about the
/// set for people [emm-1.0 §A.2]. A set of files has its newest dump and its Resource List. A set
/// of entities has its newest snapshot; without a snapshot, the feed has all entities, because its
/// changes start with the first entity.
///
/// Feeds of a type and feeds of labels have the page only, because the downloads contain more than
/// these feeds.
fn downloads(
    feed: &Feed<'_>,
    log: &dyn ChangeLog,
    pages: &Pages<'_, '_>,
) -> Result<Vec<LinkTo>, PublishError> {
    let (set, mut links) = (feed.set, Vec::new());
    let link = |href, media_type| LinkTo { href, media_type, ..LinkTo::default() };
    if matches!(feed.view, View::Type(_) | View::Labels) {
        return Ok(vec![link(set.urls.page(), "text/html")]);
    }
    if let Some(snapshots) = set.snapshots() {
        snapshots.ask(pages.head());
        if let Some((time, files)) = newest_snapshot(set) {
            let position = Some(log.position_at(set.id, time)?.0);
            let updated = Some(time);
            let files = files.into_iter().map(|(href, media_type)| link(href, media_type));
            links.extend(files.map(|link| LinkTo { updated, position, ..link }));
        }
    } else if !set.urls.naming().names_entities() {
        if let Some(dump) = newest_dump(set) {
            let position = Some(log.position_at(set.id, dump.begin)?.0);
            links.extend(dump.packages.iter().map(|package| LinkTo {
                updated: Some(dump.begin),
                position,
                ..link(set.urls.package(&package.stem), "application/zip")
            }));
        }
        links.push(link(set.urls.resource_list(), "application/xml"));
    }
    links.push(link(set.urls.page(), "text/html"));
    Ok(links)
}

fn newest_dump(set: &PublishedSet) -> Option<Arc<crate::projection::resourcesync::dumps::Dump>> {
    set.dumps()?.resources().last().cloned()
}

/// Time of the newest full download of the set.
fn newest_download(set: &PublishedSet) -> Option<Timestamp> {
    match set.snapshots() {
        Some(_) => newest_snapshot(set).map(|(time, _)| time),
        None => newest_dump(set).map(|dump| dump.begin),
    }
}

fn page(
    feed: &Feed<'_>,
    pages: &Pages<'_, '_>,
    number: u64,
    output: &mut dyn Output,
) -> Result<Vec<u8>, PublishError> {
    if !pages.has(number) {
        return Err(PublishError::NotFound);
    }
    output.expect(feed.per_page * ACTIVITY_BYTES);
    let around = [pages.earlier(number)?, pages.later(number)?];
    let [mut prev, mut next] = around.map(|page| page.map(|page| feed.page(page)));
    if feed.view == View::Newest {
        std::mem::swap(&mut prev, &mut next);
    }
    let (after, last) = pages.bounds(number);
    let mut writer = begin(feed, &feed.page(number), [prev, next]);
    let mut activities = Activities::new(feed);
    match feed.view {
        View::History | View::Latest | View::Type(_) => {
            pages.each(after, last, &mut |change| {
                activities.write(&mut writer, change, None);
                output.drain(writer.bytes());
            })?;
        }
        View::Newest | View::Labels | View::Patches => {
            let mut changes = pages.range(after, last)?;
            if feed.view == View::Newest {
                changes.reverse();
            }
            let blank_nodes = PatchBlankNodes::Skolem(skolem_base(feed.set));
            for change in &changes {
                let patch = match feed.view {
                    View::Patches => pages.patch(change, blank_nodes)?,
                    _ => None,
                };
                activities.write(&mut writer, change, patch.as_deref());
                output.drain(writer.bytes());
            }
        }
    }
    Ok(writer.finish())
}

fn begin(feed: &Feed<'_>, id: &str, [prev, next]: [Option<String>; 2]) -> PageWriter {
    let url = feed.url();
    let page = Page { id, part_of: &url, prev: prev.as_deref(), next: next.as_deref() };
    PageWriter::new(feed.profile, &page)
}

/// Notification of a range of the log: a Change Set with these changes, and with the URL of the
/// page of the last change. The same range always has the same bytes.
pub(super) fn notification(
    publisher: &Publisher,
    feed: &Feed<'_>,
    after: Position,
    last: Position,
) -> Result<Vec<u8>, PublishError> {
    let pages = Pages::new(feed, &**publisher.log())?;
    let mut writer = begin(feed, &feed.page(feed.page_of(last)), [None, None]);
    let mut activities = Activities::new(feed);
    pages.each(after, last, &mut |change| activities.write(&mut writer, change, None))?;
    Ok(writer.finish())
}
