//! Reading Entry Points and Change Sets of all three specifications, with common deviations.
//!
//! Types, references and links are read as strings, objects or arrays of these; unknown members are
//! ignored, and contexts are never fetched.

use crate::collection::Whole;
use crate::flexible::{Items, Term, Url};
use crate::item::{Item, Link, local};
use crate::reading::{ITEMS_MAX, Reading};
use abreast_webtypes::{excerpt, visible};
use serde::de::DeserializeSeed as _;
use thiserror::Error;

/// The kind of a document that was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentKind {
    /// An `OrderedCollection` with links to its pages.
    #[default]
    EntryPoint,
    /// An `OrderedCollectionPage`, or a collection that contains its activities.
    Page,
}

/// An Entry Point or a Change Set [emm-1.0 §3.1, §3.2]. All URLs are absolute.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Whether the document is an Entry Point or a page.
    pub kind: DocumentKind,
    /// URL of the document, as written in it.
    pub id: Option<String>,
    /// Whether the document has the context of IIIF Change Discovery.
    pub is_iiif: bool,
    /// URL of the first page.
    pub first: Option<String>,
    /// URL of the last page.
    pub last: Option<String>,
    /// URL of the next page.
    pub next: Option<String>,
    /// URL of the previous page.
    pub prev: Option<String>,
    /// URL of a page's Entry Point.
    pub part_of: Option<String>,
    /// Links to downloads of the whole set.
    pub downloads: Vec<Link>,
    /// The activities, in the order of the document.
    pub items: Vec<Item>,
    /// Members of `orderedItems` that are not activities: they have neither a type of activities nor
    /// an object.
    pub unreadable: u64,
    /// The first characters of the first unknown type of an activity; empty for an activity without
    /// type.
    pub unknown_type: Option<String>,
    /// URLs in activities and links that are longer than 8 KiB; they are left out.
    pub overlong: u64,
    /// The first type of an activity in a wrong letter case, as written.
    pub other_letters: Option<String>,
    /// The first context, if all contexts are unknown.
    pub unknown_context: Option<String>,
}

/// The reason why a document cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The text is not JSON, or a member has an unknown form.
    #[error("it is not a document of Activity Streams: {0}")]
    Json(String),
    /// The document has another format than JSON.
    #[error("it is {0}, and not JSON")]
    NotJson(&'static str),
    /// The document is JSON, but not a collection of activities.
    #[error("it is {0}, and neither an OrderedCollection nor an OrderedCollectionPage")]
    Type(String),
    /// A relevant part of the document would be left out.
    #[error("{0}")]
    Shape(String),
    /// The document exceeds a limit of this crate.
    #[error("{0}")]
    Limit(String),
}

impl ReadError {
    /// Error for JSON that is not an object; `None` if the first character is `{`.
    pub fn of_other_json(text: &[u8]) -> Option<Self> {
        let kind = match without_mark(text).trim_ascii_start().first()? {
            b'[' => "a JSON array",
            b'"' => "a JSON string",
            b'-' | b'0'..=b'9' => "a JSON number",
            b't' | b'f' => "a JSON truth value",
            b'n' => "JSON null",
            _ => return None,
        };
        Some(Self::Type(kind.to_owned()))
    }

    /// Error for an object whose types are neither a collection nor a page.
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::ReadError;
    ///
    /// // A IIIF manifest at the address of a feed.
    /// let error = ReadError::of_types(&["sc:Manifest"]);
    /// assert_eq!(
    ///     error.to_string(),
    ///     "it is of the type sc:Manifest, and neither an OrderedCollection nor an OrderedCollectionPage",
    /// );
    /// ```
    pub fn of_types<T: AsRef<str>>(types: &[T]) -> Self {
        let types: Vec<&str> = types.iter().map(AsRef::as_ref).collect();
        Self::Type(match types[..] {
            [] => "JSON without `type`".to_owned(),
            _ => format!("of the type {}", excerpt(&types.join(", "))),
        })
    }

