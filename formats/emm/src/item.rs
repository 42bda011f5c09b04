//! Activities, their objects and links [emm-1.0 §2.2].

use abreast_webtypes::{Moment, Precision, Timestamp, W3cDatetime};

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
    pub id: Option<Box<str>>,
    /// What happened.
    pub action: Action,
    /// When: `published`, else `endTime`, `updated`, `created`, `startTime`, or the time of the object.
    pub time: Option<Timestamp>,
    /// The same time as precisely as it is written.
    pub moment: Option<Moment>,
    /// Whether the time is a day, and nothing more precise.
    pub is_day: bool,
    /// The entities; one, almost always.
    pub objects: Vec<Object>,
    rare: Option<Box<Rare>>,
}

/// What few activities have.
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

    /// The URLs of what it is added to, or moved to.
    pub fn target(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.target)
    }

    /// The URLs of what it is removed from.
    pub fn origin(&self) -> &[String] {
        self.rare.as_ref().map_or(&[], |rare| &rare.origin)
    }

    /// Its Entity Patch: the URL, and the text if it is inline.
    pub fn patch(&self) -> Option<(Option<&str>, Option<&str>)> {
        let (url, text) = self.rare.as_ref()?.patch.as_ref()?;
        Some((url.as_deref(), text.as_deref()))
    }
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

/// The last part of a type, which may be an IRI or have a prefix.
pub(crate) fn local(kind: &str) -> &str {
    kind.rsplit([':', '#', '/']).next().unwrap_or(kind)
}

/// The action of a type, if it is known, and whether it is written as in the specifications.
pub(crate) fn action(kind: &str) -> Option<(Action, bool)> {
    const ACTIONS: [(&str, Action); 8] = [
        ("Create", Action::Put),
        ("Update", Action::Put),
        ("Delete", Action::Delete),
        ("Add", Action::Put),
        ("Remove", Action::Remove),
        ("Deprecate", Action::Deprecate),
        ("Move", Action::Move),
        ("Refresh", Action::Refresh),
    ];
    let name = local(kind);
    let (exact, action) = ACTIONS.iter().find(|(exact, _)| exact.eq_ignore_ascii_case(name))?;
    Some((*action, *exact == name))
}

/// Whether it is the type, or the media type, of an Entity Patch.
pub(crate) fn is_patch(kind: &str) -> bool {
    kind.ends_with("rdf_patch") || kind == "application/rdf-patch"
}
