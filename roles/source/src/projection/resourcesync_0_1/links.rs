//! The links of resources as `xhtml:link`, and their categories [rs-0.1 §3.1.7, §4.3, §6.2].

use crate::links::href_of;
use crate::publish::PublishedSet;
use crate::versions::VersionUrls;
use abreast_core::{Description, Position, State};
use abreast_resourcesync::v0_1::{Entry, Link, Meta, SUBJECT as CATEGORY, SUBJECT_NAME};
use abreast_webtypes::{Timestamp, decode_segment};

/// Start of a link target that is a category as a word [rfc2397 §2].
const WORD: &str = "data:,";

/// A category of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    /// A URI, with an optional title.
    Uri(String, Option<String>),
    /// A word, without a URI.
    Word(String),
}

impl Category {
    /// The category of a link, or `None` if the link has another relation.
    fn of_link(link: &Link) -> Option<Self> {
        if !link.has_rel(CATEGORY) {
            return None;
        }
        let word = link.href.strip_prefix(WORD).map(|word| decode_segment(word.as_bytes()));
        Some(match word.map(String::from_utf8) {
            Some(Ok(word)) => Self::Word(word),
            _ => Self::Uri(link.href.clone(), link.title.clone()),
        })
    }

    /// Number of bytes of the texts of the category.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::Uri(href, title) => href.len() + title.as_ref().map_or(0, String::len),
            Self::Word(word) => word.len(),
        }
    }

    /// Adds the category to an entry, as a link or as a `meta` element.
    pub(super) fn add_to(self, entry: &mut Entry) {
        match self {
            Self::Uri(href, title) => {
                entry.links.push(Link { rel: CATEGORY.to_owned(), href, title, ..Link::default() });
            }
            Self::Word(content) => {
                entry.metas.push(Meta { name: SUBJECT_NAME.to_owned(), content });
            }
        }
    }

    /// All categories of an entry.
    pub(super) fn all_of(entry: &Entry) -> impl Iterator<Item = Self> + '_ {
        let links = entry.links.iter().filter(|link| link.rel == CATEGORY);
        let metas = entry.metas.iter().filter(|meta| meta.name == SUBJECT_NAME);
        links
            .map(|link| Self::Uri(link.href.clone(), link.title.clone()))
            .chain(metas.map(|meta| Self::Word(meta.content.clone())))
    }
}

/// Adds the links of a state. Patches are partial content, and are added to changes only.
/// Duplicates are mirrors, in the order of their priority. Subjects and collections are categories.
pub(super) fn add_links(entry: &mut Entry, resources: &str, state: &State, of_change: bool) {
    let mut links: Vec<_> = state.links.iter().collect();
    let pri = |link: &abreast_webtypes::Link| link.param("pri")?.parse::<u32>().ok();
    links.sort_by_key(|link| pri(link).unwrap_or(u32::MAX));
    for link in links {
        // A TimeGate has no representation, so the media type does not apply to its link.
        let media_type = link.param("type").filter(|_| !link.has_rel("timegate"));
        let link = Link {
            rel: link.rel.clone(),
            href: href_of(resources, &link.target),
            media_type: media_type.map(str::to_owned),
            title: link.param("title").map(str::to_owned),
            ..Link::default()
        };
        add_link(entry, link.with_own_relations(of_change));
    }
}

/// Adds a link to an entry, as a category if it is one.
pub(super) fn add_link(entry: &mut Entry, link: Option<Link>) {
    match link.as_ref().and_then(Category::of_link) {
        Some(category) => category.add_to(entry),
        None => entry.links.extend(link),
    }
}

/// Adds the types of an entity as categories.
pub(super) fn add_types(entry: &mut Entry, description: Option<&Description>) {
    for iri in description.into_iter().flat_map(|description| &description.types) {
        let name = iri.rsplit(['#', '/', ':']).next().filter(|name| !name.is_empty());
        Category::Uri(iri.clone(), name.map(str::to_owned)).add_to(entry);
    }
}

/// Adds links to the versions of a resource, if other documents also contain these links: the
/// TimeGate and the TimeMap, and for a change the version itself.
pub(super) fn add_versions(
    entry: &mut Entry,
    set: &PublishedSet,
    key: &str,
    state: &State,
    change: Option<(Position, Timestamp)>,
) {
    let is_listed = |urls: &&VersionUrls| urls.are_listed(key, state, change.map(|(at, _)| at));
    let Some(urls) = set.versions.as_ref().filter(is_listed) else { return };
    let mut add = |rel: &str, href, media_type: Option<&str>| {
        let media_type = media_type.map(str::to_owned);
        entry.links.push(Link { rel: rel.to_owned(), href, media_type, ..Link::default() });
    };
    if let Some((_, since)) = change {
        add("self memento", urls.memento(key, since), state.media_type.as_deref());
    }
    add("timegate", urls.timegate(key), None);
    add("timemap", urls.timemap(key), Some(crate::versions::LINK_FORMAT));
}

/// The links of a set as a whole.
pub(super) fn of_set(set: &PublishedSet) -> impl Iterator<Item = Link> + '_ {
    let resources = set.urls.resources();
    set.links.0.iter().map(move |link| Link {
        rel: link.rel.clone(),
        href: href_of(&resources, &link.target),
        media_type: link.param("type").map(str::to_owned),
        ..Link::default()
    })
}
