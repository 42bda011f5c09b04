//! Change feeds in Activity Streams: their pages, and the changes on them.

use crate::world::{BASE, World, body};
use abreast_contents::Contents;
use abreast_core::contents::ContentStore as _;
use abreast_core::{
    Beginning, Change, ChangeLog, ChangeRecord, Description, Kind, NewSet, Position, SetId, State,
    SystemClock, VersionPolicy, append,
};
use abreast_source::entities::{Entity, Form};
use abreast_source::projection::emm::{ChangeFeeds, FeedOptions};
use abreast_source::publish::{
    Freshness, Notifications, PublishError, PublishedSet, Publisher, Reader, SourceUrls,
};
use abreast_source::versions::VersionUrls;
use abreast_source::{OpenKept, Representations};
use abreast_store::SqliteLog;
use abreast_webtypes::{Label, Timestamp};
use rdf_patch::Patch;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::ops::ControlFlow;
use std::sync::Arc;

const CONCEPT: &str = "http://www.w3.org/2004/02/skos/core#Concept";
const PERSON: &str = "http://xmlns.com/foaf/0.1/Person";

/// A set of entities in a store with versions.
struct Place {
    temporary: tempfile::TempDir,
    log: Arc<dyn ChangeLog>,
    set: SetId,
    contents: Contents,
}

impl Place {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let log: Arc<dyn ChangeLog> =
            Arc::new(SqliteLog::temporary(Arc::new(SystemClock)).unwrap());
        let new = NewSet { slug: "set".into(), beginning: Beginning::Log, ..NewSet::default() };
        let set = log.open_set(&new).unwrap().id;
        log.keep_versions(set, true).unwrap();
        let contents = Contents::open(&temporary.path().join("contents")).unwrap();
        Self { temporary, log, set, contents }
    }

    fn state(&self, iri: &str, label: &str, note: &str, class: &str) -> State {
        let lines = format!(
            "<{iri}> <http://www.w3.org/2000/01/rdf-schema#comment> \"{note}\" .\n\
             <{iri}> <http://www.w3.org/2000/01/rdf-schema#label> \"{label}\" .\n"
        );
        let kept = self.contents.put_bytes(lines.as_bytes()).unwrap();
        let description = Description {
            types: vec![class.to_owned()],
            labels: vec![Label::plain(label)],
            media_type: None,
        };
        State {
            modified: Timestamp::from_seconds(self.records().len() as i64),
            length: Some(lines.len() as u64),
            media_type: Some("application/n-triples".to_owned()),
            description: Some(Box::new(description)),
            content: Some(kept.id()),
            ..State::default()
        }
    }

    fn put(&self, name: &str, label: &str, note: &str) {
        let iri = iri(name);
        let class = if name.starts_with('p') { PERSON } else { CONCEPT };
        self.append(Change::put(&iri, self.state(&iri, label, note, class)));
    }

    fn append(&self, change: Change) {
        append(&*self.log, self.set, vec![change]).unwrap();
    }

    fn published(&self) -> PublishedSet {
        let contents = self.contents.clone();
        let open: OpenKept = Arc::new(move |id| contents.open_read(id).map_err(Into::into));
        let source = SourceUrls::new(BASE);
        let urls = source.set("set").of_entities("http://id.example/");
        PublishedSet {
            versions: Some(VersionUrls::new(&source, "set", urls.naming())),
            representations: Representations::elsewhere().with_kept(Some(open)),
            ..PublishedSet::new(self.set, "set", urls)
        }
    }

    fn publisher(&self, per_page: u64) -> Publisher {
        self.publisher_of(self.published(), per_page)
    }

    fn publisher_of(&self, set: PublishedSet, per_page: u64) -> Publisher {
        let folder = self.temporary.path().join("documents");
        Publisher::new(Arc::clone(&self.log), SourceUrls::new(BASE), [set], folder)
            .unwrap()
            .with_projection(ChangeFeeds::default().with_positions_per_page(per_page))
    }

    fn records(&self) -> Vec<ChangeRecord> {
        let mut records = Vec::new();
        let mut visit = |record: &ChangeRecord| {
            records.push(record.clone());
            ControlFlow::Continue(())
        };
        self.log.read(self.set, Position(0), &mut visit).unwrap();
        records
    }
}

fn iri(name: &str) -> String {
    format!("http://id.example/{name}")
}

