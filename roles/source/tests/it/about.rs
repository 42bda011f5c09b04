//! Several sets: the index of Source Descriptions, and pages for people.

use crate::world::{BASE, World, bytes};
use abreast_core::NewSet;
use abreast_resourcesync::v1_1::{Capability, Document, Head, Root};
use abreast_source::projection::resourcesync::ResourceSync;
use abreast_source::publish::{About, PublishedSet, Publisher, SourceUrls};
use std::sync::Arc;

fn sets(world: &World, number: usize) -> Publisher {
    sets_with(world, number, &About::default())
}

/// Publishes `number` sets, the first with this description.
fn sets_with(world: &World, number: usize, first: &About) -> Publisher {
    let urls = SourceUrls::new(BASE);
    let sets = (0..number).map(|number| {
        let slug = format!("s{number}");
        let id =
            world.log.open_set(&NewSet { slug: slug.clone(), ..NewSet::default() }).unwrap().id;
        world.log.complete_import(id).unwrap();
        let about = if number == 0 { first.clone() } else { About::default() };
        PublishedSet { about, ..PublishedSet::new(id, slug.as_str(), urls.set(&slug)) }
    });
    let sets: Vec<_> = sets.collect();
    Publisher::new(Arc::clone(&world.log), urls, sets, world.temporary.path().join("documents"))
        .unwrap()
}

fn read(publisher: &Publisher, path: &str) -> Document {
    Document::from_slice(&bytes(publisher, path)).unwrap()
}

fn link(head: &Head, rel: &str) -> Option<String> {
    head.links.iter().find(|ln| ln.has_rel(rel)).map(|ln| ln.href.clone())
}

#[test]
fn many_sets_are_listed_by_an_index_of_source_descriptions() {
    let world = World::new();
    let publisher = sets(&world, 5)
        .with_projections(vec![Box::new(ResourceSync::default().with_sets_per_description(2))]);
    let index = read(&publisher, ".well-known/resourcesync");
    assert_eq!(
        (index.head.root, index.head.capability),
        (Root::SitemapIndex, Some(Capability::Description))
    );
    let parts: Vec<_> = index.entries.iter().map(|entry| entry.loc.clone()).collect();
    assert_eq!(parts, [1, 2, 3].map(|number| format!("{BASE}sourcedescription/{number}.xml")));
    let mut listed = Vec::new();
    for (number, loc) in parts.iter().enumerate() {
        let part = read(&publisher, &format!("sourcedescription/{}.xml", number + 1));
        assert_eq!(
            (part.head.root, part.head.capability),
            (Root::UrlSet, Some(Capability::Description))
        );
        assert_eq!(link(&part.head, "index").unwrap(), format!("{BASE}.well-known/resourcesync"));
        assert!(part.entries.len() <= 2);
        for entry in part.entries {
            let list = read(&publisher, &format!("s{}/capabilitylist.xml", listed.len()));
            assert_eq!(
                link(&list.head, "up").as_ref(),
                Some(loc),
                "a Capability List leads up to where it is listed"
            );
            listed.push(entry.loc);
        }
    }
    assert_eq!(listed, [0, 1, 2, 3, 4].map(|number| format!("{BASE}s{number}/capabilitylist.xml")));
    for missing in [0, 4, u64::MAX] {
        assert!(publisher.document(&format!("sourcedescription/{missing}.xml")).is_err());
    }
    // If one Source Description is enough, the document has no parts.
    let publisher = publisher
        .with_projections(vec![Box::new(ResourceSync::default().with_sets_per_description(5))]);
    assert!(publisher.bytes("sourcedescription/1.xml").is_err());
}

#[test]
fn documents_lead_to_pages_for_people_and_these_back() {
    let world = World::new();
    let about = About {
        title: "<Maps> & \"charts\"".into(),
        description: Some("First.\n\nSecond <script>alert(1)</script>.".into()),
        licence: Some("https://creativecommons.org/publicdomain/zero/1.0/".into()),
        contact: Some("maps@example.org".into()),
        ..About::default()
    };
    let publisher = sets_with(&world, 2, &about);
    let description = read(&publisher, ".well-known/resourcesync");
    assert_eq!(link(&description.head, "describedby").unwrap(), format!("{BASE}about.html"));
    let described =
        description.entries[0].links.iter().find(|ln| ln.has_rel("describedby")).unwrap();
    assert_eq!(
        (described.href.as_str(), described.media_type.as_deref()),
        ("https://example.org/s0/about.html", Some("text/html"))
    );
    let list = read(&publisher, "s0/capabilitylist.xml");
    assert_eq!(link(&list.head, "describedby").unwrap(), described.href);

    let page = String::from_utf8(bytes(&publisher, "s0/about.html")).unwrap();
    for part in [
        "<title>&lt;Maps&gt; &amp; &quot;charts&quot; – Published collections</title>",
        "<html lang=\"en\">",
        "<p>First.</p>",
        "Second &lt;script&gt;",
        "rel=\"license\" href=\"https://creativecommons.org/",
        "mailto:maps@example.org",
        "<dt>Resources</dt><dd>0</dd>",
        "<link rel=\"resourcesync\" href=\"https://example.org/s0/capabilitylist.xml\">",
        "abreast sync https://example.org/s0/capabilitylist.xml FOLDER",
        "default-src &#39;none&#39;",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // Data for search engines is not a script that runs.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains("<script type=\"application/ld+json\">{") && !page.contains("<style"));
    assert!(page.contains("\\u003cMaps> & \\\"charts\\\""), "{page}");
    let page = String::from_utf8(bytes(&publisher, "about.html")).unwrap();
    assert!(page.contains("s0/about.html") && page.contains(">s1</a>"), "{page}");
    assert_eq!(page.matches("<link rel=\"resourcesync\"").count(), 2);
}
