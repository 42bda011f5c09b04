//! Feeds of SDShare.

use crate::model::error::Error;
use crate::model::item::{Entry, Head, Link};
use crate::protocol::{Next, Out, Source};
use abreast_sdshare::{Feed, FeedKind, Limits, ReadError, Reader, Relation};

pub(crate) fn read(source: &mut Source<'_>, out: &mut Out<'_>) -> Result<Next, Error> {
    let url = source.url;
    let failed = |error: ReadError| match error {
        ReadError::Syntax(fault) => Error::syntax(url, &fault),
        ReadError::Io(error) => Error::input(url, error),
    };
    let mut reader = Reader::new(&mut *source.input, url, Limits::default());
    let (mut entry, mut is_first) = (abreast_sdshare::Entry::default(), true);
    loop {
        let is_there = reader.next(&mut entry).map_err(failed)?;
        if is_first {
            // The metadata of a feed precede its entries, except in unusual feeds.
            is_first = false;
            let kind = if is_there { entry.kind() } else { None };
            out.document(head_of(url, reader.head(), kind))?;
        }
        if !is_there {
            break;
        }
        for each in entries_of(&entry) {
            out.entry(each)?;
        }
        entry.clear();
    }
    let next = reader.head().link(&Relation::Next);
    Ok(next.into_iter().map(|link| link.href.clone()).collect())
}

fn head_of(url: &str, feed: &Feed, kind: Option<FeedKind>) -> Head {
    Head {
        url: url.to_owned(),
        protocol: "SDShare".to_owned(),
        kind: kind.map_or("Atom feed", FeedKind::name).to_owned(),
        modified: feed.updated.map(|time| time.to_string()),
        title: Some(feed.title.clone()).filter(|title| !title.is_empty()),
        links: feed.links.iter().map(link_of).collect(),
        ..Head::default()
    }
}

/// One entry for each resource; an entry without resource has the address of the feed or file in its place.
fn entries_of(entry: &abreast_sdshare::Entry) -> Vec<Entry> {
    let kind = entry.kind();
    let time = entry.updated.map(|time| time.to_string());
    let is_change = kind == Some(FeedKind::Fragments);
    let change = is_change.then_some(if entry.is_deleted { "deleted" } else { "updated" });
    let (datetime, lastmod) = if is_change { (time, None) } else { (None, time) };
    let made = |uri: &str| Entry {
        uri: uri.to_owned(),
        change: change.map(str::to_owned),
        datetime: datetime.clone(),
        lastmod: lastmod.clone(),
        id: Some(entry.id.clone()).filter(|id| !id.is_empty()),
        title: Some(entry.title.clone()).filter(|title| !title.is_empty()),
        links: entry.links.iter().map(link_of).collect(),
        ..Entry::default()
    };
    if !entry.resources.is_empty() {
        return entry.resources.iter().map(|uri| made(uri)).collect();
    }
    let target = kind.and_then(|kind| entry.targets(&kind.relation()).next());
    let target = target.or(entry.links.first()).map_or(&*entry.id, |link| &link.href);
    vec![made(target)]
}

fn link_of(link: &abreast_sdshare::Link) -> Link {
    Link {
        media_type: link.media_type.clone(),
        ..Link::new(link.relation.to_string(), link.href.clone())
    }
}
