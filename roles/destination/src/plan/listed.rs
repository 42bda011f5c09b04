//! A resource, or a change of a resource, as a Source lists it. The readers of all protocols yield
//! this type, and the plan uses it.
//!
//! The type borrows from the document, so that an entry of a list of millions is not copied.

use crate::copy::fingerprint::Fingerprint;
use crate::sink::via::{VIA_BYTES_MAX, to_json};
use abreast_core::Kind;
use abreast_core::filter::{Categories, MediaType, Subject};
use abreast_store::mirror::{Access, Pending, PendingAction};
use abreast_webtypes::{Digests, Moment, Timestamp, resolve};
use std::hash::{Hash as _, Hasher as _};

/// A listed resource or change.
#[derive(Clone, Debug)]
pub(crate) struct Listed<'a> {
    /// The resource's URI, without fragment.
    pub(crate) uri: &'a str,
    /// The address to request, if it differs from the URI.
    pub(crate) href: Option<&'a str>,
    /// The media types to ask for, as in an `Accept` header.
    pub(crate) accept: Option<&'a str>,
    /// Whether the response describes the resource, see [`Access::describes`].
    pub(crate) describes: bool,
    /// Offset of the resource's bytes in the file of planned bytes, if the list contained the
    /// bytes. For a change: offset of the patch in the document.
    pub(crate) body: Option<u64>,
    /// The document with this entry; links are relative to its URL.
    pub(crate) document: &'a str,
    /// Last modification, microseconds.
    pub(crate) modified: Option<i64>,
    /// `modified` may be the time of the change: only the server, or a package, knows when the
    /// resource was modified.
    pub(crate) modified_is_change: bool,
    pub(crate) length: Option<u64>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) digests: &'a Digests,
    /// The kind of change; `None` in a list of all resources.
    pub(crate) change: Option<Kind>,
    /// The time of the change, as precisely as the document gives it.
    pub(crate) changed: Option<Moment>,
    /// The identifier of the change in its protocol, such as the id of an activity.
    pub(crate) id: Option<&'a str>,
    /// A patch from the version before the change, which the document contains.
    pub(crate) patch: Option<&'a str>,
    /// The URIs to use instead of a deprecated resource, or the new URIs of a deleted resource, the
    /// best first.
    pub(crate) replaced_by: &'a [String],
    /// Patches from the version before the change to this one, in the order of application.
    pub(crate) patches: Vec<Patch<'a>>,
    /// The links with relations that a copy uses.
    pub(crate) links: Vec<Link<'a>>,
    /// The categories of the resource: URIs, their labels, and words.
    pub(crate) categories: Vec<&'a str>,
}

/// A patch of a chain.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patch<'a> {
    /// The address of the patch, as written.
    pub(crate) href: &'a str,
    /// The media type of the patch; the next fields describe the patch too.
    pub(crate) media_type: &'a str,
    pub(crate) length: Option<u64>,
    pub(crate) digests: &'a Digests,
    /// Digests of the version to which the patch applies, if listed.
    pub(crate) before: Option<&'a Digests>,
    /// Digests of the version that results from the patch, if listed. The last patch results in the
    /// listed version.
    pub(crate) after: Option<&'a Digests>,
}

/// A link of a listed resource.
#[derive(Clone, Debug)]
pub(crate) struct Link<'a> {
    pub(crate) relation: Relation,
    /// The target of the link, as written.
    pub(crate) href: &'a str,
    /// Priority among the links with the same relation; the lowest number is the best.
    pub(crate) priority: u32,
    /// Modification time of the target; the next fields describe the target too.
    pub(crate) modified: Option<Timestamp>,
    pub(crate) media_type: Option<&'a str>,
    pub(crate) length: Option<u64>,
    pub(crate) digests: &'a Digests,
}

/// The relation of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// The same bytes at another place.
    Mirror,
    /// An earlier version.
    Version,
    /// A list of earlier versions.
    VersionList,
    /// The resource that this one is a copy of.
    Origin,
}

impl<'a> Listed<'a> {
    /// Whether the resource left the set.
    pub(crate) fn is_deletion(&self) -> bool {
        self.change.is_some_and(|kind| !kind.keeps_resource())
    }

