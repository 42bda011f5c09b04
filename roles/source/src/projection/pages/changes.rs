//! Changes of a set, the newest first: a page, and a feed in Atom [rfc4287 §3].

use super::query::{url, values};
use super::resources::{label, page_url, shown};
use super::set_view::{SetView, shell};
use super::shell::{Shell, Time, is_web, name_of, page, text_of};
use crate::projection::resourcesync::Channel;
use crate::publish::{PublishError, PublishedSet, Publisher, Rendered};
use abreast_core::{ChangeRecord, Head, Position};
use askama::Template;
use askama::filters::Safe;
use std::ops::ControlFlow;

/// Changes of a page and of the feed.
const SHOWN: u64 = 50;

/// The changes before a position, for a query; `None` if the query is not one of this page.
pub(super) fn before(query: &str) -> Option<Position> {
    let [before] = values(query, ["before"])?;
    before.parse().ok().map(Position)
}

/// A change, for templates.
struct Row {
    position: u64,
    time: Safe<Time>,
    kind: &'static str,
    name: String,
    /// Address of the page about the resource; `None` if it left the set, or browsers cannot open it.
    url: Option<String>,
    /// URI of the resource, if browsers can open it.
    uri: Option<String>,
    summary: Option<String>,
}

impl Row {
    fn of(set: &PublishedSet, record: &ChangeRecord) -> Self {
        let is_there = record.state.is_some();
        let removed = record.removed.as_deref().and_then(|found| found.label.as_deref());
        let label = record.state.as_ref().and_then(label).or(removed);
        Self {
            position: record.position.0,
            time: Time::of(record.time),
            kind: record.kind.name(),
            name: label.map_or_else(|| shown(&record.key), str::to_owned),
            url: (is_there || set.versions.is_some())
                .then(|| page_url(set, &record.key))
                .filter(|url| is_web(url)),
            uri: Some(set.urls.naming().uri(&record.key)).filter(|uri| is_web(uri)),
            summary: record.summary.clone(),
        }
    }
}

#[derive(Template)]
#[template(path = "changes.html")]
struct ChangesTemplate<'p> {
    shell: Shell<'p>,
    set: SetView<'p>,
    tab: &'static str,
    rows: Vec<Row>,
    is_first: bool,
    begun: Safe<Time>,
    older: Option<String>,
    /// Topic whose notifications update the page.
    live: Option<String>,
}

/// The last changes before a position, the newest first, and whether there are others before them.
fn read(
    publisher: &Publisher,
    set: &PublishedSet,
    head: &Head,
    before: Option<Position>,
) -> Result<(Vec<Row>, bool), PublishError> {
    let end = before.map_or(head.position.0 + 1, |before| before.0.min(head.position.0 + 1));
    let mut rows = Vec::new();
    let first = end.saturating_sub(SHOWN + 1);
    publisher.log().read(set.id, Position(first), &mut |record| {
        if record.position.0 >= end {
            return ControlFlow::Break(());
        }
        rows.push(Row::of(set, record));
        ControlFlow::Continue(())
    })?;
    rows.reverse();
    Ok((rows, first > 0))
}

/// Page of changes.
pub(super) fn changes_page(
    publisher: &Publisher,
    set: &PublishedSet,
    before: Option<Position>,
) -> Result<Rendered, PublishError> {
    let head = publisher.log().head(set.id)?;
    let (rows, has_older) = read(publisher, set, &head, before)?;
    let view = SetView::of(publisher, set)?;
    let title = format!("Changes of {}", view.title);
    // The first position after a restart of the log has a gap before it.
    let oldest = rows.last().map(|row| row.position);
    let older = oldest
        .filter(|_| has_older && !set.urls.are_in_files())
        .map(|position| url(&view.changes, &[("before", &position.to_string())]));
    let notified = set.notifications.as_ref().is_some_and(|notified| notified.changes);
    page(&ChangesTemplate {
        shell: shell(publisher, set, &title),
        tab: "changes",
        rows,
        is_first: before.is_none(),
        begun: Time::of(head.created),
        older,
        live: (before.is_none() && notified && !set.urls.are_in_files())
            .then(|| set.urls.topic(Channel::Change)),
        set: view,
    })
}

#[derive(Template)]
#[template(path = "changes.atom")]
struct FeedTemplate<'p> {
    set: SetView<'p>,
    /// The set's last change; the start of its log without changes.
    updated: String,
    author: &'p str,
    rows: Vec<Row>,
}

/// The newest changes as a feed.
pub(super) fn feed(publisher: &Publisher, set: &PublishedSet) -> Result<Rendered, PublishError> {
    let head = publisher.log().head(set.id)?;
    let (rows, _) = read(publisher, set, &head, None)?;
    let bytes = text_of(&FeedTemplate {
        set: SetView::of(publisher, set)?,
        updated: head.time.to_string(),
        author: name_of(publisher.institution()),
        rows,
    })?;
    Ok(Rendered { bytes, content_type: "application/atom+xml; charset=utf-8" })
}
