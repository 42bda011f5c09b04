//! Members of collections, objects and activities that only IIIF defines [iiif-discovery §3.1,
//! §3.3].

use crate::emm::judge::Judge;
use crate::emm::object::{Object, id, kind_of, local, types};
use crate::fetch::{is_url, values};
use crate::report::{Rule, rules as r};
use serde_json::Value;

/// Types that an `actor` may have.
const ACTORS: [&str; 3] = ["Application", "Organization", "Person"];

pub(super) fn of_collection(judge: &mut Judge<'_>, map: &Object) {
    let rule = &r::IIIF_MEMBERS;
    each(judge, map, "seeAlso", rule, "", data_fault);
    each(judge, map, "partOf", rule, "", |whole| typed_fault(whole, "OrderedCollection"));
    uri(judge, map, "rights", rule, "");
}

/// Checks the members of an `object` or `target`.
pub(super) fn of_object(judge: &mut Judge<'_>, object: &Object, at: &str) {
    let rule = &r::IIIF_OBJECT_MEMBERS;
    each(judge, object, "seeAlso", rule, at, data_fault);
    each(judge, object, "provider", rule, at, provider_fault);
    uri(judge, object, "canonical", rule, at);
}

pub(super) fn actor(judge: &mut Judge<'_>, activity: &Object, at: &str) {
    let Some(value) = activity.get("actor") else { return };
    let fault = match value.as_object() {
        None => Some(format!("it is {}, not an object", kind_of(value))),
        Some(actor) if id(actor).is_none() => Some("it has no `id`".to_owned()),
        Some(actor) => {
            let is_actor = types(actor).iter().any(|name| ACTORS.contains(&local(name)));
            (!is_actor).then(|| format!("its `type` is not {}", ACTORS.join(", ")))
        }
    };
    if let Some(fault) = fault {
        judge.add(&r::IIIF_ACTOR, &format!("{at}/actor"), || fault);
    }
}

/// Checks a member that must be an array of objects, and each object with `fault`.
fn each(
    judge: &mut Judge<'_>,
    map: &Object,
    name: &str,
    rule: &'static Rule,
    at: &str,
    fault: impl Fn(&Object) -> Option<String>,
) {
    let Some(value) = map.get(name) else { return };
    let fault = match value.as_array() {
        None => Some(format!("it is {}, not an array", kind_of(value))),
        Some(all) if all.is_empty() => Some("it is empty".to_owned()),
        Some(all) => all.iter().find_map(|one| match one.as_object() {
            None => Some(format!("it has {}, not an object", kind_of(one))),
            Some(one) => fault(one),
        }),
    };
    if let Some(fault) = fault {
        judge.add(rule, &format!("{at}/{name}"), || fault);
    }
}

fn uri(judge: &mut Judge<'_>, map: &Object, name: &str, rule: &'static Rule, at: &str) {
    let Some(value) = map.get(name) else { return };
    let fault = value.as_str().map_or(Some(kind_of(value)), values::absolute_fault);
    if let Some(fault) = fault {
        judge.add(rule, &format!("{at}/{name}"), || format!("it is not a URI: {fault}"));
    }
}

fn typed_fault(map: &Object, due: &str) -> Option<String> {
    if !id(map).is_some_and(is_url) {
        Some("`id` of one is not an HTTP(S) URI".to_owned())
    } else if !types(map).contains(&due) {
        Some(format!("`type` of one is not {due}"))
    } else {
        None
    }
}

fn data_fault(map: &Object) -> Option<String> {
    let has = |name: &str, is_good: &dyn Fn(&Value) -> bool| map.get(name).is_none_or(is_good);
    let is_media_type = |value: &Value| value.as_str().is_some_and(values::is_media_type);
    typed_fault(map, "Dataset").or_else(|| {
        let fault = if !has("format", &is_media_type) {
            "`format` of one is not a media type"
        } else if !has("label", &is_language_map) {
            "`label` of one is not a language map"
        } else if !has("profile", &Value::is_string) {
            "`profile` of one is not a string"
        } else {
            return None;
        };
        Some(fault.to_owned())
    })
}

/// Fault of a provider, whose `id` may be a URI of any scheme.
fn provider_fault(map: &Object) -> Option<String> {
    let fault = if id(map).is_none_or(|id| values::absolute_fault(id).is_some()) {
        "`id` of one is not a URI"
    } else if !types(map).contains(&"Agent") {
        "`type` of one is not Agent"
    } else if !map.get("label").is_some_and(is_language_map) {
        "`label` of one is not a language map"
    } else {
        return None;
    };
    Some(fault.to_owned())
}

/// Whether a value is an object with texts by language, such as `{"en": ["A title"]}`.
fn is_language_map(value: &Value) -> bool {
    let is_texts =
        |texts: &Value| texts.as_array().is_some_and(|all| all.iter().all(Value::is_string));
    value.as_object().is_some_and(|map| map.values().all(is_texts))
}
