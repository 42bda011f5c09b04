//! A server of change feeds that keeps to every rule of its three specifications, and walks of it.

use crate::cases::inspect;
use crate::server::{Answers, Server};
use crate::site::{Break, break_all, day, typed};
use abreast_rdf::{EntityPatch, PatchBlankNodes};
use abreast_validator::{Mode, Options, Severity, Share, check_document, ndjson, text, validate};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

const NT: &str = "application/n-triples";
const IIIF: &str = "application/ld+json;profile=\"http://iiif.io/api/discovery/1/context.json\"";

/// Kind, entity, description afterwards.
const CHANGES: [(&str, &str, &str); 4] =
    [("Create", "a", "1"), ("Create", "b", "2"), ("Update", "a", "3"), ("Delete", "b", "")];

fn context(feed: &str) -> Value {
    match feed {
        "emm01" => json!("https://ld4.github.io/entity_metadata_management/0.1/context.json"),
        "iiif" => json!("http://iiif.io/api/discovery/1/context.json"),
        _ => json!([
            "https://www.w3.org/ns/activitystreams",
            "https://emm-spec.org/1.0/context.json"
        ]),
    }
}

fn described(base: &str, name: &str, value: &str) -> String {
    if value.is_empty() {
        return String::new();
    }
    format!("<{base}/id/{name}> <http://p.example/value> \"{value}\" .\n")
}

/// The patch of a change.
fn patch(base: &str, number: usize) -> String {
    let (_, name, value) = CHANGES[number - 1];
    let former = CHANGES[..number - 1].iter().rposition(|(_, other, _)| *other == name);
    let old = former.map_or(String::new(), |former| described(base, name, CHANGES[former].2));
    let prev = (number > 1).then(|| format!("uuid:{}", number - 1));
    let entity_prev = former.map(|former| format!("uuid:{}", former + 1));
    let (new, mut text) = (described(base, name, value), Vec::new());
    let patch = EntityPatch {
        entity: &format!("{base}/id/{name}"),
        old: old.as_bytes(),
        new: new.as_bytes(),
        id: &format!("uuid:{number}"),
        prev: prev.as_deref(),
        entity_prev: entity_prev.as_deref(),
        blank_nodes: PatchBlankNodes::Skolem(base),
    };
    patch.write(&mut text).unwrap();
    String::from_utf8(text).unwrap()
}

fn activity(base: &str, feed: &str, number: usize) -> Value {
    let (kind, name, _) = CHANGES[number - 1];
    let time = day(number as u32);
    let id = format!("{base}/{feed}/activity/{number}");
    let mut activity = json!({
        "type": kind,
        "id": id,
        "summary": format!("{kind} {name}"),
        "object": {"id": format!("{base}/id/{name}"), "type": "http://ns.example/Term", "updated": time,
            "url": [{"type": "Link", "href": format!("{base}/id/{name}.nt"), "mediaType": NT}]},
    });
    activity[if feed == "iiif" { "endTime" } else { "published" }] = json!(time);
    if feed == "emm01" {
        activity["instrument"] = json!({"type": "rdf_patch", "id": format!("{id}/instrument/1"),
            "content": patch(base, number)});
    }
    activity
}

pub(crate) fn page(base: &str, feed: &str, number: usize) -> Value {
    let to = |number: usize| json!({"id": format!("{base}/{feed}/page/{number}"), "type": "OrderedCollectionPage"});
    let items: Vec<Value> =
        [number * 2 - 1, number * 2].map(|number| activity(base, feed, number)).into();
    let mut page = json!({
        "@context": context(feed),
        "type": "OrderedCollectionPage",
        "id": format!("{base}/{feed}/page/{number}"),
        "partOf": {"id": format!("{base}/{feed}"), "type": "OrderedCollection"},
        "orderedItems": items,
    });
    if feed != "iiif" {
        page["totalItems"] = json!(2);
    }
    let (name, other) = if number == 1 { ("next", 2) } else { ("prev", 1) };
    page[name] = to(other);
    page
}

