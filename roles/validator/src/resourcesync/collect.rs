//! Data collected from a document for comparison with others, in bounded memory.

use crate::report::{Findings, rules as r};
use crate::resourcesync::entry::{DocumentObserver, Entry, Head};
use crate::resourcesync::kind;
use crate::resourcesync::sets::{Changed, Changes};
use crate::walk::node::Origin;
use crate::walk::sketch::{Listed, Seen, Sketch, hash};
use abreast_resourcesync::v1_1::{Capability, Change, Root};
use abreast_webtypes::{Digests, W3cDatetime, excerpt, resolve};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, PoisonError};

/// Most entries of a document that are followed.
const CHILDREN_MAX: usize = 50_000;
/// Hubs of a topic that are checked.
pub(crate) const HUBS_MAX: usize = 64;
/// URIs of each set that are compared.
pub(crate) const SKETCH: usize = 256;

/// An entry that links to a document or package.
#[derive(Clone, Debug, Default)]
pub(crate) struct Child {
    pub(crate) url: String,
    pub(crate) capability: Option<Capability>,
    pub(crate) at: Option<W3cDatetime>,
    pub(crate) completed: Option<W3cDatetime>,
    pub(crate) from: Option<W3cDatetime>,
    pub(crate) until: Option<W3cDatetime>,
    pub(crate) length: Option<u64>,
    pub(crate) digests: Digests,
    pub(crate) media_type: String,
    pub(crate) contents: Option<String>,
    pub(crate) place: (u64, u64),
    /// Data of notifications and topics; `None` for other entries.
    pub(crate) announced: Option<Box<NotificationFacts>>,
}

/// Facts from an entry of a Capability List for a topic, or from an entry of a Framework
/// Notification.
#[derive(Clone, Debug, Default)]
pub(crate) struct NotificationFacts {
    /// Hubs that accept subscriptions to the topic.
    pub(crate) hubs: Vec<String>,
    pub(crate) change: Option<Change>,
    /// Time of the document's change, if the entry contains it.
    pub(crate) time: Option<W3cDatetime>,
    /// Index of the document according to the notification.
    pub(crate) index: Option<String>,
}

/// State that is shared while documents are read.
pub(crate) struct Context {
    pub(crate) seed: u64,
    pub(crate) seen: Mutex<Seen>,
    /// URIs of each set that are compared.
    pub(crate) sketch: usize,
}

/// Collects the facts from one document that are compared with other documents.
pub(crate) struct Collector<'a> {
    context: &'a Context,
    number: u32,
    url: String,
    origin: Origin,
    wants: CollectOptions,
    group: String,
    pub(crate) children: Vec<Child>,
    pub(crate) children_left_out: u64,
    pub(crate) listed: Sketch<Listed>,
    pub(crate) changed: Sketch<Changes>,
    /// Hash of all entries of a manifest, in document order.
    fingerprint: DefaultHasher,
    /// Number of entries read so far.
    entries: u32,
    /// Places of duplicate URIs, each with the number of the document and entry that has the URI
    /// first.
    pub(crate) again: Vec<((u64, u64), (u32, u32))>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct CollectOptions {
    children: bool,
    listed: bool,
    unique: bool,
    changed: bool,
    fingerprint: bool,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(context: &'a Context, number: u32, url: &str, origin: Origin) -> Self {
        Self {
            context,
            number,
            url: url.to_owned(),
            origin,
            wants: CollectOptions::default(),
            group: String::new(),
            children: Vec::new(),
            children_left_out: 0,
            listed: Sketch::new(context.sketch),
            changed: Sketch::new(context.sketch),
            fingerprint: DefaultHasher::new(),
            entries: 0,
            again: Vec::new(),
        }
    }

    /// Hash of the entries. Manifests with the same fingerprint have the same content.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint.finish()
    }

    fn child(&mut self, head: &Head, entry: &Entry) {
        if self.children.len() == CHILDREN_MAX {
            self.children_left_out += 1;
            return;
        }
        let Ok(url) = resolve(&self.url, &entry.loc) else { return };
        let md = &entry.md;
        let contents = entry.links.iter().find(|link| link.has_rel("contents"));
        self.children.push(Child {
            url,
            capability: md.capability,
            at: md.at,
            completed: md.completed,
            from: md.from,
            until: md.until,
            length: md.length,
            digests: md.digests.clone(),
            media_type: md.media_type.clone(),
            contents: contents.and_then(|link| resolve(&self.url, &link.href).ok()),
            place: entry.place,
            announced: self.announced(head, entry).map(Box::new),
        });
    }

    fn announced(&self, head: &Head, entry: &Entry) -> Option<NotificationFacts> {
        let own = head.md.as_ref()?;
        let links = |rel| entry.links.iter().filter(move |link| link.has_rel(rel));
        let targets = |rel| links(rel).filter_map(|link| resolve(&self.url, &link.href).ok());
        match own.capability? {
            Capability::CapabilityList
                if entry.md.capability.is_some_and(kind::is_notification) =>
            {
                Some(NotificationFacts {
                    hubs: targets("hub").take(HUBS_MAX).collect(),
                    ..NotificationFacts::default()
                })
            }
            Capability::FrameworkNotification => Some(NotificationFacts {
                change: entry.md.change,
                time: entry.md.datetime.or(own.until),
                index: targets("index").next(),
                ..NotificationFacts::default()
            }),
            _ => None,
        }
    }
}

