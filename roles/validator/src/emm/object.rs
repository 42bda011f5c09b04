//! JSON objects of Activity Streams.

use abreast_webtypes::W3cDatetime;
use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// Last part of a type that may be an IRI or have a prefix.
pub(super) fn local(name: &str) -> &str {
    name.rsplit([':', '#', '/']).next().unwrap_or(name)
}

/// Types of an object, as written.
pub(super) fn types(map: &Object) -> Vec<&str> {
    match map.get("type").or_else(|| map.get("@type")) {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn id(map: &Object) -> Option<&str> {
    map.get("id").or_else(|| map.get("@id")).and_then(Value::as_str)
}

pub(super) fn text_of<'m>(map: &'m Object, name: &str) -> Option<&'m str> {
    map.get(name).and_then(Value::as_str)
}

/// The values of an array, or a single value as a slice.
pub(super) fn several(value: &Value) -> &[Value] {
    match value {
        Value::Array(all) => all,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// Parses a time with any deviation that can be understood. A time without a zone is read as UTC.
pub(super) fn time(text: &str) -> Option<W3cDatetime> {
    let parse = |text: &str| W3cDatetime::parse(text.as_bytes()).ok();
    let text = text.trim();
    parse(text).or_else(|| parse(&format!("{text}Z")))
}

/// Name of the JSON type of a value, for messages.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a truth value",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