/// The same text whether maps keep the order of insertion or not.
fn sorted(mut document: Value) -> String {
    document.sort_all_objects();
    document.to_string()
}

/// A feed of each specification with two pages, of an entity that was updated and one that was
/// deleted.
pub(crate) fn good(base: &str) -> Answers {
    let mut answers = Answers::new();
    let mut add = |path: &str, kind: &str, body: String| {
        let mut answer = typed(kind, body.into_bytes());
        answer.headers.insert("Access-Control-Allow-Origin".to_owned(), "*".to_owned());
        if path.starts_with("/emm10") {
            let links = format!("<{base}/hub>; rel=\"hub\", <{base}/emm10>; rel=\"self\"");
            answer.headers.insert("Link".to_owned(), links);
        }
        answers.insert(path.to_owned(), answer);
    };
    for feed in ["emm10", "emm01", "iiif"] {
        let kind = if feed == "iiif" { IIIF } else { "application/activity+json" };
        let to = |number: usize| json!({"id": format!("{base}/{feed}/page/{number}"), "type": "OrderedCollectionPage"});
        let entry = json!({"@context": context(feed), "type": "OrderedCollection", "summary": "All changes",
            "id": format!("{base}/{feed}"), "first": to(1), "last": to(2), "totalItems": 4});
        add(&format!("/{feed}"), kind, sorted(entry));
        for number in [1, 2] {
            add(&format!("/{feed}/page/{number}"), kind, sorted(page(base, feed, number)));
        }
        for number in 1..=4 {
            let mut alone = activity(base, feed, number);
            alone["@context"] = context(feed);
            add(&format!("/{feed}/activity/{number}"), kind, sorted(alone));
        }
    }
    add(
        "/emm10/skip-to?datetime=2026-01-04T00:00:00Z",
        "application/activity+json",
        sorted(page(base, "emm10", 2)),
    );
    for (number, (kind, ..)) in (1..).zip(CHANGES) {
        let id = format!("{base}/emm01/activity/{number}");
        let document = json!({"@context": context("emm01"), "type": "rdf_patch", "id": format!("{id}/instrument/1"),
            "partOf": {"id": id, "type": kind}, "content": patch(base, number)});
        let path = format!("/emm01/activity/{number}/instrument/1");
        add(&path, "application/activity+json", sorted(document));
    }
    add("/id/a.nt", NT, described(base, "a", "3"));
    answers
}

#[test]
fn change_feeds_that_keep_to_the_rules_have_no_findings() {
    let server = Server::start(good);
    for (path, name, entries) in [
        ("/emm10", "EMM 1.0 Entry Point", 4),
        ("/emm01", "EMM 0.1 Entry Point", 4),
        ("/iiif", "IIIF Entry Point", 4),
        ("/emm10/page/2", "EMM 1.0 Entry Point", 4),
        ("/iiif/activity/1", "IIIF Activity", 1),
        ("/emm01/activity/4/instrument/1", "EMM 0.1 Entity Patch", 0),
    ] {
        let report = inspect(&server, path, |_| {});
        assert!(report.findings.is_empty(), "{path}\n{}", text(&report));
        let first = &report.documents[0];
        assert_eq!((&*first.name, first.entries), (name, entries), "{path}: {report:#?}");
        assert!(report.limit.is_none() && report.found_source());
    }
    assert!(!server.requests().iter().any(|path| path.contains("well-known")));
}

/// The feed of version 0.1, with activities that are parts of their pages and have no documents.
fn with_parts(base: &str) -> Answers {
    let mut answers = good(base);
    for number in 1..=4_u32 {
        let alone = format!("/emm01/activity/{number}");
        answers.remove(&alone).unwrap();
        for answer in answers.values_mut() {
            let body = String::from_utf8(std::mem::take(&mut answer.body)).unwrap();
            let at = format!("/emm01/page/{}#{}\"", number.div_ceil(2), number);
            answer.body = body.replace(&format!("{alone}\""), &at).into_bytes();
        }
    }
    answers
}

