//! Entry Points and Change Sets, read: of any of the three specifications, and as they are found.
//!
//! Types, references and links are read as strings, objects or arrays of these; unknown members are
//! ignored, and contexts are never fetched.

use crate::flexible::{Links, Objects, Refs, Texts, Time};
use abreast_webtypes::{Precision, Timestamp, resolve};
use serde::Deserialize;
use thiserror::Error;

/// The kind of a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DocumentKind {
    /// An `OrderedCollection` that names its pages.
    #[default]
    EntryPoint,
    /// An `OrderedCollectionPage`, or a collection with its activities inside.
    Page,
}

/// An Entry Point or a Change Set. All URLs are absolute.
#[derive(Clone, Debug, Default)]
pub struct Document {
    /// Its kind.
    pub kind: DocumentKind,
    /// Its URL, as it states.
    pub id: Option<String>,
    /// Whether it has the context of IIIF Change Discovery.
    pub is_iiif: bool,
    /// The first page.
    pub first: Option<String>,
    /// The last page.
    pub last: Option<String>,
    /// The page after this one.
    pub next: Option<String>,
    /// The page before this one.
    pub prev: Option<String>,
    /// The Entry Point of a page.
    pub part_of: Option<String>,
    /// Links to full downloads.
    pub downloads: Vec<Link>,
    /// The activities, in the order of the document.
    pub items: Vec<Item>,
    /// Members of `orderedItems` that are not activities.
    pub unreadable: u64,
}

/// What an activity is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The entity is new or different: Create, Add, Update.
    Put,
    /// It is still there, and no longer to be used.
    Deprecate,
    /// It left the feed: Remove.
    Remove,
    /// It is gone.
    Delete,
    /// It has another IRI now, that of `target`.
    Move,
    /// All entities are listed again from here on.
    Refresh,
    /// Any other type.
    Other,
}

/// One activity.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its URL, as it states.
    pub id: Option<String>,
    /// What happened.
    pub action: Action,
    /// When: `published`, else `endTime`, `updated`, `created`, `startTime`, or the time of the object.
    pub time: Option<Timestamp>,
    /// Whether the time is a day, and nothing more precise.
    pub is_day: bool,
    /// The entities; one, almost always.
    pub objects: Vec<Object>,
    /// The URLs of what it is added to, or moved to.
    pub target: Vec<String>,
    /// The URLs of what it is removed from.
    pub origin: Vec<String>,
    /// Its Entity Patch: the URL, and the text if it is inline.
    pub patch: Option<(Option<String>, Option<String>)>,
}

/// An entity.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// Its IRI.
    pub id: String,
    /// Its types, as they are written.
    pub types: Vec<String>,
    /// Its representations.
    pub links: Vec<Link>,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its URL.
    pub href: String,
    /// Its media type.
    pub media_type: Option<String>,
    /// Up to when changes are in it.
    pub updated: Option<Timestamp>,
}

