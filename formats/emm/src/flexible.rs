//! Members whose value is a string, an object or an array of these.

use crate::item::{Action, Item, Link, Object, action, is_patch};
use crate::name::{Name, NameOf};
use crate::reading::Reading;
use abreast_webtypes::{MAX_URI_LENGTH, ResolveError, W3cDatetime, excerpt, resolve};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A value that can be read from a string or an object.
pub(crate) trait Part: Sized {
    fn of_text<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E>;

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error>;
}

/// Storage for the parts that are read: the first, or all.
pub(crate) trait Keep<P> {
    fn keep(&mut self, part: P);

    /// Reports a value that is not such a part.
    fn pass(&mut self) {}
}

impl<P> Keep<P> for Option<P> {
    fn keep(&mut self, part: P) {
        if self.is_none() {
            *self = Some(part);
        }
    }
}

impl<P> Keep<P> for Vec<P> {
    fn keep(&mut self, part: P) {
        // Almost all lists have one element.
        if self.capacity() == 0 {
            self.reserve_exact(1);
        }
        self.push(part);
    }
}

/// Reads any JSON as a list; values with another form are left out.
struct Several<'t, P, K> {
    to: &'t mut K,
    reading: &'t Reading<'t>,
    part: PhantomData<P>,
}

impl<'de, P: Part, K: Keep<P>> DeserializeSeed<'de> for Several<'_, P, K> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, P: Part, K: Keep<P>> Visitor<'de> for Several<'_, P, K> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, an object or an array of these")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        match P::of_text(text, self.reading)? {
            Some(part) => self.to.keep(part),
            None if text.trim().is_empty() => {}
            None => self.to.pass(),
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        match P::of_map(map, self.reading)? {
            Some(part) => self.to.keep(part),
            None => self.to.pass(),
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        let Self { to, reading, part } = self;
        while seq.next_element_seed(Several { to: &mut *to, reading, part })?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.to.pass();
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.to.pass();
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.to.pass();
        Ok(())
    }
}

/// Iterator over the members of an object.
pub(crate) struct Members<'r, A> {
    map: A,
    pub(crate) reading: &'r Reading<'r>,
    seen: u32,
}

impl<'de, 'r, A: MapAccess<'de>> Members<'r, A> {
    pub(crate) fn new(map: A, reading: &'r Reading<'r>) -> Self {
        Self { map, reading, seen: 0 }
    }

    pub(crate) fn next(&mut self) -> Result<Option<Name>, A::Error> {
        let name = self.map.next_key_seed(NameOf(self.reading))?;
        let counts = |name: &Name| {
            !matches!(name, Name::TotalItems | Name::Prefixed | Name::Misspelt | Name::Other)
        };
        if let Some(name) = name.filter(counts) {
            let bit = 1 << name as u32;
            if self.seen & bit != 0 {
                return Err(A::Error::custom(format_args!("a member is written twice: {name:?}")));
            }
            self.seen |= bit;
        }
        Ok(name)
    }

    /// Reads the value of the member.
    pub(crate) fn to<P: Part, K: Keep<P>>(&mut self, to: &mut K) -> Result<(), A::Error> {
        self.map.next_value_seed(Several { to, reading: self.reading, part: PhantomData })
    }

    pub(crate) fn items(&mut self) -> Result<Option<Items>, A::Error> {
        self.map.next_value_seed(Activities(self.reading))
    }

    /// Whether the value is the number 0.
    pub(crate) fn is_zero(&mut self) -> Result<bool, A::Error> {
        self.map.next_value_seed(Zero)
    }

    pub(crate) fn skip(&mut self) -> Result<(), A::Error> {
        self.map.next_value::<IgnoredAny>().map(drop)
    }
}

/// Whether a value is the number 0, also as a string.
struct Zero;

impl<'de> DeserializeSeed<'de> for Zero {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Zero {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(text.trim() == "0")
    }

