//! Change feeds as the Library of Congress, Getty, Libris, Blue Core, Marva and IIIF publishers
//! write them: exactly what is known of each is found.

use crate::cases::inspect;
use crate::server::{Answers, Server};
use crate::site::typed;
use abreast_validator::{Share, text};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const STREAMS: &str = "https://www.w3.org/ns/activitystreams";

/// A feed of two pages with two activities each; `number` counts in the order of the feed.
struct Shape {
    entry: fn(&str) -> Value,
    page: fn(&str, usize) -> Value,
    activity: fn(&str, usize) -> Value,
}

fn serve(shape: &Shape, base: &str) -> Answers {
    let mut answers = Answers::new();
    let mut add = |path: String, value: &Value| {
        let is_iiif = value["@context"].to_string().contains("iiif.io");
        let kind = if is_iiif { "application/json" } else { "application/activity+json" };
        let mut answer = typed(kind, value.to_string().into_bytes());
        answer.headers.insert("Access-Control-Allow-Origin".to_owned(), "*".to_owned());
        answers.insert(path, answer);
    };
    add("/feed".to_owned(), &(shape.entry)(base));
    for number in [1, 2] {
        let mut page = (shape.page)(base, number);
        let items = [number * 2 - 1, number * 2].map(|number| (shape.activity)(base, number));
        page["orderedItems"] = items.into_iter().collect();
        add(format!("/feed/{number}"), &page);
    }
    answers
}

fn to(base: &str, number: usize) -> Value {
    json!({"id": format!("{base}/feed/{number}"), "type": "OrderedCollectionPage"})
}

fn whole(base: &str) -> Value {
    json!({"id": format!("{base}/feed"), "type": "OrderedCollection"})
}

fn object(base: &str, number: usize) -> Value {
    json!({"id": format!("{base}/id/{number}"), "type": "http://ns.example/Term",
        "updated": format!("2026-01-{number:02}T00:00:00Z")})
}

fn congress() -> Shape {
    Shape {
        entry: |base| {
            json!({"@context": [format!("{STREAMS}#"), "https://emm-spec.org/0.1/context.json"], "type": "OrderedCollection",
                "id": format!("{base}/feed"), "summary": "Names", "first": format!("{base}/feed/1")})
        },
        page: |base, number| {
            let mut page = json!({"@context": [format!("{STREAMS}#"), "https://emm-spec.org/0.1/context.json"],
                "type": "OrderedCollectionPage", "id": format!("{base}/feed/{number}"), "partOf": format!("{base}/feed")});
            if number == 1 {
                page["next"] = json!(format!("{base}/feed/2"));
            }
            page
        },
        activity: |base, number| {
            json!({"type": if number == 2 { "Add" } else { "Update" }, "summary": "a name", "published": format!("2026-04-{:02}", 9 - number / 2),
                "actor": "https://loc.example/", "object": {"id": format!("{base}/id/{number}"),
                    "type": ["madsrdf:Topic", "madsrdf:Authority"], "updated": format!("2026-04-0{}", 9 - number / 2)}})
        },
    }
}

fn getty() -> Shape {
    Shape {
        entry: |base| {
            json!({"@context": STREAMS, "type": "OrderedCollection", "id": format!("{base}/feed"), "summary": "All",
                "first": to(base, 1), "last": to(base, 2), "totalItems": 4})
        },
        page: |base, number| {
            let (name, other) = if number == 1 { ("next", 2) } else { ("prev", 1) };
            json!({"@context": STREAMS, "type": "OrderedCollectionPage", "id": format!("{base}/feed/{number}"),
                "partOf": whole(base), name: to(base, other)})
        },
        activity: |base, number| {
            json!({"id": format!("{base}/feed/{number}-uuid"), "type": "Create", "created": format!("2026-01-{number:02}T00:00:00"),
                "endTime": format!("2026-01-{number:02}T00:00:00"), "object": {"id": format!("{base}/id/{number}"), "type": "Type"}})
        },
    }
}

fn libris() -> Shape {
    Shape {
        entry: |base| {
            json!({"@context": [STREAMS, "https://emm-spec.org/1.0/context.json"], "type": "OrderedCollection",
                "id": format!("{base}/feed"), "summary": "Changes", "first": to(base, 1)})
        },
        page: |base, number| {
            json!({"@context": [STREAMS, "https://emm-spec.org/1.0/context.json"], "type": "OrderedCollectionPage",
                "id": format!("{base}/feed/{number}"), "partOf": whole(base), "next": to(base, 2)})
        },
        activity: |base, number| {
            json!({"type": "Update", "summary": "an update", "published": format!("2026-01-{:02}T00:00:00Z", 9 - number),
                "object": object(base, number)})
        },
    }
}

