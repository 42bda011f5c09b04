//! Writing Entry Points, Change Sets, activities and Entity Patches.

use crate::{ActivityType, Profile};
use abreast_webtypes::Timestamp;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

/// An Entry Point [emm-1.0 §3.1, iiif-discovery §3.1].
#[derive(Clone, Debug, Default)]
pub struct EntryPoint<'a> {
    /// URL of the Entry Point.
    pub id: &'a str,
    /// Text that distinguishes this Entry Point from others for the same set.
    pub summary: &'a str,
    /// Links to full downloads, and to pages that describe them.
    pub downloads: &'a [LinkTo],
    /// The URL of its first page.
    pub first: &'a str,
    /// The URL of its last page.
    pub last: &'a str,
    /// Number of activities on all pages, if it is known.
    pub total_items: Option<u64>,
    /// URL of the larger Entry Point that includes this one.
    pub part_of: Option<&'a str>,
}

/// A Change Set, without its activities [emm-1.0 §3.2, iiif-discovery §3.2].
#[derive(Clone, Debug, Default)]
pub struct Page<'a> {
    /// URL of the Change Set.
    pub id: &'a str,
    /// The URL of its Entry Point.
    pub part_of: &'a str,
    /// The URL of the previous page.
    pub prev: Option<&'a str>,
    /// The URL of the next page.
    pub next: Option<&'a str>,
}

/// One change of an entity [emm-1.0 §3.3, iiif-discovery §3.3].
///
/// # Examples
/// ```
/// use abreast_emm::{Activity, ActivityType, Object, Profile, write_activity};
///
/// // A museum adds a coin that another register described before.
/// let activity = Activity {
///     id: "https://museum.example/feed/activities/7",
///     kind: ActivityType::Add,
///     object: Object { id: "https://museum.example/coins/1042", ..Object::default() },
///     collection: Some("https://museum.example/feed"),
///     ..Activity::default()
/// };
/// let json = String::from_utf8(write_activity(Profile::Emm10, &activity))?;
/// assert!(json.contains(r#""target":{"type":"OrderedCollection","id":"https://museum.example/feed"}"#));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Activity<'a> {
    /// URL of the activity, unique in the feed.
    pub id: &'a str,
    /// The kind of the change.
    pub kind: ActivityType,
    /// A sentence about the change, for users.
    pub summary: Option<&'a str>,
    /// Time of publication, which is also the time of the change in the feed.
    pub time: Timestamp,
    /// The entity that changed, with its representations.
    pub object: Object<'a>,
    /// The URL of the Entry Point to which an added entity was added, or from which a removed one
    /// was removed.
    pub collection: Option<&'a str>,
    /// The differences that the change made to the description.
    pub instrument: Option<Instrument<'a>>,
    /// The URL of the activity's page, for an activity in a separate document.
    pub part_of: Option<&'a str>,
}

/// The entity of a change.
#[derive(Clone, Debug, Default)]
pub struct Object<'a> {
    /// The IRI of the entity.
    pub id: &'a str,
    /// Types of the entity: IRIs, or terms of the context.
    pub types: &'a [&'a str],
    /// Time of the last change of the entity.
    pub updated: Option<Timestamp>,
    /// The media type of a resource that is a file.
    pub media_type: Option<&'a str>,
    /// Links to representations of the entity.
    pub links: &'a [LinkTo],
}

/// The Entity Patch of a change [emm-0.1 §4.2].
#[derive(Clone, Debug, Default)]
pub struct Instrument<'a> {
    /// The URL of the Entity Patch.
    pub id: &'a str,
    /// Text of the patch, if it is inline.
    pub content: Option<&'a str>,
}