    fn visit_u64<E>(self, number: u64) -> Result<bool, E> {
        Ok(number == 0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E>(self, number: f64) -> Result<bool, E> {
        Ok(number == 0.0)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<bool, A::Error> {
        skip(map).map(|()| false)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<bool, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(false)
    }
}

/// Skips the rest of an object.
fn skip<'de, A: MapAccess<'de>>(mut map: A) -> Result<(), A::Error> {
    while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Implements parts that can only be strings.
macro_rules! of_text_only {
    ($($name:ty),*) => {$(
        impl Part for $name {
            fn of_text<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
                <$name>::of(text, reading)
            }

            fn of_map<'de, A: MapAccess<'de>>(map: A, _: &Reading<'_>) -> Result<Option<Self>, A::Error> {
                skip(map).map(|()| None)
            }
        }
    )*};
}

of_text_only!(Term, Content, Time, Kind, IsPatch);

/// A type or a media type. Values longer than a URL may be are left out.
pub(crate) struct Term(pub(crate) String);

impl Term {
    fn of<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        if text.len() > MAX_URI_LENGTH {
            return Ok(None);
        }
        reading.keep::<Self, E>(text.len())?;
        Ok(Some(Self(text.to_owned())))
    }
}

/// A text of any length.
struct Content(String);

impl Content {
    fn of<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        reading.keep::<Self, E>(text.len())?;
        Ok(Some(Self(text.to_owned())))
    }
}

/// A date and time, or a date; `None` for other texts.
struct Time(Option<W3cDatetime>);

impl Time {
    #[expect(clippy::unnecessary_wraps, reason = "the form of all parts")]
    fn of<E>(text: &str, _: &Reading<'_>) -> Result<Option<Self>, E> {
        Ok(Some(Self(read_time(text.trim()))))
    }
}

/// The type of an activity: its meaning, or the first characters of an unknown type.
struct Kind(Result<Action, String>);

impl Kind {
    #[expect(clippy::unnecessary_wraps, reason = "the form of all parts")]
    fn of<E>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        Ok(Some(Self(match action(text) {
            Some((action, is_exact)) => {
                if !is_exact {
                    let first = reading.other_letters.take().or_else(|| Some(excerpt(text)));
                    reading.other_letters.set(first);
                }
                Ok(action)
            }
            None => Err(excerpt(text)),
        })))
    }
}

/// The first known type, and the first unknown one.
#[derive(Default)]
struct Kinds {
    action: Option<Action>,
    unknown: Option<String>,
}

impl Keep<Kind> for Kinds {
    fn keep(&mut self, Kind(kind): Kind) {
        match kind {
            Ok(action) => self.action.keep(action),
            Err(text) => self.unknown.keep(text),
        }
    }
}

/// A type or media type of an Entity Patch.
struct IsPatch;

impl IsPatch {
    #[expect(clippy::unnecessary_wraps, reason = "the form of all parts")]
    fn of<E>(text: &str, _: &Reading<'_>) -> Result<Option<Self>, E> {
        Ok(is_patch(text).then_some(Self))
    }
}

/// A URL: a string, or an object with `id`; absolute.
pub(crate) struct Url(pub(crate) String);

impl Part for Url {
    /// An empty URL would be the document's, and URLs must not have control characters.
    fn of_text<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        let text = text.trim();
        let overlong = || {
            reading.overlong.set(reading.overlong.get() + 1);
            Ok(None)
        };
        if text.len() > MAX_URI_LENGTH {
            return overlong();
        }
        if text.is_empty() || text.contains(char::is_control) {
            return Ok(None);
        }
        let url = match resolve(reading.url, text) {
            Ok(url) => url,
            Err(ResolveError::TooLong) => return overlong(),
            Err(_) => text.to_owned(),
        };
        reading.keep::<Self, E>(url.len())?;
        Ok(Some(Self(url)))
    }

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error> {
        let mut members = Members::new(map, reading);
        let [mut id, mut at_id, mut href] = [const { None::<Self> }; 3];
        while let Some(name) = members.next()? {
            match name {
                Name::Id => members.to(&mut id)?,
                Name::AtId => members.to(&mut at_id)?,
                Name::Href => members.to(&mut href)?,
                _ => members.skip()?,
            }
        }
        Ok(id.or(at_id).or(href))
    }
}