fn read(publisher: &Publisher, url: &str) -> Value {
    let path = url.strip_prefix(BASE).unwrap_or_else(|| panic!("{url} is not of this server"));
    let document = publisher.document(path).unwrap_or_else(|error| panic!("{url}: {error}"));
    let read: Value = serde_json::from_slice(&body(document.plain())).unwrap();
    assert_eq!(read["id"], url, "a document is at its address");
    read
}

/// The pages from the link `begin` of an Entry Point on, following the links with a name.
fn walk(publisher: &Publisher, entry: &str, begin: &str, link: &str) -> Vec<Value> {
    let (mut pages, mut seen) = (Vec::new(), HashSet::new());
    let entry = read(publisher, entry);
    let mut url = entry[begin]["id"].as_str().map(str::to_owned);
    while let Some(at) = url {
        assert!(seen.insert(at.clone()), "{at} twice");
        let page = read(publisher, &at);
        assert_eq!(page["type"], "OrderedCollectionPage");
        assert_eq!(page["partOf"]["id"], entry["id"]);
        url = page[link]["id"].as_str().map(str::to_owned);
        pages.push(page);
    }
    pages
}

fn items(page: &Value) -> &Vec<Value> {
    page["orderedItems"].as_array().unwrap()
}

/// Numbers of all activities of a feed.
fn numbers(pages: &[Value]) -> Vec<u64> {
    let id = |item: &Value| item["id"].as_str().unwrap().rsplit('/').next().unwrap().parse();
    pages.iter().flat_map(items).map(|item| id(item).unwrap()).collect()
}

fn url(path: &str) -> String {
    format!("{BASE}set/{path}")
}

/// Entities `a` to `g`, with three changes of `a`, a change of `pb`, a deletion, a removal and a
/// deprecation.
fn changed() -> Place {
    let place = Place::new();
    for name in ["a", "pb", "c", "d", "e", "f", "g"] {
        place.put(name, name, "first");
    }
    place.put("a", "a", "second");
    place.put("a", "A", "second");
    place.put("pb", "pb", "second");
    place.append(Change::delete(iri("c")));
    place.append(Change::remove(iri("d")));
    place.append(Change::deprecate(iri("e"), vec![iri("f")]));
    place.put("a", "A", "third");
    place
}

#[test]
fn every_walk_of_a_feed_finds_its_changes_in_order() {
    let place = changed();
    let records = place.records();
    let all: Vec<u64> = records.iter().map(|record| record.position.0).collect();
    let mut latest: Vec<u64> = Vec::new();
    place
        .log
        .latest(place.set, Position(0), &mut |record| {
            latest.push(record.position.0);
            ControlFlow::Continue(())
        })
        .unwrap();
    let persons = records.iter().filter(|record| record.key.ends_with("pb"));
    let persons: Vec<u64> = persons.map(|record| record.position.0).collect();
    // Positions without the changes that preserve the label.
    let labels: Vec<u64> = all.iter().copied().filter(|at| ![8, 10, 14].contains(at)).collect();
    for per_page in 1..=all.len() as u64 + 1 {
        let publisher = place.publisher(per_page);
        let check = |path: &str, expected: &[u64], begin, link| {
            let pages = walk(&publisher, &url(path), begin, link);
            assert_eq!(numbers(&pages), expected, "{path}, {per_page} positions per page");
            let totals = pages.iter().filter(|page| page.get("totalItems").is_some());
            let right = |page: &Value| page["totalItems"] == items(page).len();
            assert!(totals.clone().all(right));
            assert_eq!(totals.count() == 0, path.starts_with("iiif"));
        };
        let backwards = |path: &str, expected: &[u64]| {
            let mut pages = walk(&publisher, &url(path), "last", "prev");
            pages.reverse();
            assert_eq!(numbers(&pages), expected, "{path} from its end");
        };
        for profile in ["emm/0.1", "emm/1.0", "iiif"] {
            check(profile, &all, "first", "next");
            backwards(profile, &all);
            check(&format!("{profile}/latest"), &latest, "first", "next");
            backwards(&format!("{profile}/latest"), &latest);
        }
        let newest: Vec<u64> = all.iter().rev().copied().collect();
        check("emm/1.0/newest", &newest, "first", "next");
        backwards("emm/0.1/newest", &newest);
        check("emm/1.0/labels", &labels, "first", "next");
        check("emm/1.0/type/Person", &persons, "first", "next");
        backwards("emm/0.1/type/Person", &persons);
    }
}

