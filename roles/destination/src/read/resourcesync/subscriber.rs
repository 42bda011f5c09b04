//! Support for subscribers without a copy: the way from the documents of a Source to a topic, and
//! the content of its notifications.

use abreast_resourcesync::v1_1::{Capability, Change, Document, Entry};
use abreast_webtypes::Timestamp;
use url::Url;

/// The subject of a topic of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopicKind {
    /// Changes of resources [rs-change-notification §2].
    Changes,
    /// Changes of the documents that describe them [rs-framework-notification §2].
    Documents,
}

impl TopicKind {
    /// The name of its notifications' capability.
    pub const fn capability(self) -> &'static str {
        self.of().token()
    }

    const fn of(self) -> Capability {
        match self {
            Self::Changes => Capability::ChangeNotification,
            Self::Documents => Capability::FrameworkNotification,
        }
    }
}

/// The next address on the way from a document to a topic; all addresses are absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TopicStep {
    /// The Capability List of a set.
    Set {
        /// The topic, if the list has one.
        topic: Option<String>,
        /// The URL of the document above the list.
        up: Option<String>,
    },
    /// A Source Description: the Capability Lists of all sets.
    Sets(Vec<String>),
    /// Any other document, with the URL of the document above it.
    Up(Option<String>),
}

impl TopicStep {
    /// Reads a document that answered at `base`; `None` for one of another protocol.
    pub fn read(body: &[u8], base: &str, kind: TopicKind) -> Option<Self> {
        let Document { head, entries } = Document::from_slice(body).ok()?;
        let absolute = |href: &str| Url::parse(base).ok()?.join(href).ok().map(String::from);
        let of =
            |capability| entries.iter().filter(move |entry| entry.capability == Some(capability));
        let up = || {
            head.links.iter().find(|link| link.has_rel("up")).and_then(|link| absolute(&link.href))
        };
        Some(match head.capability {
            Some(Capability::CapabilityList) => Self::Set {
                topic: of(kind.of()).next().and_then(|topic| absolute(&topic.loc)),
                up: up(),
            },
            Some(Capability::Description) => Self::Sets(
                of(Capability::CapabilityList).filter_map(|entry| absolute(&entry.loc)).collect(),
            ),
            _ => Self::Up(up()),
        })
    }
}

/// The content of a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationContent {
    /// The name of its capability.
    pub capability: &'static str,
    /// The end of the previous notification; `None` if not contained.
    pub from: Option<Timestamp>,
    /// The end of the interval of this notification.
    pub until: Option<Timestamp>,
    /// The changes, in their order.
    pub changes: Vec<NotifiedChange>,
}

/// A change in a notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotifiedChange {
    /// The URI of the resource or document.
    pub uri: String,
    /// The change: `created`, `updated` or `deleted`.
    pub change: Option<&'static str>,
    /// The time of the change.
    pub datetime: Option<Timestamp>,
    /// The capability of a document.
    pub capability: Option<&'static str>,
    /// The time of the resource's last modification.
    pub lastmod: Option<Timestamp>,
    /// The length of the resource in bytes.
    pub length: Option<u64>,
    /// The media type of the resource.
    pub media_type: Option<String>,
    /// The digests of the resource, in the syntax of the documents.
    pub hash: Option<String>,
}

impl NotificationContent {
    /// Reads a notification; `None` for other content.
    pub fn read(body: &[u8]) -> Option<Self> {
        let Document { head, entries } = Document::from_slice(body).ok()?;
        let capability = head.capability.filter(|capability| {
            [TopicKind::Changes, TopicKind::Documents]
                .into_iter()
                .any(|kind| kind.of() == *capability)
        })?;
        Some(Self {
            capability: capability.token(),
            from: head.from.map(|time| time.instant),
            until: head.until.map(|time| time.instant),
            changes: entries.into_iter().map(NotifiedChange::of).collect(),
        })
    }
}

impl NotifiedChange {
    pub(crate) fn of(entry: Entry) -> Self {
        Self {
            uri: entry.loc,
            change: entry.change.map(Change::token),
            datetime: entry.datetime.map(|time| time.instant),
            capability: entry.capability.map(Capability::token),
            lastmod: entry.lastmod.map(|time| time.instant),
            length: entry.length,
            media_type: entry.media_type,
            hash: entry.digests.strongest().map(|_| entry.digests.to_string()),
        }
    }
}
