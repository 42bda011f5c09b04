//! One document: its kind, its profile and its facts.

use super::context::Contexts;
use super::{activity, collection, patch, streams};
use crate::emm::doc::{Doc, Kind};
use crate::emm::item::Item;
use crate::emm::judge::Judge;
use crate::emm::object::{id, local, text_of, types};
use crate::report::{Findings, rules as r};
use abreast_emm::{Profile, ReadError, not_json};
use abreast_webtypes::{Timestamp, memory_of_json};
use serde_json::Value;

/// Whether a document is JSON or RDF Patch, by its first bytes.
pub(crate) fn is_document(begin: &[u8]) -> bool {
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin).trim_ascii_start();
    matches!(begin.first(), Some(b'{' | b'[' | b'"')) || is_rdf_patch(begin)
}

/// Whether a document is RDF Patch, by its first row. Comments and empty lines may precede the row.
fn is_rdf_patch(begin: &[u8]) -> bool {
    let mut begin = begin;
    let mut is_comment = false;
    while let Some(comment) = begin.strip_prefix(b"#") {
        is_comment = true;
        let end = comment.iter().position(|byte| *byte == b'\n').unwrap_or(comment.len());
        begin = comment[end..].trim_ascii_start();
    }
    // No other document that is checked consists only of comments of this form.
    is_comment && begin.is_empty() || ROWS.iter().any(|row| begin.starts_with(row))
}

/// First characters of rows in RDF Patch.
const ROWS: [&[u8]; 7] = [b"H ", b"TX ", b"TX.", b"TB ", b"PA ", b"A <", b"D <"];

/// Most bytes of memory for the values of a document. With the text and the program, at most 128
/// MiB are used.
const MEMORY_MAX: u64 = 96 << 20;

/// Reads and checks a single document. For a patch, `item` is the activity that links to the patch.
/// `None` if the document cannot be read.
pub(super) fn read(
    bytes: &[u8],
    url: &str,
    now: Option<Timestamp>,
    item: Option<&Item>,
    found: &mut Findings,
) -> Option<Doc> {
    let contexts = Contexts::default();
    let mut judge = Judge { profile: Profile::Emm01, contexts, url, now, found };
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if is_rdf_patch(text.trim_ascii_start()) {
        let patch = patch::check(&mut judge, text, item, "");
        return Some(Doc { patch, ..Doc::new(Kind::RdfPatch, Profile::Emm01, bytes) });
    }
    let memory = memory_of_json(text);
    if memory > MEMORY_MAX {
        judge.found.add(&r::LIMIT, (0, 0), || {
            format!(
                "the document was not read: it would take about {} MiB of memory, more than {}",
                memory >> 20,
                MEMORY_MAX >> 20
            )
        });
        return None;
    }
    let value: Value = match serde_json::from_slice(text) {
        Ok(value) => value,
        Err(error) => {
            let place = (error.line() as u64, error.column() as u64);
            let message = if let Some(what) = not_json(bytes) {
                format!("it is {what}, and not JSON")
            } else if std::str::from_utf8(text).is_err() {
                "the text is not UTF-8".to_owned()
            } else {
                let text = error.to_string();
                text.split(" at line ").next().unwrap_or_default().chars().take(200).collect()
            };
            judge.found.add(&r::AS_JSON, place, || message);
            return None;
        }
    };
    if text.len() < bytes.len() {
        // Most JSON parsers refuse a byte order mark.
        judge.add(&r::AS_JSON, "", || "it begins with a byte order mark, which JSON has not");
    }
    let Value::Object(map) = value else {
        let message = ReadError::of_other_json(text).map(|error| error.to_string());
        judge.add(&r::AS_OBJECT, "", || message.unwrap_or_default());
        return None;
    };
    judge.contexts = Contexts::read(map.get("@context"));
    judge.profile = judge.contexts.profile();
    let types = types(&map);
    let kind = types.iter().find_map(|name| kind(local(name))).unwrap_or(Kind::Other);
    streams::object(&mut judge, &map, "");
    for (rule, message) in judge.contexts.faults(judge.profile, text) {
        judge.add(rule, "/@context", || message);
    }
    let mut doc = Doc::new(kind, judge.profile, bytes);
    let one = |name: &str| map.get(name).and_then(reference).map(|text| judge.absolute(text));
    doc.id = id(&map).map(|text| judge.absolute(text));
    [doc.first, doc.last, doc.next, doc.prev, doc.part_of] =
        ["first", "last", "next", "prev", "partOf"].map(one);
    text_of(&map, "summary").unwrap_or_default().clone_into(&mut doc.summary);
    doc.total = map.get("totalItems").and_then(Value::as_u64);
    match kind {
        Kind::EntryPoint => collection::entry_point(&mut judge, &map, &mut doc),
        Kind::Page => collection::page(&mut judge, &map, &mut doc),
        Kind::Activity => doc.items.push(activity::check(&mut judge, &map, "", None)),
        Kind::Patch => doc.patch = patch::document(&mut judge, &map, item),
        Kind::RdfPatch | Kind::Other => {
            judge.add(&r::CF_KIND, "", || ReadError::of_types(&types).to_string());
        }
    }
    Some(doc)
}

fn kind(name: &str) -> Option<Kind> {
    Some(match name {
        "OrderedCollection" | "Collection" => Kind::EntryPoint,
        "OrderedCollectionPage" | "CollectionPage" => Kind::Page,
        "rdf_patch" => Kind::Patch,
        _ if crate::emm::item::is_activity(name) => Kind::Activity,
        _ => return None,
    })
}

/// URL of a reference, which is a string, an object or an array of these, of which the first is
/// used.
pub(super) fn reference(value: &Value) -> Option<&str> {
    match value {
        Value::String(text) => Some(text),
        Value::Object(map) => id(map).or_else(|| text_of(map, "href")),
        Value::Array(all) => all.first().filter(|one| !one.is_array()).and_then(reference),
        _ => None,
    }
}
