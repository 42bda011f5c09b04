//! ResourceSync 0.1.

use crate::model::error::Error;
use crate::model::item::{Entry, Head, Link};
use crate::protocol::resourcesync::{failed, hash, text};
use crate::protocol::{Next, Out, Source};
use abreast_resourcesync::v0_1::{self, Reader, Root};

pub(crate) fn is_document(begin: &[u8]) -> bool {
    v0_1::has_marks(begin)
}

pub(crate) fn read(source: &mut Source<'_>, out: &mut Out<'_>) -> Result<Next, Error> {
    let url = source.url;
    let mut reader = Reader::new(&mut *source.input);
    let head = reader.head().map_err(|error| failed(url, error))?;
    let root = head.root;
    out.document(head_of(url, head))?;
    let (mut entry, mut next) = (v0_1::Entry::default(), Next::new());
    while reader.next(&mut entry).map_err(|error| failed(url, error))? {
        if root == Root::SitemapIndex {
            next.push(entry.loc.clone());
        }
        out.entry(entry_of(&mut entry))?;
        entry.clear();
    }
    Ok(next)
}

fn head_of(url: &str, head: &v0_1::Head) -> Head {
    let is_index = head.root == Root::SitemapIndex;
    let kind = match (head.is_change_set(url), is_index) {
        (true, false) => "change set",
        (true, true) => "index of change sets",
        (false, false) => "Sitemap",
        (false, true) => "Sitemap Index",
    };
    Head {
        url: url.to_owned(),
        protocol: "ResourceSync 0.1".to_owned(),
        kind: kind.to_owned(),
        is_index,
        modified: text(head.modified),
        links: head.links.iter().cloned().map(link_of).collect(),
        ..Head::default()
    }
}

fn entry_of(entry: &mut v0_1::Entry) -> Entry {
    let time = text(entry.time);
    // The one time of an entry is the time of the change, if there is a change.
    let (datetime, lastmod) = if entry.change.is_some() { (time, None) } else { (None, time) };
    Entry {
        uri: std::mem::take(&mut entry.loc),
        change: entry.change.map(|change| change.token().to_owned()),
        datetime,
        lastmod,
        length: entry.size,
        hash: hash(&entry.digests),
        media_type: entry.media_type.take(),
        encoding: entry.encoding.take(),
        path: entry.path.take(),
        links: entry.links.drain(..).map(link_of).collect(),
        ..Entry::default()
    }
}

fn link_of(link: v0_1::Link) -> Link {
    Link { media_type: link.media_type, title: link.title, ..Link::new(link.rel, link.href) }
}
