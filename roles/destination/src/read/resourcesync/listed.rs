//! An entry of a ResourceSync document as a listed resource [rs-core §7].

use crate::plan::listed::{Link, Listed, Patch, Relation, without_fragment};
use crate::plan::patch_format::is_known;
use abreast_core::Kind;
use abreast_resourcesync::v1_1;
use abreast_webtypes::W3cDatetime;

/// The priority of a link without a priority [rs-core §14.2].
const LOWEST: u32 = 999_999;

/// The relation types that a copy uses.
const RELATIONS: [(&str, Relation); 4] = [
    ("duplicate", Relation::Mirror),
    ("memento", Relation::Version),
    ("timemap", Relation::VersionList),
    ("via", Relation::Origin),
];
/// The relation type of a patch from the version before [rs-core §14.4].
const PATCH: &str = "http://www.openarchives.org/rs/terms/patch";

/// The resource or change of an entry; `document` is the URL of its document, and `head` the head.
pub(crate) fn listed<'a>(
    document: &'a str,
    head: &v1_1::Head,
    entry: &'a v1_1::Entry,
) -> Listed<'a> {
    let change = match entry.change {
        Some(v1_1::Change::Deleted) => Some(Kind::Delete),
        Some(v1_1::Change::Created) => Some(Kind::Create),
        Some(v1_1::Change::Updated) => Some(Kind::Update),
        None => lists_changes(head).then_some(Kind::Update),
    };
    let modified = entry.lastmod.map(|time| time.instant);
    let is_time_of_change = entry.datetime.is_none_or(|time| Some(time.instant) == modified);
    Listed {
        uri: without_fragment(&entry.loc),
        href: None,
        accept: None,
        describes: false,
        body: None,
        document,
        modified: modified.map(abreast_webtypes::Timestamp::as_micros),
        // `lastmod` is the time of the change in lists of version 1.0, and in those written for
        // clients of both versions [rs-core §12.1].
        modified_is_change: change.is_some() && is_time_of_change,
        length: entry.length,
        media_type: entry.media_type.as_deref(),
        digests: &entry.digests,
        change,
        changed: entry.datetime.map(W3cDatetime::moment),
        id: None,
        patch: None,
        replaced_by: &[],
        patches: patch(&entry.links).into_iter().collect(),
        links: links(&entry.links),
        categories: Vec::new(),
    }
}

/// Several patches of an entry lead to the same version in different formats: the first counts that
/// has a known one and can be requested.
fn patch(links: &[v1_1::Ln]) -> Option<Patch<'_>> {
    links.iter().filter(|link| link.has_rel(PATCH) && may_be_http(&link.href)).find_map(|link| {
        let media_type = link.media_type.as_deref().filter(|media_type| is_known(media_type))?;
        let (href, length, digests) = (link.href.as_str(), link.length, &link.digests);
        Some(Patch { href, media_type, length, digests, before: None, after: None })
    })
}

/// Whether a reference is relative, or an http or https URL.
fn may_be_http(href: &str) -> bool {
    match url::Url::parse(href) {
        Ok(url) => matches!(url.scheme(), "http" | "https"),
        Err(_) => true,
    }
}

fn lists_changes(head: &v1_1::Head) -> bool {
    use v1_1::Capability::{ChangeDumpManifest, ChangeList, ChangeNotification};
    matches!(head.capability, Some(ChangeList | ChangeDumpManifest | ChangeNotification))
}

fn links(links: &[v1_1::Ln]) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    for link in links {
        for (name, relation) in RELATIONS {
            if link.has_rel(name) {
                found.push(Link {
                    relation,
                    href: &link.href,
                    priority: link.pri.unwrap_or(LOWEST),
                    modified: link.modified.map(|modified| modified.instant),
                    media_type: link.media_type.as_deref(),
                    length: link.length,
                    digests: &link.digests,
                });
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use abreast_resourcesync::v1_1::{Capability, Entry, Head, Ln};

    #[test]
    fn links_of_known_relations_are_kept_one_for_each_relation() {
        let link =
            |rel: &str, pri| Ln { rel: rel.to_owned(), href: rel.to_owned(), pri, ..Ln::default() };
        let entry = Entry {
            loc: "http://h/a#part".to_owned(),
            links: vec![
                link("up VIA", None),
                link("describedby", None),
                link("duplicate memento", Some(2)),
            ],
            ..Entry::default()
        };
        let listed = listed("http://h/list.xml", &Head::default(), &entry);
        assert_eq!((listed.uri, listed.document), ("http://h/a", "http://h/list.xml"));
        let found: Vec<_> =
            listed.links.iter().map(|link| (link.relation, link.href, link.priority)).collect();
        assert_eq!(
            found,
            [
                (Relation::Origin, "up VIA", LOWEST),
                (Relation::Mirror, "duplicate memento", 2),
                (Relation::Version, "duplicate memento", 2)
            ]
        );
    }

    #[test]
    fn lastmod_that_is_the_time_of_the_change_is_not_sure() {
        let time = |text: &str| W3cDatetime::parse(text.as_bytes()).ok();
        let (early, late) = (time("2026-01-01T00:00:00Z"), time("2026-01-02T00:00:00Z"));
        let (all, changes) = (Some(Capability::ResourceList), Some(Capability::ChangeList));
        for (capability, change, lastmod, datetime, sure) in [
            (all, None, early, None, true),
            (changes, None, early, None, false),
            (changes, Some(v1_1::Change::Updated), early, None, false),
            (changes, Some(v1_1::Change::Updated), early, early, false),
            (changes, Some(v1_1::Change::Updated), early, late, true),
        ] {
            let head = Head { capability, ..Head::default() };
            let entry = Entry { change, lastmod, datetime, ..Entry::default() };
            let listed = listed("", &head, &entry);
            assert_eq!(
                listed.sure_modified().is_some(),
                sure,
                "{capability:?} {change:?} {datetime:?}"
            );
            assert_eq!(listed.change.is_some(), capability == changes);
        }
    }
}