    fn of_json(bytes: &[u8], error: &serde_json::Error) -> Self {
        if let Some(what) = not_json(bytes) {
            return Self::NotJson(what);
        }
        if let Some(other) = Self::of_other_json(bytes).filter(|_| error.is_data()) {
            return other;
        }
        // The message about a value of a wrong type contains the value.
        let shown = error.to_string();
        let shown: String = { shown.chars() }.take(SHOWN_MAX).collect();
        let shown = visible(shown.split(" at line ").next().unwrap_or_default());
        Self::Json(match error.line() {
            0 => shown.into_owned(),
            line => format!("line {line}, column {}: {shown}", error.column()),
        })
    }
}

/// Whether the start of a document has the marks of a collection of activities: its type or the member
/// `orderedItems`. Resources in the vocabulary of Activity Streams have neither.
///
/// # Examples
/// ```
/// use abreast_emm::has_mark;
///
/// let page = br#"{"@context": "https://www.w3.org/ns/activitystreams", "type": "OrderedCollectionPage"#;
/// let person = br#"{"@context": "https://www.w3.org/ns/activitystreams", "type": "Person"#;
/// assert!(has_mark(page));
/// assert!(!has_mark(person));
/// ```
pub fn has_mark(begin: &[u8]) -> bool {
    const MARKS: [&[u8]; 2] = [b"OrderedCollection", b"orderedItems"];
    let text = without_mark(begin).trim_ascii_start();
    text.starts_with(b"{")
        && MARKS.iter().any(|mark| text.windows(mark.len()).any(|window| window == *mark))
}

/// The kind of a document whose first bytes are not JSON; `None` for JSON, and for bytes of an
/// unknown kind.
///
/// # Examples
/// ```
/// use abreast_emm::not_json;
///
/// // Servers that require a login often send a page with the status 200.
/// assert_eq!(not_json(b"<!DOCTYPE html><title>Catalogue: please log in</title>"), Some("HTML"));
/// assert_eq!(not_json(br#"{"type": "OrderedCollection"}"#), None);
/// ```
pub fn not_json(bytes: &[u8]) -> Option<&'static str> {
    const LITERALS: [&[u8]; 3] = [b"true", b"false", b"null"];
    if [[0xff, 0xfe], [0xfe, 0xff]].iter().any(|mark| bytes.starts_with(mark)) {
        return Some("UTF-16");
    }
    let text = without_mark(bytes).trim_ascii_start();
    match text.first() {
        None => Some("empty"),
        Some(b'<') => {
            let begin = text[..text.len().min(1_024)].to_ascii_lowercase();
            let is_html = [&b"<html"[..], b"<!doctype html", b"<head", b"<body"]
                .iter()
                .any(|mark| begin.windows(mark.len()).any(|window| window == *mark));
            Some(if is_html { "HTML" } else { "XML or HTML" })
        }
        Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9') => None,
        Some(first) if first.is_ascii_graphic() => {
            (!LITERALS.iter().any(|literal| text.starts_with(literal))).then_some("plain text")
        }
        Some(_) => None,
    }
}

/// Removes the byte order mark that some programs write.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Most characters of the document in a message.
const SHOWN_MAX: usize = 100;

impl Document {
    /// Most activities in a document.
    pub const ITEMS_MAX: usize = ITEMS_MAX;

    /// Reads a document; `url` is the address at which it was found, to which other URLs are
    /// relative. A byte order mark is skipped.
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::{Action, Document, DocumentKind};
    ///
    /// let page = br#"{
    ///     "@context": "https://emm-spec.org/1.0/context.json",
    ///     "type": "OrderedCollectionPage", "prev": {"type": "OrderedCollectionPage", "id": "41"},
    ///     "orderedItems": [{
    ///         "type": "Delete", "published": "2026-03-01T09:00:00Z",
    ///         "object": {"id": "https://id.example.org/subjects/phlogiston"}
    ///     }]
    /// }"#;
    /// let document = Document::from_slice(page, "https://id.example.org/feed/pages/42")?;
    /// assert_eq!(document.kind, DocumentKind::Page);
    /// assert_eq!(document.prev.as_deref(), Some("https://id.example.org/feed/pages/41"));
    /// let item = &document.items[0];
    /// assert_eq!((item.action, item.objects[0].id.as_str()), (
    ///     Action::Delete,
    ///     "https://id.example.org/subjects/phlogiston",
    /// ));
    /// # Ok::<(), abreast_emm::ReadError>(())
    /// ```
    ///
    /// # Errors
    /// It is not JSON, neither an Entry Point nor a Change Set, has activities or pages that would
    /// be left out, or has more than [`ITEMS_MAX`](Self::ITEMS_MAX) activities, or needs more than
    /// 256 MiB of memory.
    pub fn from_slice(bytes: &[u8], url: &str) -> Result<Self, ReadError> {
        Self::read(bytes, &Reading::new(url))
    }

