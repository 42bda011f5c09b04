//! Source Description: the sets of the Source [rs-core §8].
//!
//! The Source Description is one document. If the number of sets exceeds the limit of a Sitemap,
//! its URL has an index of several documents.

use super::values::{XML, link};
use super::{PublishError, PublishedSet, Rendered, SourceUrls};
use crate::projection::pages::HTML;
use abreast_resourcesync::v1_1::{
    Capability, Entry, Head, Ln, Root, write_end, write_entry, write_head,
};
use std::sync::Arc;

/// Capability Lists in one Source Description, unless fewer are asked for [rs-core §7].
pub(crate) const MAX_SETS: usize = 50_000;

/// Renders the Source Description, or its index if there are more than `most` sets.
pub(super) fn entry_point(urls: &SourceUrls, sets: &[Arc<PublishedSet>], most: usize) -> Rendered {
    if sets.len() <= most {
        return description(urls, sets, Vec::new());
    }
    let mut bytes = Vec::new();
    let head = Head {
        root: Root::SitemapIndex,
        capability: Some(Capability::Description),
        links: vec![described_by(&urls.page())],
        ..Head::default()
    };
    write_head(&mut bytes, &head);
    for number in 1..=sets.len().div_ceil(most) {
        let loc = urls.source_description_part(number as u64);
        write_entry(
            &mut bytes,
            Root::SitemapIndex,
            &Entry { loc, capability: Some(Capability::Description), ..Entry::default() },
        );
    }
    write_end(&mut bytes, Root::SitemapIndex);
    Rendered { bytes, content_type: XML }
}

/// Renders one Source Description of the index, counted from 1.
pub(super) fn part(
    urls: &SourceUrls,
    sets: &[Arc<PublishedSet>],
    most: usize,
    number: u64,
) -> Result<Rendered, PublishError> {
    let chunk = number.checked_sub(1).and_then(|number| sets.chunks(most).nth(number as usize));
    let chunk = chunk.filter(|_| sets.len() > most).ok_or(PublishError::NotFound)?;
    Ok(description(urls, chunk, vec![link("index", &urls.source_description())]))
}

fn description(urls: &SourceUrls, sets: &[Arc<PublishedSet>], mut links: Vec<Ln>) -> Rendered {
    let mut bytes = Vec::new();
    links.push(described_by(&urls.page()));
    let head = Head {
        root: Root::UrlSet,
        capability: Some(Capability::Description),
        links,
        ..Head::default()
    };
    write_head(&mut bytes, &head);
    for set in sets {
        let entry = Entry {
            loc: set.urls.capability_list(),
            capability: Some(Capability::CapabilityList),
            links: vec![described_by(&set.urls.page())],
            ..Entry::default()
        };
        write_entry(&mut bytes, Root::UrlSet, &entry);
    }
    write_end(&mut bytes, Root::UrlSet);
    Rendered { bytes, content_type: XML }
}

/// Link `rs:ln rel="describedby"` to a page for people.
pub(super) fn described_by(page: &str) -> Ln {
    let media_type = HTML.split(';').next().map(str::to_owned);
    Ln { media_type, ..link("describedby", page) }
}