/// A document cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// It is not JSON, or a member has no form that is known.
    #[error("it is not a document of Activity Streams: {0}")]
    Json(#[from] serde_json::Error),
    /// It is JSON of something else.
    #[error("it is {0}, and neither an OrderedCollection nor an OrderedCollectionPage")]
    Type(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    #[serde(rename = "@context", default)]
    context: Texts,
    #[serde(rename = "type", alias = "@type", default)]
    kind: Texts,
    #[serde(alias = "@id", default)]
    id: Refs,
    #[serde(default)]
    first: Refs,
    #[serde(default)]
    last: Refs,
    #[serde(default)]
    next: Refs,
    #[serde(default)]
    prev: Refs,
    #[serde(default)]
    part_of: Refs,
    #[serde(default)]
    url: Links,
    #[serde(alias = "items", default)]
    ordered_items: Option<Items>,
}

/// Activities; those that are none are counted.
#[derive(Default)]
pub(crate) struct Items {
    pub(crate) items: Vec<RawItem>,
    pub(crate) unreadable: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawItem {
    #[serde(rename = "type", alias = "@type", default)]
    kind: Texts,
    #[serde(alias = "@id", default)]
    id: Refs,
    #[serde(default)]
    published: Time,
    #[serde(default)]
    end_time: Time,
    #[serde(default)]
    updated: Time,
    #[serde(default)]
    created: Time,
    #[serde(default)]
    start_time: Time,
    #[serde(default)]
    object: Objects,
    #[serde(default)]
    target: Refs,
    #[serde(default)]
    origin: Refs,
    #[serde(default)]
    instrument: Objects,
}

const IIIF: &str = "iiif.io/api/discovery/";

/// Characters of a type that a message shows.
const SHOWN_MAX: usize = 100;

impl Document {
    /// Reads a document; `url` is that at which it was found, to which others are relative.
    ///
    /// # Errors
    /// It is not JSON, or neither an Entry Point nor a Change Set.
    pub fn from_slice(bytes: &[u8], url: &str) -> Result<Self, ReadError> {
        let raw: Raw = serde_json::from_slice(bytes)?;
        let is = |kind: &str| {
            raw.kind.0.iter().any(|found| found.rsplit([':', '#', '/']).next() == Some(kind))
        };
        let is_page = is("OrderedCollectionPage") || is("CollectionPage");
        if !is_page && !is("OrderedCollection") && !is("Collection") {
            let found = match &raw.kind.0[..] {
                [] => "JSON without `type`".to_owned(),
                kinds => {
                    let shown: String = kinds.join(", ").chars().take(SHOWN_MAX).collect();
                    format!("of the type {shown}")
                }
            };
            return Err(ReadError::Type(found));
        }
        let absolute = |text: &String| resolve(url, text).unwrap_or_else(|_| text.clone());
        let one = |refs: &Refs| refs.0.first().map(absolute);
        let has_items = raw.ordered_items.is_some();
        let items = raw.ordered_items.unwrap_or_default();
        Ok(Self {
            kind: if is_page || (has_items && raw.first.0.is_empty()) {
                DocumentKind::Page
            } else {
                DocumentKind::EntryPoint
            },
            id: one(&raw.id),
            is_iiif: raw.context.0.iter().any(|context| context.contains(IIIF)),
            first: one(&raw.first),
            last: one(&raw.last),
            next: one(&raw.next),
            prev: one(&raw.prev),
            part_of: one(&raw.part_of),
            downloads: links(&raw.url, url),
            unreadable: items.unreadable,
            items: items.items.into_iter().map(|item| item.read(url)).collect(),
        })
    }
}

impl RawItem {
    fn read(self, url: &str) -> Item {
        let absolute = |text: &String| resolve(url, text).unwrap_or_else(|_| text.clone());
        let objects: Vec<Object> = self
            .object
            .0
            .iter()
            .filter_map(|object| {
                Some(Object {
                    id: absolute(object.id.0.first()?),
                    types: object.kind.0.clone(),
                    links: links(&object.url, url),
                })
            })
            .collect();
        let of_object = self.object.0.first().map_or(Time(None), |object| object.updated);
        let time =
            [self.published, self.end_time, self.updated, self.created, self.start_time, of_object]
                .into_iter()
                .find_map(|time| time.0);
        let patch = self.instrument.0.into_iter().find(|it| {
            it.kind.0.iter().any(|kind| kind.ends_with("rdf_patch"))
                || it.media_type.0.iter().any(|kind| kind == "application/rdf-patch")
        });
        Item {
            id: self.id.0.first().map(absolute),
            action: action(&self.kind.0),
            time: time.map(|time| time.instant),
            is_day: time.is_some_and(|time| time.precision <= Precision::Day),
            objects,
            target: self.target.0.iter().map(absolute).collect(),
            origin: self.origin.0.iter().map(absolute).collect(),
            patch: patch.map(|patch| (patch.id.0.first().map(absolute), patch.content.first())),
        }
    }
}

fn links(links: &Links, url: &str) -> Vec<Link> {
    let absolute = |link: &Link| Link {
        href: resolve(url, &link.href).unwrap_or_else(|_| link.href.clone()),
        ..link.clone()
    };
    links.0.iter().map(absolute).collect()
}

/// The action of the first type that is known; types may be IRIs and have a prefix.
fn action(kinds: &[String]) -> Action {
    let known = |kind: &String| {
        Some(match kind.rsplit([':', '#', '/']).next()? {
            "Create" | "Add" | "Update" => Action::Put,
            "Deprecate" => Action::Deprecate,
            "Remove" => Action::Remove,
            "Delete" => Action::Delete,
            "Move" => Action::Move,
            "Refresh" => Action::Refresh,
            _ => return None,
        })
    };
    kinds.iter().find_map(known).unwrap_or(Action::Other)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(item(&format!(r#"{{"published": "{text}"}}"#)).time, None, "{text}");
        }
        let both = r#"{"published": "soon", "endTime": "2026-04-09", "created": "2025"}"#;
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
        assert_eq!(item.target, ["https://h.example/feed/t", "https://o.example/t"]);
        assert_eq!(
            item.patch,
            Some((Some("https://h.example/feed/a/1/i".into()), Some("TX .".into())))
        );
    }

    #[test]
    fn documents_of_other_kinds_are_refused() {
        for text in
            ["", "[]", "5", r#"{"type": "Note"}"#, r#"{"type": 5}"#, r#"{"orderedItems": []}"#]
        {
            assert!(Document::from_slice(text.as_bytes(), "https://h.example/").is_err(), "{text}");
        }
        let page = r#"{"type": ["OrderedCollectionPage"], "orderedItems": ["https://x", 5, {"type": "Add"}]}"#;
        let page = Document::from_slice(page.as_bytes(), "https://h.example/").unwrap();
        assert_eq!((page.items.len(), page.unreadable), (1, 2));
    }
}
