//! Checks of activities [emm-1.0 §3.3, §4] [emm-0.1 §4.1, §5] [iiif-discovery §3.3].

use super::{members, patch};
use crate::emm::item::{EMM, IIIF, Item, OTHERS};
use crate::emm::judge::Judge;
use crate::emm::object::{Object, id, kind_of, local, several, text_of, time, types};
use crate::fetch::is_url;
use crate::report::rules as r;
use abreast_emm::Profile;
use abreast_webtypes::{W3cDatetime, excerpt};
use serde_json::Value;

/// Most seconds by which two clocks may differ.
const CLOCK_SECONDS: i64 = 60;
/// Checks an activity. `page` is the `id` of the page that contains the activity.
pub(super) fn check(judge: &mut Judge<'_>, map: &Object, at: &str, page: Option<&str>) -> Item {
    let mut item = Item { kind: kind(judge, map, at), ..Item::default() };
    item.id = id(map).map(str::to_owned);
    item.time = dates(judge, map, at);
    if let (Some(time), Some(now)) = (item.time, judge.now)
        && time.instant.as_seconds() > now.as_seconds() + CLOCK_SECONDS
    {
        let message = || format!("its time is {}, and it is {now} at the server", time.instant);
        judge.add(&r::CF_FUTURE, at, message);
    }
    let is_http = item.id.as_deref().is_some_and(is_url);
    match judge.profile {
        Profile::Emm01 if !is_http && map.get("id").is_none_or(Value::is_string) => {
            let found = item.id.as_deref().map_or("missing".to_owned(), excerpt);
            judge.add(&r::EMM01_ID, at, || format!("`id` is {found}"));
        }
        Profile::Iiif1 if !is_http && item.id.is_some() => {
            let id = item.id.as_deref().unwrap_or_default();
            judge.add(&r::IIIF_ID, at, || format!("`id` is {}", excerpt(id)));
        }
        _ => {}
    }
    if judge.is_emm() {
        if text_of(map, "summary").is_none_or(|text| text.trim().is_empty()) {
            judge.add(&r::EMM_ACTIVITY_SUMMARY, at, || "there is no `summary`");
        }
        match map.get("partOf") {
            None => {}
            Some(Value::String(own)) if is_url(own) && page.is_none_or(|page| page == own) => {}
            Some(other) => {
                let is = other.as_str().map_or(kind_of(other).to_owned(), excerpt);
                let message = || format!("`partOf` is {is}, not the URL of its page");
                judge.add(&r::EMM_ACTIVITY_PART_OF, at, message);
            }
        }
    }
    if item.kind != "Refresh" {
        object(judge, map, at, &mut item);
    }
    if judge.profile == Profile::Iiif1 {
        members::actor(judge, map, at);
        if item.kind == "Move" {
            target(judge, map, at, &item);
        }
    }
    for instrument in map.get("instrument").map(several).unwrap_or_default() {
        self::instrument(judge, instrument, at, &mut item);
    }
    item
}

/// Type of an activity. Reports a type that the specification does not define.
fn kind(judge: &mut Judge<'_>, map: &Object, at: &str) -> String {
    let is_iiif = judge.profile == Profile::Iiif1;
    let rule = if is_iiif { &r::IIIF_TYPE } else { &r::EMM_TYPE };
    let all = types(map);
    let own = if is_iiif { IIIF } else { EMM };
    let known = all.iter().find(|name| own.contains(&local(name)));
    let Some(known) = known else {
        let found = all.join(", ");
        let is_registered = is_iiif && all.iter().any(|name| OTHERS.contains(&local(name)));
        if is_registered {
            let message = || format!("it is of the type {}, which readers ignore", excerpt(&found));
            judge.add(&r::IIIF_TYPE_OTHER, at, message);
        } else if all.is_empty() {
            judge.add(rule, at, || "there is no `type`");
        } else {
            judge.add(rule, at, || format!("`type` is {}", excerpt(&found)));
        }
        return all.first().map(|name| local(name).to_owned()).unwrap_or_default();
    };
    let name = local(known);
    if text_of(map, "type") != Some(name) {
        let message = || match map.get("type") {
            None => format!("{} is written as `@type`", excerpt(&all.join(", "))),
            Some(Value::Array(_)) => format!("`type` is an array of {}", excerpt(&all.join(", "))),
            Some(_) => format!("`type` is {}", excerpt(&all.join(", "))),
        };
        judge.add(&r::CF_TYPE_STRING, at, message);
    }
    name.to_owned()
}

