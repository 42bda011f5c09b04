//! Rules of Activity Streams for any object [as-core §4].

use crate::emm::judge::Judge;
use crate::emm::object::{Object, kind_of, local, several, types};
use crate::fetch::values;
use crate::report::rules as r;
use abreast_webtypes::excerpt;
use serde_json::Value;

/// Checks an object and the objects in it.
pub(super) fn object(judge: &mut Judge<'_>, map: &Object, at: &str) {
    for (name, value) in map {
        member(judge, name, value, &format!("{at}/{name}"));
    }
    let types = types(map);
    let is = |name: &str| types.iter().any(|found| local(found) == name);
    let is_ordered = is("OrderedCollection") || is("OrderedCollectionPage");
    let other = if is_ordered { "items" } else { "orderedItems" };
    if (is_ordered || is("Collection") || is("CollectionPage")) && map.contains_key(other) {
        let message =
            || format!("the type is {}, and it has `{other}`", excerpt(&types.join(", ")));
        judge.add(&r::AS_ITEMS, at, message);
    }
    if is("OrderedCollectionPage") || is("CollectionPage") {
        let whole = map.get("partOf").map(several).unwrap_or_default();
        for one in whole {
            leads(judge, one, "Collection", &format!("{at}/partOf"));
        }
    }
    if is("Link") && !map.contains_key("href") {
        judge.add(&r::AS_LINK, at, || "there is no `href`");
    }
}

fn member(judge: &mut Judge<'_>, name: &str, value: &Value, at: &str) {
    let is = || kind_of(value);
    match name {
        "@context" => {
            let is_good =
                |value: &Value| matches!(value, Value::String(_) | Value::Object(_) | Value::Null);
            if let Some(wrong) = several(value).iter().find(|one| !is_good(one)) {
                judge.add(&r::AS_CONTEXT, at, || format!("it has {}", kind_of(wrong)));
            }
        }
        "id" | "@id" => match value.as_str() {
            None => judge.add(&r::AS_ID, at, || format!("it is {}", is())),
            Some(text) => {
                if let Some(fault) = values::absolute_fault(text) {
                    judge.add(&r::AS_ID, at, || format!("\"{}\" {fault}", excerpt(text)));
                }
            }
        },
        "type" | "@type" => {
            let all = several(value);
            if all.is_empty() || !all.iter().all(Value::is_string) {
                judge.add(&r::AS_TYPE, at, || format!("it is {}", is()));
            }
        }
        "name" | "summary" | "content" if !several(value).iter().all(Value::is_string) => {
            judge.add(&r::AS_TEXT, at, || format!("it is {}", is()));
        }
        "nameMap" | "summaryMap" | "contentMap" => languages(judge, value, at),
        "published" | "updated" | "startTime" | "endTime" | "deleted"
            if !value.as_str().is_some_and(is_datetime) =>
        {
            let message = || match value.as_str() {
                Some(text) => format!("{} is not a time with a date and a zone", excerpt(text)),
                None => format!("it is {}", is()),
            };
            judge.add(&r::AS_DATETIME, at, message);
        }
        "totalItems" | "startIndex" if !value.is_u64() => {
            judge.add(&r::AS_TOTAL, at, || format!("it is {}", excerpt(&value.to_string())));
        }
        "mediaType" if !value.as_str().is_some_and(values::is_media_type) => {
            judge.add(&r::AS_LINK, at, || format!("it is {}", excerpt(&value.to_string())));
        }
        "href" => url(judge, value, at),
        "first" | "last" | "next" | "prev" => {
            for one in several(value) {
                leads(judge, one, "CollectionPage", at);
            }
        }
        "object" | "actor" | "target" | "origin" | "result" | "instrument" | "url"
        | "attributedTo" | "to" | "cc" | "tag" | "icon" | "image" | "attachment" => {
            values_of(judge, value, at);
        }
        "items" | "orderedItems" => {
            for (number, one) in several(value).iter().enumerate() {
                if let Value::Object(map) = one {
                    object(judge, map, &format!("{at}/{number}"));
                }
            }
        }
        _ => {}
    }
}

/// Checks the type of a reference's target, if the reference contains a type.
fn leads(judge: &mut Judge<'_>, value: &Value, due: &str, at: &str) {
    let types = value.as_object().map(types).unwrap_or_default();
    if !types.is_empty() && !types.iter().any(|name| local(name).ends_with(due)) {
        judge.add(&r::AS_PAGE, at, || format!("it is of the type {}", excerpt(&types.join(", "))));
    }
}

/// Checks a value that must be an object, an IRI, or an array of these.
fn values_of(judge: &mut Judge<'_>, value: &Value, at: &str) {
    for one in several(value) {
        match one {
            Value::Object(map) => object(judge, map, at),
            Value::String(_) => url(judge, one, at),
            other => judge.add(&r::AS_REFERENCE, at, || format!("it is {}", kind_of(other))),
        }
    }
}

fn url(judge: &mut Judge<'_>, value: &Value, at: &str) {
    match value.as_str() {
        None => judge.add(&r::AS_REFERENCE, at, || format!("it is {}", kind_of(value))),
        Some(text) => {
            if let Some(fault) = values::absolute_fault(text) {
                judge.add(&r::AS_URL, at, || format!("\"{}\" {fault}", excerpt(text)));
            }
        }
    }
}

fn languages(judge: &mut Judge<'_>, value: &Value, at: &str) {
    let Value::Object(map) = value else {
        judge.add(&r::AS_MAP, at, || format!("it is {}", kind_of(value)));
        return;
    };
    for (tag, text) in map {
        let is_part = |part: &str| {
            (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
        };
        let first = tag.split('-').next().unwrap_or_default();
        if !tag.split('-').all(is_part) || !first.bytes().all(|b| b.is_ascii_alphabetic()) {
            judge.add(&r::AS_LANGUAGE, at, || format!("`{}` is not a language tag", excerpt(tag)));
        }
        if !several(text).iter().all(Value::is_string) {
            judge.add(&r::AS_MAP, at, || format!("{} has {}", excerpt(tag), kind_of(text)));
        }
    }
}

/// Whether a text is a date and a time with a zone; seconds are optional [as-core §2.3].
fn is_datetime(text: &str) -> bool {
    let Some((_, clock)) = text.split_once(['T', 't']) else { return false };
    let has_zone = clock.ends_with(['Z', 'z']) || clock.contains(['+', '-']);
    let upper = text.to_ascii_uppercase();
    has_zone && abreast_webtypes::W3cDatetime::parse(upper.as_bytes()).is_ok()
}
