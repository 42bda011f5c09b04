//! An entry of a document of ResourceSync 0.1 as a listed resource [rs-0.1 §3.1, §4.3].

use crate::plan::listed::{Link, Listed, Patch, Relation, without_fragment};
use crate::plan::patch_format::is_known;
use abreast_core::Kind;
use abreast_resourcesync::v0_1::{
    self, Change, Entry, MIRROR, Meta, PARTIAL, SUBJECT, SUBJECT_NAME,
};
use abreast_webtypes::{Digests, Timestamp, W3cDatetime};
use std::sync::LazyLock;

/// The start of the URIs of formats of partial content that contain a media type.
const MEDIA_TYPES: &str = "https://www.iana.org/assignments/media-types/";
/// The common priority of all links, whose order in the document decides.
const PRIORITY: u32 = 1;

static NO_DIGESTS: LazyLock<Digests> = LazyLock::new(Digests::default);

/// The resource or change of an entry; `document` is the URL of its document.
pub(super) fn listed<'a>(document: &'a str, is_change_set: bool, entry: &'a Entry) -> Listed<'a> {
    let change = match entry.change {
        _ if !is_change_set => None,
        Some(Change::Deleted) => Some(Kind::Delete),
        Some(Change::Created) => Some(Kind::Create),
        Some(Change::Updated) | None => Some(Kind::Update),
    };
    let is_deletion = entry.change == Some(Change::Deleted);
    let time = entry.time.map(|time| time.instant);
    Listed {
        uri: without_fragment(&entry.loc),
        href: None,
        accept: None,
        describes: false,
        body: None,
        document,
        modified: time.filter(|_| !is_deletion).map(Timestamp::as_micros),
        // In a change set, this is the time of the change.
        modified_is_change: is_change_set,
        length: entry.size,
        media_type: entry.media_type.as_deref(),
        digests: &entry.digests,
        change,
        changed: entry.time.filter(|_| is_change_set).map(W3cDatetime::moment),
        id: None,
        patch: None,
        replaced_by: &[],
        patches: if is_change_set { patch(&entry.links).into_iter().collect() } else { Vec::new() },
        links: links(&entry.links),
        categories: categories(&entry.links, &entry.metas),
    }
}

/// The first partial content in a format that can be applied [rs-0.1 §4.3.2].
fn patch(links: &[v0_1::Link]) -> Option<Patch<'_>> {
    links.iter().filter(|link| link.has_rel(PARTIAL)).find_map(|link| {
        let protocol = link.protocol.as_deref()?.trim();
        let media_type = protocol.strip_prefix(MEDIA_TYPES).filter(|it| is_known(it))?;
        let (digests, before, after) = (&*NO_DIGESTS, None, None);
        Some(Patch { href: link.href.trim(), media_type, length: None, digests, before, after })
    })
}

fn links(links: &[v0_1::Link]) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for link in links {
        for (rel, relation) in [
            (MIRROR, Relation::Mirror),
            ("memento", Relation::Version),
            ("timemap", Relation::VersionList),
            ("via", Relation::Origin),
        ] {
            if link.has_rel(rel) {
                found.push(Link {
                    relation,
                    href: link.href.trim(),
                    priority: PRIORITY,
                    modified: None,
                    media_type: link.media_type.as_deref(),
                    length: None,
                    digests: &NO_DIGESTS,
                });
            }
        }
    }
    found
}

/// Categories: URIs, their labels, and words [rs-0.1 §3.1.7].
pub(super) fn categories<'a>(links: &'a [v0_1::Link], metas: &'a [Meta]) -> Vec<&'a str> {
    let links = links.iter().filter(|link| link.has_rel(SUBJECT) || link.has_rel(SUBJECT_NAME));
    let words = metas.iter().filter(|meta| {
        [SUBJECT, SUBJECT_NAME].iter().any(|name| meta.name.trim().eq_ignore_ascii_case(name))
    });
    links
        .flat_map(|link| [Some(link.href.as_str()), link.title.as_deref()])
        .flatten()
        .chain(words.map(|meta| meta.content.as_str()))
        .map(str::trim)
        .filter(|text| !text.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(rel: &str, href: &str, protocol: Option<&str>) -> v0_1::Link {
        let protocol = protocol.map(str::to_owned);
        v0_1::Link { rel: rel.to_owned(), href: href.to_owned(), protocol, ..Default::default() }
    }

    #[test]
    fn a_time_is_that_of_a_change_in_change_sets_only() {
        let time = W3cDatetime::parse(b"2026-01-01T00:00:00Z").ok();
        let entry = Entry { loc: "http://h/a#x".to_owned(), time, ..Entry::default() };
        let of_list = listed("http://h/s", false, &entry);
        assert_eq!((of_list.uri, of_list.change, of_list.changed), ("http://h/a", None, None));
        assert!(of_list.sure_modified().is_some());
        let of_change = listed("http://h/s", true, &entry);
        assert_eq!(of_change.change, Some(Kind::Update));
        assert!(of_change.changed.is_some() && of_change.sure_modified().is_none());
        let entry = Entry { change: Some(Change::Deleted), ..entry };
        assert!(listed("http://h/s", true, &entry).is_deletion());
    }

    #[test]
    fn only_partial_content_in_known_formats_counts() {
        let known = format!("{MEDIA_TYPES}application/json-patch+json");
        let links = vec![
            link(PARTIAL, "/none", None),
            link(PARTIAL, "/other", Some("http://example.com/protocols/changesonly")),
            link(PARTIAL, "/known", Some(&known)),
            link("alternate http://www.openarchives.org/rs/mirror", "/mirror", None),
        ];
        let entry = Entry { links, ..Entry::default() };
        let of_change = listed("http://h/s", true, &entry);
        assert_eq!(of_change.patches.iter().map(|it| it.href).collect::<Vec<_>>(), ["/known"]);
        assert_eq!(of_change.links_to(Relation::Mirror).count(), 1);
        assert!(listed("http://h/s", false, &entry).patches.is_empty());
    }

    #[test]
    fn categories_are_uris_names_and_words() {
        let subject =
            v0_1::Link { title: Some("Frogs".to_owned()), ..link(SUBJECT, "http://c/frogs", None) };
        let meta = |name: &str, content: &str| Meta { name: name.into(), content: content.into() };
        let (links, metas) = ([subject], [meta("DC.subject", " Toads "), meta("author", "x")]);
        assert_eq!(categories(&links, &metas), ["http://c/frogs", "Frogs", "Toads"]);
    }
}
