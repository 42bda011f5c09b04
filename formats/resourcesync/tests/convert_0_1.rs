//! Documents of 1.1 come back from 0.1 as they were, except for the losses named here.
#![allow(clippy::unwrap_used)]

mod any;

use abreast_resourcesync::v0_1::{self, MEDIA_TYPES, MIRROR, PARTIAL, SUBJECT};
use abreast_resourcesync::v1_1::{Capability, Change, Document, Entry, Head, Ln, Root};
use abreast_webtypes::{Algorithm, W3cDatetime};
use any::{any_document, datetime};
use proptest::prelude::*;
use proptest::sample::select;

const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";

/// Kinds of documents that 0.1 has.
const KINDS: [(Capability, Root); 4] = [
    (Capability::ResourceList, Root::UrlSet),
    (Capability::ResourceList, Root::SitemapIndex),
    (Capability::ResourceDumpManifest, Root::UrlSet),
    (Capability::ChangeList, Root::UrlSet),
];

/// A document of one of the kinds that is right by its own specification.
fn any_of_a_kind() -> impl Strategy<Value = Document> {
    let rel = select(vec![
        PATCH,
        "duplicate",
        "collection",
        "memento",
        "http://purl.org/dc/terms/subject",
    ]);
    (any_document(), select(&KINDS[..]), rel).prop_map(|(mut document, (capability, root), rel)| {
        let is_manifest = capability == Capability::ResourceDumpManifest;
        let is_change = capability == Capability::ChangeList;
        let head = &mut document.head;
        (head.capability, head.root) = (Some(capability), root);
        if is_change {
            (head.at, head.completed) = (None, None);
            head.until = head.until.or(Some(datetime(1_700_000_000_000_000)));
        } else {
            (head.from, head.until) = (None, None);
        }
        for (number, entry) in document.entries.iter_mut().enumerate() {
            entry.path = is_manifest.then(|| format!("/resources/{number}"));
            if is_change {
                entry.change = entry.change.or(Some(Change::Created));
                entry.datetime = entry.datetime.or(Some(datetime(0)));
            }
            if let Some(link) = entry.links.first_mut() {
                rel.clone_into(&mut link.rel);
            }
        }
        document
    })
}

/// What is lost, item by item.
fn without_losses(document: &Document) -> Document {
    let mut document = document.clone();
    let head = &mut document.head;
    let is_change = head.capability == Some(Capability::ChangeList);
    head.links.clear();
    (head.completed, head.from) = (None, None);
    if document.entries.is_empty() && head.capability == Some(Capability::ResourceDumpManifest) {
        // A manifest of nothing is a list of nothing.
        head.capability = Some(Capability::ResourceList);
    }
    for entry in &mut document.entries {
        (entry.at, entry.completed, entry.from, entry.until) = (None, None, None, None);
        entry.capability = None;
        if is_change {
            let is_deleted = entry.change == Some(Change::Deleted);
            entry.lastmod = entry.datetime.filter(|_| !is_deleted);
        } else {
            (entry.change, entry.datetime) = (None, None);
        }
        entry.digests.sha512 = None;
        entry.digests.unknown.clear();
        entry.links.sort_by_key(|link| link.pri.unwrap_or(u32::MAX));
        entry.links.retain(|link| !link.has_rel(PATCH) || (is_change && link.media_type.is_some()));
        for link in &mut entry.links {
            let Ln { rel, href, media_type, .. } = std::mem::take(link);
            *link = Ln { rel, href, media_type, ..Ln::default() };
        }
    }
    document
}

/// As bytes and back, by the strict reader.
fn written(document: &v0_1::Document) -> v0_1::Document {
    let mut read = v0_1::Document::from_slice(&document.to_bytes()).unwrap();
    for entry in &mut read.entries {
        entry.line = 0;
    }
    read
}

proptest! {
    #[test]
    fn documents_of_1_1_come_back_from_0_1(document in any_of_a_kind()) {
        let converted = v0_1::Document::from_1_1(&document).unwrap();
        prop_assert_eq!(converted.head.change_set, document.head.capability == Some(Capability::ChangeList));
        let read = written(&converted);
        prop_assert_eq!(&read, &converted);
        prop_assert_eq!(read.to_1_1(), without_losses(&document));
    }

    #[test]
    fn a_second_round_trip_loses_nothing(document in any_of_a_kind()) {
        let once = v0_1::Document::from_1_1(&document).unwrap().to_1_1();
        prop_assert_eq!(v0_1::Document::from_1_1(&once).unwrap().to_1_1(), once);
    }
}

fn at(text: &str) -> Option<W3cDatetime> {
    W3cDatetime::parse(text.as_bytes()).ok()
}

fn round_trip(entry: &Entry, of_change_set: bool) -> Option<Entry> {
    v0_1::Entry::from_1_1(entry, of_change_set).to_1_1(of_change_set)
}

#[test]
fn documents_that_0_1_does_not_have_are_not_converted() {
    for capability in Capability::ALL {
        for root in [Root::UrlSet, Root::SitemapIndex] {
            let head = Head { capability: Some(capability), root, ..Head::default() };
            let expected = KINDS.contains(&(capability, root));
            assert_eq!(v0_1::Head::from_1_1(&head).is_some(), expected, "{capability:?} {root:?}");
        }
    }
    // A plain Sitemap comes back as a Resource List.
    let plain = v0_1::Head::from_1_1(&Head::default()).unwrap();
    assert_eq!(plain.to_1_1().capability, Some(Capability::ResourceList));
}

