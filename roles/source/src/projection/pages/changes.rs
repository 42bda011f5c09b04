//! Changes of a set, the newest first: a page, and a feed in Atom [rfc4287 §3].

use super::query::{reader, url, values};
use super::resources::{history_url, page_url, shown};
use super::set_view::{SetView, shell};
use super::shell::{Shell, Time, is_web, name_of, page, text_of};
use crate::projection::resourcesync::Channel;
use crate::publish::{PublishError, PublishedSet, Publisher, Reader, Rendered};
use abreast_core::{ChangeRecord, Head, Position};
use askama::Template;
use askama::filters::Safe;
use std::ops::ControlFlow;

/// Changes of a page and of the feed.
const SHOWN: u64 = 50;

/// Changes before a position, or the newest, and their reader.
#[derive(Default)]
pub(super) struct Earlier {
    before: Option<Position>,
    reader: Reader,
}

impl Earlier {
    /// The changes for a query; `None` if the query is not one of this page.
    pub(super) fn parse(query: &str, browser: &Reader) -> Option<Self> {
        let [before, languages] = values(query, ["before", "lang"])?;
        let before = match before.as_str() {
            "" => None,
            before => Some(Position(before.parse().ok()?)),
        };
        Some(Self { before, reader: reader(&languages, browser)? })
    }
}

/// A change, for templates.
struct Row {
    position: u64,
    time: Safe<Time>,
    kind: &'static str,
    name: String,
    /// Language of the name.
    language: Option<String>,
    /// Address of the page about the resource; `None` if it left the set, or browsers cannot open it.
    url: Option<String>,
    /// URI of the resource, if browsers can open it.
    uri: Option<String>,
    summary: Option<String>,
}

impl Row {
    fn of(set: &PublishedSet, record: &ChangeRecord, reader: &Reader) -> Self {
        let is_there = record.state.is_some();
        let label = set.about.label(record.description(), reader.languages());
        Self {
            position: record.position.0,
            time: Time::of(record.time),
            kind: record.kind.name(),
            name: label.map_or_else(|| shown(&record.key), |label| label.text.clone()),
            language: label.map(|label| label.language.clone()).filter(|tag| !tag.is_empty()),
            url: match &set.versions {
                _ if is_there => Some(page_url(set, &record.key, reader)),
                Some(_) => Some(history_url(set, &record.key)),
                None => None,
            }
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
    /// Address of the newest changes.
    newest: String,
    begun: Safe<Time>,
    newer: Option<String>,
    older: Option<String>,
    /// Topic whose notifications update the page.
    live: Option<String>,
}

/// The last changes before a position, the newest first, and whether there are others before them.
fn read(
    publisher: &Publisher,
    set: &PublishedSet,
    head: &Head,
    earlier: &Earlier,
) -> Result<(Vec<Row>, bool), PublishError> {
    let end =
        earlier.before.map_or(head.position.0 + 1, |before| before.0.min(head.position.0 + 1));
    let mut rows = Vec::new();
    let first = end.saturating_sub(SHOWN + 1);
    publisher.log().read(set.id, Position(first), &mut |record| {
        if record.position.0 >= end {
            return ControlFlow::Break(());
        }
        rows.push(Row::of(set, record, &earlier.reader));
        ControlFlow::Continue(())
    })?;
    rows.reverse();
    Ok((rows, first > 0))
}

/// Page of changes.
pub(super) fn changes_page(
    publisher: &Publisher,
    set: &PublishedSet,
    earlier: &Earlier,
) -> Result<Rendered, PublishError> {
    let head = publisher.log().head(set.id)?;
    let (rows, has_older) = read(publisher, set, &head, earlier)?;
    let view = SetView::of(publisher, set)?;
    let title = format!("Changes of {}", view.title);
    let languages = earlier.reader.in_address();
    // The first position after a restart of the log has a gap before it.
    let oldest = rows.last().map(|row| row.position);
    let older = oldest
        .filter(|_| has_older && !set.urls.are_in_files())
        .map(|position| position.to_string())
        .map(|position| url(&view.changes, &[("before", &position), ("lang", languages)]));
    // Positions increase by one, so the page of newer changes is as many positions later.
    let newer = earlier.before.map(|before| before.0.saturating_add(SHOWN));
    let newer = newer
        .filter(|before| *before <= head.position.0)
        .map(|before| url(&view.changes, &[("before", &before.to_string()), ("lang", languages)]));
    let notified = set.notifications.as_ref().is_some_and(|notified| notified.changes);
    page(&ChangesTemplate {
        shell: shell(publisher, set, &title),
        tab: "changes",
        rows,
        is_first: earlier.before.is_none(),
        newest: url(&view.changes, &[("lang", languages)]),
        begun: Time::of(head.created),
        newer,
        older,
        live: (earlier.before.is_none() && notified && !set.urls.are_in_files())
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
    let (rows, _) = read(publisher, set, &head, &Earlier::default())?;
    let bytes = text_of(&FeedTemplate {
        set: SetView::of(publisher, set)?,
        updated: head.time.to_string(),
        author: name_of(publisher.institution()),
        rows,
    })?;
    Ok(Rendered { bytes, content_type: "application/atom+xml; charset=utf-8" })
}