/// A link: a string, or an object with `href`.
impl Part for Link {
    fn of_text<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        let Some(Url(href)) = Url::of_text(text, reading)? else { return Ok(None) };
        reading.keep::<Self, E>(0)?;
        Ok(Some(Self { href, ..Self::default() }))
    }

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error> {
        let mut members = Members::new(map, reading);
        let [mut href, mut id, mut at_id] = [const { None::<Url> }; 3];
        let (mut media_type, mut updated) = (None::<Term>, None::<Time>);
        while let Some(name) = members.next()? {
            match name {
                Name::Href => members.to(&mut href)?,
                Name::Id => members.to(&mut id)?,
                Name::AtId => members.to(&mut at_id)?,
                Name::MediaType => members.to(&mut media_type)?,
                Name::Updated => members.to(&mut updated)?,
                _ => members.skip()?,
            }
        }
        let Some(Url(href)) = href.or(id).or(at_id) else { return Ok(None) };
        reading.keep::<Self, A::Error>(0)?;
        Ok(Some(Self {
            href,
            media_type: media_type.map(|Term(text)| text),
            updated: updated.and_then(|time| time.0).map(|time| time.instant),
        }))
    }
}

/// An entity, which is an IRI or an object, with its time.
struct Entity {
    object: Option<Object>,
    updated: Option<W3cDatetime>,
}

impl Part for Entity {
    fn of_text<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        let Some(Url(id)) = Url::of_text(text, reading)? else { return Ok(None) };
        reading.keep::<Object, E>(0)?;
        Ok(Some(Self { object: Some(Object { id, ..Object::default() }), updated: None }))
    }

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error> {
        let mut members = Members::new(map, reading);
        let [mut id, mut at_id] = [const { None::<Url> }; 2];
        let (mut types, mut links, mut updated) = (Vec::<Term>::new(), Vec::new(), None::<Time>);
        let mut is_about_another = false;
        while let Some(name) = members.next()? {
            match name {
                Name::Id => members.to(&mut id)?,
                Name::AtId => members.to(&mut at_id)?,
                Name::Type => members.to(&mut types)?,
                Name::Updated => members.to(&mut updated)?,
                Name::Url => members.to(&mut links)?,
                Name::Object => {
                    is_about_another = true;
                    members.skip()?;
                }
                _ => members.skip()?,
            }
        }
        if is_about_another && types.iter().any(|Term(kind)| action(kind).is_some()) {
            return Err(reading.refuse("an activity is inside another activity".to_owned()));
        }
        reading.keep::<Object, A::Error>(0)?;
        let object = id.or(at_id).map(|Url(id)| Object {
            id,
            types: types.into_iter().map(|Term(text)| text).collect(),
            links,
        });
        Ok(Some(Self { object, updated: updated.and_then(|time| time.0) }))
    }
}

/// Entities, with the time of the first.
#[derive(Default)]
struct Entities {
    objects: Vec<Object>,
    updated: Option<W3cDatetime>,
    is_there: bool,
}

impl Keep<Entity> for Entities {
    fn keep(&mut self, entity: Entity) {
        if !std::mem::replace(&mut self.is_there, true) {
            self.updated = entity.updated;
        }
        if let Some(object) = entity.object {
            self.objects.keep(object);
        }
    }
}

/// The instrument of a change: an Entity Patch, or another object.
struct Instrument(Option<(Option<String>, Option<String>)>);

impl Part for Instrument {
    fn of_text<E: Error>(_: &str, _: &Reading<'_>) -> Result<Option<Self>, E> {
        Ok(None)
    }

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error> {
        let mut members = Members::new(map, reading);
        let [mut id, mut at_id] = [const { None::<Url> }; 2];
        let (mut is_patch, mut content) = (None::<IsPatch>, None::<Content>);
        while let Some(name) = members.next()? {
            match name {
                Name::Id => members.to(&mut id)?,
                Name::AtId => members.to(&mut at_id)?,
                Name::Type | Name::MediaType => members.to(&mut is_patch)?,
                Name::Content => members.to(&mut content)?,
                _ => members.skip()?,
            }
        }
        let id = id.or(at_id).map(|Url(id)| id);
        Ok(is_patch.map(|_| Self(Some((id, content.map(|Content(text)| text))))))
    }
}

impl Part for Item {
    /// The URL of an activity alone does not show which entity changed.
    fn of_text<E: Error>(text: &str, reading: &Reading<'_>) -> Result<Option<Self>, E> {
        Err(reading.refuse(of_reference(text)))
    }

