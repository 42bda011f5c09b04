//! Documents of change feeds in Activity Streams.

use super::scenes::{FIRST, NAMES, SECOND, Site};
use super::sdshare::statement;
use abreast_testkit::pages::Answer;
use serde_json::{Value, json};

const CONTEXT: [&str; 2] =
    ["https://www.w3.org/ns/activitystreams", "https://emm-spec.org/1.0/context.json"];

pub(crate) fn serve(site: &Site<'_>) {
    for name in NAMES {
        let answer = Answer::ok(statement(site, name));
        let answer = answer.header("content-type", "application/n-triples");
        site.server.put(&format!("{name}.nt"), answer);
    }
    let activity = |name: &str, kind: &str, time: &str| {
        let link = json!({"type": "Link", "href": site.url(&format!("{name}.nt")), "mediaType": "application/n-triples"});
        json!({"type": kind, "id": site.url(&format!("/activity{name}/{kind}")), "published": time,
            "object": {"id": site.url(name), "type": "http://ns.example/Term", "url": [link]}})
    };
    let mut items: Vec<Value> =
        NAMES[..4].iter().map(|name| activity(name, "Create", FIRST)).collect();
    if site.is_later {
        items.push(activity("/e", "Create", SECOND));
        items.push(activity("/b", "Delete", SECOND));
    }
    let reference = |path: &str, kind: &str| json!({"id": site.url(path), "type": kind});
    let page = reference("/feed/1", "OrderedCollectionPage");
    let entry = json!({"@context": CONTEXT, "id": site.url("/feed"), "type": "OrderedCollection",
        "first": page, "last": page, "totalItems": items.len()});
    site.put("/feed", entry.to_string());
    let page = json!({"@context": CONTEXT, "id": site.url("/feed/1"), "type": "OrderedCollectionPage",
        "partOf": reference("/feed", "OrderedCollection"), "orderedItems": items});
    site.put("/feed/1", page.to_string());
}