/// Time of an activity, by which a feed is sorted.
fn dates(judge: &mut Judge<'_>, map: &Object, at: &str) -> Option<W3cDatetime> {
    let has = |name: &str| map.get(name).is_some_and(|value| !value.is_null());
    match judge.profile {
        Profile::Emm10 if !has("published") && !has("endTime") => {
            judge.add(&r::EMM_DATE, at, || "there is neither `published` nor `endTime`");
        }
        Profile::Emm10 if !has("published") => {
            judge.add(&r::EMM_PUBLISHED, at, || "there is no `published`");
        }
        Profile::Emm01 if !has("published") => {
            let others = ["endTime", "updated", "created", "startTime"];
            let rule = if others.into_iter().any(has) { &r::EMM01_PUBLISHED } else { &r::EMM_DATE };
            judge.add(rule, at, || "there is no `published`");
        }
        Profile::Iiif1 if !has("endTime") && !matches!(&*local_type(map), "Refresh") => {
            judge.add(&r::IIIF_END_TIME, at, || "there is no `endTime`");
        }
        _ => {}
    }
    if judge.profile == Profile::Iiif1 {
        for name in ["endTime", "startTime"] {
            let text = text_of(map, name).unwrap_or_default();
            let zone = text.split_once(['T', 't']).map_or("", |(_, clock)| clock);
            if zone.contains(['+', '-']) && !zone.ends_with("+00:00") {
                judge.add(&r::IIIF_UTC, at, || format!("`{name}` is {}", excerpt(text)));
            }
        }
    }
    let of_object = map.get("object").and_then(|object| object.get("updated"));
    let own = ["published", "endTime", "updated", "created", "startTime"];
    let all = own.into_iter().filter_map(|name| map.get(name)).chain(of_object);
    all.filter_map(Value::as_str).find_map(time)
}

fn local_type(map: &Object) -> String {
    types(map).first().map(|name| local(name).to_owned()).unwrap_or_default()
}

fn object(judge: &mut Judge<'_>, map: &Object, at: &str, item: &mut Item) {
    let is_iiif = judge.profile == Profile::Iiif1;
    let rule = if is_iiif { &r::IIIF_OBJECT } else { &r::EMM_OBJECT };
    let place = format!("{at}/object");
    let value = map.get("object").unwrap_or(&Value::Null);
    // In the draft of 0.1, an activity may have several entities [emm-0.1 §4.1].
    let several =
        if judge.profile == Profile::Emm01 { several(value) } else { std::slice::from_ref(value) };
    for (number, one) in several.iter().enumerate() {
        let Value::Object(object) = one else {
            let is = if one.is_null() { "missing" } else { kind_of(one) };
            judge.add(rule, &place, || format!("it is {is}"));
            item.object =
                item.object.take().or_else(|| one.as_str().map(|iri| judge.absolute(iri)));
            continue;
        };
        match id(object) {
            None if !object.contains_key("id") => {
                judge.add(rule, &place, || "it has no `id`");
            }
            Some(iri) if is_iiif && !is_url(iri) => {
                judge.add(rule, &place, || {
                    format!("its `id` {} is not an HTTP(S) URI", excerpt(iri))
                });
            }
            _ => {}
        }
        let all = types(object);
        if all.is_empty() && !object.contains_key("type") {
            let rule = if is_iiif { rule } else { &r::EMM_OBJECT_TYPE };
            judge.add(rule, &place, || "it has no `type`");
        }
        if !is_iiif && !object.contains_key("updated") {
            judge.add(&r::EMM_OBJECT_UPDATED, &place, || "it has no `updated`");
        }
        if is_iiif {
            members::of_object(judge, object, &place);
        }
        if let Some(why) = all.iter().find_map(|term| judge.contexts.nothing(term)) {
            judge.add(&r::CF_TERM, &format!("{place}/type"), || why);
        }
        if number == 0 {
            item.object = id(object).map(|iri| judge.absolute(iri));
            item.links = links(judge, object);
        }
    }
    if several.is_empty() {
        judge.add(rule, &place, || "it is missing");
    }
}

/// URLs of representations with their media types.
fn links(judge: &Judge<'_>, object: &Object) -> Vec<(String, String)> {
    let one = |link: &Value| match link {
        Value::String(href) => Some((judge.absolute(href), String::new())),
        Value::Object(link) => Some((
            judge.absolute(text_of(link, "href")?),
            text_of(link, "mediaType").unwrap_or_default().to_owned(),
        )),
        _ => None,
    };
    object.get("url").map(several).unwrap_or_default().iter().filter_map(one).collect()
}

fn target(judge: &mut Judge<'_>, map: &Object, at: &str, item: &Item) {
    let target = map.get("target").and_then(Value::as_object);
    let place = format!("{at}/target");
    let url = target.and_then(id).unwrap_or_default();
    if let Some(target) = target {
        members::of_object(judge, target, &place);
    }
    if target.is_none_or(|target| types(target).is_empty()) || !is_url(url) {
        let message = || "a `Move` needs an object with `id` and `type` as `target`";
        judge.add(&r::IIIF_TARGET, &place, message);
    } else if item.object.as_deref() == Some(url) {
        judge.add(&r::IIIF_TARGET, &place, || "it is the `object` itself");
    }
}

fn instrument(judge: &mut Judge<'_>, value: &Value, at: &str, item: &mut Item) {
    let place = format!("{at}/instrument");
    let map = value.as_object();
    let is_patch = map.is_some_and(|map| {
        types(map).iter().any(|name| local(name) == "rdf_patch")
            || text_of(map, "mediaType") == Some(rdf_patch::MEDIA_TYPE)
    });
    let url = map.and_then(id).unwrap_or_default();
    if judge.profile == Profile::Emm01 && !(is_patch && is_url(url)) {
        let message = || "it is not an object with the `id` of a patch and the type rdf_patch";
        judge.add(&r::EMM01_INSTRUMENT, &place, message);
    }
    if let Some(map) = map.filter(|_| is_patch) {
        item.instrument = Some(url).filter(|url| is_url(url)).map(str::to_owned);
        if let Some(text) = text_of(map, "content") {
            let place = format!("{place}/content");
            item.patch = patch::check(judge, text.as_bytes(), Some(item), &place);
        }
    }
}