#[test]
fn an_activity_may_be_a_part_of_its_page() {
    let report = inspect(&Server::start(with_parts), "/emm01", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
    let without = Server::start(|base| {
        let mut answers = with_parts(base);
        let page = answers.get_mut("/emm01/page/2").unwrap();
        let body = String::from_utf8(std::mem::take(&mut page.body)).unwrap();
        page.body = body.replace("page/2#3\"", "page/1#3\"").into_bytes();
        answers
    });
    let report = inspect(&without, "/emm01", |_| {});
    let found: BTreeSet<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert!(found.contains("EMM01-4.1-id-served"), "{}", text(&report));
    assert!(text(&report).contains("nothing in the document there has it"), "{}", text(&report));
}

/// The feed of version 0.1, whose activities name their patches.
fn with_linked_patches(base: &str) -> Answers {
    let mut answers = good(base);
    for (path, answer) in &mut answers {
        if path.contains("/instrument/") {
            continue;
        }
        let Ok(mut document) = serde_json::from_slice::<Value>(&answer.body) else { continue };
        let without_content = |activity: &mut Value| {
            if let Some(instrument) = activity.get_mut("instrument").and_then(Value::as_object_mut)
            {
                instrument.remove("content");
            }
        };
        if document["instrument"].is_object() {
            without_content(&mut document);
        }
        if let Some(items) = document.get_mut("orderedItems").and_then(Value::as_array_mut) {
            items.iter_mut().for_each(without_content);
        }
        if path.starts_with("/emm01") {
            answer.body = sorted(document).into();
        }
    }
    answers
}

#[test]
fn the_chain_of_linked_patches_is_checked() {
    let report = inspect(&Server::start(with_linked_patches), "/emm01", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
    for (number, is, not, rule) in [
        (3, "H prev <uuid:2>", "H prev <uuid:9>", "EMM01-4.2-chain"),
        (2, "H id <uuid:2>", "H id <uuid:8>", "EMM01-4.2-chain"),
    ] {
        let server = Server::start(move |base| {
            let mut answers = with_linked_patches(base);
            let path = format!("/emm01/activity/{number}/instrument/1");
            let answer = answers.get_mut(&path).unwrap();
            let body = String::from_utf8(std::mem::take(&mut answer.body)).unwrap();
            assert!(body.contains(is), "{body}");
            answer.body = body.replace(is, not).into_bytes();
            answers
        });
        let report = inspect(&server, "/emm01", |_| {});
        let found: BTreeSet<_> = report.findings.iter().map(|found| found.rule.id).collect();
        assert!(found.contains(rule), "{}", text(&report));
    }
}

#[test]
fn a_change_feed_is_shown_with_what_it_offers() {
    let server = Server::start(|base| {
        let breaks = [Break::Replace(
            "/emm10",
            "\"totalItems\":4",
            "\"totalItems\":4,\"url\":{\"type\":\"Link\",\"href\":\"{B}/all.nt\",\"mediaType\":\"application/n-triples\",\"updated\":\"2026-01-02T00:00:00Z\"}",
        )];
        break_all(good(base), base, &breaks)
    });
    let explored = |path: &str| {
        let report = inspect(&server, path, |options| {
            (options.sample, options.packages) = (Share::Some(0), Share::Some(0));
        });
        assert!(ndjson(&report).contains("\"profile\":"), "{}", ndjson(&report));
        report.documents[0].changes.clone().unwrap()
    };
    let facts = explored("/emm10");
    assert_eq!((facts.profile, &*facts.title), ("emm-1.0", "All changes"));
    assert_eq!((facts.pages, facts.direction), (2, Some("oldest first")));
    assert_eq!(facts.newest.unwrap().to_string(), day(4));
    assert_eq!(facts.kinds, [("Delete".to_owned(), 1), ("Update".to_owned(), 1)]);
    assert_eq!(facts.hubs, [server.url("/hub")]);
    assert_eq!(facts.downloads[0].url, server.url("/all.nt"));
    assert_eq!(facts.patches, None);
    assert_eq!(explored("/emm01").patches, Some("inline"));
    // Pages of IIIF are read from the last one back.
    let facts = explored("/iiif");
    assert_eq!((facts.pages, facts.direction), (2, Some("oldest first")));
    assert_eq!(facts.kinds, [("Delete".to_owned(), 1), ("Update".to_owned(), 1)]);
    assert!(
        !server.requests().iter().any(|path| path.starts_with("/id/") || path.contains("skip"))
    );
}

#[test]
fn pages_that_are_part_of_pages_are_not_followed() {
    let server = Server::start(|base| {
        let mut answers = good(base);
        for number in 0..100 {
            let part = format!("\"partOf\":{{\"id\":\"{base}/emm10/up/{}\"", number + 1);
            let own = format!("\"id\":\"{base}/emm10/up/{number}\",\"next\"");
            let body = page(base, "emm10", 1).to_string();
            let body = body.replace(&format!("\"partOf\":{{\"id\":\"{base}/emm10\""), &part);
            let body = body.replace(&format!("\"id\":\"{base}/emm10/page/1\",\"next\""), &own);
            let mut answer = answers["/emm10/page/1"].clone();
            answer.body = body.into_bytes();
            answer.headers.remove("Link");
            answers.insert(format!("/emm10/up/{number}"), answer);
        }
        answers
    });
    let report = inspect(&server, "/emm10/up/0", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["EMM-3-kind"], "{}", text(&report));
    assert_eq!(report.read(), 2);
}

#[test]
fn a_view_of_a_feed_may_have_its_topic() {
    let server = Server::start(|base| {
        let whole =
            "\"totalItems\":4,\"partOf\":[{\"id\":\"{B}/whole\",\"type\":\"OrderedCollection\"}]";
        let topic = "<{B}/hub>; rel=hub, <{B}/whole>; rel=self";
        let breaks = [
            Break::Replace("/emm10", "\"totalItems\":4", whole),
            Break::Header("/emm10", "Link", topic),
            Break::Header("/emm10/page/1", "Link", topic),
        ];
        break_all(good(base), base, &breaks)
    });
    let report = inspect(&server, "/emm10", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
    let other = Server::start(|base| {
        let topic = Break::Header("/emm10", "Link", "<{B}/hub>; rel=hub, <{B}/whole>; rel=self");
        break_all(good(base), base, &[topic])
    });
    let report = inspect(&other, "/emm10", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["WS-4-self"], "{}", text(&report));
}

#[test]
fn limits_end_the_walk_of_change_feeds() {
    let server = Server::start(good);
    let few = inspect(&server, "/emm10", |options| options.max_documents = 2);
    assert_eq!(few.limit, Some("--max-documents"));
    assert_eq!(few.entries(), 2);
    let small = inspect(&server, "/emm10", |options| options.max_bytes = 2_000);
    assert_eq!(small.limit, Some("--max-bytes"), "{}", text(&small));
    for more in
        [|options: &mut Options| options.walk = false, |options: &mut Options| options.depth = 0]
    {
        let alone = inspect(&server, "/emm10", more);
        assert_eq!((alone.read(), alone.entries()), (1, 0), "{}", text(&alone));
    }
    let pages = inspect(&server, "/emm10", |options| options.depth = 1);
    assert_eq!((pages.entries(), pages.documents[0].level), (4, 0), "{}", text(&pages));
    let elsewhere = Server::start(|base| {
        let breaks = [Break::Replace("/emm10", "{B}/emm10/page/1", "http://127.0.0.2:1/page/1")];
        break_all(good(base), base, &breaks)
    });
    let report = inspect(&elsewhere, "/emm10", |_| {});
    let found: Vec<_> = report.findings.iter().map(|found| found.rule.id).collect();
    assert_eq!(found, ["WALK-other-host"], "{}", text(&report));
}

#[test]
fn a_feed_that_grows_during_the_check_is_no_fault() {
    let server = Server::start(|base| {
        let page = "\"last\":{\"id\":\"{B}/emm10/page/2\"";
        let breaks = [Break::Replace("/emm10", page, "\"last\":{\"id\":\"{B}/emm10/page/1\"")];
        let mut answers = break_all(good(base), base, &breaks);
        let later = Some(Box::new(good(base)["/emm10"].clone()));
        answers.get_mut("/emm10").unwrap().later = later;
        answers
    });
    let report = inspect(&server, "/emm10", |options| options.sample = Share::Some(0));
    assert!(report.findings.is_empty(), "{}", text(&report));
}

#[test]
fn faults_of_many_pages_are_shown_once_and_counted() {
    const PAGES: usize = 200;
    let server = Server::start(|base| {
        let mut answers = good(base);
        let to = |number: usize| json!({"id": format!("{base}/emm10/many/{number}"), "type": "OrderedCollectionPage"});
        let entry = answers.get_mut("/emm10").unwrap();
        let mut whole: Value = serde_json::from_slice(&entry.body).unwrap();
        (whole["first"], whole["last"], whole["totalItems"]) = (to(1), to(PAGES), json!(PAGES * 2));
        entry.body = whole.to_string().into_bytes();
        for number in 1..=PAGES {
            let mut page = page(base, "emm10", 1);
            page["id"] = to(number)["id"].clone();
            page.as_object_mut().unwrap().remove("next");
            if number < PAGES {
                page["next"] = to(number + 1);
            }
            for item in page["orderedItems"].as_array_mut().unwrap() {
                item["type"] = json!("Update");
                item["published"] = json!("2026-01-02");
            }
            let body = page.to_string().into_bytes();
            answers
                .insert(format!("/emm10/many/{number}"), typed("application/activity+json", body));
        }
        answers
    });
    let report = inspect(&server, "/emm10", |options| options.sample = Share::Some(0));
    let kept = |rule: &str| {
        let all = report.findings.iter().filter(|found| found.rule.id == rule);
        (all.clone().count(), all.map(|found| 1 + found.more).sum::<u64>())
    };
    assert_eq!(kept("AS-2.3-datetime"), (10, 2 * PAGES as u64), "{}", text(&report));
    assert_eq!(kept("AS-4.1-id-once"), (10, 2 * (PAGES as u64 - 1)), "{}", text(&report));
    assert_eq!(kept("EMM-4.1-first"), (2, 2), "{}", text(&report));
    assert_eq!(report.entries(), 2 * PAGES as u64);
}

#[test]
fn files_of_change_feeds_are_checked_alone() {
    let folder = tempfile::tempdir().unwrap();
    let base = "https://e.example";
    let report = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        validate(&Options::new(vec![file.to_str().unwrap().to_owned()]), &AtomicBool::new(false))
    };
    for (number, answer) in good(base).values().enumerate() {
        if answer.headers["Content-Type"] == NT {
            continue;
        }
        let found = report(&number.to_string(), &answer.body);
        assert!(found.findings.is_empty() && found.found_source(), "{}", text(&found));
    }
    let found = report("patch.rdfp", patch(base, 3).as_bytes());
    assert_eq!((found.findings.len(), &*found.documents[0].name), (0, "RDF Patch"));
    for comment in ["# of yesterday\n", "#\n\n# a\n"] {
        let commented = format!("{comment}{}", patch(base, 3));
        let found = report("commented.rdfp", commented.as_bytes());
        assert_eq!((found.findings.len(), &*found.documents[0].name), (0, "RDF Patch"));
    }
    let old = page(base, "emm10", 1).to_string().replace("\"type\":", "\"@type\":");
    let found = text(&report("old.json", old.as_bytes()));
    assert!(found.contains("OrderedCollectionPage is written as `@type`"), "{found}");
    assert!(found.contains("Create is written as `@type`"), "{found}");
    let mut reversed = page(base, "emm10", 1);
    let items = reversed["orderedItems"].as_array_mut().unwrap();
    items.push(items[0].clone());
    let found = report("page.json", reversed.to_string().as_bytes());
    let rules: BTreeSet<_> = found.findings.iter().map(|found| found.rule.id).collect();
    let expected = ["AS-4.1-id-once", "EMM-3.2-order", "EMM-3.2-total"];
    assert_eq!(rules, BTreeSet::from(expected), "{}", text(&found));
    assert!(text(&found).contains("/orderedItems/2: "), "{}", text(&found));
}

#[test]
fn a_document_that_takes_too_much_memory_is_not_read() {
    let items = vec!["{}"; 200_000].join(",");
    let page =
        |items: &str| format!(r#"{{"type":"OrderedCollectionPage","orderedItems":[{items}]}}"#);
    let found = check_document("page.json", page(&items).as_bytes(), Mode::Normal);
    let rules: Vec<_> = found.iter().map(|found| found.rule.id).collect();
    assert_eq!(rules, ["WALK-limit"]);
    let found = check_document("page.json", page(&items[..3_000]).as_bytes(), Mode::Normal);
    assert!(found.iter().all(|found| found.rule.id != "WALK-limit"));
}

/// Every kind of document that the tests of Activity Streams want refused.
#[test]
fn documents_that_are_not_activity_streams_are_refused() {
    let page = |members: &str| {
        format!("{{\"@context\": \"https://www.w3.org/ns/activitystreams\", {members}}}")
            .into_bytes()
    };
    let note = |members: &str| page(&format!("\"type\": \"Note\", {members}"));
    let latin1 = b"{\"type\": \"Note\", \"name\": \"caf\xe9\"}".to_vec();
    for (name, bytes, rule) in [
        ("an array at the top", b"[{\"type\": \"Note\"}]".to_vec(), "AS-2-object"),
        ("a string at the top", b"\"Note\"".to_vec(), "AS-2-object"),
        ("another character set", latin1, "AS-2-json"),
        ("a document that ends too early", b"{\"type\": \"Note\"".to_vec(), "AS-2-json"),
        (
            "a number as context",
            b"{\"@context\": 1, \"type\": \"Note\"}".to_vec(),
            "AS-2.1-context",
        ),
        (
            "another context",
            b"{\"@context\": \"https://o.example/\", \"type\": \"Note\"}".to_vec(),
            "EMM-2.2-context",
        ),
        ("no context", b"{\"type\": \"Note\"}".to_vec(), "EMM-2.2-context"),
        ("a number as id", note("\"id\": 1"), "AS-4.1-id"),
        ("a relative id", note("\"id\": \"notes/1\""), "AS-4.1-id"),
        ("a number as type", page("\"type\": 1"), "AS-4.1-type"),
        ("a number in type", page("\"type\": [\"Note\", 1]"), "AS-4.1-type"),
        ("a number as name", note("\"name\": 1"), "AS-4.7-text"),
        ("a number as content", note("\"content\": 1"), "AS-4.7-text"),
        ("a map as name", note("\"name\": {\"en\": \"Milk\"}"), "AS-4.7-text"),
        ("a name as map", note("\"nameMap\": \"Milk\""), "AS-4.7-map"),
        (
            "a language that is none",
            note("\"contentMap\": {\"not a language\": \"Milk\"}"),
            "AS-4.7-language",
        ),
        ("a number as actor", page("\"type\": \"Create\", \"actor\": 1"), "AS-4.4-reference"),
        ("a number as object", page("\"type\": \"Create\", \"object\": 1"), "AS-4.4-reference"),
        ("a relative url", note("\"url\": \"notes/1\""), "AS-2.2-absolute"),
        ("a link to nowhere", note("\"url\": {\"type\": \"Link\"}"), "AS-4.2-link"),
        (
            "a link of no media type",
            note(
                "\"url\": {\"type\": \"Link\", \"href\": \"https://o.example/\", \"mediaType\": \"html\"}",
            ),
            "AS-4.2-link",
        ),
        ("a day as time", note("\"published\": \"2026-01-01\""), "AS-2.3-datetime"),
        ("a time without zone", note("\"published\": \"2026-01-01T00:00:00\""), "AS-2.3-datetime"),
        (
            "a text as total",
            page("\"type\": \"Collection\", \"totalItems\": \"2\""),
            "AS-4.6-total",
        ),
        ("a negative total", page("\"type\": \"Collection\", \"totalItems\": -2"), "AS-4.6-total"),
        (
            "a collection whose first page is none",
            page("\"type\": \"Collection\", \"first\": {\"type\": \"Note\"}"),
            "AS-4.6-page",
        ),
        (
            "an ordered collection whose first page is none",
            page("\"type\": \"OrderedCollection\", \"first\": {\"type\": \"Note\"}"),
            "AS-4.6-page",
        ),
        (
            "an ordered collection with items",
            page("\"type\": \"OrderedCollection\", \"items\": []"),
            "AS-4.6-items",
        ),
        (
            "a collection with ordered items",
            page("\"type\": \"Collection\", \"orderedItems\": []"),
            "AS-4.6-items",
        ),
    ] {
        let found = check_document(name, &bytes, Mode::Normal);
        let found = found.iter().find(|found| found.rule.id == rule);
        let found = found.unwrap_or_else(|| panic!("{name}: {rule}"));
        assert_eq!(found.severity, Severity::Error, "{name}");
    }
}

#[test]
fn any_json_is_checked_the_same_however_it_comes() {
    use proptest::prelude::*;
    let documents: Vec<Vec<u8>> = good("http://e.example")
        .into_values()
        .filter(|answer| answer.headers["Content-Type"] != NT)
        .map(|answer| answer.body)
        .collect();
    let any = (0..documents.len(), any::<[prop::sample::Index; 3]>(), any::<u8>(), 0..4_u8);
    proptest!(ProptestConfig::with_cases(256), |((which, at, byte, how) in any)| {
        let mut bytes = documents[which].clone();
        let [one, other, to] = at.map(|at| at.index(bytes.len()));
        let (from, end) = (one.min(other), one.max(other));
        match how {
            0 => bytes[one] = byte,
            1 => drop(bytes.drain(from..end)),
            2 => {
                let part = bytes[from..end].to_vec();
                bytes.splice(to..to, part);
            }
            _ => bytes.truncate(one),
        }
        abreast_validator::fuzz_property::document(&bytes);
    });
}

#[test]
fn the_table_of_requirements_names_every_rule() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/emm.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rules = crate::emm_cases::CASES.iter().map(|(rule, _)| *rule);
    let missing: Vec<_> = rules.filter(|rule| !page.contains(&format!("`{rule}`"))).collect();
    assert!(missing.is_empty(), "docs/emm.md#conformance: {missing:?}");
}

#[test]
fn a_document_at_its_id_is_asked_for_as_json() {
    // The given address is that of the file; its `id` is answered with a page, unless JSON is
    // accepted.
    let server = Server::start(|base| {
        let mut answers = good(base);
        let entry = answers["/emm10"].clone();
        answers.insert("/emm10.json".to_owned(), entry.clone());
        let page = typed("text/html", b"<!DOCTYPE html>".to_vec());
        let json = Some(("application/activity+json", Box::new(entry)));
        answers.insert("/emm10".to_owned(), crate::server::Answer { by_accept: json, ..page });
        answers
    });
    let report = inspect(&server, "/emm10.json", |_| {});
    assert!(report.findings.is_empty(), "{}", text(&report));
}

/// As the examples of EMM 0.1 are printed.
#[test]
fn misprints_of_the_draft_are_found() {
    let patch = |content: &str| {
        format!(
            "{{\"@context\": \"https://ld4.github.io/entity_metadata_management/0.1/context.json\", \"type\": \"rdf_patch\",\n\
             \"id\": \"https://e.example/cd11/instrument/1\", \"partOf\": {{\"type\": \"Create\", \"id\": \"https://e.example/cd11\"}},\n\
             \"content\": {content}"
        )
    };
    let rows = "A <https://e.example/cow_milk> <https://e.example/label> 'cow milk'@en.";
    for (document, expected) in [
        (patch(&format!("\"{rows}\"}}")), ["EMM01-4.2-strict"]),
        (
            patch(&format!(
                "\"{}\"}}",
                rows.replace("> <https://e.example/l", ">\n <https://e.example/l")
            )),
            ["AS-2-json"],
        ),
        (patch(&format!("\"{rows}\",\n}}")), ["AS-2-json"]),
        (patch(&format!("\"{rows}\"")), ["AS-2-json"]),
        (patch("\"A <https://e.example/cow_milk> milk .\"}"), ["EMM01-4.2-syntax"]),
    ] {
        let found = check_document("patch", document.as_bytes(), Mode::Lenient);
        let rules: BTreeSet<_> = found.iter().map(|found| found.rule.id).collect();
        assert_eq!(rules, BTreeSet::from(expected), "{document}\n{found:#?}");
        let is_note = expected == ["EMM01-4.2-strict"];
        assert_eq!(found.iter().all(|found| found.severity == Severity::Note), is_note);
    }
}

#[test]
fn what_is_in_the_place_of_json_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (body, what) in [
        ("", "it is empty, and not JSON"),
        ("Down", "it is plain text, and not JSON"),
        ("<!doctype html><p>Down", "it is HTML, and not JSON"),
    ] {
        let server = Server::start(move |base| {
            let mut answers = good(base);
            let answer = || typed("application/json", body.as_bytes().to_vec());
            answers.insert("/emm10/page/2".to_owned(), answer());
            answers.insert("/alone".to_owned(), answer());
            answers
        });
        let report = inspect(&server, "/emm10", |_| {});
        let problem = report.documents[0].problem.as_deref().unwrap_or_default();
        assert!(problem.ends_with(what), "{problem}");
        let file = folder.path().join("page.JSON");
        std::fs::write(&file, body).unwrap();
        let file = Options::new(vec![file.to_str().unwrap().to_owned()]);
        for report in [inspect(&server, "/alone", |_| {}), validate(&file, &AtomicBool::new(false))]
        {
            if body.starts_with('<') {
                // A page, which may lead to documents.
                continue;
            }
            let found: Vec<_> =
                report.findings.iter().map(|found| (found.rule.id, &*found.message)).collect();
            assert_eq!(found, [("AS-2-json", what)], "{}", text(&report));
        }
    }
    let marked = format!("\u{feff}{}", page("https://e.example", "emm10", 1));
    let found = check_document("page.json", marked.as_bytes(), Mode::Normal);
    let found: Vec<_> = found.iter().map(|found| (found.rule.id, &*found.message)).collect();
    assert_eq!(found, [("AS-2-json", "it begins with a byte order mark, which JSON has not")]);
}

#[test]
fn a_feed_with_a_page_that_cannot_be_read_is_incomplete() {
    let large = format!("{{\"type\": \"{}\"}}", "a".repeat(64 << 20));
    let crowded = format!("[{}1]", "{},".repeat(2_000_001));
    for (body, finding) in [
        ("{", "AS-2-json"),
        ("\"<!doctype html>\"", "AS-2-object"),
        ("{\"type\": \"Note\"}", "EMM-3-kind"),
        (&*large, "EMM-3.2-reachable"),
        (&*crowded, "EMM-3.2-reachable"),
    ] {
        let body = body.as_bytes().to_vec();
        let server = Server::start(move |base| {
            let mut answers = good(base);
            answers.insert("/emm10/page/2".to_owned(), typed("application/json", body));
            answers
        });
        let report = inspect(&server, "/emm10", |_| {});
        let problem = report.documents[0].problem.as_deref().unwrap_or_default();
        let page = server.url("/emm10/page/2");
        assert!(problem.starts_with(&format!("the page {page}: ")), "{problem}");
        assert!(report.findings.iter().any(|found| found.rule.id == finding), "{}", text(&report));
        let alone = inspect(&server, "/emm10/page/2", |_| {});
        let is_over = finding == "EMM-3.2-reachable";
        assert_eq!(alone.saw_nothing(), is_over, "{}", text(&alone));
        assert_eq!(alone.documents[0].problem.is_some(), is_over, "{}", text(&alone));
    }
}