impl DocumentObserver for Collector<'_> {
    fn head(&mut self, head: &Head) {
        let Some(capability) = head.md.as_ref().and_then(|md| md.capability) else { return };
        let root = head.root();
        let is_list = capability == Capability::ResourceList && root == Root::UrlSet;
        self.wants = CollectOptions {
            children: kind::is_container(capability, root),
            listed: is_list && !self.origin.archived
                || capability == Capability::ResourceDumpManifest,
            unique: is_list,
            changed: capability == Capability::ChangeList
                && root == Root::UrlSet
                && !self.origin.archived,
            fingerprint: kind::is_manifest(capability),
        };
        let index = head.link("index").and_then(|(href, _)| resolve(&self.url, href).ok());
        self.group =
            index.or_else(|| self.origin.index.clone()).unwrap_or_else(|| self.url.clone());
    }

    fn entry(&mut self, head: &Head, entry: &Entry, found: &mut Findings) {
        let wants = self.wants;
        if wants.children {
            self.child(head, entry);
            return;
        }
        let md = &entry.md;
        if wants.unique {
            self.entries = self.entries.saturating_add(1);
            let place = (self.number, self.entries);
            let mut seen = self.context.seen.lock().unwrap_or_else(PoisonError::into_inner);
            let before = seen.insert(&self.group, &entry.loc, place);
            drop(seen);
            if let Some((number, first)) = before {
                if number == self.number {
                    let message = || format!("{} is entry {first} already", excerpt(&entry.loc));
                    found.add(&r::RESOURCE_LIST_ONCE, entry.place, message);
                } else if self.again.len() < 1_000 {
                    self.again.push((entry.place, (number, first)));
                }
            }
        }
        if wants.listed {
            let hash = hash(self.context.seed, &entry.loc);
            if self.listed.wants(hash) {
                let at = head.md.as_ref().and_then(|md| md.at);
                let (media_type, encoding) = (md.media_type.clone(), md.encoding.clone());
                self.listed.entry(hash, || Listed {
                    uri: entry.loc.clone(),
                    digests: md.digests.clone(),
                    length: md.length,
                    media_type,
                    encoding,
                    lastmod: entry.lastmod,
                    at,
                    document: self.url.clone(),
                    place: entry.place,
                });
            }
        }
        if wants.changed {
            let hash = hash(self.context.seed, &entry.loc);
            if let (Some(time), Some(change), true) =
                (md.datetime, md.change, self.changed.wants(hash))
                && let Some(changes) = self
                    .changed
                    .entry(hash, || Changes { uri: entry.loc.clone(), latest: Vec::new() })
            {
                changes.add(Changed {
                    time,
                    change,
                    digests: md.digests.clone(),
                    length: md.length,
                    document: self.url.clone(),
                    place: entry.place,
                });
            }
        }
        if wants.fingerprint {
            let of = &mut self.fingerprint;
            entry.loc.hash(of);
            md.path.hash(of);
            md.length.hash(of);
            md.change.map(Change::token).hash(of);
            md.datetime.map(|time| time.instant).hash(of);
            md.digests.to_bytes().hash(of);
        }
    }
}
