//! Activities, their objects and links [emm-1.0 §2.2].

use abreast_webtypes::{Moment, Precision, Timestamp, W3cDatetime};

/// The kind of change that an activity reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The entity is new at the Source.
    Create,
    /// The entity is new in the feed, or different, if the feed does not distinguish these.
    Add,
    /// The entity has a new state, and was listed before.
    Update,
    /// The entity still exists, but is deprecated.
    Deprecate,
    /// The entity left the feed: Remove.
    Remove,
    /// The entity does not exist any more: Delete.
    Delete,
    /// The entity has another IRI now, which is in `target`.
    Move,
    /// The feed lists all entities again after this activity.
    Refresh,
    /// A type that this crate does not know.
    Other,
}

impl Action {
    /// Whether the entity exists with a new state. Readers treat Create, Add and Update alike, because a feed may use
    /// any of the three for an entity that a reader does not have.
    pub const fn is_put(self) -> bool {
        matches!(self, Self::Create | Self::Add | Self::Update)
    }
}

/// An activity of a feed, which is a change of entities.
#[derive(Clone, Debug)]
pub struct Item {
    /// URL of the activity, as written in it.
    pub id: Option<Box<str>>,
    /// The change of the entities, by the type of the activity.
    pub action: Action,
    /// Time of the change: `published`, otherwise `endTime`, `updated`, `created`, `startTime`, or
    /// the time of the object.
    pub time: Option<Timestamp>,
    /// The same time with the precision of the text.
    pub moment: Option<Moment>,
    /// Whether the time is a date without time of day.
    pub is_day: bool,
    /// The changed entities; nearly always one.
    pub objects: Vec<Object>,
    rare: Option<Box<Rare>>,
}

/// Members that few activities have.
#[derive(Clone, Debug)]
struct Rare {
    target: Vec<String>,
    origin: Vec<String>,
    patch: Option<Patch>,
}

/// The URL of an Entity Patch, and the text if it is inline.
type Patch = (Option<String>, Option<String>);

impl Item {
    pub(crate) fn new(
        id: Option<String>,
        action: Action,
        time: Option<W3cDatetime>,
        objects: Vec<Object>,
        (target, origin, patch): (Vec<String>, Vec<String>, Option<Patch>),
    ) -> Self {
        let is_common = target.is_empty() && origin.is_empty() && patch.is_none();
        Self {
            id: id.map(String::into_boxed_str),
            action,
            time: time.map(|time| time.instant),
            moment: time.map(W3cDatetime::moment),
            is_day: time.is_some_and(|time| time.precision <= Precision::Day),
            objects,
            rare: (!is_common).then(|| Box::new(Rare { target, origin, patch })),
        }
    }

    /// The URLs of the collections to which the entity is added, or its new URL after a move.
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::{Action, Document};
    ///
    /// let feed = br#"{"type": "OrderedCollectionPage", "orderedItems": [{
    ///     "type": "Move", "endTime": "2026-03-01T09:00:00Z",
    ///     "object": "https://id.example.org/people/17",
    ///     "target": "https://id.example.org/people/4"
    /// }]}"#;
    /// let page = Document::from_slice(feed, "https://id.example.org/feed/page/1")?;
    /// let moved = &page.items[0];
    /// assert_eq!(moved.action, Action::Move);
    /// assert_eq!(moved.target(), ["https://id.example.org/people/4"]);
    /// # Ok::<(), abreast_emm::ReadError>(())
    /// ```
    pub fn target(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.target)
    }

    /// The URLs of the collections from which the entity is removed.
    pub fn origin(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.origin)
    }

    /// The Entity Patch of the activity [emm-0.1 §4.2]: the URL, and the text if the patch is inline.
    ///
    /// # Examples
    /// ```
    /// use abreast_emm::Document;
    ///
    /// let feed = br#"{"type": "OrderedCollectionPage", "orderedItems": [{
    ///     "type": "Update", "published": "2026-03-01T09:00:00Z",
    ///     "object": "https://id.example.org/subjects/maps",
    ///     "instrument": {"type": "rdf_patch", "id": "/patches/812"}
    /// }]}"#;
    /// let page = Document::from_slice(feed, "https://id.example.org/feed/page/1")?;
    /// let (url, text) = page.items[0].patch().expect("the activity has a patch");
    /// assert_eq!(url, Some("https://id.example.org/patches/812"));
    /// assert_eq!(text, None);
    /// # Ok::<(), abreast_emm::ReadError>(())
    /// ```
    pub fn patch(&self) -> Option<(Option<&str>, Option<&str>)> {
        let (url, text) = self.rare.as_ref()?.patch.as_ref()?;
        Some((url.as_deref(), text.as_deref()))
    }
}

/// An entity as an activity describes it.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// The IRI of the entity.
    pub id: String,
    /// The types of the entity, as written in the document.
    pub types: Vec<String>,
    /// Links to representations of the entity.
    pub links: Vec<Link>,
}

/// A link to a representation or a download.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Absolute URL of the target.
    pub href: String,
    /// Media type of the target, as written.
    pub media_type: Option<String>,
    /// The time of the last change that the target includes.
    pub updated: Option<Timestamp>,
}

/// The last segment of a type, which may be an IRI or have a prefix.
pub(crate) fn local(kind: &str) -> &str {
    kind.rsplit([':', '#', '/']).next().unwrap_or(kind)
}

/// The action of a known type, and whether the type is written as in the specifications.
pub(crate) fn action(kind: &str) -> Option<(Action, bool)> {
    const ACTIONS: [(&str, Action); 8] = [
        ("Create", Action::Create),
        ("Update", Action::Update),
        ("Delete", Action::Delete),
        ("Add", Action::Add),
        ("Remove", Action::Remove),
        ("Deprecate", Action::Deprecate),
        ("Move", Action::Move),
        ("Refresh", Action::Refresh),
    ];
    let name = local(kind);
    let (exact, action) = ACTIONS.iter().find(|(exact, _)| exact.eq_ignore_ascii_case(name))?;
    Some((*action, *exact == name))
}

/// Whether a type, or media type, is that of an Entity Patch.
pub(crate) fn is_patch(kind: &str) -> bool {
    kind.ends_with("rdf_patch") || kind == "application/rdf-patch"
}
