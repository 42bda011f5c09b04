//! Checks of Entry Points and Change Sets [emm-1.0 §3.1, §3.2] [emm-0.1 §3.1, §3.2] [iiif-discovery
//! §3.1, §3.2].

use super::{activity, members};
use crate::emm::doc::{Doc, Download};
use crate::emm::judge::Judge;
use crate::emm::object::{Object, id, kind_of, several, text_of, types};
use crate::fetch::{is_url, values};
use crate::report::rules as r;
use abreast_emm::Profile;
use abreast_rdf::Syntax;
use abreast_webtypes::{count_of, excerpt};
use serde_json::Value;

const COLLECTION: &str = "OrderedCollection";
const PAGE: &str = "OrderedCollectionPage";

pub(super) fn entry_point(judge: &mut Judge<'_>, map: &Object, doc: &mut Doc) {
    head(judge, map, COLLECTION);
    let profile = judge.profile;
    if judge.is_emm() && doc.summary.trim().is_empty() {
        judge.add(&r::EMM_SUMMARY, "", || "there is no `summary`");
    }
    for (name, is_missing) in [("first", doc.first.is_none()), ("last", doc.last.is_none())] {
        let rule = match (profile, name) {
            (Profile::Emm10, _) => &r::EMM_FIRST,
            (Profile::Emm01, _) => &r::EMM01_FIRST,
            (Profile::Iiif1, "first") => &r::IIIF_FIRST,
            (Profile::Iiif1, _) => &r::IIIF_LAST,
        };
        if is_missing && !map.contains_key(name) {
            judge.add(rule, "", || format!("there is no `{name}`"));
        }
        reference(judge, map, name, PAGE);
    }
    for link in map.get("url").map(several).unwrap_or_default() {
        let download = match link {
            Value::String(href) => {
                Download { href: judge.absolute(href), media_type: String::new(), updated: None }
            }
            Value::Object(link) => Download {
                href: text_of(link, "href").map(|href| judge.absolute(href)).unwrap_or_default(),
                media_type: text_of(link, "mediaType").unwrap_or_default().to_owned(),
                updated: text_of(link, "updated").map(str::to_owned),
            },
            _ => continue,
        };
        let missing = if download.media_type.is_empty() {
            "no media type"
        } else if download.updated.is_none()
            && Syntax::of_media_type(&download.media_type).is_some()
        {
            "no `updated`: up to when it has changes"
        } else {
            ""
        };
        if judge.is_emm() && !missing.is_empty() {
            judge.add(&r::EMM_DOWNLOAD, "/url", || {
                format!("{} has {missing}", excerpt(&download.href))
            });
        }
        doc.downloads.push(download);
    }
    if profile == Profile::Iiif1 {
        members::of_collection(judge, map);
    }
    if map.contains_key("orderedItems") {
        items(judge, map, doc);
    }
}

pub(super) fn page(judge: &mut Judge<'_>, map: &Object, doc: &mut Doc) {
    head(judge, map, PAGE);
    for name in ["next", "prev"] {
        reference(judge, map, name, PAGE);
    }
    reference(judge, map, "partOf", COLLECTION);
    let rule = match judge.profile {
        Profile::Emm10 => Some(&r::EMM_PART_OF),
        Profile::Iiif1 => Some(&r::IIIF_PART_OF),
        Profile::Emm01 => None,
    };
    if let Some(rule) = rule.filter(|_| !map.contains_key("partOf")) {
        judge.add(rule, "", || "there is no `partOf`");
    }
    items(judge, map, doc);
    // In Activity Streams, `totalItems` of a page may be the total of the whole collection, which
    // cannot be less than the number of items on the page.
    if let Some(total) = doc.total.filter(|total| *total < doc.items.len() as u64) {
        let found = count_of(doc.items.len(), "activity");
        let message = || format!("it is {total}, and the page has {found}");
        judge.add(&r::CF_TOTAL_PAGE, "/totalItems", message);
        doc.total = None;
    }
    if judge.profile == Profile::Iiif1 && doc.items.is_empty() {
        judge.add(&r::IIIF_EMPTY, "", || "the page has no activities");
    }
}

fn head(judge: &mut Judge<'_>, map: &Object, due: &str) {
    if text_of(map, "type") != Some(due) {
        let found = types(map).join(", ");
        let message = || match map.get("type") {
            None if found == due => format!("{due} is written as `@type`"),
            Some(Value::Array(_)) => format!("it is the array of {}, not {due}", excerpt(&found)),
            _ => format!("it is {}, not {due}", excerpt(&found)),
        };
        judge.add(&r::CF_TYPE, "/type", message);
    }
    match map.get("id") {
        None if map.contains_key("@id") => {
            judge.add(&r::CF_ID, "", || "it is written as `@id`");
        }
        None => judge.add(&r::CF_ID, "", || "there is no `id`"),
        // Other values are not strings or not absolute: faults that are checked for any object.
        Some(Value::String(id)) if values::uri_fault(id).is_none() && !is_url(id) => {
            judge.add(&r::CF_ID, "/id", || format!("{} is not an HTTP(S) URI", excerpt(id)));
        }
        Some(_) => {}
    }
}

/// Checks a link to a page or a collection, and its type.
fn reference(judge: &mut Judge<'_>, map: &Object, name: &str, due: &str) {
    let Some(value) = map.get(name) else { return };
    let is_iiif = judge.profile == Profile::Iiif1;
    let fault = match value {
        Value::String(_) if is_iiif => Some("it is a string, not an object".to_owned()),
        Value::String(url) => {
            (!is_url(url)).then(|| format!("{} is not an HTTP(S) URI", excerpt(url)))
        }
        Value::Object(map) => {
            let url = id(map).unwrap_or_default();
            if !is_url(url) {
                Some(format!("its `id` {} is not an HTTP(S) URI", excerpt(url)))
            } else if types(map).is_empty() {
                Some(format!("it has no `type`: it is {due}"))
            } else {
                None
            }
        }
        other => Some(format!("it is {}", kind_of(other))),
    };
    if let Some(fault) = fault {
        let rule = if is_iiif { &r::IIIF_REFERENCE } else { &r::EMM_REFERENCE };
        judge.add(rule, &format!("/{name}"), || fault);
    }
}

fn items(judge: &mut Judge<'_>, map: &Object, doc: &mut Doc) {
    let Some(Value::Array(items)) = map.get("orderedItems") else {
        let found = map.get("orderedItems").map_or("missing", kind_of);
        judge.add(&r::CF_ITEMS, "/orderedItems", || format!("it is {found}"));
        return;
    };
    let own = id(map).map(str::to_owned);
    let mut deprecates = false;
    for (number, item) in items.iter().enumerate() {
        let at = format!("/orderedItems/{number}");
        let Value::Object(item) = item else {
            judge.add(&r::CF_ITEMS, &at, || format!("it is {}, not an activity", kind_of(item)));
            continue;
        };
        let mut item = activity::check(judge, item, &at, own.as_deref());
        item.number = number as u32;
        deprecates |= item.kind == "Deprecate";
        doc.items.push(item);
    }
    if deprecates && judge.profile == Profile::Emm10 && !judge.contexts.defines_deprecation() {
        let message = || "`Deprecate` is used, and the EMM context that defines it is missing";
        judge.add(&r::EMM_DEPRECATE, "/@context", message);
    }
}
