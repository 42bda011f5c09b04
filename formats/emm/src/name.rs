//! The known members of objects, and their misspellings.

use crate::reading::Reading;
use abreast_webtypes::excerpt;
use serde::de::{DeserializeSeed, Deserializer, Visitor};
use std::fmt;

/// The known members of objects. A member that belongs to another kind of object is treated as
/// unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    Context,
    AtId,
    Id,
    Type,
    First,
    Last,
    Next,
    Prev,
    PartOf,
    OrderedItems,
    Published,
    EndTime,
    Updated,
    Created,
    StartTime,
    Object,
    Target,
    Origin,
    Instrument,
    Url,
    Href,
    MediaType,
    Content,
    TotalItems,
    /// A known member with a prefix, or as an IRI.
    Prefixed,
    /// A member of a collection in a wrong letter case.
    Misspelt,
    Other,
}

impl Name {
    /// The namespace of Activity Streams, and its prefix.
    const PREFIXES: [&str; 3] =
        ["as:", "https://www.w3.org/ns/activitystreams#", "http://www.w3.org/ns/activitystreams#"];
    /// If one of these were ignored, a collection would seem to have fewer activities.
    const OF_COLLECTION: [&str; 8] = [
        "orderedItems",
        "ordered_items",
        "ordered-items",
        "items",
        "first",
        "last",
        "next",
        "prev",
    ];

    fn of(text: &str) -> Self {
        match text {
            "@context" => Self::Context,
            "@id" => Self::AtId,
            "id" => Self::Id,
            "type" | "@type" => Self::Type,
            "first" => Self::First,
            "last" => Self::Last,
            "next" => Self::Next,
            "prev" => Self::Prev,
            "partOf" => Self::PartOf,
            "orderedItems" | "items" => Self::OrderedItems,
            "published" => Self::Published,
            "endTime" => Self::EndTime,
            "updated" => Self::Updated,
            "created" => Self::Created,
            "startTime" => Self::StartTime,
            "object" => Self::Object,
            "target" => Self::Target,
            "origin" => Self::Origin,
            "instrument" => Self::Instrument,
            "url" => Self::Url,
            "href" => Self::Href,
            "mediaType" => Self::MediaType,
            "content" => Self::Content,
            "totalItems" => Self::TotalItems,
            _ => Self::Other,
        }
    }

    /// Classifies a member that is not known.
    fn of_unknown(text: &str) -> Self {
        let mut rests = Self::PREFIXES.iter().filter_map(|prefix| text.strip_prefix(prefix));
        if rests.any(|rest| Self::of(rest) != Self::Other) {
            Self::Prefixed
        } else if Self::OF_COLLECTION.iter().any(|name| name.eq_ignore_ascii_case(text)) {
            Self::Misspelt
        } else {
            Self::Other
        }
    }
}

/// Reads the key of a member.
pub(crate) struct NameOf<'r>(pub(crate) &'r Reading<'r>);

impl<'de> DeserializeSeed<'de> for NameOf<'_> {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for NameOf<'_> {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a member")
    }

    fn visit_str<E>(self, text: &str) -> Result<Name, E> {
        let name = match Name::of(text) {
            Name::Other => Name::of_unknown(text),
            name => return Ok(name),
        };
        if name != Name::Other {
            self.0.odd_name.set(Some(excerpt(text)));
        }
        Ok(name)
    }
}
