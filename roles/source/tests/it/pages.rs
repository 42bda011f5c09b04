//! Pages for people: all kinds, the search in them, and hostile names.

use crate::world::{BASE, World, body};
use abreast_core::{Change, Description, State, append};
use abreast_rdf::{ReadOptions, Syntax, read};
use abreast_source::publish::{About, Institution, PublishError, PublishedSet, Publisher};
use abreast_webtypes::{Label, Timestamp};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// A name that would be markup, a script or a header if it were not escaped.
const HOSTILE: &str = "<script>alert(1)</script>\"'&\u{202e}";

/// Publishes a set with many files and hostile texts.
fn hostile() -> (World, Publisher) {
    let world = World::new();
    for number in 0..250 {
        world.write(&format!("many/{number:03}.txt"), "text");
    }
    world.write("many/deep/er/x.xml", "<x>&amp;</x>");
    world.write("a.json", "{\"a\":[1,2]}");
    world.write("image.png", "not an image");
    world.write("<script>alert(1)<\\script>\"'&.txt", HOSTILE);
    world.scan();
    world.log.complete_import(world.set).unwrap();
    let description = Description {
        types: vec![HOSTILE.to_owned()],
        labels: vec![Label::plain(HOSTILE)],
        media_type: None,
    };
    let state = State {
        description: Some(Box::new(description)),
        media_type: Some(HOSTILE.to_owned()),
        modified: Timestamp::from_seconds(1_772_355_600),
        ..State::default()
    };
    let change = Change { summary: Some(HOSTILE.to_owned()), ..Change::put("javascript:x", state) };
    append(&*world.log, world.set, vec![change]).unwrap();
    let about = About {
        title: HOSTILE.to_owned(),
        description: Some(HOSTILE.to_owned()),
        licence: Some(HOSTILE.to_owned()),
        contact: Some(HOSTILE.to_owned()),
        ..About::default()
    };
    let publisher = world.publisher_of(PublishedSet { about, ..world.published() });
    let institution = Institution {
        name: HOSTILE.to_owned(),
        contact: Some("javascript:alert(1)".to_owned()),
        ..Institution::default()
    };
    (world, publisher.with_institution(institution))
}

/// A page, with a query or without.
fn page(publisher: &Publisher, address: &str) -> Result<String, PublishError> {
    let document = match address.split_once('?') {
        Some((path, query)) => publisher.queried(path, query)?,
        None => publisher.document(address)?,
    };
    Ok(String::from_utf8(body(document.plain())).unwrap())
}