/// A link to a representation.
///
/// # Examples
/// ```
/// use abreast_emm::{Activity, LinkTo, Object, Profile, write_activity};
///
/// let manifest = LinkTo {
///     href: "https://archive.example/maps/88/manifest.json".to_owned(),
///     media_type: "application/ld+json",
///     ..LinkTo::default()
/// };
/// let links = [manifest];
/// let activity = Activity {
///     object: Object { id: "https://archive.example/maps/88", links: &links, ..Object::default() },
///     ..Activity::default()
/// };
/// let json = String::from_utf8(write_activity(Profile::Emm10, &activity))?;
/// assert!(json.contains(r#""mediaType":"application/ld+json""#));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkTo {
    /// Absolute URL of the representation.
    pub href: String,
    /// Media type of the representation.
    pub media_type: &'static str,
    /// Time of the last change that the representation includes.
    pub updated: Option<Timestamp>,
    /// Position of this change in the log, written as `urn:abreast:position`.
    pub position: Option<u64>,
}

/// The value of `type` in a collection.
#[derive(Clone, Copy, Debug)]
pub enum Collection {
    /// An Entry Point, of the type `OrderedCollection`.
    Ordered,
    /// A Change Set, of the type `OrderedCollectionPage`.
    Page,
}

impl Collection {
    const fn name(self) -> &'static str {
        match self {
            Self::Ordered => "OrderedCollection",
            Self::Page => "OrderedCollectionPage",
        }
    }
}

/// The media type of an Entity Patch.
const PATCH: &str = "application/rdf-patch";

/// Writes an Entry Point as a document, with a line feed at the end [emm-1.0 §3.1].
///
/// # Examples
/// ```
/// use abreast_emm::{Document, DocumentKind, EntryPoint, Profile, write_entry_point};
///
/// let entry = EntryPoint {
///     id: "https://library.example/feed",
///     summary: "Changes of the subject headings",
///     first: "https://library.example/feed/1",
///     last: "https://library.example/feed/42",
///     total_items: Some(4_157),
///     ..EntryPoint::default()
/// };
/// let bytes = write_entry_point(Profile::Emm10, &entry);
/// let read = Document::from_slice(&bytes, entry.id)?;
/// assert_eq!(read.kind, DocumentKind::EntryPoint);
/// assert_eq!(read.last.as_deref(), Some("https://library.example/feed/42"));
/// # Ok::<(), abreast_emm::ReadError>(())
/// ```
pub fn write_entry_point(profile: Profile, entry: &EntryPoint<'_>) -> Vec<u8> {
    document(profile, |map| {
        map.serialize_entry("type", Collection::Ordered.name())?;
        map.serialize_entry("id", entry.id)?;
        if !entry.summary.is_empty() {
            map.serialize_entry("summary", entry.summary)?;
        }
        match entry.downloads {
            [] => {}
            [only] => map.serialize_entry("url", only)?,
            all => map.serialize_entry("url", all)?,
        }
        if let Some(whole) = entry.part_of {
            map.serialize_entry("partOf", &[Reference(Collection::Ordered, whole)])?;
        }
        map.serialize_entry("first", &Reference(Collection::Page, entry.first))?;
        map.serialize_entry("last", &Reference(Collection::Page, entry.last))?;
        if let Some(total) = entry.total_items {
            map.serialize_entry("totalItems", &total)?;
        }
        Ok(())
    })
}

/// Writes a Change Set: its activities one after the other.
#[derive(Debug)]
pub struct PageWriter {
    profile: Profile,
    bytes: Vec<u8>,
    drained: bool,
    items: u64,
}

impl PageWriter {
    /// Starts a Change Set: writes all members before the activities.
    pub fn new(profile: Profile, page: &Page<'_>) -> Self {
        let mut bytes = document(profile, |map| {
            map.serialize_entry("type", Collection::Page.name())?;
            map.serialize_entry("id", page.id)?;
            map.serialize_entry("partOf", &Reference(Collection::Ordered, page.part_of))?;
            for (name, url) in [("prev", page.prev), ("next", page.next)] {
                if let Some(url) = url {
                    map.serialize_entry(name, &Reference(Collection::Page, url))?;
                }
            }
            Ok(())
        });
        // Further members are written here.
        bytes.truncate(bytes.len() - 2);
        bytes.extend_from_slice(b",\n\"orderedItems\":[");
        Self { profile, bytes, drained: false, items: 0 }
    }

