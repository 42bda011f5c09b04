//! Change feeds in Activity Streams: Entity Metadata Management and IIIF Change Discovery.

use crate::model::error::Error;
use crate::model::item::{Entry, Head, Link};
use crate::protocol::{Next, Out, Source};
use abreast_emm::{Action, Document, DocumentKind, Item, ReadObject};

/// Most bytes of a page, which is read as a whole.
const BYTES_MAX: u64 = 256 << 20;

pub(crate) fn is_document(begin: &[u8]) -> bool {
    abreast_emm::has_mark(begin)
}

pub(crate) fn read(source: &mut Source<'_>, out: &mut Out<'_>) -> Result<Next, Error> {
    let url = source.url;
    let bytes = source.all(BYTES_MAX)?;
    let document = Document::from_slice(&bytes, url)
        .map_err(|error| Error::document(url, "emm.document", error.to_string(), None))?;
    drop(bytes);
    let is_index = document.kind == DocumentKind::EntryPoint;
    let next = if is_index { &document.first } else { &document.next };
    let next = next.iter().cloned().collect();
    out.document(head_of(url, &document, is_index))?;
    for item in document.items {
        for object in &item.objects {
            out.entry(entry_of(&item, object))?;
        }
    }
    Ok(next)
}

fn head_of(url: &str, document: &Document, is_index: bool) -> Head {
    let links = [
        ("first", &document.first),
        ("last", &document.last),
        ("prev", &document.prev),
        ("next", &document.next),
        ("partOf", &document.part_of),
    ];
    let links = links.into_iter().filter_map(|(rel, href)| Some(Link::new(rel, href.clone()?)));
    let downloads = document.downloads.iter().map(|link| Link {
        media_type: link.media_type.clone(),
        modified: link.updated.map(|time| time.to_string()),
        ..Link::new("url", link.href.clone())
    });
    Head {
        url: url.to_owned(),
        protocol: "Activity Streams".to_owned(),
        kind: if is_index { "Entry Point" } else { "Change Set" }.to_owned(),
        is_index,
        links: links.chain(downloads).collect(),
        ..Head::default()
    }
}

fn entry_of(item: &Item, object: &ReadObject) -> Entry {
    let change = match item.action {
        Action::Create => "created",
        Action::Add => "added",
        Action::Update => "updated",
        Action::Deprecate => "deprecated",
        Action::Remove => "removed",
        Action::Delete => "deleted",
        Action::Move => "moved",
        Action::Refresh => "refresh",
        Action::Other => "other",
    };
    let mut links: Vec<Link> = object
        .links
        .iter()
        .map(|link| Link {
            media_type: link.media_type.clone(),
            ..Link::new("url", link.href.clone())
        })
        .collect();
    links.extend(item.target().iter().map(|target| Link::new("target", target.clone())));
    links.extend(item.origin().iter().map(|origin| Link::new("origin", origin.clone())));
    if let Some((Some(patch), _)) = item.patch() {
        links.push(Link::new("patch", patch));
    }
    Entry {
        uri: object.id.clone(),
        change: Some(change.to_owned()),
        datetime: item.time.map(|time| time.to_string()),
        id: item.id.as_deref().map(str::to_owned),
        links,
        ..Entry::default()
    }
}
