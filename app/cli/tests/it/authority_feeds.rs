//! Change feeds of authorities, equivalent in structure to those of their publishers, on local servers. The entities are
//! few and the texts our own.

use abreast_testkit::pages::{Answer, Server};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

const STREAMS: &str = "https://www.w3.org/ns/activitystreams";

fn feed_page(document: &Value) -> Answer {
    Answer::ok(document.to_string()).header("content-type", "application/activity+json")
}

fn json_ld(document: &Value) -> Answer {
    Answer::ok(document.to_string()).header("content-type", "application/ld+json")
}

/// A feed in the form of the Library of Congress: the newest change of each entity, the newest first, on two pages, with
/// days, lists of prefixed types, and no names of activities.
pub(crate) fn congress() -> Server {
    const NAMES: [(&str, &str, &str); 3] = [
        ("n3", "Lagerlöf, Selma", "2026-01-03"),
        ("n2", "Blixen, Karen", "2026-01-02"),
        ("n1", "Jansson, Tove", "2026-01-02"),
    ];
    let server = Server::start();
    let base = server.url("/authorities/names");
    let page = |number: usize, names: &[(&str, &str, &str)]| {
        let activity = |(id, label, day): &(&str, &str, &str)| {
            let link = |ending: &str, media_type: &str| json!({"type": "Link", "href": format!("{base}/{id}{ending}"), "mediaType": media_type});
            json!({"summary": format!("New: {label}"), "type": ["as:Add"], "published": day, "actor": "http://id.loc.gov/vocabulary/organizations/dlc",
                "object": {"id": format!("{base}/{id}"), "type": ["madsrdf:Authority", "madsrdf:PersonalName"], "updated": day,
                    "url": [link(".rdf", "application/rdf+xml"), link(".nt", "application/n-triples"), link(".json", "application/ld+json")]}})
        };
        let feed = format!("{base}/activitystreams/feed");
        let mut document = json!({"@context": ["https://www.w3.org/ns/activitystreams#", "https://emm-spec.org/0.1/context.json"],
            "summary": format!("Page {number} of 2 pages"), "id": format!("{feed}/{number}"), "type": "OrderedCollectionPage", "partOf": feed,
            "orderedItems": names.iter().map(activity).collect::<Vec<_>>()});
        if number == 1 {
            document["next"] = json!(format!("{feed}/2"));
        }
        let answer =
            Answer::ok(document.to_string()).header("content-type", "application/activity+json");
        server.put(&format!("/authorities/names/activitystreams/feed/{number}"), answer);
    };
    page(1, &NAMES[..2]);
    page(2, &NAMES[2..]);
    for (id, label, _) in NAMES {
        let mads = "http://www.loc.gov/mads/rdf/v1#";
        let lines = format!(
            "<{base}/{id}> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <{mads}PersonalName> .\n\
             <{base}/{id}> <{mads}authoritativeLabel> \"{label}\"@en .\n"
        );
        let answer = Answer::ok(lines).header("content-type", "application/n-triples");
        for ending in ["", ".nt"] {
            server.put(&format!("/authorities/names/{id}{ending}"), answer.clone());
        }
    }
    server
}