#[test]
fn activities_say_what_happened() {
    let place = changed();
    let publisher = place.publisher(100);
    let records = place.records();
    for (profile, path) in [("emm-0.1", "emm/0.1"), ("emm-1.0", "emm/1.0"), ("iiif", "iiif")] {
        let page = read(&publisher, &url(&format!("{path}/page/1")));
        for (item, record) in items(&page).iter().zip(&records) {
            let kind = match record.kind {
                Kind::Create => "Create",
                Kind::Deprecate if profile != "iiif" => "Deprecate",
                Kind::Update | Kind::Deprecate => "Update",
                Kind::Remove => "Remove",
                Kind::Delete => "Delete",
                other => panic!("{other:?}"),
            };
            assert_eq!(item["type"], kind, "{item}");
            assert_eq!(item["object"]["id"], record.key);
            let of_person = record.key.ends_with("pb");
            assert_eq!(item["object"]["type"], if of_person { PERSON } else { CONCEPT });
            let time = Value::from(record.time.to_string());
            let missing = Value::Null;
            assert_eq!(item["published"], if profile == "iiif" { &missing } else { &time }.clone());
            assert_eq!(item["endTime"], if profile == "emm-0.1" { missing } else { time });
            assert!(item["summary"].as_str().unwrap().starts_with(kind));
            let origin = &item["origin"]["id"];
            assert_eq!(origin == &url(path), record.kind == Kind::Remove);
            assert_eq!(item.get("instrument").is_some(), profile == "emm-0.1");
            // The address of the description, while the entity has a description.
            let links = item["object"]["url"].as_array();
            assert_eq!(links.is_some(), record.state.is_some());
            if let Some(links) = links {
                let href = links[0]["href"].as_str().unwrap();
                assert_eq!(href, format!("{}r/{}?syntax=nt", url(""), &record.key[18..]));
            }
            // The separate document of the activity has the same content.
            let mut alone = read(&publisher, item["id"].as_str().unwrap());
            let alone = alone.as_object_mut().unwrap();
            assert_eq!(alone.remove("@context"), Some(page["@context"].clone()));
            assert_eq!(alone.remove("partOf"), Some(url(&format!("{path}/page/1")).into()));
            assert_eq!(Some(&*alone), item.as_object());
        }
    }
}

#[test]
fn closed_pages_stay_as_they_are() {
    let place = changed();
    let publisher = place.publisher(4);
    let document = |path: &str| publisher.document(&format!("set/{path}")).unwrap();
    let closed: Vec<_> = ["emm/1.0/page/1", "emm/1.0/newest/page/3", "iiif/page/2"]
        .map(|path| (path, document(path)))
        .into();
    assert!(closed.iter().all(|(_, document)| document.freshness == Freshness::Closed));
    let open = document("emm/1.0/page/4");
    assert_eq!(open.freshness, Freshness::Revalidate);
    for round in 0..5 {
        place.put("g", "g", &format!("change {round}"));
    }
    // The pages are rendered again without a difference.
    let again = place.publisher(4);
    for (path, document) in closed {
        let after = again.document(&format!("set/{path}")).unwrap();
        assert_eq!(body(after.plain()), body(document.plain()), "{path}");
        assert_eq!(after.tag, document.tag);
    }
    let after = again.document("set/emm/1.0/page/4").unwrap();
    assert_ne!(body(after.plain()), body(open.plain()));
    assert_eq!(after.freshness, Freshness::Closed);
}

#[test]
fn a_full_page_is_closed_by_the_change_behind_it() {
    let place = Place::new();
    let publisher = place.publisher(2);
    let entry = read(&publisher, &url("emm/0.1"));
    assert_eq!(entry["first"]["id"], url("emm/0.1/page/1"), "there is a page without changes");
    assert_eq!(entry["last"], entry["first"]);
    assert_eq!(items(&read(&publisher, &url("emm/0.1/page/1"))).len(), 0);
    place.put("a", "a", "");
    place.put("b", "b", "");
    let page = read(&publisher, &url("emm/1.0/page/1"));
    assert_eq!((items(&page).len(), page.get("next")), (2, None));
    assert!(matches!(publisher.document("set/emm/1.0/page/2"), Err(PublishError::NotFound)));
    place.put("c", "c", "");
    let page = read(&publisher, &url("emm/1.0/page/1"));
    assert_eq!(page["next"]["id"], url("emm/1.0/page/2"));
    assert_eq!(read(&publisher, &url("emm/1.0/page/2"))["prev"]["id"], url("emm/1.0/page/1"));
}