    fn of_map<'de, A: MapAccess<'de>>(
        map: A,
        reading: &Reading<'_>,
    ) -> Result<Option<Self>, A::Error> {
        let mut members = Members::new(map, reading);
        let (mut kinds, mut instrument) = (Kinds::default(), None::<Instrument>);
        let [mut id, mut at_id] = [const { None::<Url> }; 2];
        let [mut target, mut origin] = [const { Vec::<Url>::new() }; 2];
        let [mut published, mut end_time, mut updated, mut created, mut start_time] =
            [const { None::<Time> }; 5];
        let mut entities = Entities::default();
        while let Some(name) = members.next()? {
            match name {
                Name::Type => members.to(&mut kinds)?,
                Name::Id => members.to(&mut id)?,
                Name::AtId => members.to(&mut at_id)?,
                Name::Published => members.to(&mut published)?,
                Name::EndTime => members.to(&mut end_time)?,
                Name::Updated => members.to(&mut updated)?,
                Name::Created => members.to(&mut created)?,
                Name::StartTime => members.to(&mut start_time)?,
                Name::Object => members.to(&mut entities)?,
                Name::Target => members.to(&mut target)?,
                Name::Origin => members.to(&mut origin)?,
                Name::Instrument => members.to(&mut instrument)?,
                Name::OrderedItems => {
                    return Err(reading.refuse("activities are inside an activity".to_owned()));
                }
                Name::Prefixed => return Err(reading.refuse_name()),
                _ => members.skip()?,
            }
        }
        let Kinds { action, unknown } = kinds;
        if action.is_none() && !entities.is_there {
            return match id.or(at_id) {
                Some(Url(id)) if unknown.is_none() => Err(reading.refuse(of_reference(&id))),
                _ => Ok(None),
            };
        }
        if action.is_none() {
            let first = reading.unknown.take().or(Some(unknown.unwrap_or_default()));
            reading.unknown.set(first);
        }
        reading.keep_item::<A::Error>()?;
        let times = [published, end_time, updated, created, start_time].into_iter().flatten();
        let time = { times }.find_map(|time| time.0).or(entities.updated);
        let texts = |urls: Vec<Url>| urls.into_iter().map(|Url(url)| url).collect();
        Ok(Some(Self::new(
            id.or(at_id).map(|Url(url)| url),
            action.unwrap_or(Action::Other),
            time,
            entities.objects,
            (texts(target), texts(origin), instrument.and_then(|instrument| instrument.0)),
        )))
    }
}

fn of_reference(id: &str) -> String {
    format!("`orderedItems` has the address of an activity, {}, and not the activity", excerpt(id))
}

/// Activities, and the number of members that are not activities.
#[derive(Default)]
pub(crate) struct Items {
    pub(crate) items: Vec<Item>,
    pub(crate) unreadable: u64,
}

struct Activities<'r>(&'r Reading<'r>);

impl<'de> DeserializeSeed<'de> for Activities<'_> {
    type Value = Option<Items>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Activities<'_> {
    type Value = Option<Items>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of activities")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut all = Items::default();
        loop {
            let before = all.items.len();
            let (to, part) = (&mut all.items, PhantomData::<Item>);
            if seq.next_element_seed(Several { to, reading: self.0, part })?.is_none() {
                return Ok(Some(all));
            }
            all.unreadable += u64::from(all.items.len() == before);
        }
    }

    /// A single activity, given by its URL only.
    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Err(self.0.refuse(of_reference(text)))
    }

    /// A single activity, which compacted JSON-LD may have in place of a list.
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        if let Some(item) = Item::of_map(map, self.0)? {
            return Ok(Some(Items { items: vec![item], unreadable: 0 }));
        }
        let message = "`orderedItems` is an object, and neither an array nor an activity";
        Err(self.0.refuse(message.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

/// Reads a time leniently: a time without a zone is in UTC; a date may have a zone, and a zone may
/// be written without a colon.
fn read_time(text: &str) -> Option<W3cDatetime> {
    // No form of a time is longer.
    if text.len() > 64 {
        return None;
    }
    let parse = |text: &str| W3cDatetime::parse(text.as_bytes()).ok();
    let with_colon = || {
        let at = text.len().checked_sub(2)?;
        (text.is_char_boundary(at)).then(|| format!("{}:{}", &text[..at], &text[at..]))
    };
    parse(text)
        .or_else(|| parse(&format!("{text}Z")))
        .or_else(|| parse(&with_colon()?))
        // A date: its zone would move the start of the day, which is compared inclusively.
        .or_else(|| parse(text.get(..10).filter(|_| !text.contains('T'))?))
}