fn blue_core() -> Shape {
    Shape {
        entry: |base| {
            json!({"@context": [STREAMS, "https://emm-spec.org/1.0/context.json"], "type": "OrderedCollection",
                "id": format!("{base}/feed"), "summary": "Changes", "first": to(base, 1), "last": to(base, 2)})
        },
        page: |base, number| {
            let mut page = json!({"@context": [STREAMS, "https://emm-spec.org/1.0/context.json"], "type": "OrderedCollectionPage",
                "id": format!("{base}/feed/{number}"), "partOf": {"id": format!("{base}/streams"), "type": "OrderedCollection"}});
            if number == 1 {
                page["next"] = to(base, 2);
            }
            page
        },
        activity: |base, number| {
            json!({"id": format!("urn:x:{number}"), "type": "Create", "summary": "new", "published": format!("2026-01-{number:02}T00:00:00Z"),
                "object": object(base, number)})
        },
    }
}

fn marva() -> Shape {
    Shape {
        entry: |_| {
            json!({"@context": STREAMS, "type": "OrderedCollection", "id": "/feed", "summary": "Changes", "first": "/feed/1",
                "totalItems": 4})
        },
        page: |_, number| {
            let mut page = json!({"@context": STREAMS, "type": "OrderedCollectionPage", "id": format!("/feed/{number}"), "partOf": "/feed"});
            if number == 1 {
                page["next"] = json!("/feed/2");
            }
            page
        },
        activity: |base, number| {
            json!({"type": "Update", "summary": "an update", "published": format!("2026-01-{number:02}T00:00:00Z"),
                "object": object(base, 1 + number % 2)})
        },
    }
}

fn iiif(level: u32) -> Shape {
    Shape {
        entry: |base| {
            json!({"@context": "http://iiif.io/api/discovery/1/context.json", "id": format!("{base}/feed"), "type": "OrderedCollection",
                "first": to(base, 1), "last": to(base, 2), "totalItems": 4})
        },
        page: |base, number| {
            let (name, other) = if number == 1 { ("next", 2) } else { ("prev", 1) };
            json!({"@context": "http://iiif.io/api/discovery/1/context.json", "id": format!("{base}/feed/{number}"),
                "type": "OrderedCollectionPage", "partOf": whole(base), name: to(base, other)})
        },
        activity: match level {
            0 => {
                |base, number| json!({"type": "Update", "object": {"id": format!("{base}/m/{number}"), "type": "Manifest"}})
            }
            _ => |base, number| {
                json!({"type": if number == 4 { "Delete" } else { "Update" }, "endTime": format!("2026-01-{number:02}T00:00:00Z"),
                    "object": {"id": format!("{base}/m/{number}"), "type": "Manifest"}})
            },
        },
    }
}

#[test]
fn feeds_of_known_publishers_have_their_known_faults() {
    let cases: &[(&str, Shape, &[&str])] = &[
        (
            "Library of Congress",
            congress(),
            &["AS-2.1-term", "AS-2.3-datetime", "EMM-2.2-context-exact", "EMM-3.1-first"],
        ),
        (
            "Getty",
            getty(),
            &[
                "AS-2.1-term",
                "AS-2.3-datetime",
                "EMM-2.2-context-emm",
                "EMM-3.3-object-updated",
                "EMM-3.3-published",
                "EMM-3.3-summary",
            ],
        ),
        ("Libris", libris(), &["EMM-3.1-first", "EMM-3.2-loop"]),
        ("Blue Core", blue_core(), &["EMM-3.2-part-of-equal"]),
        (
            "Marva",
            marva(),
            &[
                "AS-4.1-id",
                "EMM-2.2-context-emm",
                "EMM-3.1-first",
                "EMM-3.1-reference",
                "EMM-4.1-first",
            ],
        ),
        ("IIIF level 0", iiif(0), &["IIIF-3.3-end-time"]),
        ("IIIF level 2", iiif(2), &[]),
    ];
    for (name, shape, expected) in cases {
        let server = Server::start(|base| serve(shape, base));
        let report = inspect(&server, "/feed", |options| options.sample = Share::Some(0));
        let found: BTreeSet<_> = report.findings.iter().map(|found| found.rule.id).collect();
        assert_eq!(found, expected.iter().copied().collect(), "{name}\n{}", text(&report));
        assert_eq!(report.entries(), 4, "{name}: every page is read");
    }
}