    /// Writes an activity at the end of the page.
    pub fn write(&mut self, activity: &Activity<'_>) {
        self.bytes.extend_from_slice(if self.items == 0 { b"\n" } else { b",\n" });
        self.items += 1;
        let item = Profiled { profile: self.profile, activity };
        serde_json::to_writer(&mut self.bytes, &item).expect(INTO_MEMORY);
    }

    /// The number of activities that were written.
    pub fn items(&self) -> u64 {
        self.items
    }

    /// The bytes written so far. A caller may take any part, to send a long page while it is
    /// written.
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::{Activity, Document, Page, PageWriter, Profile};
    ///
    /// let page = Page { id: "https://library.example/feed/1", ..Page::default() };
    /// let mut writer = PageWriter::new(Profile::Emm10, &page);
    /// let mut sent = Vec::new();
    /// for number in 1..=3 {
    ///     let id = format!("https://library.example/feed/activities/{number}");
    ///     writer.write(&Activity { id: &id, ..Activity::default() });
    ///     sent.append(writer.bytes());
    /// }
    /// sent.extend(writer.finish());
    /// assert_eq!(Document::from_slice(&sent, page.id)?.items.len(), 3);
    /// # Ok::<(), abreast_emm::ReadError>(())
    /// ```
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        self.drained = true;
        &mut self.bytes
    }

    /// Ends the Change Set, and returns all bytes that the caller did not take.
    pub fn finish(mut self) -> Vec<u8> {
        // Pages of IIIF do not have this member. In Activity Streams it is the number of items in
        // the whole collection, in the Entity Metadata Management API the number on the page
        // [emm-1.0 §3.2].
        let total = match self.profile {
            Profile::Iiif1 => String::new(),
            Profile::Emm01 | Profile::Emm10 => format!(",\n\"totalItems\":{}", self.items),
        };
        self.bytes.extend_from_slice(format!("\n]{total}}}\n").as_bytes());
        self.bytes
    }
}

/// Writes an activity as a separate document [emm-0.1 §4.1].
pub fn write_activity(profile: Profile, activity: &Activity<'_>) -> Vec<u8> {
    document(profile, |map| members(profile, activity, map))
}

/// Writes an Entity Patch as a document [emm-0.1 §4.2]: its text, and the activity that it belongs
/// to.
///
/// # Examples
/// ```
/// use abreast_emm::{Activity, ActivityType, Profile, write_patch};
///
/// let activity = Activity {
///     id: "https://library.example/feed/activities/7",
///     kind: ActivityType::Update,
///     ..Activity::default()
/// };
/// let patch = "A <https://library.example/subjects/maps> \
///     <http://www.w3.org/2004/02/skos/core#altLabel> \"Charts\"@en .\n";
/// let id = "https://library.example/patches/7";
/// let json = String::from_utf8(write_patch(Profile::Emm01, &activity, id, patch))?;
/// assert!(json.contains(r#""type":"rdf_patch","id":"https://library.example/patches/7""#));
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
pub fn write_patch(profile: Profile, activity: &Activity<'_>, id: &str, text: &str) -> Vec<u8> {
    document(profile, |map| {
        if let Some(summary) = activity.summary {
            map.serialize_entry("summary", summary)?;
        }
        map.serialize_entry("type", "rdf_patch")?;
        map.serialize_entry("id", id)?;
        map.serialize_entry("partOf", &Part(activity.kind.name(profile), activity.id))?;
        map.serialize_entry("content", text)
    })
}

const INTO_MEMORY: &str = "JSON of texts and numbers can be written into memory";

type Members<'s, 'b> =
    serde_json::ser::Compound<'s, &'b mut Vec<u8>, serde_json::ser::CompactFormatter>;