    fn read(bytes: &[u8], reading: &Reading<'_>) -> Result<Self, ReadError> {
        let text = without_mark(bytes);
        let mut deserializer = serde_json::Deserializer::from_slice(text);
        let raw = Whole(reading).deserialize(&mut deserializer);
        let raw = raw.and_then(|raw| deserializer.end().map(|()| raw)).map_err(|error| {
            let limit = reading.limit.take().map(ReadError::Limit);
            let shape = reading.shape.take().map(ReadError::Shape);
            limit.or(shape).unwrap_or_else(|| ReadError::of_json(bytes, &error))
        })?;
        let is = |kind: &str| raw.kinds.iter().any(|Term(found)| local(found) == kind);
        let is_page = is("OrderedCollectionPage") || is("CollectionPage");
        if !is_page && !is("OrderedCollection") && !is("Collection") {
            let kinds: Vec<&str> = raw.kinds.iter().map(|Term(kind)| kind.as_str()).collect();
            return Err(ReadError::of_types(&kinds));
        }
        let one = |url: Option<Url>| url.map(|Url(url)| url);
        if is_page && !raw.has_items {
            return Err(ReadError::Shape("it is a page without `orderedItems`".to_owned()));
        }
        let has_pages = raw.first.url.is_some() || raw.last.url.is_some();
        // An empty collection does not need pages.
        let has_items = raw.items.is_some() || raw.is_empty && !has_pages;
        let Items { items, unreadable } = raw.items.unwrap_or_default();
        if items.is_empty() && unreadable > 0 {
            let message = "none of its `orderedItems` is an activity".to_owned();
            return Err(ReadError::Shape(message));
        }
        Ok(Self {
            kind: if is_page || (has_items && raw.first.url.is_none()) {
                DocumentKind::Page
            } else {
                DocumentKind::EntryPoint
            },
            id: one(raw.id),
            is_iiif: raw.contexts.is_iiif,
            first: one(raw.first.url),
            last: one(raw.last.url),
            next: one(raw.next.url),
            prev: one(raw.prev.url),
            part_of: one(raw.part_of.url),
            downloads: raw.links,
            items,
            unreadable,
            unknown_type: reading.unknown.take(),
            overlong: reading.overlong.get(),
            other_letters: reading.other_letters.take(),
            unknown_context: raw.contexts.first.filter(|_| !raw.contexts.is_known),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Action;
    use abreast_webtypes::MAX_URI_LENGTH;

    fn item(json: &str) -> Item {
        let page = format!(r#"{{"type": "OrderedCollectionPage", "orderedItems": [{json}]}}"#);
        let page = Document::from_slice(page.as_bytes(), "https://h.example/feed/1").unwrap();
        page.items.into_iter().next().unwrap()
    }

    #[test]
    fn times_are_read_as_they_are_found() {
        for (text, expected, is_day) in [
            ("2026-04-09T10:00:00Z", "2026-04-09T10:00:00Z", false),
            ("2026-04-09T10:00:00", "2026-04-09T10:00:00Z", false),
            ("2026-04-09T10:00:00.5", "2026-04-09T10:00:00.500000Z", false),
            ("2026-04-09T12:00:00+0200", "2026-04-09T10:00:00Z", false),
            (" 2026-04-09 ", "2026-04-09T00:00:00Z", true),
            ("2026-04-09Z", "2026-04-09T00:00:00Z", true),
            ("2026-04-09+02:00", "2026-04-09T00:00:00Z", true),
        ] {
            let item = item(&format!(r#"{{"type": "Update", "published": "{text}"}}"#));
            assert_eq!(item.time.map(|time| time.to_string()).as_deref(), Some(expected), "{text}");
            assert_eq!(item.is_day, is_day, "{text}");
        }
        for text in ["", "yesterday", "é", "2026-99-99"] {
            assert_eq!(
                item(&format!(r#"{{"type": "Add", "published": "{text}"}}"#)).time,
                None,
                "{text}"
            );
        }
        let both =
            r#"{"type": "Add", "published": "soon", "endTime": "2026-04-09", "created": "2025"}"#;
        assert!(item(both).is_day);
    }

    #[test]
    fn members_have_any_of_their_forms() {
        let item = item(
            r#"{"@type": ["as:Deprecate", "x"], "@id": "a/1", "object": [{"@id": "/id/1", "type": ["x:A", "B"],
               "url": [{"id": "u", "href": "/id/1.nt", "mediaType": ["application/n-triples"]}, "page.html", 5]}, "/id/2"],
               "target": ["t", {"id": "https://o.example/t"}], "instrument": {"type": "rdf_patch", "id": "a/1/i", "content": "TX ."},
               "unknown": {"deep": [1, {"x": null}]}}"#,
        );
        assert_eq!(item.action, Action::Deprecate);
        assert_eq!(item.id.as_deref(), Some("https://h.example/feed/a/1"));
        let ids: Vec<_> = item.objects.iter().map(|object| object.id.as_str()).collect();
        assert_eq!(ids, ["https://h.example/id/1", "https://h.example/id/2"]);
        let links = &item.objects[0].links;
        assert_eq!(links[0].href, "https://h.example/id/1.nt");
        assert_eq!(links[0].media_type.as_deref(), Some("application/n-triples"));
        assert_eq!((links[1].href.as_str(), links.len()), ("https://h.example/feed/page.html", 2));
        assert_eq!(item.target(), ["https://h.example/feed/t", "https://o.example/t"]);
        assert_eq!(item.patch(), Some((Some("https://h.example/feed/a/1/i"), Some("TX ."))));
    }

    #[test]
    fn documents_of_other_kinds_are_refused() {
        for text in
            ["", "[]", "5", r#"{"type": "Note"}"#, r#"{"type": 5}"#, r#"{"orderedItems": []}"#]
        {
            assert!(Document::from_slice(text.as_bytes(), "https://h.example/").is_err(), "{text}");
        }
        let page =
            r#"{"type": ["OrderedCollectionPage"], "orderedItems": [{}, 5, {"type": "Add"}]}"#;
        let page = Document::from_slice(page.as_bytes(), "https://h.example/").unwrap();
        assert_eq!((page.items.len(), page.unreadable), (1, 2));
    }

    fn shape(document: &str) -> String {
        match Document::from_slice(document.as_bytes(), "https://h.example/") {
            Err(ReadError::Shape(why)) => why,
            other => panic!("{document}: {other:?}"),
        }
    }

    #[test]
    fn collections_that_would_seem_shorter_are_refused() {
        let page = |members: &str| format!(r#"{{"type": "OrderedCollectionPage"{members}}}"#);
        assert_eq!(shape(&page("")), "it is a page without `orderedItems`");
        for name in [
            "ordereditems",
            "Items",
            "ordered_items",
            "as:orderedItems",
            "https://www.w3.org/ns/activitystreams#items",
            "Next",
            "PREV",
            "as:first",
            "as:url",
        ] {
            let why =
                format!("it has a member `{name}`, which is not written so in Activity Streams");
            assert_eq!(shape(&page(&format!(r#", "orderedItems": [], "{name}": []"#))), why);
        }
        for value in ["5", "{}", r#"{"was": "a"}"#, "[{}]", "\"a\\u0007\""] {
            let text = page(&format!(r#", "orderedItems": [], "next": {value}"#));
            assert_eq!(shape(&text), "its member Next has no URL");
        }
        for value in ["null", "false", "\"\"", "\" \"", "[]", r#"[], "partOf": {}"#] {
            let text = page(&format!(r#", "orderedItems": null, "next": {value}"#));
            let read = Document::from_slice(text.as_bytes(), "https://h.example/").unwrap();
            assert_eq!((read.next, read.items.len()), (None, 0));
        }
        let add = r#"{"type": "Add", "object": "a"}"#;
        for (items, why) in [
            (r#""https://x""#.to_owned(), "the address of an activity, https://x"),
            (format!("[{add}, \"https://x\"]"), "the address of an activity, https://x"),
            (
                format!(r#"[{add}, {{"id": "x"}}]"#),
                "the address of an activity, https://h.example/x",
            ),
            (format!(r#"{{"0": {add}}}"#), "neither an array nor an activity"),
            (format!(r#"{{"@list": [{add}]}}"#), "neither an array nor an activity"),
            (format!(r#"[{{"type": "Create", "object": {add}}}]"#), "inside another activity"),
            (
                format!(r#"[{{"type": "Create", "object": "a", "items": [{add}]}}]"#),
                "inside an activity",
            ),
            (r#"[{"as:type": "Add", "as:object": "a"}]"#.to_owned(), "a member `as:type`"),
        ] {
            let found = shape(&page(&format!(r#", "orderedItems": {items}"#)));
            assert!(found.contains(why), "{found}");
        }
        let one = page(&format!(r#", "orderedItems": {add}"#));
        assert_eq!(
            Document::from_slice(one.as_bytes(), "https://h.example/").unwrap().items.len(),
            1
        );
    }

    #[test]
    fn other_letters_and_contexts_are_read_and_noted() {
        let read = page(r#"{"type": "as:DELETE", "object": "a"}"#).unwrap();
        assert_eq!(
            (read.items[0].action, read.other_letters.as_deref()),
            (Action::Delete, Some("as:DELETE"))
        );
        for (context, unknown) in [
            (r#""https://www.w3.org/ns/activitystreams#""#, None),
            (r#"["https://schema.org/", "https://emm-spec.org/1.0/context.json"]"#, None),
            (r#"{"as": "https://www.w3.org/ns/activitystreams#"}"#, None),
            (r#"["https://schema.org/", {"a": "b"}]"#, Some("https://schema.org/")),
        ] {
            let text = format!(r#"{{"@context": {context}, "type": "OrderedCollection"}}"#);
            let read = Document::from_slice(text.as_bytes(), "https://h.example/").unwrap();
            assert_eq!(read.unknown_context.as_deref(), unknown, "{context}");
        }
    }

    fn page(items: &str) -> Result<Document, ReadError> {
        let page = format!(r#"{{"type": "OrderedCollectionPage", "orderedItems": [{items}]}}"#);
        Document::from_slice(page.as_bytes(), "https://h.example/")
    }

    #[test]
    fn members_that_are_no_activities_are_counted_and_not_kept() {
        for other in [
            "{}",
            r#"{"a": 1}"#,
            "5",
            "null",
            "[]",
            "[{}]",
            r#"{"type": "Note"}"#,
            r#"{"type": "Note", "id": "a"}"#,
        ] {
            let read = page(&[other, other, r#"{"type": "Refresh"}"#, other].join(",")).unwrap();
            assert_eq!((read.items.len(), read.unreadable), (1, 3), "{other}");
            let error = page(&[other; 3].join(",")).unwrap_err();
            assert_eq!(error.to_string(), "none of its `orderedItems` is an activity");
        }
        let types = r#"{"type": ["x:Y", "Add"]}, {"type": ["creation", "b"], "object": "a"}, {"object": "a"}"#;
        let page_of_types = page(types).unwrap();
        assert_eq!((page_of_types.items.len(), page_of_types.unreadable), (3, 0));
        assert_eq!(page_of_types.unknown_type.as_deref(), Some("creation"));
        let page_of_types = page(r#"{"object": "a"}, {"type": "created", "object": "a"}"#).unwrap();
        assert_eq!(page_of_types.unknown_type.as_deref(), Some(""));
        let page = page(r#"{"type": "Update", "object": "a"}, {"type": "Refresh"}"#).unwrap();
        assert_eq!((page.items.len(), page.unreadable, page.unknown_type), (2, 0, None));
        // A million of them are kept at most.
        assert!(size_of::<Item>() <= 96, "{}", size_of::<Item>());
    }

    #[test]
    fn what_is_kept_of_a_document_is_limited() {
        let all = |count| page(&vec![r#"{"type":"Refresh"}"#; count].join(","));
        assert_eq!(all(Document::ITEMS_MAX).unwrap().items.len(), Document::ITEMS_MAX);
        let error = all(Document::ITEMS_MAX + 1).unwrap_err();
        assert_eq!(error.to_string(), "it has more than 1000000 activities");
        // Each of these is kept with the length of the base.
        let base = format!("https://h.example/{}/", "a".repeat(8_000));
        let many = vec![r#""a""#; 100].join(",");
        for items in [
            format!(r#"{{"type":"Move","target":[{many}]}}"#),
            format!(r#"{{"type":"Add","object":[{many}]}}"#),
            format!(r#"{{"object":{{"id":"a","url":[{many}]}}}}"#),
            format!(r#"{{"object":{{"type":[{many}]}}}}"#),
            vec!["{\"type\":\"Refresh\"}"; 100].join(","),
        ] {
            let page = format!(r#"{{"type": "Collection", "items": [{items}]}}"#);
            let read = |room| Document::read(page.as_bytes(), &Reading::with_room(&base, room));
            let error = read(2_400).unwrap_err();
            assert!(matches!(error, ReadError::Limit(_)), "{error}");
            assert!(read(1_000_000).is_ok(), "{items}");
        }
    }

    #[test]
    fn overlong_urls_are_left_out() {
        let long = format!("https://h.example/{}", "a".repeat(MAX_URI_LENGTH));
        let page = page(&format!(
            r#"{{"type": "Add", "object": "{long}"}}, {{"type": "Add", "id": "{long}",
               "object": {{"id": "b", "type": ["{long}", "T"], "url": ["{long}", "c"]}}}}"#
        ));
        let page = page.unwrap();
        assert_eq!((page.items.len(), page.overlong), (2, 3));
        assert!(page.items[0].objects.is_empty() && page.items[1].id.is_none());
        let object = &page.items[1].objects[0];
        assert_eq!((&object.types[..], object.links.len()), (&["T".to_owned()][..], 1));
        // Pages are not left out.
        let page = format!(r#"{{"type": "OrderedCollectionPage", "next": {{"id": "{long}"}}}}"#);
        let error = Document::from_slice(page.as_bytes(), "https://h.example/").unwrap_err();
        assert!(error.to_string().contains("a URL of more than 8192 bytes: Next"), "{error}");
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_other_texts_are_named() {
        let page = "\u{feff}{\"type\": \"OrderedCollectionPage\", \"orderedItems\": null}";
        assert!(Document::from_slice(page.as_bytes(), "https://h.example/").is_ok());
        let long = format!("\"{}\"", "a".repeat(1_000_000));
        for (text, expected) in [
            ("", "it is empty, and not JSON"),
            ("\u{feff}", "it is empty, and not JSON"),
            (" <!DOCTYPE html><title>x</title>", "it is HTML, and not JSON"),
            ("<html></html>", "it is HTML, and not JSON"),
            ("<?xml version=\"1.0\"?><urlset/>", "it is XML or HTML, and not JSON"),
            ("not found", "it is plain text, and not JSON"),
            ("nul", "it is plain text, and not JSON"),
            (
                "{\n5",
                "it is not a document of Activity Streams: line 2, column 1: key must be a string",
            ),
            (&long, "it is a JSON string, and neither an OrderedCollection nor"),
            ("[]", "it is a JSON array, and neither"),
            (" -1", "it is a JSON number, and neither"),
            ("false", "it is a JSON truth value, and neither"),
            ("null", "it is JSON null, and neither"),
            ("{}", "it is JSON without `type`, and neither"),
            ("{\"type\": [\"Note\", \"Page\"]}", "it is of the type Note, Page, and neither"),
        ] {
            let error = Document::from_slice(text.as_bytes(), "https://h.example/").unwrap_err();
            assert!(error.to_string().starts_with(expected), "{error}");
            assert!(error.to_string().len() < 300, "{error}");
        }
    }
}