/// The addresses of links in a page, below the base, without fragments.
fn links(page: &str) -> BTreeSet<String> {
    let hrefs = page.split("href=\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let ours = hrefs.filter_map(|(href, _)| href.strip_prefix(BASE));
    ours.map(|path| path.split('#').next().unwrap().replace("&amp;", "&")).collect()
}

#[test]
fn all_pages_lead_to_pages_and_no_text_is_markup() {
    let (_world, publisher) = hostile();
    let mut seen = BTreeSet::new();
    let mut waiting = vec!["about.html".to_owned()];
    while let Some(address) = waiting.pop() {
        if !seen.insert(address.clone()) {
            continue;
        }
        let text = page(&publisher, &address).unwrap_or_else(|error| panic!("{address}: {error}"));
        assert!(text.len() <= 100_000, "{address}: {} bytes", text.len());
        if [".ttl", ".rdf"].iter().any(|end| address.ends_with(end)) {
            continue;
        }
        for part in ["<script>alert", "\u{202e}", "href=\"javascript", "onerror"] {
            assert!(!text.contains(part), "{part} in {address}: {text}");
        }
        if !text.starts_with("<!doctype html>") {
            continue;
        }
        for part in
            ["<h1", "<main id=\"main\"", "lang=\"en\"", "viewport", "default-src &#39;none&#39;"]
        {
            assert!(text.contains(part), "{part} is not in {address}");
        }
        let inner = links(&text).into_iter().filter(|path| {
            let path = path.split('?').next().unwrap();
            [".html", ".atom", ".ttl", ".rdf", ".css", ".svg", ".js"]
                .iter()
                .any(|end| path.ends_with(end))
        });
        waiting.extend(inner);
    }
    let of = |part: &str| seen.iter().filter(|address| address.contains(part)).count();
    assert_eq!(of("resource.html?"), 255, "each resource has a page that is reached by links");
    assert_eq!((of("changes.html"), of("changes.atom"), of("dataset.ttl")), (1, 1, 1));
}

#[test]
fn static_pages_link_to_addresses_of_the_web_only() {
    let (world, _) = hostile();
    let mut set = world.published();
    set.urls = set.urls.in_files();
    let text = page(&world.publisher_of(set), "set/changes.html").unwrap();
    assert!(text.contains("&lt;script&gt;"), "the change is listed: {text}");
    assert!(!text.contains("href=\"javascript"), "{text}");
}

#[test]
fn a_folder_is_a_row_and_pages_follow_each_other() {
    let (_world, publisher) = hostile();
    let text = page(&publisher, "set/resources.html").unwrap();
    let rows = text.split("<ul class=\"rows\">").nth(1).unwrap();
    assert_eq!(rows.matches("<li>").count(), 5, "{text}");
    assert!(text.contains("prefix=many/\">many/</a> <span class=\"facts\">folder"), "{text}");
    let mut address = Some("set/resources.html?prefix=many/".to_owned());
    let (mut names, mut pages) = (Vec::new(), 0);
    while let Some(at) = address {
        let text = page(&publisher, &at).unwrap();
        pages += 1;
        let rows = text.split("<ul class=\"rows\">").nth(1).unwrap().split("</ul>").next().unwrap();
        names.extend(
            rows.lines()
                .filter_map(|row| Some(row.split_once("\">")?.1.split_once("</a>")?.0.to_owned())),
        );
        address = links(&text).into_iter().find(|link| link.contains("after="));
    }
    assert_eq!((names.len(), pages), (251, 3));
    assert_eq!((names[0].as_str(), names[250].as_str()), ("000.txt", "deep/"));
}

#[test]
fn a_search_finds_names_types_and_days() {
    let (_world, publisher) = hostile();
    let found = |query: &str| {
        let text = page(&publisher, &format!("set/resources.html?{query}")).unwrap();
        text.split("<ul class=\"rows\">").nth(1).map_or(0, |rows| rows.matches("<li>").count())
    };
    for (query, count) in [
        ("q=ER/X", 1),
        ("q=00", 12),
        ("q=%3Cscript", 2),
        ("type=text/plain&q=", 100),
        ("type=application/", 2),
        ("prefix=many/1&type=text/", 100),
        ("prefix=many/24&q=txt", 10),
        ("until=2026-03-02", 1),
        ("since=2026-03-01&until=2026-03-02", 1),
        ("until=2026-03-01", 0),
        ("q=nothing", 0),
    ] {
        assert_eq!(found(query), count, "{query}");
    }
}

#[test]
fn queries_that_no_page_has_are_refused() {
    let (_world, publisher) = hostile();
    for address in [
        "set/resources.html?x=1",
        "set/resources.html?since=yesterday",
        "set/resource.html?key=",
        "set/resource.html?other=a.json",
        "set/resource.html?key=a.json&difference=x",
        "set/changes.html?before=-1",
        "set/changes.html?before=99999999999999999999999",
    ] {
        assert!(matches!(page(&publisher, address), Err(PublishError::BadQuery(_))), "{address}");
    }
    for address in ["set/resource.html", "set/resource.html?key=none", "set/resource.html?key=../x"]
    {
        assert!(matches!(page(&publisher, address), Err(PublishError::NotFound)), "{address}");
    }
    assert!(page(&publisher, "set/changes.html?before=18446744073709551615").is_ok());
    assert!(page(&publisher, "set/changes.html?before=0").unwrap().contains("No change"));
}

#[test]
fn pages_of_changes_lead_to_older_and_newer_ones() {
    let (world, publisher) = hostile();
    for number in 0..220 {
        world.write(&format!("new/{number}.txt"), "text");
    }
    world.scan();
    let next = |address: &str, name: &str| {
        let text = page(&publisher, address).unwrap();
        let link = text.split_once(&format!("\">{name} changes</a>"))?.0.rsplit_once("href=\"")?.1;
        Some(format!("set/{}", link.rsplit_once('/')?.1))
    };
    let mut older = vec!["set/changes.html".to_owned()];
    while let Some(address) = next(older.last().unwrap(), "Older") {
        older.push(address);
    }
    assert!(older.len() > 4, "{older:?}");
    let mut newer = vec![older.last().unwrap().clone()];
    while let Some(address) = next(newer.last().unwrap(), "Newer") {
        newer.push(address);
    }
    newer.reverse();
    assert_eq!(newer, older[1..], "the newest changes are linked apart");
}

#[test]
fn a_resource_is_shown_by_its_type() {
    let (_world, publisher) = hostile();
    let of = |key: &str| page(&publisher, &format!("set/resource.html?key={key}")).unwrap();
    assert!(of("a.json").contains("{\n  &quot;a&quot;: [\n    1,\n    2\n  ]\n}"));
    assert!(of("many/deep/er/x.xml").contains("&lt;x&gt;&amp;amp;&lt;/x&gt;"));
    assert!(
        of("image.png")
            .contains("<img class=\"preview\" src=\"https://example.org/set/r/image.png\"")
    );
    assert!(!of("javascript:x").contains("<h2>Content"));
}

#[test]
fn nothing_is_shown_before_the_first_scan_is_complete() {
    let world = World::new();
    let publisher = world.publisher();
    for address in
        ["set/resources.html", "set/changes.html", "set/changes.atom", "set/resource.html?key=a"]
    {
        assert!(matches!(page(&publisher, address), Err(PublishError::Importing)), "{address}");
    }
    assert!(page(&publisher, "set/about.html").unwrap().contains("being read"));
}

#[test]
fn descriptions_in_dcat_are_equal_in_every_syntax() {
    let (_world, publisher) = hostile();
    for name in ["set/dataset", "catalog"] {
        let mut all = BTreeSet::new();
        for syntax in [Syntax::Turtle, Syntax::JsonLd, Syntax::RdfXml] {
            let path = format!("{name}.{}", syntax.extension());
            let document = publisher.document(&path).unwrap();
            assert_eq!(document.content_type, syntax.media_type());
            let (mut lines, mut count) = (BTreeSet::new(), 0);
            let mut visit = |quad: oxrdf::QuadRef<'_>| {
                count += 1;
                lines.insert(quad.to_string());
                ControlFlow::Continue(())
            };
            read(syntax, &body(document.plain())[..], &ReadOptions::default(), &mut visit).unwrap();
            assert!(lines.iter().any(|line| line.contains("dcat#Dataset")), "{lines:?}");
            assert_eq!(count, lines.len(), "a statement is there twice: {path}");
            all.insert(lines);
        }
        assert_eq!(all.len(), 1, "{name}");
    }
}