#[test]
fn an_interval_becomes_its_end() {
    let (from, until) = (at("2026-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
    let capability = Some(Capability::ChangeList);
    let up = Ln { rel: "up".to_owned(), href: "/".to_owned(), ..Ln::default() };
    let head = Head { capability, from, until, links: vec![up], ..Head::default() };
    let converted = v0_1::Head::from_1_1(&head).unwrap();
    assert_eq!((converted.modified, converted.links.len()), (until, 0));
    assert_eq!(converted.to_1_1(), Head { capability, until, ..Head::default() });
}

#[test]
fn the_time_of_a_change_replaces_its_lastmod() {
    let (lastmod, datetime) = (at("2020-01-01T00:00:00Z"), at("2026-01-02T00:00:00Z"));
    for change in [Change::Created, Change::Updated, Change::Deleted] {
        let entry = Entry { change: Some(change), lastmod, datetime, ..Entry::default() };
        let back = round_trip(&entry, true).unwrap();
        assert_eq!((back.change, back.datetime), (Some(change), datetime));
        assert_eq!(back.lastmod, datetime.filter(|_| change != Change::Deleted));
    }
    // Without `datetime` it is the time of the change, as in 1.0.
    let old = Entry { change: Some(Change::Updated), lastmod, ..Entry::default() };
    assert_eq!(round_trip(&old, true).unwrap().datetime, lastmod);
    let listed = Entry { change: Some(Change::Updated), lastmod, datetime, ..Entry::default() };
    let back = round_trip(&listed, false).unwrap();
    assert_eq!((back.lastmod, back.change, back.datetime), (lastmod, None, None));
}

#[test]
fn digests_that_0_1_does_not_name_are_lost() {
    let mut entry = Entry::default();
    entry.digests.set(Algorithm::Sha256, &[1; 32]);
    entry.digests.set(Algorithm::Sha512, &[2; 64]);
    entry.digests.unknown.push("crc32:00".to_owned());
    let back = round_trip(&entry, false).unwrap().digests;
    assert_eq!((back.sha256, back.sha512, back.unknown.len()), (entry.digests.sha256, None, 0));
}

#[test]
fn links_keep_their_meaning_and_order_only() {
    let link = |rel: &str, href: &str, pri| Ln {
        rel: rel.to_owned(),
        href: href.to_owned(),
        pri,
        length: Some(5),
        modified: at("2026-01-02T00:00:00Z"),
        media_type: Some("application/json-patch+json".to_owned()),
        ..Ln::default()
    };
    let links = vec![
        link("duplicate", "second", Some(2)),
        link("duplicate", "first", Some(1)),
        link(PATCH, "patch", None),
        link("collection", "frogs", None),
        link("memento", "version", None),
    ];
    let converted =
        v0_1::Entry::from_1_1(&Entry { links: links.clone(), ..Entry::default() }, true);
    let rels: Vec<_> = converted.links.iter().map(|link| link.rel.as_str()).collect();
    let mirror = format!("alternate {MIRROR}");
    let category = format!("{SUBJECT} collection");
    assert_eq!(rels, [mirror.as_str(), &mirror, PARTIAL, &category, "memento"]);
    assert_eq!(
        converted.links[2].protocol.as_deref(),
        Some(format!("{MEDIA_TYPES}application/json-patch+json").as_str())
    );
    let back = converted.to_1_1(true).unwrap().links;
    let hrefs: Vec<_> = back.iter().map(|link| (link.rel.as_str(), link.href.as_str())).collect();
    assert_eq!(
        hrefs,
        [
            ("duplicate", "first"),
            ("duplicate", "second"),
            (PATCH, "patch"),
            ("collection", "frogs"),
            ("memento", "version")
        ]
    );
    assert!(back.iter().all(|link| (link.pri, link.length, link.modified) == (None, None, None)));
    assert!(back.iter().all(|link| link.media_type == links[0].media_type));
    // Partial content is in change sets only.
    let listed = v0_1::Entry::from_1_1(&Entry { links, ..Entry::default() }, false);
    assert_eq!(listed.links.len(), 4);
}

#[test]
fn what_only_0_1_has_does_not_reach_1_1() {
    let text = "<urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9' xmlns:rs='http://www.openarchives.org/rs/terms/' xmlns:xhtml='http://www.w3.org/1999/xhtml'>\
        <url><loc rs:protocol='urn:x'>http://example.org/a</loc><xhtml:meta name='DC.subject' content='Newts'/>\
        <xhtml:link rel='DCTERMS.subject' href='http://example.org/frogs' title='Frogs'/></url>\
        <url><loc>http://example.org/b</loc><expires>2026-01-03</expires></url></urlset>";
    let list = v0_1::Document::from_slice(text.as_bytes()).unwrap().to_1_1();
    assert_eq!(list.entries.len(), 1);
    let entry = &list.entries[0];
    assert_eq!(entry.links.len(), 1);
    assert_eq!(entry.links[0].rel, "http://purl.org/dc/terms/subject");
}
