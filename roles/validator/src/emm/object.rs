//! JSON objects of Activity Streams.

use abreast_webtypes::W3cDatetime;
use serde_json::{Map, Value};

pub(super) type Object = Map<String, Value>;

/// The last part of a type that may be an IRI, or have a prefix.
pub(super) fn local(name: &str) -> &str {
    name.rsplit([':', '#', '/']).next().unwrap_or(name)
}

/// The types of an object, as they are written.
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

/// One or several values.
pub(super) fn several(value: &Value) -> &[Value] {
    match value {
        Value::Array(all) => all,
        Value::Null => &[],
        one => std::slice::from_ref(one),
    }
}

/// A time as it is found: without a zone it is taken for UTC.
pub(super) fn time(text: &str) -> Option<W3cDatetime> {
    let parse = |text: &str| W3cDatetime::parse(text.as_bytes()).ok();
    let text = text.trim();
    parse(text).or_else(|| parse(&format!("{text}Z")))
}

/// What a value is, in words.
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