/// A document: an object with its context, and a line feed at the end.
fn document(
    profile: Profile,
    members: impl FnOnce(&mut Members<'_, '_>) -> serde_json::Result<()>,
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1_024);
    let write = || {
        let mut serializer = serde_json::Serializer::new(&mut bytes);
        let mut map = serializer.serialize_map(None)?;
        match profile.contexts() {
            [one] => map.serialize_entry("@context", one)?,
            several => map.serialize_entry("@context", several)?,
        }
        members(&mut map)?;
        map.end()
    };
    write().expect(INTO_MEMORY);
    bytes.push(b'\n');
    bytes
}

fn members<M: serde::ser::SerializeMap>(
    profile: Profile,
    activity: &Activity<'_>,
    map: &mut M,
) -> Result<(), M::Error> {
    map.serialize_entry("type", activity.kind.name(profile))?;
    map.serialize_entry("id", activity.id)?;
    if let Some(summary) = activity.summary {
        map.serialize_entry("summary", summary)?;
    }
    if let Some(page) = activity.part_of {
        // As a string [emm-0.1 §4.1].
        map.serialize_entry("partOf", page)?;
    }
    if profile != Profile::Iiif1 {
        map.serialize_entry("published", &Time(activity.time))?;
    }
    if profile != Profile::Emm01 {
        map.serialize_entry("endTime", &Time(activity.time))?;
    }
    map.serialize_entry("object", &activity.object)?;
    if let Some(collection) = activity.collection {
        match activity.kind {
            ActivityType::Add => {
                map.serialize_entry("target", &Reference(Collection::Ordered, collection))?;
            }
            ActivityType::Remove => {
                map.serialize_entry("origin", &Reference(Collection::Ordered, collection))?;
            }
            _ => {}
        }
    }
    if let Some(instrument) = &activity.instrument {
        map.serialize_entry("instrument", &ProfiledPatch { profile, instrument })?;
    }
    Ok(())
}

struct Profiled<'a> {
    profile: Profile,
    activity: &'a Activity<'a>,
}

impl Serialize for Profiled<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        members(self.profile, self.activity, &mut map)?;
        map.end()
    }
}

struct ProfiledPatch<'a> {
    profile: Profile,
    instrument: &'a Instrument<'a>,
}

impl Serialize for ProfiledPatch<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Instrument { id, content } = self.instrument;
        let mut map = serializer.serialize_map(None)?;
        // Only version 0.1 defines the type.
        if self.profile == Profile::Emm01 {
            map.serialize_entry("type", "rdf_patch")?;
        } else {
            map.serialize_entry("type", "Document")?;
            map.serialize_entry("mediaType", PATCH)?;
        }
        map.serialize_entry("id", id)?;
        if let Some(content) = content {
            map.serialize_entry("content", content)?;
        }
        map.end()
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", self.id)?;
        match self.types {
            [] => {}
            [only] => map.serialize_entry("type", only)?,
            several => map.serialize_entry("type", several)?,
        }
        if let Some(updated) = self.updated {
            map.serialize_entry("updated", &Time(updated))?;
        }
        if let Some(media_type) = self.media_type {
            map.serialize_entry("mediaType", media_type)?;
        }
        match self.links {
            [] => {}
            [only] => map.serialize_entry("url", only)?,
            several => map.serialize_entry("url", several)?,
        }
        map.end()
    }
}

impl Serialize for LinkTo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "Link")?;
        map.serialize_entry("href", &self.href)?;
        map.serialize_entry("mediaType", self.media_type)?;
        if let Some(updated) = self.updated {
            map.serialize_entry("updated", &Time(updated))?;
        }
        if let Some(position) = self.position {
            map.serialize_entry("urn:abreast:position", &position)?;
        }
        map.end()
    }
}

/// A reference to another collection. It is an object, since many readers do not accept a string.
struct Reference<'a>(Collection, &'a str);

impl Serialize for Reference<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Part(self.0.name(), self.1).serialize(serializer)
    }
}

struct Part<'a>(&'a str, &'a str);

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", self.0)?;
        map.serialize_entry("id", self.1)?;
        map.end()
    }
}

struct Time(Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = Vec::with_capacity(32);
        self.0.write_to(&mut text);
        serializer.serialize_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}