#[test]
fn a_time_leads_to_the_page_of_the_first_change_since() {
    let place = changed();
    let publisher = place.publisher(3);
    let target = |query: &str| match publisher.queried("set/emm/1.0/skip-to", query) {
        Err(PublishError::Elsewhere(url)) => url,
        Err(error) => error.to_string(),
        Ok(_) => panic!("no document"),
    };
    for record in place.records() {
        let page = (record.position.0 - 1) / 3 + 1;
        let time = record.time.to_string().replace(':', "%3A");
        assert_eq!(target(&format!("datetime={time}")), url(&format!("emm/1.0/page/{page}")));
    }
    assert_eq!(target("datetime=1999"), url("emm/1.0/page/1"), "the first page");
    assert_eq!(target("datetime=2999-01-01"), url("emm/1.0/page/5"), "the last page");
    assert!(target("datetime=yesterday").starts_with("`datetime` is not a time"));
    assert!(target("date=2026-05-01").starts_with("`datetime` is missing"));
}

#[test]
fn notifications_are_change_sets_of_the_new_changes() {
    let place = changed();
    let notifications = Notifications::at(["https://hub.example/"]);
    let set = PublishedSet { notifications: Some(notifications), ..place.published() };
    let publisher = place.publisher_of(set, 100);
    for path in ["emm/0.1", "emm/1.0", "iiif"] {
        let topic = publisher.topic_at(&format!("set/{path}")).unwrap();
        let bytes = publisher.notification(&topic.url, Position(9), Position(11)).unwrap();
        let page: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(numbers(&[page]), [10, 11]);
        let links = publisher.document(&format!("set/{path}/page/1")).unwrap().topic.clone();
        let links = links.unwrap();
        assert!(links.contains("rel=\"hub\"") && links.contains(&topic.url), "{links}");
    }
    let of_view = publisher.topic_at("set/emm/1.0/latest").unwrap();
    assert_eq!(Some(of_view.url), publisher.topic_at("set/emm/1.0").map(|topic| topic.url));
}

#[test]
fn feeds_of_files_lead_to_the_list_of_what_was_there_first() {
    let world = World::new();
    world.write("old.json", "{}");
    world.scan();
    world.log.complete_import(world.set).unwrap();
    world.write("new.json", "{}");
    world.write("photo.jpg", "");
    world.scan();
    let publisher = |object_type: Option<&str>| {
        let feeds =
            FeedOptions { object_type: object_type.map(str::to_owned), ..FeedOptions::default() };
        let set = world.published().with(Some(Arc::new(feeds)));
        world.publisher_of(set).with_projection(ChangeFeeds::default())
    };
    let plain = publisher(None);
    let entry = read(&plain, &url("iiif"));
    assert_eq!(entry["url"][0]["href"], url("resourcelist.xml"));
    let objects = |publisher: &Publisher| {
        let page = read(publisher, &url("iiif/page/1"));
        items(&page).iter().map(|item| item["object"].clone()).collect::<Vec<_>>()
    };
    let found = objects(&plain);
    assert_eq!(found[0]["id"], url("r/new.json"));
    assert_eq!(found[0]["mediaType"], "application/json");
    assert_eq!((&found[0]["type"], &found[1]["type"]), (&"Document".into(), &"Image".into()));
    assert!(objects(&publisher(Some("Manifest"))).iter().all(|it| it["type"] == "Manifest"));
    std::fs::remove_file(world.folder.join("photo.jpg")).unwrap();
    world.scan();
    let deleted = &objects(&plain)[2];
    assert_eq!((&deleted["id"], &deleted["type"]), (&url("r/photo.jpg").into(), &"Image".into()));
    for path in
        ["emm/0.1/patches", "emm/1.0/labels", "emm/1.0/type/x", "emm/0.1/activity/1/instrument/1"]
    {
        assert!(!plain.is_document(&format!("set/{path}")), "{path}");
    }
}

