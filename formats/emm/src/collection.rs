//! Reading a collection or a page: its kind, its pages and its activities.

use crate::flexible::{Items, Keep, Members, Part, Term, Url};
use crate::item::Link;
use crate::name::Name;
use crate::reading::Reading;
use abreast_webtypes::{MAX_URI_LENGTH, excerpt};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, Visitor};
use std::fmt;

/// The members of a collection or a page, before they are checked.
#[derive(Default)]
pub(crate) struct Raw {
    pub(crate) contexts: Contexts,
    pub(crate) kinds: Vec<Term>,
    pub(crate) id: Option<Url>,
    pub(crate) first: Way,
    pub(crate) last: Way,
    pub(crate) next: Way,
    pub(crate) prev: Way,
    pub(crate) part_of: Way,
    pub(crate) links: Vec<Link>,
    pub(crate) has_items: bool,
    /// Whether `totalItems` is 0.
    pub(crate) is_empty: bool,
    pub(crate) items: Option<Items>,
}

/// The IRI of a JSON-LD context.
struct Context(String);

impl Part for Context {
    fn of_text<E>(text: &str, _: &Reading<'_>) -> Result<Option<Self>, E> {
        Ok(Some(Self(excerpt(text))))
    }

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error> {
        let mut members = Members::new(map, reading);
        while members.next()?.is_some() {
            members.skip()?;
        }
        Ok(None)
    }
}

/// Properties of a document that follow from its contexts.
#[derive(Default)]
pub(crate) struct Contexts {
    pub(crate) is_iiif: bool,
    pub(crate) is_known: bool,
    pub(crate) first: Option<String>,
}

impl Keep<Context> for Contexts {
    fn keep(&mut self, Context(text): Context) {
        self.is_iiif |= text.contains(IIIF);
        self.is_known |= CONTEXTS.iter().any(|mark| text.contains(mark));
        self.first.keep(text);
    }
}

/// A link to a page.
#[derive(Default)]
pub(crate) struct Way {
    pub(crate) url: Option<Url>,
    /// Whether the member has a value that does not contain a URL.
    pub(crate) is_odd: bool,
}

impl Keep<Url> for Way {
    fn keep(&mut self, url: Url) {
        self.url.keep(url);
    }

    fn pass(&mut self) {
        self.is_odd = true;
    }
}

pub(crate) struct Whole<'r>(pub(crate) &'r Reading<'r>);

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = Raw;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Raw, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = Raw;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Raw, A::Error> {
        let mut members = Members::new(map, self.0);
        let (mut raw, mut at_id) = (Raw::default(), None);
        while let Some(name) = members.next()? {
            match name {
                Name::First => way(&mut members, name, &mut raw.first)?,
                Name::Last => way(&mut members, name, &mut raw.last)?,
                Name::Next => way(&mut members, name, &mut raw.next)?,
                Name::Prev => way(&mut members, name, &mut raw.prev)?,
                Name::PartOf => way(&mut members, name, &mut raw.part_of)?,
                Name::Context => members.to(&mut raw.contexts)?,
                Name::Type => members.to(&mut raw.kinds)?,
                Name::Id => members.to(&mut raw.id)?,
                Name::AtId => members.to(&mut at_id)?,
                Name::Url => members.to(&mut raw.links)?,
                Name::OrderedItems => (raw.has_items, raw.items) = (true, members.items()?),
                Name::TotalItems => raw.is_empty |= members.is_zero()?,
                Name::Prefixed | Name::Misspelt => return Err(self.0.refuse_name()),
                _ => members.skip()?,
            }
        }
        Ok(Raw { id: raw.id.or(at_id), ..raw })
    }
}

/// Reads a link to a page. If the link were ignored, the feed would seem to end there.
fn way<'de, A: MapAccess<'de>>(
    members: &mut Members<'_, A>,
    name: Name,
    to: &mut Way,
) -> Result<(), A::Error> {
    let reading = members.reading;
    let before = reading.overlong.get();
    members.to(to)?;
    if reading.overlong.get() > before {
        return Err(A::Error::custom(format_args!(
            "a URL of more than {MAX_URI_LENGTH} bytes: {name:?}"
        )));
    }
    // A page can be read without its collection.
    if to.is_odd && to.url.is_none() && name != Name::PartOf {
        return Err(reading.refuse(format!("its member {name:?} has no URL")));
    }
    Ok(())
}

/// Parts of the IRIs of the specifications' contexts.
const CONTEXTS: [&str; 4] =
    ["w3.org/ns/activitystreams", "emm-spec.org/", "entity_metadata_management/", IIIF];
const IIIF: &str = "iiif.io/api/discovery/";
