//! The links of resources as `xhtml:link`, and their categories [rs-0.1 §3.1.7, §4.3, §6.2].

use crate::links::{PATCH, SUBJECT, href_of};
use crate::publish::PublishedSet;
use crate::versions::VersionUrls;
use abreast_core::{Description, State};
use abreast_resourcesync::v0_1::{
    Entry, Link, MEDIA_TYPES, MIRROR, Meta, PARTIAL, SUBJECT as CATEGORY, SUBJECT_NAME,
};
use abreast_webtypes::{Timestamp, decode_segment};

/// What the target of a link of a category begins with when it is a word [rfc2397 §2].
const WORD: &str = "data:,";

/// A category of a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Category {
    /// With a URI, and perhaps a name.
    Uri(String, Option<String>),
    /// A word.
    Word(String),
}

impl Category {
    /// That of a link with a URI.
    fn of(href: String, title: Option<&str>) -> Self {
        let word = href.strip_prefix(WORD).map(|word| decode_segment(word.as_bytes()));
        match word.map(String::from_utf8) {
            Some(Ok(word)) => Self::Word(word),
            _ => Self::Uri(href, title.map(str::to_owned)),
        }
    }

    /// That of a link of an entry; `None` for other links.
    pub(super) fn of_link(link: &Link) -> Option<Self> {
        link.has_rel(CATEGORY).then(|| Self::of(link.href.clone(), link.title.as_deref()))
    }

    /// Adds it to an entry.
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

    /// Those of an entry.
    pub(super) fn all_of(entry: &Entry) -> impl Iterator<Item = Self> + '_ {
        let links = entry.links.iter().filter(|link| link.rel == CATEGORY);
        let metas = entry.metas.iter().filter(|meta| meta.name == SUBJECT_NAME);
        links
            .map(|link| Self::Uri(link.href.clone(), link.title.clone()))
            .chain(metas.map(|meta| Self::Word(meta.content.clone())))
    }
}

/// Adds the links of a state: patches are partial content and belong to changes only, duplicates
/// are mirrors, the preferred ones first, subjects and collections are categories.
pub(super) fn add_links(entry: &mut Entry, resources: &str, state: &State, of_change: bool) {
    let mut links: Vec<_> = state.links.iter().collect();
    let pri = |link: &abreast_webtypes::Link| link.param("pri")?.parse::<u32>().ok();
    links.sort_by_key(|link| pri(link).unwrap_or(u32::MAX));
    for link in links {
        let href = href_of(resources, &link.target);
        // The attributes of what they lead to mean nothing for a TimeGate.
        let media_type = link.param("type").filter(|_| !link.has_rel("timegate"));
        let typed = Link { href, media_type: media_type.map(str::to_owned), ..Link::default() };
        let title = link.param("title");
        if link.has_rel(PATCH) {
            if let Some(media_type) = media_type.filter(|_| of_change) {
                let protocol = Some(format!("{MEDIA_TYPES}{media_type}"));
                entry.links.push(Link { rel: PARTIAL.to_owned(), protocol, ..typed });
            }
        } else if link.has_rel("duplicate") {
            entry.links.push(Link { rel: format!("alternate {MIRROR}"), ..typed });
        } else if link.has_rel(SUBJECT) || link.has_rel("collection") {
            Category::of(typed.href, title).add_to(entry);
        } else {
            let title = title.map(str::to_owned);
            entry.links.push(Link { rel: link.rel.clone(), title, ..typed });
        }
    }
}

/// Adds the types of an entity as categories.
pub(super) fn add_types(entry: &mut Entry, description: Option<&Description>) {
    for iri in description.into_iter().flat_map(|description| &description.types) {
        let name = iri.rsplit(['#', '/', ':']).next().filter(|name| !name.is_empty());
        Category::Uri(iri.clone(), name.map(str::to_owned)).add_to(entry);
    }
}

/// Adds those to the versions of a resource, where other documents have them: of a change the
/// version itself, its TimeGate and its TimeMap.
pub(super) fn add_versions(
    entry: &mut Entry,
    set: &PublishedSet,
    key: &str,
    state: &State,
    since: Option<Timestamp>,
) {
    let Some(urls) = set.versions.as_ref().filter(|_| VersionUrls::are_listed(key, state, since))
    else {
        return;
    };
    let mut add = |rel: &str, href, media_type: Option<&str>| {
        let media_type = media_type.map(str::to_owned);
        entry.links.push(Link { rel: rel.to_owned(), href, media_type, ..Link::default() });
    };
    if let Some(since) = since {
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