#[test]
fn other_paths_are_no_documents() {
    let place = changed();
    let publisher = place.publisher(2);
    for path in [
        "emm",
        "emm/",
        "emm/1.1",
        "emm/1.0/",
        "emm/1.0/page",
        "emm/1.0/page/",
        "emm/1.0/page/01",
        "emm/1.0/page/x",
        "emm/1.0/page/1.json",
        "emm/1.0/collection.json",
        "emm/1.0/oldest",
        "emm/1.0/type",
        "emm/1.0/type/",
        "emm/1.0/type/a/b",
        "emm/1.0/activity/",
        "emm/1.0/activity/1/instrument/2",
        "iiif/newest",
        "iiif/patches",
        "iiif/page/1/",
        "iiifx",
    ] {
        assert!(!publisher.is_document(&format!("set/{path}")), "{path}");
    }
    for path in [
        "page/0",
        "page/8",
        "page/18446744073709551615",
        "latest/page/9",
        "activity/0",
        "activity/15",
    ] {
        let found = publisher.document(&format!("set/emm/1.0/{path}"));
        assert!(matches!(found, Err(PublishError::NotFound)), "{path}");
    }
}

/// The bytes of a document, and its media type.
fn raw(publisher: &Publisher, path: &str) -> (String, &'static str) {
    let document = publisher.document(&format!("set/{path}")).unwrap();
    (String::from_utf8(body(document.plain())).unwrap(), document.content_type)
}

#[test]
fn patches_lead_from_each_description_to_the_next() {
    let place = changed();
    let publisher = place.publisher(5);
    let inline = walk(&publisher, &url("emm/0.1/patches"), "first", "next");
    let mut inline = inline.iter().flat_map(items);
    let (mut copies, mut chain) = (BTreeMap::<String, Vec<u8>>::new(), rdf_patch::Chain::new(None));
    for record in place.records() {
        let at = record.position;
        let path = format!("emm/0.1/activity/{at}/instrument/1");
        let document = read(&publisher, &url(&path));
        assert_eq!(document["type"], "rdf_patch");
        assert_eq!(document["partOf"]["id"], url(&format!("emm/0.1/activity/{at}")));
        let text = document["content"].as_str().unwrap();
        assert_eq!(inline.next().unwrap()["instrument"]["content"], text);
        let form = publisher.document(&format!("set/{path}")).unwrap().other_form;
        assert_eq!(form, Some(("application/rdf-patch", ".rdfp")));
        for path in [format!("{path}.rdfp"), path.replace("0.1", "1.0")] {
            assert_eq!(raw(&publisher, &path), (text.to_owned(), "application/rdf-patch"));
        }
        // The log of patches has the same patch, with the identifiers of the patch and of the
        // previous patch.
        let (of_log, _) = raw(&publisher, &format!("patch/{at}"));
        let patch = Patch::from_slice(of_log.as_bytes()).unwrap();
        chain.append(&patch.header).unwrap();
        let id = patch.header.id().unwrap();
        assert_eq!(raw(&publisher, &format!("patch/{}", &id[5..])).0, of_log);
        assert_eq!(raw(&publisher, &format!("patch/{id}")).0, of_log);

        let copy = copies.entry(record.key.clone()).or_default();
        let patch = Patch::from_slice(text.as_bytes()).unwrap();
        assert_eq!(patch.header.id(), Some(id));
        let applied = abreast_rdf::apply_entity_patch(&record.key, copy, &patch).unwrap();
        assert!(applied.is_verified);
        *copy = applied.description.lines;
        let now = record.state.as_ref().map_or(Vec::new(), |state| {
            let kept = place.published().representations.open_kept(state).unwrap();
            let mut lines = Vec::new();
            kept.unwrap().read_to_end(&mut lines).unwrap();
            lines
        });
        assert_eq!(*copy, now);
    }
    let elsewhere = |path: &str| match publisher.document(&format!("set/{path}")) {
        Err(PublishError::Elsewhere(url)) => url,
        _ => panic!("{path} is elsewhere"),
    };
    assert_eq!(elsewhere("current"), url("patch/14"));
    assert_eq!(raw(&publisher, "init"), (String::new(), "application/n-quads"));
    assert!(matches!(publisher.document("set/patch/15"), Err(PublishError::NotFound)));
    let other = "set/patch/00000000-0000-8000-8000-000000000001";
    assert!(matches!(publisher.document(other), Err(PublishError::NotFound)));
}