    /// The address to request.
    pub(crate) fn href(&self) -> &'a str {
        self.href.unwrap_or(self.uri)
    }

    /// Whether the entry deprecates the resource without a new version: the stored bytes remain
    /// valid.
    pub(crate) fn is_only_deprecated(&self) -> bool {
        self.change == Some(Kind::Deprecate)
            && self.length.is_none()
            && self.modified.is_none()
            && self.digests.is_empty()
    }

    /// When the resource was last modified, microseconds, if that is sure.
    pub(crate) fn sure_modified(&self) -> Option<i64> {
        self.modified.filter(|_| !self.modified_is_change)
    }

    /// The links with this relation.
    pub(crate) fn links_to(&self, relation: Relation) -> impl Iterator<Item = &Link<'a>> {
        self.links.iter().filter(move |link| link.relation == relation)
    }

    /// The absolute URL of a link.
    pub(crate) fn url_of(&self, link: &Link<'_>) -> Option<String> {
        resolve(self.document, link.href).ok()
    }

    /// The properties of the request, if the resource is not simply requested at its URI.
    fn access(&self) -> Option<Box<Access>> {
        let href = self.href.filter(|href| *href != self.uri);
        if href.is_none() && self.accept.is_none() && !self.describes {
            return None;
        }
        Some(Box::new(Access {
            href: href.map(str::to_owned),
            accept: self.accept.map(str::to_owned),
            describes: self.describes,
        }))
    }

    /// A fingerprint of the change, which distinguishes changes of a resource at the same time.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hasher = Fingerprint::new();
        (self.uri, self.change.map(|kind| kind as u8), self.id).hash(&mut hasher);
        (self.changed, self.modified, self.length, self.digests.to_bytes()).hash(&mut hasher);
        hasher.finish()
    }

    /// The facts that filters are applied to.
    pub(crate) fn subject(&self) -> Subject<'_> {
        Subject {
            uri: self.uri,
            path: &[],
            media_type: MediaType::Listed(self.media_type),
            length: self.length,
            modified: self.modified,
            categories: Categories::Listed(&self.categories),
        }
    }

    /// Writes the item of the plan that fetches the resource.
    pub(crate) fn pending_into(&self, out: &mut Pending) {
        self.uri.clone_into(&mut out.uri);
        out.action = PendingAction::Fetch;
        out.modified = self.sure_modified();
        out.length = self.length;
        out.digests = self.digests.to_bytes();
        out.unknown = !self.digests.unknown.is_empty();
        out.changed = None;
        out.access = self.access();
        out.body = self.body;
        out.via = if self.is_deletion() {
            self.replaced_by.first().cloned()
        } else if self.links.is_empty() {
            None
        } else {
            listed_via(self)
        };
    }
}

/// A URI without its fragment.
pub(crate) fn without_fragment(uri: &str) -> &str {
    uri.split('#').next().unwrap_or_default()
}

/// The listed origin of a resource, as a link in JSON.
pub(crate) fn listed_via(listed: &Listed<'_>) -> Option<String> {
    let link = listed.links_to(Relation::Origin).find(|link| url::Url::parse(link.href).is_ok())?;
    let mut digests = String::new();
    if !link.digests.is_empty() {
        digests = link.digests.to_string();
    }
    let json =
        to_json(link.href, link.modified, &digests, link.length, link.media_type).to_string();
    (json.len() <= VIA_BYTES_MAX).then_some(json)
}

#[cfg(test)]
pub(crate) mod testing {
    //! Listed resources for tests.

    use super::*;

    /// Digests of nothing.
    pub(crate) static NO_DIGESTS: std::sync::LazyLock<Digests> =
        std::sync::LazyLock::new(Digests::default);

    /// A resource with no more than its links.
    pub(crate) fn listed<'a>(document: &'a str, uri: &'a str, links: Vec<Link<'a>>) -> Listed<'a> {
        Listed {
            uri,
            href: None,
            accept: None,
            describes: false,
            body: None,
            document,
            modified: None,
            modified_is_change: false,
            length: None,
            media_type: None,
            digests: &NO_DIGESTS,
            change: None,
            changed: None,
            id: None,
            patch: None,
            replaced_by: &[],
            patches: Vec::new(),
            links,
            categories: Vec::new(),
        }
    }

    /// A link without properties of its target.
    pub(crate) fn link(relation: Relation, href: &str) -> Link<'_> {
        Link {
            relation,
            href,
            priority: 1,
            modified: None,
            media_type: None,
            length: None,
            digests: &NO_DIGESTS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{link, listed};
    use super::*;
    use serde_json::Value;

    #[test]
    fn only_a_usable_origin_is_taken_over() {
        let via = |relation, href: &str| {
            let links = vec![Link { length: Some(5), ..link(relation, href) }];
            listed_via(&listed("http://h/list.xml", "http://h/a", links))
        };
        let text = via(Relation::Origin, "http://original.example/a").unwrap();
        let link: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            link,
            serde_json::json!({"rel": "via", "href": "http://original.example/a", "length": 5})
        );
        assert_eq!(via(Relation::Mirror, "http://original.example/a"), None);
        assert_eq!(via(Relation::Origin, "../a"), None);
        assert_eq!(via(Relation::Origin, &format!("http://h/{}", "a".repeat(9_000))), None);
    }
}