/// A feed in the form of Getty's gateway of linked data: every change, the oldest first, with pages by number in both
/// directions, `created` and `endTime` without a zone, and entities in JSON-LD with the context of Linked Art.
pub(crate) fn getty() -> Server {
    const ACTIVITIES: [(&str, &str, &str); 5] = [
        ("Create", "aat/300015050", "Type"),
        ("Create", "ulan/500011051", "Person"),
        ("Create", "tgn/7011781", "Place"),
        ("Update", "ulan/500011051", "Person"),
        ("Delete", "tgn/7011781", "Place"),
    ];
    const PER_PAGE: usize = 2;
    let server = Server::start();
    let base = server.url("/vocab");
    let feed = format!("{base}/activity-stream");
    let pages = ACTIVITIES.chunks(PER_PAGE);
    let last = pages.len();
    let to = |number: usize| json!({"id": format!("{feed}/page/{number}"), "type": "OrderedCollectionPage"});
    let entry = json!({"@context": STREAMS, "summary": "Vocabularies", "type": "OrderedCollection", "id": feed,
        "totalItems": ACTIVITIES.len(), "first": to(1), "last": to(last)});
    let as_json = |document: &Value| {
        Answer::ok(document.to_string()).header("content-type", "application/json;charset=UTF-8")
    };
    server.put("/vocab/activity-stream", as_json(&entry));
    for (before, activities) in pages.enumerate() {
        let number = before + 1;
        let items = activities.iter().enumerate().map(|(place, (kind, entity, of))| {
            let position = before * PER_PAGE + place + 1;
            let time = format!("2026-02-{position:02}T08:00:00");
            json!({"id": format!("{feed}/00000000-0000-4000-8000-{position:012}"), "type": kind, "created": time,
                "endTime": time, "object": {"id": format!("{base}/{entity}"), "type": of}})
        });
        let mut page = json!({"@context": STREAMS, "type": "OrderedCollectionPage", "id": format!("{feed}/page/{number}"),
            "partOf": {"id": feed, "type": "OrderedCollection"}, "orderedItems": items.collect::<Vec<_>>()});
        if number < last {
            page["next"] = to(number + 1);
        }
        if number > 1 {
            page["prev"] = to(number - 1);
        }
        server.put(&format!("/vocab/activity-stream/page/{number}"), as_json(&page));
    }
    for (entity, kind, label) in
        [("aat/300015050", "Type", "oil paint"), ("ulan/500011051", "Person", "Rembrandt van Rijn")]
    {
        let document = json!({"@context": "https://linked.art/ns/v1/linked-art.json", "id": format!("{base}/{entity}"),
            "type": kind, "_label": label, "identified_by": [{"id": format!("{base}/{entity}/term/1"), "type": "Name", "content": label}]});
        server.put(&format!("/vocab/{entity}"), json_ld(&document));
    }
    server
}

/// A feed in the form of Libris: an Entry Point whose first page ends now, pages by time with the newest change first,
/// types in lower case, and a last page that leads to itself. IRIs of entities have a fragment; a description is a
/// record and its entity in JSON-LD, with a relative context.
pub(crate) fn libris() -> Server {
    /// The newest first: milliseconds since 1970, kind, record, type.
    const ACTIVITIES: [(i64, &str, &str, &str); 5] = [
        (1_772_200_000_500, "update", "b2", "Topic"),
        (1_772_100_000_250, "delete", "b3", "Topic"),
        (1_772_000_000_000, "create", "b3", "Topic"),
        (1_771_900_000_750, "create", "b2", "Topic"),
        (1_771_800_000_125, "create", "b1", "Topic"),
    ];
    const PER_PAGE: usize = 2;
    let server = Server::start();
    let (base, api) = (server.url(""), server.url("/api/emm"));
    let mut documents = BTreeMap::new();
    documents.insert(
        "/context.jsonld".to_owned(),
        json!({"@context": {"@vocab": "https://id.kb.se/vocab/", "mainEntity": {"@type": "@id"}}}),
    );
    for (record, label) in [("b1", "Mumintroll"), ("b2", "Fyrar")] {
        let entity = format!("{base}/{record}#it");
        let graph = json!([{"@id": format!("{base}/{record}"), "@type": "Record", "mainEntity": entity},
            {"@id": entity, "@type": "Topic", "prefLabel": label}]);
        documents
            .insert(format!("/{record}"), json!({"@context": "/context.jsonld", "@graph": graph}));
    }
    server.handler(move |path, _| {
        let contexts = json!([STREAMS, "https://emm-spec.org/1.0/context.json"]);
        if path == "/api/emm" {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
            return Some(feed_page(&json!({"@context": contexts, "type": "OrderedCollection", "id": api,
                "url": format!("{api}/full"), "first": {"type": "OrderedCollectionPage", "id": format!("{api}?until={now}")}})));
        }
        let Some(until) = path.strip_prefix("/api/emm?until=") else {
            return documents.get(path).map(json_ld);
        };
        let until: i64 = until.parse().unwrap();
        let page = ACTIVITIES.iter().filter(|(time, ..)| *time <= until).take(PER_PAGE);
        let items = page.clone().map(|(time, kind, record, of)| {
            let time = jiff::Timestamp::from_millisecond(*time).unwrap().to_string();
            json!({"type": kind, "published": time, "object": {"id": format!("{base}/{record}#it"), "type": of, "updated": time}})
        });
        let earliest = page.clone().map(|(time, ..)| *time).min().unwrap_or(until);
        Some(feed_page(&json!({"@context": contexts, "type": "OrderedCollectionPage", "id": format!("{api}?until={until}"),
            "partOf": {"type": "OrderedCollection", "id": api}, "next": format!("{api}?until={earliest}"),
            "orderedItems": items.collect::<Vec<_>>()})))
    });
    server
}