#[test]
fn a_change_whose_description_is_not_kept_has_no_patch() {
    let place = changed();
    let policy = VersionPolicy { count: Some(1), ..VersionPolicy::default() };
    while !place.log.collect_versions(place.set, &policy, 100).unwrap().complete {}
    let publisher = place.publisher(100);
    let page = read(&publisher, &url("emm/0.1/patches/page/1"));
    let of = |page: &Value, position: usize| items(page)[position - 1]["instrument"].clone();
    assert_eq!(of(&page, 9), Value::Null, "the description before it is gone");
    assert!(of(&page, 6)["content"].is_string(), "the only change of `f`");
    let page = read(&publisher, &url("emm/0.1/page/1"));
    assert!(of(&page, 9)["id"].is_string(), "a page that never changes names it");
    let found = publisher.document("set/emm/0.1/activity/9/instrument/1");
    assert!(matches!(found, Err(PublishError::NotKept)));
    // A change whose descriptions cannot be compared counts as a change of labels.
    let labels = walk(&publisher, &url("emm/1.0/labels"), "first", "next");
    assert!(numbers(&labels).contains(&8));
}

#[test]
fn a_deprecation_and_the_oldest_kept_version_are_what_they_were() {
    let place = Place::new();
    place.put("a", "a", "1");
    place.put("a", "a", "2");
    place.append(Change::deprecate(iri("a"), Vec::new()));
    place.put("a", "b", "2");
    let publisher = place.publisher(100);
    let labels = walk(&publisher, &url("emm/1.0/labels"), "first", "next");
    assert_eq!(numbers(&labels), [1, 3, 4], "who keeps labels wants to know of deprecations");
    let set = &publisher.sets()[0];
    let page = || {
        let entity = Entity::read(&*place.log, set, &iri("a")).unwrap().unwrap();
        let page = entity.render(&publisher, set, Form::Page, &Reader::default()).unwrap();
        String::from_utf8(page).unwrap()
    };
    let counts = |page: &str| ["created;", "changed;"].map(|what| page.matches(what).count());
    assert_eq!(counts(&page()), [1, 3]);
    let policy = VersionPolicy { count: Some(2), ..VersionPolicy::default() };
    while !place.log.collect_versions(place.set, &policy, 100).unwrap().complete {}
    assert_eq!(counts(&page()), [0, 2], "what came before is not kept");
}

#[test]
fn a_page_of_a_type_leads_to_one_that_comes_later() {
    let place = Place::new();
    place.put("a", "a", "");
    for number in 0..5 {
        place.put(&format!("p{number}"), "p", "");
    }
    let publisher = place.publisher(2);
    let concepts = || numbers(&walk(&publisher, &url("emm/1.0/type/Concept"), "first", "next"));
    assert_eq!(concepts(), [1]);
    let first = publisher.document("set/emm/1.0/type/Concept/page/1").unwrap();
    assert_eq!(first.freshness, Freshness::Revalidate);
    place.put("b", "b", "");
    assert_eq!(concepts(), [1, 7]);
    // A full download would contain more than the feed of a type, so the feed does not link to one.
    let entry = read(&publisher, &url("emm/1.0/type/Concept"));
    assert_eq!(entry["url"]["mediaType"], "text/html");
}

#[test]
fn pages_of_a_type_lead_to_each_other_from_first_to_last() {
    for (per_page, changes) in [(2, 7_u64), (1_000, 3), (6_000, 4), (10_000, 2)] {
        for matching in [vec![1], vec![1, 4], vec![2, 3, 7], vec![5, 6]] {
            let place = Place::new();
            for number in 1..=changes {
                let is_of_type = matching.contains(&number);
                let class = if is_of_type { CONCEPT } else { PERSON };
                put_as(&place, &format!("e{number}"), "", &[class]);
            }
            let expected: Vec<u64> =
                matching.iter().copied().filter(|number| *number <= changes).collect();
            let publisher = place.publisher(per_page);
            let entry = url("emm/1.0/type/Concept");
            let pages = walk(&publisher, &entry, "first", "next");
            let mut back = walk(&publisher, &entry, "last", "prev");
            back.reverse();
            assert_eq!(pages, back, "{per_page} {matching:?}");
            assert_eq!(numbers(&pages), expected, "{per_page} {matching:?}");
        }
    }
}

