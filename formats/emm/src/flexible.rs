//! Members that are written as a string, an object or an array of these.

use crate::read::{Items, Link, RawItem};
use abreast_webtypes::W3cDatetime;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;

/// One or several of what can be made of a string or an object.
trait Part: Sized {
    fn of_text(text: &str) -> Option<Self>;

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error>;
}

/// Reads any JSON as a list; what has another form is left out.
struct Several<P>(PhantomData<P>);

impl<'de, P: Part> DeserializeSeed<'de> for Several<P> {
    type Value = Vec<P>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<P>, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, P: Part> Visitor<'de> for Several<P> {
    type Value = Vec<P>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an object or an array of these")
    }

    fn visit_str<E>(self, text: &str) -> Result<Vec<P>, E> {
        Ok(P::of_text(text).into_iter().collect())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<P>, A::Error> {
        Ok(P::of_map(map)?.into_iter().collect())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<P>, A::Error> {
        let mut all = Vec::new();
        while let Some(mut found) = seq.next_element_seed(Self(PhantomData))? {
            all.append(&mut found);
        }
        Ok(all)
    }

    fn visit_unit<E>(self) -> Result<Vec<P>, E> {
        Ok(Vec::new())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Vec<P>, E> {
        Ok(Vec::new())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Vec<P>, E> {
        Ok(Vec::new())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Vec<P>, E> {
        Ok(Vec::new())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Vec<P>, E> {
        Ok(Vec::new())
    }
}

macro_rules! list {
    ($name:ident, $part:ty) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Several::<$part>(PhantomData).deserialize(deserializer).map(|parts| {
                    #[allow(clippy::redundant_closure_call)]
                    Self(parts.into_iter().map(Into::into).collect())
                })
            }
        }
    };
}

/// Strings; objects are left out.
#[derive(Default)]
pub(crate) struct Texts(pub(crate) Vec<String>);

impl Texts {
    pub(crate) fn first(self) -> Option<String> {
        self.0.into_iter().next()
    }
}

struct Text(String);

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.0
    }
}

impl Part for Text {
    fn of_text(text: &str) -> Option<Self> {
        Some(Self(text.to_owned()))
    }

    fn of_map<'de, A: MapAccess<'de>>(mut map: A) -> Result<Option<Self>, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

list!(Texts, Text);

/// URLs: strings, or objects with `id`.
#[derive(Default)]
pub(crate) struct Refs(pub(crate) Vec<String>);

struct Ref(String);

impl From<Ref> for String {
    fn from(reference: Ref) -> Self {
        reference.0
    }
}

impl Part for Ref {
    /// An empty one would be that of the document itself, and no URL has control characters.
    fn of_text(text: &str) -> Option<Self> {
        let text = text.trim();
        let is_url = !text.is_empty() && !text.contains(char::is_control);
        is_url.then(|| Self(text.to_owned()))
    }

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        #[derive(Deserialize)]
        struct Raw {
            #[serde(default)]
            id: Texts,
            #[serde(rename = "@id", default)]
            at_id: Texts,
            #[serde(default)]
            href: Texts,
        }
        let raw = Raw::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        let texts = [raw.id, raw.at_id, raw.href].into_iter().filter_map(Texts::first);
        Ok({ texts }.find_map(|text| Self::of_text(&text)))
    }
}

list!(Refs, Ref);

/// Links: strings, or objects with `href`.
#[derive(Default)]
pub(crate) struct Links(pub(crate) Vec<Link>);

impl Part for Link {
    fn of_text(text: &str) -> Option<Self> {
        Some(Self { href: Ref::of_text(text)?.0, ..Self::default() })
    }

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Raw {
            #[serde(default)]
            href: Texts,
            #[serde(default)]
            id: Texts,
            #[serde(rename = "@id", default)]
            at_id: Texts,
            #[serde(default)]
            media_type: Texts,
            #[serde(default)]
            updated: Time,
        }
        let raw = Raw::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        let href = [raw.href, raw.id, raw.at_id].into_iter().find_map(Texts::first);
        Ok(href.map(|href| Self {
            href,
            media_type: raw.media_type.first(),
            updated: raw.updated.0.map(|time| time.instant),
        }))
    }
}

list!(Links, Link);

/// Entities: IRIs, or objects.
#[derive(Default)]
pub(crate) struct Objects(pub(crate) Vec<RawObject>);

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RawObject {
    #[serde(alias = "@id", default)]
    pub(crate) id: Refs,
    #[serde(rename = "type", alias = "@type", default)]
    pub(crate) kind: Texts,
    #[serde(default)]
    pub(crate) updated: Time,
    #[serde(default)]
    pub(crate) url: Links,
    #[serde(default)]
    pub(crate) media_type: Texts,
    #[serde(default)]
    pub(crate) content: Texts,
}

impl Part for RawObject {
    fn of_text(text: &str) -> Option<Self> {
        Some(Self { id: Refs(vec![text.to_owned()]), ..Self::default() })
    }

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Some)
    }
}

list!(Objects, RawObject);

/// A date and time, or a date; anything else is none.
#[derive(Clone, Copy, Default)]
pub(crate) struct Time(pub(crate) Option<W3cDatetime>);

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Texts::deserialize(deserializer)?;
        Ok(Self(texts.0.first().and_then(|text| read_time(text.trim()))))
    }
}

/// Reads a time as it is found: without a zone it is taken for UTC; a date may have a zone, and a
/// zone may be written without a colon.
fn read_time(text: &str) -> Option<W3cDatetime> {
    let parse = |text: &str| W3cDatetime::parse(text.as_bytes()).ok();
    let with_colon = || {
        let at = text.len().checked_sub(2)?;
        (text.is_char_boundary(at)).then(|| format!("{}:{}", &text[..at], &text[at..]))
    };
    parse(text)
        .or_else(|| parse(&format!("{text}Z")))
        .or_else(|| parse(&with_colon()?))
        // A date: the zone moves its begin, which is compared inclusively.
        .or_else(|| parse(text.get(..10).filter(|_| !text.contains('T'))?))
}

impl<'de> Deserialize<'de> for Items {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Activities;

        impl<'de> Visitor<'de> for Activities {
            type Value = Items;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of activities")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Items, A::Error> {
                let mut all = Items::default();
                while let Some(mut found) =
                    seq.next_element_seed(Several::<RawItem>(PhantomData))?
                {
                    if found.is_empty() {
                        all.unreadable += 1;
                    }
                    all.items.append(&mut found);
                }
                Ok(all)
            }

            /// The URL of one activity alone.
            fn visit_str<E>(self, _: &str) -> Result<Items, E> {
                Ok(Items { items: Vec::new(), unreadable: 1 })
            }

            /// One activity, as compacted JSON-LD has it.
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Items, A::Error> {
                let item = RawItem::of_map(map)?
                    .ok_or_else(|| A::Error::custom("an activity is expected"))?;
                Ok(Items { items: vec![item], unreadable: 0 })
            }
        }

        deserializer.deserialize_any(Activities)
    }
}

impl Part for RawItem {
    /// The URL of an activity alone states nothing about the entity.
    fn of_text(_: &str) -> Option<Self> {
        None
    }

    fn of_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(Some)
    }
}