/// Records an entity with these types.
fn put_as(place: &Place, name: &str, note: &str, types: &[&str]) {
    let mut state = place.state(&iri(name), name, note, CONCEPT);
    let description = state.description.as_mut().unwrap();
    description.types = types.iter().map(|class| (*class).to_owned()).collect();
    place.append(Change::put(iri(name), state));
}

#[test]
fn entities_join_and_leave_the_feeds_of_types() {
    let place = Place::new();
    put_as(&place, "a", "1", &[CONCEPT]);
    put_as(&place, "b", "2", &[PERSON]);
    put_as(&place, "a", "3", &[PERSON]);
    put_as(&place, "b", "4", &[CONCEPT, PERSON]);
    put_as(&place, "b", "5", &[CONCEPT, PERSON]);
    place.append(Change::remove(iri("b")));
    put_as(&place, "a", "7", &[]);
    put_as(&place, "a", "8", &[CONCEPT]);
    place.append(Change::delete(iri("a")));
    for per_page in [1, 2, 100] {
        let publisher = place.publisher(per_page);
        let feed = |path: &str| {
            let pages = walk(&publisher, &url(path), "first", "next");
            let kinds = pages.iter().flat_map(items).map(|item| item["type"].clone());
            numbers(&pages).into_iter().zip(kinds).collect::<Vec<(u64, Value)>>()
        };
        let expected = |kinds: &[(u64, &str)]| -> Vec<(u64, Value)> {
            kinds.iter().map(|(at, kind)| (*at, Value::from(*kind))).collect()
        };
        for profile in ["emm/0.1", "emm/1.0"] {
            let concepts = [
                (1, "Create"),
                (3, "Remove"),
                (4, "Add"),
                (5, "Update"),
                (6, "Remove"),
                (8, "Add"),
                (9, "Delete"),
            ];
            assert_eq!(feed(&format!("{profile}/type/Concept")), expected(&concepts));
            let persons = [
                (2, "Create"),
                (3, "Add"),
                (4, "Update"),
                (5, "Update"),
                (6, "Remove"),
                (7, "Remove"),
            ];
            assert_eq!(feed(&format!("{profile}/type/Person")), expected(&persons));
        }
    }
}

#[test]
fn what_leaves_a_type_has_an_activity_of_its_own() {
    let place = Place::new();
    put_as(&place, "a", "1", &[CONCEPT]);
    put_as(&place, "a", "2", &[PERSON]);
    let publisher = place.publisher(100);
    for profile in ["emm/0.1", "emm/1.0"] {
        let (all, feed) = (url(profile), url(&format!("{profile}/type/Concept")));
        let page = read(&publisher, &format!("{feed}/page/1"));
        let [created, removed] = &items(&page)[..] else { panic!("{page}") };
        assert_eq!(created["id"], format!("{all}/activity/1"));
        assert_eq!(removed["id"], format!("{feed}/activity/2"));
        assert_eq!(removed["origin"]["id"], feed);
        assert_eq!(removed["object"]["type"], CONCEPT, "what it was in this feed");
        assert_eq!(removed["object"].get("url"), None);
        assert_eq!(removed.get("instrument"), None, "the patch is that of the update");
        let mut alone = read(&publisher, &format!("{feed}/activity/2"));
        let alone = alone.as_object_mut().unwrap();
        assert!(alone.remove("@context").is_some());
        assert_eq!(alone.remove("partOf"), Some(format!("{feed}/page/1").into()));
        assert_eq!(Some(&*alone), removed.as_object());
        // In other feeds, the same change is an update.
        let update = read(&publisher, &format!("{all}/activity/2"));
        assert_eq!(
            (&update["type"], &update["object"]["type"]),
            (&"Update".into(), &PERSON.into())
        );
        let persons = read(&publisher, &url(&format!("{profile}/type/Person/page/1")));
        assert_eq!(items(&persons)[0]["target"]["id"], url(&format!("{profile}/type/Person")));
        for other in ["type/Concept/activity/1", "type/Concept/activity/3", "latest/activity/2"] {
            let path = format!("set/{profile}/{other}");
            assert!(matches!(publisher.document(&path), Err(PublishError::NotFound)), "{path}");
        }
    }
    assert!(publisher.document("set/iiif/type/Concept/activity/2").is_err());
}
